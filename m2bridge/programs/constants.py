"""Constants of a network, exactly: whatever a person writes in a formula, as an array of rational numbers."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from m2bridge.programs.arithmetics import object_array
from m2bridge.programs.refusals import not_polynomial, wrong_input

FloatListener = Callable[[float], None]


def rational(value: Any, listener: FloatListener) -> Fraction:
    """A number as a rational one; a float is the dyadic number that it is, and `listener` is told of it.

    Raises
    ------
    InputError
        The value is infinite, not a number, or complex.
    NotPolynomialError
        The value is not a number at all.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (bool, np.bool_, int)):
        return Fraction(int(value))
    if isinstance(value, Rational):  # NumPy's and SymPy's integers, SymPy's rationals
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, (float, np.floating)):
        if not np.isfinite(value):
            raise wrong_input(
                f"the constant {value} is not a number; mask a softmax by multiplying np.exp(S) with a matrix of zeros and ones"
            )
        exact = Fraction(*value.as_integer_ratio())
        if isinstance(value, np.floating) and not isinstance(value, float):
            decimal = Fraction(np.format_float_positional(value))
        else:
            decimal = Fraction(repr(float(value)))
        if exact != decimal:  # 0.5 and 3.0 are what they look like; 0.1 is not
            listener(float(value))
        return exact
    if isinstance(value, Decimal) and value.is_finite():
        return Fraction(value)
    if isinstance(value, (complex, np.complexfloating)):
        raise wrong_input(f"the constant {value} is complex; a program has rational constants")
    raise not_polynomial(
        f"{_shown(value)} is not a rational constant; use int, Fraction, or an array of them (a float is taken exactly)"
    )


def _shown(value: Any) -> str:
    text = f"{type(value).__name__} {value}"
    return text if len(text) < 60 else text[:57] + "..."


def rational_array(value: Any, listener: FloatListener) -> np.ndarray[Any, Any]:
    """A number, array or nested list of numbers as an object array of Fractions."""
    array = value if isinstance(value, np.ndarray) else np.array(value)
    if array.dtype.kind == "f" and not isinstance(value, np.ndarray):
        array = np.array(value, dtype=object)  # a list with Fractions and floats in it keeps both
    entries = [rational(entry, listener) for entry in _entries(array)]
    return object_array(entries, array.shape)


def _entries(array: np.ndarray[Any, Any]) -> list[Any]:
    if array.dtype.kind in "biu" or array.dtype == np.float64:
        return list(array.ravel().tolist())
    return list(array.ravel())
