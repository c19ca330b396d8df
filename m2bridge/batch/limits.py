"""Batch: what one job may use, as written in job files (``timeout = "5m"``, ``memory = "2G"``) and as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from m2bridge.engine.base import parse_bytes, parse_seconds
from m2bridge.engine.machine import memory_share

__all__ = ["JobLimits", "exceeds", "parse_bytes", "parse_seconds", "share_of_memory"]


@dataclass(frozen=True, slots=True)
class JobLimits:
    """Limits of one job as a whole: wall clock and, for Macaulay2 and Python each, memory. None is no limit."""

    wall_seconds: float | None = 600.0
    memory_bytes: int | None = 4 * 2**30

    def times(self, factor: float) -> JobLimits:
        """Both limits multiplied."""
        return JobLimits(
            None if self.wall_seconds is None else self.wall_seconds * factor,
            None if self.memory_bytes is None else math.ceil(self.memory_bytes * factor),
        )

    def union(self, other: JobLimits) -> JobLimits:
        """The larger of both, limit by limit."""
        wall = _larger(self.wall_seconds, other.wall_seconds)
        memory = _larger(self.memory_bytes, other.memory_bytes)
        return JobLimits(wall, None if memory is None else int(memory))

    def document(self) -> dict[str, Any]:
        return {"wall_seconds": self.wall_seconds, "memory_bytes": self.memory_bytes}

    @staticmethod
    def of(document: dict[str, Any]) -> JobLimits:
        return JobLimits(document.get("wall_seconds"), document.get("memory_bytes"))


def exceeds(new: float | None, old: float | None) -> bool:
    """Whether one limit is larger than another, None being the largest."""
    return old is not None and (new is None or new > old)


def _larger(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else max(first, second)


def share_of_memory(workers: int) -> int:
    """What each of `workers` jobs may use so that all of them fit into the machine, or the control group: at most 4 GB.

    Macaulay2 and Python may each use as much, rarely both at once.
    """
    return min(4 * 2**30, memory_share(workers))
