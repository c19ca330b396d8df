"""Programs over balls: float64 midpoints and radii, or python-flint's `arb` at any precision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from m2bridge.linear.balls import UNIT, Ball, ball_of_arb, gamma, outward
from m2bridge.programs.arithmetics import Floats, Objects, object_array
from m2bridge.programs.instructions import Shape


class Balls(Floats):
    """Float64 balls. Exponentials are those of `arb` at 64 bits."""

    def __init__(self) -> None:
        super().__init__(np.float64)

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

    def scale(self, factor: Fraction, array: Ball) -> Ball:
        return self.multiply(self.constant([factor], ()), array)

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
            pairs = zip(array.mid.reshape(-1).tolist(), array.rad.reshape(-1).tolist(), strict=True)
            powers = object_array([flint.arb(mid, rad).exp() for mid, rad in pairs], array.shape)
        return ball_of_arb(powers)

    def reciprocal(self, array: Ball) -> Ball:
        low = np.abs(array.mid) - array.rad
        if not (low > 0).all():
            raise ArithmeticError("a ball that is divided by contains zero")
        mid = 1.0 / array.mid
        return Ball(mid, outward(array.rad * np.abs(mid) / low * (1 + 2.0**-40) + 2 * UNIT * np.abs(mid), 8))

    def softmax(self, array: Ball, axis: int) -> Ball:
        powers = self.exp(array)
        core = list(array.shape)
        core[axis] = 1
        sums = self.sum(powers, (array.ndim + axis,)).reshape(tuple(core))
        return self.multiply(powers, self.reciprocal(sums))

    def concatenate(self, arrays: Sequence[Ball], axis: int) -> Ball:
        return Ball(
            np.concatenate([array.mid for array in arrays], axis=axis),
            np.concatenate([array.rad for array in arrays], axis=axis),
        )

    def broadcast(self, array: Ball, shape: Shape) -> Ball:
        return Ball(np.broadcast_to(array.mid, shape), np.broadcast_to(array.rad, shape))

    def spread(self, array: Ball, places: np.ndarray, size: int) -> Ball:
        n = int(np.bincount(places).max(initial=1))
        mid = super().spread(array.mid, places, size)
        rad = super().spread(array.rad, places, size) + gamma(n) * super().spread(
            np.abs(array.mid), places, size
        )
        return Ball(mid, outward(rad, n + 4))


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
