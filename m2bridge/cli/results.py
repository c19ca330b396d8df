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

_MOST_DAMAGED = 10  # damaged records that are listed without --verify


def register(app: typer.Typer) -> None:
    @app.command("results")
    def command(
        directory: Annotated[Path, typer.Argument(help="Directory of the store.")],
        where: Annotated[
            str | None,
            typer.Option(
                "--where",
                help="Condition on the records, e.g. 'analysis == \"dimension\" and image_dim < 9'.",
            ),
        ] = None,
        form: Annotated[str, typer.Option("--format", help=f"One of {', '.join(tables.FORMATS)}.")] = "table",
        columns: Annotated[
            str | None, typer.Option("--columns", help="Columns, separated by commas.")
        ] = None,
        limit: Annotated[
            int | None, typer.Option("--limit", min=1, help="Largest number of records.")
        ] = None,
        full: Annotated[
            bool, typer.Option("--full", help="Print whole records (with --format json).")
        ] = False,
        verify: Annotated[
            bool, typer.Option("--verify", help="Exit with an error if a record does not match its checksum.")
        ] = False,
    ) -> None:
        """List the records of a store as a table, CSV or JSON.

        --where may use the columns, the arguments of the model, the quantities of the results, and tags. For LaTeX, Parquet and
        other formats use pandas in Python: m2bridge.Store(DIR).frame().to_latex().

        Example: m2bridge results results --where '"small" in tags and outcome == "complete"' --format csv
        """
        if form not in tables.FORMATS:
            raise InputError(f"--format {form!r} is not one of {', '.join(tables.FORMATS)}")
        if full and form != "json":
            raise InputError("--full requires --format json")
        condition = None if where is None else parse(where)
        store = Store.open(directory)
        contents = read_rows(store)
        common.report_unknown_files(contents.strays)
        listed = contents.damaged if verify else contents.damaged[:_MOST_DAMAGED]
        for message in listed:
            common.report(f"{message}; a batch that contains this job computes it again")
        if more := len(contents.damaged) - len(listed):
            common.report(f"and {more} more damaged records; --verify lists all")
        if verify and contents.damaged:
            raise RecordError(
                f"{len(contents.damaged)} records are damaged; a batch that contains their jobs moves them aside and computes "
                "them again"
            )
        rows = contents.where(condition)[:limit]
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
