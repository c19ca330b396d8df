"""CLI: what the commands share: options, consoles, printing of results, exit codes. No mathematics here."""

from __future__ import annotations

import json
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

from m2bridge import records
from m2bridge.engine import machine
from m2bridge.engine.base import Limits, parse_bytes, parse_seconds
from m2bridge.errors import InputError
from m2bridge.results import Result

PrimeOption = Annotated[
    int | None,
    typer.Option(
        "--prime",
        help="Characteristic of what is computed over a finite field (default: one that divides nothing in the model).",
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice.")]
TimeoutOption = Annotated[
    str, typer.Option("--timeout", help="Time limit of the whole question: 90, 90s, 10m, 2h, none.")
]
MemoryOption = Annotated[
    str,
    typer.Option(
        "--memory", help="Memory limit: 512M, 4G; at most four fifths of what the machine or container has."
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine", help="Path of the Macaulay2 to use (default: M2BRIDGE_M2, or the first that works)."
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
ScriptOption = Annotated[
    bool, typer.Option("--script", help="Print the first Macaulay2 script instead of running it.")
]
EstimateOption = Annotated[
    bool,
    typer.Option(
        "--estimate", help="Predict seconds and memory, say what needs no Macaulay2, and run nothing."
    ),
]
NoEngineOption = Annotated[bool, typer.Option("--no-engine", help="Do not ask Macaulay2.")]
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
    """One JSON document on standard output, in ASCII where that takes nothing else."""
    text = records.dumps(document)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=2)
    print(text)


def parse_limits(timeout: str, memory: str) -> Limits:
    """Limits from the texts of ``--timeout`` and ``--memory``; ``none`` lifts a limit.

    More memory than :func:`m2bridge.engine.machine.memory_share` is not granted: the kernel would end the whole container where a
    limit of ours ends one run and says so.
    """
    size = parse_bytes(memory, "--memory")
    return Limits(
        wall_seconds=parse_seconds(timeout, "--timeout"),
        memory_bytes=None if size is None else min(size, machine.memory_share()),
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


def finish(
    result: Result,
    *,
    as_json: bool,
    save: Path | None,
    show: Callable[[Console], None],
    name: str | None = None,
) -> None:
    """Print a result (JSON, or `show` for people), save its record, and exit 3 when the witnesses disagree, 5 at a limit."""
    path = (
        None if save is None else records.save(result, save, name=name)
    )  # first: who reads the output may close it
    if as_json:
        print_json(records.to_document(result))
    else:
        show(console())
    if path is not None:
        console(stderr=True).print(f"record: {path}", markup=False, soft_wrap=True)
    if result.agreement is False:
        err = console(stderr=True)
        for conflict in result.conflicts:
            err.print(f"witnesses disagree: {conflict}", style="bold red", markup=False, soft_wrap=True)
        raise typer.Exit(3)
    if result.limit is not None:
        console(stderr=True).print(f"partial answer: {result.limit}", markup=False, soft_wrap=True)
        raise typer.Exit(5)


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
