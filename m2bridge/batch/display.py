"""The state of a run, and its display: a live view on a terminal, a progress bar in a notebook, or plain lines."""

from __future__ import annotations

import contextlib
import html
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from m2bridge.batch.job import Job
from m2bridge.errors import visible
from m2bridge.questions.steps import notebook_display

_STYLES = {
    "complete": "green", "partial": "yellow", "timed-out": "yellow", "out-of-memory": "yellow", "crashed": "red",
    "disagreement": "bold red", "bad-job": "magenta",
}  # fmt: skip


@dataclass(slots=True)
class Running:
    """A running job: its title, elapsed seconds, current step and number of the attempt."""

    job: str
    seconds: float
    step: str
    attempt: int


@dataclass(slots=True)
class Host:
    """A machine on which workers run: its Macaulay2, the number of workers, and the number of jobs they have answered."""

    engine: str = ""
    workers: int = 0
    jobs: int = 0


@dataclass(slots=True)
class RunState:
    """The state of a run.

    Attributes
    ----------
    total: the number of jobs of the plan.
    cached, done: the outcomes of jobs answered from the store and of jobs of this run.
    stopping: the reason why no new job is started; None otherwise.
    hosts: the machines on which workers run, by name.
    excluded: for each worker that is not used, the reason.
    """

    source: str
    total: int
    workers: int
    cached: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    running: list[Running] = field(default_factory=list)
    seconds: float = 0.0
    memory_bytes: int = 0
    eta_seconds: float | None = None
    stopping: str | None = None
    hosts: dict[str, Host] = field(default_factory=dict)
    excluded: list[str] = field(default_factory=list)

    @property
    def outcomes(self) -> Counter[str]:
        """Return the number of finished jobs for each outcome."""
        return self.cached + self.done

    @property
    def finished(self) -> int:
        return self.outcomes.total()

    @property
    def failed(self) -> int:
        return self.finished - self.outcomes["complete"]

    def document(self) -> dict[str, Any]:
        return {
            **{f.name: getattr(self, f.name) for f in fields(self)},
            "running": [asdict(running) for running in self.running],
            "hosts": {name: asdict(host) for name, host in self.hosts.items()},
            "waiting": self.total - self.finished - len(self.running),
            "seconds": round(self.seconds, 1),
            "eta_seconds": None if self.eta_seconds is None else round(self.eta_seconds, 1),
            "host": socket.gethostname(),
        }


class Display:
    """The interface of displays of a run. This class displays nothing."""

    @contextlib.contextmanager
    def shown(self, state: RunState) -> Iterator[None]:
        yield

    def update(self, state: RunState) -> None:
        pass

    def finished(self, job: Job, record: dict[str, Any], state: RunState) -> None:
        pass


class Lines(Display):
    """Prints one line for each finished job, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stopping: str | None = None
        self._excluded = 0
        self._hosts: set[str] = set()

    @contextlib.contextmanager
    def shown(self, state: RunState) -> Iterator[None]:
        cached = state.cached.total()
        self._print(f"{state.total} jobs, {cached} answered from the store, {state.workers} workers")
        yield

    def update(self, state: RunState) -> None:
        if state.stopping != self._stopping:
            self._stopping = state.stopping
            self._print(f"interrupted: {state.stopping}")
        for name in sorted(state.hosts.keys() - self._hosts):
            self._hosts.add(name)
            self._print(f"workers on {name}: {state.hosts[name].engine}")
        for reason in state.excluded[self._excluded :]:
            self._print(f"worker excluded: {reason}")
        self._excluded = len(state.excluded)

    def finished(self, job: Job, record: dict[str, Any], state: RunState) -> None:
        note = f"  {record['message']}" if record["message"] else ""
        done = f"[{state.finished}/{state.total}] {record['outcome']}"
        self._print(f"{done}  {job.title}  {record['seconds']:.2f} s{note}")

    def _print(self, line: str) -> None:
        self._console.print(visible(line), markup=False, soft_wrap=True)


class Picture(Display):
    """A live view on a terminal: counts, running jobs with elapsed time and step, memory, estimated time left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._last = 0.0

    @contextlib.contextmanager
    def shown(self, state: RunState) -> Iterator[None]:
        with Live(live_view(state), console=self._console, auto_refresh=False, transient=True) as self._live:
            yield
        self._live = None

    def update(self, state: RunState) -> None:
        if self._live is not None and time.monotonic() - self._last > 0.2:
            self._last = time.monotonic()
            self._live.update(live_view(state), refresh=True)

    def finished(self, job: Job, record: dict[str, Any], state: RunState) -> None:
        if record["outcome"] != "complete":
            line = Text(visible(f"{record['outcome']}  {job.title}  {record['message'] or ''}"))
            line.stylize(_STYLES[record["outcome"]], 0, len(record["outcome"]))
            self._console.print(line, overflow="ellipsis", no_wrap=True)


class Notebook(Display):
    """A progress bar below the cell of a notebook, with one line of counts."""

    def __init__(self, show: Callable[[str, str], None]) -> None:
        self._show = show
        self._last = 0.0

    def _draw(self, state: RunState) -> None:
        left = f", about {_clock(state.eta_seconds)} left" if state.eta_seconds is not None else ""
        text = f"{state.finished}/{state.total}: {counts_text(state.outcomes)}; {_clock(state.seconds)}{left}"
        text += f" ({state.stopping})" if state.stopping else ""
        bar = f'<progress max="{max(state.total, 1)}" value="{state.finished}"></progress>'
        self._show(text, f"{bar} {html.escape(text)}")

    @contextlib.contextmanager
    def shown(self, state: RunState) -> Iterator[None]:
        self._draw(state)
        try:
            yield
        finally:
            self._draw(state)

    def update(self, state: RunState) -> None:
        if time.monotonic() - self._last > 0.5:
            self._last = time.monotonic()
            self._draw(state)


def suitable_display() -> Display:
    """Return a progress bar in a notebook, a live view on a terminal, and an empty display otherwise."""
    show = notebook_display()
    if show is not None:
        return Notebook(show)
    console = Console(stderr=True, highlight=False)
    return Picture(console) if console.is_terminal else Display()


def live_view(state: RunState) -> Group:
    """Draw the state of a run for a terminal."""
    counts = Text()
    counts.append(f"{state.finished}/{state.total} done")
    for name, count, style in (
        ("running", len(state.running), "cyan"),
        ("cached", state.cached.total(), "green"),
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
            Text(_clock(running.seconds), style="cyan"), Text(running.job), Text(visible(step), style="dim")
        )
    bar = Table.grid(expand=True)  # the table ends the line, which a ProgressBar alone does not
    bar.add_row(ProgressBar(total=max(state.total, 1), completed=state.finished))
    lines: list[Any] = [bar, counts, table]
    if len(state.hosts) > 1:
        lines += [Text(visible(line), style="dim") for line in host_lines(state.document()["hosts"])]
    lines += [Text(f"worker excluded: {visible(reason)}", style="yellow") for reason in state.excluded[-3:]]
    if state.stopping:
        lines.append(Text(state.stopping, style="bold yellow"))
    return Group(*lines)


def counts_text(outcomes: Mapping[str, int]) -> str:
    """Return the number of jobs for each outcome as text, the largest number first."""
    ordered = sorted(outcomes.items(), key=lambda item: -item[1])
    return ", ".join(f"{count} {outcome}" for outcome, count in ordered) or "none"


def host_lines(hosts: dict[str, dict[str, Any]]) -> list[str]:
    """Return one line for each host of a run."""
    return [
        f"{name}: {host['engine']}, {host['workers']} workers, {host['jobs']} jobs"
        for name, host in sorted(hosts.items())
    ]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
