"""Limits of time and memory, and the clock of a question or job.

There is one clock in a process: the command, the job of a batch or the outermost call in Python creates it and passes it on.
Scripts and inner questions get parts of it. The supervisor of Macaulay2 and the runner of a batch are other processes, which
terminate whatever exceeds its limit.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from typing import Any

from m2bridge.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a run, by default the same in Python and on the command line. None means no limit.

    `memory_bytes` is address space on top of what an idle Macaulay2 has mapped (not enforced on macOS);
    `cpu_seconds` is rounded up to whole seconds; `output_bytes` counts standard output and standard error
    together. `deadline` is the latest end on the monotonic clock: unlike `wall_seconds`, it includes the start of a
    Macaulay2 process that is kept for later scripts.
    """

    wall_seconds: float | None = 600.0
    cpu_seconds: float | None = None
    memory_bytes: int | None = 6 * 2**30
    output_bytes: int = 64 * 2**20
    deadline: float | None = None

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds that a script may take if it begins now."""
        if self.deadline is None:
            return self.wall_seconds
        left = max(0.0, self.deadline - time.monotonic())
        return left if self.wall_seconds is None else min(left, self.wall_seconds)


_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?([smhd]?)")
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?) ?([kmgt]?)i?b?")


def parse_seconds(value: Any, option: str = "timeout") -> float | None:
    """Parse a duration: a positive number of seconds, or 90s, 10m, 2h, 1d, or none.

    >>> parse_seconds("10m"), parse_seconds("none")
    (600.0, None)
    """
    number, unit = _number_and_unit(value, _DURATION)
    if number == "none":
        return None
    if float(number) <= 0:
        raise InputError(
            f"{option} {value!r} is not a duration; write 90, 90s, 10m, 2h or none", argument=option
        )
    return float(number) * _SECONDS[unit]


def parse_bytes(value: Any, option: str = "memory") -> int | None:
    """Parse a size: a positive number of bytes, or 512M, 4G, or none.

    >>> parse_bytes("512M")
    536870912
    """
    number, unit = _number_and_unit(value, _SIZE)
    if number == "none":
        return None
    size = int(float(number) * _BYTES.get(unit, 0))
    if not 0 < size < 2**62:
        raise InputError(f"{option} {value!r} is not a size; write 512M, 4G or none", argument=option)
    return size


def _number_and_unit(value: Any, pattern: re.Pattern[str]) -> tuple[str, str]:
    """Split a number with a unit; return zero for a text that is neither this nor ``none``."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return "0", ""
    text = str(value).strip().lower()
    match = pattern.fullmatch(text) if text != "none" else None
    return ("none", "") if text == "none" else (match[1], match[2]) if match else ("0", "")


class LimitReached(BaseException):
    """Time, memory or counted work ran out in a Python computation.

    `reason` names the limit, `option` the option that increases it, or None. Like KeyboardInterrupt this is not a subclass of
    Exception: the alarm may raise it inside a network that is being recorded, or a question of another package, where every
    Exception is reported as an error of that code.
    """

    def __init__(self, reason: str, option: str | None = "--timeout") -> None:
        super().__init__(reason, option)
        self.reason = reason
        self.option = option

    def __str__(self) -> str:
        return self.reason

    def at_step(self, step: str) -> str:
        """Return the sentence about a step that the limit ended."""
        return f"{self.reason} at this step: {step}" + (f"; increase {self.option}" if self.option else "")


_HOUR = 3600.0  # seconds
OVERTIME_SHARE, MOST_OVERTIME = 0.05, 1.0
"""Scripts that begin after the limit may together take this share of it, and at most this many seconds."""


@dataclass(slots=True)
class Clock:
    """The time and memory of a question or job.

    Attributes
    ----------
    seconds: how long it may take; None without limit.
    memory_bytes: the memory of a Python computation; None without limit.
    started: when it began, on the monotonic clock.
    allowed_seconds: the user's limit where `seconds` are a part of it (:meth:`part`).
    """

    seconds: float | None = None
    memory_bytes: int | None = None
    started: float = field(default_factory=time.monotonic)
    allowed_seconds: float | None = None

    @classmethod
    def of(cls, limits: Limits, started: float | None = None) -> Clock:
        """Start a clock with these limits, now or at an earlier time."""
        started = time.monotonic() if started is None else started
        return cls(limits.wall_seconds, limits.memory_bytes, started)

    @property
    def is_part(self) -> bool:
        """Return whether it ends before the user's limit."""
        return self.allowed_seconds not in (None, self.seconds)

    @property
    def allows_an_hour(self) -> bool:
        """Return whether the user stated a limit of an hour or more."""
        allowed = self.allowed_seconds or self.seconds
        return allowed is not None and allowed >= _HOUR

    @property
    def limit_text(self) -> str:
        """Describe the time limit as the user stated it."""
        return f"the time limit of {self.allowed_seconds or self.seconds or 0:g} s"

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def remaining(self) -> float | None:
        return None if self.seconds is None else self.seconds - self.elapsed

    @property
    def overtime(self) -> float:
        """Return the seconds after the end in which a script may still run."""
        allowed = self.allowed_seconds or self.seconds
        return 0.0 if allowed is None else min(MOST_OVERTIME, OVERTIME_SHARE * allowed)

    def part(self, share: float | None = None) -> Clock:
        """Start a clock for a share of the remaining time, or all of it; after the end, for the rest of the overtime.

        The last steps of an answer, such as checks, may thus still run shortly after the limit, for min(1 s, 5 % of it) in all.
        """
        remaining = self.remaining
        if remaining is None:
            return Clock(None, self.memory_bytes)
        least = max(0.001, min(self.overtime, remaining + self.overtime))
        seconds = max(least, remaining if share is None else share * remaining)
        return Clock(seconds, self.memory_bytes, allowed_seconds=self.allowed_seconds or self.seconds)

    def limits(self, limits: Limits, share: float | None = None) -> Limits:
        """Return `limits` with a share of the remaining time, or all of it, for a script."""
        if self.seconds is None:
            return replace(limits, wall_seconds=None)
        deadline = self.started + self.seconds + self.overtime
        return replace(limits, wall_seconds=self.part(share).seconds, deadline=deadline)

    def check(self) -> None:
        """Raise :class:`LimitReached` when the time is over."""
        if self.seconds is not None and self.elapsed > self.seconds:
            raise LimitReached(f"{self.limit_text} was reached")

    def reserve(self, count: int, purpose: str) -> None:
        """Raise :class:`LimitReached` if `count` bytes exceed the memory limit; `purpose` is the subject of the message."""
        if self.memory_bytes is not None and count > self.memory_bytes:
            raise LimitReached(
                f"{purpose} needs {count / 2**20:.0f} MB, the limit is {self.memory_bytes / 2**20:.0f} MB",
                "--memory",
            )


def limit_advice(limit: str | None, otherwise: str) -> str:
    """Return the advice for an answer that `limit` made incomplete: its option; `otherwise` if neither time nor memory ran out.

    >>> limit_advice("script ideal ran out of memory; increase --memory", "")
    'increase --memory'
    >>> limit_advice("the equations were sought up to degree 4", "increase --max-degree")
    'increase --max-degree'
    """
    if limit is not None and "--memory" in limit:
        return "increase --memory"
    if limit is not None and ("--timeout" in limit or "time limit" in limit):
        return "increase --timeout"
    return otherwise
