"""Models stage: exact constants of a network's program, in whatever arithmetic it is run."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.models.arrays import Mod, object_array
from m2bridge.models.systems import residue

_LARGEST_DENOMINATOR = 2**20


def exact(value: Any) -> int | Fraction:
    """The rational number that a constant in a program means; a float counts when it is a short binary
    fraction.
    """
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return int(value)
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (float, np.floating)) and np.isfinite(value):
        fraction = Fraction(float(value))
        if fraction.denominator <= _LARGEST_DENOMINATOR:
            return fraction
        raise NotPolynomialError(
            f"the constant {float(value)!r} is not an exact number; write it as a Fraction"
        )
    raise NotPolynomialError(f"a {type(value).__name__} cannot be a constant of a polynomial network")


def constant_array(value: Any, like: Any) -> Any:
    """A constant (a number, or an array or nested lists of numbers) in the arithmetic of `like`."""
    if isinstance(value, Mod) or (
        isinstance(value, np.ndarray) and value.dtype == object and value.size == 0
    ):
        return value
    array = np.asarray(value)
    if isinstance(like, Mod):
        if array.dtype.kind in "iub":
            return Mod(array, like.p)
        numbers = [residue(exact(item), like.p) for item in array.reshape(-1)]
        return Mod(np.array(numbers, dtype=np.int64).reshape(array.shape), like.p)
    if isinstance(like, np.ndarray) and like.dtype == object:
        if array.dtype == object and array.size and not isinstance(array.flat[0], (int, float, Fraction)):
            return array
        zero = like.flat[0] * 0
        return object_array([zero + _flint(exact(item)) for item in array.reshape(-1)], array.shape)
    return np.array([float(item) for item in array.reshape(-1)]).reshape(array.shape)


def _flint(value: int | Fraction) -> Any:
    from flint import fmpq

    return fmpq(value.numerator, value.denominator) if isinstance(value, Fraction) else value
