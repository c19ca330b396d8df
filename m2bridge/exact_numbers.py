"""Read exact numbers: from Python values, from text and from JSON. Every point, weight and target is read here."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, NoReturn

import numpy as np

from m2bridge.errors import InputError

_MOST_DIGITS = 4000
"""Characters of a number and its largest exponent: 1e999999999 would fill the memory."""


def exact_number(value: Any, source: str = "the input") -> Fraction:
    """Convert to Fraction. Floats are converted exactly; text is read as it is written.

    >>> exact_number("0.1"), exact_number("2/6"), exact_number(3), exact_number(0.5)
    (Fraction(1, 10), Fraction(1, 3), Fraction(3, 1), Fraction(1, 2))
    >>> exact_number(0.1) == exact_number("0.1")
    False

    Parameters
    ----------
    value: an integer, Fraction, finite float or Decimal, of Python or NumPy, or text such as ``3``, ``0.25``, ``1e-3``, ``1/3``.
    source: where the value stands, for the error: an InputError.
    """
    try:
        return _convert(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        shown = repr(value)
        shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
        raise InputError(
            f"{source} has the entry {shown}, which is not an exact number; write 3, 0.25 or 1/3"
        ) from None


def _convert(value: Any) -> Fraction:
    if isinstance(value, (bool, np.bool_)):
        raise ValueError("a truth value")
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, (Rational, Decimal, float)):
        return Fraction(value)
    if isinstance(value, np.integer):
        return Fraction(int(value))
    if isinstance(value, np.floating):
        return Fraction(*value.as_integer_ratio())
    raise ValueError("not a number")


def _from_text(text: str) -> Fraction:
    _, _, exponent = text.lower().partition("e")
    if len(text) > _MOST_DIGITS or abs(int(exponent or 0)) > _MOST_DIGITS:
        raise ValueError(f"{text[:40]} is too large")
    return Fraction(text)


def exact_json(document: str | bytes, source: str) -> Any:
    """Read JSON with decimals as Fractions; raise InputError if it is not JSON or has an entry like NaN.

    >>> exact_json('{"A": [[1, 0.1]]}', "weights.json")
    {'A': [[1, Fraction(1, 10)]]}
    """

    def refuse(constant: str) -> NoReturn:
        raise InputError(f"{source} has the entry {constant}, which is not a number; numbers are finite")

    try:
        return json.loads(document, parse_float=_from_text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source} is not JSON: {error}") from None
