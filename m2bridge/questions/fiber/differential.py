"""The second witness: the differential of the parametrization and the orbits of the symmetries, from the forward pass alone.

No template is read here. Kernels are exact over F_p, or float64 with a visible gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice, permutations, product
from typing import Any

import numpy as np

from m2bridge.linear.integer import rank_over_q
from m2bridge.linear.modular import kernel_mod, rank_mod
from m2bridge.linear.numeric import NumericRank, numeric_rank
from m2bridge.models import MLP, Convolution, DeepLightning, Lightning, Linear, Mod, Model
from m2bridge.models.custom import PolynomialMap
from m2bridge.models.evaluation import output_jacobian
from m2bridge.programs.arithmetics import object_array
from m2bridge.questions.fiber.points import Point, rank_bounds
from m2bridge.questions.samples import inputs_for

_MOST_PERMUTATIONS = 24
UNDECIDED = NumericRank(rank=None, gap=0.0, candidate=0)


def outputs_at(model: Model, weights: Mapping[str, Any], inputs: Any) -> Any:
    """The network's outputs at inputs, or the coordinates of a map that has no inputs (one row for each input asked)."""
    if model.input_shape is None:
        return model.coordinates(weights).reshape(1, model.coordinate_count)
    return model.forward(weights, inputs)


def draw_inputs(model: Model, rng: np.random.Generator, count: int, p: int) -> np.ndarray:
    shape = model.input_shape
    return rng.integers(0, p, size=(count, *shape)) if shape is not None else np.zeros((1, 1), dtype=np.int64)


def sample_count(model: Model) -> int:
    """Inputs whose outputs are more numbers than there are weights, as far as outputs of one input can be independent."""
    return inputs_for(model, model.parameter_count, spare=3)


def jacobian(model: Model, weights: Mapping[str, Any], inputs: Any) -> Any:
    """Derivatives of all outputs by all weights: one row a weight."""
    if model.input_shape is None:
        table = model.coordinate_jacobian(weights)
        return table.mT if isinstance(table, Mod) else np.asarray(table).T
    table = output_jacobian(model, weights, inputs)
    return table.mT if isinstance(table, Mod) else np.asarray(table).T


def constraint_rows(model: Model, weights: Mapping[str, Mod], p: int) -> np.ndarray:
    """Differentials at the point of the equations that the weights satisfy, one row an equation.

    {rk A <= a} has the tangent space {B : u^T B w = 0 for u^T A = 0, A w = 0} where rk A = a, and everything where rk A < a.
    """
    rows: list[np.ndarray] = []
    offsets, start = {}, 0
    for name, shape in model.parameters.items():
        offsets[name] = start
        start += int(np.prod(shape))
    for name, bound in rank_bounds(model).items():
        A = weights[name].values
        if rank_mod(A, p) < bound:
            continue
        for u, w in product(kernel_mod(A.T, p)[0], kernel_mod(A, p)[0]):
            row = np.zeros(start, dtype=np.int64)
            row[offsets[name] : offsets[name] + A.size] = (np.outer(u, w) % p).ravel()
            rows.append(row)
    own = getattr(model, "constraint_jacobian", None)
    table = own(weights) if own is not None else None
    if table is not None:
        rows += list(table.values)
    return np.array(rows, dtype=np.int64).reshape(len(rows), start)


def kernel_dim(model: Model, weights: Mapping[str, Mod], p: int, rng: np.random.Generator) -> int:
    """Dimension over F_p of the weights' directions along which no output changes: the Zariski tangent space of the fiber."""
    inputs = Mod(draw_inputs(model, rng, 2 * sample_count(model), p), p)
    table = jacobian(model, weights, inputs).values.T
    rows = np.concatenate([table, constraint_rows(model, weights, p)])
    return model.parameter_count - rank_mod(rows, p)


def generic_numeric_rank(
    model: Model, weights: Mapping[str, np.ndarray], rng: np.random.Generator
) -> NumericRank:
    """Numerical rank of the Jacobian at random real weights of order one; undecided when a number leaves the range of float64."""
    shape = model.input_shape
    inputs = rng.standard_normal((2 * sample_count(model), *shape)) if shape is not None else None
    try:
        with np.errstate(all="raise"):
            table = np.asarray(jacobian(model, weights, inputs), dtype=np.float64).T
    except FloatingPointError:
        return UNDECIDED
    return numeric_rank(table)


def numeric_rank_at(point: Point, rng: np.random.Generator) -> NumericRank:
    """Numerical rank of the Jacobian at the point itself, or undecided.

    Inputs are small integers. It is decided only where rounding cannot have changed a rank: where float64 represents the point,
    nothing under- or overflows, and each column keeps a thousandth of the size that it has without cancellation, or all is
    computed with integers below 2^53.
    """
    model, shape = point.model, point.model.input_shape
    inputs = (
        rng.integers(-9, 10, (2 * sample_count(model), *shape)).astype(float) if shape is not None else None
    )
    try:
        with np.errstate(all="raise"):
            weights = point.floats()
            table = np.asarray(jacobian(model, weights, inputs), dtype=np.float64).T
            bound = _jacobian_of_absolute_values(model, weights, inputs)
    except (FloatingPointError, OverflowError):
        return UNDECIDED
    if bound is None:
        return UNDECIDED
    exact = _all_integers(point) and float(bound.max(initial=0.0)) < 2**53
    sizes, without = np.linalg.norm(table, axis=0), np.linalg.norm(bound, axis=0)
    if not exact and bool(np.any(sizes < 1e-3 * without)):
        return UNDECIDED
    return numeric_rank(table)


def _all_integers(point: Point) -> bool:
    """Whether the weights, and the coefficients of a map, are integers."""
    terms = [term for part in getattr(point.model, "polynomials", ()) for term in part]
    return all(x.denominator == 1 for x in point.vector) and all(
        Fraction(c).denominator == 1 for _, c in terms
    )


def _jacobian_of_absolute_values(
    model: Model, weights: Mapping[str, np.ndarray], inputs: Any
) -> np.ndarray | None:
    """What the sums in the Jacobian would be without cancellation; None for a network whose signs are not known.

    The networks of the literature have no minus sign: their Jacobians at |weights| and |inputs| are these sums.
    """
    absolute = {name: np.abs(array) for name, array in weights.items()}
    if model.input_shape is not None:
        known = (Lightning, DeepLightning, MLP, Convolution, Linear)
        if not isinstance(model, known):
            return None
        return np.asarray(jacobian(model, absolute, np.abs(inputs)), dtype=np.float64).T
    if not isinstance(model, PolynomialMap):
        return None
    positive = tuple(tuple((e, abs(Fraction(c))) for e, c in terms) for terms in model.polynomials)
    return np.asarray(replace(model, polynomials=positive).coordinate_jacobian(absolute), dtype=np.float64)


def generic_rank(model: Model, seed: int, p: int) -> tuple[int, int]:
    """Rank of the differential and of the symmetries' action at a random point of the free parametrization over F_p."""
    free = model.free
    rng = np.random.default_rng([seed, 93])
    weights = {name: Mod(value, p) for name, value in free.draw_weights(rng, p).items()}
    inputs = Mod(draw_inputs(free, rng, 2 * sample_count(free), p), p)
    table = jacobian(free, weights, inputs).values.T
    constraints = constraint_rows(free, weights, p)
    joint = rank_mod(np.concatenate([table, constraints]), p)
    image = joint - (rank_mod(constraints, p) if len(constraints) else 0)
    own = {name: Mod(value, p) for name, value in model.draw_weights(rng, p).items()}
    return image, symmetry_rank_mod(model, own, p)


def symmetry_rank_mod(model: Model, weights: Mapping[str, Mod], p: int) -> int:
    """Rank over F_p of the infinitesimal action of the known symmetries at a point: at most the dimension of its orbit."""
    moves = [symmetry.generators(weights).values for symmetry in model.symmetries]
    return rank_mod(np.concatenate(moves), p) if moves else 0


def symmetry_dim(point: Point) -> int:
    """Dimension of the orbit of the known symmetries through the point: rank over QQ of their infinitesimal action."""
    moves = [symmetry.generators(dict(point.weights)) for symmetry in point.model.symmetries]
    if not moves:
        return 0
    table = np.concatenate(moves)
    common = int(np.lcm.reduce([x.denominator for x in point.vector], dtype=object))
    return rank_over_q(object_array([int(x * common) for x in table.ravel()], table.shape))


def known_points(point: Point) -> tuple[list[np.ndarray], str | None]:
    """The point and its images under the finite symmetries that are known: permutations of neurons and of heads.

    Returns the flattened points (the point itself first) and what the permutations are, or None when there are none.
    """
    model = point.model
    if isinstance(model, MLP) and model.layers > 1 and model.r > 1:
        hidden = model.widths[1:-1]
        found = []
        for choice in islice(product(*(permutations(range(n)) for n in hidden)), _MOST_PERMUTATIONS):
            weights = {name: array.copy() for name, array in point.weights.items()}
            for i, order in enumerate(choice, start=1):
                weights[f"W{i}"] = weights[f"W{i}"][list(order), :]
                weights[f"W{i + 1}"] = weights[f"W{i + 1}"][:, list(order)]
            found.append(_flat(model, weights))
        return found, "permutations of the hidden neurons"
    if isinstance(model, DeepLightning) and model.multi_head:
        found = []
        for choice in islice(product(*(permutations(range(n)) for n in model.heads)), _MOST_PERMUTATIONS):
            weights = dict(point.weights)
            for i, order in enumerate(choice, start=1):
                if len(order) > 1:
                    names = [name for name in weights if name[1:] == str(i)]
                    weights |= {name: weights[name][list(order)] for name in names}
            found.append(_flat(model, weights))
        return found, "permutations of the heads"
    return [point.vector], None


def _flat(model: Model, weights: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([weights[name].ravel() for name in model.parameters])
