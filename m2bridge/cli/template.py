"""CLI: ``m2bridge template FILE``: run a template of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from m2bridge.cli import common
from m2bridge.engine import open_engine
from m2bridge.families import parse_spec
from m2bridge.questions.custom_template import parse_setting, run_template

_SETTING = "A parameter, name=value, the value in JSON: n=3, n=[1,2], n='\"abc\"'; may be repeated."


def register(app: typer.Typer) -> None:
    @app.command("template")
    def command(
        file: Annotated[
            Path, typer.Argument(help="A .m2.j2 file that you trust: it can do what Macaulay2 can.")
        ],
        settings: Annotated[list[str] | None, typer.Option("--set", help=_SETTING)] = None,
        model: Annotated[
            str | None,
            typer.Option("--model", help="A model whose R, weights and coordinates the script gets."),
        ] = None,
        prime: common.PrimeOption = None,
        seed: common.SeedOption = 0,
        timeout: common.TimeoutOption = common.DEFAULT_TIMEOUT,
        memory: common.MemoryOption = common.DEFAULT_MEMORY,
        engine: common.EngineOption = None,
        as_json: common.JsonOption = False,
        save: common.SaveOption = None,
        keep: common.KeepOption = None,
    ) -> None:
        """Run a Macaulay2 template of your own and print the values it emits.

        A template begins with default values, then has the lines `rendered = false;` and `--% include "_params.m2.j2"`, sends
        values with emit("tag", value) and ends with emitEnd(). A tag is a lower-case letter, then lower-case letters, digits and
        underscores.
        """
        common.check_directories(save=save, keep=keep)
        parameters = dict(parse_setting(text) for text in settings or [])
        limits = common.parse_limits(timeout, memory)
        chosen = None if model is None else parse_spec(model)
        with common.shown_steps(quiet=as_json) as progress, open_engine(engine) as opened:
            result = run_template(
                file, parameters, model=chosen, prime=prime, engine=opened, seed=seed, limits=limits, keep=keep,
                progress=progress,
            )  # fmt: skip

        def show(console: Console) -> None:
            common.show(result, console, title=result.title, quantities={}, evidence=False)

        common.finish(result, as_json=as_json, save=save, show=show)
