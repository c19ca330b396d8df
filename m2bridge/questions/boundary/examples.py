"""Exact random points of each kind, built from what makes them so; :mod:`decide` must then find it out again."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from m2bridge.models import Lightning
from m2bridge.questions.boundary.decide import Where
from m2bridge.questions.boundary.points import Coordinates

_LARGEST = 4


@dataclass(frozen=True, slots=True)
class Example:
    """A point built to lie at `where`."""

    name: str
    where: Where
    coordinates: Coordinates


def draw_examples(model: Lightning, seed: int) -> tuple[Example, ...]:
    """One point of each kind that this size has: generic, with two real factors, irrational ones, one, complex ones, none."""
    rng = np.random.default_rng([seed, 11])
    found = [Example("generic", "image", _weights_point(model, *_generic(model, rng)))]
    if model.d >= 2:
        k, v = _independent(model.d, rng)
        h, q = _vector(model.dp, rng), _vector(model.d, rng)
        u, w = k[:, None] * k[None, :], v[:, None] * v[None, :]
        found += [
            Example("two real factors", "image", separated(model, h, q, k[:, None] * v + v[:, None] * k)),
            Example("irrational factors", "image", separated(model, h, q, 2 * u - 4 * w)),
            Example("one real factor", "boundary", separated(model, h, q, 2 * u)),
            Example("conjugate factors", "closure-only", separated(model, h, q, 2 * u + 2 * w)),
            Example("irrational conjugate factors", "closure-only", separated(model, h, q, -2 * u - 4 * w)),
            Example("no factors", "outside", _outside(model, rng)),
        ]
    return tuple(found)


def separated(model: Lightning, h: np.ndarray, q: np.ndarray, hessian: np.ndarray) -> Coordinates:
    """The point h (x) q (x) S for the symmetric matrix S = hessian / 2."""
    i, j = np.triu_indices(model.d)
    quadric = [Fraction(int(c)) / (2 if r == s else 1) for c, r, s in zip(hessian[i, j], i, j, strict=True)]
    return tuple(int(hn) * int(qm) * c for hn in h for qm in q for c in quadric)


def _weights_point(model: Lightning, A: np.ndarray, V: np.ndarray) -> Coordinates:
    return tuple(Fraction(int(c)) for c in model.coordinates({"A": A, "V": V}))


def _generic(model: Lightning, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    r, s = model.attention_rank, min(model.d, model.dp)
    while True:
        A = rng.integers(-_LARGEST, _LARGEST + 1, (model.d, r)) @ rng.integers(
            -_LARGEST, _LARGEST + 1, (r, model.d)
        )
        V = rng.integers(-_LARGEST, _LARGEST + 1, (model.dp, model.d))
        joint = np.linalg.matrix_rank(np.hstack([A, V.T]))
        if np.linalg.matrix_rank(A) == r and np.linalg.matrix_rank(V) == s and joint == min(model.d, r + s):
            return A, V


def _outside(model: Lightning, rng: np.random.Generator) -> Coordinates:
    """Quadrics z[n, 1] = x_1^2 and z[n, 2] = x_2^2 (times a number), others random: the first two share no factor nu_n."""
    table = rng.integers(1, 50, (model.dp, model.d, model.d * (model.d + 1) // 2))
    table[0, :2] = 0
    table[0, 0, 0], table[0, 1, model.d] = rng.integers(1, 50, 2)  # index d is x_2^2
    return tuple(Fraction(int(c)) for c in table.ravel())


def _vector(size: int, rng: np.random.Generator) -> np.ndarray:
    while True:
        vector = rng.integers(-_LARGEST, _LARGEST + 1, size)
        if vector.all():
            return vector


def _independent(size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    while True:
        k, v = _vector(size, rng), _vector(size, rng)
        if any(k[0] * v[i] != k[i] * v[0] for i in range(size)):
            return k, v
