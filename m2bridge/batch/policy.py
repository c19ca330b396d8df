"""Outcomes of jobs, their records, and the rules by which jobs are run again.

:func:`new_limits` decides whether a recorded job is run again, :func:`triage` determines the jobs of a plan that have to be run,
and :func:`record_of` makes the record of a finished job from its attempts.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from m2bridge._version import __version__
from m2bridge.errors import RecordError
from m2bridge.limits import Clock, Limits

if TYPE_CHECKING:
    from m2bridge.batch.job import Job
    from m2bridge.batch.plan import Plan
    from m2bridge.batch.store import Store

STORE_VERSION = 1  # version of the records of a store
GRACE = 5.0
"""Seconds after the time limit of a job at which a worker that does not respond is killed."""


class JobOutcome(StrEnum):
    """How a job ended."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    """A limit was reached; the result contains what was computed before."""
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    CRASHED = "crashed"
    DISAGREEMENT = "disagreement"
    """Independent witnesses contradict each other; the result contains both."""
    BAD_JOB = "bad-job"
    """The analysis rejects its input."""


LIMITED = frozenset({JobOutcome.PARTIAL, JobOutcome.TIMED_OUT, JobOutcome.OUT_OF_MEMORY})
NO_ENGINE = "no-engine"
"""Sent by a worker, never recorded: its Macaulay2 does not work or has another version; the job was not decided."""
_ATTEMPTS_AFTER_CRASH = 2  # a crash that repeats is a property of the job
_ATTEMPTS_AFTER_KILL = 4
"""The number of attempts. There are more after a SIGKILL, which comes from a user or the kernel and is no property of the job."""


def exit_code(counts: dict[str, int]) -> int:
    """Return 3 after a disagreement, else 5 if a limit was reached, else 1 after a crash, else 2 after a bad job, else 0."""
    if counts.get(JobOutcome.DISAGREEMENT):
        return 3
    if any(counts.get(outcome) for outcome in LIMITED):
        return 5
    if counts.get(JobOutcome.CRASHED):
        return 1
    return 2 if counts.get(JobOutcome.BAD_JOB) else 0


def limits_document(limits: Limits) -> dict[str, Any]:
    """Return the limits of a job for its record. The memory limit holds for Macaulay2 and for Python separately."""
    return {"wall_seconds": limits.wall_seconds, "memory_bytes": limits.memory_bytes}


def limits_of(document: dict[str, Any]) -> Limits:
    """Convert a document of :func:`limits_document` to limits; a missing entry means no limit."""
    return Limits(wall_seconds=document.get("wall_seconds"), memory_bytes=document.get("memory_bytes"))


def scaled(limits: Limits, factor: float) -> Limits:
    """Multiply both limits."""
    wall, memory = limits.wall_seconds, limits.memory_bytes
    return Limits(
        wall_seconds=None if wall is None else wall * factor,
        memory_bytes=None if memory is None else math.ceil(memory * factor),
    )


def larger(first: Limits, second: Limits) -> Limits:
    """Return the larger wall time and the larger memory."""
    wall = second if _exceeds(second.wall_seconds, first.wall_seconds) else first
    memory = second if _exceeds(second.memory_bytes, first.memory_bytes) else first
    return Limits(wall_seconds=wall.wall_seconds, memory_bytes=memory.memory_bytes)


def _exceeds(new: float | None, old: float | None) -> bool:
    """Return whether the limit `new` is larger than `old`; None means no limit and is the largest."""
    return old is not None and (new is None or new > old)


def new_limits(
    record: dict[str, Any], wanted: Limits, *, retry: bool, escalate: float | None
) -> Limits | None:
    """Return the limits with which a recorded job is run again, or None if the record is kept.

    A job that reached a limit is run again if `wanted` has a larger limit or `retry` is true; `escalate` multiplies the limits
    that it reached. A crashed or bad job is run again only if `retry` is true. Complete answers and disagreements are kept.
    """
    outcome = JobOutcome(record["outcome"])
    if outcome in (JobOutcome.COMPLETE, JobOutcome.DISAGREEMENT):
        return None
    previous = limits_of(record["limits"])
    if outcome in LIMITED and escalate is not None:
        return larger(wanted, scaled(previous, escalate))
    time_reached = outcome in (JobOutcome.TIMED_OUT, JobOutcome.PARTIAL)
    memory_reached = outcome in (JobOutcome.OUT_OF_MEMORY, JobOutcome.PARTIAL)
    more_time = time_reached and _exceeds(wanted.wall_seconds, previous.wall_seconds)
    more_memory = memory_reached and _exceeds(wanted.memory_bytes, previous.memory_bytes)
    return larger(wanted, previous) if retry or more_time or more_memory else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The result of one attempt at a job."""

    outcome: JobOutcome
    seconds: float
    limits: Limits
    message: str | None = None
    result: dict[str, Any] | None = None
    killed: bool = False
    peak_memory_bytes: int | None = None

    def must_repeat(self, number: int) -> bool:
        """Return whether the job is run again immediately, if this was the attempt of this number."""
        most_attempts = _ATTEMPTS_AFTER_KILL if self.killed else _ATTEMPTS_AFTER_CRASH
        return self.outcome is JobOutcome.CRASHED and number < most_attempts


@dataclass(slots=True, eq=False)
class Task:
    """A job that is waiting or running: its key, and the limits, number, start and current step of this attempt."""

    job: Job
    key: str
    limits: Limits
    attempt: int = 1
    clock: Clock = field(default_factory=Clock)
    step: str = "starting"
    previous: dict[str, Any] | None = None
    oom_kills: int = 0
    queued: bool = False
    """Submitted to a cluster, but not known to have started; its time limit does not apply yet."""

    @property
    def overdue(self) -> bool:
        remaining = self.clock.remaining
        return remaining is not None and not self.queued and remaining < -GRACE


@dataclass(slots=True, kw_only=True)
class Settings:
    """Settings of a run: the version of Macaulay2, the number of workers, and which recorded jobs are run again."""

    engine_version: str
    workers: int
    retry: bool = False
    escalate: float | None = None
    source: str = ""
    stop: threading.Event | None = None
    """An event that another thread sets to stop the run, as Ctrl-C does."""

    def limits_again(self, record: dict[str, Any], job: Job) -> Limits | None:
        """Return the limits with which a recorded job is run again, or None if the record is kept."""
        return new_limits(record, job.limits, retry=self.retry, escalate=self.escalate)


def triage(plan: Plan, store: Store | None, settings: Settings) -> tuple[Counter[str], list[Task]]:
    """Compare a plan with a store: count the records that are kept, by outcome, and list the tasks to run.

    Tasks are sorted by decreasing priority, then by decreasing size of the model.
    """
    kept: Counter[str] = Counter()
    tasks: list[Task] = []
    for job in plan.jobs:
        key = job.key(settings.engine_version)
        record: dict[str, Any] | None = None
        if store is not None:
            with contextlib.suppress(RecordError):
                record = store.read(key)
        limits = job.limits if record is None else settings.limits_again(record, job)
        if record is not None and limits is None:
            kept[record["outcome"]] += 1
        else:
            tasks.append(Task(job, key, limits or job.limits))
    tasks.sort(key=lambda task: (-task.job.priority, -task.job.size))
    return kept, tasks


def record_of(
    task: Task, attempts: Sequence[Attempt], engine_version: str, engine: dict[str, Any] | None
) -> dict[str, Any]:
    """Make the record of a job: the question, the last attempt, and a list of all attempts.

    A partial result of an earlier run is kept if the new attempts have no result.
    """
    last = attempts[-1]
    outcome, message, result = last.outcome, last.message, last.result
    previous = task.previous or {}
    if result is None and outcome is not JobOutcome.BAD_JOB and previous.get("outcome") == JobOutcome.PARTIAL:
        outcome, message, result = JobOutcome.PARTIAL, previous["message"], previous["result"]
    new_attempts = [
        {"outcome": attempt.outcome.value, "seconds": round(attempt.seconds, 4), "message": attempt.message,
         "limits": limits_document(attempt.limits)}
        for attempt in attempts
    ]  # fmt: skip
    return {
        "store_version": STORE_VERSION,
        "key": task.key,
        "question": task.job.question(engine_version),
        "job": task.job.document(),
        "outcome": outcome.value,
        "message": message,
        "result": result,
        "limits": limits_document(task.limits),
        "seconds": round(last.seconds, 4),
        "peak_memory_bytes": last.peak_memory_bytes,
        "attempts": previous.get("attempts", []) + new_attempts,
        "engine": engine,
        "package_version": __version__,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
