"""Engine stage: the interface through which every Macaulay2 script is run.

A :class:`~m2bridge.scripts.Script` and :class:`Limits` enter, a :class:`Run` leaves. An engine never raises
for what a script did: it reports the outcome, and :func:`m2bridge.protocol.read` turns a run into values or a
typed error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from m2bridge.errors import InputError
from m2bridge.scripts import Script


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


class Outcome(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    SCRIPT_ERROR = "script-error"
    CRASHED = "crashed"
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    TOO_MUCH_OUTPUT = "too-much-output"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """Which Macaulay2 ran: its version and its origin.

    The origin is ``option`` (named by the user), ``path``, ``wheel``, ``installed`` or ``replay``.
    """

    version: str
    origin: str
    path: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One finished run of a script, whatever became of it.

    `began` is false when no Macaulay2 could be brought to take the script, or when the one that started is of another version
    than `engine` says: then nothing is known about the script, and `stderr` has the reason.
    """

    script: Script
    engine: EngineInfo
    outcome: Outcome
    stdout: str
    stderr: str
    seconds: float
    limits: Limits
    peak_memory_bytes: int | None = None
    exit_status: int | None = None
    signal: int | None = None
    began: bool = True


Listener = Callable[[str], None]
"""Called with each complete line of standard output while the script runs."""


class Engine(Protocol):
    """Something that runs Macaulay2 scripts. Use it in a ``with`` statement, or call :meth:`close`."""

    @property
    def info(self) -> EngineInfo: ...

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        """Run `script` to its end or to the first limit reached; thread-safe."""
        ...

    def close(self) -> None:
        """Give back what is kept between runs: nothing, unless an engine says otherwise."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
