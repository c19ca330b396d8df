"""CLI: what the commands share: options, consoles, printing of results, exit codes. No mathematics here."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge import records
from m2bridge.engine import cgroup
from m2bridge.engine.base import Limits, parse_bytes, parse_seconds
from m2bridge.errors import InputError
from m2bridge.results import Certainty, Evidence, Result, settle

PrimeOption = Annotated[int, typer.Option("--prime", help="Characteristic of the finite field.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice.")]
TimeoutOption = Annotated[
    str, typer.Option("--timeout", help="Time limit of each Macaulay2 run: seconds, or 90s, 10m, 2h.")
]
MemoryOption = Annotated[
    str,
    typer.Option(
        "--memory",
        help="Memory limit of each Macaulay2 run: 512M, 4G; at most four fifths of what the machine or container has.",
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine", envvar="M2BRIDGE_M2", help="Path of the Macaulay2 to use (default: the first that works)."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
SaveOption = Annotated[
    Path | None, typer.Option("--save", help="Directory to write the record into; made if missing.")
]
KeepOption = Annotated[
    Path | None, typer.Option("--keep", help="Directory to keep scripts and raw output in; made if missing.")
]
EvidenceOption = Annotated[
    bool, typer.Option("--evidence", help="Print every piece of evidence, with its method.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Try even what is certainly out of reach.")]
DOption = Annotated[int | None, typer.Option("--d", help="Width of a token (input).")]
DpOption = Annotated[int | None, typer.Option("--dp", help="Width of a token (output), d' in the paper.")]
AOption = Annotated[
    int | None, typer.Option("--a", help="Bound of the rank of the attention matrix (default: d).")
]
TOption = Annotated[int | None, typer.Option("--t", help="Number of tokens (default: 2).")]


class _Console(Console):
    """A console that leaves a closed pipe to the command, which ends as other programs do then."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """A console that colours only on a terminal (and not with NO_COLOR); 100 columns in a pipe unless COLUMNS says otherwise."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else 100
    return _Console(stderr=stderr, width=width, highlight=False, emoji=False, soft_wrap=False)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    print(records.dumps(document))


def parse_limits(timeout: str, memory: str) -> Limits:
    """Limits from the texts of ``--timeout`` and ``--memory``; ``none`` lifts a limit.

    More memory than :func:`m2bridge.engine.cgroup.memory_share` is not granted: the kernel would end the whole container where a
    limit of ours ends one run and says so.
    """
    size = parse_bytes(memory, "--memory")
    return Limits(
        wall_seconds=parse_seconds(timeout, "--timeout"),
        memory_bytes=None if size is None else min(size, cgroup.memory_share()),
    )


def check_directory(option: str, directory: Path | None) -> None:
    """Make a directory that is not there; refuse, before any work is done, one that cannot be made or written to."""
    if directory is None:
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{option} {directory}: no such directory can be made: {error.strerror}") from None
    if not os.access(directory, os.W_OK):
        raise InputError(f"{option} {directory}: the directory cannot be written to")


def finish(result: Result, *, as_json: bool, save: Path | None, show: Callable[[Console], None]) -> None:
    """Print a result (JSON, or `show` for people), save its record, and exit 3 when the witnesses disagree, 5 at a limit."""
    if as_json:
        print_json(records.to_document(result))
    else:
        show(console())
    if save is not None:
        path = records.save(result, save)
        console(stderr=True).print(f"record: {path}", markup=False, soft_wrap=True)
    if result.agreement is False:
        err = console(stderr=True)
        for conflict in result.conflicts:
            err.print(f"witnesses disagree: {conflict}", style="bold red", markup=False, soft_wrap=True)
        raise typer.Exit(3)
    if result.limit is not None:
        console(stderr=True).print(f"partial answer: {result.limit}", markup=False, soft_wrap=True)
        raise typer.Exit(5)


_RELATION = {"=": "", ">=": "≥ ", "<=": "≤ "}
_STYLE = {Certainty.PROVED: "green", Certainty.PROBABLE: "yellow", Certainty.NUMERIC: "cyan"}


def certainty_text(certainty: Certainty) -> str:
    """A certainty with its colour, as Rich markup."""
    return f"[{_STYLE[certainty]}]{certainty.value}[/]"


_AGREEMENT = {
    True: "[green]witnesses agree[/]",
    False: "[bold red]witnesses disagree[/]",
    None: "one witness",
}


def print_grounds(
    result: Result, console: Console, *, evidence: bool, over: str, detailed: bool = False
) -> None:
    """What a result rests on: its witnesses, and one closing line.

    `evidence` prints every piece of evidence, also that of witnesses that decided nothing; `detailed` every piece that says
    something. `over` says in what it was computed, e.g. ``p=32003``.
    """
    said = result.evidence if evidence else tuple(item for item in result.evidence if item.value is not None)
    console.print()
    console.print((evidence_table if evidence or detailed else summary_table)(said))
    decided = {item.quantity for item in said}
    if open_ := dict.fromkeys(item.quantity for item in result.evidence if item.quantity not in decided):
        console.print(f"undecided: {', '.join(open_)} (--evidence says more)", markup=False)
    print_closing_line(result, console, over=over)


def print_closing_line(result: Result, console: Console, *, over: str) -> None:
    """Whether witnesses agree, how sure the answer is, which engine, over which field, seed and time."""
    ground = f"{engine_text(result)}, {over}, seed={result.seed}, {result.seconds:.1f} s"
    console.print(f"\n{_AGREEMENT[result.agreement]}; {certainty_text(result.certainty)}; {escape(ground)}")


def engine_text(result: Result) -> str:
    """Which Macaulay2 a result used, or why none."""
    if result.engine and result.scripts:
        return f"Macaulay2 {result.engine.version}"
    silent = (item.method for item in result.evidence if item.witness == "macaulay2" and item.value is None)
    reason = next(silent, "not asked")
    if reason.startswith("not asked"):
        _, colon, why = reason.partition(": ")
        return f"Macaulay2 not asked ({why})" if colon else "Macaulay2 not asked"
    return reason.partition(";")[0]


def summary_table(evidence: tuple[Evidence, ...]) -> Table:
    """One row a quantity: its value, how sure it is, and every witness beside it."""
    table = Table(title="Witnesses", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("quantity")
    table.add_column("value", justify="right")
    table.add_column("certainty")
    table.add_column("witnesses", overflow="fold")
    by_quantity: dict[str, list[Evidence]] = {}
    for item in evidence:
        by_quantity.setdefault(item.quantity, []).append(item)
    for quantity, settled in settle(evidence).items():
        words = dict.fromkeys(_word(item, settled.value) for item in by_quantity[quantity])
        value = "?" if settled.value is None else short(settled.value)
        table.add_row(
            escape(quantity), escape(value), certainty_text(settled.certainty), escape(", ".join(words))
        )
    return table


def _word(item: Evidence, settled: Any) -> str:
    """A witness's name, with its value where that is a bound, undecided, or not the settled one."""
    if item.value is None:
        return f"{item.witness} undecided"
    relation = _RELATION[item.relation]
    return (
        item.witness
        if not relation and item.value == settled
        else f"{item.witness} {relation}{short(item.value)}"
    )


def evidence_table(evidence: tuple[Evidence, ...]) -> Table:
    """Every piece of evidence as a row: quantity, value, who says it and how, how sure, how long."""
    table = Table(title="Evidence", title_justify="left", show_edge=False, pad_edge=False)
    for name, justify in (
        ("quantity", "left"),
        ("", "right"),
        ("witness", "left"),
        ("certainty", "left"),
        ("s", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for item in evidence:
        decided = item.value is not None
        value = _RELATION[item.relation] + short(item.value) if decided else "undecided"
        over = f" over F_{item.prime}" if item.prime else ""
        table.add_row(
            escape(item.quantity),
            escape(value),
            escape(f"{item.witness}: {item.method}{over}"),
            certainty_text(item.certainty) if decided else "",
            f"{item.seconds:.2f}",
        )
    return table


def maybe(value: object) -> str:
    """A value, or a question mark where it is not known."""
    return "?" if value is None else str(value)


def short(value: Any, longest: int = 24) -> str:
    """A value as text of bounded length."""
    text = ", ".join(f"{k}:{v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


class Progress:
    """The current step of a long computation, shown on standard error once it lasts longer than two seconds."""

    def __init__(self, *, quiet: bool) -> None:
        self.step = "starting"
        self._quiet = quiet or not sys.stderr.isatty()
        self._done = threading.Event()

    def __call__(self, step: str) -> None:
        self.step = step

    @contextmanager
    def shown(self) -> Iterator[Progress]:
        if self._quiet:
            yield self
            return
        thread = threading.Thread(target=self._show, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._done.set()
            thread.join()

    def _show(self) -> None:
        start = time.monotonic()
        if self._done.wait(2.0):
            return
        with console(stderr=True).status("") as status:
            while not self._done.wait(0.2):
                status.update(f"{escape(self.step)} ({time.monotonic() - start:.0f} s)")
