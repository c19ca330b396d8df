"""CLI: ``m2bridge report STORE|RECORDS -o report.html``: records as one page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from m2bridge.batch.store import Store
from m2bridge.errors import InputError, RecordError
from m2bridge.figures.plotting import check_place
from m2bridge.records import from_document, load, scripts_beside, write_atomically
from m2bridge.report.page import Entry, page
from m2bridge.results import Result, altered


def register(app: typer.Typer) -> None:
    @app.command("report")
    def command(
        sources: Annotated[
            list[Path],
            typer.Argument(metavar="STORE|RECORDS...", help="Stores, records, directories of records."),
        ],
        output: Annotated[Path, typer.Option("-o", "--output", help="The page to write.")],
        title: Annotated[str, typer.Option("--title", help="What stands at its top.")] = "m2bridge report",
    ) -> None:
        """Write records as one self-contained HTML page: answers, how each was obtained, scripts, how to cite.

        Example: m2bridge report weekend -o report.html
        """
        check_place(output)
        for source in sources:
            if not source.exists():
                raise InputError(f"there is no {source}: give stores, records or directories of records")
        entries = [entry for source in sources for entry in _entries(source)]
        if not entries:
            raise InputError(f"there is no record in {', '.join(map(str, sources))}")
        text = page(entries, title=title)
        write_atomically(output, text)
        damaged = [entry for entry in entries if entry.damaged]
        typer.echo(f"{output}: {len(entries)} records, {len(text.encode()) / 1e6:.1f} MB")
        for entry in damaged:
            typer.echo(f"damaged: {entry.name}: {entry.trouble}", err=True)


def _entries(source: Path) -> Iterator[Entry]:
    if (source / "store.json").is_file():
        yield from _of_store(Store.open(source))
    elif source.is_dir():
        for path in sorted(source.rglob("*.json")):
            yield _of_file(path)
    else:
        yield _of_file(source)


def _of_file(path: Path) -> Entry:
    try:
        result = scripts_beside(path, load(path))
        version = str(json.loads(path.read_bytes()).get("package_version"))
    except RecordError as error:
        return Entry(name=path.name, trouble=error.message, damaged=True)
    return _entry(path.name, result, version)


def _of_store(store: Store) -> Iterator[Entry]:
    for key in sorted(store.all_keys()):
        try:
            yield _of_record(key, store.read(key))
        except RecordError as error:
            yield Entry(name=key[:12], trouble=error.message, damaged=True)


def _of_record(key: str, record: dict[str, Any] | None) -> Entry:
    if record is None:
        return Entry(name=key[:12], trouble="it is gone", damaged=True)
    if record["result"] is None:
        job = record["job"]
        trouble = f"{record['outcome']}{': ' if record['message'] else ''}{record['message'] or ''}"
        return Entry(name=f"{job['analysis']} {job['model']}", trouble=trouble)
    version = str(record["result"].get("package_version"))
    return _entry(key[:12], from_document(record["result"]), version)


def _entry(name: str, result: Result, version: str) -> Entry:
    """The record, or what is wrong with it."""
    wrong = altered(result)
    if wrong is not None:
        return Entry(name=name, trouble=wrong, damaged=True)
    return Entry(name=name, result=result, version=version)
