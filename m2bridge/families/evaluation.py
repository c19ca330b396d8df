"""Evaluate a model at given weights: network, coordinates and derivatives, in the arithmetic of the arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.linear.residues import Mod
from m2bridge.programs.arithmetics import Array
from m2bridge.programs.evaluation import GivenArrays
from m2bridge.programs.jacobians import jacobian_block
from m2bridge.programs.run import Lettered

if TYPE_CHECKING:
    from m2bridge.families.base import Model, Weights

_BLOCK_BYTES = 1 << 22  # bytes of a block of the Jacobian; it fits into the cache


def _coordinate_table(model: Model, weights: Weights, *, derivative: bool) -> tuple[GivenArrays, Array]:
    if model.coordinate_program is not None:
        arrays = GivenArrays(model.coordinate_program, weights, derivative=derivative)
        return arrays, arrays.values()
    exponents = model.monomials  # a network with too many coordinates is refused first
    arrays = GivenArrays(model.program, weights, derivative=derivative)
    return arrays, arrays.coefficients(exponents)


def coordinates(model: Model, weights: Weights) -> Any:
    """Return the image point in the chosen target coordinates: the last axis has length `coordinate_count`."""
    arrays, table = _coordinate_table(model, weights, derivative=False)
    return arrays.returned(table, (model.coordinate_count,))


def random_image_points(model: Model, rng: np.random.Generator, count: int, p: int) -> np.ndarray:
    """Return the functions of random weights over F_p, one per row."""
    weights = {name: Mod(value, p) for name, value in model.draw_weights(rng, p, count).items()}
    return np.asarray(model.coordinates(weights).values)


def coordinate_jacobian(model: Model, weights: Weights) -> Any:
    """Return the Jacobian of the coordinates: the last two axes are coordinates and flat weights."""
    arrays, table = _coordinate_table(model, weights, derivative=True)
    return arrays.matrix(table)


def output_jacobian(model: Model, weights: Weights, inputs: Any) -> Any:
    """Return the Jacobian of the outputs at several inputs (one leading axis over them): rows are inputs, then output entries."""
    program = model.program
    arrays = GivenArrays(program, weights, inputs)
    rows, columns = program.output_count, program.parameter_count
    block_length = max(1, _BLOCK_BYTES // (8 * rows * columns))
    blocks = []
    for start in range(0, len(inputs), block_length):
        window = {
            name: Lettered("N", arrays.arrays[name].array[start : start + block_length])
            for name in program.inputs
        }
        blocks.append(jacobian_block(program, arrays.arithmetic, arrays.arrays | window, np.arange(columns)))
    return arrays.arithmetic.convert_output(np.concatenate(blocks) if blocks else np.zeros((0, columns)))


def jacobian(
    model: Model, weights: Weights, inputs: Any = None, p: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return values of a model and their derivatives by all weights, at one point of the weight space.

    Weights are integers with a prime `p`, floats without. With `inputs`, which have one leading axis over them, the values are
    the outputs, input by input and row by row; without, the target coordinates. The matrix has a row for each value and a
    column for each flat weight; both are int64 residues or float64. The derivatives are by the entries of the weights, also
    where the ranks of these are bounded.

    >>> from m2bridge.families import Linear
    >>> weights = {"W1": np.array([[1, 2]]), "W2": np.array([[3]])}
    >>> values, matrix = jacobian(Linear(widths=(2, 1, 1)), weights, inputs=np.array([[1, 1]]), p=101)
    >>> values.tolist(), matrix.tolist()
    ([9], [[3, 3, 3]])
    """

    def converted(array: Any) -> Any:
        if p is None:
            return np.asarray(array, dtype=np.float64)
        return array if isinstance(array, Mod) else Mod(array, p)

    point = {name: converted(weights[name]) for name in model.parameters}
    if inputs is None:
        results = [model.coordinates(point), model.coordinate_jacobian(point)]
    else:
        if model.input_shape is None:
            raise InputError(f"{model} has no inputs; use the Jacobian of its coordinates")
        points = converted(inputs)
        if tuple(points.shape[1:]) != model.input_shape:
            expected = ", ".join(map(str, model.input_shape))
            raise InputError(f"inputs of shape {points.shape} do not fit (N, {expected})")
        results = [model.forward(point, points).reshape(-1), output_jacobian(model, point, points)]
    values, matrix = (np.asarray(array.values if isinstance(array, Mod) else array) for array in results)
    return values, matrix
