"""Convert the records of a store to flat rows for tables, filters and counts. The checksum of each record is verified."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from m2bridge.batch.expressions import Expression
from m2bridge.batch.store import Store
from m2bridge.errors import InputError, M2BridgeError, RecordError
from m2bridge.families.spec import read as read_spec
from m2bridge.questions.custom_template import BY_SCRIPT, DECLARABLE

COLUMNS = (
    "key",
    "analysis",
    "model",
    "family",
    "outcome",
    "field",
    "prime",
    "seed",
    "seconds",
    "attempts",
    "size",
)
"""The columns of every row, for all questions and models."""
_LONGEST_FACT = 200  # characters of a string that becomes a column

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoreRows:
    """The rows of all readable records, the errors of damaged ones, and the paths of other files in the store."""

    rows: list[Row]
    damaged: list[str]
    strays: list[str]

    @property
    def outcomes(self) -> dict[str, int]:
        """Count the records of each outcome."""
        return dict(Counter(row["outcome"] for row in self.rows))

    def where(self, condition: Expression | None) -> list[Row]:
        """Return the rows that satisfy a condition, sorted by analysis, size and model."""
        names = sorted({name for row in self.rows for name in row})
        unknown = sorted(condition.names - set(names)) if condition is not None and names else []
        if unknown:
            raise InputError(
                f"--where: no record has {', '.join(unknown)}; the names are: {', '.join(names)}"
            )
        selected = [row for row in self.rows if condition is None or condition.holds(row)]
        return sorted(selected, key=_order)


def read_rows(store: Store) -> StoreRows:
    """Read every record of a store."""
    rows, damaged = [], []
    contents = store.contents()
    for key in contents.keys:
        try:
            record = store.read(key)
        except RecordError as error:
            damaged.append(error.message)
            continue
        if record is not None:  # None if the record was removed after the directory was listed
            rows.append(row_of(record))
    return StoreRows(rows, damaged, contents.strays)


def _order(row: Row) -> list[tuple[bool, Any]]:
    """Sort by analysis, size, model, prime, seed; unknown values come first. Rows of a template are sorted by its parameters."""
    order = [(row[name] is not None, row[name]) for name in ("analysis", "size", "model")]
    if row["analysis"] == "template":
        numbers = [(name, value) for name, value in row.items() if type(value) is int and name not in COLUMNS]
        order.append((True, (row["name"], numbers)))
    return order + [(row[name] is not None, row[name]) for name in ("prime", "seed", "key")]


def row_of(record: dict[str, Any]) -> Row:
    """Flatten a record: the columns, the model's arguments, the parameters, and the plain values of the result."""
    job = record["job"]
    parameters = job["parameters"]
    prime = parameters.get("prime", parameters.get("field"))
    result = record["result"] or {}
    row: Row = {**_arguments(job["model"]), **parameters, **job.get("sweep", {})}
    if job["analysis"] == "template":
        row |= _emitted(result.get("values", {}))
    for name, value in result.items():
        short = isinstance(value, str) and len(value) <= _LONGEST_FACT
        if short or isinstance(value, bool | int | float | None):
            row.setdefault(name, value)
    return row | {
        "name": job.get("name"),
        "tags": job["tags"],
        "message": (record["message"] or "")[:_LONGEST_FACT] or None,
        "engine": (record["engine"] or {}).get("version"),
        "finished": record["finished"],
        "peak_memory_bytes": record["peak_memory_bytes"],
        "key": record["key"],
        "analysis": job["analysis"],
        "model": job["model"],
        "family": job["model"].split("(")[0].split(":")[0],
        "outcome": record["outcome"],
        "prime": prime if isinstance(prime, int) else None,
        "seed": parameters.get("seed"),
        "field": _field(row, result),
        "seconds": record["seconds"],
        "attempts": len(record["attempts"]),
        "size": job["size"],
    }


def _emitted(values: dict[str, Any]) -> Row:
    """Return the values that a template emitted, without long ones, and their certainty."""
    short = {name: value for name, value in values.items() if len(json.dumps(value)) <= _LONGEST_FACT}
    certainty = values.get("certainty")
    return short | {"certainty": certainty if certainty in DECLARABLE else BY_SCRIPT}


def _field(row: Row, result: dict[str, Any]) -> str | None:
    """Return the field over which the answer was computed: QQ or F_p; None if it is not known."""
    if isinstance(result.get("field"), str):
        return str(result["field"])
    options = result.get("options") or {}
    candidates = (
        result.get("characteristic"),
        options.get("prime"),
        options.get("field"),
        row.get("field"),
        row.get("prime"),
    )
    field = next((value for value in candidates if value is not None), None)
    if isinstance(field, int):
        return f"F_{field}" if field else "QQ"
    return field if isinstance(field, str) else None


@lru_cache(maxsize=4096)
def _arguments(spec: str) -> dict[str, Any]:
    """Return the arguments in a model's spec; none if it is a map written out."""
    if "(" not in spec:
        return {}
    try:
        values = read_spec(spec).values
    except M2BridgeError:
        return {}
    lists = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {
        name: value if isinstance(value, int | str | list) else str(value) for name, value in lists.items()
    }
