"""Analyses stage, fiber: dimensions of generic fibers and of the tangent space at a point, from ranks; no Macaulay2."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from m2bridge.analyses.fiber.differential import BIG_PRIME, generic_rank, kernel_dim, real_kernel_dim
from m2bridge.analyses.fiber.points import Point, random_point
from m2bridge.analyses.fiber.question import degrees
from m2bridge.linear.modular import rank_mod
from m2bridge.models import Model
from m2bridge.results import Certainty, Evidence


def evidence_of(quantity: str, witness: str, method: str, value: Any, **fields: Any) -> Evidence:
    return Evidence(quantity=quantity, witness=witness, method=method, value=value, **fields)


def generic_dims(model: Model, seed: int) -> tuple[list[Evidence], int | None, int | None]:
    """Dimension of generic fibers: weights minus rank of the differential, bounded from below by the symmetries."""
    if not model.polynomial:
        return _generic_numeric(model, seed)
    start = time.perf_counter()
    image, symmetric = generic_rank(model, seed)
    seconds = time.perf_counter() - start
    generic = model.parameter_dim - image
    failure = min(1.0, image * jacobian_degree(model) / BIG_PRIME)
    proved = Certainty.PROVED
    common: dict[str, Any] = {"prime": BIG_PRIME, "seconds": seconds}
    evidence = [
        evidence_of(
            "generic_fiber_dim",
            "modular",
            "weights minus rank of the differential at a random point",
            generic,
            relation="<=",
            certainty=proved,
            **common,
        ),
        evidence_of(
            "generic_fiber_dim",
            "modular",
            "the same, as a generic rank",
            generic,
            error_probability=failure,
            **common,
        ),
        evidence_of(
            "generic_fiber_dim",
            "symmetry",
            "rank of the symmetries' action at a random point",
            symmetric,
            relation=">=",
            certainty=proved,
            **common,
        ),
    ]
    rng = np.random.default_rng([seed, 104])
    if model.free is model and not getattr(model, "constraints", ()):
        numeric = real_kernel_dim(model, model.draw_real_weights(rng), rng)
        value = None if numeric.rank is None else model.parameter_count - numeric.rank
        gap = float(numeric.gap) if np.isfinite(numeric.gap) else None
        evidence.append(
            evidence_of(
                "generic_fiber_dim",
                "numpy",
                "singular values of the differential",
                value,
                certainty=Certainty.NUMERIC,
                detail={"gap": gap},
            )
        )
    return evidence, image, generic


def jacobian_degree(model: Model) -> int:
    """A bound of the degree of the differential's entries in weights and inputs together."""
    if model.input_shape is None:
        return max((sum(e) for terms in model.polynomials for e, _ in terms), default=1)  # type: ignore[attr-defined]
    free = model.free
    own = {f"{name}": k for name, k in degrees(free).items()}
    return sum(own.values()) + max(getattr(free, "degrees", (1,)))


def _generic_numeric(model: Model, seed: int) -> tuple[list[Evidence], int | None, int | None]:
    """Softmax: singular values at a random real point, and the symmetries."""
    rng = np.random.default_rng([seed, 104])
    free = model.free
    weights = free.draw_real_weights(rng)
    numeric = real_kernel_dim(free, weights, rng)
    image = numeric.rank
    generic = None if image is None else model.parameter_dim - image
    point = random_point(model, seed)
    moves = [s.generators(point.mod(BIG_PRIME)).values for s in model.symmetries]
    symmetric = rank_mod(np.concatenate(moves), BIG_PRIME) if moves else 0
    gap = float(numeric.gap) if np.isfinite(numeric.gap) else None
    return (
        [
            evidence_of(
                "generic_fiber_dim",
                "numpy",
                "singular values of the differential",
                generic,
                certainty=Certainty.NUMERIC,
                detail={"gap": gap},
            ),
            evidence_of(
                "generic_fiber_dim",
                "symmetry",
                "rank of the symmetries' action",
                symmetric,
                relation=">=",
                certainty=Certainty.PROVED,
            ),
        ],
        image,
        generic,
    )


def dims_at(point: Point, orbit_dim: int, seed: int) -> list[Evidence]:
    """The kernel of the differential at the point, exactly modulo a large prime and in float64, and the orbit inside it."""
    model = point.model
    rng = np.random.default_rng([seed, 105])
    evidence = [
        evidence_of(
            "tangent_dim",
            "symmetry",
            "dimension of the orbit",
            orbit_dim,
            relation=">=",
            certainty=Certainty.PROVED,
        )
    ]
    if not model.polynomial or any(x.denominator % BIG_PRIME == 0 for x in point.vector):
        return evidence
    kernel = kernel_dim(model, point.mod(BIG_PRIME), BIG_PRIME, rng)
    evidence.append(
        evidence_of(
            "tangent_dim", "modular", "kernel of the differential at the point", kernel, prime=BIG_PRIME
        )
    )
    if model.free is model and not getattr(model, "constraints", ()):
        numeric = real_kernel_dim(model, point.floats(), rng)
        value = None if numeric.rank is None else model.parameter_count - numeric.rank
        evidence.append(
            evidence_of(
                "tangent_dim",
                "numpy",
                "singular values of the differential at the point",
                value,
                certainty=Certainty.NUMERIC,
            )
        )
    return evidence
