"""CLI: how a result is printed for people: the answer, what was found, what it rests on."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.results import RELATION_SIGNS, Certainty, Evidence, Result, by_quantity, strongest
from m2bridge.views import Rows, View, cut

_STYLES = {
    "proved": "green", "probable": "yellow", "numeric": "cyan", "singular": "red", "smooth": "blue", "undecided": "yellow",
    "identifiable-up-to-symmetry": "green", "finite-up-to-symmetry": "blue", "open-orbit": "cyan", "not-identifiable": "red",
    "image": "blue", "boundary": "yellow", "closure-only": "magenta", "outside": "red", "fails": "red", "agrees": "green",
}  # fmt: skip
"""Colours of words that stand alone in a cell."""
_NUMBERED = re.compile(r"(:.*|(?<!=) \(?\d+(,\d+)*\)?)$")
"""What tells one point or orbit from another in the name of a quantity."""
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
    sure = styled(result.sure)
    console.print(f"[bold]{escape(view.answer)}[/]; {sure}")
    console.print(escape(title), style="dim")
    _print_view(view, console)
    console.print()
    if evidence or result.conflicts:
        _show_evidence(result, console)
    else:
        console.print(_grounds(result, quantities))
    if result.certainty is not Certainty.PROVED:
        console.print(f"to prove it: {view.to_prove}", markup=False)
    console.print(closing_line(result, sure))


def _print_view(view: View, console: Console) -> None:
    if view.facts:
        table = grid()
        for name, text in view.facts:
            table.add_row(name, styled(text))
        console.print(table)
    for rows in view.tables:
        console.print()
        console.print(_table(rows))
    for note in view.notes:
        console.print(note, markup=False)


def grid() -> Table:
    """A table of two columns without lines: names, and texts that are folded."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _table(rows: Rows) -> Table:
    table = Table(title=rows.title, title_justify="left", show_edge=False, pad_edge=False)
    for place, name in enumerate(rows.columns):
        numbers = rows.cells and rows.has_numbers(place)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows.cells:
        table.add_row(*map(styled, row))
    return table


def _grounds(result: Result, quantities: Mapping[str, str]) -> Table:
    """What the answer rests on: for each reported quantity its strongest statements, one line each."""
    table = grid()
    said = by_quantity(result.evidence)
    for name in (name for name in said if name in quantities):
        for item in strongest(said[name]):
            how = f"{item.witness}: {item.how} ({item.certainty.value})"
            table.add_row(escape(f"{name} {_value(item)}"), escape(how))
    others = dict.fromkeys(_NUMBERED.sub("", name) for name in said if name not in quantities)
    silent = [name for name in said if name in quantities and not strongest(said[name])]
    for word, names in (("compared", others), ("undecided", silent)):
        if names:
            table.add_row(word, escape(", ".join(names)))
    return table


def _value(item: Evidence) -> str:
    if item.value is None:
        return "undecided"
    return ("" if item.relation == "=" else f"{RELATION_SIGNS[item.relation]} ") + cut(item.value)


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
    if result.macaulay2:
        return f"Macaulay2 {result.macaulay2}"
    silent = (item.method for item in result.evidence if item.witness == "macaulay2" and item.value is None)
    reason = next(silent, "not asked")
    if reason.startswith("not asked"):
        _, colon, why = reason.partition(": ")
        return f"Macaulay2 not asked ({why})" if colon else "Macaulay2 not asked"
    return reason.partition(";")[0]


def _show_evidence(result: Result, console: Console) -> None:
    """Every piece of evidence, quantity by quantity: value, who says it and how, how sure, how long."""
    console.print("Evidence", style="bold")
    for quantity, items in by_quantity(result.evidence).items():
        console.print(quantity, style="bold", markup=False)
        table = grid()
        for item in items:
            sure = "" if item.value is None else f"{item.certainty.value}, "
            said = f"{item.witness}: {item.how} ({sure}{item.seconds:.2f} s)"
            table.add_row(escape(f"  {_value(item)}"), escape(said))
        console.print(table)
