"""Dimensions of generic fibers, and of the tangent space at a point, from ranks; no Macaulay2.

What is generic and what is at the point are different quantities: neither is reported in place of the other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf, log10

import numpy as np

from m2bridge.models import Model
from m2bridge.programs.program import degrees
from m2bridge.questions.fiber.differential import (
    UNDECIDED,
    generic_numeric_rank,
    generic_ranks,
    kernel_dim,
    numeric_rank_at,
    symmetry_dim,
    symmetry_rank_mod,
)
from m2bridge.questions.fiber.points import Point, random_point, rank_prime
from m2bridge.questions.testimony import floats, proves, says
from m2bridge.results import Certainty, Evidence

_FLOAT_RANGE = 250
"""Products beyond 10^250 or below 10^-250 are not computed in float64."""
_GENERIC = {"scope": "generic", "field": "QQ"}
_HERE = {"scope": "at-point", "field": "QQ"}


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
    generic = _generic if model.polynomial else _generic_numeric
    image, fiber, orbit, evidence = generic(model, seed)
    tangent, more = _at(point, orbit_dim, seed)
    failure = None
    if model.polynomial and image is not None:
        failure = min(1.0, (image * degrees(model.free.program)[1] + orbit) / rank_prime(model))
    return Dimensions(
        image_dim=image, generic_fiber_dim=fiber, generic_orbit_dim=orbit,
        generic_certainty=Certainty.PROBABLE if model.polynomial else Certainty.NUMERIC,
        probability=None if failure is None else 1 - failure,
        irreducible_source=not getattr(model, "constraints", ()),
        orbit_dim=orbit_dim, tangent_upper=tangent, evidence=(*evidence, *more),
    )  # fmt: skip


def _unconstrained(model: Model) -> bool:
    return model.free is model and not getattr(model, "constraints", ())


def _generic(model: Model, seed: int) -> tuple[int | None, int | None, int, list[Evidence]]:
    """Weights minus rank of the differential at a random point, bounded from below by the symmetries."""
    start = time.perf_counter()
    p = rank_prime(model)
    image, symmetric = generic_ranks(model, seed, p)
    seconds = time.perf_counter() - start
    generic, quantity = model.parameter_dim - image, "generic_fiber_dim"
    # the dimension of virtual weights through narrow layers is not known for sure
    narrow = getattr(model, "parametrization", "") == "virtual" and getattr(model, "constrained", False)
    bound = proves if model.parameter_dim_proved and not narrow else says
    method = "weights minus rank of the differential at a random point"
    evidence = [
        bound(quantity, generic, "modular", method, relation="<=", prime=p, seconds=seconds, **_GENERIC)
    ]
    error = min(1.0, image * degrees(model.free.program)[1] / p)
    more = {"error_probability": error, "prime": p, "scope": "generic", "field": f"F_{p}"}
    evidence.append(says(quantity, generic, "modular", "the same, as a generic rank", **more))
    method = "rank of the symmetries' action at a random point"
    evidence.append(proves(quantity, symmetric, "symmetry", method, relation=">=", prime=p, **_GENERIC))
    if _unconstrained(model):
        rng = np.random.default_rng([seed, 104])
        numeric = generic_numeric_rank(model, model.draw_real_weights(rng), rng)
        method = "singular values of the differential"
        evidence.append(floats(quantity, numeric, method, corank_of=model.parameter_count, **_GENERIC))
    return image, generic if generic >= symmetric else None, symmetric, evidence


def _generic_numeric(model: Model, seed: int) -> tuple[int | None, int | None, int, list[Evidence]]:
    """Softmax: singular values at a random real point, and the symmetries."""
    rng = np.random.default_rng([seed, 104])
    free, over = model.free, {"scope": "generic", "field": "RR"}
    numeric = generic_numeric_rank(free, free.draw_real_weights(rng), rng)
    generic = None if numeric.rank is None else model.parameter_dim - numeric.rank
    point, quantity = random_point(model, seed), "generic_fiber_dim"
    p = rank_prime(model, point)
    symmetric = symmetry_rank_mod(model, point.mod(p), p)
    method = "singular values of the differential"
    return numeric.rank, generic, symmetric, [
        floats(quantity, numeric, method, corank_of=model.parameter_dim, **over),
        proves(quantity, symmetric, "symmetry", "rank of the symmetries' action", relation=">=", **over),
    ]  # fmt: skip


def _at(point: Point, orbit_dim: int, seed: int) -> tuple[int | None, list[Evidence]]:
    """The kernel of the differential at the point, exactly modulo a large prime and in float64, and the orbit inside it."""
    model, quantity = point.model, "tangent_dim"
    rng = np.random.default_rng([seed, 105])
    evidence = [proves(quantity, orbit_dim, "symmetry", "dimension of the orbit", relation=">=", **_HERE)]
    if not model.polynomial:
        return None, evidence
    p = rank_prime(model, point)
    kernel = kernel_dim(model, point.mod(p), p, rng)
    method = "kernel of the differential at the point"
    evidence.append(proves(quantity, kernel, "modular", method, relation="<=", prime=p, **_HERE))
    if _unconstrained(model):
        numeric = numeric_rank_at(point, rng) if _in_float_range(point) else UNDECIDED
        method = "singular values of the differential at the point"
        evidence.append(floats(quantity, numeric, method, corank_of=model.parameter_count, **_HERE))
    return kernel, evidence


def _in_float_range(point: Point) -> bool:
    """Whether no product of weights in the differential can leave the range of float64, however it is evaluated."""
    sizes = [_magnitude(abs(x.numerator)) - _magnitude(x.denominator) for x in point.vector if x]
    largest = max((abs(s) + 1 for s in sizes), default=0)
    return degrees(point.model.free.program)[1] * largest < _FLOAT_RANGE


def _magnitude(n: int) -> float:
    return log10(n) if n else -inf
