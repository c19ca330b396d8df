"""CLI: how a result is printed for people: the answer, what was found, what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.results import Certainty, Evidence, Result
from m2bridge.views import Rows, View, cut

_STYLES = {
    "proved": "green", "probable": "yellow", "numeric": "cyan", "singular": "red", "smooth": "blue", "undecided": "yellow",
    "identifiable-up-to-symmetry": "green", "finite-up-to-symmetry": "blue", "open-orbit": "cyan", "not-identifiable": "red",
    "image": "blue", "boundary": "yellow", "closure-only": "magenta", "outside": "red", "fails": "red", "agrees": "green",
}  # fmt: skip
"""Colours of words that stand alone in a cell."""
_RELATION = {"=": "", ">=": "≥ ", "<=": "≤ "}
_AGREEMENT = {
    True: "[green]witnesses agree[/]",
    False: "[bold red]witnesses disagree[/]",
    None: "one witness",
}
_MOST_GROUNDS = 8


def styled(word: str) -> str:
    """A word with its colour, if it has one, as Rich markup."""
    return f"[{_STYLES[word]}]{word}[/]" if word in _STYLES else escape(word)


def show(
    result: Result, console: Console, *, title: str, quantities: Mapping[str, str], evidence: bool
) -> None:
    """Print a result: its answer first, its reasons after."""
    view = result.view()
    console.print(f"[bold]{escape(view.answer)}[/]; {styled(result.certainty.value)}")
    console.print(escape(title), style="dim")
    _print_view(view, console)
    console.print()
    if evidence or result.conflicts:
        console.print(evidence_table(result.evidence))
    else:
        console.print(_grounds(result, quantities))
    if view.to_prove and result.certainty is not Certainty.PROVED:
        console.print(f"to prove it: {view.to_prove}", markup=False)
    console.print(closing_line(result))


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
    lines = [(e, _strongest(e, said)) for e, said in _by_quantity(result.evidence).items() if e in quantities]
    for quantity, items in lines:
        for item in items[:_MOST_GROUNDS]:
            over = f" over F_{item.prime}" if item.prime else ""
            head = f"{quantity} {_RELATION[item.relation]}{cut(item.value)}"
            table.add_row(
                escape(head), escape(f"{item.witness}: {item.method}{over} ({item.certainty.value})")
            )
    others = dict.fromkeys(
        item.quantity.partition(":")[0] for item in result.evidence if item.quantity not in quantities
    )
    if others:
        table.add_row("compared", escape(cut(", ".join(others), 120)))
    silent = (
        dict.fromkeys(e.quantity for e in result.evidence if e.quantity in quantities)
        - dict((quantity, None) for quantity, items in lines if items).keys()
    )
    if silent:
        table.add_row("undecided", escape(", ".join(sorted(silent))))
    return table


def _by_quantity(evidence: Iterable[Evidence]) -> dict[str, list[Evidence]]:
    found: dict[str, list[Evidence]] = {}
    for item in evidence:
        if item.value is not None:
            found.setdefault(item.quantity, []).append(item)
    return found


def _strongest(_: str, items: list[Evidence]) -> list[Evidence]:
    """One statement for each relation and ancestry: the surest, and among bounds the sharpest."""
    order = list(Certainty)
    best: dict[tuple[str, str], Evidence] = {}
    for item in items:
        key = (item.relation, item.stands_on if item.relation == "=" else "")
        if key not in best or _better(item, best[key], order):
            best[key] = item
    return list(best.values())


def _better(item: Evidence, than: Evidence, order: list[Certainty]) -> bool:
    if item.relation != "=" and item.value != than.value and item.certainty == than.certainty:
        return bool(item.value > than.value if item.relation == ">=" else item.value < than.value)
    return order.index(item.certainty) < order.index(than.certainty)


def closing_line(result: Result) -> str:
    """Whether witnesses agree, how sure the answer is, which engine, seed and time; as Rich markup."""
    options = result.options
    over = (
        f"p={options['prime']}, "
        if options.get("prime")
        else f"{options['field']}, "
        if options.get("field")
        else ""
    )
    ground = f"{engine_text(result)}, {over}seed={result.seed}, {result.seconds:.1f} s"
    return f"{_AGREEMENT[result.agreement]}; {styled(result.certainty.value)}; {escape(ground)}"


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


def as_html(value: Any) -> str:
    """A cell's text for HTML."""
    import html

    return html.escape(cut(value, 400))
