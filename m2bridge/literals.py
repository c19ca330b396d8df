"""Convert Python values to Macaulay2 source text.

All values in a script are written by :func:`literal`, the only function that quotes. It accepts only values whose Macaulay2
text cannot execute code: integers, booleans, None, Fractions, short printable strings, and sequences of these.

>>> literal(((1, 2), (3, -4)))
'{{1,2},{3,-4}}'
>>> literal("a \\"b\\"")
'"a \\\\"b\\\\""'
>>> literal((7,))
'{7}'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from m2bridge.errors import InputError

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]{0,63}")
"""The names that :func:`assignment` accepts."""

_LONGEST_STRING = 10_000  # characters of a string in a script
_LONGEST_INTEGER_BITS = 13_000  # below 4300 digits, Python's limit for the conversion to a string
_DEEPEST_LITERAL = 16
"""The maximal depth of nested lists in a value of a script."""


def literal(value: object, depth: int = 0) -> str:  # noqa: PLR0911 -- one case for each type of value
    """Return Macaulay2 source text that evaluates to `value`. `depth` is the number of lists that contain it.

    Raises
    ------
    InputError
        The value has another type (for example float, because exact computations take exact numbers only), is a string with
        control or non-ASCII characters, is too long, or is nested too deeply.
    """
    if depth > _DEEPEST_LITERAL:
        raise InputError(f"a list is nested more than {_DEEPEST_LITERAL} deep")
    if value is None:
        return "null"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return _integer(int(value))
    if isinstance(value, Fraction):
        return f"({_integer(value.numerator)}/{_integer(value.denominator)})"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, np.ndarray):
        return literal(value.tolist(), depth)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return "{" + ",".join(literal(item, depth + 1) for item in value) + "}"
    raise InputError(f"a {type(value).__name__} cannot be written as a Macaulay2 value: {repr(value)[:80]}")


def _integer(value: int) -> str:
    if value.bit_length() > _LONGEST_INTEGER_BITS:
        raise InputError(f"an integer of {value.bit_length()} bits is too long for a script")
    return str(value)


def _string(text: str) -> str:
    if len(text) > _LONGEST_STRING:
        raise InputError(
            f"a string of {len(text)} characters is too long for a script (at most {_LONGEST_STRING})"
        )
    for position, char in enumerate(text):
        if not " " <= char <= "~":
            raise InputError(
                f"character {char!r} at position {position} is not allowed in a Macaulay2 string"
            )
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def assignment(name: str, value: object) -> str:
    """Return the Macaulay2 statement ``name = value;``. Raises InputError for an invalid name or value."""
    if not NAME.fullmatch(name):
        raise InputError(f"{name!r} is not a valid name for a variable of a script")
    return f"{name} = {literal(value)};"
