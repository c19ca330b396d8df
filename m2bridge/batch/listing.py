"""Batch: rows of the index become a table, CSV, JSON, Parquet or LaTeX."""

from __future__ import annotations

import csv
import importlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from m2bridge.batch.expressions import Expression
from m2bridge.batch.index import COLUMNS, Index
from m2bridge.batch.tables import text_of
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
_SQL = {"==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def select(index: Index, where: Expression | None) -> list[dict[str, Any]]:
    """The rows of which an expression holds; comparisons of a column with a value are left to SQLite."""
    if where is None:
        return list(index.rows())
    unknown = set(where.names)
    found = []
    for row in index.rows(_conditions(where)):
        unknown.difference_update(row)
        if where.holds(row):
            found.append(row)
    if unknown:
        _refuse_unknown(
            "--where", sorted(unknown), dict.fromkeys(name for row in index.rows() for name in row)
        )
    return found


def _refuse_unknown(option: str, names: Sequence[str], known: Iterable[str]) -> None:
    """Refuse names that no record has; where there are no records, none is known to be wrong."""
    there = sorted(known)
    if there and (unknown := [name for name in names if name not in there]):
        raise InputError(f"{option}: no record has {', '.join(unknown)}; there are: {', '.join(there)}")


def _conditions(where: Expression) -> list[tuple[str, str, Any]]:
    found = []
    for node in where.conjuncts():
        if node.kind == "compare" and len(node.operands) == 3:
            left, word, right = node.operands
            plain = left.kind == "name" and right.kind == "value" and word in _SQL
            if plain and left.operands[0] in COLUMNS and type(right.operands[0]) in (int, str):
                found.append((left.operands[0], _SQL[word], right.operands[0]))
    return found


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
