"""Derive the JSON Schema of the records of each analysis from the types of its result.

``m2bridge schema NAME`` prints the schema; the package contains the same text in ``m2bridge/data/schemas/`` (written by
``make schemas``).
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Union

from m2bridge.errors import InputError
from m2bridge.records import SCHEMA_VERSION, dumps, keyed_hints, result_types, write_atomically

_PLAIN: dict[Any, dict[str, Any]] = {
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    str: {"type": "string"},
    type(None): {"type": "null"},
    Any: {},
    Fraction: {"type": "string", "pattern": r"^-?\d+(/\d+)?$"},
}


def schema(analysis: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the document that `analysis` prints with ``--json``."""
    types_ = result_types()
    kind = types_.get(analysis)
    if kind is None:
        raise InputError(f"no schema for {analysis!r}; available: {', '.join(sorted(types_))}")
    properties = {
        "schema_version": {"const": SCHEMA_VERSION},
        "analysis": {"const": analysis},
        "analysis_version": {"const": kind.VERSION},
        "package_version": {"type": "string"},
        **schema_of(kind)["properties"],
        "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"m2bridge {analysis}"}
    return head | _object(properties)


def schema_of(kind: Any) -> dict[str, Any]:  # noqa: PLR0911 -- one case for each type of field
    """Return the JSON Schema of the values of a type."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(a) for a in arguments]}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        if origin is tuple and Ellipsis not in arguments:
            items, count = [schema_of(a) for a in arguments], len(arguments)
            return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}
        return {"type": "array", "items": schema_of(arguments[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _object({key: schema_of(hint) for key, (_, hint) in keyed_hints(kind).items()})
    raise TypeError(f"no schema for {kind!r}")


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def shipped() -> Path:
    """Return the directory of the schema files in the package."""
    return Path(str(resources.files("m2bridge"))) / "data" / "schemas"


def write(directory: Path) -> None:
    """Write the schema of every analysis of this package into `directory`; analyses of other packages are skipped."""
    directory.mkdir(parents=True, exist_ok=True)
    analyses = (name for name, kind in result_types().items() if kind.__module__.startswith("m2bridge."))
    for analysis in sorted(analyses):
        text = dumps(schema(analysis)) + "\n"
        write_atomically(directory / f"{analysis}.schema.json", text)


if __name__ == "__main__":
    write(shipped())
