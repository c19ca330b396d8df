"""CLI: what the commands share: options, the model that is meant, consoles, exit codes, how a result is printed for people."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from typer.core import TyperGroup

from m2bridge import records
from m2bridge.errors import InputError, M2BridgeError, visible
from m2bridge.evidence import RELATION_SIGNS, Evidence, by_quantity, strongest
from m2bridge.results import Result
from m2bridge.views import Rows, View, cut

if TYPE_CHECKING:  # what only an answer needs is imported where it is needed: help is read at once
    from m2bridge.families import Model
    from m2bridge.limits import Limits

_MOST_STRAYS = 10
DEFAULT_TIMEOUT, DEFAULT_MEMORY = "10m", "6G"
"""The defaults of ``--timeout`` and ``--memory``, which are those of :class:`~m2bridge.engine.base.Limits`."""

# -- options that commands share -----------------------------------------------------------------------------------------------

# fmt: off
_MEMORY = "Memory limit: 512M, 4G; at most four fifths of what the machine or container has."
_ENGINE = "Path of the Macaulay2 to use (default: M2BRIDGE_M2, or the first that works)."
_PRIME = "Characteristic of what is computed over a finite field (default: one that divides nothing in the model)."
_TIMEOUT = "Time limit of the whole question: 90, 90s, 10m, 2h, none."
WidthOption = Annotated[int | None, typer.Option("--d", help="Width of a token (input).")]
OutputWidthOption = Annotated[int | None, typer.Option("--dp", help="Width of a token (output), d' in the paper.")]
RankOption = Annotated[int | None, typer.Option("--a", help="Bound of the rank of the attention matrix (default: d).")]
TokensOption = Annotated[int | None, typer.Option("--t", help="Number of tokens (default: 2).")]
PrimeOption = Annotated[int | None, typer.Option("--prime", help=_PRIME)]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice.")]
TimeoutOption = Annotated[str, typer.Option("--timeout", help=_TIMEOUT)]
MemoryOption = Annotated[str, typer.Option("--memory", help=_MEMORY)]
EngineOption = Annotated[str | None, typer.Option("--engine", help=_ENGINE)]
ForceOption = Annotated[bool, typer.Option("--force", help="Try even what is certainly out of reach.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
SaveOption = Annotated[Path | None, typer.Option("--save", help="Directory to write the record into; made if missing.")]
KeepOption = Annotated[Path | None, typer.Option("--keep", help="Directory to keep scripts and raw output in; made if missing.")]

NoEngineOption = Annotated[bool, typer.Option("--no-engine", help="Do not ask Macaulay2.")]
EvidenceOption = Annotated[bool, typer.Option("--evidence", help="Print every piece of evidence, with its method.")]
ScriptOption = Annotated[bool, typer.Option("--script", help="Print the Macaulay2 script that computed the answer.")]
# fmt: on
OPTIONS: dict[str, tuple[Any, Any]] = {
    "d": (WidthOption, None),
    "dp": (OutputWidthOption, None),
    "a": (RankOption, None),
    "t": (TokensOption, None),
    "prime": (PrimeOption, None),
    "no_engine": (NoEngineOption, False),
    "seed": (SeedOption, 0),
    "timeout": (TimeoutOption, DEFAULT_TIMEOUT),
    "memory": (MemoryOption, DEFAULT_MEMORY),
    "engine": (EngineOption, None),
    "as_json": (JsonOption, False),
    "save": (SaveOption, None),
    "keep": (KeepOption, None),
    "evidence": (EvidenceOption, False),
    "script": (ScriptOption, False),
}  # fmt: skip
"""Annotation and default of the options that a question's command may have."""


class _Group(TyperGroup):
    """A group whose help has the whole sentence of each of its commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (c.help or "").partition("\n")[0]) for name, c in self.commands.items()]
            )


def group_of(app: typer.Typer, name: str, help: str) -> typer.Typer:
    """A new group of commands in `app`."""
    group = typer.Typer(cls=_Group, help=help, no_args_is_help=True)
    app.add_typer(group, name=name)
    return group


# -- which model ---------------------------------------------------------------------------------------------------------------


def read_model(spec: str) -> Model:
    """The model of a specification; nothing at all is no specification. A file of code that the user named here is run."""
    if not spec.strip():
        raise InputError("the model is missing: give a specification such as 'lightning(d=2,dp=1)'")
    if Path(spec).suffix in (".toml", ".json", ".py") and ":" not in spec:
        own = f"python:{spec}:NAME, or torch:{spec}:NAME" if spec.endswith(".py") else f"file:{spec}"
        raise InputError(f"{spec} is the name of a file: write {own}")
    from m2bridge.families import parse_spec
    from m2bridge.families.user_code import is_code, model_from_code

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
    from m2bridge.families import Lightning

    return Lightning(d=d, dp=dp, a=d if a is None else a, t=2 if t is None else t)


# -- limits and places ---------------------------------------------------------------------------------------------------------


def parse_limits(timeout: str, memory: str) -> Limits:
    """Limits from the texts of ``--timeout`` and ``--memory``; ``none`` lifts a limit.

    More memory than :func:`m2bridge.engine.machine.memory_share` is not granted: the kernel would end the whole container where a
    limit of ours ends one run and says so.
    """
    from m2bridge.engine import machine
    from m2bridge.limits import Limits, parse_bytes, parse_seconds

    size = parse_bytes(memory, "--memory")
    return Limits(
        wall_seconds=parse_seconds(timeout, "--timeout"),
        memory_bytes=None if size is None else min(size, machine.memory_share()),
    )


def check_directories(*, save: Path | None = None, keep: Path | None = None) -> None:
    """Make directories that are not there; refuse, before any work is done, one that cannot be made or written to."""
    for option, directory in (("--save", save), ("--keep", keep)):
        if directory is not None:
            records.make_directory(directory, option)
            if not os.access(directory, os.W_OK):
                raise InputError(f"{option} {directory}: the directory cannot be written to")


# -- output --------------------------------------------------------------------------------------------------------------------


class _Console(Console):
    """A console that leaves a closed pipe to the command, which ends as other programs do then.

    It writes out what would steer the terminal, wherever a text comes from: a record, a file, Macaulay2.
    """

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            plain = segment.control or segment.text.replace("\n", "").isprintable()
            yield segment if plain else Segment(visible(segment.text, but="\n"), segment.style)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """A console that colours only on a terminal (and not with NO_COLOR); 100 columns in a pipe unless COLUMNS says otherwise."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else 100
    return _Console(stderr=stderr, width=width, highlight=False, emoji=False, soft_wrap=False)


def name_strays(strays: Sequence[str]) -> None:
    """Name on standard error what lies in a store and does not belong there; it is passed over."""
    if strays:
        more = f", and {len(strays) - _MOST_STRAYS} more" if len(strays) > _MOST_STRAYS else ""
        shown = visible(", ".join(strays[:_MOST_STRAYS]))
        text = f"{len(strays)} not of the store, passed over: {shown}{more}"
        console(stderr=True).print(text, markup=False, soft_wrap=True)


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
) -> None:
    """Print a result (JSON, or `show` for people), save its record, and exit 3 when the witnesses disagree, 5 at a limit."""
    path, trouble = None, ""
    if save is not None:  # the record first: who reads the output may close it
        try:
            path = records.save(result, save)
        except OSError as error:  # the answer is told before
            trouble = f"--save {save}: the record could not be written: {error.strerror}"
    if as_json:
        print_json(records.to_document(result))
    else:
        show(console())
    err = console(stderr=True)
    if path is not None:
        err.print(f"record: {path}", markup=False, soft_wrap=True)
    if trouble:
        raise M2BridgeError(trouble)
    if result.agreement is False:
        for sentence in conflict_sentences(result):
            err.print(sentence, style="bold red", markup=False, soft_wrap=True)
        raise typer.Exit(3)
    if result.limit is not None:
        err.print(f"partial answer: {result.limit}", markup=False, soft_wrap=True)
        raise typer.Exit(5)


_MOST_CONFLICTS = 3
"""One defect often contradicts many statements; the first few show it."""


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
    """Who is told each step of a long computation: on a terminal, standard error shows the one that runs."""
    from m2bridge.questions.kernel import terminal_steps

    steps = None if quiet else terminal_steps()
    try:
        yield steps or (lambda step: None)
    finally:
        if steps is not None:
            steps.close()


# -- results for people ---------------------------------------------------------------------------------------------------------

_STYLES = {
    "proved": "green", "theorem": "green", "computed": "green", "probable": "yellow", "numeric": "cyan",
    "singular": "red", "smooth": "blue", "undecided": "yellow",
    "identifiable-up-to-symmetry": "green", "finite-up-to-symmetry": "blue", "open-orbit": "cyan", "not-identifiable": "red",
    "image": "blue", "boundary": "yellow", "closure-only": "magenta", "outside": "red", "fails": "red", "agrees": "green",
}  # fmt: skip
"""Colours of words that stand alone in a cell."""
_NUMBERED = re.compile(r"(:.*|(?<!=) \(?\d+(,\d+)*\)?)$")
"""What tells one point or orbit from another in the name of a quantity."""
_AGREEMENT_STYLES = {True: "green", False: "bold red", None: ""}


def styled(word: str) -> str:
    """A word with its colour, if it has one, as Rich markup."""
    return f"[{_STYLES[word]}]{word}[/]" if word in _STYLES else escape(word)


def show(
    result: Result, console: Console, *, title: str, quantities: Mapping[str, str], evidence: bool
) -> None:
    """Print a result: its answer first, its reasons after."""
    view = result.view()
    sure = styled(result.sure)
    console.print(f"[bold]{escape(view.answer)}[/]; {sure}")
    console.print(escape(title), style="dim")
    _print_view(view, console)
    console.print()
    if evidence:
        _show_evidence(result, console)
    else:
        console.print(_grounds(result, quantities))
    if not result.certainty.exact:
        console.print(f"to prove it: {view.to_prove}", markup=False)
    console.print(closing_line(result, sure))


def _print_view(view: View, console: Console) -> None:
    if view.facts:
        table = grid()
        for name, text in view.facts:
            table.add_row(name, styled(text))
        console.print(table)
    for rows in view.tables:
        console.print()
        console.print(_table(rows))
    for note in view.notes:
        console.print(note, markup=False)


def grid() -> Table:
    """A table of two columns without lines: names, and texts that are folded."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _table(rows: Rows) -> Table:
    table = Table(title=rows.title, title_justify="left", show_edge=False, pad_edge=False)
    for place, name in enumerate(rows.columns):
        numbers = rows.cells and rows.has_numbers(place)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows.cells:
        table.add_row(*map(styled, row))
    return table


def _grounds(result: Result, quantities: Mapping[str, str]) -> Table:
    """What the answer rests on: for each reported quantity its strongest statements, one line each."""
    table = grid()
    said = by_quantity(result.evidence)
    for name in (name for name in said if name in quantities):
        for item in strongest(said[name]):
            how = f"{item.witness}: {item.how} ({item.word})"
            table.add_row(escape(f"{name} {_value(item)}"), escape(how))
    others = dict.fromkeys(_NUMBERED.sub("", name) for name in said if name not in quantities)
    silent = [name for name in said if name in quantities and not strongest(said[name])]
    for word, names in (("compared", others), ("undecided", silent)):
        if names:
            table.add_row(word, escape(", ".join(names)))
    return table


def _value(item: Evidence) -> str:
    if item.value is None:
        return "undecided"
    return ("" if item.relation == "=" else f"{RELATION_SIGNS[item.relation]} ") + cut(item.value)


def closing_line(result: Result, sure: str) -> str:
    """Whether witnesses agree, how sure the answer is, which engine, seed and time; as Rich markup."""
    prime, field = result.options.get("prime"), result.options.get("field")
    over = f"p={prime}, " if prime else f"{field}, " if field else ""
    ground = f"{engine_text(result)}, {over}seed={result.seed}, {result.seconds:.1f} s"
    words, style = escape(result.agreement_words), _AGREEMENT_STYLES[result.agreement]
    return f"{f'[{style}]{words}[/]' if style else words}; {sure}; {escape(ground)}"


def engine_text(result: Result) -> str:
    """Which Macaulay2 a result used, or why none."""
    if result.macaulay2:
        return f"Macaulay2 {result.macaulay2}"
    silent = (item.method for item in result.evidence if item.witness == "macaulay2" and item.value is None)
    reason = next(silent, "not asked")
    if reason.startswith("not asked"):
        _, colon, why = reason.partition(": ")
        return f"Macaulay2 not asked ({why})" if colon else "Macaulay2 not asked"
    return reason.partition(";")[0]


def _show_evidence(result: Result, console: Console) -> None:
    """Every piece of evidence, quantity by quantity: value, who says it and how, how sure, how long."""
    console.print("Evidence", style="bold")
    for quantity, items in by_quantity(result.evidence).items():
        word = f" ({result.words[quantity].value})" if quantity in result.words else ""
        console.print(f"{quantity}{word}", style="bold", markup=False)
        table = grid()
        for item in items:
            sure = "" if item.value is None else f"{item.word}, "
            said = f"{item.witness}: {item.how} ({sure}{item.seconds:.2f} s)"
            table.add_row(escape(f"  {_value(item)}"), escape(said))
        console.print(table)
