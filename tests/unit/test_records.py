"""Records load back equal; what is damaged, unknown or half-written is refused and leaves nothing behind."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from m2bridge import checker, records
from m2bridge.certainty import Certainty
from m2bridge.errors import InputError, RecordError
from m2bridge.evidence import Evidence
from m2bridge.questions.singular_locus import Component, SingularLocus, Stratum
from m2bridge.results import RESULT_TYPES, EngineUse, ScriptUse, TheoremCheck

RESULT = SingularLocus(
    model="lightning(d=2,dp=1,a=2,t=2)",
    options={"prime": 32003},
    certainty=Certainty.PROVED,
    agreement=True,
    evidence=(
        Evidence("image_dim", 5, "numpy", "SVD", detail={"gap": 1e9, "lost": None}),
        Evidence("image point", [1, 2], "macaulay2", "m", prime=32003, seconds=0.25),
        Evidence("generators", {"4": 1}, "macaulay2", "m", error_probability=1e-6),
        Evidence("x", None, "y", "é “quoted” \\ \n", relation=">="),
    ),
    engine=EngineUse(version="1.21", origin="path"),
    scripts=(ScriptUse(name="singular_strata", sha256="0" * 64),),
    seed=7,
    seconds=1.0,
    peak_memory_bytes=2**33,
    image_dim=5,
    ambient_dim=40,
    span_dim=6,
    codim=1,
    degree=4,
    generators={"4": 1},
    equations=("z0^2*z5^2-z0*z1*z4*z5",),
    singular_dim=4,
    singular_degree=3,
    singular_equations=("z2*z4-z1*z5",),
    components=(Component(dim=4, degree=3, equations=("z2*z4-z1*z5",)),),
    embedded=(),
    strata=(
        Stratum(
            name="(1,1,0)",
            ranks={"A": 1, "V": 1, "meet": 0},
            image_dim=4,
            critical=False,
            tangent_lower=6,
            tangent_upper=None,
            verdict="singular",
            certainty=Certainty.PROVED,
            representative={"A": ("1", "0", "0", "0"), "V": ("0", "1")},
            closure_contains=(0, 1),
            components=None,
        ),
    ),
    exhaustive=True,
    theorem=TheoremCheck(
        name="Theorem 3.4", statement="s", applies=True, agrees=False, witness={"A": [[1, 0], [0, 0]], "rank_a": 1}
    ),
)  # fmt: skip


def document(**changes: Any) -> dict[str, Any]:
    """The record of RESULT through JSON text, with some keys replaced."""
    return {**json.loads(records.dumps(records.to_document(RESULT))), **changes}


def test_record_loads_back_equal(tmp_path: Path) -> None:
    path = records.save(RESULT, tmp_path)
    assert records.load(path) == RESULT
    assert records.from_document(document()) == RESULT
    assert path.stat().st_mode & 0o777 == 0o644


def test_absent_values_load_back_equal() -> None:
    bare = replace(
        RESULT, engine=None, scripts=(), agreement=None, peak_memory_bytes=None, codim=None, generators=None,
        components=None, embedded=None, singular_equations=None, singular_dim=None, equations=(), strata=(), limit="time",
    )  # fmt: skip
    assert records.from_document(json.loads(records.dumps(records.to_document(bare)))) == bare


def test_envelope_comes_first_and_names_versions() -> None:
    head = list(document().items())[:4]
    assert [key for key, _ in head] == ["schema_version", "analysis", "analysis_version", "package_version"]
    assert dict(head)["analysis"] == "singular-locus"
    assert dict(head)["schema_version"] == records.SCHEMA_VERSION


def test_stable_names_of_the_singular_locus() -> None:
    """Names that other programs rely on; adding is allowed, renaming is a new analysis version."""
    found = document()
    assert {
        "model", "image_dim", "ambient_dim", "span_dim", "codim", "degree", "generators", "singular_dim", "singular_degree",
        "strata", "theorem", "agreement", "certainty", "evidence", "engine", "seed", "seconds",
    } <= set(found)  # fmt: skip
    assert {
        "name", "ranks", "image_dim", "tangent_lower", "tangent_upper", "verdict"
    } <= set(found["strata"][0])  # fmt: skip
    assert {"name", "applies", "agrees", "witness"} <= set(found["theorem"])
    assert found["certainty"] == "proved"


def test_result_types_are_registered_under_their_command() -> None:
    assert RESULT_TYPES["singular-locus"] is SingularLocus
    assert all(name == kind.ANALYSIS and kind.VERSION >= 1 for name, kind in RESULT_TYPES.items())


@pytest.mark.parametrize("version", [0, 1, 2, 4, 99, "1", "3", None, [1], 1.5, 3.0, True])
def test_unknown_schema_version_is_refused(version: object) -> None:
    with pytest.raises(RecordError, match=r"schema version .*version 3") as caught:
        records.from_document(document(schema_version=version))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("analysis", ["", "singular_locus", "no-such", None, 3, ["singular-locus"], {}])
def test_unknown_analysis_is_refused(analysis: object) -> None:
    with pytest.raises(RecordError, match="analysis"):
        records.from_document(document(analysis=analysis))


@pytest.mark.parametrize("version", [0, 1, 3, 5, None, "1", 4.0, [4]])
def test_unknown_analysis_version_is_refused(version: object) -> None:
    with pytest.raises(RecordError, match="singular-locus"):
        records.from_document(document(analysis_version=version))


@pytest.mark.parametrize("field", sorted(set(records.to_document(RESULT)) - {"package_version", "digest"}))
def test_missing_field_is_refused(field: str) -> None:
    incomplete = document()
    del incomplete[field]
    with pytest.raises(RecordError):
        records.from_document(incomplete)


def test_unknown_field_is_refused() -> None:
    with pytest.raises(RecordError, match="surprise"):
        records.from_document(document(surprise=1))
    damaged = document()
    damaged["strata"][0]["surprise"] = 1
    with pytest.raises(RecordError, match=r"strata\[0\]: .*surprise"):
        records.from_document(damaged)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("image_dim", "5"), ("image_dim", 5.0), ("image_dim", True), ("image_dim", None), ("codim", "1"), ("codim", [1]),
        ("seconds", "1"), ("seconds", True), ("certainty", "sure"), ("certainty", 1), ("certainty", None), ("agreement", 1),
        ("agreement", "true"), ("evidence", {}), ("evidence", None), ("evidence", [1]), ("generators", [1]),
        ("generators", {"4": "1"}), ("equations", "z0"), ("equations", [1]), ("components", [{"dim": 1}]), ("theorem", []),
        ("theorem", 1), ("engine", "1.21"), ("scripts", [None]), ("model", 1), ("options", 1), ("strata", [[]]),
    ],
)  # fmt: skip
def test_wrong_type_is_refused(field: str, value: object) -> None:
    with pytest.raises(RecordError, match=f"singular-locus.{field}"):
        records.from_document(document(**{field: value}))


@pytest.mark.parametrize(
    ("field", "value"), [("verdict", "maybe"), ("verdict", None), ("representative", {"A": [1]})]
)
def test_wrong_value_inside_a_stratum_is_refused(field: str, value: object) -> None:
    damaged = document()
    damaged["strata"][0][field] = value
    with pytest.raises(RecordError, match=rf"strata\[0\].{field}"):
        records.from_document(damaged)


@pytest.mark.parametrize("thing", [None, 1, [], "text", {}, {"analysis": "singular-locus"}])
def test_files_that_are_not_records_are_refused(thing: object) -> None:
    with pytest.raises(RecordError, match="schema_version"):
        records.from_document(thing)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null", b"1", b'{"schema_version": 1}', b"\x00", b"not json"],
    ids=lambda content: ascii(content[:12]),
)
def test_damaged_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(content)
    with pytest.raises(RecordError):
        records.load(path)


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = records.save(RESULT, tmp_path).read_text().rstrip()
    path = tmp_path / "cut.json"
    for length in range(0, len(whole), 37):
        path.write_text(whole[:length])
        with pytest.raises(RecordError):
            records.load(path)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_are_refused(tmp_path: Path, constant: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(records.dumps(document()).replace('"seconds": 1.0', f'"seconds": {constant}'))
    with pytest.raises(RecordError, match=constant):
        records.load(path)
    with pytest.raises(ValueError, match="JSON compliant"):
        records.dumps({"seconds": float(constant)})


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_unreadable_files_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordError, match="read"):
        records.load(tmp_path / name)


def test_saving_the_same_question_again_replaces_its_record(tmp_path: Path) -> None:
    first = records.save(RESULT, tmp_path)
    again = records.save(replace(RESULT, seconds=9.0), tmp_path)
    assert first == again
    assert records.load(again).seconds == 9.0
    others = [replace(RESULT, seed=8), replace(RESULT, options={"prime": 101}), replace(RESULT, model="m")]
    assert len({records.save(other, tmp_path) for other in [RESULT, *others]}) == 4


@pytest.mark.parametrize("model", ["../../etc/passwd", "a/b", "lightning(d=2)" * 40, "\0", "…"])
def test_a_record_stays_in_its_directory(tmp_path: Path, model: str) -> None:
    path = records.save(replace(RESULT, model=model), tmp_path)
    assert path.parent == tmp_path
    assert len(path.name) < 120


def test_saving_makes_the_directory_or_is_an_input_error(tmp_path: Path) -> None:
    assert records.load(records.save(RESULT, tmp_path / "not" / "there")) == RESULT
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="created"):
            records.save(RESULT, place)


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_failed_save_leaves_the_old_record_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, failure: BaseException
) -> None:
    path = records.save(RESULT, tmp_path)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(failure)):
        records.save(replace(RESULT, seconds=2.0), tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_the_missing_proof_of_a_singular_locus_depends_on_what_is_undecided() -> None:
    decided = replace(RESULT, strata=(), undecided=(), theorem=None)
    assert "QQ" in decided.view().to_prove
    assert "undecided" in replace(decided, undecided=("rk A = 1",)).view().to_prove


def test_the_checker_says_that_a_record_without_certificate_contradicts_itself() -> None:
    document = {**records.to_document(RESULT), "certificate": None, "certainty": "computed"}
    del document["digest"]
    for agreement, words in (
        (True, "nothing is known to be wrong"),
        (False, "witnesses contradict each other"),
    ):
        code, said = checker.verify(records.dumps({**document, "agreement": agreement}))
        assert code == 8
        assert words in said[0]
