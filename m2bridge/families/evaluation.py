"""A model's network, coordinates and derivatives at given weights, in whatever arithmetic the arrays are of."""

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
        given = GivenArrays(model.coordinate_program, weights, derivative=derivative)
        return given, given.values()
    exponents = model.monomials  # a network with too many coordinates is refused first
    given = GivenArrays(model.program, weights, derivative=derivative)
    return given, given.coefficients(exponents)


def coordinates(model: Model, weights: Weights) -> Any:
    """Return the image point in the chosen target coordinates: the last axis has length `coordinate_count`."""
    given, table = _coordinate_table(model, weights, derivative=False)
    return given.returned(table, (model.coordinate_count,))


def random_image_points(model: Model, rng: np.random.Generator, count: int, p: int) -> np.ndarray:
    """Return the functions of random weights over F_p, one per row."""
    weights = {name: Mod(value, p) for name, value in model.draw_weights(rng, p, count).items()}
    return np.asarray(model.coordinates(weights).values)


def coordinate_jacobian(model: Model, weights: Weights) -> Any:
    """Return the Jacobian of the coordinates: the last two axes are coordinates and flat weights."""
    given, table = _coordinate_table(model, weights, derivative=True)
    return given.matrix(table)


def output_jacobian(model: Model, weights: Weights, inputs: Any) -> Any:
    """Return the Jacobian of the outputs at several inputs (one leading axis over them): rows are inputs, then output entries."""
    program = model.program
    given = GivenArrays(program, weights, inputs)
    rows, columns = program.output_count, program.parameter_count
    block = max(1, _BLOCK_BYTES // (8 * rows * columns))
    parts = []
    for start in range(0, len(inputs), block):
        window = {
            name: Lettered("N", given.arrays[name].array[start : start + block]) for name in program.inputs
        }
        parts.append(jacobian_block(program, given.arithmetic, given.arrays | window, np.arange(columns)))
    return given.arithmetic.convert_output(np.concatenate(parts) if parts else np.zeros((0, columns)))


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

    def entered(array: Any) -> Any:
        if p is None:
            return np.asarray(array, dtype=np.float64)
        return array if isinstance(array, Mod) else Mod(array, p)

    lifted = {name: entered(weights[name]) for name in model.parameters}
    if inputs is None:
        found = [model.coordinates(lifted), model.coordinate_jacobian(lifted)]
    else:
        if model.input_shape is None:
            raise InputError(f"{model} has no inputs; use the Jacobian of its coordinates")
        points = entered(inputs)
        if tuple(points.shape[1:]) != model.input_shape:
            wanted = ", ".join(map(str, model.input_shape))
            raise InputError(f"inputs of shape {points.shape} do not fit (N, {wanted})")
        found = [model.forward(lifted, points).reshape(-1), output_jacobian(model, lifted, points)]
    values, matrix = (np.asarray(array.values if isinstance(array, Mod) else array) for array in found)
    return values, matrix
