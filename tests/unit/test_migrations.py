"""Records of schema version 1: read, shown as such, and not believed where their words meant something else."""

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
