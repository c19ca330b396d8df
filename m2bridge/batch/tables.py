"""Format the rows of a store as a table for a terminal, as CSV or as JSON. :meth:`Store.frame` returns a DataFrame."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from m2bridge.batch.rows import COLUMNS
from m2bridge.errors import InputError, visible

FORMATS = ("table", "csv", "json")
_FIRST = ("analysis", "model", "field", "seed", "outcome")
_LAST = ("certainty", "seconds")
_QUANTITIES = ("image_dim", "generic_fiber_dim", "codim", "degree", "singular_dim", "boundary_dim")
"""The quantities that a table shows first, if the records have them."""
_NOT_QUANTITIES = frozenset(
    {"schema_version", "analysis_version", "peak_memory_bytes", "key", *COLUMNS, *_FIRST, *_LAST}
)
_MOST_QUANTITIES = 3  # columns of a table that fits into a terminal
_MOST_EMITTED = 6  # columns for the values of a template, which has no declared quantities
_LONGEST_UNFOLDED, _LEAST_FOLDED, _GAP = 20, 8, 3
"""If a table is too wide, columns with cells longer than the first number are folded first, down to the second number; the
third is the space between columns."""


def choose_columns(rows: Sequence[dict[str, Any]], wanted: str | None, *, everything: bool) -> list[str]:
    """Return the columns to print: `wanted`; else all if `everything`; else question, main quantities and certainty."""
    available = dict.fromkeys(name for row in rows for name in row)
    if wanted is not None:
        names = [name.strip() for name in wanted.split(",") if name.strip()]
        unknown = [name for name in names if available and name not in available]
        if unknown:
            columns = ", ".join(sorted(available))
            raise InputError(f"--columns: no record has {', '.join(unknown)}; the columns are: {columns}")
        return names
    if everything:
        return [*_FIRST, *(name for name in available if name not in _FIRST)]
    count = Counter(name for row in rows for name in _main_quantities(row))
    most = _MOST_QUANTITIES if count.keys() <= set(_QUANTITIES) else _MOST_EMITTED
    quantities = [name for name, _ in count.most_common(most)]
    quantities.sort(key=list(available).index)
    first = [name for name in _FIRST if name not in ("field", "seed") or _distinguishes(rows, name)]
    return [*first, *quantities, *_LAST]


def _main_quantities(row: dict[str, Any]) -> list[str]:
    """Return the names of the quantities that a table shows of a row: the usual ones, or if it has none all integers."""
    hidden = _NOT_QUANTITIES | _arguments(row)
    integers = [name for name, value in row.items() if type(value) is int and name not in hidden]
    return [name for name in integers if name in _QUANTITIES] or integers


def _distinguishes(rows: Sequence[dict[str, Any]], name: str) -> bool:
    """Return whether there are rows with the same analysis and model but different values of a parameter."""
    seen: dict[tuple[str, str], Any] = {}
    return any(
        seen.setdefault((row["analysis"], row["model"]), row.get(name)) != row.get(name) for row in rows
    )


def _arguments(row: dict[str, Any]) -> set[str]:
    """Return the names of the arguments in the model's spec, which the model column contains."""
    _, _, arguments = row["model"].partition("(")
    return {argument.partition("=")[0].strip(" )") for argument in arguments.split(",")}


def as_table(rows: Sequence[dict[str, Any]], columns: Sequence[str], width: int) -> Table:
    """Make a table. If it is too wide, long cells are folded first, then short ones; no text is truncated."""
    widest = {name: max((len(_shown(row, name)) for row in rows), default=0) for name in columns}
    short = {name for name in columns if widest[name] <= _LONGEST_UNFOLDED}
    least = sum(max(widest[name], *map(len, name.split("_"))) for name in short)
    least += _LEAST_FOLDED * (len(columns) - len(short)) + _GAP * (len(columns) - 1)
    table = Table(show_edge=False, pad_edge=False)
    for name in columns:
        numbers = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(
            "\n".join(name.split("_")),
            justify="right" if numbers else "left",
            no_wrap=name in short and least <= width,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(_shown(row, name)) for name in columns))
    return table


def _shown(row: dict[str, Any], name: str) -> str:
    """Return the text of a cell; a user-defined network is shown by its name, if it has one."""
    value = row.get("name") or row.get("model") if name == "model" else row.get(name)
    return text_of(value)


def text_of(value: Any) -> str:
    """Format a value: an empty string for None, yes or no for a flag, two decimals for a float."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    return visible(" ".join(map(str, value)) if isinstance(value, list) else str(value))


def as_csv(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> str:
    """Return CSV with a header; None is an empty cell, lists are JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_csv_cell(row.get(name)) for name in columns])
    return out.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool | list | dict):
        return json.dumps(value)
    return visible(value) if isinstance(value, str) else value


def as_json(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> str:
    """Return a JSON array with one object per row."""
    return json.dumps([{name: row.get(name) for name in columns} for row in rows], indent=1)
