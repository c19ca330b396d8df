"""What benchmarks share: times of the clock and the processor, tables, runs of plain Macaulay2, and the scripts of a question.

A program in this directory is run as ``python benchmarks/NAME.py``, so that the others can be imported.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from m2bridge.engine import Engine, EngineInfo, Listener, Run
from m2bridge.limits import Limits
from m2bridge.questions.context import Context
from m2bridge.scripts import Script


@dataclass(frozen=True)
class Took:
    """Wall-clock and processor seconds."""

    wall: float
    cpu: float


def processor_seconds() -> float:
    """Return the processor seconds of this process and of all its children that have ended."""
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


def timed(action: Callable[[], Any], repeat: int = 1) -> tuple[Took, Any]:
    """Return the run of a few that took the least processor time, and the last value."""
    runs, value = [], None
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), processor_seconds()
        value = action()
        runs.append(Took(time.perf_counter() - wall, processor_seconds() - cpu))
    return min(runs, key=lambda took: took.cpu), value


def table_row(*cells: object) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def print_heading(*columns: str) -> None:
    """Print the heading of a Markdown table."""
    print(table_row(*columns), table_row(*("---" for _ in columns)), sep="\n", flush=True)


def plain_macaulay2(
    program: Path | str, script: str, seconds: float
) -> subprocess.CompletedProcess[str] | None:
    """Run a script in a Macaulay2 process of its own, as a user would; None if it does not end within `seconds`."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "plain.m2"
        file.write_text(script, encoding="utf-8")
        command = [str(program), "--script", str(file)]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return None


def context_of(engine: Engine, seconds: float | None = None) -> Context:
    """Return the context of a question that is answered with this engine, by default without a time limit."""
    limits = Limits(wall_seconds=seconds)
    return Context(engine=engine, prime=None, seed=0, limits=limits, keep=None, progress=None)


class ObservedEngine(Engine):
    """An engine that keeps the scripts it runs and adds up their processor seconds; `cpu_seconds` limits each run."""

    def __init__(self, engine: Engine, cpu_seconds: float | None = None) -> None:
        self._engine, self._cpu_seconds = engine, cpu_seconds
        self.scripts: list[Script] = []
        self.processor_seconds = 0.0

    @property
    def info(self) -> EngineInfo:
        return self._engine.info

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        self.scripts.append(script)
        if self._cpu_seconds is not None:
            limits = Limits(cpu_seconds=self._cpu_seconds)
        run = self._engine.run(script, limits, listener)
        self.processor_seconds += run.processor_seconds or self._cpu_seconds or 0.0
        return run


def upper_bound_of(evidence: Iterable[Any]) -> Any:
    """Return the evidence for the least upper bound of a dimension."""
    return min((item for item in evidence if item.relation == "<="), key=lambda item: item.value)
