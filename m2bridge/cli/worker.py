"""CLI: ``m2bridge worker``: answers jobs from standard input; what every launcher of a batch starts."""

from __future__ import annotations

from typing import Annotated

import typer

from m2bridge.cli import common


def register(app: typer.Typer) -> None:
    @app.command("worker")
    def command(
        engine: common.EngineOption = None,
        parent: Annotated[
            int | None, typer.Option("--parent", hidden=True, help="End with this process, our parent.")
        ] = None,
    ) -> None:
        """Read job documents on standard input, write attempt documents on standard output, one JSON object a line.

        A job is {"analysis": ..., "model": ...}, and may have an id, parameters and limits. The worker ends when its input does.

        Example: echo '{"analysis": "dimension", "model": "lightning(d=2,dp=1)"}' | m2bridge worker
        """
        from m2bridge.batch.worker import main

        main(engine, parent)
