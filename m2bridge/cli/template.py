"""CLI: ``m2bridge template FILE``: run a template of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from m2bridge.cli import common, showing
from m2bridge.engine import open_engine
from m2bridge.models import parse_spec
from m2bridge.questions.custom_template import parse_setting, run_template

_SETTING = "A parameter, name=value, the value in JSON: n=3, n=\\[1,2], n='\"abc\"'; may be repeated."


def register(app: typer.Typer) -> None:
    @app.command("template")
    @common.taking("prime", "seed", "timeout", "memory", "engine", "as_json", "save", "keep", memory="4G")
    def command(
        given: common.Given,
        file: Annotated[
            Path, typer.Argument(help="A .m2.j2 file that you trust: it can do what Macaulay2 can.")
        ],
        settings: Annotated[list[str] | None, typer.Option("--set", help=_SETTING)] = None,
        model: Annotated[
            str | None,
            typer.Option("--model", help="A model whose R, weights and coordinates the script gets."),
        ] = None,
    ) -> None:
        """Run a Macaulay2 template of your own and print the values it emits.

        A template begins with default values, then has the lines `rendered = false;` and `--% include "_params.m2.j2"`, sends
        values with emit("tag", value) and ends with emitEnd(). A tag is a lower-case letter, then lower-case letters, digits and
        underscores.
        """
        parameters = dict(parse_setting(text) for text in settings or [])
        limits = given.limits
        chosen = None if model is None else parse_spec(model)
        with common.Progress(quiet=given.as_json).shown() as progress, open_engine(given.engine) as opened:
            result = run_template(
                file, parameters, model=chosen, prime=given.prime, engine=opened, seed=given.seed, limits=limits,
                keep=given.keep, progress=progress,
            )  # fmt: skip

        def show(console: Console) -> None:
            showing.show(result, console, title=result.title, quantities={}, evidence=False)

        common.finish(result, as_json=given.as_json, save=given.save, show=show)
