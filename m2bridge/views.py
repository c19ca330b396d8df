"""How a result is shown to a person, apart from where: one view becomes a terminal's text, a notebook's box, an explanation.

A result type gives its :class:`View`; what stands in every answer (certainty, witnesses, engine, seed) is added by who shows it.
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

    def has_numbers(self, place: int) -> bool:
        """Whether a column holds nothing but numbers, which stand to the right."""
        found = [row[place] for row in self.cells]
        return all(c in ("", "?") or c.lstrip("-").replace(".", "", 1).isdigit() for c in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a person reads of a result.

    Attributes
    ----------
    answer: the first line, which answers the question.
    facts: what else was found, a name and a text each.
    tables: what is better read in rows.
    notes: whole sentences that follow.
    details: sentences that only an explanation prints.
    to_prove: what would make the answer proved; shown only when it is not. Every question says it, if only that nothing is known.
    decided: False where there is no answer, so that nothing is proved or probable.
    """

    answer: str
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[Rows, ...] = ()
    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    to_prove: str = "no argument for it is known to this question"
    decided: bool = True

    def sentences(self) -> list[str]:
        """All of it as plain sentences, for texts."""
        lines = [self.answer, *(f"{name}: {text}" if name else text for name, text in self.facts)]
        for table in self.tables:
            for row in table.cells:
                lines.append(", ".join(_named_cells(table.columns, row)))
        return [f"{line.rstrip('.')}." for line in [*lines, *self.notes, *self.details] if line]


def _named_cells(columns: Iterable[str], row: Iterable[str]) -> Iterable[str]:
    for name, cell in zip(columns, row, strict=True):
        if cell:
            yield f"{name} {cell}" if name else cell


def known(value: Any) -> str:
    """A value, or a question mark where it is not known."""
    return "?" if value is None else str(value)


def cut(value: Any, longest: int = 24) -> str:
    """A value as text of bounded length."""
    text = ", ".join(f"{k}:{v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
