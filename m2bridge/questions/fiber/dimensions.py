"""Analyses stage, fiber: dimensions of generic fibers, and of the tangent space at a point, from ranks; no Macaulay2.

What is generic and what is at the point are different quantities: neither is reported in place of the other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf, log10

import numpy as np

from m2bridge.linear.numeric import NumericRank
from m2bridge.models import Model
from m2bridge.questions.fiber.differential import (
    UNDECIDED,
    generic_numeric_rank,
    generic_rank,
    kernel_dim,
    numeric_rank_at,
    symmetry_dim,
    symmetry_rank_mod,
)
from m2bridge.questions.fiber.points import Point, random_point
from m2bridge.questions.fiber.primes import rank_prime
from m2bridge.questions.fiber.question import degrees
from m2bridge.results import Certainty, Evidence

_FLOAT_RANGE = 250
"""Products beyond 10^250 or below 10^-250 are not computed in float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """What ranks say. Generic: of almost every point. At the point: `orbit_dim` exactly, `tangent_upper` a proved upper bound.

    Attributes
    ----------
    image_dim, generic_fiber_dim, generic_orbit_dim: at random points; None where they are not known.
    generic_certainty: of the generic fiber being as large as that; `probability` of the ranks being generic over F_p.
    irreducible_source: whether the weights are known to be an irreducible variety.
    orbit_dim: dimension of the orbit of the known symmetries through the point.
    tangent_upper: dimension of the kernel of the differential at the point modulo a prime, which bounds that over QQ.
    """

    image_dim: int | None
    generic_fiber_dim: int | None
    generic_orbit_dim: int | None
    generic_certainty: Certainty
    probability: float | None
    irreducible_source: bool
    orbit_dim: int
    tangent_upper: int | None
    evidence: tuple[Evidence, ...]


def dimensions_of(point: Point, seed: int) -> Dimensions:
    """All that ranks say about the generic fibers of the model and about the fiber at the point."""
    model = point.model
    orbit_dim = symmetry_dim(point)
    image, generic, orbit, evidence = (
        _generic(model, seed) if model.polynomial else _generic_numeric(model, seed)
    )
    tangent, more = _at(point, orbit_dim, seed)
    failure = None
    if model.polynomial and image is not None and orbit is not None:
        failure = min(1.0, (image * jacobian_degree(model) + orbit) / rank_prime(model))
    return Dimensions(
        image_dim=image,
        generic_fiber_dim=generic,
        generic_orbit_dim=orbit,
        generic_certainty=Certainty.PROBABLE if model.polynomial else Certainty.NUMERIC,
        probability=None if failure is None else 1 - failure,
        irreducible_source=not getattr(model, "constraints", ()),
        orbit_dim=orbit_dim,
        tangent_upper=tangent,
        evidence=(*evidence, *more),
    )


def _generic(model: Model, seed: int) -> tuple[int, int | None, int, list[Evidence]]:
    """Weights minus rank of the differential at a random point, bounded from below by the symmetries."""
    start = time.perf_counter()
    p = rank_prime(model)
    image, symmetric = generic_rank(model, seed, p)
    seconds = time.perf_counter() - start
    generic = model.parameter_dim - image
    proved = Certainty.PROVED if _source_dim_proved(model) else Certainty.PROBABLE
    evidence = [
        Evidence(
            quantity="generic_fiber_dim",
            witness="modular",
            method="weights minus rank of the differential at a random point",
            value=generic,
            relation="<=",
            certainty=proved,
            prime=p,
            seconds=seconds,
            scope="generic",
            field="QQ",
        ),
        Evidence(
            quantity="generic_fiber_dim",
            witness="modular",
            method="the same, as a generic rank",
            value=generic,
            error_probability=min(1.0, image * jacobian_degree(model) / p),
            prime=p,
            scope="generic",
            field=f"F_{p}",
        ),
        Evidence(
            quantity="generic_fiber_dim",
            witness="symmetry",
            method="rank of the symmetries' action at a random point",
            value=symmetric,
            relation=">=",
            certainty=Certainty.PROVED,
            prime=p,
            scope="generic",
            field="QQ",
        ),
    ]
    if model.free is model and not getattr(model, "constraints", ()):
        rng = np.random.default_rng([seed, 104])
        numeric = generic_numeric_rank(model, model.draw_real_weights(rng), rng)
        evidence.append(_numeric(model.parameter_count, numeric, "generic_fiber_dim", "generic", "QQ"))
    return image, generic if generic >= symmetric else None, symmetric, evidence


def _source_dim_proved(model: Model) -> bool:
    """Whether the dimension of the space of weights is known for sure: not for virtual weights through narrow layers."""
    narrow = getattr(model, "parametrization", "") == "virtual" and getattr(model, "constrained", False)
    return model.parameter_dim_proved and not narrow


def _numeric(weights: int, found: NumericRank, quantity: str, scope: str, field: str) -> Evidence:
    """A numerical corank; its value is None where float64 does not decide."""
    return Evidence(
        quantity=quantity,
        witness="numpy",
        method="singular values of the differential" + (" at the point" if scope == "at-point" else ""),
        value=None if found.rank is None else weights - found.rank,
        certainty=Certainty.NUMERIC,
        detail={"gap": float(found.gap) if np.isfinite(found.gap) else None},
        scope="at-point" if scope == "at-point" else "generic",
        field=field,
    )


def jacobian_degree(model: Model) -> int:
    """A bound of the degree of the differential's entries in weights and inputs together."""
    if model.input_shape is None:
        return max((sum(e) for terms in model.polynomials for e, _ in terms), default=1)  # type: ignore[attr-defined]
    free = model.free
    return sum(degrees(free).values()) + max(getattr(free, "degrees", (1,)))


def _generic_numeric(model: Model, seed: int) -> tuple[int | None, int | None, int, list[Evidence]]:
    """Softmax: singular values at a random real point, and the symmetries."""
    rng = np.random.default_rng([seed, 104])
    free = model.free
    numeric = generic_numeric_rank(free, free.draw_real_weights(rng), rng)
    generic = None if numeric.rank is None else model.parameter_dim - numeric.rank
    point = random_point(model, seed)
    p = rank_prime(model, point)
    symmetric = symmetry_rank_mod(model, point.mod(p), p)
    evidence = [
        _numeric(model.parameter_dim, numeric, "generic_fiber_dim", "generic", "RR"),
        Evidence(
            quantity="generic_fiber_dim",
            witness="symmetry",
            method="rank of the symmetries' action",
            value=symmetric,
            relation=">=",
            certainty=Certainty.PROVED,
            scope="generic",
            field="RR",
        ),
    ]
    return numeric.rank, generic, symmetric, evidence


def _at(point: Point, orbit_dim: int, seed: int) -> tuple[int | None, list[Evidence]]:
    """The kernel of the differential at the point, exactly modulo a large prime and in float64, and the orbit inside it."""
    model = point.model
    rng = np.random.default_rng([seed, 105])
    evidence = [
        Evidence(
            quantity="tangent_dim",
            witness="symmetry",
            method="dimension of the orbit",
            value=orbit_dim,
            relation=">=",
            certainty=Certainty.PROVED,
            scope="at-point",
            field="QQ",
        )
    ]
    if not model.polynomial:
        return None, evidence
    p = rank_prime(model, point)
    kernel = kernel_dim(model, point.mod(p), p, rng)
    evidence.append(
        Evidence(
            quantity="tangent_dim",
            witness="modular",
            method="kernel of the differential at the point",
            value=kernel,
            relation="<=",
            certainty=Certainty.PROVED,
            prime=p,
            scope="at-point",
            field="QQ",
        )
    )
    if model.free is model and not getattr(model, "constraints", ()):
        numeric = numeric_rank_at(point, rng) if _in_float_range(point) else UNDECIDED
        evidence.append(_numeric(model.parameter_count, numeric, "tangent_dim", "at-point", "QQ"))
    return kernel, evidence


def _in_float_range(point: Point) -> bool:
    """Whether no product of weights in the differential can leave the range of float64, however it is evaluated."""
    sizes = [_magnitude(abs(x.numerator)) - _magnitude(x.denominator) for x in point.vector if x]
    return jacobian_degree(point.model) * max((abs(s) + 1 for s in sizes), default=0) < _FLOAT_RANGE


def _magnitude(n: int) -> float:
    return log10(n) if n else -inf
