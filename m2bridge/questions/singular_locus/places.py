"""Declared strata of the weights, each asked at one random point: by curves from below, by equations from above.

The verdicts never read the components that Macaulay2 found; whether the image lies on one of them is compared with the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.linear.residues import residue
from m2bridge.models import Model
from m2bridge.models.polynomials import Polynomial, parse_polynomial
from m2bridge.questions import over_q
from m2bridge.questions.dimension import Dimension
from m2bridge.questions.kernel import Asking
from m2bridge.questions.singular_locus.in_span import Equations
from m2bridge.questions.singular_locus.result import Component, Place, Singularity
from m2bridge.questions.singular_locus.tangents import exact_span, first_order_images, flat_neighbours
from m2bridge.questions.singular_locus.weights import WeightStratum, declared_strata
from m2bridge.questions.testimony import compared, proves
from m2bridge.results import Certainty


def places_in_weights(
    ask: Asking, model: Model, size: Dimension, equations: Equations | None,
    components: tuple[Component, ...] | None, p: int,
) -> tuple[Place, ...]:  # fmt: skip
    """Declared strata of the weights, each asked at one random point from below and from above."""
    ask.announce("strata of the weights")
    found = []
    for stratum in declared_strata(model.free, ask.seed):
        if ask.clock.remaining is not None and ask.clock.remaining < 1:
            break
        found.append(_place(ask, stratum, size, equations, components, p))
    return tuple(found)


def _place(
    ask: Asking, stratum: WeightStratum, size: Dimension, equations: Equations | None,
    components: tuple[Component, ...] | None, p: int,
) -> Place:  # fmt: skip
    from m2bridge.questions.fiber.partners import partners  # which reads the orbits of this package

    model, weights = stratum.point.model, stratum.point.weights
    first = np.array(first_order_images(model, weights), dtype=object)
    rank = over_q.rank(first)
    image = over_q.rank(stratum.directions @ first) if len(stratum.directions) else 0
    fiber = [weights, *(model.unflatten(other) for _, other in partners(stratum.point))]
    if rank < size.image_dim:
        fiber += flat_neighbours(model, weights, first)
    lower = exact_span(model, fiber, np.random.default_rng([ask.seed, 6]), enough=size.upper_bound)
    here = {"scope": "at-point"}
    quantity = f"tangent at {stratum.name}"
    ask.evidence.append(
        proves(quantity, lower, "curves", "span over QQ of curves through the point", relation=">=", **here)
    )
    upper, sure = _upper(stratum, equations, p)
    if upper is not None:
        method = f"coordinates minus the rank of the {equations.found.completeness} equations' Jacobian"  # type: ignore[union-attr]
        ask.say(quantity, upper, "interpolation", method, relation="<=", certainty=sure, **here)
    verdict, certainty = _verdict(
        size, lower, upper, sure, complete=equations is not None and equations.complete
    )
    inside = None
    if components is not None and equations is not None:
        inside = _components_at(stratum, equations, components, p)
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


def _upper(stratum: WeightStratum, equations: Equations | None, p: int) -> tuple[int | None, Certainty]:
    """The tangent space of the equations at the image: exact over QQ where the equations are and vanish on the image for sure."""
    if equations is None:
        return None, Certainty.PROBABLE
    found = equations.found
    if found.characteristic:
        point = stratum.point.model.coordinates(stratum.point.mod(p)).values.tolist()
        rank = rank_mod(equations.gradients(point, p), p) if equations.equations else 0
        return len(equations.basis) - rank, Certainty.PROBABLE
    exact = np.asarray(stratum.point.model.coordinates(stratum.point.weights)).ravel().tolist()
    rank = over_q.rank(equations.gradients(exact, 0)) if equations.equations else 0
    substituted = any(e.witness == "substitution" and e.value is True for e in found.evidence)
    proved = substituted or (found.completeness == "complete" and found.certainty is Certainty.PROVED)
    return len(equations.basis) - rank, Certainty.PROVED if proved else Certainty.PROBABLE


def _verdict(
    size: Dimension, lower: int, upper: int | None, sure: Certainty, *, complete: bool
) -> tuple[Singularity, Certainty]:
    if lower > size.upper_bound:
        return "singular", Certainty.PROVED
    if upper is not None and upper <= size.lower_bound:
        return "smooth", sure
    if upper is not None and complete and upper > size.upper_bound:
        return "singular", sure
    return "undecided", Certainty.PROBABLE


def _components_at(
    stratum: WeightStratum, equations: Equations, components: Sequence[Component], p: int
) -> list[int]:
    """The numbers of the components on which the image of the point lies."""
    names = [f"z{i}" for i in equations.basis]
    modular = equations.found.characteristic
    if modular:
        values = stratum.point.model.coordinates(stratum.point.mod(p)).values.tolist()
        point = [values[i] for i in equations.basis]
    else:
        exact = np.asarray(stratum.point.model.coordinates(stratum.point.weights)).ravel().tolist()
        point = [Fraction(exact[i]) for i in equations.basis]
    found = []
    for number, part in enumerate(components, start=1):
        system = [parse_polynomial(text, names, source="a component") for text in part.equations or ()]
        if all(_value(f, point, modular) == 0 for f in system):
            found.append(number)
    return found


def _value(f: Polynomial, point: Sequence[Any], p: int) -> Any:
    total: Any = 0
    for exponents, c in f.items():
        term: Any = residue(c, p) if p else Fraction(c)
        for x, e in zip(point, exponents, strict=True):
            term = term * x**e
        total = total + term
    return total % p if p else total
