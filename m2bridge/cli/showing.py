"""CLI: how a result is printed for people: the answer, what was found, what it rests on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.results import Certainty, Evidence, Result, strongest
from m2bridge.views import Rows, View, cut

_STYLES = {
    "proved": "green", "probable": "yellow", "numeric": "cyan", "singular": "red", "smooth": "blue", "undecided": "yellow",
    "identifiable-up-to-symmetry": "green", "finite-up-to-symmetry": "blue", "open-orbit": "cyan", "not-identifiable": "red",
    "image": "blue", "boundary": "yellow", "closure-only": "magenta", "outside": "red", "fails": "red", "agrees": "green",
}  # fmt: skip
"""Colours of words that stand alone in a cell."""
_NUMBERED = re.compile(r"(:.*|(?<!=) \(?\d+(,\d+)*\)?)$")
"""What tells one point or orbit from another in the name of a quantity."""
_RELATION = {"=": "", ">=": "≥ ", "<=": "≤ "}
_AGREEMENT = {
    True: "[green]witnesses agree[/]",
    False: "[bold red]witnesses disagree[/]",
    None: "no second witness",
}


def styled(word: str) -> str:
    """A word with its colour, if it has one, as Rich markup."""
    return f"[{_STYLES[word]}]{word}[/]" if word in _STYLES else escape(word)


def show(
    result: Result, console: Console, *, title: str, quantities: Mapping[str, str], evidence: bool
) -> None:
    """Print a result: its answer first, its reasons after."""
    view = result.view()
    sure = styled(result.certainty.value if view.decided else "undecided")
    console.print(f"[bold]{escape(view.answer)}[/]; {sure}")
    console.print(escape(title), style="dim")
    _print_view(view, console)
    console.print()
    if evidence or result.conflicts:
        console.print(evidence_table(result.evidence))
    else:
        console.print(_grounds(result, quantities))
    if view.to_prove and result.certainty is not Certainty.PROVED:
        console.print(f"to prove it: {view.to_prove}", markup=False)
    console.print(closing_line(result, sure))


def _print_view(view: View, console: Console) -> None:
    if view.facts:
        table = _grid()
        for name, text in view.facts:
            table.add_row(name, styled(text))
        console.print(table)
    for rows in view.tables:
        console.print()
        console.print(_table(rows))
    for note in view.notes:
        console.print(note, markup=False)


def _grid() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _table(rows: Rows) -> Table:
    table = Table(title=rows.title, title_justify="left", show_edge=False, pad_edge=False)
    for place, name in enumerate(rows.columns):
        numbers = all(_is_number(row[place]) for row in rows.cells)
        table.add_column(name, justify="right" if numbers and rows.cells else "left", overflow="fold")
    for row in rows.cells:
        table.add_row(*map(styled, row))
    return table


def _is_number(cell: str) -> bool:
    return cell in ("", "?") or cell.lstrip("-").replace(".", "", 1).isdigit()


def _grounds(result: Result, quantities: Mapping[str, str]) -> Table:
    """What the answer rests on: for each reported quantity its strongest statements, one line each."""
    table = _grid()
    by_quantity: dict[str, list[Evidence]] = {}
    for item in result.evidence:
        by_quantity.setdefault(item.quantity, []).append(item)
    reported = {name: items for name, items in by_quantity.items() if name in quantities}
    for quantity, items in reported.items():
        for item in strongest(items):
            over = f" over F_{item.prime}" if item.prime else ""
            head = f"{quantity} {_RELATION[item.relation]}{cut(item.value)}"
            table.add_row(
                escape(head), escape(f"{item.witness}: {item.method}{over} ({item.certainty.value})")
            )
    others = dict.fromkeys(_NUMBERED.sub("", name) for name in by_quantity if name not in quantities)
    if others:
        table.add_row("compared", escape(", ".join(others)))
    silent = [name for name, items in reported.items() if all(item.value is None for item in items)]
    if silent:
        table.add_row("undecided", escape(", ".join(silent)))
    return table


def closing_line(result: Result, sure: str) -> str:
    """Whether witnesses agree, how sure the answer is, which engine, seed and time; as Rich markup."""
    prime, field = result.options.get("prime"), result.options.get("field")
    over = f"p={prime}, " if prime else f"{field}, " if field else ""
    ground = f"{engine_text(result)}, {over}seed={result.seed}, {result.seconds:.1f} s"
    if result.agreement is None and result.certainty is Certainty.PROVED:
        return f"{sure} without a second witness; {escape(ground)}"
    return f"{_AGREEMENT[result.agreement]}; {sure}; {escape(ground)}"


def engine_text(result: Result) -> str:
    """Which Macaulay2 a result used, or why none."""
    if result.engine and result.scripts:
        return f"Macaulay2 {result.engine.version}"
    silent = (item.method for item in result.evidence if item.witness == "macaulay2" and item.value is None)
    reason = next(silent, "not asked")
    if reason.startswith("not asked"):
        _, colon, why = reason.partition(": ")
        return f"Macaulay2 not asked ({why})" if colon else "Macaulay2 not asked"
    return reason.partition(";")[0]


def evidence_table(evidence: Iterable[Evidence]) -> Table:
    """Every piece of evidence as a row: quantity, value, who says it and how, how sure, how long."""
    table = Table(title="Evidence", title_justify="left", show_edge=False, pad_edge=False)
    for name, justify in (
        ("quantity", "left"),
        ("", "right"),
        ("witness", "left"),
        ("certainty", "left"),
        ("s", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for item in evidence:
        decided = item.value is not None
        over = f" over F_{item.prime}" if item.prime else ""
        table.add_row(
            escape(item.quantity),
            escape(_RELATION[item.relation] + cut(item.value) if decided else "undecided"),
            escape(f"{item.witness}: {item.method}{over}"),
            styled(item.certainty.value) if decided else "",
            f"{item.seconds:.2f}",
        )
    return table
