"""The arithmetics over which programs are interpreted: float64, F_p, objects (polynomials, rationals, `arb`), float64 balls.

Each implements :class:`Arithmetic`. Indexing, reshaping and transposing are those of the arrays themselves. Polynomials in the
inputs are one more arithmetic (:mod:`m2bridge.programs.coefficients`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import flint
import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.linear.numeric import UNIT, Ball, ball_of_arb, gamma, outward
from m2bridge.linear.residues import Field, Mod, residue
from m2bridge.programs.instructions import Shape

Array = Any
"""An array of the arithmetic in question."""


class ZeroDenominatorError(ZeroDivisionError):
    """A denominator is zero at a point over F_p: the point says nothing about the program."""

    def __init__(self, p: int) -> None:
        super().__init__(f"a denominator is zero modulo {p}")


class Arithmetic(Protocol):
    """Operations on arrays that interpreting a program needs."""

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array:
        """Convert rational numbers in row-major order to an array."""

    def integers(self, array: Any) -> Array:
        """Convert an array of integers."""

    def enter(self, array: Any) -> Array:
        """Convert an array that a user passed."""

    def leave(self, array: Array) -> Any:
        """Convert an array to what a user gets."""

    def zeros(self, shape: Shape) -> Array: ...
    def add(self, left: Array, right: Array) -> Array: ...
    def multiply(self, left: Array, right: Array) -> Array: ...
    def scale(self, factor: Fraction, array: Array) -> Array: ...
    def negative(self, array: Array) -> Array: ...
    def matmul(self, left: Array, right: Array) -> Array: ...
    def sum(self, array: Array, axes: tuple[int, ...]) -> Array: ...
    def power(self, array: Array, exponent: int) -> Array: ...
    def exp(self, array: Array) -> Array: ...
    def reciprocal(self, array: Array) -> Array: ...

    def softmax(self, array: Array, axis: int) -> Array:
        """Divide exponentials by their sum along an axis, which is counted from the end."""

    def kept_sum(self, array: Array, axis: int) -> Array:
        """Sum along an axis, counted from the end, which stays with length 1."""

    def concatenate(self, arrays: Sequence[Array], axis: int) -> Array: ...
    def broadcast(self, array: Array, shape: Shape) -> Array: ...

    def spread(self, array: Array, places: np.ndarray, size: int) -> Array:
        """Add the entries of the last axis up at the given places of a last axis of length `size`."""


class NumPyArithmetic(ABC):
    """Operations that NumPy's operators on arrays provide, each followed by :meth:`tidy`."""

    @abstractmethod
    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array: ...
    @abstractmethod
    def integers(self, array: Any) -> Array: ...
    @abstractmethod
    def exp(self, array: Array) -> Array: ...
    @abstractmethod
    def reciprocal(self, array: Array) -> Array: ...

    def enter(self, array: Any) -> Array:
        return self.integers(array)

    def leave(self, array: Array) -> Any:
        return array

    def zeros(self, shape: Shape) -> Array:
        return self.integers(np.zeros(shape, dtype=np.int64))

    def tidy(self, array: Any) -> Array:
        """Convert what NumPy made of sums and products of arrays to an array of this arithmetic."""
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
        return self.normalised(self.exp(array), axis)

    def kept_sum(self, array: Array, axis: int) -> Array:
        shape = list(array.shape)
        shape[axis] = 1
        return self.sum(array, (len(shape) + axis,)).reshape(tuple(shape))

    def normalised(self, array: Array, axis: int) -> Array:
        """Divide by the sum along an axis."""
        return self.multiply(array, self.reciprocal(self.kept_sum(array, axis)))

    def concatenate(self, arrays: Sequence[Array], axis: int) -> Array:
        return np.concatenate(arrays, axis=axis)

    def broadcast(self, array: Array, shape: Shape) -> Array:
        return np.broadcast_to(array, shape)

    def spread(self, array: Array, places: np.ndarray, size: int) -> Array:
        result = self.zeros((*array.shape[:-1], size))
        np.add.at(result.swapaxes(0, -1), places, array.swapaxes(0, -1))
        return self.tidy(result)


class FloatArithmetic(NumPyArithmetic):
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

    def softmax(self, array: Array, axis: int) -> Array:
        return self.normalised(self.exp(array - array.max(axis=axis, keepdims=True)), axis)


class PrimeFieldArithmetic(NumPyArithmetic):
    """F_p for p < 2^23: balanced residues in float64.

    Without exponentials in F_p, those of analytic programs are replaced by random units of `rng`. Ranks found so are a
    heuristic, and are called that wherever they are used; without `rng` an exponential is refused. A denominator that is zero
    modulo p raises ZeroDenominatorError.
    """

    def __init__(self, field: Field, rng: np.random.Generator | None = None) -> None:
        self.field, self.rng = field, rng

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array:
        return _constant_residues(_Same(values), self.field).reshape(shape)

    def integers(self, array: Any) -> Array:
        return self.field.residues(array)

    def enter(self, array: Any) -> Array:
        return array.data if isinstance(array, Mod) else self.field.residues(array)

    def leave(self, array: Array) -> Any:
        return Mod.wrap(array, self.field.p)

    def zeros(self, shape: Shape) -> Array:
        return np.zeros(shape)

    def tidy(self, array: Any) -> Array:
        return self.field.reduce(np.asarray(array))

    def matmul(self, left: Array, right: Array) -> Array:
        return self.field.matmul(left, right)

    def exp(self, array: Array) -> Array:
        if self.rng is None:
            raise NotPolynomialError("an exponential does not exist over F_p")
        return self.field.residues(self.rng.integers(1, self.field.p, size=array.shape, dtype=np.int64))

    def reciprocal(self, array: Array) -> Array:
        if not array.all():
            raise ZeroDenominatorError(self.field.p)
        return self.field.inverses(array)

    def softmax(self, array: Array, axis: int) -> Array:
        powers = self.exp(array)
        while not (sums := self.kept_sum(powers, axis)).all():  # those whose sum is zero are drawn again
            powers = np.where(sums == 0, self.exp(array), powers)
        return self.normalised(powers, axis)


class _Same:
    """The constants of an instruction, told apart by identity: comparing a million of them would cost more than reducing them."""

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
    found = field.residues(np.array(whole, dtype=np.int64))
    found.setflags(write=False)
    return found


class ObjectArithmetic(NumPyArithmetic):
    """Arrays of Python objects that know + and *: polynomials, Fractions, integers, `arb`.

    `number` makes an element of the arithmetic from a rational number.
    """

    def __init__(self, number: Callable[[Fraction], Any]) -> None:
        self.number = number

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array:
        return object_array([self.number(value) for value in values], shape)

    def integers(self, array: Any) -> Array:
        return elementwise(lambda n: self.number(Fraction(int(n))), np.asarray(array))

    def enter(self, array: Any) -> Array:
        return elementwise(lambda x: self.number(Fraction(x)), np.asarray(array))

    def tidy(self, array: Any) -> Array:
        """NumPy takes a single object out of its array: put it back."""
        return array if isinstance(array, np.ndarray) else object_array([array], ())

    def exp(self, array: Array) -> Array:
        return elementwise(lambda entry: entry.exp(), array)

    def reciprocal(self, array: Array) -> Array:
        return elementwise(lambda entry: 1 / entry, array)


def object_array(entries: Sequence[Any], shape: Shape) -> np.ndarray:
    """Entries in row-major order as an object array; NumPy must not look inside them."""
    flat = np.empty(len(entries), dtype=object)
    for position, entry in enumerate(entries):
        flat[position] = entry
    return flat.reshape(shape)


def elementwise(function: Callable[[Any], Any], array: np.ndarray) -> np.ndarray:
    """`function` of each entry, as an object array of the same shape."""
    return object_array([function(entry) for entry in array.reshape(-1)], array.shape)


class BallArithmetic(NumPyArithmetic):
    """Float64 balls. Exponentials are those of `arb` at 64 bits."""

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Ball:
        mid = np.array([float(value) for value in values]).reshape(shape)
        exact = np.array([Fraction(float(value)) == value for value in values]).reshape(shape)
        return Ball(mid, np.where(exact, 0.0, 2 * UNIT * np.abs(mid)))

    def integers(self, array: Any) -> Ball:
        return Ball.exact(np.asarray(array, dtype=np.float64))

    def add(self, left: Ball, right: Ball) -> Ball:
        mid = left.mid + right.mid
        return Ball(mid, outward(left.rad + right.rad + UNIT * np.abs(mid), 4))

    def multiply(self, left: Ball, right: Ball) -> Ball:
        mid = left.mid * right.mid
        rad = np.abs(left.mid) * right.rad + left.rad * (np.abs(right.mid) + right.rad) + UNIT * np.abs(mid)
        return Ball(mid, outward(rad, 4))

    def matmul(self, left: Ball, right: Ball) -> Ball:
        n = left.shape[-1]
        mid = np.matmul(left.mid, right.mid)
        rad = np.matmul(np.abs(left.mid), right.rad + gamma(n) * np.abs(right.mid))
        if left.rad.any():
            rad += np.matmul(left.rad, np.abs(right.mid) + right.rad)
        return Ball(mid, outward(rad, 2 * n + 4))

    def sum(self, array: Ball, axes: tuple[int, ...]) -> Ball:
        n = int(np.prod([array.shape[axis] for axis in axes]))
        mid = array.mid.sum(axis=axes)
        rad = array.rad.sum(axis=axes) + gamma(n) * np.abs(array.mid).sum(axis=axes)
        return Ball(np.asarray(mid), np.asarray(outward(rad, n + 4)))

    def exp(self, array: Ball) -> Ball:
        with precision(64):
            pairs = zip(array.mid.flat, array.rad.flat, strict=True)
            return ball_of_arb(object_array([flint.arb(*pair).exp() for pair in pairs], array.shape))

    def reciprocal(self, array: Ball) -> Ball:
        low = np.abs(array.mid) - array.rad
        if not (low > 0).all():
            raise ArithmeticError("a ball that is divided by contains zero")
        mid = 1.0 / array.mid
        return Ball(mid, outward(array.rad * np.abs(mid) / low * (1 + 2.0**-40) + 2 * UNIT * np.abs(mid), 8))

    def concatenate(self, arrays: Sequence[Ball], axis: int) -> Ball:
        return Ball(
            np.concatenate([array.mid for array in arrays], axis=axis),
            np.concatenate([array.rad for array in arrays], axis=axis),
        )

    def broadcast(self, array: Ball, shape: Shape) -> Ball:
        return Ball(np.broadcast_to(array.mid, shape), np.broadcast_to(array.rad, shape))

    def spread(self, array: Ball, places: np.ndarray, size: int) -> Ball:
        n = int(np.bincount(places).max(initial=1))
        mid, rad, sums = (
            FloatArithmetic().spread(a, places, size) for a in (array.mid, array.rad, np.abs(array.mid))
        )
        return Ball(mid, outward(rad + gamma(n) * sums, n + 4))


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Run with `arb` at this precision."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def arb_number(value: Fraction) -> Any:
    """A rational number as an `arb` at the present precision."""
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


ARB = ObjectArithmetic(arb_number)
"""Object arrays of `arb`; to be used within :func:`precision`."""
