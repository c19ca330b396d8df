"""Declared strata of the weights: where ranks drop, neurons coincide or vanish. They are the candidates for singular points.

Each is asked at one random point: by curves from below, by equations from above. The verdicts never read the components that
Macaulay2 found; whether the image lies on one of them is compared with the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from m2bridge.linear.residues import residue
from m2bridge.models.base import Model
from m2bridge.models.polynomials import Polynomial, parse_polynomial
from m2bridge.questions import over_q
from m2bridge.questions.closure import Closure
from m2bridge.questions.dimension import Dimension
from m2bridge.questions.fiber.partners import partners
from m2bridge.questions.kernel import Asking
from m2bridge.questions.point import Point, fractions_of
from m2bridge.questions.singular_locus.result import Component, Place
from m2bridge.questions.singular_locus.tangents import (
    exact_span,
    first_order_images,
    flat_neighbours,
    tangent_upper,
    verdict_of,
)
from m2bridge.questions.testimony import compared, proves
from m2bridge.results import Certainty

_MOST_STRATA = 24
_SPREAD = 500
"""Weights are drawn below this: among small integers special points, say the node of t^2-1, t^3-t, are not rare."""


def places_in_weights(
    ask: Asking, model: Model, size: Dimension, found: Closure | None, components: Sequence[Component] | None
) -> tuple[Place, ...]:
    """Declared strata of the weights, each asked at one random point from below and from above."""
    ask.announce("strata of the weights")
    places = []
    for stratum in declared_strata(model.free, ask.seed):
        if ask.clock.remaining is not None and ask.clock.remaining < 1:
            break
        places.append(_place(ask, stratum, size, found, components))
    return tuple(places)


@dataclass(frozen=True, kw_only=True)
class WeightStratum:
    """A set of weights: its name, a random point of it, and tangent directions there (rows, flat weights)."""

    name: str
    point: Point
    directions: np.ndarray


def _place(
    ask: Asking, stratum: WeightStratum, size: Dimension, found: Closure | None, components: Sequence[Component] | None
) -> Place:  # fmt: skip
    model, weights = stratum.point.model, stratum.point.weights
    first = np.array(first_order_images(model, weights), dtype=object)
    rank = over_q.rank(first)
    image = over_q.rank(stratum.directions @ first) if len(stratum.directions) else 0
    fiber = [weights, *(model.unflatten(other) for _, other in partners(stratum.point))]
    if rank < size.image_dim:
        fiber += flat_neighbours(model, weights, first)
    lower = exact_span(model, fiber, np.random.default_rng([ask.seed, 6]), enough=size.upper_bound)
    quantity, method = f"tangent at {stratum.name}", "span over QQ of curves through the point"
    ask.evidence.append(proves(quantity, lower, "curves", method, relation=">=", scope="at-point"))
    upper, sure, complete, inside = None, Certainty.PROBABLE, False, None
    if found is not None:
        upper, sure = tangent_upper(found, stratum.point)
        complete = found.completeness == "complete" and found.agreement is not False
        method = f"coordinates minus the rank of the {found.completeness} equations' Jacobian"
        more = {"relation": "<=", "certainty": sure, "scope": "at-point"}
        ask.say(quantity, upper, "interpolation", method, **more)
    verdict, certainty = verdict_of(
        (size.lower_bound, size.upper_bound), lower, upper, sure, complete=complete
    )
    if components is not None and found is not None:
        inside = _components_at(stratum.point, found, components)
        ours = None if verdict == "undecided" else verdict == "singular"
        ask.evidence += compared(
            f"singular at {stratum.name}", ("macaulay2", "on a component of the singular locus", bool(inside)),
            ("modular", "tangent space at the image of these weights", ours),
        )  # fmt: skip
    return Place(
        name=stratum.name, verdict=verdict, certainty=certainty, image_dim=image, critical=rank < size.image_dim,
        tangent_lower=lower, tangent_upper=upper, components=None if inside is None else tuple(inside),
        weights={n: tuple(str(c) for c in w.ravel()) for n, w in weights.items()},
    )  # fmt: skip


def _components_at(point: Point, found: Closure, components: Sequence[Component]) -> list[int]:
    """The numbers of the components on which the image of the point lies."""
    p = found.characteristic
    image = point.image(p)
    names = [f"z{i}" for i in range(len(image))]
    inside = []
    for number, part in enumerate(components, start=1):
        system = [parse_polynomial(text, names, source="a component") for text in part.equations or ()]
        if all(_value(f, image, p) == 0 for f in system):
            inside.append(number)
    return inside


def _value(f: Polynomial, point: Sequence[Any], p: int) -> Any:
    total: Any = 0
    for exponents, c in f.items():
        term: Any = residue(c, p) if p else Fraction(c)
        for x, e in zip(point, exponents, strict=True):
            term = term * x**e if e else term
        total = total + term
    return total % p if p else total


# -- which strata ----------------------------------------------------------------------------------------------------------------


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
