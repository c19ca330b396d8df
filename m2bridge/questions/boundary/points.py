"""Read points of the linear span exactly, from coordinates or weights, and draw random points of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.exact_numbers import exact_number
from m2bridge.families import Attention
from m2bridge.questions import over_q
from m2bridge.questions.boundary.criterion import Where
from m2bridge.questions.critical_points.losses import linear_in_coordinates
from m2bridge.questions.membership.points import written_point
from m2bridge.questions.point import point_from_weights

Coordinates = tuple[Fraction, ...]
_LARGEST = 4
"""Largest absolute value of the integers in examples."""
_HOW = 'write a list of coordinates, or an object such as {"A": [[1,0],[0,1]], "V": [[1,"1/2"]]}'


def as_point(model: Attention, value: Any, source: str = "the point") -> Coordinates:
    """Return the Segre coordinates of a point: from Segre or all coordinates, the weights A and V (or Q, K, V), or a text.

    A text is a file, JSON, or a list such as ``1,0,-1/2,0,0,0``. Numbers are integers, Fractions, or texts like "1/3".
    """
    if isinstance(value, str):
        value, source = written_point(value, _HOW)
    if isinstance(value, Mapping):
        if "coordinates" in value:
            value = value["coordinates"]
        elif "V" in value and ("A" in value or {"Q", "K"} <= set(value)):
            parametrized = model if "A" in value else replace(model, parametrization="weights")
            return tuple(point_from_weights(parametrized, value).image())
        else:
            raise InputError(f"{source} has neither coordinates nor weights A and V; {_HOW}")
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError(f"{source} is not a list; {_HOW}")
    numbers = tuple(exact_number(entry, source) for entry in value)
    if len(numbers) == model.coordinate_count:
        return numbers
    if len(numbers) == model.ambient_dim:
        return from_ambient(model, numbers, source)
    raise InputError(
        f"{source} has {len(numbers)} coordinates; {model} has {model.coordinate_count} "
        f"(Segre) or {model.ambient_dim} (all coefficients)"
    )


def span_matrix(model: Attention) -> np.ndarray:
    """Return the linear map from Segre coordinates, which determine the network (Proposition A.5), to all its coefficients."""
    return linear_in_coordinates(model, replace(model, coordinate_system="full").coordinates)


def from_ambient(model: Attention, numbers: Sequence[Fraction], source: str) -> Coordinates:
    """Return the Segre coordinates of a point given by all its coefficients; refuse points outside the span of the networks."""
    right = np.array(numbers, dtype=object)[:, None]
    solution = over_q.solve(span_matrix(model), right)
    if solution is None:
        raise InputError(
            f"{source} lies outside the {model.coordinate_count}-dimensional span of the networks in the "
            f"{model.ambient_dim}-dimensional space of functions"
        )
    return tuple(solution[:, 0])


# -- examples --------------------------------------------------------------------------------------------------------------------


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
