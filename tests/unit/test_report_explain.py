"""Records explained for people, without Macaulay2: question, numbers and evidence, in Markdown and in LaTeX."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from m2bridge import records
from m2bridge.certainty import Certainty
from m2bridge.cli import main
from m2bridge.evidence import AGREEMENT_WORDS, Evidence
from m2bridge.papers import claim
from m2bridge.papers.base import CheckContext
from m2bridge.papers.ledger import Ledger, verify
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.report import ledger_markdown
from m2bridge.report.explain import explain
from m2bridge.results import Result
from m2bridge.views import View
from tests.replay import ReplayEngine

SPECS = {
    "lightning(d=2,dp=1)": 5,  # Corollary 3.3
    "softmax(d=[2,2],t=2)": 8,  # Theorem 3.9: all of (A, V)
    "mlp(widths=[2,2,1],r=2)": 3,  # every binary quadric
}


Damage = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module", params=SPECS)
def record(request: pytest.FixtureRequest) -> Dimension:
    return dimension(request.param, engine=False)


@pytest.fixture
def ledger(replay: ReplayEngine) -> Ledger:
    return verify([claim("lemma-a.3")], CheckContext(engine=replay), quick=True)


def test_markdown_has_the_question_the_number_and_every_ground(record: Dimension) -> None:
    text = explain(record)
    title = text.splitlines()[0]
    assert title == f"# dimension: {record.model}"
    headings = re.findall("^## (.*)$", text, re.MULTILINE)
    assert headings[:4] == ["Question", "Answer", "Evidence", "Certificate"]
    assert headings[4:] == []  # no script has run
    value = next(value for spec, value in SPECS.items() if record.model.startswith(spec.split("(")[0]))
    assert record.image_dim == value
    assert f"- {record.statement}" in text
    assert f"dimension {record.generic_fiber_dim}, " in text
    evidence = text.split("## Evidence")[1].split("##")[0]
    said = [item for item in record.evidence if item.value is not None]
    assert len(said) >= 3
    assert evidence.count("\n- ") == len(said)
    for item in said:
        assert f"{item.witness}, {item.method}" in evidence


@pytest.mark.parametrize("command", [["explain"], ["cite"], ["report", "-o", "page.html"]])
def test_a_record_steers_no_terminal(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record comes from anybody: its escape sequences are shown, not sent."""
    monkeypatch.chdir(tmp_path)
    document = records.to_document(dimension("lightning(d=2,dp=1)", engine=False))
    title, told = "\x1b]0;title\x07", document["evidence"][0]
    document["certificate"], document["package_version"] = None, f"0.2{title}"
    document["certainty"] = "computed"
    document["options"]["note"] = told["method"] = f"seen{title}"
    del document["digest"]
    Path("record.json").write_text(json.dumps(document))
    assert main([*command, "record.json"]) == 0
    seen = capsys.readouterr().out + "".join(page.read_text() for page in tmp_path.glob("*.html"))
    assert "\x1b" not in seen
    assert "x1b" in seen


def test_long_values_are_cut_and_missing_ones_left_out(record: Dimension) -> None:
    long = Evidence("many", list(range(1000)), "w", "m", certainty=Certainty.PROVED)
    none = Evidence("nothing", None, "w", "m", certainty=Certainty.PROVED)
    text = explain(replace(record, evidence=(long, none)))
    assert max(len(line) for line in text.splitlines() if "many is" in line) < 200
    assert "…" in text
    assert "nothing" not in text


def test_an_explanation_warns_of_witnesses_that_disagree(record: Dimension) -> None:
    agreeing, single = (f"- {AGREEMENT_WORDS[verdict].capitalize()}." for verdict in (True, None))
    assert agreeing in explain(record)
    warning = explain(replace(record, agreement=False))
    assert agreeing not in warning
    assert "disagree" in warning
    assert single in explain(replace(record, agreement=None))


def test_explain_prints_the_bounds_of_a_certificate(record: Dimension) -> None:
    assert record.certificate is not None
    text = explain(record).split("## Certificate")[1]
    assert f"At least {record.image_dim}:" in text
    assert f"At most {record.image_dim}: " in text
    assert "m2bridge check RECORD" in text
    assert "## Certificate" not in explain(replace(record, certificate=None))


def test_a_ledger_is_explained_by_its_report(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = records.save(ledger, tmp_path)
    assert main(["explain", str(path)]) == 0
    assert capsys.readouterr().out == ledger_markdown(ledger)


def test_the_command_prints_the_explanation_of_the_record(
    record: Dimension, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = records.save(record, tmp_path)
    assert main(["explain", str(path)]) == 0
    assert capsys.readouterr().out == explain(record)


def _without(name: str) -> Damage:
    return lambda document: {key: value for key, value in document.items() if key != name}


DAMAGES: dict[str, Damage] = {
    "no certainty": _without("certainty"),
    "no schema version": _without("schema_version"),
    "newer schema": lambda document: {**document, "schema_version": 99},
    "unknown analysis": lambda document: {**document, "analysis": "alchemy"},
    "wrong type": lambda document: {**document, "image_dim": "five"},
    "no model": _without("model"),
    "a list": lambda document: [document],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_exit_code_2(
    damage: str, record: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "record.json"
    document = json.loads(records.dumps(records.to_document(record)))
    path.write_text(json.dumps(DAMAGES[damage](document)), encoding="utf-8")
    assert main(["explain", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("m2bridge: ")
    assert printed.err.count("\n") == 1


def test_another_model_than_the_certificates_is_exit_code_7(record: Result, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(json.dumps({**records.to_document(record), "model": "no-such-model(d=2)"}))
    assert main(["explain", str(path)]) == 7


@pytest.mark.parametrize("content", [b"", b"{", b'{"schema_version": 1', b"\xff\xfe", b"null", b"[1]"])
def test_a_file_that_is_no_record_is_exit_code_2(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(content)
    assert main(["explain", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_values_that_no_answer_has_are_exit_code_2(
    record: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each field is of its type, but the result cannot be shown: one line, no traceback."""

    def view(_: Result) -> View:
        raise KeyError("nowhere")

    path = records.save(record, tmp_path)
    monkeypatch.setattr(type(record), "view", view)
    assert main(["explain", str(path)]) == 2
    assert "KeyError('nowhere')" in capsys.readouterr().err


def test_a_record_that_is_not_there_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(tmp_path / "nothing.json")]) == 2
    assert "nothing.json" in capsys.readouterr().err


def test_a_ledger_of_a_claim_that_no_longer_exists_is_exit_code_2(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = replace(ledger, entries=tuple(replace(entry, claim="lemma-9") for entry in ledger.entries))
    assert main(["explain", str(records.save(gone, tmp_path))]) == 2
    assert "lemma-9" in capsys.readouterr().err
