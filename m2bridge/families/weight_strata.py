"""Special weights of any model: smaller ranks, equal or zero neurons, zero. Their images are candidates for singular points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import prod
from typing import Any

import numpy as np

from m2bridge.families.base import Model
from m2bridge.families.strata import Strata

_MOST_STRATA = 24  # each takes a rank and a row of the answer
_LARGEST_DRAWN_ENTRY = 500
"""Upper bound of drawn weights: among small integers special points, such as the node of t^2-1, t^3-t, are frequent."""

Move = Callable[[np.ndarray], np.ndarray]
"""A linear projection of the arrays of one weight onto those of a stratum."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightStratum:
    """A set of weights: its name, a random point of it, and tangent directions there (rows, flat weights)."""

    name: str
    weights: Mapping[str, np.ndarray]
    directions: np.ndarray

    def __str__(self) -> str:
        return self.name


class WeightStrata(Strata):
    """Declared strata of the weights of any model, one random point each.

    They are random weights; for every matrix each smaller rank, a zero row, equal rows; zero and equal variables of a map; zero.
    """

    exhaustive = False
    closure_coordinates = 200

    def __init__(self, model: Model, seed: int) -> None:
        self.model, self.seed = model, seed

    @cached_property
    def _drawn(self) -> list[WeightStratum]:
        rng = np.random.default_rng([self.seed, 31])
        special = islice(_special_weights(self.model.free), _MOST_STRATA)
        return [
            _stratum(self.model.free, *description, rng)
            for description in (((), "random weights", 0), *special)
        ]

    def strata(self) -> Sequence[WeightStratum]:
        return self._drawn

    def representative(self, stratum: WeightStratum) -> Mapping[str, np.ndarray]:
        return stratum.weights

    def directions(self, stratum: WeightStratum) -> np.ndarray:
        return stratum.directions


def _special_weights(model: Model) -> Iterator[tuple[tuple[str, ...], str, Move | int]]:
    """Yield the names of special weights, a description, and a projection onto them or their rank."""
    for name, shape in model.parameters.items():
        if len(shape) == 2:
            yield from _special_matrices(name, *shape)
        elif len(shape) == 1:
            names = model.user.variables or [f"{name}[{i}]" for i in range(shape[0])]
            for i in range(shape[0]) if shape[0] > 1 else ():
                yield (name,), f"{names[i]} = 0", _equal(i)
            for i, j in combinations(range(min(shape[0], 4)), 2):
                yield (name,), f"{names[i]} = {names[j]}", _equal(j, i)
        if len(model.parameters) > 1:
            yield (name,), f"{name} = 0", lambda w: 0 * w
    yield tuple(model.parameters), "all weights 0", lambda w: 0 * w


def _special_matrices(
    name: str, rows: int, columns: int
) -> Iterator[tuple[tuple[str, ...], str, Move | int]]:
    for k in range(min(rows, columns) - 1, 0, -1):
        yield (name,), f"rk {name} = {k}", k
    if rows == columns > 1:
        yield (name,), f"{name} skew-symmetric", lambda w: np.triu(w, 1) - np.triu(w, 1).T
    if rows > 1:
        yield (name,), f"a zero row of {name}", _equal(0)
        yield (name,), f"two equal rows of {name}", _equal(1, 0)
    if columns > 1:
        yield (name,), f"a zero column of {name}", lambda w: _equal(0)(w.T).T


def _equal(i: int, j: int | None = None) -> Move:
    """Return the projection that makes row i equal to row j, or to zero."""

    def moved(w: np.ndarray) -> np.ndarray:
        projected = w.copy()
        projected[i] = 0 if j is None else w[j]
        return projected

    return moved


def _stratum(
    model: Model, special: Sequence[str], name: str, restriction: Move | int, rng: np.random.Generator
) -> WeightStratum:
    weights = {n: rng.integers(1, _LARGEST_DRAWN_ENTRY, size=shape) * rng.choice([-1, 1], size=shape)
               for n, shape in model.parameters.items()}  # fmt: skip
    zero = {n: np.zeros(shape, dtype=object) for n, shape in model.parameters.items()}
    directions = []
    for n, shape in model.parameters.items():
        along: Any = [unit.reshape(shape) for unit in np.eye(prod(shape), dtype=object)]
        if n in special and not isinstance(restriction, int):
            weights[n], along = restriction(weights[n]), map(restriction, along)
        elif n in special and isinstance(restriction, int):  # a product of rank k
            left, right = (
                rng.integers(1, _LARGEST_DRAWN_ENTRY, size=size)
                for size in ((shape[0], restriction), (restriction, shape[1]))
            )
            lefts, rights = (np.eye(m.size, dtype=object).reshape(-1, *m.shape) for m in (left, right))
            weights[n], along = left @ right, [*(lefts @ right), *(left @ rights)]
        # The projection of a scalar weight is a number, not an array.
        directions += [model.flatten({**zero, n: np.asarray(to, dtype=object)}) for to in along]
    exact = {n: np.asarray(w) for n, w in weights.items()}
    return WeightStratum(name=name, weights=exact, directions=np.array(directions, dtype=object))
