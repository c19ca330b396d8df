"""CLI: the command of a question, made from its declaration. No question has a command module of its own."""

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
from m2bridge.errors import InputError, visible
from m2bridge.questions import SPEC, OwnOption, find
from m2bridge.results import Result
from m2bridge.views import cut

if TYPE_CHECKING:
    from m2bridge.questions.kernel import Question

_LAYER = ("d", "dp", "a", "t")
_COMMON = ("seed", "timeout", "memory", "engine", "as_json", "save", "keep", "evidence", "script")


def register(app: typer.Typer, name: str) -> None:
    """Add the command of the question of this name."""
    question = find(name)

    def command(**given: Any) -> None:
        _run(question, given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    listed = [
        inspect.Parameter(name, keyword, annotation=kind, default=default)
        for name, (kind, default) in _parameters(question).items()
    ]
    command.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in listed}
    example = f"\n\nExample: {question.example}" if question.example else ""
    app.command(question.name, help=question.asks + example)(command)


def _parameters(question: Question[Any, Any]) -> dict[str, tuple[Any, Any]]:
    """What the command takes: annotation and default of each."""
    about = question.subject
    model = about.help == SPEC.help
    kind: Any = str | None if model else str
    argument: Any = Annotated[kind, typer.Argument(metavar=about.metavar, help=about.help)]
    found = {"subject": (argument, None if model else inspect.Parameter.empty)}
    found |= {name: common.OPTIONS[name] for name in (_LAYER if model else ())}
    found |= {own.name: (_annotation(own), own.unasked) for own in question.options.values()}
    shared = ["prime"] * question.takes_prime + ["no_engine"] * (not question.needs_engine)
    found |= {name: common.OPTIONS[name] for name in shared}
    if question.formats:
        words = f"Print only this text: {', '.join(question.formats)}."
        found["form"] = (Annotated[str | None, typer.Option("--format", help=words)], None)
    return found | {name: common.OPTIONS[name] for name in _COMMON}


def _flag(own: OwnOption) -> str:
    return own.option.flag or f"--{own.name.replace('_', '-')}"


def _annotation(own: OwnOption) -> Any:
    """What the option parser needs: plain types; everything else is read from text."""
    words: dict[str, Any] = {"help": own.option.help}
    if own.option.least is not None:
        words["min"] = own.option.least
    kind = str if own.option.read is not None else _plain(own.kind) or str
    flags = () if kind is bool and own.unasked is True else (_flag(own),)
    return Annotated[kind | None if own.default is None else kind, typer.Option(*flags, **words)]


def _plain(kind: Any) -> type | None:
    """int, bool, float, str or Path where the option is one of them or None; None for any other type."""
    if typing.get_origin(kind) in (Union, types.UnionType):
        kinds = [k for k in typing.get_args(kind) if k is not type(None)]
        return _plain(kinds[0]) if len(kinds) == 1 else None
    if typing.get_origin(kind) is Literal:
        return str
    return kind if kind in (int, bool, float, str, Path) else None


def _run(question: Question[Any, Any], given: dict[str, Any]) -> None:
    from m2bridge.families import Model

    subject = _subject(question, given)
    options = {name: _value(own, given[name]) for name, own in question.options.items()}
    options |= {"seed": given["seed"], "limits": common.parse_limits(given["timeout"], given["memory"])}
    if given.get("prime") is not None:
        options["prime"] = given["prime"]
    common.check_directories(save=given["save"], keep=given["keep"])
    form = given.get("form")
    if form is not None and form not in question.formats:
        raise InputError(f"--format {form!r} is not one of {', '.join(question.formats)}")
    if form is not None:  # another text needs what a person is spared
        options |= {own.name: own.default for own in question.options.values() if own.unasked != own.default}
    quiet = given["as_json"] or given["script"] or form is not None
    result = _answered(question, subject, given, options, quiet=quiet)
    if given["script"]:
        typer.echo(script_text(result), nl=False)
        return

    def show(console: Any) -> None:
        if form is not None:
            print(result.written(form), end="")
        else:
            title = subject.title if isinstance(subject, Model) else result.title
            common.show(
                result, console, title=title, quantities=question.quantities, evidence=given["evidence"]
            )

    common.finish(result, as_json=given["as_json"], save=given["save"], show=show)


def script_text(result: Result) -> str:
    """Return the Macaulay2 script whose values are those of the answer, under lines that say what it is."""
    final = result.final_script
    if final is None or final.text is None:
        raise InputError(f"{result.ANALYSIS} needed no Macaulay2 script for this answer")
    number = result.scripts.index(final) + 1
    count = len(result.scripts)
    emitted = ", ".join(f"{tag} = {json.dumps(value)}" for tag, value in final.values.items())
    heading = [
        f"m2bridge {result.ANALYSIS} {cut(result.model, 60)}, seed {result.seed}",
        f"Script {number} of {count}; --save DIRECTORY writes all. Run it with M2 --script FILE.",
        f"It emitted {cut(emitted, 90)}",
    ]
    return "".join(f"-- {visible(line)}\n" for line in heading) + final.text


def _answered(
    question: Question[Any, Any], subject: Any, given: dict[str, Any], options: dict[str, Any], *, quiet: bool
) -> Any:
    from m2bridge.engine import open_engine
    from m2bridge.engine.discovery import VARIABLE

    if given.get("no_engine") and given["engine"] is not None:
        raise InputError("give either --engine or --no-engine, not both")
    with ExitStack() as opened:
        engine: Any = False if given.get("no_engine") else None
        if engine is None and (given["engine"] is not None or os.environ.get(VARIABLE)):
            engine = opened.enter_context(open_engine(given["engine"], warm=question.warm))
        progress = opened.enter_context(common.shown_steps(quiet=quiet))
        return question(subject, engine=engine, keep=given["keep"], progress=progress, **options)


def _subject(question: Question[Any, Any], given: dict[str, Any]) -> Any:
    if question.subject.help == SPEC.help:
        return common.model_from(given["subject"], *(given[name] for name in _LAYER))
    return question.subject.read(given["subject"])


def _value(own: OwnOption, value: Any) -> Any:
    if own.option.read is not None and isinstance(value, str):
        return own.option.read(value)
    if typing.get_origin(own.kind) is Literal and value not in typing.get_args(own.kind):
        known = ", ".join(map(str, typing.get_args(own.kind)))
        raise InputError(f"{_flag(own)} {value!r} is not one of {known}")
    return value
