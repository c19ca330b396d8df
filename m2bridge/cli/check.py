"""CLI: ``m2bridge check`` runs the stand-alone checker, ``m2bridge/checker.py``, on a record or a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from m2bridge.checker import verify_file
from m2bridge.cli import common

_COLOUR = {0: "green", 7: "red", 8: "yellow"}


def register(app: typer.Typer) -> None:
    @app.command("check")
    def command(
        record: Annotated[Path, typer.Argument(help="A record with a certificate, or a certificate.")],
        as_json: common.JsonOption = False,
    ) -> None:
        """Verify the certificate in a record; exit 7 when it is rejected, 8 when nothing is proved or known.

        The checker is one file that uses Python's standard library alone: `python -I checker.py RECORD` does the same.

        Example: m2bridge check dimension-lightning-d-2-dp-1.json
        """
        code, said = verify_file(str(record))
        if as_json:
            common.print_json({"record": record.name, "verified": code == 0, "exit_code": code, "said": said})
        else:
            first, *rest = said
            console = common.console()
            console.print(f"[{_COLOUR[code]}]{escape(first)}[/]", highlight=False, soft_wrap=True)
            for line in rest:
                console.print(escape(line), highlight=False, soft_wrap=True)
        if code:
            raise typer.Exit(code)
