"""Limits of time and memory, and the clock of a question."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

from m2bridge.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may use, by default the same in Python and on the command line. None means no limit.

    `memory_bytes` is address space on top of what an idle Macaulay2 has mapped (not enforced on macOS);
    `cpu_seconds` is rounded up to whole seconds; `output_bytes` counts standard output and standard error
    together.
    """

    wall_seconds: float | None = 600.0
    cpu_seconds: float | None = None
    memory_bytes: int | None = 6 * 2**30
    output_bytes: int = 64 * 2**20


_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?([smhd]?)")
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?) ?([kmgt]?)i?b?")


def parse_seconds(value: Any, word: str = "timeout") -> float | None:
    """A duration as users write it: a positive number of seconds, or 90s, 10m, 2h, 1d, or none."""
    number, unit = _number_and_unit(value, _DURATION)
    if number == "none":
        return None
    if float(number) <= 0:
        raise InputError(f"{word} {value!r} is not a duration; write 90, 90s, 10m, 2h or none", argument=word)
    return float(number) * _SECONDS[unit]


def parse_bytes(value: Any, word: str = "memory") -> int | None:
    """A size as users write it: a positive number of bytes, or 512M, 4G, or none."""
    number, unit = _number_and_unit(value, _SIZE)
    if number == "none":
        return None
    size = int(float(number) * _BYTES.get(unit, 0))
    if not 0 < size < 2**62:
        raise InputError(f"{word} {value!r} is not a size; write 512M, 4G or none", argument=word)
    return size


def _number_and_unit(value: Any, pattern: re.Pattern[str]) -> tuple[str, str]:
    """The parts of what was written; zero for what is neither a number with a unit nor ``none``."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return "0", ""
    text = str(value).strip().lower()
    match = pattern.fullmatch(text) if text != "none" else None
    return ("none", "") if text == "none" else (match[1], match[2]) if match else ("0", "")


class LimitReached(BaseException):
    """Time or memory ran out inside a Python computation; `reason` names the limit, `option` the option that raises it.

    Like KeyboardInterrupt it is no Exception: the alarm may raise it inside a network that is being recorded, or a question of
    another package, where every Exception is taken for the author's mistake.
    """

    def __init__(self, reason: str, option: str = "--timeout") -> None:
        super().__init__(reason, option)
        self.reason, self.option = reason, option


@dataclass(slots=True)
class Clock:
    """A deadline and a memory budget that long computations ask about."""

    seconds: float | None = None
    memory_bytes: int | None = None
    started: float = field(default_factory=time.monotonic)
    whole: float | None = None
    """The seconds that the user allowed, where `seconds` are a part of them."""

    @property
    def limit_text(self) -> str:
        """The time limit as the user knows it."""
        return f"the time limit of {self.whole or self.seconds or 0:g} s"

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def remaining(self) -> float | None:
        return None if self.seconds is None else self.seconds - self.elapsed

    def check(self) -> None:
        """Raise :class:`LimitReached` when the time is over."""
        if self.seconds is not None and self.elapsed > self.seconds:
            raise LimitReached(f"{self.limit_text} was reached")

    def reserve(self, count: int, what: str) -> None:
        """Raise :class:`LimitReached` when `count` bytes are more than the budget."""
        if self.memory_bytes is not None and count > self.memory_bytes:
            raise LimitReached(
                f"{what} needs {count / 2**20:.0f} MB, the limit is {self.memory_bytes / 2**20:.0f} MB",
                "--memory",
            )


def raise_limit(limit: str) -> str:
    """Return the advice for an answer that a limit cut short: the option that the sentence about the limit names.

    >>> raise_limit("script ideal ran out of memory; allow more with --memory")
    'more --memory'
    """
    return "more --memory" if "--memory" in limit else "a longer --timeout"
