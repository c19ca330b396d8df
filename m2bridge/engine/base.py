"""The interface of engines, which run scripts of Macaulay2 or msolve.

An engine takes a :class:`~m2bridge.scripts.Script` and :class:`Limits` and returns a :class:`Run`. It does not raise an exception
if the script fails: the run contains the outcome, and :func:`m2bridge.protocol.read` converts a run to values or raises an error.
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
    """An engine: its program (Macaulay2 or msolve), version, origin and path.

    The origin is ``option`` (named by the user), ``path``, ``wheel``, ``installed`` or ``replay``.
    """

    version: str
    origin: str
    path: Path | None = None
    program: str = "Macaulay2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of running a script, successful or not.

    `began` is false if no Macaulay2 could load the script, or if its version is not the one in `engine`. The run then contains no
    information about the script, and `stderr` contains the reason. `processor_seconds` are those of the process: a warm
    Macaulay2 begins at 0, a new one includes its start.
    """

    script: Script
    engine: EngineInfo
    outcome: Outcome
    stdout: str
    stderr: str
    seconds: float
    limits: Limits
    processor_seconds: float | None = None
    peak_memory_bytes: int | None = None
    exit_status: int | None = None
    signal: int | None = None
    began: bool = True


Listener = Callable[[str], None]
"""Called with each complete line of standard output while the script runs."""


class Engine(Protocol):
    """Runs scripts. Use an engine in a ``with`` statement, or call :meth:`close`."""

    @property
    def info(self) -> EngineInfo: ...

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        """Run `script` until it ends or reaches a limit; thread-safe."""
        ...

    def close(self) -> None:
        """Release the resources that the engine holds between runs; by default there are none."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
