"""Declared strata of the weights: where ranks drop, neurons coincide or vanish. They are the candidates for singular points.

Each is asked at one random point: by curves from below, by equations from above. The verdicts never read the components that
Macaulay2 found; whether the image lies on one of them is compared with the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import prod
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.families.base import Model
from m2bridge.frontends.polynomials import parse_polynomial
from m2bridge.limits import LimitReached
from m2bridge.questions import over_q
from m2bridge.questions.closure import Closure, equation
from m2bridge.questions.dimension import Dimension
from m2bridge.questions.fiber.partners import partners
from m2bridge.questions.kernel import Context
from m2bridge.questions.point import Point, fractions_of
from m2bridge.questions.singular_locus.result import Component, Place
from m2bridge.questions.singular_locus.tangents import (
    exact_span,
    first_order_images,
    flat_neighbours,
    tangent_upper,
    verdict_of,
)

_MOST_STRATA = 24
_SPREAD = 500
"""Weights are drawn below this: among small integers special points, say the node of t^2-1, t^3-t, are not rare."""


def places_in_weights(
    context: Context,
    model: Model,
    size: Dimension,
    found: Closure | None,
    components: Sequence[Component] | None,
) -> tuple[tuple[Place, ...], str | None]:
    """Declared strata of the weights, each asked at one random point from below and from above; and which limit came first."""
    context.report_progress("strata of the weights")
    places: list[Place] = []
    try:
        for stratum in declared_strata(model.free, context.seed):
            places.append(_place(context, stratum, size, found, components))
    except LimitReached as reached:
        return tuple(places), f"{reached.reason} before all strata of the weights were asked"
    return tuple(places), None


@dataclass(frozen=True, kw_only=True)
class WeightStratum:
    """A set of weights: its name, a random point of it, and tangent directions there (rows, flat weights)."""

    name: str
    point: Point
    directions: np.ndarray


def _place(
    context: Context, stratum: WeightStratum, size: Dimension, found: Closure | None, components: Sequence[Component] | None
) -> Place:  # fmt: skip
    model, weights = stratum.point.model, stratum.point.weights
    check = context.clock.check  # each step of a large network takes seconds
    check()
    first = np.array(first_order_images(model, weights), dtype=object)
    check()
    rank = over_q.rank(first)
    check()
    image = over_q.rank(stratum.directions @ first)
    check()
    fiber = [weights, *(model.unflatten(other) for _, other in partners(stratum.point))]
    if rank < size.image_dim:
        fiber += flat_neighbours(model, weights, first)
        check()
    lower = exact_span(model, fiber, np.random.default_rng([context.seed, 6]), enough=size.upper_bound)
    quantity, method = f"tangent at {stratum.name}", "span over QQ of curves through the point"
    context.add_evidence(
        Evidence(
            quantity, lower, "curves", method, certainty=Certainty.PROVED, relation=">=", scope="at-point"
        )
    )
    upper, sure, complete, inside = None, Certainty.PROBABLE, False, None
    if found is not None:
        upper, sure = tangent_upper(found, stratum.point)
        complete = found.completeness == "complete" and found.agreement is not False
        method = f"coordinates minus the rank of the {found.completeness} equations' Jacobian"
        context.add_evidence(
            Evidence(
                quantity, upper, "interpolation", method, relation="<=", certainty=sure, scope="at-point"
            )
        )
    verdict, certainty = verdict_of(
        (size.lower_bound, size.upper_bound), lower, upper, sure, complete=complete
    )
    if components is not None and found is not None:
        inside = _components_at(stratum.point, found, components)
        ours = None if verdict == "undecided" else verdict == "singular"
        context.add_evidence(
            Evidence(
                f"singular at {stratum.name}",
                bool(inside),
                "macaulay2",
                "on a component of the singular locus",
            ),
            Evidence(
                f"singular at {stratum.name}", ours, "modular", "tangent space at the image of these weights"
            ),
        )
    if certainty is Certainty.PROVED:  # it has no certificate here; `singular-point` at these weights has one
        certainty = Certainty.COMPUTED
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

    def vanishes(text: str) -> bool:
        terms = parse_polynomial(text, names, source="a component")
        value = equation(terms, range(len(names)), p=p).at(image)
        return not (value % p if p else value)

    return [n for n, part in enumerate(components, start=1) if all(map(vanishes, part.equations or ()))]


# -- which strata ----------------------------------------------------------------------------------------------------------------


Move = Callable[[np.ndarray], np.ndarray]
"""A linear projection of the arrays of one weight onto those of a stratum."""


def declared_strata(model: Model, seed: int) -> list[WeightStratum]:
    """Random weights; for every matrix each smaller rank, a zero row, equal rows; zero and equal variables of a map; zero."""
    rng = np.random.default_rng([seed, 31])
    parts = islice(_parts(model), _MOST_STRATA)
    return [_stratum(model, *part, rng) for part in (((), "random weights", 0), *parts)]


def _parts(model: Model) -> Iterator[tuple[tuple[str, ...], str, Move | int]]:
    """Which weights are special, in words, and how: by a projection, or by their rank."""
    for name, shape in model.parameters.items():
        if len(shape) == 2:
            rows, columns = shape
            for k in range(min(rows, columns) - 1, 0, -1):
                yield (name,), f"rk {name} = {k}", k
            if rows == columns > 1:
                yield (name,), f"{name} skew-symmetric", lambda w: np.triu(w, 1) - np.triu(w, 1).T
            if rows > 1:
                yield (name,), f"a zero row of {name}", _equal(0)
                yield (name,), f"two equal rows of {name}", _equal(1, 0)
            if columns > 1:
                yield (name,), f"a zero column of {name}", lambda w: _equal(0)(w.T).T
        elif len(shape) == 1:
            names = getattr(model, "variables", [f"{name}[{i}]" for i in range(shape[0])])
            for i in range(shape[0]) if shape[0] > 1 else ():
                yield (name,), f"{names[i]} = 0", _equal(i)
            for i, j in combinations(range(min(shape[0], 4)), 2):
                yield (name,), f"{names[i]} = {names[j]}", _equal(j, i)
        if len(model.parameters) > 1:
            yield (name,), f"{name} = 0", lambda w: 0 * w
    yield tuple(model.parameters), "all weights 0", lambda w: 0 * w


def _equal(i: int, j: int | None = None) -> Move:
    """Row i made equal to row j, or to zero."""

    def moved(w: np.ndarray) -> np.ndarray:
        found = w.copy()
        found[i] = 0 if j is None else w[j]
        return found

    return moved


def _stratum(
    model: Model, special: Sequence[str], name: str, how: Move | int, rng: np.random.Generator
) -> WeightStratum:
    weights = {n: rng.integers(1, _SPREAD, size=shape) * rng.choice([-1, 1], size=shape)
               for n, shape in model.parameters.items()}  # fmt: skip
    still = {n: np.zeros(shape, dtype=object) for n, shape in model.parameters.items()}
    directions = []
    for n, shape in model.parameters.items():
        along: Any = [unit.reshape(shape) for unit in np.eye(prod(shape), dtype=object)]
        if n in special and not isinstance(how, int):
            weights[n], along = how(weights[n]), map(how, along)
        elif n in special and isinstance(how, int):  # a product of rank k
            left, right = (rng.integers(1, _SPREAD, size=size) for size in ((shape[0], how), (how, shape[1])))
            lefts, rights = (np.eye(m.size, dtype=object).reshape(-1, *m.shape) for m in (left, right))
            weights[n], along = left @ right, [*(lefts @ right), *(left @ rights)]
        # a move of a single number gives a number, not an array
        directions += [model.flatten({**still, n: np.asarray(to, dtype=object)}) for to in along]
    exact = {n: fractions_of(w) for n, w in weights.items()}
    point = Point(model=model, kind="stratum", weights=exact, detail=name)
    return WeightStratum(name=name, point=point, directions=np.array(directions, dtype=object))
