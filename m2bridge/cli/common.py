"""CLI: code shared by the commands: common options, the model argument, limits, consoles, and the printing of a result."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.segment import Segment
from typer.core import TyperGroup

from m2bridge import records
from m2bridge.errors import InputError, M2BridgeError, visible
from m2bridge.results import Result

if TYPE_CHECKING:  # imported in the functions that need them, so that help texts are printed without delay
    from m2bridge.families import Model
    from m2bridge.limits import Limits

_MOST_UNKNOWN_FILES = 10  # names that one message lists
DEFAULT_TIMEOUT, DEFAULT_MEMORY = "10m", "6G"
"""The defaults of ``--timeout`` and ``--memory``; the same as in :class:`~m2bridge.limits.Limits`."""

# -- options that commands share -----------------------------------------------------------------------------------------------

# fmt: off
_MEMORY = "Memory limit, e.g. 512M or 4G, or none; at most 80% of the memory of the machine or container."
_ENGINE = "Path of the Macaulay2 to use (default: M2BRIDGE_M2, or the first one that works)."
_PRIME = "Prime for computations over a finite field (default: one that divides no coefficient of the input)."
_TIMEOUT = "Time limit of the whole computation: 90, 90s, 10m, 2h, or none."
PrimeOption = Annotated[int | None, typer.Option("--prime", help=_PRIME)]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed for all random choices.")]
TimeoutOption = Annotated[str, typer.Option("--timeout", help=_TIMEOUT)]
MemoryOption = Annotated[str, typer.Option("--memory", help=_MEMORY)]
EngineOption = Annotated[str | None, typer.Option("--engine", help=_ENGINE)]
ForceOption = Annotated[bool, typer.Option("--force", help="Attempt computations that are estimated to be infeasible.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print a single JSON document.")]
SaveOption = Annotated[Path | None, typer.Option("--save", help="Write the record into this directory; created if missing.")]
KeepOption = Annotated[Path | None, typer.Option("--keep", help="Keep scripts and raw output in this directory.")]
_WIDTH = "Dimension d of an input token of `lightning`, instead of SPEC."
_RANK = "Largest rank of the attention matrix of `lightning` (default: d)."
_SUPPLEMENT = "Write a short Macaulay2 script that contains the map and asserts each claim."
OPTIONS: dict[str, tuple[Any, Any]] = {
    "d": (Annotated[int | None, typer.Option("--d", help=_WIDTH)], None),
    "dp": (Annotated[int | None, typer.Option("--dp", help="Dimension d' of an output token of `lightning`.")], None),
    "a": (Annotated[int | None, typer.Option("--a", help=_RANK)], None),
    "t": (Annotated[int | None, typer.Option("--t", help="Number of tokens of `lightning` (default: 2).")], None),
    "prime": (PrimeOption, None),
    "no_engine": (Annotated[bool, typer.Option("--no-engine", help="Do not use Macaulay2.")], False),
    "seed": (SeedOption, 0),
    "timeout": (TimeoutOption, DEFAULT_TIMEOUT),
    "memory": (MemoryOption, DEFAULT_MEMORY),
    "engine": (EngineOption, None),
    "as_json": (JsonOption, False),
    "save": (SaveOption, None),
    "keep": (KeepOption, None),
    "evidence": (Annotated[bool, typer.Option("--evidence", help="Print all evidence, with the method of each item.")], False),
    "script": (Annotated[bool, typer.Option("--script", help="Print the Macaulay2 script that computed the answer.")], False),
    "supplement": (Annotated[Path | None, typer.Option("--supplement", help=_SUPPLEMENT)], None),
}
# fmt: on
"""Annotation and default of the options that the command of a question may have."""


class _Group(TyperGroup):
    """Group of commands whose help prints the whole first line of the help of each command."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (c.help or "").partition("\n")[0]) for name, c in self.commands.items()]
            )


def group_of(app: typer.Typer, name: str, help: str) -> typer.Typer:
    """Add a group of commands to `app` and return it."""
    group = typer.Typer(cls=_Group, help=help, no_args_is_help=True)
    app.add_typer(group, name=name)
    return group


def with_parameters(command: Any, parameters: Mapping[str, tuple[Any, Any]]) -> Any:
    """Return a function of keyword arguments with the signature that the option parser reads: annotations and defaults."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    listed = [
        inspect.Parameter(name, keyword, annotation=kind, default=default)
        for name, (kind, default) in parameters.items()
    ]
    command.__signature__ = inspect.Signature(listed)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in listed}
    return command


# -- the model -----------------------------------------------------------------------------------------------------------------


def read_model(spec: str) -> Model:
    """Return the model of a specification. A Python file named by the specification is executed."""
    if not spec.strip():
        raise InputError("missing model: give a specification such as 'lightning(d=2,dp=1)'")
    if Path(spec).suffix in (".toml", ".json", ".py") and ":" not in spec:
        spelling = f"python:{spec}:NAME, or torch:{spec}:NAME" if spec.endswith(".py") else f"file:{spec}"
        raise InputError(f"{spec} is a file name, not a specification: write {spelling}")
    from m2bridge.families import parse_spec
    from m2bridge.families.user_code import is_code, model_from_code

    return model_from_code(spec) if is_code(spec) else parse_spec(spec)


def model_from(spec: str | None, d: int | None, dp: int | None, a: int | None, t: int | None) -> Model:
    """Return the model given by a specification, or by ``--d --dp --a --t`` (one layer of lightning attention)."""
    sizes = {"--d": d, "--dp": dp, "--a": a, "--t": t}
    used_options = [name for name, value in sizes.items() if value is not None]
    if spec is not None:
        if used_options:
            raise InputError(f"give either a model specification or {', '.join(used_options)}, not both")
        return read_model(spec)
    if d is None or dp is None:
        raise InputError(
            "missing model: give a specification such as 'lightning(d=2,dp=1)', or --d and --dp for one layer"
        )
    for name, value in sizes.items():
        if value is not None and value < 1:
            raise InputError(f"{name} {value}: sizes must be positive integers")
    from m2bridge.families import Lightning

    return Lightning(d=d, dp=dp, a=d if a is None else a, t=2 if t is None else t)


# -- limits and directories ----------------------------------------------------------------------------------------------------


def parse_limits(timeout: str, memory: str) -> Limits:
    """Parse the values of ``--timeout`` and ``--memory``; ``none`` means no limit.

    The memory limit is reduced to :func:`m2bridge.engine.machine.memory_share`: beyond that, the kernel would kill the whole
    container, whereas a limit of m2bridge ends one run with a message.
    """
    from m2bridge.engine import machine
    from m2bridge.limits import Limits, parse_bytes, parse_seconds

    size = parse_bytes(memory, "--memory")
    return Limits(
        wall_seconds=parse_seconds(timeout, "--timeout"),
        memory_bytes=None if size is None else min(size, machine.memory_share()),
    )


def check_directories(*, save: Path | None = None, keep: Path | None = None) -> None:
    """Create missing directories. Raise InputError before any computation if one cannot be created or written to."""
    for option, directory in (("--save", save), ("--keep", keep)):
        if directory is not None:
            records.make_directory(directory, option)
            if not os.access(directory, os.W_OK):
                raise InputError(f"{option} {directory}: the directory is not writable")


# -- output --------------------------------------------------------------------------------------------------------------------


class _Console(Console):
    """Console that raises BrokenPipeError for a closed pipe and replaces control characters.

    Texts may come from a record, a file or Macaulay2; escape sequences in them must not reach the terminal.
    """

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            plain = segment.control or segment.text.replace("\n", "").isprintable()
            yield segment if plain else Segment(visible(segment.text, but="\n"), segment.style)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a console: colours only on a terminal (and not with NO_COLOR), 100 columns in a pipe unless COLUMNS is set."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else 100
    return _Console(stderr=stderr, width=width, highlight=False, emoji=False, soft_wrap=False)


def report(line: str, style: str = "") -> None:
    """Print a line on standard error; only the terminal wraps it."""
    console(stderr=True).print(line, style=style, markup=False, soft_wrap=True)


def report_unknown_files(files: Sequence[str]) -> None:
    """List on standard error the files of a store directory that do not belong to the store; they are ignored."""
    if files:
        more = f", and {len(files) - _MOST_UNKNOWN_FILES} more" if len(files) > _MOST_UNKNOWN_FILES else ""
        shown = visible(", ".join(files[:_MOST_UNKNOWN_FILES]))
        report(f"{len(files)} unknown files in the store, ignored: {shown}{more}")


def print_json(document: Any) -> None:
    """Print a JSON document on standard output, in ASCII if the encoding of the stream requires it."""
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
) -> None:
    """Save the record, print the result (as JSON or with `show`), and exit 3 if witnesses disagree, 5 at a limit."""
    path = None
    save_error = ""
    if save is not None:  # first, because the reader of the output may close the pipe
        try:
            path = records.save(result, save)
        except OSError as error:  # raised after the answer is printed
            save_error = f"--save {save}: the record could not be written: {error.strerror}"
    if as_json:
        print_json(records.to_document(result))
    else:
        show(console())
    if path is not None:
        report(f"record: {path}")
    if save_error:
        raise M2BridgeError(save_error)
    if result.agreement is False:
        for sentence in conflict_sentences(result):
            report(sentence, "bold red")
        raise typer.Exit(3)
    if result.limit is not None:
        report(f"partial answer: {result.limit}")
        raise typer.Exit(5)


_MOST_CONFLICTS = 3
"""Number of conflicts printed. One defect often contradicts many statements, and the first few show it."""


def conflict_sentences(result: Result) -> list[str]:
    """Return the first conflicts, two statements each, and what to do about them."""
    conflicts = result.conflicts
    sentences = [f"witnesses disagree: {conflict}" for conflict in conflicts[:_MOST_CONFLICTS]]
    if len(conflicts) > _MOST_CONFLICTS:
        sentences.append(f"and {len(conflicts) - _MOST_CONFLICTS} more; --evidence shows every statement")
    return [
        *sentences,
        "At least one of these statements is false, so do not use the answer. Run the command again with another --seed and, "
        "where the question has one, another --prime; if they still disagree, report it with the record that --save writes.",
    ]


@contextmanager
def shown_steps(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a progress callback that shows the current step on standard error if that is a terminal."""
    from m2bridge.questions.steps import terminal_steps

    steps = None if quiet else terminal_steps()
    try:
        yield steps or (lambda step: None)
    finally:
        if steps is not None:
            steps.close()
