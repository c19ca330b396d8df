"""Scripts stage: a Python value becomes Macaulay2 source text. The only place that quotes.

Nothing reaches a script except through :func:`literal`, and :func:`literal` accepts only values whose Macaulay2
text is known to be inert: integers, booleans, None, Fractions, short printable strings, and sequences of these.

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
"""A Macaulay2 name we are ready to assign to."""

_LONGEST_STRING = 10_000
_LONGEST_INTEGER_BITS = 13_000  # below the 4300 digits that Python is ready to write
_DEEPEST_LITERAL = 16
"""Levels of nested lists in a value that a script takes."""


def literal(value: object, depth: int = 0) -> str:  # noqa: PLR0911 -- one case for each type of value
    """Macaulay2 source text that evaluates to `value`, which stands in `depth` lists.

    Raises
    ------
    InputError
        For a value of any other type (floats among them: an inexact number never enters an exact computation),
        for a string with control or non-ASCII characters, and for what is too long or nested too deeply.
    """
    if depth > _DEEPEST_LITERAL:
        raise InputError(f"a list is nested more than {_DEEPEST_LITERAL} deep; no script takes such a value")
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
                f"character {char!r} at position {position} cannot be put into a Macaulay2 string"
            )
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def assignment(name: str, value: object) -> str:
    """One Macaulay2 statement ``name = value;`` with both sides checked."""
    if not NAME.fullmatch(name):
        raise InputError(f"{name!r} is not a name that a script may assign to")
    return f"{name} = {literal(value)};"
