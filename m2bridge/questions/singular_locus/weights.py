"""Declared strata of the weights: where ranks drop, neurons coincide or vanish. They are the candidates for singular points.

A stratum enters as a sentence and leaves as one exact random point of it together with directions that span its tangent space
there, so that the dimension of its image is a rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from m2bridge.models.base import Model
from m2bridge.questions.fiber.points import Point, fractions_of

_MOST_STRATA = 24
_SPREAD = 500
"""Weights are drawn below this: among small integers special points, say the node of t^2-1, t^3-t, are not rare."""


@dataclass(frozen=True, kw_only=True)
class WeightStratum:
    """A set of weights: its name, a random point of it, and tangent directions there (rows, flat weights)."""

    name: str
    point: Point
    directions: np.ndarray


def declared_strata(model: Model, seed: int) -> list[WeightStratum]:
    """Random weights; for every matrix each smaller rank, a zero row, equal rows; zero and equal variables of a map; zero."""
    rng = np.random.default_rng([seed, 31])
    found = [_stratum(model, "random weights", None, rng)]
    for part in _parts(model):
        if len(found) <= _MOST_STRATA:
            found.append(_stratum(model, part[1], part, rng))
    return found


Part = tuple[str, str, str, tuple[int, ...]]
"""Weight, sentence, kind and numbers."""


def _parts(model: Model) -> Iterator[Part]:
    for name, shape in model.parameters.items():
        if len(shape) == 2:
            rows, columns = shape
            for k in range(min(rows, columns) - 1, 0, -1):
                yield name, f"rk {name} = {k}", "rank", (k,)
            if rows == columns > 1:
                yield name, f"{name} skew-symmetric", "skew", ()
            if rows > 1:
                yield name, f"a zero row of {name}", "zero", (0,)
                yield name, f"two equal rows of {name}", "equal", (0, 1)
            if columns > 1:
                yield name, f"a zero column of {name}", "zero column", (0,)
        elif len(shape) == 1:
            names = getattr(model, "variables", [f"{name}[{i}]" for i in range(shape[0])])
            for i in range(shape[0]) if shape[0] > 1 else ():
                yield name, f"{names[i]} = 0", "zero", (i,)
            for i, j in combinations(range(min(shape[0], 4)), 2):
                yield name, f"{names[i]} = {names[j]}", "equal", (i, j)
        yield name, f"{name} = 0" if len(model.parameters) > 1 else "all weights 0", "nothing", ()
    if len(model.parameters) > 1:
        yield "", "all weights 0", "nothing", ()


def _stratum(model: Model, name: str, part: Part | None, rng: np.random.Generator) -> WeightStratum:
    weights = {n: rng.integers(1, _SPREAD, size=shape) * rng.choice([-1, 1], size=shape)
               for n, shape in model.parameters.items()}  # fmt: skip
    blocks: list[np.ndarray] = []
    for n, shape in model.parameters.items():
        size = int(np.prod(shape))
        own = np.eye(size, dtype=object).reshape(size, *shape)
        if part is not None and part[0] in (n, ""):
            weights[n], own = _special(weights[n], own, part[2], part[3], rng)
        blocks.append(own.reshape(len(own), size))
    total = sum(block.shape[1] for block in blocks)
    rows = np.zeros((sum(map(len, blocks)), total), dtype=object)
    r = c = 0
    for block in blocks:
        rows[r : r + len(block), c : c + block.shape[1]] = block
        r, c = r + len(block), c + block.shape[1]
    exact = {n: fractions_of(w) for n, w in weights.items()}
    return WeightStratum(
        name=name, point=Point(model=model, kind="stratum", weights=exact, detail=name), directions=rows
    )


def _special(
    weight: np.ndarray, units: np.ndarray, kind: str, numbers: tuple[int, ...], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The weight moved into its stratum, and the directions along it."""
    if kind == "rank":
        (k,), (rows, columns) = numbers, weight.shape
        left, right = (rng.integers(1, _SPREAD, size=shape) for shape in ((rows, k), (k, columns)))
        lefts = np.eye(rows * k, dtype=object).reshape(-1, rows, k) @ right.astype(object)
        rights = left.astype(object) @ np.eye(k * columns, dtype=object).reshape(-1, k, columns)
        return left @ right, np.concatenate([lefts, rights])
    if kind == "skew":
        return np.triu(weight, 1) - np.triu(weight, 1).T, units - np.swapaxes(units, 1, 2)
    weight, units = weight.copy(), units.copy()
    if kind == "zero":
        weight[numbers[0]], units[:, numbers[0]] = 0, 0
    elif kind == "zero column":
        weight[:, numbers[0]], units[:, :, numbers[0]] = 0, 0
    elif kind == "equal":
        i, j = numbers
        weight[j], units[:, j] = weight[i], units[:, i]
    else:
        return weight * 0, units[:0]
    return weight, units
