"""Batch: rows of the index become a table that fits a terminal. What finds no room is named, never cut off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from m2bridge.errors import visible

_GAP = 3
_LEAST_ROOM = 20
"""A model or a sentence gets so many columns, if it needs them, before another column is left out."""
_ESSENTIAL = ("analysis", "model", "prime", "seed", "outcome", "certainty")
_PIECE = re.compile(r"[^,;(\[]*(?:\[[^\]]*\]?)?[,;(]?")


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
