"""Batch: rows of the index become a table that fits a terminal, CSV, JSON, Parquet or LaTeX.

In a table, what finds no room is named, never cut off.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from m2bridge.batch.expressions import Expression
from m2bridge.batch.index import COLUMNS, Index
from m2bridge.errors import InputError, visible
from m2bridge.latex import escaped

FORMATS = ("table", "csv", "json", "parquet", "latex")
_FIRST = ("analysis", "model", "prime", "seed", "outcome")
_LAST = ("certainty", "seconds")
_QUANTITIES = ("image_dim", "generic_fiber_dim", "codim", "degree", "singular_dim", "boundary_dim")
"""Shown first in a table, where records have them."""
_NOT_QUANTITIES = frozenset(
    {"schema_version", "analysis_version", "peak_memory_bytes", "key", *COLUMNS, *_FIRST, *_LAST}
)
_MOST_QUANTITIES = 3
_GAP = 3
_LEAST_ROOM = 20
"""A model or a sentence gets so many columns, if it needs them, before another column is left out."""
_ESSENTIAL = ("analysis", "model", "prime", "seed", "outcome", "certainty")
_PIECE = re.compile(r"[^,;(\[]*(?:\[[^\]]*\]?)?[,;(]?")


def select(index: Index, where: Expression | None) -> list[dict[str, Any]]:
    """The rows of which an expression holds, in the order of the questions."""
    found, known = [], dict[str, None]()
    for row in index.rows():
        known.update(dict.fromkeys(row))
        if where is None or where.holds(row):
            found.append(row)
    _refuse_unknown("--where", sorted(where.names) if where else (), known)
    return sorted(found, key=_place)


def _place(row: dict[str, Any]) -> list[tuple[bool, Any]]:
    """What rows are sorted by; what is not known comes first."""
    names = ("analysis", "size", "model", "prime", "seed", "key")
    return [(row[name] is not None, row[name]) for name in names]


def _refuse_unknown(option: str, names: Sequence[str], known: Iterable[str]) -> None:
    """Refuse names that no record has; where there are no records, none is known to be wrong."""
    there = sorted(known)
    if there and (unknown := [name for name in names if name not in there]):
        raise InputError(f"{option}: no record has {', '.join(unknown)}; there are: {', '.join(there)}")


def choose_columns(rows: Sequence[dict[str, Any]], wanted: str | None, *, everything: bool) -> list[str]:
    """The columns to print: those asked for; else all that occur, or the question, its main quantities and how sure they are."""
    known = dict.fromkeys(name for row in rows for name in row)
    if wanted is not None:
        names = [name.strip() for name in wanted.split(",") if name.strip()]
        _refuse_unknown("--columns", names, known)
        return names
    if everything:
        return [*_FIRST, *(name for name in known if name not in _FIRST)]
    count: Counter[str] = Counter()
    for row in rows:
        count.update(name for name, value in row.items() if type(value) is int and name in _QUANTITIES)
    if not count:
        for row in rows:
            hidden = _NOT_QUANTITIES | _arguments(row)
            count.update(name for name, value in row.items() if type(value) is int and name not in hidden)
    quantities = [name for name, _ in count.most_common(_MOST_QUANTITIES)]
    quantities.sort(key=list(known).index)
    first = [name for name in _FIRST if name not in ("prime", "seed") or _distinguishes(rows, name)]
    return [*first, *quantities, *_LAST]


def _distinguishes(rows: Sequence[dict[str, Any]], name: str) -> bool:
    """Whether some model was asked the same with several values of a parameter."""
    seen: dict[tuple[str, str], Any] = {}
    return any(seen.setdefault((row["analysis"], row["model"]), row[name]) != row[name] for row in rows)


def _arguments(row: dict[str, Any]) -> set[str]:
    """Names in the model's spec, which the model column shows already."""
    _, _, rest = row["model"].partition("(")
    return {part.partition("=")[0].strip(" )") for part in rest.split(",")}


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table, the width it needs (more than there is only where its columns were asked for), and the columns left out."""

    table: Table
    width: int
    left_out: tuple[str, ...]


def fit(rows: Sequence[dict[str, Any]], columns: Sequence[str], width: int, *, asked: bool) -> Fitted:
    """A table of these columns in `width`; the model is folded last, and between its arguments.

    Unless they were `asked` for, columns that are empty everywhere are dropped, and the least important where there is no room.
    """
    cells = {name: [text_of(row.get(name)) for row in rows] for name in columns}
    if "model" in cells:  # a network of one's own is known by its name, where it has one
        cells["model"] = [text_of(row.get("name") or row.get("model")) for row in rows]
    shown = list(columns) if asked or not rows else [name for name in columns if any(cells[name])]
    words = {name for name in shown if any(isinstance(row.get(name), (str, list)) for row in rows)}
    least = {name: _least(name, cells[name]) for name in shown}
    extra = [] if asked else [name for name in shown if name not in _ESSENTIAL]
    left_out = []
    while extra and _total(least, shown) > width:
        left_out.append(extra.pop())
        shown.remove(left_out[-1])
    widths = _widths(least, cells, shown, width)
    if "model" in shown:
        cells["model"] = [_folded(text, widths["model"]) for text in cells["model"]]
    table = Table(show_edge=False, pad_edge=False)
    for name in shown:
        justify: Any = "left" if name in words or name in _ESSENTIAL else "right"
        table.add_column(name.replace("_", " "), justify=justify, width=widths[name], overflow="fold")
    for number in range(len(rows)):
        table.add_row(*(escape(cells[name][number]) for name in shown))
    return Fitted(table, max(width, _total(widths, shown)), tuple(reversed(left_out)))


def _widths(
    least: dict[str, int], cells: dict[str, list[str]], shown: Sequence[str], width: int
) -> dict[str, int]:
    """The width of each column: what it cannot do without, and what room there is for all of it, the model first."""
    spare = max(0, width - _total(least, shown))
    widths = {}
    for name in sorted(shown, key=lambda name: name != "model"):
        whole = max(len(name), *map(len, cells[name]), least[name])
        more = min(spare, whole - least[name])
        widths[name], spare = least[name] + more, spare - more
    return widths


def _total(least: dict[str, int], shown: Sequence[str]) -> int:
    return sum(least[name] for name in shown) + _GAP * (len(shown) - 1)


def _least(name: str, texts: Sequence[str]) -> int:
    """The width below which a column cannot be read: its longest cell, unless that can be folded."""
    longest = max(map(len, texts), default=0)
    if name == "model" or any(" " in text for text in texts):
        longest = min(longest, _LEAST_ROOM)
    return max(longest, *map(len, name.split("_")))


def _folded(text: str, width: int) -> str:
    """Lines of at most `width`, broken between the arguments where possible.

    >>> _folded("mlp(widths=[2,3,2],r=2)", 19).split(chr(10))
    ['mlp(widths=[2,3,2],', 'r=2)']
    """
    lines = [""]
    for piece in _PIECE.findall(text):
        if len(lines[-1] + piece) > width and lines[-1]:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def text_of(value: Any) -> str:
    """A value for people: nothing for what is not known, two digits of seconds, yes or no."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    return visible(" ".join(map(str, value)) if isinstance(value, list) else str(value))


def as_csv(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> str:
    """CSV with a header; what is not known is empty, lists are JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = [_plain(row.get(name)) for name in columns]
        writer.writerow([visible(cell) if isinstance(cell, str) else cell for cell in cells])
    return out.getvalue()


def as_json(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> str:
    return json.dumps([{name: row.get(name) for name in columns} for row in rows], indent=1)


def as_latex(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> str:
    """A tabular for the booktabs package."""
    lines = [
        rf"\begin{{tabular}}{{{'l' * len(columns)}}}",
        r"\toprule",
        " & ".join(escaped(name) for name in columns) + r" \\",
        r"\midrule",
    ]
    lines += [" & ".join(escaped(text_of(row.get(name))) for name in columns) + r" \\" for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def as_parquet(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> bytes:
    """A Parquet file; needs pyarrow."""
    try:
        pyarrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            "--format parquet needs pyarrow, which is not installed: pip install 'm2bridge[parquet]', or use --format csv"
        ) from None
    data = {name: _of_one_type([row.get(name) for row in rows]) for name in columns}
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table(data), sink)
    return bytes(sink.getvalue().to_pybytes())


def _of_one_type(values: Sequence[Any]) -> list[Any]:
    """Values for one typed column: numbers, truth values or texts as they are, anything else (also a mixture) as text."""
    kinds = {type(value) for value in values if value is not None}
    small = all(abs(value) < 2**63 for value in values if type(value) is int)
    if kinds <= {int, float} and small:
        return [float(v) if v is not None and kinds == {int, float} else v for v in values]
    if kinds in ({bool}, {str}):
        return list(values)
    return [None if value is None else str(_plain(value)) for value in values]


def _plain(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return json.dumps(value)
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else value
