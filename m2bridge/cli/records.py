"""CLI: the commands that read records (``check``, ``cite``, ``explain``, ``report``), and ``schema``.

Imports are inside the commands; the checker, for example, uses no other module of m2bridge.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from m2bridge import checker
from m2bridge.cli import common
from m2bridge.errors import CertificateError, InputError, RecordError
from m2bridge.records import (
    SCHEMA_VERSION,
    change_of,
    from_document,
    load,
    read_document,
    scripts_beside,
    write_atomically,
)
from m2bridge.results import Result, altered

if TYPE_CHECKING:
    from m2bridge.batch.store import Store
    from m2bridge.report.page import PageEntry

RecordArgument = Annotated[Path, typer.Argument(help="Record written by --save.")]
_COLOUR = {0: "green", 1: "red", 5: "yellow", 7: "red", 8: "yellow", 9: "yellow"}


def register(app: typer.Typer) -> None:  # noqa: C901, PLR0915 -- the commands of the group, defined side by side
    @app.command("explain")
    def explain_command(record: RecordArgument) -> None:
        """Explain a record: the question, the answer, its evidence, and a Macaulay2 script that reproduces it.

        Exit code 7 if the record was altered.

        Example: m2bridge explain records/singular-locus-....json
        """
        from m2bridge.report.explain import explain

        result = scripts_beside(record, _read(record))
        alteration = _alteration(record, result)
        text = explain(result, wrong=alteration)
        _run_checker(record, result, "explained")
        typer.echo(text, nl=False)
        if alteration:
            raise typer.Exit(CertificateError.exit_code)

    @app.command("cite")
    def cite_command(
        record: RecordArgument,
        bibtex: Annotated[bool, typer.Option("--bibtex", help="Print only the BibTeX entries.")] = False,
        latex: Annotated[bool, typer.Option("--latex", help="Print only the sentence.")] = False,
    ) -> None:
        """Print a LaTeX sentence that states the result of a record, and the BibTeX entries that it cites.

        The certificate is verified first; exit code 7 if it is rejected.

        Example: m2bridge cite records/dimension-....json
        """
        from m2bridge.report.cite import bibliography, sentence

        result, version = _read(record), _version(record)
        code, shown = _run_checker(record, result, "cited")
        if alteration := _alteration(record, result):
            raise CertificateError(f"{record.name} is not cited: {alteration}")
        if not bibtex or latex:
            text = sentence(result, version=version, verified=code == 0, shown=shown)
            typer.echo(text, nl=False)
        if not latex or bibtex:
            typer.echo(("" if bibtex else "\n") + bibliography(result, version=version), nl=False)

    @app.command("report")
    def report_command(
        sources: Annotated[
            list[Path],
            typer.Argument(metavar="STORE|RECORDS...", help="Stores, records, or directories of records."),
        ],
        output: Annotated[Path, typer.Option("-o", "--output", help="Output file (HTML).")],
        title: Annotated[str, typer.Option("--title", help="Title of the page.")] = "m2bridge report",
    ) -> None:
        """Write records as one self-contained HTML page: answers, evidence, scripts and citations.

        Unreadable records, and files with a rejected certificate, are listed on the page and on standard error; exit code 2 if
        no record is readable.

        Example: m2bridge report results -o report.html
        """
        from m2bridge.figures.plotting import check_writable
        from m2bridge.report.page import page

        check_writable(output)
        for source in sources:
            if not source.exists():
                raise InputError(f"{source} does not exist: give stores, records or directories of records")
        entries = [entry for source in sources for entry in _entries(source)]
        if not entries:
            raise InputError(f"no record in {', '.join(map(str, sources))}")
        text = page(entries, title=title)
        write_atomically(output, text)
        count = f"{len(entries)} record{'' if len(entries) == 1 else 's'}"
        typer.echo(f"{output}: {count}, {len(text.encode()) / 1e6:.1f} MB")
        unread = [entry for entry in entries if entry.damaged or entry.unknown]
        for entry in unread:
            word = "damaged" if entry.damaged else "unknown"
            typer.echo(f"{word}: {entry.name}: {entry.trouble}", err=True)
        if len(unread) == len(entries):
            raise RecordError(
                f"no record in {', '.join(map(str, sources))} is readable; the page contains no answer"
            )

    @app.command("check")
    def check_command(
        record: Annotated[Path, typer.Argument(help="Record with a certificate, or a certificate.")],
        seconds: Annotated[
            int, typer.Option("--seconds", min=1, max=10**6, help="Limit of CPU time in seconds.")
        ] = checker.MOST_SECONDS,
        as_json: common.JsonOption = False,
    ) -> None:
        """Verify the certificate in a record.

        Exit codes: 0 it shows everything in the first line of the answer; 9 only a part of it; 7 it is rejected; 8 there is no
        certificate, or the checker does not support it; 5 the time limit was reached; 1 the checker failed; 2 no such file.

        The checker uses only the standard library of Python: `python -I checker.py RECORD` does the same. A copy of checker.py
        without checker_families.py verifies statements about the program alone; without checker_further.py, dimensions and
        symmetries of networks without exponentials alone.

        Example: m2bridge check dimension-lightning-d-2-dp-1.json
        """
        if not record.exists() or record.is_dir():  # a pipe is read like a file
            problem = f"{record} is a directory" if record.is_dir() else f"no such file: {record}"
            raise InputError(f"{problem}; give a record written by --save, or a certificate")
        code, messages = verify_file(str(record), seconds)
        if as_json:
            common.print_json(
                {"record": record.name, "verified": code == 0, "exit_code": code, "said": messages}
            )
        else:
            console = common.console()
            for index, line in enumerate(map(escape, messages)):
                console.print(f"[{_COLOUR[code]}]{line}[/]" if index == 0 else line, soft_wrap=True)
        if code:
            raise typer.Exit(code)

    @app.command("schema")
    def schema_command(
        analysis: Annotated[str, typer.Argument(help="Name of a question, e.g. singular-locus.")],
    ) -> None:
        """Print the JSON Schema of the --json output of a question."""
        from m2bridge.schemas import schema

        common.print_json(schema(analysis))


def verify_file(path: str, seconds: int = checker.MOST_SECONDS) -> tuple[int, list[str]]:
    """Return the outcome of the checker for a file, from a separate process with a limit of CPU time, and its messages."""
    command = [sys.executable, "-I", str(checker.__file__), "--seconds", str(seconds), "-"]
    try:
        with Path(path).open("rb") as file:  # also a pipe, which a child process could not open by its name
            data = file.read(checker.MOST_BYTES + 1)
    except OSError:
        return 8, [f"The file {path} cannot be read."]
    if (version := _later_version(data)) is not None:
        return 8, [
            f"Not supported: schema version {version} of records; this m2bridge knows 1 to {SCHEMA_VERSION}."
        ]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode == -signal.SIGKILL:  # one long operation, which the hard limit ended
        stopped = f"Stopped: the check did not end within {seconds} seconds of CPU time"
        return 5, [f"{stopped}; allow more with --seconds {10 * seconds}."]
    if done.returncode in _COLOUR and lines:
        return done.returncode, lines
    return 1, [
        f"The checker failed (exit code {done.returncode}): the record was neither verified nor rejected."
    ]


def _later_version(data: bytes) -> str | None:
    """Return the schema version of a record as text if there is no such version, so that its fields may mean anything."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None  # the checker states what is wrong
    record = document.get("result", document) if isinstance(document, dict) else None
    if not isinstance(record, dict) or "schema_version" not in record:
        return None
    version = record["schema_version"]
    known = type(version) is int and 1 <= version <= SCHEMA_VERSION
    return None if known else checker.printable(json.dumps(version))


def _read(path: Path) -> Result:
    """Load a result from a file and check that it can be displayed."""
    result = load(path)
    try:
        result.view()
    except Exception as error:  # each field has its type, but the values are impossible
        raise RecordError(
            f"{path} contains values that {result.ANALYSIS} cannot produce: {error!r}"
        ) from None
    return result


def _alteration(record: Path, result: Result) -> str | None:
    """Return a message if a record was altered (it is inconsistent, or its digest is wrong), else None."""
    return altered(result) or change_of(read_document(record))


def _run_checker(record: Path, result: Result, verb: str) -> tuple[int, str]:
    """Return the exit code of the checker and what it verified. Raise CertificateError if a certificate is rejected."""
    if not getattr(result, "certificate", None):
        return 8, ""
    code, messages = verify_file(str(record))
    if code == CertificateError.exit_code:
        raise CertificateError(f"{record.name} is not {verb}: {' '.join(messages)}")
    if code not in (0, 9):
        return code, ""
    return code, messages[0].removeprefix("Verified: ").partition(". ")[0].rstrip(".")


def _version(record: Path) -> str:
    """Return the version of m2bridge that computed a record."""
    document = json.loads(record.read_bytes())
    return str((document.get("result") or document).get("package_version"))


def _entries(source: Path) -> Iterator[PageEntry]:
    """Yield an entry for each record of a store, a directory or a file."""
    from m2bridge.batch.store import Store
    from m2bridge.report.page import PageEntry

    readers: dict[str, Callable[[], PageEntry]] = {}
    if (source / "store.json").is_file():
        store = Store.open(source)
        contents = store.contents()
        common.report_unknown_files(contents.strays)
        for key in sorted(contents.keys):
            readers[key[:12]] = partial(_entry_from_store, store, key)
    else:
        for path in sorted(source.rglob("*.json")) if source.is_dir() else [source]:
            readers[str(path)] = partial(_entry_from_file, path)
    for name, read in readers.items():
        try:
            yield read()
        except RecordError as error:
            unknown = bool(error.fields.get("unknown"))
            yield PageEntry(name=Path(name).name, trouble=error.message, damaged=not unknown, unknown=unknown)


def _entry_from_file(path: Path) -> PageEntry:
    if alteration := change_of(read_document(path)):
        raise RecordError(alteration)
    result = scripts_beside(path, _read(path))
    entry = _entry(path.name, result, _version(path))
    try:
        _run_checker(path, result, "shown")
    except CertificateError as error:
        raise RecordError(error.message) from None
    return entry


def _entry_from_store(store: Store, key: str) -> PageEntry:
    from m2bridge.report.page import PageEntry

    record = store.read(key)
    if record is None:
        raise RecordError("the record was removed from the store")
    job = record["job"]
    document = record["result"]
    if document is None:
        trouble = ": ".join(filter(None, (record["outcome"], record["message"])))
        return PageEntry(name=f"{job['analysis']} {job['model']}", trouble=trouble)
    if alteration := change_of(document):
        raise RecordError(alteration)
    version = str(document.get("package_version"))
    return _entry(key[:12], from_document(document), version)


def _entry(name: str, result: Result, version: str) -> PageEntry:
    """Return the page entry of a result. Raise RecordError if it is inconsistent."""
    from m2bridge.report.page import PageEntry

    if alteration := altered(result):
        raise RecordError(alteration)
    return PageEntry(name=name, result=result, version=version)
