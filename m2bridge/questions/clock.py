"""A deadline and a memory budget for computations in Python, which ask it now and then whether to go on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


class LimitReached(Exception):  # noqa: N818 - an outcome, not a mistake
    """Time or memory ran out inside a computation of ours; `reason` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class Clock:
    """A deadline and a memory budget that long computations ask about."""

    seconds: float | None = None
    memory_bytes: int | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def remaining(self) -> float | None:
        return None if self.seconds is None else self.seconds - self.elapsed

    def check(self) -> None:
        """Raise :class:`LimitReached` when the time is over."""
        if self.seconds is not None and self.elapsed > self.seconds:
            raise LimitReached(f"the time limit of {self.seconds:g} s was reached")

    def reserve(self, count: int, what: str) -> None:
        """Raise :class:`LimitReached` when `count` bytes are more than the budget."""
        if self.memory_bytes is not None and count > self.memory_bytes:
            raise LimitReached(
                f"{what} needs {count / 2**20:.0f} MB, the limit is {self.memory_bytes / 2**20:.0f} MB"
            )
