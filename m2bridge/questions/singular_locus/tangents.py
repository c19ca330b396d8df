"""Lower bounds of Zariski tangent spaces of a closure at a point, by curves in the image and without equations.

Let W(s) = W + s B be a line of weights, and z + s^k w + ... the image point, with w the first coefficient that does not vanish.
Then w lies in the tangent cone at z and hence in the Zariski tangent space. The span of such w, over lines through all computed
weights of the fiber, is computed over ZZ, so that the bound holds over QQ. Upper bounds are computed from equations
(:mod:`m2bridge.questions.singular_locus.equations`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from m2bridge.families.base import Model, Weights
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.programs.arithmetics import elementwise, object_array
from m2bridge.programs.instructions import flat_parts
from m2bridge.questions import over_q

_IDLE_CURVES = 12
"""Stop after this many further curves that add nothing; stopping early only weakens the bound."""
_CHUNK = 4096  # terms of a sum of products below 2^63
_ORDERS = range(2, 64)
"""Orders among which the first non-zero coefficient of a curve is searched; at weights 0 a deep network has a high one."""
Line = tuple[np.ndarray, np.ndarray, list[Fraction]]
"""Flat weights and a direction, and the tangent vector of the image of this line."""


def spanning_lines(
    model: Model, fiber: Sequence[Weights], rng: np.random.Generator, *, enough: int | None = None
) -> list[Line]:
    """Return lines through the weights of a fiber whose tangent vectors are independent over QQ.

    The number of lines is a proved lower bound of the dimension of the Zariski tangent space of the image closure at the common
    image point of `fiber`; more weights of the fiber can only raise it. The model has arbitrary weights
    (:attr:`~m2bridge.families.base.Model.free`). The search ends once there are more than `enough` lines.
    """
    lines: list[Line] = []
    span = _Span(model.coordinate_count)
    most = model.coordinate_count if enough is None else min(enough + 1, model.coordinate_count)
    bases = []
    units = np.eye(model.parameter_count, dtype=int)
    for weights in fiber:
        if len(lines) >= most:
            return lines
        base = _flat(model, weights)
        first_order = first_order_images(model, weights)
        lines += [(base, unit, v) for unit, v in zip(units, first_order, strict=True) if span.add(v)]
        bases.append((base, first_order))
    # Along a direction in the kernel of the differential the curve begins at order two or higher.
    for base, first_order in bases:
        if len(lines) >= most:
            return lines
        kernel = over_q.kernel(np.array(first_order, dtype=object).T)
        idle = 0
        while len(kernel) and len(lines) < most and idle < _IDLE_CURVES:
            direction = rng.integers(-3, 4, size=len(kernel)).astype(object) @ kernel
            vector = _leading(model, base, direction, orders=_ORDERS)
            idle += 1
            if span.add(vector):
                lines.append((base, direction, vector))
                idle = 0
    return lines


class _Span:
    """Vectors over QQ that are independent modulo a large prime, hence independent over QQ; added one by one.

    `rows` is their reduced echelon form modulo the prime. A vector that is dependent only modulo the prime is omitted, which only
    weakens a lower bound.
    """

    def __init__(self, length: int) -> None:
        self.rows = np.zeros((0, length), dtype=np.int64)
        self.pivots: list[int] = []

    def add(self, vector: Sequence[Fraction]) -> bool:
        """Add the vector if it is independent of those before; return whether it was."""
        p = LARGE_PRIME
        if any(c.denominator % p == 0 for c in vector):
            return False
        v = np.array([c.numerator * pow(c.denominator, -1, p) % p for c in vector], dtype=np.int64)
        for start in range(0, len(self.pivots), _CHUNK):  # sums of products stay below 2^63
            chunk = slice(start, start + _CHUNK)
            v = (v - v[self.pivots[chunk]] @ self.rows[chunk]) % p
        if not v.any():
            return False
        pivot = int(np.flatnonzero(v)[0])
        v = v * pow(int(v[pivot]), -1, p) % p
        self.rows = np.vstack([(self.rows - np.outer(self.rows[:, pivot], v)) % p, v])
        self.pivots.append(pivot)
        return True


def first_order_images(model: Model, weights: Weights) -> list[list[Fraction]]:
    """Return the derivatives over QQ of the image point by each weight, one row per weight."""
    flat = [Fraction(x) for x in _flat(model, weights)]
    numbers = [x.numerator if x.denominator == 1 else x for x in flat]  # integers are ten times as fast
    exact = model.unflatten(np.array(numbers, dtype=object))
    derivatives = np.asarray(model.coordinate_jacobian(exact)).T
    rows: list[list[Fraction]] = elementwise(Fraction, derivatives).tolist()
    return rows


def flat_neighbours(model: Model, weights: Weights, images: np.ndarray) -> list[Weights]:
    """Return other weights of the fiber: one weight moved along a direction in which the function is constant, exactly.

    `images` are the derivatives of :func:`first_order_images`. A candidate is a vector in the kernel of the differential that
    moves one weight only; it is kept when the function does not change at any order.
    """
    base = _flat(model, weights)
    neighbours: list[Weights] = []
    for _, _, block in flat_parts(model.parameters):
        for v in over_q.kernel(images[block].T):
            direction = np.zeros(len(base), dtype=object)
            direction[block] = v
            if not any(_leading(model, base, direction, orders=range(1, 64))):
                neighbours.append(model.unflatten(base + direction))
    return neighbours


def _flat(model: Model, weights: Weights) -> np.ndarray:
    flat = model.flatten({name: np.asarray(value) for name, value in weights.items()})
    return np.asarray(flat, dtype=object)


def _leading(model: Model, base: np.ndarray, direction: np.ndarray, orders: Sequence[int]) -> list[Fraction]:
    """Return the first non-zero coefficient, among `orders`, of the image point along base + s * direction; zeros if none."""
    entries = [flint.fmpq_poly([over_q.fmpq(b), int(v)]) for b, v in zip(base, direction, strict=True)]
    values = model.coordinates(model.unflatten(object_array(entries, base.shape))).ravel()
    point: list[Any] = [c if isinstance(c, flint.fmpq_poly) else flint.fmpq_poly([c]) for c in values]
    for order in orders:
        coefficient = [over_q.fraction(c[order]) for c in point]
        if any(coefficient):
            return coefficient
    return [Fraction(0)] * len(point)
