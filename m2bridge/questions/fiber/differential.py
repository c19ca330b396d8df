"""The second witness: the differential of the parametrization and the orbits of the symmetries, from the forward pass alone.

No template is read here. Kernels are exact over F_p, or float64 with a visible gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from m2bridge.linear.modular import kernel_mod, rank_mod
from m2bridge.linear.numeric import NumericRank, numeric_rank
from m2bridge.models import MLP, Convolution, DeepLightning, Lightning, Linear, Mod, Model
from m2bridge.models.custom import PolynomialMap
from m2bridge.models.evaluation import output_jacobian
from m2bridge.programs.ranks import generic_rank
from m2bridge.questions import over_q
from m2bridge.questions.fiber.points import Point, rank_bounds

_WITHOUT_MINUS = (Lightning, DeepLightning, MLP, Convolution, Linear)
"""Networks without a minus sign: their Jacobians at |weights| and |inputs| are sums without cancellation."""
UNDECIDED = NumericRank(rank=None, gap=0.0, candidate=0)


def outputs_at(model: Model, weights: Mapping[str, Any], inputs: Any) -> Any:
    """The network's outputs at inputs, or the coordinates of a map that has no inputs (one row for each input asked)."""
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


def _float_jacobian(model: Model, weights: Mapping[str, np.ndarray], inputs: Any) -> np.ndarray:
    return np.asarray(jacobian(model, weights, inputs), dtype=np.float64)


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
        return UNDECIDED


def numeric_rank_at(point: Point, rng: np.random.Generator) -> NumericRank:
    """Numerical rank of the Jacobian at the point itself, or undecided.

    Inputs are small integers. It is decided only where rounding cannot have changed a rank: where float64 represents the point,
    nothing under- or overflows, and each column keeps a thousandth of the size that it has without cancellation, or all is
    computed with integers below 2^53.
    """
    model, shape = point.model, point.model.input_shape
    count = 2 * sample_count(model)
    inputs = rng.integers(-9, 10, (count, *shape)).astype(float) if shape is not None else None
    try:
        with np.errstate(all="raise"):
            weights = point.floats()
            table = _float_jacobian(model, weights, inputs)
            bound = _jacobian_of_absolute_values(model, weights, inputs)
    except (FloatingPointError, OverflowError):
        return UNDECIDED
    if bound is None:
        return UNDECIDED
    exact = _all_integers(point) and float(bound.max(initial=0.0)) < 2**53
    sizes, without = np.linalg.norm(table, axis=0), np.linalg.norm(bound, axis=0)
    return numeric_rank(table) if exact or bool(np.all(sizes >= 1e-3 * without)) else UNDECIDED


def _all_integers(point: Point) -> bool:
    """Whether the weights, and the coefficients of a map, are integers."""
    coefficients = [Fraction(c) for terms in getattr(point.model, "polynomials", ()) for _, c in terms]
    return all(x.denominator == 1 for x in (*point.vector, *coefficients))


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


def symmetry_rank_mod(model: Model, weights: Mapping[str, Mod], p: int) -> int:
    """Rank over F_p of the infinitesimal action of the known symmetries at a point: at most the dimension of its orbit."""
    moves = [symmetry.generators(weights).values for symmetry in model.symmetries]
    return rank_mod(np.concatenate(moves), p) if moves else 0


def symmetry_dim(point: Point) -> int:
    """Dimension of the orbit of the known symmetries through the point: rank over QQ of their infinitesimal action."""
    moves = [symmetry.generators(dict(point.weights)) for symmetry in point.model.symmetries]
    return over_q.rank(np.concatenate(moves)) if moves else 0


def output_count(model: Model) -> int:
    """Numbers that one input gives, or coordinates of a map without inputs."""
    return prod(model.output_shape) if model.output_shape is not None else model.coordinate_count
