"""Decide at each stratum whether it is singular or smooth: curves below, equations or a finite map above; certificates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from m2bridge.alarm import suspended_alarm
from m2bridge.certainty import Certainty
from m2bridge.certificates.points import singular_point_certificate, smooth_point_certificate
from m2bridge.evidence import Evidence
from m2bridge.families import Model
from m2bridge.families.strata import FiniteMap, Strata
from m2bridge.limits import LimitReached
from m2bridge.questions import over_q
from m2bridge.questions.dimension import Dimension
from m2bridge.questions.fiber.equivalent_weights import equivalent_weights
from m2bridge.questions.kernel import Context
from m2bridge.questions.point import Point, fractions_of
from m2bridge.questions.singular_locus.equations import TangentBounds, VanishingEquations
from m2bridge.questions.singular_locus.result import Singularity, Stratum
from m2bridge.questions.singular_locus.tangents import (
    Line,
    first_order_images,
    flat_neighbours,
    spanning_lines,
)

_MOST_CERTIFIED = 100
"""Number of coordinates beyond which certificates would be large: they list independent curves of every stratum."""
_QUICK = 30
"""Up to this many coordinates curves take about a second; they are computed even after the time limit."""
FINITE_MAP = "a finite map is a closed immersion near a fiber that is one reduced point (docs/decisions/0018)"


@dataclass(frozen=True, kw_only=True)
class CurvesAt:
    """A stratum, a point of it, and curves through the point.

    Attributes
    ----------
    point: weights of ``model.free``.
    rank: of the differential there.
    image_dim: dimension of the stratum's image.
    lines: with independent tangent vectors.
    """

    stratum: Any
    point: Point
    rank: int
    image_dim: int
    lines: Sequence[Line]

    @property
    def name(self) -> str:
        return str(self.stratum)

    @property
    def span(self) -> int:
        return len(self.lines)


# -- lower bounds by curves ------------------------------------------------------------------------------------------------------


def curves_at_strata(context: Context, strata: Strata, size: Dimension) -> list[CurvesAt]:
    """Return curves at every stratum; if a limit is reached, at the strata before it."""
    context.report_progress("curves at strata")
    quick = strata.exhaustive and strata.model.coordinate_count <= _QUICK
    curves: list[CurvesAt] = []
    try:
        for index, stratum in enumerate(strata.strata()):
            with suspended_alarm() if quick else nullcontext():
                if not quick:
                    context.clock.check()
                curves.append(_curves_at(context, strata, stratum, size, index))
    except LimitReached as reached:
        context.note_limit(f"{reached.reason} before all strata were examined")
    return curves


def _curves_at(context: Context, strata: Strata, stratum: Any, size: Dimension, index: int) -> CurvesAt:
    model = strata.model.free
    fiber: list[Mapping[str, np.ndarray]] = [
        {name: fractions_of(w) for name, w in weights.items()} for weights in strata.fiber(stratum)
    ]
    point = Point(model=model, kind="stratum", weights=fiber[0], detail=str(stratum))
    first = np.array(first_order_images(model, point.weights), dtype=object)
    image_dim = over_q.rank_of_product(strata.directions(stratum), first)
    rank = over_q.rank(first)
    # In many coordinates the search for curves ends when they show that the point is singular.
    enough = size.upper_bound if not strata.exhaustive or model.coordinate_count > _MOST_CERTIFIED else None
    if not strata.exhaustive:
        fiber += [model.unflatten(weights) for _, weights in equivalent_weights(point)]
        fiber += flat_neighbours(model, point.weights, first) if rank < size.image_dim else []
    rng = np.random.default_rng([context.seed, 4, index] if strata.exhaustive else [context.seed, 6])
    lines = spanning_lines(model, fiber, rng, enough=enough)
    return CurvesAt(stratum=stratum, point=point, rank=rank, image_dim=image_dim, lines=lines)


def _lower(strata: Strata, curves: Sequence[CurvesAt], at: CurvesAt) -> tuple[int, str]:
    """Return the best lower bound of a tangent space at a stratum, and its method.

    Dimensions of tangent spaces are upper semicontinuous, so that a bound at a stratum holds at every stratum in its closure.
    """
    larger = [c for c in curves if c is at or strata.contains(c.stratum, at.stratum)]
    best = max(larger, key=lambda c: c.span)
    if best.span <= at.span:
        return at.span, "span over QQ of curves through the point"
    return best.span, f"curves at {best.name}, whose closure contains this stratum (semicontinuity)"


# -- verdicts by lower and upper bounds ------------------------------------------------------------------------------------------


def verdicts(
    context: Context, strata: Strata, size: Dimension, curves: Sequence[CurvesAt],
    equations: VanishingEquations | None, prime: int,
) -> list[Stratum]:  # fmt: skip
    """Return every stratum with its tangent bounds and verdict."""
    examined = []
    for at in curves:
        bounds = _bounds(context, strata, size, curves, at, equations)
        verdict, certainty = bounds.verdict(size)
        inside = [j for j, c in enumerate(curves) if c is not at and strata.contains(at.stratum, c.stratum)]
        weights = strata.representative(at.stratum)
        representative = {name: tuple(map(str, np.ravel(w).tolist())) for name, w in weights.items()}
        examined.append(
            Stratum(
                name=at.name, ranks=dict(strata.ranks(at.stratum)), image_dim=at.image_dim,
                critical=at.rank < size.image_dim, tangent_lower=bounds.lower,
                tangent_upper=bounds.upper, verdict=verdict, certainty=certainty, closure_contains=tuple(inside),
                components=None, representative=representative,
            )
        )  # fmt: skip
    return _by_finite_maps(context, strata, curves, examined, prime)


def _bounds(
    context: Context, strata: Strata, size: Dimension, curves: Sequence[CurvesAt], at: CurvesAt,
    equations: VanishingEquations | None,
) -> TangentBounds:  # fmt: skip
    """Return the bounds of the tangent space at a stratum, with the evidence."""
    bound = partial(Evidence, f"tangent {at.name}", scope="at-point", certainty=Certainty.PROVED)
    upper_bound = partial(bound, relation="<=")
    lower, method = _lower(strata, curves, at)
    context.add_evidence(bound(lower, "curves", method, relation=">="))
    bounds = TangentBounds.at(at.point, lower, equations)
    if equations is not None:
        method = f"coordinates minus the rank of the Jacobian of the equations ({equations.extent})"
        fields: dict[str, Any] = {"certainty": bounds.sure, "prime": equations.characteristic or None}
        context.add_evidence(upper_bound(bounds.upper, "interpolation", method, **fields))
    if bounds.upper is None and strata.model.coordinate_count == size.lower_bound:
        bounds = replace(bounds, upper=size.lower_bound, sure=Certainty.PROVED)
        context.add_evidence(upper_bound(bounds.upper, "coordinates", "number of coordinates"))
    if strata.exhaustive and at.image_dim == size.upper_bound != bounds.upper:
        # a reduced variety is smooth on a dense open set, and a stratum of its dimension is dense
        bounds = replace(bounds, upper=at.image_dim, sure=Certainty.PROVED)
        context.add_evidence(upper_bound(bounds.upper, "strata", "the dense stratum of a reduced variety"))
    return bounds


# -- smooth by a finite map ------------------------------------------------------------------------------------------------------


def _by_finite_maps(
    context: Context, strata: Strata, curves: Sequence[CurvesAt], examined: Sequence[Stratum], prime: int
) -> list[Stratum]:
    """Decide undecided strata as smooth if the length of a fiber shows it, without equations; return all strata.

    The argument is in docs/decisions/0018-smooth-by-a-finite-map.md.
    """
    maps: dict[int, FiniteMap] = {}
    for index, (at, stratum) in enumerate(zip(curves, examined, strict=True)):
        if stratum.verdict == "undecided" and (finite := strata.finite_map(at.stratum)) is not None:
            maps[index] = finite
    decided = list(examined)
    if not maps:
        return decided
    source = next(iter(maps.values())).model
    points = [[np.ravel(w) for w in finite.weights.values()] for finite in maps.values()]
    values, _ = context.run_template("fiber_length", {"p": prime, "places": points}, source)
    for number, (index, finite) in enumerate(maps.items()):
        size = values.get(f"fiber_{number}")
        if size is not None and _one_reduced_point(context, finite, examined[index].name, size, prime):
            method = "finite map whose fiber has length one modulo p, hence over QQ"
            fields: dict[str, Any] = {"scope": "at-point", "prime": prime, "relation": "<="}
            fields |= {"certainty": Certainty.THEOREM, "detail": {"theorem": FINITE_MAP}}
            quantity = f"tangent {examined[index].name}"
            context.add_evidence(Evidence(quantity, finite.dim, "finite map", method, **fields))
            decided[index] = replace(
                examined[index], verdict="smooth", certainty=Certainty.THEOREM, tangent_upper=finite.dim
            )
    return decided


def _one_reduced_point(
    context: Context, finite: FiniteMap, name: str, size: Sequence[int], prime: int
) -> bool:
    """Return whether the fiber is one reduced point, with evidence from both definitions of the map.

    A fiber of length one is reduced: the kernel of the differential is the scaling and nothing else.
    """
    exact = {key: fractions_of(w) for key, w in finite.weights.items()}
    kernel = finite.model.parameter_count - over_q.rank(first_order_images(finite.model, exact))
    length_one = list(size) == [1, 2]
    statements = (
        (length_one, "macaulay2", "degree of the affine fiber is 2"),
        (False if kernel > 1 else length_one, "modular", "kernel of the differential over QQ"),
    )
    quantity = f"one reduced point over {name}"
    context.add_evidence(*(Evidence(quantity, *statement, prime=prime) for statement in statements))
    return length_one and kernel == 1


# -- certificates ----------------------------------------------------------------------------------------------------------------


def with_certificates(
    context: Context, strata: Strata, size: Dimension, curves: Sequence[CurvesAt], examined: Sequence[Stratum],
    equations: VanishingEquations | None,
) -> tuple[tuple[Mapping[str, Any], ...], tuple[Stratum, ...]]:  # fmt: skip
    """Return the documents that `m2bridge check` verifies (the dimension, proved verdicts), and the strata with their
    certainty.

    A verdict is proved if it has a certificate. Two statements have none: that a verdict holds on the whole stratum, which
    follows from the group action, and bounds by semicontinuity, which use another stratum. Strata that are not exhaustive have no
    certificates; `singular-point` at their weights writes one.
    """
    documents = [dict(size.certificate)] if size.certificate is not None and strata.exhaustive else []
    with_certainty = []
    for at, stratum in zip(curves, examined, strict=True):
        if stratum.certainty is Certainty.PROVED:
            certificate = None
            if strata.exhaustive and strata.model.coordinate_count <= _MOST_CERTIFIED:
                certificate = point_certificate(
                    strata.model, at.point, at.lines, size, stratum.verdict, equations, context.seed
                )
            if certificate is None:
                with_certainty.append(replace(stratum, certainty=Certainty.COMPUTED))
                continue
            documents.append(certificate)
        with_certainty.append(stratum)
    return tuple(documents), tuple(with_certainty)


def point_certificate(
    model: Model, point: Point, lines: Sequence[Line], size: Dimension, verdict: Singularity,
    equations: VanishingEquations | None, seed: int,
) -> dict[str, Any] | None:  # fmt: skip
    """Return the certificate of a verdict at weights of ``model.free``; None if the format cannot express it."""
    weights = point.vector.tolist()
    if verdict == "singular":
        arcs = [(np.stack([base, direction], axis=1).tolist(), vector) for base, direction, vector in lines]
        return singular_point_certificate(model, weights, arcs, size.certificate)
    if verdict == "smooth" and equations is not None and not equations.characteristic:
        return smooth_point_certificate(model, weights, point.image(), equations.equations, seed=seed)
    return None
