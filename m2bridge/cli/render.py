"""CLI: ``m2bridge render`` prints the Macaulay2 script of a question, ready to be run by hand."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Annotated

import typer

import m2bridge.questions
from m2bridge.cli import common
from m2bridge.cli.layer import model_from
from m2bridge.errors import InputError


def register(app: typer.Typer) -> None:
    @app.command("render")
    def command(
        analysis: Annotated[str, typer.Argument(help="Name of an analysis, e.g. singular-locus.")],
        spec: Annotated[str | None, typer.Argument(help="A model, e.g. 'lightning(d=2,dp=1)'.")] = None,
        d: common.DOption = None,
        dp: common.DpOption = None,
        a: common.AOption = None,
        t: common.TOption = None,
        prime: Annotated[
            int | None,
            typer.Option(
                "--prime", help="Characteristic of the finite field (default: that of the question)."
            ),
        ] = None,
        seed: common.SeedOption = 0,
    ) -> None:
        """Print the Macaulay2 script that an analysis runs; `M2 --script FILE` gives the same lines.

        For fiber that is the first script, at a random point; for closure, the script of --method kernel.

        Example: m2bridge render singular-locus --d 2 --dp 1 > script.m2
        """
        makers = script_makers()
        if analysis not in makers:
            known = ", ".join(sorted(makers))
            raise InputError(
                f"there is no script for {analysis!r}; there are: {known}; other questions leave theirs with --keep DIRECTORY"
            )
        module = importlib.import_module(makers[analysis])
        chosen = {} if prime is None else {"prime": prime}
        typer.echo(module.script(model_from(spec, d, dp, a, t), seed=seed, **chosen).text, nl=False)


def script_makers() -> dict[str, str]:
    """Analyses whose module has a function ``script(model, *, prime, seed)``, by their name on the command line."""
    modules = (f"m2bridge.questions.{m.name}" for m in pkgutil.iter_modules(m2bridge.questions.__path__))
    named = {name.rpartition(".")[2].replace("_", "-"): name for name in modules}
    return {
        name: module for name, module in named.items() if hasattr(importlib.import_module(module), "script")
    }
