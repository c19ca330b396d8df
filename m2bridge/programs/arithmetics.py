"""The arithmetics over which programs are interpreted: float64, F_p, objects (polynomials, rationals, `arb`).

Each is an :class:`Arithmetic`. Indexing, reshaping and transposing are those of the arrays themselves. Polynomials in the
inputs are one more arithmetic (:mod:`m2bridge.programs.coefficients`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.linear.residues import Field, Mod, residue
from m2bridge.programs.instructions import Shape

Array = Any
"""An array of the arithmetic in question."""


class ZeroDenominatorError(ZeroDivisionError):
    """Raised if a denominator is zero at a point over F_p; another point is needed."""

    def __init__(self, p: int, problem: str = "a denominator is zero") -> None:
        super().__init__(f"{problem} modulo {p}")


class Arithmetic(ABC):
    """Operations on arrays that interpreting a program needs: those of NumPy, each followed by :meth:`tidy`, and five others."""

    @abstractmethod
    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array:
        """Convert rational numbers in row-major order to an array."""

    @abstractmethod
    def integers(self, array: Any) -> Array:
        """Convert an array of integers."""

    @abstractmethod
    def exp(self, array: Array) -> Array: ...
    @abstractmethod
    def reciprocal(self, array: Array) -> Array: ...
    @abstractmethod
    def sqrt(self, array: Array) -> Array: ...

    def convert_input(self, array: Any) -> Array:
        """Convert an array passed by the caller to this arithmetic."""
        return self.integers(array)

    def convert_output(self, array: Array) -> Any:
        """Convert an array of this arithmetic to the type of the caller."""
        return array

    def zeros(self, shape: Shape) -> Array:
        return self.integers(np.zeros(shape, dtype=np.int64))

    def tidy(self, array: Any) -> Array:
        """Normalize the result of a NumPy operation, for example by reduction modulo p."""
        return array

    def add(self, left: Array, right: Array) -> Array:
        return self.tidy(left + right)

    def multiply(self, left: Array, right: Array) -> Array:
        return self.tidy(left * right)

    def scale(self, factor: Fraction, array: Array) -> Array:
        return self.multiply(array, self.constant([factor], ()))

    def negative(self, array: Array) -> Array:
        return self.tidy(-array)

    def matmul(self, left: Array, right: Array) -> Array:
        return np.matmul(left, right)

    def sum(self, array: Array, axes: tuple[int, ...]) -> Array:
        return self.tidy(array.sum(axis=axes))

    def power(self, array: Array, exponent: int) -> Array:
        """Multiply repeatedly."""
        result = None
        while exponent:
            if exponent & 1:
                result = array if result is None else self.multiply(result, array)
            exponent >>= 1
            if exponent:
                array = self.multiply(array, array)
        return result

    def softmax(self, array: Array, axis: int) -> Array:
        """Divide exponentials by their sum along an axis, which is counted from the end."""
        return self.normalised(self.exp(array), axis)

    def kept_sum(self, array: Array, axis: int) -> Array:
        """Sum along an axis, counted from the end, which stays with length 1."""
        shape = list(array.shape)
        shape[axis] = 1
        return self.sum(array, (len(shape) + axis,)).reshape(tuple(shape))

    def normalised(self, array: Array, axis: int) -> Array:
        """Divide entries by their sum along an axis, which is counted from the end."""
        return self.multiply(array, self.reciprocal(self.kept_sum(array, axis)))

    def concatenate(self, arrays: Sequence[Array], axis: int) -> Array:
        return np.concatenate(arrays, axis=axis)

    def broadcast(self, array: Array, shape: Shape) -> Array:
        return np.broadcast_to(array, shape)

    def spread(self, array: Array, indices: np.ndarray, size: int) -> Array:
        """Add by scattering along the last axis: entry k is added at `indices[k]` of a last axis of length `size`."""
        result = self.zeros((*array.shape[:-1], size))
        np.add.at(result.swapaxes(0, -1), indices, array.swapaxes(0, -1))
        return self.tidy(result)


class FloatArithmetic(Arithmetic):
    """Float64, or another floating-point type."""

    def __init__(self, dtype: Any = np.float64) -> None:
        self.dtype = np.dtype(dtype)

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array:
        return np.array([float(value) for value in values], dtype=self.dtype).reshape(shape)

    def integers(self, array: Any) -> Array:
        return np.asarray(array, dtype=self.dtype)

    def exp(self, array: Array) -> Array:
        return np.exp(array)

    def reciprocal(self, array: Array) -> Array:
        return 1.0 / array

    def sqrt(self, array: Array) -> Array:
        return np.sqrt(array)

    def softmax(self, array: Array, axis: int) -> Array:
        return self.normalised(self.exp(array - array.max(axis=axis, keepdims=True)), axis)


class PrimeFieldArithmetic(Arithmetic):
    """F_p for p < 2^23: balanced residues in float64.

    There is no exponential function: :mod:`m2bridge.programs.exponentials` puts units in its place. A denominator that is zero
    modulo p raises ZeroDenominatorError.
    """

    def __init__(self, field: Field) -> None:
        self.field = field

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array:
        return _constant_residues(_Same(values), self.field).reshape(shape)

    def integers(self, array: Any) -> Array:
        return self.field.residues(array)

    def convert_input(self, array: Any) -> Array:
        return array.data if isinstance(array, Mod) else self.field.residues(array)

    def convert_output(self, array: Array) -> Any:
        return Mod.wrap(array, self.field.p)

    def zeros(self, shape: Shape) -> Array:
        return np.zeros(shape)

    def tidy(self, array: Any) -> Array:
        return self.field.reduce(np.asarray(array))

    def matmul(self, left: Array, right: Array) -> Array:
        return self.field.matmul(left, right)

    def exp(self, array: Array) -> Array:
        raise NotPolynomialError("an exponential does not exist over F_p")

    def reciprocal(self, array: Array) -> Array:
        if not array.all():
            raise ZeroDenominatorError(self.field.p)
        return self.field.inverses(array)

    def sqrt(self, array: Array) -> Array:
        """Return the roots below p / 2; :mod:`m2bridge.programs.roots` draws points at which they exist."""
        roots = square_roots(self.field.p)[self.field.canonical(array)]
        if not roots.all():
            raise ZeroDenominatorError(self.field.p, "a radicand is zero or not a square")
        return self.field.residues(roots)


@lru_cache(maxsize=2)
def square_roots(p: int) -> np.ndarray:
    """Return for each residue its square root below p / 2, or 0 where it is zero or not a square.

    >>> square_roots(7).tolist()
    [0, 1, 3, 0, 2, 0, 0]
    """
    roots = np.arange(1, (p + 1) // 2, dtype=np.int64)
    table = np.zeros(p, dtype=np.int32)
    table[roots * roots % p] = roots
    return table


class _Same:
    """The constants of an instruction, compared by identity: comparing a million numbers takes longer than reducing them."""

    def __init__(self, values: Sequence[Fraction]) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.values is other.values

    def __hash__(self) -> int:
        return id(self.values)


@lru_cache(maxsize=16)
def _constant_residues(constants: _Same, field: Field) -> Array:
    p = field.p
    whole = [v.numerator % p if v.denominator == 1 else residue(v, p) for v in constants.values]
    residues = field.residues(np.array(whole, dtype=np.int64))
    residues.setflags(write=False)
    return residues


class ObjectArithmetic(Arithmetic):
    """Arrays of Python objects with + and *: polynomials, Fractions, integers, `arb`.

    `number` makes an element of the arithmetic from a rational number.
    """

    def __init__(self, number: Callable[[Fraction], Any]) -> None:
        self.number = number

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array:
        return object_array([self.number(value) for value in values], shape)

    def integers(self, array: Any) -> Array:
        return elementwise(lambda n: self.number(Fraction(int(n))), np.asarray(array))

    def convert_input(self, array: Any) -> Array:
        return elementwise(lambda x: self.number(Fraction(x)), np.asarray(array))

    def tidy(self, array: Any) -> Array:
        """Convert a single object, which NumPy returns instead of an array with one entry, to an array."""
        return array if isinstance(array, np.ndarray) else object_array([array], ())

    def exp(self, array: Array) -> Array:
        return elementwise(lambda entry: entry.exp(), array)

    def reciprocal(self, array: Array) -> Array:
        return elementwise(lambda entry: 1 / entry, array)

    def sqrt(self, array: Array) -> Array:
        return elementwise(exact_root, array)


def exact_root(value: Any) -> Any:
    """Return the square root of a rational square, or of an object that has a method for it.

    >>> exact_root(Fraction(9, 4))
    Fraction(3, 2)
    """
    if hasattr(value, "sqrt"):
        return value.sqrt()
    number = Fraction(value)
    root = Fraction(isqrt(abs(number.numerator)), isqrt(number.denominator))
    if root**2 != number:
        raise NotPolynomialError(f"the square root of {number} is not a rational number")
    return root


def object_array(entries: Sequence[Any], shape: Shape) -> np.ndarray:
    """Return an object array of the entries in row-major order, even if the entries are sequences."""
    flat = np.empty(len(entries), dtype=object)
    for position, entry in enumerate(entries):
        flat[position] = entry
    return flat.reshape(shape)


def elementwise(function: Callable[[Any], Any], array: np.ndarray) -> np.ndarray:
    """Apply `function` to each entry; return an object array of the same shape."""
    return object_array([function(entry) for entry in array.reshape(-1)], array.shape)
