"""Ideals in ``.mrdi`` files, in the namespaces of Macaulay2 and of OSCAR: JSON is read, nothing is evaluated."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from m2bridge.errors import ParseError
from m2bridge.models.polynomials import NAME, ParseLimits, whole


def looks_like_mrdi(text: str) -> bool:
    """Whether a text is an object with a namespace, not a list of polynomials in braces."""
    return text.lstrip().startswith("{") and '"_ns"' in text


def read_mrdi(text: str, source: str) -> tuple[tuple[str, ...], list[dict[tuple[int, ...], Any]], int]:
    """Variables, polynomials and characteristic of the ideal in a ``.mrdi`` text."""
    try:
        document = json.loads(text)
        label = document["_type"]["params"]
        ring = document["_refs"][label] if isinstance(label, str) else label
        if document["_type"]["name"] not in ("Ideal", "MPolyIdeal"):
            raise ValueError(f"it holds the type {document['_type']['name']!r}, not an ideal")
        names = ring["data"].get("variables") or ring["data"]["symbols"]
        characteristic = _characteristic(ring["_type"]["params"])
        variables = tuple(names)
        if not variables or not all(isinstance(n, str) and NAME.fullmatch(n) for n in variables):
            raise ValueError("its ring has no variables that can be read")
        polynomials = [_polynomial(f, len(variables)) for f in document["data"]]
    except (KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError, AttributeError) as error:
        raise ParseError(
            f"{source}: not an .mrdi file of an ideal: {error}", source=source, line=None, column=None
        ) from None
    return variables, polynomials, characteristic


def _characteristic(field: Any) -> int:
    kind = field if isinstance(field, str) else field["_type"]
    if kind in ("QQField",) or (kind == "Ring" and field["data"] == "QQ"):
        return 0
    if kind in ("QuotientRing", "FiniteField", "Nemo.fpField", "fpField"):
        return int(field["data"])
    raise ValueError(f"its field {kind!r} is neither QQ nor a prime field")


def _polynomial(terms: Any, count: int) -> dict[tuple[int, ...], Any]:
    limits = ParseLimits()
    found: dict[tuple[int, ...], Any] = {}
    if len(terms) > limits.terms:
        raise ValueError(f"a polynomial has more than {limits.terms} terms")
    for exponents, coefficient in terms:
        key = tuple(int(e) for e in exponents)
        if len(key) != count or min(key) < 0 or max(key) > limits.exponent:
            raise ValueError(f"{exponents} are not the exponents of {count} variables")
        value = found.get(key, 0) + _number(coefficient, limits.digits)
        found[key] = whole(Fraction(value))
    return {key: value for key, value in found.items() if value}


def _number(value: Any, digits: int) -> Fraction:
    parts = value if isinstance(value, list) else str(value).split("//")
    if len(parts) not in (1, 2) or any(len(str(part)) > digits for part in parts):
        raise ValueError(f"{str(value)[:40]!r} is no coefficient")
    return Fraction(int(parts[0]), int(parts[1]) if len(parts) == 2 else 1)
