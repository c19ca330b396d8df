"""Older records: read, shown as such, and not believed where their words meant something else."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from m2bridge import records
from m2bridge.cli import main
from m2bridge.errors import RecordError
from m2bridge.questions.fiber import Fiber

EVIDENCE = {
    "quantity": "generic_fiber_dim", "witness": "modular", "method": "rank", "value": 36, "relation": "=",
    "certainty": "probable", "prime": 8388593, "error_probability": 1e-5, "seconds": 0.01, "detail": {},
}  # fmt: skip
FIBER: dict[str, Any] = {
    "schema_version": 1, "analysis": "fiber", "analysis_version": 1, "package_version": "0.1.0",
    "model": "linear(widths=[6,6,1])", "options": {"prime": 32003, "at": "random", "weights": None},
    "certainty": "proved", "agreement": True, "evidence": [EVIDENCE], "engine": {"version": "1.21", "origin": "apt"},
    "scripts": [], "seed": 0, "seconds": 0.1, "peak_memory_bytes": None, "limit": None,
    "at": {"kind": "random", "detail": None, "prime": 32003, "weights": {"W1": [["1"]], "W2": [["1"]]}},
    "fiber_dim": 36, "degree": None,
    "components": [
        {
            "dim": 36, "degree": None, "reduced": True, "multiplicity": 1, "orbit": True, "tangent_dim": 36, "point": None,
            "equations": None,
        }
    ],
    "symmetry_dim": 36, "orbits": 1, "generic_fiber_dim": 36, "image_dim": 6, "verdict": "finite-up-to-symmetry",
    "explanation": "generic fibers have dimension 36", "probability": 1.0, "method": "jacobian", "inputs": None,
    "real_points": [], "theorem": None, "counterexample": None, "notes": [],
}  # fmt: skip
"""As version 0.1.0 wrote it."""


def test_a_fiber_of_version_1_is_read_without_its_claims() -> None:
    result = records.from_document(deepcopy(FIBER))
    assert isinstance(result, Fiber)
    assert result.migrated_from == 1
    assert (result.known_symmetry_dim, result.generic_fiber_dim) == (36, 36)
    assert (result.orbits, result.fiber_dim, result.probability, result.agreement) == (None, None, None, None)
    assert result.verdict == "undecided"
    assert "version 1 said finite-up-to-symmetry" in result.explanation
    assert [(c.absolute, c.conjugates) for c in result.components or ()] == [(False, None)]
    assert result.evidence[0].scope is None


def test_a_migrated_result_is_written_in_the_present_version_and_stays_migrated() -> None:
    result = records.from_document(deepcopy(FIBER))
    document = json.loads(records.dumps(records.to_document(result)))
    assert document["schema_version"] == records.SCHEMA_VERSION == 2
    assert records.from_document(document) == result


def test_values_that_no_answer_has_are_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each field is of its type, but no fiber is at such a place."""
    (tmp_path / "x.json").write_text(json.dumps({**FIBER, "at": {**FIBER["at"], "kind": "nowhere"}}))
    assert main(["explain", str(tmp_path / "x.json")]) == RecordError.exit_code == 2
    assert "never writes: KeyError('nowhere')" in capsys.readouterr().err


def test_it_is_shown_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "record.json"
    path.write_text(json.dumps(FIBER))
    assert main(["explain", str(path)]) == 0
    assert "schema version 1" in capsys.readouterr().out


def test_a_contradiction_stays_one() -> None:
    assert records.from_document({**deepcopy(FIBER), "agreement": False}).agreement is False


@pytest.mark.parametrize("key", ["model", "certainty", "seed", "evidence", "verdict", "symmetry_dim"])
def test_a_damaged_record_of_version_1_is_refused(key: str) -> None:
    document = deepcopy(FIBER)
    del document[key]
    with pytest.raises(RecordError):
        records.from_document(document)


@pytest.mark.parametrize("version", [0, 2, None, "1"])
def test_other_analysis_versions_of_schema_1_are_refused(version: object) -> None:
    with pytest.raises(RecordError, match="of fiber"):
        records.from_document({**deepcopy(FIBER), "analysis_version": version})


def test_records_of_other_questions_lose_only_the_old_agreement() -> None:
    document = {
        "schema_version": 1, "analysis": "template", "analysis_version": 1, "package_version": "0.1.0",
        "model": "none", "options": {}, "certainty": "probable", "agreement": True, "evidence": [], "engine": None,
        "scripts": [], "seed": 0, "seconds": 0.1, "peak_memory_bytes": None, "limit": None,
        "template": "t", "complete": True, "values": {"n": 1},
    }  # fmt: skip
    result = records.from_document(document)
    assert (result.agreement, result.migrated_from) == (None, 1)


_COMMON: dict[str, Any] = {
    "schema_version": 2, "analysis_version": 1, "package_version": "0.2.0", "certainty": "proved", "agreement": None,
    "evidence": [], "engine": None, "scripts": [], "seed": 0, "seconds": 0.1, "peak_memory_bytes": None, "limit": None,
    "migrated_from": None,
}  # fmt: skip
_LINEAR = {"model": "linear(widths=[2,1,2])"}
FIRST_VERSIONS: dict[str, dict[str, Any]] = {
    "closure": {
        **_LINEAR, "options": {"method": "auto", "max_degree": None, "field": "F_32003", "cross_check": False}, "ambient_dim": 4,
        "coordinate_count": 4, "span_dim": 4, "linear_forms": 0, "image_dim": 3, "codim": 1, "degree": 2, "generators": {"2": 1},
        "hilbert_function": [1, 4, 9, 16], "completeness": "complete", "degree_bound": 3, "method": "interpolation",
        "field": "F_32003", "homogenized": False, "shown": [], "not_shown": [],
        "equations": [{"degree": 2, "coefficients": [1, -1], "monomials": [[0, 3], [1, 2]]}],
        "variables": ["y[1]: x[1]", "y[1]: x[2]", "y[2]: x[1]", "y[2]: x[2]"], "components": None,
    },
    "dimension": {
        **_LINEAR, "options": {"prime": 8388593}, "parameters": 4, "image_dim": 3, "generic_fiber_dim": 1, "lower_bound": 3,
        "upper_bound": 3, "symmetry_dim": 1, "span_dim": 4, "expected_dim": 3, "defect": 0, "formula": None, "numeric_rank": None,
        "numeric": None, "statement": "The dimension is 3.", "certificate": None,
    },
    "membership": {
        **_LINEAR, "options": {"point": ["1", "2", "2", "4"]}, "point": ["1", "2", "2", "4"], "closure": True,
        "complex_image": True, "real_image": True, "parametrization": "linear(widths=[2,1,2])",
        "weights": {"W1": ["1", "2"], "W2": ["1", "2"]}, "algebraic": None, "fiber_dim": 1, "fiber_degree": 2,
        "failing_equation": None, "reasons": [],
    },
    "singular-locus": {
        "model": "lightning(d=2,dp=1,a=2,t=2,parametrization=attention)", "options": {"prime": 32003}, "image_dim": 5,
        "ambient_dim": 40, "span_dim": 6, "codim": 1, "degree": 4, "generators": {"4": 1}, "equations": [], "singular_dim": 4,
        "singular_degree": 3, "singular_equations": ["z2*z4-z1*z5", "z2*z3-z0*z5", "z1*z3-z0*z4"],
        "components": [{"dim": 4, "degree": 3, "equations": None, "orbit": None}], "embedded": None, "strata": [],
        "theorem": None,
    },
    "singular-point": {
        **_LINEAR, "options": {"max_degree": None, "at": "random"}, "at": {"kind": "random"}, "image_dim": 3, "local_dim": 3,
        "jacobian_rank": 3, "critical": False, "tangent_lower": 3, "tangent_upper": 3, "verdict": "smooth",
        "completeness": "complete",
    },
    "symmetries": {
        **_LINEAR, "options": {"prime": 8388593, "degree": 2}, "parameters": 4, "generic_fiber_dim": 1, "symmetry_dim": 1,
        "upper_bound": 3, "explains_fiber": True, "fields": [], "finite": [], "known": [], "declared": [], "algebra": None,
        "unverified": 0, "complete": True, "statement": "",
    },
}  # fmt: skip
"""Questions whose second version records more, as the first one wrote them."""


def first_version(analysis: str) -> dict[str, Any]:
    return deepcopy({**_COMMON, "analysis": analysis, **FIRST_VERSIONS[analysis]})


@pytest.mark.parametrize("analysis", FIRST_VERSIONS)
def test_a_record_of_the_first_version_is_read_with_nothing_for_what_came_later(analysis: str) -> None:
    older = first_version(analysis)
    document = json.loads(records.dumps(records.to_document(records.from_document(older))))
    assert document["analysis_version"] == {"closure": 3, "singular-locus": 3}.get(analysis, 2)
    assert {key: document[key] for key in older if key not in ("analysis_version", "components")} == {
        key: value for key, value in older.items() if key not in ("analysis_version", "components")
    }
    new = set(document) - set(older)
    assert new
    assert all(document[key] in (None, []) for key in new)
    for component in document.get("components") or ():
        assert component == {
            **older["components"][0], "tangent_dim": None, "multiplicity": None, "milnor_number": None, "delta_invariant": None
        }  # fmt: skip


@pytest.mark.parametrize("analysis", sorted(set(FIRST_VERSIONS) - {"symmetries"}))
def test_so_is_one_of_the_first_schema(analysis: str) -> None:
    older = {**first_version(analysis), "schema_version": 1, "package_version": "0.1.0"}
    del older["migrated_from"]
    assert records.from_document(older).migrated_from == 1


@pytest.mark.parametrize("analysis", FIRST_VERSIONS)
def test_a_record_of_the_second_version_must_have_all(analysis: str) -> None:
    with pytest.raises(RecordError, match="lacks"):
        records.from_document({**first_version(analysis), "analysis_version": 2})


def test_a_closure_of_the_second_version_has_no_certificate() -> None:
    older = {**first_version("closure"), "analysis_version": 2, "names": ["the determinant"]}
    document = records.to_document(records.from_document(older))
    assert (document["names"], document["certificate"]) == (["the determinant"], [])


@pytest.mark.parametrize("version", [True, 1.0, "1", [1]])
def test_what_only_looks_like_the_first_version_is_refused(version: object) -> None:
    with pytest.raises(RecordError, match="of closure"):
        records.from_document({**first_version("closure"), "analysis_version": version})
