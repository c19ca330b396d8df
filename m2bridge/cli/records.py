"""CLI: the commands that read records: ``check``, ``cite``, ``explain``, ``report``; and ``schema``, how a record looks.

Each imports what it needs when it runs: the checker, for one, needs nothing else of m2bridge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from m2bridge.checker import MOST_SECONDS, verify_file
from m2bridge.cli import common
from m2bridge.errors import CertificateError, InputError, RecordError
from m2bridge.records import change_of, from_document, load, read_document, scripts_beside, write_atomically
from m2bridge.results import Result, altered

if TYPE_CHECKING:
    from m2bridge.batch.store import Store
    from m2bridge.report.page import PageEntry

RecordArgument = Annotated[Path, typer.Argument(help="A record that --save wrote.")]
_COLOUR = {0: "green", 5: "yellow", 7: "red", 8: "yellow", 9: "yellow"}


def register(app: typer.Typer) -> None:
    @app.command("explain")
    def explain_command(
        record: RecordArgument,
        latex: Annotated[bool, typer.Option("--latex", help="LaTeX instead of Markdown.")] = False,
    ) -> None:
        """Explain a record: what was asked, what was found, what it rests on, and a Macaulay2 script that asks again.

        A record that was altered is said to be (exit 7).

        Example: m2bridge explain records/singular-locus-....json
        """
        from m2bridge.report.explain import explain

        result = scripts_beside(record, _read(record))
        wrong = _wrong(record, result)
        text = explain(result, form="latex" if latex else "markdown", wrong=wrong)
        _checked(record, result, "explained")
        typer.echo(text, nl=False)
        if wrong:
            raise typer.Exit(CertificateError.exit_code)

    @app.command("cite")
    def cite_command(
        record: RecordArgument,
        bibtex: Annotated[bool, typer.Option("--bibtex", help="The BibTeX entries alone.")] = False,
        latex: Annotated[bool, typer.Option("--latex", help="The sentence alone.")] = False,
    ) -> None:
        """Cite a record: one LaTeX sentence that says what it holds, and BibTeX for what the sentence names.

        A certificate is verified first; a record whose certificate is rejected is not cited (exit 7).

        Example: m2bridge cite records/dimension-....json
        """
        from m2bridge.report.cite import bibliography, sentence

        result, version = _read(record), _version(record)
        code, shown = _checked(record, result, "cited")
        if wrong := _wrong(record, result):
            raise CertificateError(f"{record.name} is not cited: {wrong}")
        if not bibtex or latex:
            text = sentence(result, version=version, verified=code == 0, shown=shown)
            typer.echo(text, nl=False)
        if not latex or bibtex:
            typer.echo(("" if bibtex else "\n") + bibliography(result, version=version), nl=False)

    @app.command("report")
    def report_command(
        sources: Annotated[
            list[Path],
            typer.Argument(metavar="STORE|RECORDS...", help="Stores, records, directories of records."),
        ],
        output: Annotated[Path, typer.Option("-o", "--output", help="The page to write.")],
        title: Annotated[str, typer.Option("--title", help="What stands at its top.")] = "m2bridge report",
    ) -> None:
        """Write records as one self-contained HTML page: answers, how each was obtained, scripts, how to cite.

        A record that cannot be read is named on the page and on standard error; exit 2 where there is no other.

        Example: m2bridge report weekend -o report.html
        """
        from m2bridge.figures.plotting import check_place
        from m2bridge.report.page import page

        check_place(output)
        for source in sources:
            if not source.exists():
                raise InputError(f"there is no {source}: give stores, records or directories of records")
        entries = [entry for source in sources for entry in _entries(source)]
        if not entries:
            raise InputError(f"there is no record in {', '.join(map(str, sources))}")
        text = page(entries, title=title)
        write_atomically(output, text)
        typer.echo(f"{output}: {len(entries)} records, {len(text.encode()) / 1e6:.1f} MB")
        unread = [entry for entry in entries if entry.damaged or entry.unknown]
        for entry in unread:
            word = "damaged" if entry.damaged else "unknown"
            typer.echo(f"{word}: {entry.name}: {entry.trouble}", err=True)
        if len(unread) == len(entries):
            raise RecordError(
                f"no record in {', '.join(map(str, sources))} can be read: the page shows no answer"
            )

    @app.command("check")
    def check_command(
        record: Annotated[Path, typer.Argument(help="A record with a certificate, or a certificate.")],
        seconds: Annotated[
            int, typer.Option("--seconds", min=1, max=10**6, help="Limit of processor time.")
        ] = MOST_SECONDS,
        as_json: common.JsonOption = False,
    ) -> None:
        """Verify the certificate in a record.

        Exit 0 when it shows all that the first line of the answer says, 9 when only a part of it, 7 when it is rejected, 8 when
        there is no certificate or the checker does not support it, 5 at the time limit, 2 without a file.

        The checker is one file that uses Python's standard library alone: `python -I checker.py RECORD` does the same.

        Example: m2bridge check dimension-lightning-d-2-dp-1.json
        """
        if not record.exists() or record.is_dir():  # a pipe is read like a file
            raise InputError(f"there is no file {record}: give a record that --save wrote, or a certificate")
        code, said = verify_file(str(record), seconds)
        if as_json:
            common.print_json({"record": record.name, "verified": code == 0, "exit_code": code, "said": said})
        else:
            console = common.console()
            for place, line in enumerate(map(escape, said)):
                console.print(f"[{_COLOUR[code]}]{line}[/]" if place == 0 else line, soft_wrap=True)
        if code:
            raise typer.Exit(code)

    @app.command("schema")
    def schema_command(
        analysis: Annotated[str, typer.Argument(help="Name of an analysis, e.g. singular-locus.")],
    ) -> None:
        """Print the JSON Schema of what an analysis prints with --json."""
        from m2bridge.schemas import schema

        common.print_json(schema(analysis))


def _read(path: Path) -> Result:
    """The result in a file, if it can be shown."""
    result = load(path)
    try:
        result.view()
    except Exception as error:  # each field is of its type, but no answer has these values
        raise RecordError(f"{path} holds what {result.ANALYSIS} never writes: {error!r}") from None
    return result


def _wrong(record: Path, result: Result) -> str | None:
    """A sentence where a record was altered: it contradicts itself, or has the digest of another one."""
    return altered(result) or change_of(read_document(record))


def _checked(record: Path, result: Result, verb: str) -> tuple[int, str]:
    """The checker's exit code for a record, and what it verified; a certificate that is rejected is an error."""
    if not getattr(result, "certificate", None):
        return 8, ""
    code, said = verify_file(str(record))
    if code == CertificateError.exit_code:
        raise CertificateError(f"{record.name} is not {verb}: {' '.join(said)}")
    return code, said[0].removeprefix("Verified: ").partition(". ")[0].rstrip(".") if code in (0, 9) else ""


def _version(record: Path) -> str:
    """The version of m2bridge that computed a record."""
    document = json.loads(record.read_bytes())
    return str((document.get("result") or document).get("package_version"))


def _entries(source: Path) -> Iterator[PageEntry]:
    """What a store, a directory or a file holds, each record as it was found."""
    from m2bridge.batch.store import Store
    from m2bridge.report.page import PageEntry

    reads: dict[str, Callable[[], PageEntry]] = {}
    if (source / "store.json").is_file():
        store = Store.open(source)
        contents = store.contents()
        common.name_strays(contents.strays)
        for key in sorted(contents.keys):
            reads[key[:12]] = partial(_of_store, store, key)
    else:
        for path in sorted(source.rglob("*.json")) if source.is_dir() else [source]:
            reads[str(path)] = partial(_of_file, path)
    for name, read in reads.items():
        try:
            yield read()
        except RecordError as error:
            unknown = bool(error.fields.get("unknown"))
            yield PageEntry(name=Path(name).name, trouble=error.message, damaged=not unknown, unknown=unknown)


def _of_file(path: Path) -> PageEntry:
    if wrong := change_of(read_document(path)):
        raise RecordError(wrong)
    return _entry(path.name, scripts_beside(path, _read(path)), _version(path))


def _of_store(store: Store, key: str) -> PageEntry:
    from m2bridge.report.page import PageEntry

    record = store.read(key)
    if record is None:
        raise RecordError("it is gone")
    job, found = record["job"], record["result"]
    if found is None:
        trouble = ": ".join(filter(None, (record["outcome"], record["message"])))
        return PageEntry(name=f"{job['analysis']} {job['model']}", trouble=trouble)
    if wrong := change_of(found):
        raise RecordError(wrong)
    version = str(found.get("package_version"))
    return _entry(key[:12], from_document(found), version)


def _entry(name: str, result: Result, version: str) -> PageEntry:
    """Return the entry of a record."""
    from m2bridge.report.page import PageEntry

    if wrong := altered(result):
        raise RecordError(wrong)
    return PageEntry(name=name, result=result, version=version)
