"""A model's network, coordinates and derivatives at given weights, in whatever arithmetic the arrays are of.

Weights and inputs may be float64 arrays, :class:`~m2bridge.linear.residues.Mod` arrays over F_p, integers, or object arrays of
polynomials, rationals or balls. Leading axes are batches. The work is done by interpreting the model's program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import fmpq

from m2bridge.errors import InputError
from m2bridge.linear.residues import Mod
from m2bridge.programs.arithmetics import Array, Floats, Objects, Residues, elementwise
from m2bridge.programs.coefficients import coefficient_table, output_forms
from m2bridge.programs.instructions import Shape, flat_parts
from m2bridge.programs.jacobians import jacobian_block
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, aligned, evaluate, tangents

if TYPE_CHECKING:
    from m2bridge.models.base import Model, Weights

_BLOCK_BYTES = 1 << 22  # a block of the Jacobian that stays near the processor


@dataclass(frozen=True, slots=True)
class Setting:
    """An arithmetic with the way into it and back."""

    arithmetic: Floats
    enter: Callable[[Any], Array]
    leave: Callable[[Array], Any]


def setting_of(arrays: Iterable[Any]) -> Setting:
    """The arithmetic that arrays are of: F_p if one of them is, else float64 if they are floats, else exact objects."""
    listed = list(arrays)
    residue = next((array for array in listed if isinstance(array, Mod)), None)
    if residue is not None:
        field = residue.field
        return Setting(
            Residues(field),
            lambda a: a.data if isinstance(a, Mod) else field.residues(a),
            lambda a: Mod.wrap(a, field.p),
        )
    dtypes = [np.asarray(array).dtype for array in listed]
    if any(dtype.kind == "f" for dtype in dtypes) and "O" not in {dtype.kind for dtype in dtypes}:
        return Setting(Floats(), lambda a: np.asarray(a, dtype=np.float64), lambda a: a)
    return _objects(listed, whole=all(dtype.kind in "iub" for dtype in dtypes))


def _objects(arrays: list[Any], *, whole: bool) -> Setting:
    entries = [
        entry
        for array in arrays
        if np.asarray(array).dtype == object
        for entry in np.asarray(array).reshape(-1)
    ]
    sample = next(
        (entry for entry in entries if not isinstance(entry, (int, np.integer, Fraction, float))), None
    )

    def number(value: Fraction) -> Any:
        if value.denominator == 1:
            return value.numerator
        return value if sample is None else fmpq(value.numerator, value.denominator)

    def enter(array: Any) -> Array:
        array = np.asarray(array)
        return array if array.dtype == object else elementwise(_exact, array)

    def leave(array: Array) -> Any:
        if whole and all(entry.denominator == 1 and abs(entry) < 2**62 for entry in array.reshape(-1)):
            return array.astype(np.int64)
        if sample is None:
            return array
        zero = sample * 0
        return elementwise(lambda entry: zero + entry if isinstance(entry, int) else entry, array)

    return Setting(Objects(number), enter, leave)


def _exact(entry: Any) -> Any:
    return Fraction(float(entry)) if isinstance(entry, np.floating) else int(entry)


# -- arrays with letters, and back -----------------------------------------------------------------------


def _given(
    setting: Setting, arrays: Mapping[str, Any], shapes: Mapping[str, Shape]
) -> tuple[Shape, dict[str, Lettered]]:
    """The leading axes that the arrays have in common, and the arrays with these axes joined to one."""
    batch: Shape = ()
    for name, shape in shapes.items():
        if name not in arrays:
            raise InputError(f"there is no array for {name}, of shape {tuple(shape)}")
        given_shape = tuple(arrays[name].shape)
        place = len(given_shape) - len(shape)
        if given_shape[place:] != tuple(shape):
            raise InputError(f"{name} has shape {given_shape}, which does not end with {shape}")
        batch = np.broadcast_shapes(batch, given_shape[:place])
    found = {}
    for name, shape in shapes.items():
        array = setting.enter(arrays[name])
        if array.ndim == len(shape):
            found[name] = Lettered("", array)
        else:
            array = np.broadcast_to(array, (*batch, *shape))
            found[name] = Lettered("N", array.reshape(prod(batch), *shape))
    return batch, found


def _inputs(program: Program, inputs: Any) -> dict[str, Any]:
    """Inputs by name; several inputs travel as one vector, one after the other."""
    shapes = program.input_shapes
    if len(shapes) == 1:
        return {next(iter(shapes)): inputs}
    parts = flat_parts(shapes)
    return {name: inputs[..., part].reshape((*inputs.shape[:-1], *shape)) for name, shape, part in parts}


def _flat(
    program: Program, setting: Setting, found: Sequence[Lettered | None], lead: str, sizes: tuple[int, ...]
) -> Array:
    """The outputs behind the same leading axes as one vector each; None is zero."""
    parts = []
    for _, place in program.outputs:
        value = found[place] or Lettered("", setting.arithmetic.zeros(program.instructions[place].shape))
        array = aligned(value, lead, len(value.core))
        array = array.reshape((*array.shape[: len(lead)], prod(value.core)))
        parts.append(setting.arithmetic.broadcast(array, (*sizes, array.shape[-1])))
    return parts[0] if len(parts) == 1 else setting.arithmetic.concatenate(parts, -1)


# -- values and coordinates ------------------------------------------------------------------------------


def run(program: Program, weights: Weights, inputs: Any = None) -> Any:
    """The outputs of a program, behind the batch axes: one output in its own shape, several as one vector."""
    arrays: dict[str, Any] = {name: weights[name] for name in program.parameters if name in weights}
    arrays |= _inputs(program, inputs) if program.inputs else {}
    setting = setting_of(arrays.values())
    batch, given = _given(setting, arrays, program.parameters | program.input_shapes)
    values = evaluate(program, setting.arithmetic, given)
    flat = _flat(program, setting, values, "N" if batch else "", (prod(batch),) if batch else ())
    shapes = list(program.output_shapes.values())
    shape = shapes[0] if len(shapes) == 1 else (program.output_count,)
    return setting.leave(np.ascontiguousarray(flat).reshape((*batch, *shape)))


def program_jacobian(program: Program, weights: Weights) -> Any:
    """The Jacobian of the outputs of a program without inputs: the last two axes are flat outputs and flat weights."""
    setting, batch, array = _at_weights(program, weights, derivative=True)
    return _turned(setting, batch, array, program.parameter_count)


def coordinates(model: Model, weights: Weights) -> Any:
    """The target coordinates; the last axis is over them."""
    setting, batch, array = _image(model, weights, derivative=False)
    return setting.leave(np.ascontiguousarray(array).reshape((*batch, model.coordinate_count)))


def coordinate_jacobian(model: Model, weights: Weights) -> Any:
    """The Jacobian of the coordinates by the flat weights: the last two axes are coordinates and weights."""
    return _turned(*_image(model, weights, derivative=True), model.parameter_count)


def _turned(setting: Setting, batch: Shape, array: Array, count: int) -> Any:
    """Derivatives with the axis of the flat weights, of which there are `count`, as the last one."""
    table = np.broadcast_to(array, (*array.shape[:-2], count, array.shape[-1]))
    table = np.ascontiguousarray(np.swapaxes(table, -1, -2))
    return setting.leave(table.reshape((*batch, table.shape[-2], count)))


def _image(model: Model, weights: Weights, *, derivative: bool) -> tuple[Setting, Shape, Array]:
    """Coordinates, or their derivatives by each flat weight, behind the axes of batch and weights."""
    if model.coordinate_program is not None:
        return _at_weights(model.coordinate_program, weights, derivative=derivative)
    exponents = model.monomials  # a network with too many coordinates is refused first
    program = model.program
    setting, batch, given, directions = _prepared(program, weights, derivative=derivative)
    forms = output_forms(program, setting.arithmetic, given, directions)
    shapes = list(program.output_shapes.values())
    lead = ("N" if batch else "") + ("T" if derivative else "")
    table = coefficient_table(setting.arithmetic, forms, exponents, shapes, lead).array
    if batch:  # coefficients that are constants have one place there
        table = setting.arithmetic.broadcast(table, (prod(batch), *table.shape[1:]))
    return setting, batch, table


def _at_weights(program: Program, weights: Weights, *, derivative: bool) -> tuple[Setting, Shape, Array]:
    """The outputs of a program without inputs, or their derivatives by each flat weight, behind the same axes."""
    setting, batch, given, directions = _prepared(program, weights, derivative=derivative)
    found: Sequence[Lettered | None] = evaluate(program, setting.arithmetic, given)
    if directions is not None:
        values = [value for value in found if value is not None]
        found = tangents(program, setting.arithmetic, values, directions)
    sizes = ({"N": prod(batch)} if batch else {}) | ({"T": program.parameter_count} if derivative else {})
    return setting, batch, _flat(program, setting, found, "".join(sizes), tuple(sizes.values()))


def _prepared(
    program: Program, weights: Weights, *, derivative: bool
) -> tuple[Setting, Shape, dict[str, Lettered], dict[str, Lettered] | None]:
    """The arithmetic of weights, their leading axes, the weights in it, and a direction for each flat weight if asked for."""
    setting = setting_of(weights[name] for name in program.parameters if name in weights)
    batch, given = _given(setting, weights, program.parameters)
    return setting, batch, given, unit_directions(program, setting.arithmetic) if derivative else None


# -- derivatives -----------------------------------------------------------------------------------------


def unit_directions(program: Program, arithmetic: Floats) -> dict[str, Lettered]:
    """One direction for each flat weight."""
    unit = np.eye(program.parameter_count, dtype=np.int64)
    parts = flat_parts(program.parameters)
    return {
        name: Lettered("T", arithmetic.integers(unit[:, part].reshape(-1, *shape)))
        for name, shape, part in parts
    }


def output_jacobian(model: Model, weights: Weights, inputs: Any) -> Any:
    """The Jacobian of the outputs at several inputs (one leading axis over them): rows are inputs, then output entries."""
    program, count = model.program, len(inputs)
    setting, given = _at_inputs(program, weights, inputs)
    rows, columns = program.output_count, program.parameter_count
    chosen = {name: np.arange(prod(shape)) for name, shape in program.parameters.items()}
    block = max(1, _BLOCK_BYTES // (8 * rows * columns))
    parts = []
    for start in range(0, count, block):
        window = {name: Lettered("N", given[name].array[start : start + block]) for name in program.inputs}
        parts.append(jacobian_block(program, setting.arithmetic, given | window, chosen))
    return setting.leave(np.concatenate(parts) if parts else np.zeros((0, columns)))


def input_derivative(model: Model, weights: Weights, inputs: Any, directions: Any) -> Any:
    """The derivative of the outputs at several inputs, each in its direction: the shape of the outputs."""
    program = model.program
    setting, given = _at_inputs(program, weights, inputs)
    moved = {
        name: Lettered("N", setting.enter(array)) for name, array in _inputs(program, directions).items()
    }
    values = evaluate(program, setting.arithmetic, given)
    found = tangents(program, setting.arithmetic, values, moved)
    flat = _flat(program, setting, found, "N", (len(inputs),))
    return setting.leave(flat.reshape(len(inputs), *(model.output_shape or ())))


def _at_inputs(program: Program, weights: Weights, inputs: Any) -> tuple[Setting, dict[str, Lettered]]:
    """One point of the weights, and inputs with one leading axis over them."""
    arrays = {name: weights[name] for name in program.parameters} | _inputs(program, inputs)
    setting = setting_of(arrays.values())
    leads = dict.fromkeys(program.inputs, "N")
    return setting, {
        name: Lettered(leads.get(name, ""), setting.enter(array)) for name, array in arrays.items()
    }


def jacobian(
    model: Model, weights: Weights, inputs: Any = None, p: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Values of a model and their derivatives by all weights, at one point of the weight space.

    Parameters
    ----------
    weights
        Integers (with `p`) or floats (without).
    inputs
        Inputs of the network, with one leading axis over them; None for the target coordinates.
    p
        The prime; None for float64.

    Returns
    -------
    values, jacobian
        Flattened values (inputs first, then output entries row by row; or coordinates), and the matrix with a row for each
        value and a column for each flat weight; int64 residues or float64. The derivatives are by the entries of the
        weights, also where the weights satisfy constraints.

    Examples
    --------
    >>> from m2bridge.models import Linear
    >>> weights = {"W1": np.array([[1, 2]]), "W2": np.array([[3]])}
    >>> values, matrix = jacobian(Linear(widths=(2, 1, 1)), weights, inputs=np.array([[1, 1]]), p=101)
    >>> values.tolist(), matrix.tolist()
    ([9], [[3, 3, 3]])
    """
    lifted = {name: _in(weights[name], p) for name in model.parameters}
    if inputs is None:
        return _plain(model.coordinates(lifted)), _plain(model.coordinate_jacobian(lifted))
    if model.input_shape is None:
        raise InputError(f"{model.spec} has no inputs; ask for the Jacobian of its coordinates")
    points = _in(inputs, p)
    if tuple(points.shape[1:]) != model.input_shape:
        raise InputError(
            f"inputs of shape {points.shape} do not fit (N, {', '.join(map(str, model.input_shape))})"
        )
    return _plain(model.forward(lifted, points)).reshape(-1), _plain(output_jacobian(model, lifted, points))


def _in(array: Any, p: int | None) -> Any:
    if p is None:
        return np.asarray(array, dtype=np.float64)
    return array if isinstance(array, Mod) else Mod(array, p)


def _plain(array: Any) -> np.ndarray:
    return array.values if isinstance(array, Mod) else np.asarray(array)
