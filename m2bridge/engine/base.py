"""Engine stage: the interface through which every Macaulay2 script is run.

A :class:`~m2bridge.scripts.Script` and :class:`Limits` enter, a :class:`Run` leaves. An engine never raises
for what a script did: it reports the outcome, and :func:`m2bridge.protocol.read` turns a run into values or a
typed error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from m2bridge.limits import Limits
from m2bridge.scripts import Script


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
