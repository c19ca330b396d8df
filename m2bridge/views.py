"""The view of a result: the text of an answer, independent of its format (terminal, notebook, explanation).

Each result type defines its :class:`View`. What all answers have in common (certainty, witnesses, engine, seed) is added by the
formatters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A table: its title, the names of its columns, and its cells as text."""

    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    def has_numbers(self, column: int) -> bool:
        """Return whether a column contains only numbers, which are aligned to the right."""
        cells = [row[column] for row in self.cells]
        return all(cell in ("", "?") or cell.lstrip("-").replace(".", "", 1).isdigit() for cell in cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The text of a result.

    Attributes
    ----------
    answer: the first line, which answers the question.
    facts: further results, as pairs of a name and a text.
    tables: further results in rows.
    notes: complete sentences that follow.
    details: sentences that only an explanation prints.
    to_prove: what would prove the answer; printed only if it is not proved.
    decided: False if there is no answer, so that no certainty is printed.
    """

    answer: str
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[Rows, ...] = ()
    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    to_prove: str = "no method is available"
    decided: bool = True

    def sentences(self) -> list[str]:
        """Return the whole view as a list of sentences."""
        lines = [self.answer, *(f"{name}: {text}" if name else text for name, text in self.facts)]
        for table in self.tables:
            for row in table.cells:
                lines.append(", ".join(_named_cells(table.columns, row)))
        return [f"{line.rstrip('.')}." for line in [*lines, *self.notes, *self.details] if line]


def _named_cells(columns: Iterable[str], row: Iterable[str]) -> Iterable[str]:
    for name, cell in zip(columns, row, strict=True):
        if cell:
            yield f"{name} {cell}" if name else cell


def value_text(value: Any) -> str:
    """Return the value as text, a question mark for None."""
    return "?" if value is None else str(value)


def shorten(value: Any, longest: int = 24) -> str:
    """Return the value as text, shortened to at most `longest` characters."""
    text = ", ".join(f"{k}:{v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
