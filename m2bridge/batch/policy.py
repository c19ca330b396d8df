"""Batch: how jobs end, what is recorded of it, and which are to be done, in which order.

Outcomes and limits are data; :func:`new_limits` decides whether a recorded job is tried again, :func:`triage` compares a plan
with a store, and :func:`record_of` makes the record of a finished job from its attempts.
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

STORE_VERSION = 1
GRACE = 5.0
"""Seconds after its time limit at which a worker that does not answer is killed."""


class JobOutcome(StrEnum):
    """How a job ended."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    """A limit was reached; the result holds what was found before."""
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    CRASHED = "crashed"
    DISAGREEMENT = "disagreement"
    """Independent witnesses contradict each other: an answer, and an alarm."""
    BAD_JOB = "bad-job"
    """The analysis refuses the question."""


LIMITED = frozenset({JobOutcome.PARTIAL, JobOutcome.TIMED_OUT, JobOutcome.OUT_OF_MEMORY})
NO_ENGINE = "no-engine"
"""Said by a worker, never recorded: its Macaulay2 is gone or another one, and nothing is known about the job."""
_AFTER_A_CRASH, _AFTER_A_KILL = 2, 4
"""So many attempts are made. A SIGKILL from outside (a person, the kernel) says nothing about the job."""


def exit_code(counts: dict[str, int]) -> int:
    """3 when witnesses disagreed somewhere, else 5 when a limit was met, else 1 after a crash, 2 after a refused job."""
    if counts.get(JobOutcome.DISAGREEMENT):
        return 3
    if any(counts.get(outcome) for outcome in LIMITED):
        return 5
    if counts.get(JobOutcome.CRASHED):
        return 1
    return 2 if counts.get(JobOutcome.BAD_JOB) else 0


def limits_document(limits: Limits) -> dict[str, Any]:
    """Return the limits of one job for its record: wall clock and, for Macaulay2 and Python each, memory."""
    return {"wall_seconds": limits.wall_seconds, "memory_bytes": limits.memory_bytes}


def limits_of(document: dict[str, Any]) -> Limits:
    """Read what :func:`limits_document` wrote; a limit that is not named is none."""
    return Limits(wall_seconds=document.get("wall_seconds"), memory_bytes=document.get("memory_bytes"))


def scaled(limits: Limits, factor: float) -> Limits:
    """Multiply both limits."""
    wall, memory = limits.wall_seconds, limits.memory_bytes
    return Limits(
        wall_seconds=None if wall is None else wall * factor,
        memory_bytes=None if memory is None else math.ceil(memory * factor),
    )


def larger(first: Limits, second: Limits) -> Limits:
    """Return the larger of both, limit by limit."""
    wall = second if _exceeds(second.wall_seconds, first.wall_seconds) else first
    memory = second if _exceeds(second.memory_bytes, first.memory_bytes) else first
    return Limits(wall_seconds=wall.wall_seconds, memory_bytes=memory.memory_bytes)


def _exceeds(new: float | None, old: float | None) -> bool:
    """Whether one limit is larger than another, None being the largest."""
    return old is not None and (new is None or new > old)


def new_limits(
    record: dict[str, Any], wanted: Limits, *, retry: bool, escalate: float | None
) -> Limits | None:
    """The limits with which a recorded job is to be tried again, or None: the record stands.

    A job that met a limit is tried again with a larger one, or when asked (`retry`); `escalate` multiplies the limits that it
    met. A crash or a refused job is tried again only when asked. A complete answer and a disagreement stand.
    """
    outcome = JobOutcome(record["outcome"])
    if outcome in (JobOutcome.COMPLETE, JobOutcome.DISAGREEMENT):
        return None
    met = limits_of(record["limits"])
    if outcome in LIMITED and escalate is not None:
        return larger(wanted, scaled(met, escalate))
    helps = (
        outcome in (JobOutcome.TIMED_OUT, JobOutcome.PARTIAL) and _exceeds(wanted.wall_seconds, met.wall_seconds)
    ) or (
        outcome in (JobOutcome.OUT_OF_MEMORY, JobOutcome.PARTIAL) and _exceeds(wanted.memory_bytes, met.memory_bytes)
    )  # fmt: skip
    return larger(wanted, met) if retry or helps else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of one attempt at a job."""

    outcome: JobOutcome
    seconds: float
    limits: Limits
    message: str | None = None
    result: dict[str, Any] | None = None
    killed: bool = False
    peak_memory_bytes: int | None = None

    def calls_for_another(self, number: int) -> bool:
        """Whether the job is tried again at once, after so many attempts."""
        crashed = self.outcome is JobOutcome.CRASHED
        return crashed and number < (_AFTER_A_KILL if self.killed else _AFTER_A_CRASH)


@dataclass(slots=True, eq=False)
class Task:
    """A job that runs: its key, the limits and the number of this attempt, its clock and the current step."""

    job: Job
    key: str
    limits: Limits
    attempt: int = 1
    clock: Clock = field(default_factory=Clock)
    step: str = "starting"
    previous: dict[str, Any] | None = None
    oom_kills: int = 0
    queued: bool = False
    """Handed over, but not known to be begun: its time does not run yet."""

    @property
    def overdue(self) -> bool:
        remaining = self.clock.remaining
        return remaining is not None and not self.queued and remaining < -GRACE


@dataclass(slots=True, kw_only=True)
class Settings:
    """How to run: the version of Macaulay2, how many workers, and when to try again."""

    engine_version: str
    workers: int
    retry: bool = False
    escalate: float | None = None
    source: str = ""
    stop: threading.Event | None = None
    """Set by another thread, it stops the run as Ctrl-C does."""

    def limits_again(self, record: dict[str, Any], job: Job) -> Limits | None:
        """The limits with which a recorded job is to be tried again, or None."""
        return new_limits(record, job.limits, retry=self.retry, escalate=self.escalate)


def triage(plan: Plan, store: Store | None, settings: Settings) -> tuple[Counter[str], list[Task]]:
    """Compare a plan with a store: how many records stand, by their outcome, and what is to be done: by priority, then the
    largest models first.
    """
    standing: Counter[str] = Counter()
    tasks: list[Task] = []
    for job in plan.jobs:
        key = job.key(settings.engine_version)
        record: dict[str, Any] | None = None
        if store is not None:
            with contextlib.suppress(RecordError):
                record = store.read(key)
        limits = job.limits if record is None else settings.limits_again(record, job)
        if record is not None and limits is None:
            standing[record["outcome"]] += 1
        else:
            tasks.append(Task(job, key, limits or job.limits))
    tasks.sort(key=lambda task: (-task.job.priority, -task.job.size))
    return standing, tasks


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
    story = [
        {"outcome": one.outcome.value, "seconds": round(one.seconds, 4), "message": one.message,
         "limits": limits_document(one.limits)}
        for one in attempts
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
        "attempts": previous.get("attempts", []) + story,
        "engine": engine,
        "package_version": __version__,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
