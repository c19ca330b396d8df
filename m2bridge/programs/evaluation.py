"""Evaluate a program at given weights and inputs, in the arithmetic of the given arrays.

Weights and inputs may be float64 arrays, :class:`~m2bridge.linear.residues.Mod` arrays over F_p, integers, or object arrays of
polynomials or rationals. Leading axes are batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from flint import fmpq

from m2bridge.errors import InputError
from m2bridge.linear.residues import Mod
from m2bridge.programs.arithmetics import (
    Arithmetic,
    Array,
    FloatArithmetic,
    ObjectArithmetic,
    PrimeFieldArithmetic,
    elementwise,
)
from m2bridge.programs.coefficients import Form, coefficient_table, output_form
from m2bridge.programs.instructions import Shape, split_flat
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate, flat_outputs, tangents

Weights = Mapping[str, Any]
"""Parameter name -> array. The arrays are of one arithmetic; leading axes are batches."""


def arithmetic_of(arrays: Iterable[Any]) -> Arithmetic:
    """Return the arithmetic of arrays: F_p if one of them is over F_p, else float64 if they are floats, else exact objects."""
    listed = list(arrays)
    residue = next((array for array in listed if isinstance(array, Mod)), None)
    if residue is not None:
        return PrimeFieldArithmetic(residue.field)
    plain = [np.asarray(array) for array in listed]
    kinds = {array.dtype.kind for array in plain}
    if "f" in kinds and "O" not in kinds:
        return FloatArithmetic()
    entries = (entry for array in plain if array.dtype == object for entry in array.reshape(-1))
    numbers = (int, np.integer, Fraction, float)
    return _Exact(next((e for e in entries if not isinstance(e, numbers)), None), whole=kinds <= set("iub"))


class _Exact(ObjectArithmetic):
    """Exact objects; `sample` is one of them that is not a number, `whole` is True if all are integers."""

    def __init__(self, sample: Any, *, whole: bool) -> None:
        super().__init__(self._number)
        self.sample, self.whole = sample, whole

    def _number(self, value: Fraction) -> Any:
        if value.denominator == 1:
            return value.numerator
        return value if self.sample is None else fmpq(value.numerator, value.denominator)

    def convert_input(self, array: Any) -> Array:
        array = np.asarray(array)
        exact = int if array.dtype.kind != "f" else lambda entry: Fraction(float(entry))
        return array if array.dtype == object else elementwise(exact, array)

    def convert_output(self, array: Array) -> Any:
        if self.whole and all(entry.denominator == 1 and abs(entry) < 2**62 for entry in array.reshape(-1)):
            return array.astype(np.int64)
        if self.sample is None:
            return array
        zero = self.sample * 0
        return elementwise(lambda entry: zero + entry if isinstance(entry, int) else entry, array)


# -- arrays with letters, and back -----------------------------------------------------------------------


class GivenArrays:
    """Weights, and perhaps inputs, with the axes that they have in common joined to one, N, and a direction T for each weight.

    `batch` is the shape of the joined axes, `sizes` names the axes that results have in front.
    """

    def __init__(
        self, program: Program, weights: Weights, inputs: Any = None, *, derivative: bool = False
    ) -> None:
        shapes = program.parameters | program.input_shapes if inputs is not None else program.parameters
        arrays = dict(weights) if inputs is None else {**weights, **_by_name(program, inputs)}
        self.program = program
        self.arithmetic = arithmetic_of(arrays[name] for name in shapes if name in arrays)
        self.batch: Shape = ()
        for name, shape in shapes.items():
            if name not in arrays:
                raise InputError(f"missing array {name} of shape {tuple(shape)}")
            full_shape = tuple(arrays[name].shape)
            split = len(full_shape) - len(shape)
            if full_shape[split:] != tuple(shape):
                raise InputError(f"{name} has shape {full_shape}, which does not end with {shape}")
            self.batch = np.broadcast_shapes(self.batch, full_shape[:split])
        self.arrays: dict[str, Lettered] = {}
        for name, shape in shapes.items():
            array = self.arithmetic.convert_input(arrays[name])
            if array.ndim > len(shape):
                array = np.broadcast_to(array, (*self.batch, *shape)).reshape(prod(self.batch), *shape)
            self.arrays[name] = Lettered("N" if array.ndim > len(shape) else "", array)
        self.directions = unit_directions(program, self.arithmetic) if derivative else None
        self.sizes = {"N": prod(self.batch)} if self.batch else {}
        self.sizes |= {"T": program.parameter_count} if derivative else {}

    def values(self) -> Array:
        """Return the outputs, or their derivatives, as vectors after the leading axes."""
        arithmetic = self.arithmetic
        results: Sequence[Lettered | None] = evaluate(self.program, arithmetic, self.arrays)
        if self.directions is not None:
            results = tangents(
                self.program, arithmetic, [v for v in results if v is not None], self.directions
            )
        return flat_outputs(self.program, arithmetic, results, self.sizes)

    def coefficients(self, exponents: np.ndarray) -> Array:
        """Return the coefficients of monomials in the inputs, or their derivatives, after the leading axes."""
        form = output_form(self.program, self.arithmetic, self.arrays, self.sizes, self.directions)
        return coefficient_table(self.arithmetic, form, exponents)

    def returned(self, array: Array, shape: Shape) -> Any:
        return self.arithmetic.convert_output(np.ascontiguousarray(array).reshape((*self.batch, *shape)))

    def matrix(self, array: Array) -> Any:
        """Move the axis of the flat weights to the end."""
        count = self.program.parameter_count
        table = np.broadcast_to(array, (*array.shape[:-2], count, array.shape[-1]))
        return self.returned(np.swapaxes(table, -1, -2), (table.shape[-1], count))


def _by_name(program: Program, inputs: Any) -> Mapping[str, Any]:
    """Return inputs by name; several inputs are passed by name, or as one concatenated vector."""
    if isinstance(inputs, Mapping):
        return inputs
    shapes = program.input_shapes
    if len(shapes) == 1:
        return {next(iter(shapes)): inputs}
    return split_flat(inputs, shapes)


def unit_directions(program: Program, arithmetic: Arithmetic) -> dict[str, Lettered]:
    """Return one unit direction for each flat weight."""
    unit = split_flat(np.eye(program.parameter_count, dtype=np.int64), program.parameters)
    return {name: Lettered("T", arithmetic.integers(array)) for name, array in unit.items()}


def run(program: Program, weights: Weights, inputs: Any = None) -> Any:
    """Return the outputs of a program after the batch axes: one output in its shape, several as one vector."""
    arrays = GivenArrays(program, weights, inputs if program.inputs else None)
    shapes = list(program.output_shapes.values())
    return arrays.returned(arrays.values(), shapes[0] if len(shapes) == 1 else (program.output_count,))


def input_form(program: Program, weights: Weights, *, most_products: int) -> Form:
    """Return the outputs as polynomials in the inputs; OutOfReachError if an instruction multiplies too many coefficients."""
    arrays = GivenArrays(program, weights)
    return output_form(program, arrays.arithmetic, arrays.arrays, arrays.sizes, most_products=most_products)
