"""Rank stage: balls of any precision, python-flint's `arb` in object arrays, for networks too deep for float64 balls.

Each layer multiplies the radii by the norms of its weights, so that 53 bits are used up after a few layers; here the
precision is a parameter. The result is rounded outward to float64 balls, in which the rank is then proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from m2bridge.linear.balls import UNIT, Ball, outward

Objects = NDArray[np.object_]


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Run with `arb` at this precision."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


class ArbRing:
    """The operations of a backward pass on object arrays of `arb`."""

    def matmul(self, left: Objects, right: Objects) -> Objects:
        return np.asarray(np.matmul(left, right))

    def add(self, left: Objects, right: Objects) -> Objects:
        return np.asarray(left + right)

    def transpose(self, array: Objects) -> Objects:
        return np.swapaxes(array, -1, -2)

    def softmax(self, scores: Objects) -> Objects:
        powers = _each(lambda value: value.exp(), scores)
        return np.asarray(powers / powers.sum(axis=-2, keepdims=True))

    def softmax_adjoint(self, weights: Objects, adjoint: Objects) -> Objects:
        return np.asarray(weights * (adjoint - (weights * adjoint).sum(axis=-2, keepdims=True)))


def from_dyadic(numerators: NDArray[np.int64], bits: int) -> Objects:
    """Integers divided by 2^bits, exactly."""
    scale = flint.arb(2) ** -bits
    return _each(lambda value: flint.arb(int(value)) * scale, numerators)


def to_ball(array: Objects) -> Ball:
    """The smallest float64 balls we can name that contain those of `array`."""
    mid, rad = np.empty(array.shape), np.empty(array.shape)
    for index in np.ndindex(array.shape):
        value: Any = array[index]
        mid[index] = float(value.mid())
        rad[index] = float(value.rad())
    return Ball(mid, outward(rad * (1 + 2.0**-20) + 2 * UNIT * np.abs(mid), 8))


def _each(function: Any, array: NDArray[Any]) -> Objects:
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        result[index] = function(array[index])
    return result
