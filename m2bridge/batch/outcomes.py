"""Batch: how a job ended, as data, and when it is worth another attempt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from m2bridge.batch.limits import JobLimits, exceeds


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
FINAL = frozenset({JobOutcome.COMPLETE, JobOutcome.DISAGREEMENT})

NO_ENGINE = "no-engine"
"""Said by a worker, never recorded: its Macaulay2 is gone or another one, and nothing is known about the job."""
ATTEMPTS_AFTER_A_CRASH = 2
ATTEMPTS_AFTER_A_KILL = 4
"""Something outside (a person, the kernel) killed a process with SIGKILL: that says nothing about the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of one attempt at a job."""

    outcome: JobOutcome
    seconds: float
    limits: JobLimits
    message: str | None = None
    result: dict[str, Any] | None = None
    killed: bool = False
    peak_memory_bytes: int | None = None

    def document(self) -> dict[str, Any]:
        """For the list of attempts in the record."""
        return {
            "outcome": self.outcome.value,
            "seconds": round(self.seconds, 4),
            "message": self.message,
            "limits": self.limits.document(),
        }


def new_limits(
    record: dict[str, Any], wanted: JobLimits, *, retry: bool, escalate: float | None
) -> JobLimits | None:
    """The limits with which a recorded job is to be tried again, or None: the record stands.

    A job that met a limit is tried again with a larger one, or when asked (`retry`); `escalate` multiplies the limits that it
    met. A crash or a refused job is tried again only when asked. A complete answer and a disagreement stand.
    """
    outcome = JobOutcome(record["outcome"])
    if outcome in FINAL:
        return None
    met = JobLimits.of(record["limits"])
    if outcome not in LIMITED:
        return wanted.union(met) if retry else None
    if escalate is not None:
        return wanted.union(met.times(escalate))
    longer = exceeds(wanted.wall_seconds, met.wall_seconds)
    larger = exceeds(wanted.memory_bytes, met.memory_bytes)
    helps = {
        JobOutcome.TIMED_OUT: longer,
        JobOutcome.OUT_OF_MEMORY: larger,
        JobOutcome.PARTIAL: longer or larger,
    }
    return wanted.union(met) if retry or helps[outcome] else None


def exit_code(counts: dict[str, int]) -> int:
    """3 when witnesses disagreed somewhere, else 5 when a limit was met, else 1 after a crash, 2 after a refused job."""
    if counts.get(JobOutcome.DISAGREEMENT):
        return 3
    if any(counts.get(outcome) for outcome in LIMITED):
        return 5
    if counts.get(JobOutcome.CRASHED):
        return 1
    return 2 if counts.get(JobOutcome.BAD_JOB) else 0
