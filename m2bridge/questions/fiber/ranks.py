"""What ranks say about fibers: the differential of the parametrization and the symmetries' action, from the forward pass alone.

No template is read here. Kernels are exact over F_p, or float64 with a visible gap. What is generic and what is at the point are
different quantities: neither is reported in place of the other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import inf, log10
from typing import Any

import numpy as np

from m2bridge.linear.modular import kernel_mod, rank_mod
from m2bridge.linear.numeric import NumericRank, numeric_rank
from m2bridge.models import MLP, Convolution, DeepLightning, Lightning, Linear, Mod, Model
from m2bridge.models.custom import OwnModel, PolynomialMap
from m2bridge.models.evaluation import output_jacobian
from m2bridge.programs.program import degrees
from m2bridge.programs.ranks import generic_rank
from m2bridge.questions import over_q
from m2bridge.questions.point import Point, random_point, rank_bounds, rank_prime
from m2bridge.questions.testimony import floats, proves, says
from m2bridge.results import Certainty, Evidence

_WITHOUT_MINUS = (Lightning, DeepLightning, MLP, Convolution, Linear)
"""Networks without a minus sign: their Jacobians at |weights| and |inputs| are sums without cancellation."""
_UNDECIDED = NumericRank(rank=None, gap=0.0, candidate=0)
_FLOAT_RANGE = 250
"""Products beyond 10^250 or below 10^-250 are not computed in float64."""
_GENERIC = {"scope": "generic", "field": "QQ"}
_HERE = {"scope": "at-point", "field": "QQ"}


# -- the forward pass and its differential ---------------------------------------------------------------------------------------


def outputs_at(model: Model, weights: Mapping[str, Any], inputs: Any) -> Any:
    """The network's outputs at inputs, or the coordinates of a map that has no inputs, as one row."""
    if model.input_shape is None:
        return model.coordinates(weights).reshape(1, model.coordinate_count)
    return model.forward(weights, inputs)


def draw_inputs(model: Model, rng: np.random.Generator, count: int, p: int) -> np.ndarray:
    shape = model.input_shape
    return rng.integers(0, p, size=(count, *shape)) if shape is not None else np.zeros((1, 1), dtype=np.int64)


@lru_cache(maxsize=64)
def sample_count(model: Model) -> int:
    """Random inputs that show the rank of the differential at a generic point, none of them missing."""
    return 1 if model.input_shape is None else generic_rank(model.program, held=model.gauge).samples


def jacobian(model: Model, weights: Mapping[str, Any], inputs: Any) -> Any:
    """Derivatives of all outputs by all weights: one column a weight."""
    if model.input_shape is None:
        return model.coordinate_jacobian(weights)
    return output_jacobian(model, weights, inputs)


def constraint_rows(model: Model, weights: Mapping[str, Mod], p: int) -> np.ndarray:
    """Differentials at the point of the equations that the weights satisfy, one row an equation.

    {rk A <= a} has the tangent space {B : u^T B w = 0 for u^T A = 0, A w = 0} where rk A = a, and everything where rk A < a.
    """
    rows: list[np.ndarray] = []
    zero = {name: np.zeros(shape, dtype=np.int64) for name, shape in model.parameters.items()}
    for name, bound in rank_bounds(model).items():
        A = weights[name].values
        if rank_mod(A, p) == bound:
            pairs = product(kernel_mod(A.T, p)[0], kernel_mod(A, p)[0])
            rows += [model.flatten({**zero, name: np.outer(u, w) % p}) for u, w in pairs]
    table = model.constraint_jacobian(weights)
    if table is not None:
        rows += list(table.values)
    return np.array(rows, dtype=np.int64).reshape(len(rows), model.parameter_count)


def kernel_dim(model: Model, weights: Mapping[str, Mod], p: int, rng: np.random.Generator) -> int:
    """Dimension over F_p of the weights' directions along which no output changes: the Zariski tangent space of the fiber.

    Inputs are added until as many again leave the rank as it is.
    """
    constraints, found = constraint_rows(model, weights, p), -1
    count = sample_count(model)
    while True:
        inputs = Mod(draw_inputs(model, rng, count, p), p)
        rank = rank_mod(np.concatenate([jacobian(model, weights, inputs).values, constraints]), p)
        if rank == found or model.input_shape is None:
            return model.parameter_count - rank
        found, count = max(found, rank), 2 * count


def generic_ranks(model: Model, seed: int, p: int) -> tuple[int, int]:
    """Rank of the differential and of the symmetries' action at a random point of the free parametrization over F_p."""
    free, rng = model.free, np.random.default_rng([seed, 93])
    if getattr(free, "constraints", ()):
        weights = {name: Mod(value, p) for name, value in free.draw_weights(rng, p).items()}
        constraints = constraint_rows(free, weights, p)
        joint = np.concatenate([jacobian(free, weights, None).values, constraints])
        image = rank_mod(joint, p) - rank_mod(constraints, p)
    else:
        image = generic_rank(free.program, p=p, seed=seed, held=free.gauge).rank
    own = {name: Mod(value, p) for name, value in model.draw_weights(rng, p).items()}
    return image, symmetry_rank_mod(model, own, p)


def symmetry_moves(model: Model, weights: Mapping[str, Any]) -> list[Any]:
    """The infinitesimal action of the known symmetries, named or found, at a point: tables with one row a generator."""
    tables = [symmetry.generators(weights) for symmetry in model.symmetries]
    if isinstance(model, OwnModel):
        tables += [field.generators(weights) for field in model.found.fields]
    return tables


def symmetry_rank_mod(model: Model, weights: Mapping[str, Mod], p: int) -> int:
    """Rank over F_p of the infinitesimal action of the known symmetries at a point: at most the dimension of its orbit."""
    moves = [table.values for table in symmetry_moves(model, weights)]
    return rank_mod(np.concatenate(moves), p) if moves else 0


def symmetry_dim(point: Point) -> int:
    """Dimension of the orbit of the known symmetries through the point: rank over QQ of their infinitesimal action."""
    moves = symmetry_moves(point.model, dict(point.weights))
    return over_q.rank(np.concatenate(moves)) if moves else 0


# -- the same in float64 ---------------------------------------------------------------------------------------------------------


def _float_jacobian(model: Model, weights: Mapping[str, np.ndarray], inputs: Any) -> np.ndarray:
    return np.asarray(jacobian(model, weights, inputs), dtype=np.float64)


def generic_numeric_rank(
    model: Model, weights: Mapping[str, np.ndarray], rng: np.random.Generator
) -> NumericRank:
    """Numerical rank of the Jacobian at random real weights of order one; undecided when a number leaves the range of float64."""
    shape = model.input_shape
    inputs = rng.standard_normal((2 * sample_count(model), *shape)) if shape is not None else None
    try:
        with np.errstate(all="raise"):
            return numeric_rank(_float_jacobian(model, weights, inputs))
    except FloatingPointError:
        return _UNDECIDED


def numeric_rank_at(point: Point, rng: np.random.Generator) -> NumericRank:
    """Numerical rank of the Jacobian at the point itself, or undecided.

    Inputs are small integers. It is decided only where rounding cannot have changed a rank: where float64 represents the point,
    nothing under- or overflows, and each column keeps a thousandth of the size that it has without cancellation, or all is
    computed with integers below 2^53.
    """
    model, shape = point.model, point.model.input_shape
    sizes = [_magnitude(abs(x.numerator)) - _magnitude(x.denominator) for x in point.vector if x]
    largest = max((abs(s) + 1 for s in sizes), default=0)
    if degrees(model.free.program)[1] * largest >= _FLOAT_RANGE:  # a product of weights may leave the range
        return _UNDECIDED
    count = 2 * sample_count(model)
    inputs = rng.integers(-9, 10, (count, *shape)).astype(float) if shape is not None else None
    try:
        with np.errstate(all="raise"):
            weights = point.floats()
            table = _float_jacobian(model, weights, inputs)
            bound = _jacobian_of_absolute_values(model, weights, inputs)
    except (FloatingPointError, OverflowError):
        return _UNDECIDED
    if bound is None:
        return _UNDECIDED
    coefficients = [Fraction(c) for terms in getattr(model, "polynomials", ()) for _, c in terms]
    whole = all(x.denominator == 1 for x in (*point.vector, *coefficients))
    if whole and float(bound.max(initial=0.0)) < 2**53:
        return numeric_rank(table)
    norms, without = np.linalg.norm(table, axis=0), np.linalg.norm(bound, axis=0)
    return numeric_rank(table) if bool(np.all(norms >= 1e-3 * without)) else _UNDECIDED


def _magnitude(n: int) -> float:
    return log10(n) if n else -inf


def _jacobian_of_absolute_values(
    model: Model, weights: Mapping[str, np.ndarray], inputs: Any
) -> np.ndarray | None:
    """What the sums in the Jacobian would be without cancellation; None for a network whose signs are not known."""
    absolute = {name: np.abs(array) for name, array in weights.items()}
    if isinstance(model, PolynomialMap):
        positive = tuple(tuple((e, abs(Fraction(c))) for e, c in terms) for terms in model.polynomials)
        return _float_jacobian(replace(model, polynomials=positive), absolute, None)
    if not isinstance(model, _WITHOUT_MINUS):
        return None
    return _float_jacobian(model, absolute, np.abs(inputs))


# -- dimensions ------------------------------------------------------------------------------------------------------------------


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

    @property
    def dim_at_point(self) -> int | None:
        """The dimension of the fiber at the point: that of the orbit, or of generic fibers, where the kernel has no more."""
        least = {self.orbit_dim, self.generic_fiber_dim if self.irreducible_source else None}
        return self.tangent_upper if self.tangent_upper in least else None


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
    error = min(1.0, image * degrees(model.free.program)[1] / p)
    more = {"error_probability": error, "prime": p, "scope": "generic", "field": f"F_{p}"}
    acting = "rank of the symmetries' action at a random point"
    evidence = [
        bound(quantity, generic, "modular", method, relation="<=", prime=p, seconds=seconds, **_GENERIC),
        says(quantity, generic, "modular", "the same, as a generic rank", **more),
        proves(quantity, symmetric, "symmetry", acting, relation=">=", prime=p, **_GENERIC),
    ]
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
        numeric = numeric_rank_at(point, rng)
        method = "singular values of the differential at the point"
        evidence.append(floats(quantity, numeric, method, corank_of=model.parameter_count, **_HERE))
    return kernel, evidence
