"""CLI: print a result: its answer, facts, tables and evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.evidence import ENGINE_FAILED, RELATION_SIGNS, Evidence, by_quantity, strongest
from m2bridge.results import Result
from m2bridge.views import Rows, View, shorten

_STYLES = {
    "proved": "green", "theorem": "green", "computed": "green", "probable": "yellow", "numeric": "cyan",
    "singular": "red", "smooth": "blue", "undecided": "yellow",
    "identifiable-up-to-symmetry": "green", "finite-up-to-symmetry": "blue", "open-orbit": "cyan", "not-identifiable": "red",
    "image": "blue", "boundary": "yellow", "closure-only": "magenta", "outside": "red", "fails": "red", "agrees": "green",
}  # fmt: skip
"""Colours of words that are the whole text of a cell."""
_INDEX_SUFFIX = re.compile(r"(:.*|(?<!=) \(?\d+(,\d+)*\)?)$")
"""Matches the suffix of a quantity name that numbers a point or an orbit."""
_AGREEMENT_STYLES = {True: "green", False: "bold red", None: ""}


def styled(word: str) -> str:
    """Return a word as Rich markup, with its colour if it has one."""
    return f"[{_STYLES[word]}]{word}[/]" if word in _STYLES else escape(word)


def show(
    result: Result, console: Console, *, title: str, quantities: Mapping[str, str], evidence: bool
) -> None:
    """Print a result: the answer, the facts and tables, then the evidence."""
    view = result.view()
    sure = styled(result.sure)
    console.print(f"[bold]{escape(view.answer)}[/]; {sure}")
    console.print(escape(title), style="dim")
    _print_view(view, console)
    console.print()
    if evidence:
        _show_evidence(result, console)
    else:
        console.print(_evidence_summary(result, quantities))
    if not result.certainty.exact:
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
    """Return an empty table without lines with two columns: names, and texts that are wrapped."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _table(rows: Rows) -> Table:
    table = Table(title=rows.title, title_justify="left", show_edge=False, pad_edge=False)
    for index, name in enumerate(rows.columns):
        numbers = rows.cells and rows.has_numbers(index)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows.cells:
        table.add_row(*map(styled, row))
    return table


def _evidence_summary(result: Result, quantities: Mapping[str, str]) -> Table:
    """Return a table of the strongest evidence for each quantity in `quantities`, one row per item."""
    table = grid()
    evidence = by_quantity(result.evidence)
    for name in (name for name in evidence if name in quantities):
        for item in strongest(evidence[name]):
            method = f"{item.witness}: {item.how} ({item.word})"
            table.add_row(escape(f"{name} {_value(item)}"), escape(method))
    others = dict.fromkeys(_INDEX_SUFFIX.sub("", name) for name in evidence if name not in quantities)
    undecided = [name for name in evidence if name in quantities and not strongest(evidence[name])]
    for word, names in (("compared", others), ("undecided", undecided)):
        if names:
            table.add_row(word, escape(", ".join(names)))
    for item in result.evidence:
        if item.value is None and item.method.startswith(ENGINE_FAILED):
            table.add_row("missing", escape(item.method))
    return table


def _value(item: Evidence) -> str:
    if item.value is None:
        return "undecided"
    relation = "" if item.relation == "=" else f"{RELATION_SIGNS[item.relation]} "
    return relation + shorten(item.value)


def closing_line(result: Result, sure: str) -> str:
    """Return the last line as Rich markup: agreement of witnesses, certainty, engine, field, seed and time."""
    prime = result.options.get("prime")
    field = result.options.get("field")
    field_text = f"p={prime}, " if prime else f"{field}, " if field else ""
    provenance = f"{engine_text(result)}, {field_text}seed={result.seed}, {result.seconds:.1f} s"
    agreement = escape(result.agreement_words)
    style = _AGREEMENT_STYLES[result.agreement]
    if style:
        agreement = f"[{style}]{agreement}[/]"
    return f"{agreement}; {sure}; {escape(provenance)}"


def engine_text(result: Result) -> str:
    """Return the Macaulay2 version that a result used, or the reason why it used none."""
    if result.macaulay2:
        return f"Macaulay2 {result.macaulay2}"
    reasons = (item.method for item in result.evidence if item.witness == "macaulay2" and item.value is None)
    reason = next(reasons, "not used")
    if reason.startswith("not used"):
        _, colon, why = reason.partition(": ")
        return f"Macaulay2 not used ({why})" if colon else "Macaulay2 not used"
    return reason.partition(";")[0]


def _show_evidence(result: Result, console: Console) -> None:
    """Print all evidence, grouped by quantity: value, witness, method, certainty and time."""
    console.print("Evidence", style="bold")
    for quantity, items in by_quantity(result.evidence).items():
        word = f" ({result.words[quantity].value})" if quantity in result.words else ""
        console.print(f"{quantity}{word}", style="bold", markup=False)
        table = grid()
        for item in items:
            sure = "" if item.value is None else f"{item.word}, "
            source = f"{item.witness}: {item.how} ({sure}{item.seconds:.2f} s)"
            table.add_row(escape(f"  {_value(item)}"), escape(source))
        console.print(table)
