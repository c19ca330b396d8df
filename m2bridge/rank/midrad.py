"""Rank stage: rigorous real arithmetic on whole arrays: balls with float64 midpoints and radii.

Numbers that are exactly float64 enter, balls that contain the true results leave. A product of matrices
costs three BLAS products: one for the midpoints and two for the radii, as in S. M. Rump, *Fast and parallel
interval arithmetic*, BIT 39 (1999). The error of a float64 sum of n products is at most gamma_n = n u / (1 -
n u) times the sum of absolute values, in whatever order BLAS adds and with or without fused operations (N.
J. Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1). Exponentials are those of
python-flint's `arb`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UNIT = 2.0**-53
TINY = 1e-290
"""More than what underflow can add to any sum that fits in memory."""


def gamma(n: int) -> float:
    """An upper bound of n u / (1 - n u), rounding of the bound itself included; n < 2^40."""
    return (n + 2) * UNIT * (1 + 2.0**-10)


def outward(bound: Floats, n: int) -> Floats:
    """A float64 evaluation of a sum of n products of non-negative numbers, enlarged to an upper bound of it."""
    bound *= 1 + 4 * gamma(n + 8)
    bound += TINY
    return bound


@dataclass(frozen=True, slots=True)
class Ball:
    """An array of balls [mid - rad, mid + rad]."""

    mid: Floats
    rad: Floats

    @classmethod
    def exact(cls, array: Floats) -> Ball:
        return cls(array, np.zeros_like(array))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.mid.shape

    def reshape(self, *shape: int) -> Ball:
        return Ball(self.mid.reshape(*shape), self.rad.reshape(*shape))

    def __getitem__(self, key: Any) -> Ball:
        return Ball(self.mid[key], self.rad[key])


class BallRing:
    """The operations of a backward pass on :class:`Ball` arrays."""

    def matmul(self, left: Ball, right: Ball) -> Ball:
        n = left.shape[-1]
        mid = np.matmul(left.mid, right.mid)
        absolute = np.abs(left.mid)
        rad = np.matmul(absolute, right.rad + gamma(n) * np.abs(right.mid))
        if left.rad.any():
            rad += np.matmul(left.rad, np.abs(right.mid) + right.rad)
        return Ball(mid, outward(rad, 2 * n + 4))

    def add(self, left: Ball, right: Ball) -> Ball:
        mid = left.mid + right.mid
        return Ball(mid, outward(left.rad + right.rad + UNIT * np.abs(mid), 4))

    def subtract(self, left: Ball, right: Ball) -> Ball:
        return self.add(left, Ball(-right.mid, right.rad))

    def multiply(self, left: Ball, right: Ball) -> Ball:
        mid = left.mid * right.mid
        rad = np.abs(left.mid) * right.rad + left.rad * (np.abs(right.mid) + right.rad) + UNIT * np.abs(mid)
        return Ball(mid, outward(rad, 4))

    def transpose(self, array: Ball) -> Ball:
        return Ball(np.swapaxes(array.mid, -1, -2), np.swapaxes(array.rad, -1, -2))

    def sum_rows(self, array: Ball) -> Ball:
        """Sums over the last axis but one, which is kept."""
        n = array.shape[-2]
        mid = array.mid.sum(axis=-2, keepdims=True)
        rad = array.rad.sum(axis=-2, keepdims=True) + gamma(n) * np.abs(array.mid).sum(axis=-2, keepdims=True)
        return Ball(mid, outward(rad, n + 4))

    def softmax(self, scores: Ball) -> Ball:
        powers = exponential(scores)
        sums = self.sum_rows(powers)
        low = sums.mid - sums.rad
        if not (low > 0).all():
            raise ArithmeticError("the balls of the exponentials are too wide")
        mid = 1.0 / sums.mid
        inverse = Ball(mid, outward(sums.rad * mid / low + 2 * UNIT * mid, 8))
        return self.multiply(powers, inverse)

    def softmax_adjoint(self, weights: Ball, adjoint: Ball) -> Ball:
        mean = self.sum_rows(self.multiply(weights, adjoint))
        return self.multiply(weights, self.subtract(adjoint, mean))


def exponential(array: Ball) -> Ball:
    """Entrywise exponential, by `arb` at 64 bits."""
    mid, rad = np.empty(array.shape), np.empty(array.shape)
    precision = flint.ctx.prec
    flint.ctx.prec = 64
    try:
        for index in np.ndindex(array.shape):
            value = flint.arb(float(array.mid[index]), float(array.rad[index])).exp()
            mid[index] = float(value.mid())
            rad[index] = float(value.rad())
    finally:
        flint.ctx.prec = precision
    # both conversions to float64 may round: by less than 2 u of the midpoint, and of the radius itself
    return Ball(mid, outward(rad * (1 + 2.0**-20) + 2 * UNIT * np.abs(mid), 8))
