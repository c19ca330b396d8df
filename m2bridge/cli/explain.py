"""CLI: ``m2bridge explain RECORD`` turns a record into an explanation for a human."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from m2bridge.records import load, scripts_beside
from m2bridge.report.explain import explain


def register(app: typer.Typer) -> None:
    @app.command("explain")
    def command(
        record: Annotated[Path, typer.Argument(help="A record that --save wrote.")],
        latex: Annotated[bool, typer.Option("--latex", help="LaTeX instead of Markdown.")] = False,
    ) -> None:
        """Explain a record: what was asked, what was found, what it rests on, and a Macaulay2 script that asks again.

        Example: m2bridge explain records/singular-locus-....json
        """
        typer.echo(
            explain(scripts_beside(record, load(record)), form="latex" if latex else "markdown"), nl=False
        )
