"""Batch: a plan compared with a store: which answers stand, and what is to be done, in which order."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from m2bridge.batch.estimates import Estimates
from m2bridge.batch.limits import JobLimits
from m2bridge.batch.outcomes import new_limits
from m2bridge.batch.plan import Job, Plan
from m2bridge.batch.store import Store
from m2bridge.errors import RecordError

GRACE = 5.0
"""Seconds after its time limit at which a worker that does not answer is killed."""


@dataclass(slots=True, eq=False)
class Task:
    """A job on its way: its key, the limits and the number of this attempt, since when, at which step."""

    job: Job
    key: str
    limits: JobLimits
    attempt: int = 1
    started: float = 0.0
    step: str = "starting"
    estimate: float | None = None
    previous: dict[str, Any] | None = None
    oom_kills: int = 0
    queued: bool = False
    """Handed over, but not known to be begun: its time does not run yet."""

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def overdue(self) -> bool:
        wall = self.limits.wall_seconds
        return wall is not None and not self.queued and self.elapsed > wall + GRACE


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


@dataclass(slots=True)
class Triage:
    """A plan compared with a store: what stands, and what is to be done, in the order in which to do it."""

    standing: list[tuple[Job, str]] = field(default_factory=list)
    """Each with the outcome in its record."""
    tasks: list[Task] = field(default_factory=list)


def triage(plan: Plan, store: Store | None, estimates: Estimates, settings: Settings) -> Triage:
    """What of a plan is to be done: by priority, then the longest first, then the largest models."""
    found = Triage()
    for job in plan.jobs:
        key = job.key(settings.engine_version)
        record: dict[str, Any] | None = None
        if store is not None:
            with contextlib.suppress(RecordError):
                record = store.read(key)
        limits = job.limits
        if record is not None:
            again = new_limits(record, limits, retry=settings.retry, escalate=settings.escalate)
            if again is None:
                found.standing.append((job, record["outcome"]))
                continue
            limits = again
        found.tasks.append(Task(job=job, key=key, limits=limits, estimate=estimates.of(job)))
    unknown = float("inf")
    found.tasks.sort(
        key=lambda t: (-t.job.priority, -(unknown if t.estimate is None else t.estimate), -t.job.size)
    )
    return found
