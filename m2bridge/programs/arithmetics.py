"""The arithmetics over which programs are interpreted: float64, F_p, objects (polynomials, rationals, `arb`), float64 balls.

Each is a small table of functions on arrays. Indexing, reshaping and transposing are those of the arrays themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

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


class Floats:
    """Float64, or another floating-point type; the other arithmetics say what they do otherwise."""

    def __init__(self, dtype: Any = np.float64) -> None:
        self.dtype = np.dtype(dtype)

    def constant(self, values: Sequence[Fraction], shape: Shape) -> Array:
        return np.array([float(value) for value in values], dtype=self.dtype).reshape(shape)

    def integers(self, array: Any) -> Array:
        """An array of integers in this arithmetic."""
        return np.asarray(array, dtype=self.dtype)

    def enter(self, array: Any) -> Array:
        """An array as people give it, in this arithmetic."""
        return self.integers(array)

    def leave(self, array: Array) -> Any:
        """An array of this arithmetic as people get it."""
        return array

    def zeros(self, shape: Shape) -> Array:
        return self.integers(np.zeros(shape, dtype=np.int64))

    def tidy(self, array: Any) -> Array:
        """What NumPy made of sums and products of arrays, as an array of this arithmetic."""
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
        """Exponentials divided by their sum along an axis, which is counted from the end."""
        return self.normalised(self.exp(array - array.max(axis=axis, keepdims=True)), axis)

    def kept_sum(self, array: Array, axis: int) -> Array:
        """The sum along an axis, counted from the end, which stays with length 1."""
        shape = list(array.shape)
        shape[axis] = 1
        return self.sum(array, (len(shape) + axis,)).reshape(tuple(shape))

    def normalised(self, array: Array, axis: int) -> Array:
        return self.multiply(array, self.reciprocal(self.kept_sum(array, axis)))

    def concatenate(self, arrays: Sequence[Array], axis: int) -> Array:
        return np.concatenate(arrays, axis=axis)

    def broadcast(self, array: Array, shape: Shape) -> Array:
        return np.broadcast_to(array, shape)

    def spread(self, array: Array, places: np.ndarray, size: int) -> Array:
        """Entries of the last axis added up at the given places of a last axis of length `size`."""
        result = self.zeros((*array.shape[:-1], size))
        np.add.at(result.swapaxes(0, -1), places, array.swapaxes(0, -1))
        return self.tidy(result)


class Residues(Floats):
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

    def enter(self, array: Any) -> Array:
        return elementwise(lambda x: self.number(Fraction(x)), np.asarray(array))

    def tidy(self, array: Any) -> Array:
        """NumPy takes a single object out of its array: put it back."""
        return array if isinstance(array, np.ndarray) else object_array([array], ())

    def exp(self, array: Array) -> Array:
        return elementwise(lambda entry: entry.exp(), array)

    def reciprocal(self, array: Array) -> Array:
        return elementwise(lambda entry: 1 / entry, array)

    def softmax(self, array: Array, axis: int) -> Array:
        return self.normalised(self.exp(array), axis)


def object_array(entries: Sequence[Any], shape: Shape) -> np.ndarray:
    """Entries in row-major order as an object array; NumPy must not look inside them."""
    flat = np.empty(len(entries), dtype=object)
    for position, entry in enumerate(entries):
        flat[position] = entry
    return flat.reshape(shape)


def elementwise(function: Callable[[Any], Any], array: np.ndarray) -> np.ndarray:
    """`function` of each entry, as an object array of the same shape."""
    return object_array([function(entry) for entry in array.reshape(-1)], array.shape)


class Balls(Floats):
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

    def softmax(self, array: Ball, axis: int) -> Ball:
        found: Ball = self.normalised(self.exp(array), axis)
        return found

    def concatenate(self, arrays: Sequence[Ball], axis: int) -> Ball:
        return Ball(
            np.concatenate([array.mid for array in arrays], axis=axis),
            np.concatenate([array.rad for array in arrays], axis=axis),
        )

    def broadcast(self, array: Ball, shape: Shape) -> Ball:
        return Ball(np.broadcast_to(array.mid, shape), np.broadcast_to(array.rad, shape))

    def spread(self, array: Ball, places: np.ndarray, size: int) -> Ball:
        n = int(np.bincount(places).max(initial=1))
        mid, rad, sums = (Floats().spread(a, places, size) for a in (array.mid, array.rad, np.abs(array.mid)))
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


ARB = Objects(arb_number)
"""Object arrays of `arb`; to be used within :func:`precision`."""
