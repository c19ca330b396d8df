"""CLI: ``m2bridge schema NAME`` prints the JSON Schema of a command's document."""

from __future__ import annotations

from typing import Annotated

import typer

from m2bridge.cli.common import print_json
from m2bridge.schemas import schema


def register(app: typer.Typer) -> None:
    @app.command("schema")
    def command(
        analysis: Annotated[str, typer.Argument(help="Name of an analysis, e.g. singular-locus.")],
    ) -> None:
        """Print the JSON Schema of what an analysis prints with --json."""
        print_json(schema(analysis))
