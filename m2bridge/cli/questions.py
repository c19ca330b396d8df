"""CLI: build the command of a question from its declaration. No question has its own command module."""

from __future__ import annotations

import inspect
import json
import os
import types
import typing
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

import typer

from m2bridge.cli import common
from m2bridge.cli.show import show as show_result
from m2bridge.errors import InputError, visible
from m2bridge.limits import Clock, Limits
from m2bridge.questions import DeclaredOption, find
from m2bridge.questions.kernel import MODEL
from m2bridge.results import Result
from m2bridge.views import shorten

if TYPE_CHECKING:
    from m2bridge.questions.kernel import Question

_LAYER = ("d", "dp", "a", "t")
_COMMON = ("seed", "timeout", "memory", "engine", "as_json", "save", "keep", "evidence", "script")
_WITH_SUPPLEMENT = ("closure", "critical-points", "dimension", "fiber", "membership", "singular-locus")
"""The questions whose answers :mod:`m2bridge.report.supplement` writes."""


def register(app: typer.Typer, name: str) -> None:
    """Add the command of the question `name` to `app`."""
    question = find(name)

    def command(context: typer.Context, **arguments: Any) -> None:
        _run(question, arguments, started=context.obj)

    parameters = {"context": (typer.Context, inspect.Parameter.empty), **_parameters(question)}
    example = f"\n\nExample: {question.example}" if question.example else ""
    app.command(question.name, help=question.asks + example)(common.with_parameters(command, parameters))


def _parameters(question: Question[Any, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the annotation and the default of each parameter of the command."""
    subject = question.subject
    is_model = subject is MODEL
    kind: Any = str | None if is_model else str
    argument: Any = Annotated[kind, typer.Argument(metavar=subject.metavar, help=subject.help)]
    parameters = {"subject": (argument, None if is_model else inspect.Parameter.empty)}
    if is_model:
        parameters |= {name: common.OPTIONS[name] for name in _LAYER}
    parameters |= {
        declared.name: (_annotation(declared), declared.cli_default) for declared in question.options.values()
    }
    shared = ["prime"] * question.takes_prime + ["no_engine"] * (not question.needs_engine)
    parameters |= {name: common.OPTIONS[name] for name in shared}
    if question.formats:
        help_text = f"Print the answer in this format only: {', '.join(question.formats)}."
        parameters["form"] = (Annotated[str | None, typer.Option("--format", help=help_text)], None)
    more = ("supplement",) if question.name in _WITH_SUPPLEMENT else ()
    return parameters | {name: common.OPTIONS[name] for name in (*_COMMON, *more)}


def _flag(declared: DeclaredOption) -> str:
    return declared.option.flag or f"--{declared.name.replace('_', '-')}"


def _annotation(declared: DeclaredOption) -> Any:
    """Return the annotation for the option parser; types other than the plain ones are parsed from text later."""
    settings: dict[str, Any] = {"help": declared.option.help}
    if declared.option.least is not None:
        settings["min"] = declared.option.least
    kind = str if declared.option.read is not None else _plain(declared.kind) or str
    flags = () if kind is bool and declared.cli_default is True else (_flag(declared),)
    return Annotated[kind | None if declared.default is None else kind, typer.Option(*flags, **settings)]


def _plain(kind: Any) -> type | None:
    """Return int, bool, float, str or Path if `kind` is one of them (or optional); None for any other type."""
    if typing.get_origin(kind) in (Union, types.UnionType):
        kinds = [k for k in typing.get_args(kind) if k is not type(None)]
        return _plain(kinds[0]) if len(kinds) == 1 else None
    if typing.get_origin(kind) is Literal:
        return str
    return kind if kind in (int, bool, float, str, Path) else None


def _run(question: Question[Any, Any], arguments: dict[str, Any], *, started: float) -> None:
    """Answer a question and print the answer; the command began at `started`, and loading it counts."""
    from m2bridge.families import Model

    # options first: a missing file is an error before a network is recorded
    options = {name: _value(declared, arguments[name]) for name, declared in question.options.items()}
    subject = _subject(question, arguments)
    limits = common.parse_limits(arguments["timeout"], arguments["memory"])
    options |= {"seed": arguments["seed"], "limits": limits, "clock": Clock.of(limits, started)}
    if arguments.get("prime") is not None:
        options["prime"] = arguments["prime"]
    common.check_directories(save=arguments["save"], keep=arguments["keep"])
    form = arguments.get("form")
    as_json = arguments["as_json"]
    if as_json and (arguments["script"] or form is not None):
        raise InputError("--json prints the record: give it without --script and --format")
    if form is not None and form not in question.formats:
        raise InputError(f"--format {form!r} is not one of {', '.join(question.formats)}")
    file = arguments.get("supplement")
    if form is not None or file is not None:  # the defaults for the terminal leave out values that these need
        options |= {
            declared.name: declared.default
            for declared in question.options.values()
            if declared.cli_default != declared.default
        }
    quiet = as_json or arguments["script"] or form is not None
    result = _answer(question, subject, arguments, options, quiet=quiet)

    def show(console: Any) -> None:
        if arguments["script"]:
            typer.echo(script_text(result), nl=False)
        elif form is not None:
            print(result.written(form), end="")
        else:
            title = subject.title if isinstance(subject, Model) else result.title
            show_result(
                result, console, title=title, quantities=question.quantities, evidence=arguments["evidence"]
            )

    try:
        common.finish(result, as_json=as_json, save=arguments["save"], show=show)
    finally:  # last, because an error must not discard the answer
        if file is not None:
            _write_supplement(result, file, limits)


def _write_supplement(result: Result, file: Path, limits: Limits) -> None:
    from m2bridge.report.supplement import supplement

    try:
        file.write_text(supplement(result, limits), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--supplement {file}: {error.strerror}") from None


def script_text(result: Result) -> str:
    """Return the Macaulay2 script that computed the values of the answer, after a heading that describes it."""
    from m2bridge.report.readable_script import readable

    final = result.final_script
    if final is None or final.text is None:
        raise InputError(f"{result.ANALYSIS} used no Macaulay2 script for this answer")
    number = result.scripts.index(final) + 1
    count = len(result.scripts)
    emitted = ", ".join(f"{tag} = {json.dumps(value)}" for tag, value in final.values.items())
    heading = [
        f"m2bridge {result.ANALYSIS} {shorten(result.model, 60)}, seed {result.seed}",
        f"Script {number} of {count}; --save DIRECTORY writes all. Run it with M2 --script FILE.",
        f"It emitted {shorten(emitted, 90)}",
        "A line @m2b NAME VALUE of the output is a result; emit, announce and emitEnd print such lines.",
    ]
    return "".join(f"-- {visible(line)}\n" for line in heading) + readable(final.text)


def _answer(
    question: Question[Any, Any],
    subject: Any,
    arguments: dict[str, Any],
    options: dict[str, Any],
    *,
    quiet: bool,
) -> Any:
    from m2bridge.engine import open_engine
    from m2bridge.engine.discovery import VARIABLE

    if arguments.get("no_engine") and arguments["engine"] is not None:
        raise InputError("give either --engine or --no-engine, not both")
    with ExitStack() as opened:
        engine: Any = False if arguments.get("no_engine") else None
        if engine is None and (arguments["engine"] is not None or os.environ.get(VARIABLE)):
            engine = opened.enter_context(open_engine(arguments["engine"], warm=question.warm))
        progress = opened.enter_context(common.shown_steps(quiet=quiet))
        return question(subject, engine=engine, keep=arguments["keep"], progress=progress, **options)


def _subject(question: Question[Any, Any], arguments: dict[str, Any]) -> Any:
    if question.subject is MODEL:
        return common.model_from(arguments["subject"], *(arguments[name] for name in _LAYER))
    return question.subject.read(arguments["subject"])


def _value(declared: DeclaredOption, value: Any) -> Any:
    if declared.option.read is not None and isinstance(value, str):
        return declared.option.read(value)
    if typing.get_origin(declared.kind) is Literal and value not in typing.get_args(declared.kind):
        choices = ", ".join(map(str, typing.get_args(declared.kind)))
        raise InputError(f"{_flag(declared)} {value!r} is not one of {choices}")
    return value
