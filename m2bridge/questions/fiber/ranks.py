"""What ranks say about fibers: the differential of the parametrization and the symmetries' action, from the forward pass alone.

No template is read here. Kernels are exact over F_p, or float64 with a visible gap. What is generic and what is at the point are
different quantities: neither is reported in place of the other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence, evidence_of_rank
from m2bridge.families import Mod, Model
from m2bridge.families.evaluation import output_jacobian
from m2bridge.linear.modular import kernel_mod, rank_mod
from m2bridge.linear.numeric import NumericRank, numeric_rank
from m2bridge.programs.program import degrees
from m2bridge.programs.ranks import generic_rank
from m2bridge.questions.fiber.model_symmetries import symmetry_dim, symmetry_rank_mod
from m2bridge.questions.point import Point, random_point, rank_prime

_GENERIC: dict[str, Any] = {"scope": "generic", "field": "QQ"}
_tangent_dim = partial(Evidence, "tangent_dim", certainty=Certainty.PROVED, scope="at-point", field="QQ")
_generic_dim = partial(Evidence, "generic_fiber_dim", scope="generic")
_SINGULAR_VALUES = "singular values of the differential"


# -- the forward pass and its differential ---------------------------------------------------------------------------------------


def outputs_at(model: Model, weights: Mapping[str, Any], inputs: Any) -> Any:
    """Return the network's outputs at inputs, or the coordinates of a map that has no inputs, as one row."""
    if model.input_shape is None:
        return model.coordinates(weights).reshape(1, model.coordinate_count)
    return model.forward(weights, inputs)


def draw_inputs(model: Model, rng: np.random.Generator, count: int, p: int) -> np.ndarray:
    shape = model.input_shape
    return rng.integers(0, p, size=(count, *shape)) if shape is not None else np.zeros((1, 1), dtype=np.int64)


@lru_cache(maxsize=64)
def sample_count(model: Model) -> int:
    """Return the number of random inputs that show the rank of the differential at a generic point."""
    return 1 if model.input_shape is None else generic_rank(model.program, held=model.knowledge.gauge).samples


def jacobian(model: Model, weights: Mapping[str, Any], inputs: Any) -> Any:
    """Return the derivatives of all outputs by all weights: one column per weight."""
    if model.input_shape is None:
        return model.coordinate_jacobian(weights)
    return output_jacobian(model, weights, inputs)


def rank_bound_rows(model: Model, weights: Mapping[str, Mod], p: int) -> np.ndarray:
    """Return the differentials at the point of the equations of bounded ranks, one row per equation.

    {rk A <= a} has the tangent space {B : u^T B w = 0 for u^T A = 0, A w = 0} where rk A = a, and everything where rk A < a.
    """
    rows: list[np.ndarray] = []
    zero = {name: np.zeros(shape, dtype=np.int64) for name, shape in model.parameters.items()}
    for name, bound in model.constraints.rank_bounds.items():
        for head in np.ndindex(model.parameters[name][:-2]):
            A = weights[name].values[head]
            pairs = product(kernel_mod(A.T, p)[0], kernel_mod(A, p)[0]) if rank_mod(A, p) == bound else ()
            for u, w in pairs:
                moved = zero[name].copy()
                moved[head] = np.outer(u, w) % p
                rows.append(model.flatten({**zero, name: moved}))
    return np.array(rows, dtype=np.int64).reshape(len(rows), model.parameter_count)


def kernel_dim(model: Model, weights: Mapping[str, Mod], p: int, rng: np.random.Generator) -> int:
    """Return the dimension over F_p of the kernel of the differential: the Zariski tangent space of the fiber.

    Inputs are added until as many again leave the rank as it is.
    """
    bounds, largest_rank = rank_bound_rows(model, weights, p), -1
    count = sample_count(model)
    while True:
        inputs = Mod(draw_inputs(model, rng, count, p), p)
        rank = rank_mod(np.concatenate([jacobian(model, weights, inputs).values, bounds]), p)
        if rank == largest_rank or model.input_shape is None:
            return model.parameter_count - rank
        largest_rank, count = max(largest_rank, rank), 2 * count


def generic_ranks(model: Model, seed: int, p: int) -> tuple[int, int]:
    """Return the ranks of the differential and of the symmetries at a random point of the free parametrization over F_p."""
    free, rng = model.free, np.random.default_rng([seed, 93])
    image = generic_rank(free.program, p=p, seed=seed, held=free.knowledge.gauge).rank
    weights = {name: Mod(value, p) for name, value in model.draw_weights(rng, p).items()}
    return image, symmetry_rank_mod(model, weights, p)


def generic_numeric_rank(
    model: Model, weights: Mapping[str, np.ndarray], rng: np.random.Generator
) -> NumericRank:
    """Numerical rank of the Jacobian at random real weights of order one; undecided when a number leaves the range of float64."""
    shape = model.input_shape
    inputs = rng.standard_normal((2 * sample_count(model), *shape)) if shape is not None else None
    try:
        with np.errstate(all="raise"):
            return numeric_rank(np.asarray(jacobian(model, weights, inputs), dtype=np.float64))
    except FloatingPointError:
        return NumericRank(rank=None, gap=0.0, candidate=0)


# -- dimensions ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """What ranks say. Generic: of almost every point. At the point: `orbit_dim` exactly, `tangent_upper` a proved upper bound.

    Attributes
    ----------
    image_dim, generic_fiber_dim, generic_orbit_dim: at random points; None where they are not known.
    probability: a lower bound of the probability that these are the generic ranks over F_p; None for floats.
    orbit_dim: dimension of the orbit of the known symmetries through the point.
    tangent_upper: dimension of the kernel of the differential at the point modulo a prime, which bounds that over QQ.
    """

    image_dim: int | None
    generic_fiber_dim: int | None
    generic_orbit_dim: int
    probability: float | None
    orbit_dim: int
    tangent_upper: int | None
    evidence: tuple[Evidence, ...]

    @property
    def dim_at_point(self) -> int | None:
        """Return the dimension of the fiber at the point if the kernel has the dimension of the orbit or of generic fibers."""
        return self.tangent_upper if self.tangent_upper in (self.orbit_dim, self.generic_fiber_dim) else None


def dimensions_of(point: Point, seed: int) -> Dimensions:
    """Compute dimensions of the generic fibers and of the fiber at the point, by ranks."""
    model, orbit_dim = point.model, symmetry_dim(point)
    generic = _generic if model.program.rational else _generic_numeric
    image, fiber, orbit, evidence = generic(model, seed)
    evidence.append(_tangent_dim(orbit_dim, "symmetry", "dimension of the orbit", relation=">="))
    kernel = probability = None
    if model.program.rational:
        p = rank_prime(model, point)
        kernel = kernel_dim(model, point.mod(p), p, np.random.default_rng([seed, 105]))
        how = "kernel of the differential at the point"
        evidence.append(_tangent_dim(kernel, "modular", how, relation="<=", prime=p))
        probability = 1 - min(1.0, _failures(model, image or 0, orbit) / rank_prime(model))
    return Dimensions(
        image_dim=image, generic_fiber_dim=fiber, generic_orbit_dim=orbit, probability=probability,
        orbit_dim=orbit_dim, tangent_upper=kernel, evidence=tuple(evidence),
    )  # fmt: skip


def _failures(model: Model, image: int, orbit: int = 0) -> int:
    """Return a degree of minors: a random point over F_p misses the generic ranks with probability at most degree / p."""
    return image * degrees(model.free.program)[1] + orbit


def _generic(model: Model, seed: int) -> tuple[int | None, int | None, int, list[Evidence]]:
    """Return the number of weights minus the rank of the differential at a random point, with the symmetries as lower bound."""
    start = time.perf_counter()
    p = rank_prime(model)
    image, symmetric = generic_ranks(model, seed, p)
    seconds = time.perf_counter() - start
    generic = model.parameter_dim - image
    sure = Certainty.PROVED if model.constraints.has_equations else Certainty.PROBABLE
    failure = min(1.0, _failures(model, image) / p)
    method = "weights minus rank of the differential at a random point"
    by_rank = partial(_generic_dim, generic, "modular", prime=p)
    evidence = [
        by_rank(method, relation="<=", certainty=sure, seconds=seconds, field="QQ"),
        by_rank("the same, as a generic rank", field=f"F_{p}", error_probability=failure),
        _of_symmetries(symmetric, " at a random point", field="QQ", prime=p),
    ]
    if model.free is model:
        rng = np.random.default_rng([seed, 104])
        numeric = generic_numeric_rank(model, model.draw_real_weights(rng), rng)
        columns = model.parameter_count
        evidence.append(
            evidence_of_rank("generic_fiber_dim", numeric, _SINGULAR_VALUES, corank_of=columns, **_GENERIC)
        )
    return image, generic if generic >= symmetric else None, symmetric, evidence


def _of_symmetries(rank: int, where: str = "", **fields: Any) -> Evidence:
    """Return evidence that generic fibers have at least the dimension of the orbits of the known symmetries."""
    method = f"rank of the symmetries' action{where}"
    return _generic_dim(rank, "symmetry", method, relation=">=", certainty=Certainty.PROVED, **fields)


def _generic_numeric(model: Model, seed: int) -> tuple[int | None, int | None, int, list[Evidence]]:
    """Softmax: singular values at a random real point, and the symmetries."""
    rng = np.random.default_rng([seed, 104])
    free = model.free
    numeric = generic_numeric_rank(free, free.draw_real_weights(rng), rng)
    generic = None if numeric.rank is None else model.parameter_dim - numeric.rank
    point = random_point(model, seed)
    p = rank_prime(model, point)
    symmetric = symmetry_rank_mod(model, point.mod(p), p)
    over: dict[str, Any] = {"scope": "generic", "field": "RR", "corank_of": model.parameter_dim}
    evidence = evidence_of_rank("generic_fiber_dim", numeric, _SINGULAR_VALUES, **over)
    return numeric.rank, generic, symmetric, [evidence, _of_symmetries(symmetric, field="RR")]
