"""A model's network, coordinates and derivatives at given weights, in whatever arithmetic the arrays are of.

Weights and inputs may be float64 arrays, :class:`~m2bridge.linear.mod.Mod` arrays over F_p, integers, or object arrays of
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
from m2bridge.linear.mod import Mod
from m2bridge.programs.arithmetics import Array, Floats, Objects, Residues, elementwise
from m2bridge.programs.blocks import output_seeds
from m2bridge.programs.coefficients import coefficient_table, output_forms
from m2bridge.programs.instructions import Shape
from m2bridge.programs.lettered import Lettered, aligned
from m2bridge.programs.program import Program
from m2bridge.programs.reverse import jacobian_rows
from m2bridge.programs.run import evaluate, tangents

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
        if whole and all(abs(entry) < 2**62 for entry in array.reshape(-1)):
            return array.astype(np.int64)
        if sample is None:
            return array
        zero = sample * 0
        return elementwise(lambda entry: zero + entry if isinstance(entry, int) else entry, array)

    return Setting(Objects(number), enter, leave)


def _exact(entry: Any) -> Any:
    return Fraction(float(entry)) if isinstance(entry, np.floating) else int(entry)


# -- batches ---------------------------------------------------------------------------------------------


def _batch(arrays: Mapping[str, Any], shapes: Mapping[str, Shape]) -> Shape:
    """The leading axes that the arrays have in common."""
    batch: Shape = ()
    for name, shape in shapes.items():
        if name not in arrays:
            raise InputError(f"there is no array for {name}, of shape {tuple(shape)}")
        own = tuple(arrays[name].shape[: arrays[name].ndim - len(shape)])
        if tuple(arrays[name].shape[arrays[name].ndim - len(shape) :]) != tuple(shape):
            raise InputError(f"{name} has shape {tuple(arrays[name].shape)}, which does not end with {shape}")
        batch = np.broadcast_shapes(batch, own)
    return batch


def _given(
    setting: Setting, arrays: Mapping[str, Any], shapes: Mapping[str, Shape], batch: Shape
) -> dict[str, Lettered]:
    found = {}
    for name, shape in shapes.items():
        array = setting.enter(arrays[name])
        if array.ndim == len(shape):
            found[name] = Lettered("", array)
        else:
            array = np.broadcast_to(array, (*batch, *shape))
            found[name] = Lettered("N", array.reshape(prod(batch), *shape))
    return found


def _inputs(program: Program, inputs: Any) -> dict[str, Any]:
    """Inputs by name; several inputs travel as one vector, one after the other."""
    shapes = program.input_shapes
    if len(shapes) == 1:
        return {next(iter(shapes)): inputs}
    found, start = {}, 0
    for name, shape in shapes.items():
        part = inputs[..., start : start + prod(shape)]
        found[name] = part.reshape((*inputs.shape[:-1], *shape))
        start += prod(shape)
    return found


def _flat(setting: Setting, values: Sequence[Lettered], lead: str, sizes: tuple[int, ...]) -> Array:
    """Several arrays behind the same leading axes as one vector each."""
    parts = []
    for value in values:
        array = aligned(value, lead, len(value.core))
        array = array.reshape((*array.shape[: len(lead)], prod(value.core)))
        parts.append(setting.arithmetic.broadcast(array, (*sizes, array.shape[-1])))
    return parts[0] if len(parts) == 1 else setting.arithmetic.concatenate(parts, -1)


# -- values ----------------------------------------------------------------------------------------------


def run(program: Program, weights: Weights, inputs: Any = None) -> Any:
    """The outputs of a program, behind the batch axes: one output in its own shape, several as one vector."""
    arrays: dict[str, Any] = {name: weights[name] for name in program.parameters if name in weights}
    shapes = dict(program.parameters)
    if program.inputs:
        arrays |= _inputs(program, inputs)
        shapes |= program.input_shapes
    batch = _batch(arrays, shapes)
    setting = setting_of(arrays.values())
    values = evaluate(program, setting.arithmetic, _given(setting, arrays, shapes, batch))
    found = [values[place] for _, place in program.outputs]
    flat = _flat(setting, found, "N" if batch else "", (prod(batch),) if batch else ())
    shape = next(iter(program.output_shapes.values())) if len(found) == 1 else (flat.shape[-1],)
    return setting.leave(np.ascontiguousarray(flat).reshape((*batch, *shape)))


def coordinates(model: Model, weights: Weights) -> Any:
    """The target coordinates; the last axis is over them."""
    if model.coordinate_program is not None:
        found = run(model.coordinate_program, weights)
        return found.reshape(*_batch(weights, model.parameters), model.coordinate_count)
    program, _ = (
        model.program,
        model.monomials,
    )  # a network without coordinates, or with too many, is refused first
    batch = _batch(weights, program.parameters)
    setting = setting_of(weights[name] for name in program.parameters)
    forms = output_forms(program, setting.arithmetic, _given(setting, weights, program.parameters, batch))
    return setting.leave(
        _table(model, setting, forms, batch, "").array.reshape(*batch, model.coordinate_count)
    )


def _table(
    model: Model, setting: Setting, forms: Sequence[Lettered | None], batch: Shape, more: str
) -> Lettered:
    lead = ("N" if batch else "") + more
    shapes = list(model.program.output_shapes.values())
    return coefficient_table(setting.arithmetic, forms, model.monomials, shapes, lead)


# -- derivatives -----------------------------------------------------------------------------------------


def coordinate_jacobian(model: Model, weights: Weights) -> Any:
    """The Jacobian of the coordinates by the flat weights: the last two axes are coordinates and weights."""
    program = model.coordinate_program or model.program
    shapes = program.parameters
    setting = setting_of(weights[name] for name in shapes)
    batch = _batch(weights, shapes)
    given = _given(setting, weights, shapes, batch)
    directions = unit_directions(program, setting.arithmetic)
    if model.coordinate_program is None:
        moves = output_forms(program, setting.arithmetic, given, directions)
        array = _table(model, setting, moves, batch, "T").array
    else:
        values = evaluate(program, setting.arithmetic, given)
        moved = tangents(program, setting.arithmetic, values, directions)
        sizes = (*((prod(batch),) if batch else ()), program.parameter_count)
        outputs = [
            moved[place] or Lettered("", setting.arithmetic.zeros(program.instructions[place].shape))
            for _, place in program.outputs
        ]
        array = _flat(setting, outputs, ("N" if batch else "") + "T", sizes)
    table = np.broadcast_to(array, (*array.shape[:-2], program.parameter_count, array.shape[-1]))
    table = np.ascontiguousarray(np.swapaxes(table, -1, -2))
    return setting.leave(table.reshape(*batch, model.coordinate_count, program.parameter_count))


def unit_directions(program: Program, arithmetic: Floats) -> dict[str, Lettered]:
    """One direction for each flat weight."""
    count, found, start = program.parameter_count, {}, 0
    for name, shape in program.parameters.items():
        size = prod(shape)
        unit = np.zeros((count, size), dtype=np.int64)
        unit[start + np.arange(size), np.arange(size)] = 1
        found[name] = Lettered("T", arithmetic.integers(unit.reshape(count, *shape)))
        start += size
    return found


def output_jacobian(model: Model, weights: Weights, inputs: Any) -> Any:
    """The Jacobian of the outputs at several inputs (one leading axis over them): rows are inputs, then output entries."""
    program = model.program
    arrays = {name: weights[name] for name in program.parameters} | _inputs(program, inputs)
    setting = setting_of(arrays.values())
    count = len(inputs)
    rows, columns = program.output_count, program.parameter_count
    plain = {name: Lettered("", setting.enter(weights[name])) for name in program.parameters}
    lifted = {name: setting.enter(arrays[name]) for name in program.inputs}
    seeds = output_seeds(program, setting.arithmetic)
    chosen = {name: np.arange(prod(shape)) for name, shape in program.parameters.items()}
    block = max(1, _BLOCK_BYTES // (8 * rows * columns))
    parts = []
    for start in range(0, count, block):
        window = {name: Lettered("N", array[start : start + block]) for name, array in lifted.items()}
        values = evaluate(program, setting.arithmetic, plain | window)
        parts.append(jacobian_rows(program, setting.arithmetic, values, seeds, chosen))
    matrix = np.concatenate(parts) if parts else np.zeros((0, rows, columns))
    return setting.leave(np.ascontiguousarray(matrix).reshape(count * rows, columns))


def input_derivative(model: Model, weights: Weights, inputs: Any, directions: Any) -> Any:
    """The derivative of the outputs at several inputs, each in its direction: the shape of the outputs."""
    program = model.program
    moved = _inputs(program, directions)
    arrays = {name: weights[name] for name in program.parameters} | _inputs(program, inputs)
    setting = setting_of(arrays.values())
    given = {name: Lettered("", setting.enter(weights[name])) for name in program.parameters}
    given |= {name: Lettered("N", setting.enter(arrays[name])) for name in program.inputs}
    values = evaluate(program, setting.arithmetic, given)
    lifted = {name: Lettered("N", setting.enter(array)) for name, array in moved.items()}
    found = tangents(program, setting.arithmetic, values, lifted)
    outputs = [found[place] for _, place in program.outputs]
    flat = _flat(setting, [item for item in outputs if item is not None], "N", (len(inputs),))
    return setting.leave(flat.reshape(len(inputs), *(model.output_shape or ())))


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
