"""Files of records: one per answer, those of a batch are read like others, names of networks are kept."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path

import pytest

import m2bridge
from m2bridge import checker, records
from m2bridge.cli import main
from m2bridge.cli.common import DEFAULT_MEMORY, DEFAULT_TIMEOUT, parse_limits
from m2bridge.limits import Limits

SPEC = "mlp(widths=[2,2,2],r=2)"


def test_another_option_never_overwrites_a_record(tmp_path: Path) -> None:
    weights = {"W1": [[1, 0], [0, 1]], "W2": [[1, 2], [3, 4]]}
    paths = {
        records.save(answer, tmp_path)
        for answer in (
            m2bridge.dimension(SPEC, engine=False),
            m2bridge.dimension(SPEC, engine=False, seed=1),
            m2bridge.dimension(SPEC, engine=False, certify=False),
            m2bridge.dimension(SPEC, engine=False, at=weights),
        )
    }
    assert len(paths) == 4


def test_the_same_answer_replaces_its_record(tmp_path: Path) -> None:
    answer = m2bridge.dimension(SPEC, engine=False)
    slower = replace(answer, seconds=answer.seconds + 100, peak_memory_bytes=1)
    assert records.save(answer, tmp_path) == records.save(slower, tmp_path)


def test_a_record_of_a_batch_is_explained_cited_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = records.to_document(m2bridge.dimension(SPEC, engine=False))
    path = tmp_path / "stored.json"
    path.write_text(json.dumps({"sha256": "0", "job": {}, "outcome": "complete", "result": answer}))
    for command in ("explain", "cite", "check"):
        assert main([command, str(path)]) == 0, capsys.readouterr().err
    path.write_text(json.dumps({"sha256": "0", "job": {}, "outcome": "timed-out", "result": None}))
    assert main(["explain", str(path)]) == 2

    assert checker.verify(path.read_text())[0] == 8


@pytest.mark.parametrize("version", [4, 0, "3", True, None])
def test_a_record_of_a_version_that_does_not_exist_is_not_verified(
    version: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its fields may mean anything, whatever its certificate shows."""
    document = records.to_document(m2bridge.dimension(SPEC, engine=False)) | {"schema_version": version}
    document["digest"] = records.digest_of(document)
    path = tmp_path / "later.json"
    for content in (document, {"job": {}, "result": document}):
        path.write_text(json.dumps(content))
        assert main(["check", str(path)]) == 8
        assert f"schema version {json.dumps(version)}" in capsys.readouterr().out


def test_defaults_of_limits_are_the_same_in_python_and_on_the_command_line() -> None:
    assert parse_limits(DEFAULT_TIMEOUT, DEFAULT_MEMORY) == Limits()
    assert inspect.signature(m2bridge.dimension).parameters["limits"].default is None
