"""The arithmetics over which programs are interpreted: float64, F_p, and objects (polynomials, rationals, `arb`).

Each is a small table of functions on arrays; balls with float64 midpoints are in :mod:`m2bridge.programs.balls`. Indexing,
reshaping and transposing are those of the arrays themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.linear.residues import Field, residue
from m2bridge.programs.instructions import Shape

Array = Any
"""An array of the arithmetic in question."""


class Floats:
    """Float64, or another floating-point type."""

    def __init__(self, dtype: Any = np.float64) -> None:
        self.dtype = np.dtype(dtype)

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array:
        return np.array([float(value) for value in values], dtype=self.dtype).reshape(shape)

    def integers(self, array: Any) -> Array:
        """An array of integers in this arithmetic."""
        return np.asarray(array, dtype=self.dtype)

    def zeros(self, shape: Shape) -> Array:
        return self.integers(np.zeros(shape, dtype=np.int64))

    def add(self, left: Array, right: Array) -> Array:
        return left + right

    def multiply(self, left: Array, right: Array) -> Array:
        return left * right

    def scale(self, factor: Fraction, array: Array) -> Array:
        return array * self.dtype.type(float(factor))

    def negative(self, array: Array) -> Array:
        return -array

    def matmul(self, left: Array, right: Array) -> Array:
        return np.matmul(left, right)

    def sum(self, array: Array, axes: tuple[int, ...]) -> Array:
        return array.sum(axis=axes)

    def power(self, array: Array, exponent: int) -> Array:
        """By repeated multiplication."""
        result = None
        while exponent:
            if exponent & 1:
                result = array if result is None else self.multiply(result, array)
            exponent >>= 1
            if exponent:
                array = self.multiply(array, array)
        return result

    def exp(self, array: Array) -> Array:
        return np.exp(array)

    def reciprocal(self, array: Array) -> Array:
        return 1.0 / array

    def softmax(self, array: Array, axis: int) -> Array:
        powers = np.exp(array - array.max(axis=axis, keepdims=True))
        return powers / powers.sum(axis=axis, keepdims=True)

    def concatenate(self, arrays: Sequence[Array], axis: int) -> Array:
        return np.concatenate(arrays, axis=axis)

    def broadcast(self, array: Array, shape: Shape) -> Array:
        return np.broadcast_to(array, shape)

    def spread(self, array: Array, places: np.ndarray, size: int) -> Array:
        """Entries of the last axis added up at the given places of a last axis of length `size`."""
        result = np.zeros((*array.shape[:-1], size), dtype=array.dtype)
        np.add.at(result.swapaxes(0, -1), places, array.swapaxes(0, -1))
        return result


class Residues(Floats):
    """F_p: balanced residues in float64 for p < 2^23, int64 for larger primes.

    Without exponentials in F_p, those of analytic programs are replaced by random units of `rng`. Ranks found so are a
    heuristic, and are called that wherever they are used; without `rng` an analytic program is refused.
    """

    def __init__(self, field: Field, rng: np.random.Generator | None = None) -> None:
        self.field = field
        self.rng = rng

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array:
        p = self.field.p
        return self.field.residues(np.array([residue(v, p) for v in values], dtype=np.int64).reshape(shape))

    def integers(self, array: Any) -> Array:
        return self.field.residues(array)

    def add(self, left: Array, right: Array) -> Array:
        return self.field.reduce(left + right)

    def multiply(self, left: Array, right: Array) -> Array:
        return self.field.reduce(left * right)

    def scale(self, factor: Fraction, array: Array) -> Array:
        return self.field.reduce(array * self.constant([factor], ()).item())

    def matmul(self, left: Array, right: Array) -> Array:
        return self.field.matmul(left, right)

    def sum(self, array: Array, axes: tuple[int, ...]) -> Array:
        return self.field.reduce(np.asarray(array.sum(axis=axes)))

    def spread(self, array: Array, places: np.ndarray, size: int) -> Array:
        return self.field.reduce(super().spread(array, places, size))

    def _units(self, shape: Shape) -> np.ndarray:
        if self.rng is None:
            raise NotPolynomialError("an exponential does not exist over F_p")
        return self.rng.integers(1, self.field.p, size=shape, dtype=np.int64)

    def exp(self, array: Array) -> Array:
        return self.field.residues(self._units(array.shape))

    def reciprocal(self, array: Array) -> Array:
        if self.rng is None:
            raise NotPolynomialError("a division is not polynomial")
        return self.field.inverses(array)

    def softmax(self, array: Array, axis: int) -> Array:
        p = self.field.p
        units = self._units(array.shape)
        sums = units.sum(axis=axis, keepdims=True) % p
        while not sums.all():  # a column whose units sum to zero is drawn again
            units = np.where(sums == 0, self._units(array.shape), units)
            sums = units.sum(axis=axis, keepdims=True) % p
        return self.multiply(self.field.residues(units), self.field.inverses(self.field.residues(sums)))


class Objects(Floats):
    """Arrays of Python objects that know + and *: polynomials, Fractions, integers, `arb`.

    `number` makes an element of the arithmetic from a rational number.
    """

    def __init__(self, number: Callable[[Fraction], Any]) -> None:
        self.number = number

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array:
        return object_array([self.number(value) for value in values], shape)

    def integers(self, array: Any) -> Array:
        return elementwise(lambda n: self.number(Fraction(int(n))), np.asarray(array))

    def scale(self, factor: Fraction, array: Array) -> Array:
        return as_objects(array * self.number(factor))

    def negative(self, array: Array) -> Array:
        return as_objects(-array)

    def sum(self, array: Array, axes: tuple[int, ...]) -> Array:
        return as_objects(array.sum(axis=axes))

    def add(self, left: Array, right: Array) -> Array:
        return as_objects(left + right)

    def multiply(self, left: Array, right: Array) -> Array:
        return as_objects(left * right)

    def exp(self, array: Array) -> Array:
        return elementwise(lambda entry: entry.exp(), array)

    def reciprocal(self, array: Array) -> Array:
        return elementwise(lambda entry: 1 / entry, array)

    def softmax(self, array: Array, axis: int) -> Array:
        powers = self.exp(array)
        return powers / powers.sum(axis=axis, keepdims=True)

    def spread(self, array: Array, places: np.ndarray, size: int) -> Array:
        result = self.zeros((*array.shape[:-1], size))
        for k, place in enumerate(places):
            result[..., place] = result[..., place] + array[..., k]
        return result


def object_array(entries: Sequence[Any], shape: Shape) -> np.ndarray:
    """Entries in row-major order as an object array; NumPy must not look inside them."""
    flat = np.empty(len(entries), dtype=object)
    for position, entry in enumerate(entries):
        flat[position] = entry
    return flat.reshape(shape)


def as_objects(value: Any) -> np.ndarray:
    """NumPy takes a single object out of its array: put it back."""
    return value if isinstance(value, np.ndarray) else object_array([value], ())


def elementwise(function: Callable[[Any], Any], array: np.ndarray) -> np.ndarray:
    """`function` of each entry, as an object array of the same shape."""
    return object_array([function(entry) for entry in array.reshape(-1)], array.shape)
