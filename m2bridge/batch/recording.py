"""Batch: the record of a finished job, made from its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from m2bridge._version import __version__
from m2bridge.batch.outcomes import Attempt, JobOutcome
from m2bridge.batch.store import STORE_VERSION
from m2bridge.batch.triage import Task

_VOLATILE = frozenset({"seconds", "peak_memory_bytes", "finished", "attempts", "sha256"})


def record_of(
    task: Task, attempts: Sequence[Attempt], engine_version: str, engine: dict[str, Any] | None
) -> dict[str, Any]:
    """The record: the question, the last attempt, and the story of all attempts before it.

    A partial answer is not thrown away when a later attempt, with other limits, brings none.
    """
    last = attempts[-1]
    outcome, message, result = last.outcome, last.message, last.result
    previous = task.previous or {}
    if result is None and outcome is not JobOutcome.BAD_JOB and previous.get("outcome") == JobOutcome.PARTIAL:
        outcome, message, result = JobOutcome.PARTIAL, previous["message"], previous["result"]
    story = previous.get("attempts", []) + [attempt.document() for attempt in attempts]
    return {
        "store_version": STORE_VERSION,
        "key": task.key,
        "question": task.job.question(engine_version),
        "job": task.job.document(),
        "outcome": outcome.value,
        "message": message,
        "result": result,
        "limits": task.limits.document(),
        "seconds": round(last.seconds, 4),
        "peak_memory_bytes": last.peak_memory_bytes,
        "attempts": story,
        "engine": engine,
        "package_version": __version__,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def stable(value: Any) -> Any:
    """A record without what differs from one undisturbed run to the next: times, memory, the number of attempts."""
    if isinstance(value, dict):
        return {key: stable(item) for key, item in value.items() if key not in _VOLATILE}
    if isinstance(value, list):
        return [stable(item) for item in value]
    return value
