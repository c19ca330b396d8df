"""The ledger without Macaulay2: what claims may contain, how verdicts are compared with the recorded ones, exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from m2bridge import records
from m2bridge.certainty import Certainty
from m2bridge.cli import main
from m2bridge.errors import InputError, OutOfReachError, OutputError, TimeLimitError
from m2bridge.evidence import Evidence
from m2bridge.families import parse_spec
from m2bridge.papers import all_claims, claim, claims_of, papers
from m2bridge.papers import ledger as ledgers
from m2bridge.papers.base import CheckContext, Claim, Kind, Size, Status, Verdict, by_ancestry
from m2bridge.papers.ledger import Ledger, baseline, index, select_sizes, verify
from m2bridge.papers.lightning_attention import fibers
from m2bridge.questions.fiber import Fiber
from tests.replay import ReplayEngine

IDS = [item.id for item in all_claims()]
CHEAP = ("lemma-3.1", "lemma-a.3", "parameter-count")
"""Claims that ask no Macaulay2 and take milliseconds."""

Verify = Callable[..., int]


def example(run: Callable[[Size, CheckContext], Verdict], *sizes: Size) -> Claim:
    """A claim of its own, with a known id."""
    return Claim(
        id="lemma-3.1",
        number="Lemma 3.1",
        paper="an example",
        statement="An example.",
        checked="nothing",
        witnesses={"construction": ("nobody",)},
        sizes=sizes,
        quick=sizes[:1],
        run=run,
    )


@pytest.fixture
def context(replay: ReplayEngine) -> CheckContext:
    return CheckContext(engine=replay)


@pytest.fixture
def verify_command(replay: ReplayEngine, monkeypatch: pytest.MonkeyPatch) -> Verify:
    """``m2bridge verify`` with an engine that serves no script: enough for claims that ask no Macaulay2."""
    monkeypatch.setattr("m2bridge.cli.verify.open_engine", lambda *_, **__: replay)
    return lambda *arguments: main(["verify", *arguments])


# -- what claims contain ---------------------------------------------------------------------------------------------------------


def test_ids_are_unique_and_findable() -> None:
    assert len(set(IDS)) == len(IDS)
    assert [claim(identifier).id for identifier in IDS] == IDS


@pytest.mark.parametrize("identifier", IDS)
def test_sizes_are_json_and_unique_and_quick_ones_are_among_them(identifier: str) -> None:
    item = claim(identifier)
    assert item.sizes
    assert item.quick
    for sizes in (item.sizes, item.quick):
        written = [json.dumps(dict(size), sort_keys=True) for size in sizes]
        assert len(set(written)) == len(written)
        assert [json.loads(text) for text in written] == [dict(size) for size in sizes]
    assert all(size in item.sizes for size in item.quick)


@pytest.mark.parametrize("identifier", IDS)
def test_a_claim_names_its_statement_and_its_witnesses(identifier: str) -> None:
    item = claim(identifier)
    assert all((item.number, item.paper, item.statement, item.checked))
    assert item.witnesses
    assert set(item.witnesses) <= {"program", "template", "formula", "construction"}
    assert all(names and all(names) for names in item.witnesses.values())


@pytest.mark.parametrize("identifier", [item.id for item in all_claims() if item.kind is Kind.PROBE])
def test_a_probe_of_the_attention_paper_quotes_it(identifier: str) -> None:
    item = claim(identifier)
    if item in claims_of("lightning_attention"):
        assert item.quote


@pytest.mark.parametrize("identifier", [item.id for item in all_claims() if item.correction is not None])
def test_a_correction_is_whole_and_its_repair_is_checked(identifier: str) -> None:
    correction = claim(identifier).correction
    assert correction is not None
    texts = ("smallest", "witness", "macaulay2", "reason", "unaffected", "repaired")
    assert all(getattr(correction, name) for name in texts)
    if correction.claim is not None:
        assert claim(correction.claim).kind is Kind.REPAIRED


def test_every_repaired_statement_repairs_a_printed_one() -> None:
    repaired = {item.id for item in all_claims() if item.kind is Kind.REPAIRED}
    named = {item.correction.claim for item in all_claims() if item.correction is not None}
    assert repaired == named - {None}
    assert not any(claim(identifier).correction for identifier in repaired)


def test_every_paper_has_a_ledger(verify_command: Verify, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(papers()) == 3
    for paper in papers():
        assert verify_command("--list", "--paper", paper.replace("_", "-")) == 0
        listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
        assert listed == [item.id for item in claims_of(paper)]


def test_an_unknown_claim_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(InputError, match=r"'theorem-9'.*lemma-3\.1"):
        claim("theorem-9")


# -- running ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("max_d", "kept"), [(None, 3), (5, 3), (4, 2), (3, 2), (2, 1), (1, 0)], ids=lambda value: f"{value}"
)
def test_max_d_leaves_out_larger_widths(max_d: int | None, kept: int) -> None:
    item = example(lambda *_: Verdict.holds(Certainty.PROVED), {"d": 2}, {"d": [2, 3, 2]}, {"d": 5, "dp": 1})
    assert select_sizes(item, quick=False, max_d=max_d) == item.sizes[:kept]


def test_max_d_keeps_sizes_that_have_no_width() -> None:
    item = example(lambda *_: Verdict.holds(Certainty.PROVED), {"layers": 7})
    assert select_sizes(item, quick=True, max_d=1) == item.quick


def test_verify_prints_progress_and_the_weakest_certainty(context: CheckContext) -> None:
    def run(size: Size, _: CheckContext) -> Verdict:
        return Verdict.holds(Certainty.PROVED if size["d"] == 2 else Certainty.PROBABLE, d=size["d"])

    steps: list[str] = []
    done: list[tuple[str, Status]] = []
    ledger = verify(
        [example(run, {"d": 2}, {"d": 3})],
        context,
        progress=steps.append,
        finished=lambda item, entry: done.append((item.id, entry.status)),
    )
    assert steps == ["lemma-3.1 d=2", "lemma-3.1 d=3"]
    assert done == [("lemma-3.1", Status.HOLDS)] * 2
    assert ledger.certainty is Certainty.PROBABLE
    assert ledger.agreement is True
    assert [entry.computed for entry in ledger.entries] == [{"d": 2}, {"d": 3}]


@pytest.mark.parametrize(
    "error", [TimeLimitError("no time left"), OutOfReachError("too large", estimate=1)], ids=["time", "size"]
)
def test_a_limit_is_a_verdict_and_not_the_end(context: CheckContext, error: Exception) -> None:
    def run(size: Size, _: CheckContext) -> Verdict:
        if size["d"] == 2:
            raise error
        return Verdict.holds(Certainty.PROVED)

    ledger = verify([example(run, {"d": 2}, {"d": 3})], context)
    assert [entry.status for entry in ledger.entries] == [Status.OUT_OF_REACH, Status.HOLDS]
    assert ledger.entries[0].reason == str(error)


def test_witnesses_that_disagree_are_no_agreement(context: CheckContext) -> None:
    def run(*_: Any) -> Verdict:
        return Verdict(status=Status.DISAGREEMENT, certainty=Certainty.PROBABLE, reason="4 or 5")

    assert verify([example(run, {"d": 2})], context).agreement is False


def answer(number: int) -> Any:
    return SimpleNamespace(number=number, limit=None, agreement=None, evidence=())


def test_an_analysis_is_computed_once_in_a_run(context: CheckContext) -> None:
    calls: list[str] = []

    def analysis(model: Any, **_: Any) -> Any:
        calls.append(model.spec)
        return answer(len(calls))

    class Spec:
        spec = "a model"

    first = context.once(analysis, Spec(), at="here")  # type: ignore[arg-type]
    assert context.once(analysis, Spec(), at="here") == first  # type: ignore[arg-type]
    assert context.once(analysis, Spec(), at="there") != first  # type: ignore[arg-type]
    assert calls == ["a model", "a model"]


def test_only_rows_with_cached_answers_are_marked_as_cached(context: CheckContext) -> None:
    def analysis(model: Any, **_: Any) -> Any:
        return answer(1)

    class Spec:
        spec = "a model"

    def run(size: Size, given: CheckContext) -> Verdict:
        for place in range(size["d"]):
            given.once(analysis, Spec(), at=place)  # type: ignore[arg-type]
        return Verdict.holds(Certainty.PROVED)

    cached = [
        e.cached
        for e in verify([example(run, {"d": 0}, {"d": 1}, {"d": 2}, {"d": 2, "again": 1})], context).entries
    ]
    assert cached == [False, False, False, True]


@pytest.mark.parametrize(
    ("kind", "found", "status"),
    [
        (Kind.PRINTED, Status.HOLDS, Status.HOLDS),
        (Kind.PRINTED, Status.FAILS, Status.FAILS),
        (Kind.REPAIRED, Status.HOLDS, Status.REPAIRED_HOLDS),
        (Kind.REPAIRED, Status.FAILS, Status.FAILS),
        (Kind.PROBE, Status.HOLDS, Status.PROBE_TRUE),
        (Kind.PROBE, Status.FAILS, Status.PROBE_FALSE),
        *((kind, open_, open_) for kind in Kind for open_ in (Status.OUT_OF_REACH, Status.DISAGREEMENT)),
    ],
)
def test_the_status_depends_on_the_kind_of_the_claim(
    context: CheckContext, kind: Kind, found: Status, status: Status
) -> None:
    item = replace(example(lambda *_: Verdict(status=found, certainty=Certainty.PROVED), {"d": 2}), kind=kind)
    assert [entry.status for entry in verify([item], context).entries] == [status]


def test_witnesses_of_a_row_are_those_who_spoke() -> None:
    said = [
        Evidence("image_dim", value, name, "")
        for name, value in (("modular", 3), ("numpy", 3), ("macaulay2", None), ("symmetry", 3))
    ]
    other = Evidence("degree", 2, "macaulay2", "")
    assert by_ancestry([*said, other], "image_dim") == {
        "construction": ("symmetry",),
        "program": ("modular", "numpy"),
    }


# -- the baseline ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(context: CheckContext) -> Ledger:
    return verify([claim(identifier) for identifier in CHEAP], context, quick=True)


def test_a_ledger_comes_back_from_its_record(ledger: Ledger, tmp_path: Path) -> None:
    assert {entry.status for entry in ledger.entries} == {Status.HOLDS, Status.FAILS}
    assert records.load(records.save(ledger, tmp_path)) == ledger


def test_verdicts_are_found_again_by_claim_and_size(ledger: Ledger) -> None:
    recorded = index(records.to_document(ledger)["entries"])
    assert len(recorded) == len(ledger.entries)
    assert list(recorded.values()) == [entry.status for entry in ledger.entries]


def test_the_order_of_a_size_does_not_matter() -> None:
    one, other = (
        {"claim": "c", "size": size, "status": "holds"} for size in ({"a": 1, "d": 2}, {"d": 2, "a": 1})
    )
    assert index([one]) == index([other])


def test_a_published_ledger_is_a_baseline(
    ledger: Ledger, tmp_path: Path, context: CheckContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / ledgers.BASELINE).write_text(records.dumps(records.to_document(ledger)), encoding="utf-8")
    monkeypatch.setattr(ledgers.resources, "files", lambda _: tmp_path)
    assert baseline() == index(records.to_document(ledger)["entries"])
    again = verify([claim(identifier) for identifier in CHEAP], context, quick=True)
    assert [entry.recorded for entry in again.entries] == [entry.status for entry in ledger.entries]
    assert again.changed == ()


def test_without_a_baseline_nothing_is_recorded(
    tmp_path: Path, context: CheckContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers.resources, "files", lambda _: tmp_path)
    assert baseline() == {}
    found = verify([claim("parameter-count")], context, quick=True)
    assert [entry.recorded for entry in found.entries] == [None]
    assert found.changed == ()


def test_the_recorded_verdicts_are_about_these_claims_and_sizes() -> None:
    keys = {ledgers._key(item.id, size) for item in all_claims() for size in item.sizes}
    assert set(baseline()) <= keys


def test_a_statement_that_is_recorded_to_fail_is_corrected() -> None:
    failing = {key.split(" ", 1)[0] for key, status in baseline().items() if status is Status.FAILS}
    assert not [identifier for identifier in sorted(failing) if claim(identifier).correction is None]


# -- the command -----------------------------------------------------------------------------------------------------------------


def record(monkeypatch: pytest.MonkeyPatch, *entries: tuple[str, Size, Status]) -> None:
    """Put verdicts into the baseline."""
    written = [{"claim": name, "size": size, "status": status.value} for name, size, status in entries]
    monkeypatch.setattr(ledgers, "baseline", lambda: index(written))


COUNT: Size = {"d": 2, "layers": 2}


def test_a_failure_that_is_recorded_exits_0(
    verify_command: Verify, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(monkeypatch, ("parameter-count", COUNT, Status.FAILS))
    assert verify_command("parameter-count", "--quick") == 0
    printed = capsys.readouterr().out
    assert "fails, computed  parameter-count  d=2, layers=2" in printed
    assert "1 checks" in printed


def test_a_changed_verdict_is_exit_code_6(
    verify_command: Verify, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(monkeypatch, ("parameter-count", COUNT, Status.HOLDS))
    assert verify_command("parameter-count", "--quick") == 6
    printed = " ".join(capsys.readouterr().out.split())
    assert "(recorded: holds)" in printed
    assert "1 changed" in printed


def test_a_changed_verdict_is_saved_and_reported_before_the_exit(
    verify_command: Verify, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record(monkeypatch, ("parameter-count", COUNT, Status.OUT_OF_REACH))
    report = tmp_path / "report.md"
    arguments = ("parameter-count", "--quick", "--json", "--save", str(tmp_path), "--report", str(report))
    assert verify_command(*arguments) == 6
    saved = records.load(next(tmp_path.glob("*.json")))
    assert isinstance(saved, Ledger)
    assert [entry.recorded for entry in saved.changed] == [Status.OUT_OF_REACH]
    assert "Corollary 3.8" in report.read_text(encoding="utf-8")


def test_a_verdict_that_is_not_recorded_is_not_called_recorded(
    verify_command: Verify, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(monkeypatch)
    assert verify_command("parameter-count", "--quick") == 0
    printed = capsys.readouterr().out
    assert re.search(r"\b1 \w+ recorded", printed)
    assert "all verdicts" not in printed


def test_disagreement_is_exit_code_3(verify_command: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any) -> Verdict:
        return Verdict(status=Status.DISAGREEMENT, certainty=Certainty.PROBABLE, reason="4 or 5")

    monkeypatch.setattr("m2bridge.cli.verify._select", lambda *_: (example(run, {"d": 2}),))
    assert verify_command() == 3


def test_a_reason_with_brackets_is_printed_as_it_is(
    verify_command: Verify, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: Any) -> Verdict:
        return Verdict.fails(Certainty.PROVED, {"at": [1]}, "V = [e1, e2] and [/x]")

    monkeypatch.setattr("m2bridge.cli.verify._select", lambda *_: (example(run, {"d": [2, 2]}),))
    assert verify_command() == 0
    assert "V = [e1, e2] and [/x]" in capsys.readouterr().out


def test_json_is_one_document_and_equals_the_record(
    verify_command: Verify, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert verify_command("lemma-a.3", "--quick", "--json", "--save", str(tmp_path)) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(next(tmp_path.glob("*.json")).read_text(encoding="utf-8"))
    assert [entry["claim"] for entry in printed["entries"]] == ["lemma-a.3"] * 2 + ["lemma-a.3-completed"] * 2


def test_a_beginning_selects_all_parts_and_nothing_twice(
    verify_command: Verify, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify_command("--list", "theorem-3.4", "theorem-3.4-closed", "theorem-3.2") == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [i for i in IDS if i.startswith("theorem-3.4-")] + ["theorem-3.2"]


def test_max_d_reaches_the_command(verify_command: Verify, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify_command("lemma-3.1", "--max-d", "2", "--json") == 0
    sizes = [entry["size"] for entry in json.loads(capsys.readouterr().out)["entries"]]
    assert sizes == [size for size in claim("lemma-3.1").sizes if size["d"] <= 2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("theorem-9",), "theorem-9"),
        (("lemma-3",), "'lemma-3'"),
        (("lemma-3.1", "theorem-9"), "theorem-9"),
        (("figure-3", "--max-d", "1"), "--max-d 1"),
        (("lemma-3.1", "--max-d", "0"), "Invalid value for '--max-d'"),
        (("lemma-3.1", "--report", "report.pdf"), ".html"),
        (("lemma-3.1", "--report", "report"), ".html"),
        (("lemma-3.1", "--report", "missing/report.md"), "missing/report.md"),
        (("teorem-3.4",), "theorem-3.4"),
        (("blah",), "lemma-3.1, "),
        (
            ("--paper", "nobody"),
            "'nobody'",
        ),
        (("lemma-3.1", "--paper", "polynomial-networks"), "'lemma-3.1'"),
        (
            ("lemma-3.1", "--save", "/dev/null/missing"),
            "--save /dev/null/missing",
        ),
        (("lemma-3.1", "--timeout", "soon"), "--timeout"),
        (("lemma-3.1", "--seed", "-1"), "Invalid value for '--seed'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_exit_code_2_before_any_engine(
    arguments: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an engine was opened")

    monkeypatch.setattr("m2bridge.cli.verify.open_engine", refuse)
    monkeypatch.chdir(tmp_path)
    assert main(["verify", *arguments]) == 2
    printed = capsys.readouterr()
    assert says in printed.err
    assert printed.out == ""
    assert list(tmp_path.iterdir()) == []


# -- what is no verdict --------------------------------------------------------------------------------------------------------


def skew_fiber(**changes: Any) -> Fiber:
    """A fiber with a second orbit that a formula gives, as theorem 3.7's check receives it."""
    fields: dict[str, Any] = {
        "model": "deep-lightning(d=[2,2,2],t=3,parametrization=virtual)", "certainty": Certainty.PROBABLE, "agreement": True,
        "evidence": (Evidence("orbits", 2, "macaulay2", "components"),), "seed": 0, "seconds": 0.0,
        "at": {}, "fiber_dim": 2, "degree": 10, "components": (), "component_count": 2, "dim_at_point": 2,
        "known_symmetry_dim": 2, "orbits": 2, "generic_fiber_dim": 2, "image_dim": 10, "verdict": "finite-up-to-symmetry",
        "explanation": "", "probability": None, "method": "plain", "inputs": 9, "theorem": None,
        "counterexample": {"verified": True}, "notes": (),
    }  # fmt: skip
    return Fiber(**{**fields, **changes})


ONE = (Evidence("orbits", 1, "macaulay2", "components"),)


@pytest.mark.parametrize(
    ("changes", "status", "certainty"),
    [
        ({}, Status.FAILS, Certainty.COMPUTED),  # a verdict has no certificate
        ({"counterexample": {"verified": False}}, Status.DISAGREEMENT, Certainty.PROBABLE),
        ({"counterexample": {}}, Status.DISAGREEMENT, Certainty.PROBABLE),
        ({"counterexample": None}, Status.FAILS, Certainty.PROBABLE),
        ({"counterexample": None, "evidence": ONE}, Status.HOLDS, Certainty.PROBABLE),
        ({"counterexample": None, "evidence": ()}, Status.OUT_OF_REACH, Certainty.PROBABLE),
        (
            {"counterexample": None, "evidence": ONE, "components": None},
            Status.OUT_OF_REACH,
            Certainty.PROBABLE,
        ),
        ({"counterexample": None, "evidence": ONE, "limit": "time"}, Status.OUT_OF_REACH, Certainty.PROBABLE),
        ({"agreement": False}, Status.DISAGREEMENT, Certainty.PROBABLE),
    ],
)
def test_theorem_37_rests_on_what_was_verified(
    changes: dict[str, Any], status: Status, certainty: Certainty
) -> None:
    verdict = fibers.verdict_on(skew_fiber(**changes))
    assert (verdict.status, verdict.certainty) == (status, certainty)


def test_a_partial_answer_gives_no_verdict(context: CheckContext) -> None:
    def cut_off(*_: object, **__: object) -> Fiber:
        return skew_fiber(limit="stopped after 1 s")

    model = parse_spec("lightning(d=2,dp=1)")
    item = example(lambda _, given: Verdict.holds(given.once(cut_off, model).certainty), {"d": 2})
    [entry] = verify([item], context).entries
    assert (entry.status, entry.reason) == (Status.OUT_OF_REACH, "stopped after 1 s")


def test_a_point_whose_weights_are_undecided_is_no_disagreement(context: CheckContext) -> None:
    """A limit within `membership` leaves its answer open, and does not contradict ranks and e2."""

    class Undecided(CheckContext):
        def once(self, *_: Any, **__: Any) -> Any:
            return SimpleNamespace(complex_image=True, real_image=None)

    found = claim("theorem-3.4-boundary").run({"d": 2, "dp": 1}, Undecided(engine=context.engine))
    assert found.status is Status.OUT_OF_REACH


@pytest.mark.parametrize("error", [InputError("refused"), ZeroDivisionError("oops"), OutputError("no value")])
def test_an_error_inside_a_check_is_no_verdict(
    error: Exception, monkeypatch: pytest.MonkeyPatch, context: CheckContext
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("m2bridge.papers.lightning_attention.virtual.change_of_basis", broken)
    item = claim("lemma-3.1")
    with pytest.raises(type(error)):
        verify([item], context, quick=True)
