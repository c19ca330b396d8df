"""CLI: ``m2bridge results DIR``: the records of a store as a table, CSV or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from m2bridge.batch import tables
from m2bridge.batch.expressions import parse
from m2bridge.batch.rows import read_rows
from m2bridge.batch.store import Store
from m2bridge.cli import common
from m2bridge.errors import InputError, RecordError

_MOST_DAMAGED = 10


def register(app: typer.Typer) -> None:
    @app.command("results")
    def command(
        directory: Annotated[Path, typer.Argument(help="The store of a batch.")],
        where: Annotated[
            str | None,
            typer.Option(
                "--where", help="Which records, e.g. 'analysis == \"dimension\" and image_dim < 9'."
            ),
        ] = None,
        form: Annotated[str, typer.Option("--format", help=f"One of {', '.join(tables.FORMATS)}.")] = "table",
        columns: Annotated[str | None, typer.Option("--columns", help="Names, separated by commas.")] = None,
        limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many records.")] = None,
        full: Annotated[bool, typer.Option("--full", help="With --format json: whole records.")] = False,
        verify: Annotated[
            bool, typer.Option("--verify", help="Fail when a record does not match its checksum.")
        ] = False,
    ) -> None:
        """List what a store holds. Names in --where: columns, the model's arguments, the quantities of the results, tags.

        LaTeX, Parquet and more are written from Python, with pandas: m2bridge.Store(DIR).frame().to_latex().

        Example: m2bridge results weekend --where '"small" in tags and outcome == "complete"' --format csv
        """
        if form not in tables.FORMATS:
            hint = (
                f"; from Python: m2bridge.Store(DIR).frame().to_{form}()"
                if form in ("latex", "parquet")
                else ""
            )
            raise InputError(f"--format {form!r} is not one of {', '.join(tables.FORMATS)}{hint}")
        if full and form != "json":
            raise InputError("--full goes with --format json")
        condition = None if where is None else parse(where)
        store = Store.open(directory)
        found = read_rows(store)
        common.name_strays(found.strays)
        for message in found.damaged if verify else found.damaged[:_MOST_DAMAGED]:
            common.console(stderr=True).print(f"{message}; the next batch computes it again", markup=False)
        if verify and found.damaged:
            raise RecordError(
                f"{len(found.damaged)} records are damaged; the next batch sets them aside and computes them again"
            )
        rows = found.where(condition)[:limit]
        if full:
            common.print_json([store.read(row["key"]) for row in rows])
            return
        names = tables.choose_columns(rows, columns, everything=form in ("csv", "json"))
        if form == "table":
            console = common.console()
            console.print(tables.as_table(rows, names, console.width))
        elif form == "csv":
            print(tables.as_csv(rows, names), end="")
        else:
            print(tables.as_json(rows, names))
