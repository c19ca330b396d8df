"""Batch: what one job may use, as written in job files (``timeout = "5m"``, ``memory = "2G"``) and as numbers."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from typing import Any

from m2bridge.errors import InputError

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smhd]?)")
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)i?b?")


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


def parse_seconds(value: Any, word: str = "timeout") -> float | None:
    """A duration: a positive number of seconds, or 90s, 10m, 2h, 1d, or none."""
    if value == "none":
        return None
    text = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    match = _DURATION.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if match is None or float(match[1]) <= 0:
        raise InputError(f"{word} {value!r} is not a duration; write 90, 90s, 10m, 2h or none", argument=word)
    return float(match[1]) * _SECONDS[match[2]]


def parse_bytes(value: Any, word: str = "memory") -> int | None:
    """A size: a positive number of bytes, or 512M, 4G, or none."""
    if value == "none":
        return None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    match = _SIZE.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if match is None or float(match[1]) <= 0:
        raise InputError(f"{word} {value!r} is not a size; write 512M, 4G or none", argument=word)
    return int(float(match[1]) * _BYTES[match[2]])


def share_of_memory(workers: int) -> int:
    """What each of `workers` jobs may use so that all of them fit into the machine: at most 4 GB."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(4 * 2**30, int(0.8 * physical) // max(workers, 1))
