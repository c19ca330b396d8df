"""CLI: what the commands share: options, the model that is meant, consoles, printing of results, exit codes."""

from __future__ import annotations

import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from m2bridge import records
from m2bridge.engine import machine
from m2bridge.engine.base import Limits, parse_bytes, parse_seconds
from m2bridge.errors import InputError
from m2bridge.models import Lightning, Model, parse_spec
from m2bridge.models.code import is_code, model_from_code
from m2bridge.results import Result


def option(kind: Any, flag: str, help: str, **words: Any) -> Any:
    """The annotation of a parameter that the command line takes as an option."""
    return Annotated[kind, typer.Option(flag, help=help, **words)]


EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine", help="Path of the Macaulay2 to use (default: M2BRIDGE_M2, or the first that works)."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
_PRIME = (
    "Characteristic of what is computed over a finite field (default: one that divides nothing in the model)."
)
_MEMORY = "Memory limit: 512M, 4G; at most four fifths of what the machine or container has."
OPTIONS: dict[str, tuple[Any, Any]] = {
    "d": (option(int | None, "--d", "Width of a token (input)."), None),
    "dp": (option(int | None, "--dp", "Width of a token (output), d' in the paper."), None),
    "a": (option(int | None, "--a", "Bound of the rank of the attention matrix (default: d)."), None),
    "t": (option(int | None, "--t", "Number of tokens (default: 2)."), None),
    "prime": (option(int | None, "--prime", _PRIME), None),
    "seed": (option(int, "--seed", "Seed of every random choice.", min=0), 0),
    "timeout": (option(str, "--timeout", "Time limit of the whole question: 90, 90s, 10m, 2h, none."), "10m"),
    "memory": (option(str, "--memory", _MEMORY), "6G"),
    "engine": (EngineOption, None),
    "no_engine": (option(bool, "--no-engine", "Do not ask Macaulay2."), False),
    "force": (option(bool, "--force", "Try even what is certainly out of reach."), False),
    "as_json": (JsonOption, False),
    "save": (option(Path | None, "--save", "Directory to write the record into; made if missing."), None),
    "keep": (option(Path | None, "--keep", "Directory to keep scripts and raw output in; made if missing."), None),
    "evidence": (option(bool, "--evidence", "Print every piece of evidence, with its method."), False),
    "script": (option(bool, "--script", "Print the first Macaulay2 script instead of running it."), False),
    "estimate": (option(bool, "--estimate", "Predict seconds and memory, say what needs no Macaulay2, and run nothing."), False),
}  # fmt: skip
"""The options that commands share: annotation and default of each."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """What the user gave of the shared options that a command takes, checked before any work is done."""

    d: int | None = None
    dp: int | None = None
    a: int | None = None
    prime: int | None = None
    seed: int = 0
    timeout: str = "10m"
    memory: str = "6G"
    engine: str | None = None
    force: bool = False
    as_json: bool = False
    save: Path | None = None
    keep: Path | None = None

    def __post_init__(self) -> None:
        for name in ("save", "keep"):
            check_directory(f"--{name}", getattr(self, name))

    @property
    def limits(self) -> Limits:
        return parse_limits(self.timeout, self.memory)


def taking(*names: str, **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add shared options to a command, whose first parameter is then :class:`Given`; `defaults` differ from the usual ones."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def command(**words: Any) -> None:
            function(Given(**{name: words.pop(name) for name in names}), **words)

        _, *own = inspect.signature(function, eval_str=True).parameters.values()
        usual = {name: OPTIONS[name] for name in names}
        more = {name: (kind, defaults.get(name, default)) for name, (kind, default) in usual.items()}
        sign(command, {p.name: (p.annotation, p.default) for p in own} | more)
        command.__doc__ = function.__doc__
        return command

    return decorate


def sign(command: Callable[..., None], parameters: dict[str, tuple[Any, Any]]) -> None:
    """Tell the option parser what a command with arbitrary keywords takes: annotation and default of each."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    listed = [
        inspect.Parameter(name, keyword, annotation=kind, default=default)
        for name, (kind, default) in parameters.items()
    ]
    command.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in listed}


# -- which model ---------------------------------------------------------------------------------------------------------------


def read_model(spec: str) -> Model:
    """The model of a specification; nothing at all is no specification. A file of code that the user named here is run."""
    if not spec.strip():
        raise InputError("the model is missing: give a specification such as 'lightning(d=2,dp=1)'")
    if Path(spec).suffix in (".toml", ".json", ".py") and ":" not in spec:
        own = f"python:{spec}:NAME, or torch:{spec}:NAME" if spec.endswith(".py") else f"file:{spec}"
        raise InputError(f"{spec} is the name of a file: write {own}")
    return model_from_code(spec) if is_code(spec) else parse_spec(spec)


def model_from(spec: str | None, d: int | None, dp: int | None, a: int | None, t: int | None) -> Model:
    """The model that the arguments name: a spec string, or ``--d --dp --a --t`` for one layer of lightning attention."""
    sizes = {"--d": d, "--dp": dp, "--a": a, "--t": t}
    given = [name for name, value in sizes.items() if value is not None]
    if spec is not None:
        if given:
            raise InputError(f"give either a model specification or {', '.join(given)}, not both")
        return read_model(spec)
    if d is None or dp is None:
        raise InputError(
            "say which model: a specification such as 'lightning(d=2,dp=1)', or --d and --dp for one layer"
        )
    for name, value in sizes.items():
        if value is not None and value < 1:
            raise InputError(f"{name} {value}: a size is a positive integer")
    return Lightning(d=d, dp=dp, a=d if a is None else a, t=2 if t is None else t)


# -- limits and places ---------------------------------------------------------------------------------------------------------


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


# -- output --------------------------------------------------------------------------------------------------------------------


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


def finish(
    result: Result,
    *,
    as_json: bool,
    save: Path | None,
    show: Callable[[Console], None],
    name: str | None = None,
) -> None:
    """Print a result (JSON, or `show` for people), save its record, and exit 3 when the witnesses disagree, 5 at a limit."""
    # the record first: who reads the output may close it
    path = None if save is None else records.save(result, save, name=name)
    if as_json:
        print_json(records.to_document(result))
    else:
        show(console())
    err = console(stderr=True)
    if path is not None:
        err.print(f"record: {path}", markup=False, soft_wrap=True)
    if result.agreement is False:
        for conflict in result.conflicts:
            err.print(f"witnesses disagree: {conflict}", style="bold red", markup=False, soft_wrap=True)
        raise typer.Exit(3)
    if result.limit is not None:
        err.print(f"partial answer: {result.limit}", markup=False, soft_wrap=True)
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
