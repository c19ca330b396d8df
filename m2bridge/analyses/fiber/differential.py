"""The second witness: the differential of the parametrization and the orbits of the symmetries, from the forward pass alone.

No template is read here. Kernels are exact over F_p, or float64 with a visible gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, permutations, product
from typing import Any

import numpy as np

from m2bridge.analyses.fiber.points import Point, rank_bounds
from m2bridge.linear.integer import rank_over_q
from m2bridge.linear.modular import kernel_mod, rank_mod
from m2bridge.linear.numeric import NumericRank, numeric_rank
from m2bridge.models import MLP, DeepLightning, Mod, Model
from m2bridge.models.evaluation import output_jacobian
from m2bridge.programs.arithmetics import object_array

BIG_PRIME = 8_388_593
_MOST_PERMUTATIONS = 24


def outputs_at(model: Model, weights: Mapping[str, Any], inputs: Any) -> Any:
    """The network's outputs at inputs, or the coordinates of a map that has no inputs (one row for each input asked)."""
    if model.input_shape is None:
        return model.coordinates(weights).reshape(1, model.coordinate_count)
    return model.forward(weights, inputs)


def draw_inputs(model: Model, rng: np.random.Generator, count: int, p: int) -> np.ndarray:
    shape = model.input_shape
    return rng.integers(0, p, size=(count, *shape)) if shape is not None else np.zeros((1, 1), dtype=np.int64)


def sample_count(model: Model) -> int:
    """Inputs whose outputs are more numbers than there are weights."""
    outputs = int(np.prod(model.output_shape)) if model.output_shape else 1
    return -(-model.parameter_count // outputs) + 3


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


def real_kernel_dim(model: Model, weights: Mapping[str, np.ndarray], rng: np.random.Generator) -> NumericRank:
    """Numerical rank of the Jacobian at real weights, scaled to order one."""
    largest = max(float(np.abs(array).max(initial=0)) for array in weights.values()) or 1.0
    scaled = {name: array / largest for name, array in weights.items()}
    shape = model.input_shape
    inputs = rng.standard_normal((2 * sample_count(model), *shape)) if shape is not None else None
    return numeric_rank(np.asarray(jacobian(model, scaled, inputs), dtype=np.float64).T)


def generic_rank(model: Model, seed: int, p: int = BIG_PRIME) -> tuple[int, int]:
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
    return image, _symmetry_rank_mod(model, own, p)


def _symmetry_rank_mod(model: Model, weights: Mapping[str, Mod], p: int) -> int:
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
