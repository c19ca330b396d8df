"""CLI: ``m2bridge worker`` runs jobs read from standard input. The launchers of a batch start it."""

from __future__ import annotations

from typing import Annotated

import typer

from m2bridge.cli import common


def register(app: typer.Typer) -> None:
    @app.command("worker")
    def command(
        engine: common.EngineOption = None,
        parent: Annotated[
            int | None,
            typer.Option(
                "--parent",
                hidden=True,
                help="Process id of the parent; the worker ends when the parent does.",
            ),
        ] = None,
    ) -> None:
        """Read jobs from standard input and write their results to standard output, one JSON object per line.

        A job is {"analysis": ..., "model": ...}, optionally with id, parameters and limits. The worker exits at end of input.

        Example: echo '{"analysis": "dimension", "model": "lightning(d=2,dp=1)"}' | m2bridge worker
        """
        from m2bridge.batch.worker import main

        main(engine, parent)
