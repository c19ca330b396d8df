"""Repetition of jobs, exit codes, limits and tables."""

from __future__ import annotations

import pytest

from m2bridge.batch import registry, tables
from m2bridge.batch.job import Job
from m2bridge.batch.policy import (
    Attempt,
    JobOutcome,
    Task,
    exit_code,
    limits_document,
    new_limits,
    record_of,
)
from m2bridge.errors import InputError
from m2bridge.limits import Limits, parse_bytes, parse_seconds
from tests.comparing import stable

SMALL = Limits(wall_seconds=1.0, memory_bytes=100)
LONG = Limits(wall_seconds=2.0, memory_bytes=100)
LARGE = Limits(wall_seconds=1.0, memory_bytes=200)


def job(size: int = 3, spec: str = "lightning(d=2,dp=1,a=2,t=2)") -> Job:
    return Job(
        analysis="dimension",
        analysis_version=1,
        spec=spec,
        parameters={"seed": 0},
        script_sha256="0",
        size=size,
    )


@pytest.mark.parametrize(
    ("outcome", "wanted", "again"),
    [
        ("complete", LONG, False),
        ("disagreement", LONG, False),
        ("timed-out", SMALL, False),
        ("timed-out", LONG, True),
        ("timed-out", LARGE, False),
        ("timed-out", Limits(wall_seconds=None, memory_bytes=100), True),
        ("out-of-memory", LONG, False),
        ("out-of-memory", LARGE, True),
        ("partial", LONG, True),
        ("partial", LARGE, True),
        ("partial", Limits(wall_seconds=0.5, memory_bytes=50), False),
        ("crashed", Limits(wall_seconds=None, memory_bytes=None), False),
        ("bad-job", Limits(wall_seconds=None, memory_bytes=None), False),
    ],
)
def test_jobs_are_repeated_with_larger_limits_only(outcome: str, wanted: Limits, again: bool) -> None:
    record = {"outcome": outcome, "limits": limits_document(SMALL)}
    assert (new_limits(record, wanted, retry=False, escalate=None) is not None) is again
    final = outcome in ("complete", "disagreement")
    assert (new_limits(record, wanted, retry=True, escalate=None) is None) is final


def test_escalation_multiplies_the_recorded_limits() -> None:
    record = {"outcome": "timed-out", "limits": limits_document(LONG)}
    assert new_limits(record, SMALL, retry=False, escalate=2.0) == Limits(wall_seconds=4.0, memory_bytes=200)
    assert new_limits({**record, "outcome": "crashed"}, SMALL, retry=False, escalate=2.0) is None


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"complete": 9}, 0),
        ({"complete": 9, "timed-out": 1}, 5),
        ({"partial": 1, "crashed": 1}, 5),
        ({"partial": 1, "disagreement": 1, "crashed": 1}, 3),
        ({"crashed": 1, "bad-job": 1}, 1),
        ({"bad-job": 1}, 2),
    ],
)
def test_exit_code(counts: dict[str, int], code: int) -> None:
    assert exit_code(counts) == code


def test_limits_are_parsed() -> None:
    assert [parse_seconds(x) for x in (90, "90s", "1.5m", "2h", "none")] == [90, 90, 90, 7200, None]
    assert [parse_bytes(x) for x in ("512M", "4G", "1.5k", 7, "none")] == [2**29, 2**32, 1536, 7, None]
    for bad in ("", "soon", "-1", 0, True, "1e9", None, [], "9" * 30):
        with pytest.raises(InputError):
            parse_seconds(bad)
        with pytest.raises(InputError):
            parse_bytes(bad)


def test_a_partial_result_is_kept_after_a_failed_attempt() -> None:
    previous = {
        "outcome": "partial",
        "message": "m",
        "result": {"image_dim": 5},
        "attempts": [{"outcome": "partial"}],
    }
    task = Task(job=job(), key="0" * 64, limits=LONG, previous=previous)
    worse = Attempt(outcome=JobOutcome.TIMED_OUT, seconds=2.0, limits=LONG)
    record = record_of(task, [worse], "1.21", None)
    assert (record["outcome"], record["result"], len(record["attempts"])) == ("partial", {"image_dim": 5}, 2)
    assert record["limits"] == limits_document(LONG)
    better = Attempt(outcome=JobOutcome.COMPLETE, seconds=1.0, limits=LONG, result={"image_dim": 6})
    assert record_of(task, [worse, better], "1.21", None)["outcome"] == "complete"
    assert "seconds" not in stable(record)


def test_options_of_an_analysis() -> None:
    question = registry.job("closure")
    assert registry.parameters_of(question, {"prime": 31991})["prime"] == 31991
    for bad in (
        {"method": 1},
        {"cross_check": "yes"},
        {"unknown": 1},
        {"max_degree": [1]},
        {"max_degree": 0},
        {"seed": -1},
        {"prime": 8},
    ):
        with pytest.raises(InputError):
            registry.parameters_of(question, bad)
    with pytest.raises(InputError, match="closure"):
        registry.job("closur")


def test_tables() -> None:
    rows = [
        {"key": "0", "analysis": "dimension", "model": "lightning(d=2)", "prime": 7, "seed": 0, "outcome": "complete",
         "certainty": "proved", "seconds": 0.5, "image_dim": 5, "tags": ["x"], "note": "50% & more_"},
    ]  # fmt: skip
    columns = tables.choose_columns(rows, None, everything=False)
    assert columns == ["analysis", "model", "outcome", "image_dim", "certainty", "seconds"]
    other = {
        "key": "1",
        "analysis": "linear-span",
        "model": "lightning(d=2)",
        "outcome": "complete",
        "span_dim": 6,
    }
    assert "span_dim" in tables.choose_columns([*rows, other], None, everything=False)
    assert tables.as_csv(rows, ["model", "image_dim", "tags", "nothing"]) == (
        'model,image_dim,tags,nothing\nlightning(d=2),5,"[""x""]",\n'
    )
    with pytest.raises(InputError, match="nothing"):
        tables.choose_columns(rows, "nothing", everything=False)
