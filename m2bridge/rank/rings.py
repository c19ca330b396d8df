"""Rank stage: the arithmetics over which attention Jacobians are written: F_p, float64, and balls.

Each ring offers the same few operations on its arrays (the last two axes are matrices), and its own softmax:
over F_p there is no exponential, so that exp(score) is replaced by independent random units, which is a heuristic and is
named so wherever it is used.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from m2bridge.linear.residues import Field, Floats


class Ring(Protocol):
    """What the backward pass needs of an arithmetic."""

    def matmul(self, left: Any, right: Any) -> Any: ...
    def add(self, left: Any, right: Any) -> Any: ...
    def transpose(self, array: Any) -> Any: ...
    def softmax(self, scores: Any) -> Any:
        """Columns of exp(scores), normalized to sum 1."""
        ...

    def softmax_adjoint(self, weights: Any, adjoint: Any) -> Any:
        """The adjoint of the scores, given that of the normalized weights."""
        ...


class FieldRing:
    """F_p on balanced residues; exp(score) is drawn from `rng`."""

    def __init__(self, field: Field, rng: np.random.Generator | None = None) -> None:
        self.field = field
        self.rng = rng

    def matmul(self, left: Floats, right: Floats) -> Floats:
        return self.field.matmul(left, right)

    def add(self, left: Floats, right: Floats) -> Floats:
        return self.field.reduce(left + right)

    def transpose(self, array: Floats) -> Floats:
        return np.asarray(np.swapaxes(array, -1, -2))

    def softmax(self, scores: Floats) -> Floats:
        if self.rng is None:
            raise ValueError("over F_p a softmax needs random units")
        p = self.field.p
        units = self.rng.integers(1, p, size=scores.shape, dtype=np.int64)
        sums = units.sum(axis=-2, keepdims=True) % p
        while not sums.all():  # a column whose units sum to zero is drawn again
            units = np.where(sums == 0, self.rng.integers(1, p, size=scores.shape, dtype=np.int64), units)
            sums = units.sum(axis=-2, keepdims=True) % p
        inverse = np.array([pow(int(s), -1, p) for s in sums.flat], dtype=np.int64).reshape(sums.shape)
        return self.field.residues(units * inverse)

    def softmax_adjoint(self, weights: Floats, adjoint: Floats) -> Floats:
        field = self.field
        mixed = field.reduce(weights * adjoint)
        centred = field.reduce(adjoint - field.reduce(mixed.sum(axis=-2, keepdims=True)))
        return field.reduce(weights * centred)


class FloatRing:
    """Float64."""

    def matmul(self, left: Floats, right: Floats) -> Floats:
        return np.asarray(np.matmul(left, right))

    def add(self, left: Floats, right: Floats) -> Floats:
        return np.asarray(left + right)

    def transpose(self, array: Floats) -> Floats:
        return np.asarray(np.swapaxes(array, -1, -2))

    def softmax(self, scores: Floats) -> Floats:
        powers = np.exp(scores - scores.max(axis=-2, keepdims=True))
        return np.asarray(powers / powers.sum(axis=-2, keepdims=True))

    def softmax_adjoint(self, weights: Floats, adjoint: Floats) -> Floats:
        return np.asarray(weights * (adjoint - (weights * adjoint).sum(axis=-2, keepdims=True)))
