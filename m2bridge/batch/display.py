"""Batch: what a person sees while a batch runs: a live picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from m2bridge.batch.plan import Job
from m2bridge.batch.state import RunState

_STYLES = {
    "complete": "green",
    "partial": "yellow",
    "timed-out": "yellow",
    "out-of-memory": "yellow",
    "crashed": "red",
    "disagreement": "bold red",
    "bad-job": "magenta",
}


class Display(Protocol):
    """Something that shows how a run goes."""

    def shown(self, state: RunState) -> contextlib.AbstractContextManager[None]: ...

    def update(self, state: RunState) -> None: ...

    def finished(self, job: Job, record: dict[str, Any], state: RunState) -> None: ...


class Silent:
    """Shows nothing."""

    @contextlib.contextmanager
    def shown(self, state: RunState) -> Iterator[None]:
        yield

    def update(self, state: RunState) -> None:
        pass

    def finished(self, job: Job, record: dict[str, Any], state: RunState) -> None:
        pass


class Lines(Silent):
    """One line for each finished job, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stopping: str | None = None

    @contextlib.contextmanager
    def shown(self, state: RunState) -> Iterator[None]:
        cached = state.cached.total()
        self._print(f"{state.total} jobs, {cached} answered from the store, {state.workers} workers")
        yield

    def update(self, state: RunState) -> None:
        if state.stopping != self._stopping:
            self._stopping = state.stopping
            self._print(f"interrupted: {state.stopping}")

    def finished(self, job: Job, record: dict[str, Any], state: RunState) -> None:
        note = f"  {record['message']}" if record["message"] else ""
        self._print(
            f"[{state.finished}/{state.total}] {record['outcome']}  {job.title}  {record['seconds']:.2f} s{note}"
        )

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)


class Picture(Silent):
    """A live picture: done, running with elapsed time and step, failed, cached, memory, time left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._last = 0.0

    @contextlib.contextmanager
    def shown(self, state: RunState) -> Iterator[None]:
        with Live(picture(state), console=self._console, auto_refresh=False, transient=True) as self._live:
            yield
        self._live = None

    def update(self, state: RunState) -> None:
        if self._live is not None and time.monotonic() - self._last > 0.2:
            self._last = time.monotonic()
            self._live.update(picture(state), refresh=True)

    def finished(self, job: Job, record: dict[str, Any], state: RunState) -> None:
        if record["outcome"] != "complete":
            line = Text(f"{record['outcome']}  {job.title}  {record['message'] or ''}")
            line.stylize(_STYLES[record["outcome"]], 0, len(record["outcome"]))
            self._console.print(line, overflow="ellipsis", no_wrap=True)


def picture(state: RunState) -> Group:
    """The whole picture of a run."""
    counts = Text()
    counts.append(f"{state.finished}/{state.total} done")
    for name, count, style in (
        ("running", len(state.running), "cyan"),
        ("cached", state.cached.total(), "green"),
        ("elsewhere", state.elsewhere, "cyan"),
        *((outcome, state.done[outcome], _STYLES[outcome]) for outcome in _STYLES if outcome != "complete"),
    ):
        if count:
            counts.append("   ")
            counts.append(f"{count} {name}", style=style)
    counts.append(f"   memory {state.memory_bytes / 2**30:.1f} GB   {_clock(state.seconds)}")
    counts.append(f"   about {_clock(state.eta_seconds)} left" if state.eta_seconds is not None else "")
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(no_wrap=True, overflow="ellipsis")
    for running in state.running:
        step = running.step + (f" (attempt {running.attempt})" if running.attempt > 1 else "")
        table.add_row(
            Text(_clock(running.seconds), style="cyan"), Text(running.title), Text(step, style="dim")
        )
    bar = Table.grid(expand=True)  # a bar by itself does not end its line
    bar.add_row(ProgressBar(total=max(state.total, 1), completed=state.finished))
    parts: list[Any] = [bar, counts, table]
    if state.stopping:
        parts.append(Text(state.stopping, style="bold yellow"))
    return Group(*parts)


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
