"""CLI: ``m2bridge verify`` runs a paper's statements as programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.claims import PAPERS, claim, claims_of
from m2bridge.claims.base import Claim, Context, Status, Verdict
from m2bridge.claims.ledger import Ledger, describe, select_sizes, verify
from m2bridge.cli import common
from m2bridge.engine import open_engine
from m2bridge.errors import InputError, suggestion
from m2bridge.records import write_atomically
from m2bridge.report import ledger_html, ledger_markdown
from m2bridge.report.ledger import duration, entries_by_claim, verdict_words

_LOOKS = {
    Status.HOLDS: ("green", "holds"),
    Status.FAILS: ("red", "fails"),
    Status.REPAIRED_HOLDS: ("green", "repaired"),
    Status.PROBE_TRUE: ("cyan", "probe +"),
    Status.PROBE_FALSE: ("cyan", "probe -"),
    Status.OUT_OF_REACH: ("yellow", "reach"),
    Status.DISAGREEMENT: ("bold red", "conflict"),
}
"""The colour of each status, and what stands above its column."""


def register(app: typer.Typer) -> None:
    @app.command("verify")
    def command(
        claims: Annotated[
            list[str] | None, typer.Argument(help="Claims to check, e.g. theorem-3.4 (default: all).")
        ] = None,
        quick: Annotated[
            bool, typer.Option("--quick", help="A subset of the sizes, in under two minutes.")
        ] = False,
        paper: Annotated[
            str, typer.Option("--paper", help=f"Whose statements: {', '.join(PAPERS)}.")
        ] = PAPERS[0],
        max_d: Annotated[int | None, typer.Option("--max-d", min=1, help="Leave out larger widths.")] = None,
        report: Annotated[
            Path | None, typer.Option("--report", help="Write a report: FILE.md or FILE.html.")
        ] = None,
        list_only: Annotated[bool, typer.Option("--list", help="List the claims and stop.")] = False,
        timeout: Annotated[
            str,
            typer.Option(
                "--timeout", help="Time limit of each question that a check asks: 90, 90s, 5m, none."
            ),
        ] = "5m",
        seed: common.SeedOption = 0,
        memory: common.MemoryOption = common.DEFAULT_MEMORY,
        engine: common.EngineOption = None,
        as_json: common.JsonOption = False,
        save: common.SaveOption = None,
    ) -> None:
        """Check every statement of the paper by computation, with an exact witness for each that fails.

        Exit 0 when every verdict is the recorded one (a statement that fails as recorded is no surprise), 6 when one changed.

        Example: m2bridge verify theorem-3.4 --max-d 3
        """
        selected = _select(claims or [], paper)
        if list_only:
            for item in selected:
                typer.echo(f"{item.id:36} {item.number}")
            return
        if not any(select_sizes(item, quick=quick, max_d=max_d) for item in selected):
            raise InputError(f"--max-d {max_d} leaves no size to check; the sizes of these claims are larger")
        _check_report(report)
        common.check_directories(save=save)
        limits = common.parse_limits(timeout, memory)
        out = common.console()

        def finished(item: Claim, entry: Verdict) -> None:
            if not as_json:
                out.print(_line(item, entry))

        with common.shown_steps(quiet=as_json) as progress, open_engine(engine, warm=True) as opened:
            context = Context(engine=opened, seed=seed, limits=limits)
            ledger = verify(selected, context, quick=quick, max_d=max_d, progress=progress, finished=finished)
        if report is not None:
            text = ledger_html(ledger) if report.suffix == ".html" else ledger_markdown(ledger)
            write_atomically(report, text)
        common.finish(ledger, as_json=as_json, save=save, show=lambda console: _show(ledger, console))
        if ledger.changed:
            raise typer.Exit(6)


def _select(names: list[str], paper: str) -> tuple[Claim, ...]:
    """Claims of a paper by id, or by the beginning of an id (``theorem-3.4`` takes all its parts)."""
    known = claims_of(paper.replace("-", "_"))
    if not names:
        return known
    chosen: list[Claim] = []
    for name in names:
        found = [item for item in known if item.id == name or item.id.startswith(f"{name}-")]
        if not found:
            parts = dict.fromkeys(part for item in known for part in _beginnings(item.id))
            raise InputError(
                f"there is no claim {name!r}; {suggestion(name, tuple(parts))} (see verify --list)"
            )
        chosen += found
    return tuple({item.id: item for item in chosen}.values())


def _beginnings(identifier: str) -> list[str]:
    """What a claim can be called: ``theorem-3.4-closed`` also answers to ``theorem-3.4``."""
    parts = identifier.split("-")
    return ["-".join(parts[:count]) for count in range(min(2, len(parts)), len(parts) + 1)]


def _check_report(report: Path | None) -> None:
    if report is None:
        return
    if report.suffix not in (".md", ".html"):
        raise InputError(f"--report {report}: the file's ending chooses the format, .md or .html")
    if not report.absolute().parent.is_dir():
        raise InputError(f"--report {report}: there is no such directory; create it first")


def _line(item: Claim, entry: Verdict) -> str:
    colour, _ = _LOOKS[entry.status]
    changed = f" [bold](recorded: {entry.recorded})[/]" if entry.changed else ""
    size = escape(describe(entry.size))
    reason = f"  {escape(entry.reason)}" if entry.status is not Status.HOLDS and entry.reason else ""
    seconds = duration(entry) + ("" if entry.cached else " s")
    return f"[{colour}]{verdict_words(entry)}[/]  {item.id}  {size}  {seconds}{changed}{reason}"


def _show(ledger: Ledger, console: Console) -> None:
    table = Table(title="\nSummary", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("statement")
    for status in Status:
        table.add_column(_LOOKS[status][1], justify="right")
    for name, entries in entries_by_claim(ledger).items():
        counts = [sum(entry.status is status for entry in entries) for status in Status]
        table.add_row(claim(name).number, *(str(n) if n else "" for n in counts))
    console.print(table)
    console.print(f"\n{len(ledger.entries)} checks, {_compared(ledger)}; {ledger.seconds:.0f} s")


def _compared(ledger: Ledger) -> str:
    """How the verdicts compare with the recorded ones, where there are any."""
    changed, new = len(ledger.changed), sum(entry.recorded is None for entry in ledger.entries)
    if not changed and not new:
        return "[green]every verdict is the recorded one[/]"
    counts = ((changed, "[bold red]{} changed[/]"), (new, "[yellow]{} not recorded yet[/]"))
    return ", ".join(text.format(count) for count, text in counts if count)
