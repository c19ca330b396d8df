"""CLI: ``m2bridge results DIR``: the records of a store as a table, CSV, JSON, Parquet or LaTeX."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from m2bridge.batch import listing
from m2bridge.batch.expressions import parse
from m2bridge.batch.index import Index
from m2bridge.batch.listing import fit
from m2bridge.batch.store import Store
from m2bridge.cli import common
from m2bridge.errors import InputError, RecordError


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
        form: Annotated[
            str, typer.Option("--format", help=f"One of {', '.join(listing.FORMATS)}.")
        ] = "table",
        columns: Annotated[str | None, typer.Option("--columns", help="Names, separated by commas.")] = None,
        limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many records.")] = None,
        full: Annotated[bool, typer.Option("--full", help="With --format json: whole records.")] = False,
        verify: Annotated[
            bool, typer.Option("--verify", help="Check the checksum of every record first.")
        ] = False,
    ) -> None:
        """List what a store holds. Names in --where: columns, the model's arguments, the quantities of the results, tags.

        Example: m2bridge results weekend --where '"small" in tags and outcome == "complete"' --format csv
        """
        if form not in listing.FORMATS:
            raise InputError(f"--format {form!r} is not one of {', '.join(listing.FORMATS)}")
        condition = None if where is None else parse(where)
        store = Store.open(directory)
        if verify:
            _verify(store)
        index = Index(store)
        rows = listing.select(index, condition)[:limit]
        for message in index.damaged[:10]:
            common.console(stderr=True).print(f"{message}; the next batch computes it again", markup=False)
        if full:
            if form != "json":
                raise InputError("--full goes with --format json")
            common.print_json([store.read(row["key"]) for row in rows])
            return
        names = listing.choose_columns(rows, columns, everything=form in ("csv", "json", "parquet"))
        if form == "table":
            _print_table(rows, names, asked=columns is not None)
        elif form == "parquet":
            if sys.stdout.isatty():
                raise InputError("--format parquet is not for a terminal; redirect it into a file")
            sys.stdout.buffer.write(listing.as_parquet(rows, names))
        else:
            write = {"csv": listing.as_csv, "json": listing.as_json, "latex": listing.as_latex}[form]
            print(write(rows, names), end="" if form == "csv" else "\n")


def _print_table(rows: list[dict[str, Any]], names: list[str], *, asked: bool) -> None:
    console = common.console()
    fitted = fit(rows, names, console.width, asked=asked)
    console.width = fitted.width
    console.print(fitted.table)
    if fitted.left_out:
        left = ", ".join(fitted.left_out)
        console.print(f"\nno room for: {left}; --columns chooses, --format csv has everything", markup=False)


def _verify(store: Store) -> None:
    """Read every record; complain of those that are damaged."""
    damaged = []
    for key in store.all_keys():
        try:
            store.read(key)
        except RecordError as error:
            damaged.append(error.message)
    if damaged:
        err = common.console(stderr=True)
        for message in damaged:
            err.print(message, markup=False)
        raise RecordError(
            f"{len(damaged)} records are damaged; the next batch sets them aside and computes them again"
        )
