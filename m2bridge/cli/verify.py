"""CLI: ``m2bridge verify`` checks the statements of a paper by computation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.cli import common
from m2bridge.engine import open_engine
from m2bridge.errors import InputError, suggestion
from m2bridge.papers import DEFAULT_PAPER, claim, claims_of, papers
from m2bridge.papers.base import CheckContext, Claim, Status, Verdict
from m2bridge.papers.ledger import Ledger, describe, select_sizes, verify
from m2bridge.records import write_atomically
from m2bridge.report import ledger_html, ledger_markdown
from m2bridge.report.ledger import duration, entries_by_claim, verdict_words

_STATUS_COLUMNS = {
    Status.HOLDS: ("green", "holds"),
    Status.FAILS: ("red", "fails"),
    Status.REPAIRED_HOLDS: ("green", "repaired"),
    Status.PROBE_TRUE: ("cyan", "probe +"),
    Status.PROBE_FALSE: ("cyan", "probe -"),
    Status.OUT_OF_REACH: ("yellow", "reach"),
    Status.DISAGREEMENT: ("bold red", "conflict"),
}
"""The colour of each status and the heading of its column."""


def register(app: typer.Typer) -> None:
    @app.command("verify")
    def command(
        claims: Annotated[
            list[str] | None, typer.Argument(help="Claims to check, e.g. theorem-3.4 (default: all).")
        ] = None,
        quick: Annotated[
            bool, typer.Option("--quick", help="Check a subset of the sizes, in under two minutes.")
        ] = False,
        paper: Annotated[
            str, typer.Option("--paper", help=f"Paper whose statements are checked: {', '.join(papers())}.")
        ] = DEFAULT_PAPER,
        max_d: Annotated[
            int | None, typer.Option("--max-d", min=1, help="Skip widths larger than this.")
        ] = None,
        report: Annotated[
            Path | None, typer.Option("--report", help="Write a report to FILE.md or FILE.html.")
        ] = None,
        list_only: Annotated[bool, typer.Option("--list", help="List the claims and exit.")] = False,
        timeout: Annotated[
            str,
            typer.Option(
                "--timeout", help="Time limit of each computation of a check: 90, 90s, 5m, or none."
            ),
        ] = "5m",
        seed: common.SeedOption = 0,
        memory: common.MemoryOption = common.DEFAULT_MEMORY,
        engine: common.EngineOption = None,
        as_json: common.JsonOption = False,
        save: common.SaveOption = None,
    ) -> None:
        """Check the statements of a paper by computation; print an exact counterexample for each that fails.

        Exit code 0 if every verdict equals the recorded one (including statements recorded as false), 6 if one changed.

        Example: m2bridge verify theorem-3.4 --max-d 3
        """
        selected = _select(claims or [], paper)
        if list_only and as_json:
            common.print_json([{"id": item.id, "number": item.number} for item in selected])
            return
        if list_only:
            for item in selected:
                typer.echo(f"{item.id:36} {item.number}")
            return
        if not any(select_sizes(item, quick=quick, max_d=max_d) for item in selected):
            raise InputError(f"--max-d {max_d}: no size to check; all sizes of these claims are larger")
        _check_report(report)
        common.check_directories(save=save)
        limits = common.parse_limits(timeout, memory)
        out = common.console()

        def finished(item: Claim, entry: Verdict) -> None:
            if not as_json:
                out.print(_line(item, entry))

        with common.shown_steps(quiet=as_json) as progress, open_engine(engine, warm=True) as opened:
            context = CheckContext(engine=opened, seed=seed, limits=limits)
            ledger = verify(selected, context, quick=quick, max_d=max_d, progress=progress, finished=finished)
        if report is not None:
            text = ledger_html(ledger) if report.suffix == ".html" else ledger_markdown(ledger)
            write_atomically(report, text)
        common.finish(ledger, as_json=as_json, save=save, show=lambda console: _show(ledger, console))
        if ledger.changed:
            raise typer.Exit(6)


def _select(names: list[str], paper: str) -> tuple[Claim, ...]:
    """Return the claims of a paper with these ids or id prefixes (``theorem-3.4`` selects all its parts)."""
    claims = claims_of(paper.replace("-", "_"))
    if not names:
        return claims
    chosen: list[Claim] = []
    for name in names:
        matching = [item for item in claims if item.id == name or item.id.startswith(f"{name}-")]
        if not matching:
            prefixes = dict.fromkeys(prefix for item in claims for prefix in _prefixes(item.id))
            raise InputError(f"no claim {name!r}; {suggestion(name, tuple(prefixes))} (see verify --list)")
        chosen += matching
    return tuple({item.id: item for item in chosen}.values())


def _prefixes(identifier: str) -> list[str]:
    """Return the prefixes that select a claim: ``theorem-3.4-closed`` is also selected by ``theorem-3.4``."""
    parts = identifier.split("-")
    return ["-".join(parts[:count]) for count in range(min(2, len(parts)), len(parts) + 1)]


def _check_report(report: Path | None) -> None:
    if report is None:
        return
    if report.suffix not in (".md", ".html"):
        raise InputError(f"--report {report}: the file name must end in .md or .html")
    if not report.absolute().parent.is_dir():
        raise InputError(f"--report {report}: the directory does not exist")


def _line(item: Claim, entry: Verdict) -> str:
    colour, _ = _STATUS_COLUMNS[entry.status]
    changed = f" [bold](recorded: {entry.recorded})[/]" if entry.changed else ""
    size = escape(describe(entry.size))
    reason = f"  {escape(entry.reason)}" if entry.status is not Status.HOLDS and entry.reason else ""
    seconds = duration(entry) + ("" if entry.cached else " s")
    return f"[{colour}]{verdict_words(entry)}[/]  {item.id}  {size}  {seconds}{changed}{reason}"


def _show(ledger: Ledger, console: Console) -> None:
    table = Table(title="\nSummary", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("statement")
    for status in Status:
        table.add_column(_STATUS_COLUMNS[status][1], justify="right")
    for name, entries in entries_by_claim(ledger).items():
        counts = [sum(entry.status is status for entry in entries) for status in Status]
        table.add_row(claim(name).number, *(str(n) if n else "" for n in counts))
    console.print(table)
    console.print(f"\n{len(ledger.entries)} checks, {_compared(ledger)}; {ledger.seconds:.0f} s")


def _compared(ledger: Ledger) -> str:
    """Return how many verdicts differ from the recorded ones, and how many are not recorded."""
    changed = len(ledger.changed)
    new = sum(entry.recorded is None for entry in ledger.entries)
    if not changed and not new:
        return "[green]all verdicts equal the recorded ones[/]"
    counts = ((changed, "[bold red]{} changed[/]"), (new, "[yellow]{} not recorded yet[/]"))
    return ", ".join(text.format(count) for count, text in counts if count)
