"""CLI: ``m2bridge template FILE`` runs a user-written Macaulay2 template."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from m2bridge.cli import common
from m2bridge.cli.show import show as show_result
from m2bridge.engine import open_engine
from m2bridge.families import parse_spec
from m2bridge.questions.custom_template import parse_setting, run_template

_SETTING = "Parameter NAME=VALUE with the value in JSON: n=3, n=[1,2], n='\"abc\"'; may be repeated."


def register(app: typer.Typer) -> None:
    @app.command("template")
    def command(
        file: Annotated[
            Path,
            typer.Argument(
                help="Template file (.m2.j2). It is executed by Macaulay2: run only files that you trust."
            ),
        ],
        settings: Annotated[list[str] | None, typer.Option("--set", help=_SETTING)] = None,
        model: Annotated[
            str | None,
            typer.Option("--model", help="Model; the script receives its ring R, weights and coordinates."),
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
        """Run a user-written Macaulay2 template and print the values that it emits.

        A template begins with default values, followed by the line `--% include "_params.m2.j2"`. It
        prints values with emit("tag", value) and ends with emitEnd(). A tag consists of lower-case letters, digits and
        underscores, and begins with a letter.
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
            show_result(result, console, title=result.title, quantities={}, evidence=False)

        common.finish(result, as_json=as_json, save=save, show=show)
