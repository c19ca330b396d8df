"""Models stage: the Jacobian of a model, by the mode that costs less."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.models.arrays import Mod, lift
from m2bridge.models.base import Model, Weights
from m2bridge.models.jets import seeded
from m2bridge.models.pullbacks import cotangents
from m2bridge.models.tape import Node

_BLOCK_BYTES = 1 << 22  # a block of the Jacobian that stays near the processor


def jacobian(
    model: Model, weights: Weights, inputs: Any = None, p: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Values of a model and their derivatives by all weights, at one point of the weight space.

    Parameters
    ----------
    model
        Any model.
    weights
        Integers (with `p`) or floats (without).
    inputs
        Inputs of the network, with one leading axis over them; None for the target coordinates.
    p
        The prime; None for float64.

    Returns
    -------
    values, jacobian
        Flattened values (inputs first, then output entries row by row; or coordinates), and the matrix with
        a row for each value and a column for each flattened weight; int64 residues or float64. The
        derivatives are by the entries of the weights, also where the weights satisfy constraints: take
        `model.free` for the rank on the variety, or see
        :meth:`~m2bridge.models.base.Model.constraint_jacobian`.

    Notes
    -----
    Networks have few outputs and many weights: reverse mode costs a few forward passes for each output of an
    input. The coordinates go in forward mode, one tangent for each weight.

    Examples
    --------
    >>> from m2bridge.models import Linear
    >>> weights = {"W1": np.array([[1, 2]]), "W2": np.array([[3]])}
    >>> values, matrix = jacobian(Linear(widths=(2, 1, 1)), weights, inputs=np.array([[1, 1]]), p=101)
    >>> values.tolist(), matrix.tolist()
    ([9], [[3, 3, 3]])
    """
    lifted = {name: _arithmetic(weights[name], p) for name in model.parameters}
    if inputs is None:
        return _of_coordinates(model, lifted)
    if model.input_shape is None or model.output_shape is None:
        raise InputError(f"{model.spec} has no inputs; ask for the Jacobian of its coordinates")
    points = _arithmetic(inputs, p)
    if tuple(points.shape[1:]) != model.input_shape:
        raise InputError(
            f"inputs of shape {points.shape} do not fit (N, {', '.join(map(str, model.input_shape))})"
        )
    return _of_outputs(model, lifted, points)


def _arithmetic(array: Any, p: int | None) -> Any:
    if p is None:
        return np.asarray(array, dtype=np.float64)
    return array if isinstance(array, Mod) else Mod(array, p)


def _plain(array: Any) -> np.ndarray:
    return array.values if isinstance(array, Mod) else np.asarray(array)


def _of_coordinates(model: Model, weights: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    own = model.coordinate_jacobian(weights)
    if own is not None:
        return _plain(model.coordinates(weights)), _plain(own)
    jet = model.coordinates(seeded(weights, model.parameters))
    return _plain(jet.value), np.ascontiguousarray(_plain(jet.tangents).T)


def _of_outputs(model: Model, weights: dict[str, Any], points: Any) -> tuple[np.ndarray, np.ndarray]:
    outputs, columns = prod(model.output_shape or ()), model.parameter_count
    count = points.shape[0]
    exact = isinstance(points, Mod)
    kind = np.int64 if exact else np.float64
    values = np.empty((count, outputs), dtype=kind)
    matrix = np.empty((count, outputs, columns), dtype=kind)
    block = max(1, _BLOCK_BYTES // (8 * outputs * columns))
    for start in range(0, count, block):
        part = slice(start, min(count, start + block))
        _one_block(model, weights, points[part], values[part], matrix[part])
    return values.reshape(-1), matrix.reshape(count * outputs, columns)


def _one_block(
    model: Model, weights: dict[str, Any], points: Any, values: np.ndarray, matrix: np.ndarray
) -> None:
    leaves = {name: Node(value, analytic=not model.polynomial) for name, value in weights.items()}
    size, shape = points.shape[0], model.output_shape or ()
    outputs = prod(shape)
    result = model.forward(leaves, Node(points, batched=True, analytic=not model.polynomial))
    values[:] = _plain(result.value).reshape(-1, outputs)  # one row for all where the input is not looked at
    seed = np.eye(outputs, dtype=np.int64).reshape(outputs, 1, *shape)
    pulled = cotangents(result, list(leaves.values()), lift(seed, points))
    column = 0
    for (_, weight_shape), cotangent in zip(model.parameters.items(), pulled, strict=True):
        width = prod(weight_shape)
        target = matrix[:, :, column : column + width].swapaxes(0, 1).reshape(outputs, size, *weight_shape)
        if cotangent is None:
            target[...] = 0
        else:
            target[...] = cotangent.data if isinstance(cotangent, Mod) else cotangent
        column += width
