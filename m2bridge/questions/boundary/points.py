"""Draw random points of the linear span, one of each kind."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from m2bridge.families import Attention
from m2bridge.questions.boundary.criterion import Where

Coordinates = tuple[Fraction, ...]
_LARGEST = 4
"""Largest absolute value of the integers in examples."""


@dataclass(frozen=True, slots=True)
class Example:
    """A random point that lies at `where` by construction; :func:`decide` must confirm it."""

    name: str
    where: Where
    coordinates: Coordinates


def draw_examples(model: Attention, seed: int) -> tuple[Example, ...]:
    """Return one point of each kind that exists at this size: generic, two real factors, irrational, one, conjugate, none."""
    rng = np.random.default_rng([seed, 11])
    generic = model.coordinates(_generic(model, rng))
    examples = [Example("generic", "image", tuple(Fraction(int(c)) for c in generic))]
    if model.d >= 2:
        k, v = _independent(model.d, rng)
        h, q = _vector(model.dp, rng), _vector(model.d, rng)
        u, w = k[:, None] * k[None, :], v[:, None] * v[None, :]
        examples += [
            Example("two real factors", "image", separated(model, h, q, k[:, None] * v + v[:, None] * k)),
            Example("irrational factors", "image", separated(model, h, q, 2 * u - 4 * w)),
            Example("one real factor", "boundary", separated(model, h, q, 2 * u)),
            Example("conjugate factors", "closure-only", separated(model, h, q, 2 * u + 2 * w)),
            Example("irrational conjugate factors", "closure-only", separated(model, h, q, -2 * u - 4 * w)),
            Example("no factors", "outside", _outside(model, rng)),
        ]
    return tuple(examples)


def separated(model: Attention, h: np.ndarray, q: np.ndarray, hessian: np.ndarray) -> Coordinates:
    """Return the point h (x) q (x) S for the symmetric matrix S = hessian / 2."""
    i, j = np.triu_indices(model.d)
    quadric = [Fraction(int(c)) / (2 if r == s else 1) for c, r, s in zip(hessian[i, j], i, j, strict=True)]
    return tuple(int(hn) * int(qm) * c for hn in h for qm in q for c in quadric)


def _generic(model: Attention, rng: np.random.Generator) -> dict[str, np.ndarray]:
    d, r, s = model.d, model.attention_rank, min(model.d, model.dp)
    while True:
        left, right, V = (rng.integers(-_LARGEST, _LARGEST + 1, n) for n in ((d, r), (r, d), (model.dp, d)))
        A = left @ right
        ranks = [np.linalg.matrix_rank(matrix) for matrix in (A, V, np.hstack([A, V.T]))]
        if ranks == [r, s, min(d, r + s)]:
            return {"A": A, "V": V}


def _outside(model: Attention, rng: np.random.Generator) -> Coordinates:
    """Return quadrics z[n, 1] = c x_1^2 and z[n, 2] = c' x_2^2, others random: the first two have no common factor nu_n."""
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
