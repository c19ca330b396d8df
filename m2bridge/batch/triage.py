"""Batch: a plan compared with a store: which answers stand, and what is to be done, in which order."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

from m2bridge.batch.crew import Task
from m2bridge.batch.estimates import Estimates
from m2bridge.batch.outcomes import new_limits
from m2bridge.batch.plan import Job, Plan
from m2bridge.batch.store import Store
from m2bridge.errors import RecordError


@dataclass(slots=True, kw_only=True)
class Settings:
    """How to run: the Macaulay2 (a path, or None), its version, how many workers, and when to try again."""

    engine: str | None
    engine_version: str
    workers: int
    retry: bool = False
    escalate: float | None = None
    source: str = ""


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
