"""Write the instructions of a program while its function runs, simplified where this changes no value.

All methods take and return indices of instructions of the program that is being written. Constants are exact and folded; a
factor 1, a summand 0, scales of scales, reshapes of reshapes and slices that take everything vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import prod, sqrt
from numbers import Rational
from textwrap import shorten
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.frontends.refusals import current_line, not_polynomial, wrong_input
from m2bridge.programs.arithmetics import ObjectArithmetic, elementwise, exact_root, object_array
from m2bridge.programs.instructions import (
    ANALYTIC,
    LARGEST_POWER,
    AxisSlice,
    Instruction,
    ProgramError,
    Shape,
    broadcast_shape,
    instruction,
)  # fmt: skip
from m2bridge.programs.program import Builder, indices_needed
from m2bridge.programs.run import Lettered, apply

_RATIONALS = ObjectArithmetic(lambda number: number)
Positions = np.ndarray[Any, Any]


def exact(value: Any, report: Callable[[float], None]) -> Fraction:
    """Convert to Fraction. Floats are converted exactly; `report` is called with one that is not the number that it prints as."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (int, np.bool_)):
        return Fraction(int(value))
    if isinstance(value, Rational):  # NumPy's and SymPy's integers, SymPy's rationals
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, (float, np.floating)):
        if not np.isfinite(value):
            raise wrong_input(
                f"the constant {value} is not a number; mask a softmax by multiplying np.exp(S) with a matrix of zeros and ones"
            )
        dyadic = Fraction(*value.as_integer_ratio())
        shown = repr(value) if type(value) is float else np.format_float_positional(value)
        if dyadic != Fraction(shown):  # 0.5 and 3.0 are what they look like; 0.1 is not
            report(float(value))
        return dyadic
    if isinstance(value, Decimal) and value.is_finite():
        return Fraction(value)
    if isinstance(value, (complex, np.complexfloating)):
        raise wrong_input(f"the constant {value} is complex; a program has rational constants")
    raise not_polynomial(
        f"{shorten(f'{type(value).__name__} {value}', 60, placeholder='...')} is not a rational constant; "
        "use int, Fraction, or an array of them (a float is taken exactly)"
    )


class Recorder(Builder):
    """The program of one recording, with the floats and maxima that occurred."""

    def __init__(self) -> None:
        super().__init__()
        self.floats: set[float] = set()
        self.first_float: tuple[float, str] | None = None
        self.maxima: dict[int, str] = {}
        self._values: dict[int, np.ndarray[Any, Any]] = {}

    def write(self, operation: str, operands: Sequence[int], *constants: object, shape: Shape = ()) -> int:
        """Append an instruction and return its index; compute it if all operands are constant."""
        values = [self.value(k) for k in operands]
        try:
            if operation in ANALYTIC or not values or any(value is None for value in values):
                return super().write(operation, operands, *constants, shape=shape)
            shapes = tuple(self.shape(k) for k in operands)
            item = instruction(operation, constants, tuple(operands), shapes, shape)
        except ProgramError as error:
            raise wrong_input(error.message) from None
        operand_values = [Lettered("", value, _RATIONALS) for value in values]
        return self.constant(apply(_RATIONALS, item, operand_values).array)

    # -- constants ----------------------------------------------------------------------------------

    def constant(self, value: Any) -> int:
        """Write a number, an array or a nested list of numbers."""
        array = value if isinstance(value, np.ndarray) else np.array(value)
        if array.dtype.kind == "f" and not isinstance(value, np.ndarray):
            array = np.array(value, dtype=object)  # a list with Fractions and floats in it keeps both
        if not array.size:
            raise wrong_input(f"a constant array of shape {array.shape} is empty")
        plain = array.dtype.kind in "biu" or array.dtype == np.float64
        entries = array.ravel().tolist() if plain else list(array.ravel())
        numbers = [exact(entry, self._add_float) for entry in entries]
        index = self.write("constant", (), *numbers, shape=array.shape)
        self._values.setdefault(index, object_array(numbers, array.shape))
        return index

    def _add_float(self, value: float) -> None:
        self.floats.add(value)
        self.first_float = self.first_float or (value, current_line(short=True))

    def zeros(self, shape: Shape) -> int:
        return self.constant(np.zeros(shape, dtype=np.int64))

    def value(self, index: int) -> np.ndarray[Any, Any] | None:
        """Return the entries of a constant; None if the array depends on weights or inputs."""
        item = self.instructions[index]
        if item.operation != "constant":
            return None
        if index not in self._values:
            self._values[index] = object_array(list(item.constants), item.shape)
        return self._values[index]

    def uniform(self, index: int) -> Fraction | None:
        """Return the common value of all entries of a constant; None if they differ or the array is not constant."""
        value = self.value(index)
        if value is None or any(entry != value.flat[0] for entry in value.flat):
            return None
        return Fraction(value.flat[0])

    # -- entrywise ----------------------------------------------------------------------------------

    def common_shape(self, *indices: int) -> Shape:
        shapes = [self.shape(index) for index in indices]
        try:
            return broadcast_shape(*shapes)
        except ProgramError as error:
            raise wrong_input(error.message) from None

    def broadcast(self, index: int, shape: Shape) -> int:
        """Broadcast to `shape`: multiply by ones where axes are repeated."""
        old_shape = self.shape(index)
        if old_shape == shape:
            return index
        padded = (1,) * (len(shape) - len(old_shape)) + old_shape
        if padded == shape:
            return self.reshape(index, shape)
        value = self.value(index)
        if value is not None:
            return self.constant(np.broadcast_to(value, shape))
        ones = tuple(n if m == 1 else 1 for m, n in zip(padded, shape, strict=True))
        return self.write("multiply", (index, self.constant(np.ones(ones, dtype=np.int64))))

    def scale(self, factor: Fraction, index: int) -> int:
        item = self.instructions[index]
        if factor == 1:
            return index
        if factor == 0:
            return self.zeros(item.shape)
        if item.operation == "scale":
            return self.scale(factor * item.constants[0], item.operands[0])
        return self.write("scale", (index,), factor)

    def negative(self, index: int) -> int:
        return self.scale(Fraction(-1), index)

    def add(self, first: int, second: int) -> int:
        shape = self.common_shape(first, second)
        for index, other in ((first, second), (second, first)):
            if self.uniform(other) == 0:
                return self.broadcast(index, shape)
        return self.scale(Fraction(2), first) if first == second else self.write("add", (first, second))

    def subtract(self, first: int, second: int) -> int:
        return self.zeros(self.shape(first)) if first == second else self.add(first, self.negative(second))

    def multiply(self, first: int, second: int) -> int:
        shape = self.common_shape(first, second)
        for index, other in ((first, second), (second, first)):
            factor = self.uniform(other)
            if factor is not None:
                return self.broadcast(self.scale(factor, index), shape)
        (base, m), (other, n) = self._base(first), self._base(second)
        return self.power(base, m + n) if base == other else self.write("multiply", (first, second))

    def _base(self, index: int) -> tuple[int, int]:
        item = self.instructions[index]
        return (item.operands[0], item.constants[0]) if item.operation == "power" else (index, 1)

    def power(self, index: int, exponent: int) -> int:
        if exponent < 0:
            return self.power(self.reciprocal(index), -exponent)
        if exponent == 0:
            return self.constant(np.ones(self.shape(index), dtype=np.int64))
        base, before = self._base(index)
        if exponent * before > LARGEST_POWER:
            raise wrong_input(f"an exponent above {LARGEST_POWER}")
        item, doubled = self.instructions[base], exponent * before
        if item.operation == "sqrt" and doubled % 2 == 0:
            return self.power(item.operands[0], doubled // 2)
        return index if exponent == 1 else self.write("power", (base,), doubled)

    # -- entries moved -----------------------------------------------------------------------------

    def reshape(self, index: int, shape: Shape) -> int:
        item = self.instructions[index]
        if item.shape == shape:
            return index
        if prod(shape) != item.size:
            raise wrong_input(f"an array of shape {item.shape} cannot be reshaped to {shape}")
        if item.operation == "reshape":
            return self.reshape(item.operands[0], shape)
        if item.operation == "gather":
            return self.write("gather", item.operands, *item.constants, shape=shape)
        return self.write("reshape", (index,), shape=shape)

    def slice(self, index: int, parts: tuple[AxisSlice, ...]) -> int:
        """Slice by start, count and step on each axis; slices of slices, of joined arrays and of unit axes are combined."""
        item = self.instructions[index]
        if parts == tuple((0, n, 1) for n in item.shape):
            return index
        if any(count == 0 for _, count, _ in parts):
            raise _empty()
        if item.operation == "slice":
            both = zip(item.constants, parts, strict=True)
            inner = [(s + u * p, c, p * q if c > 1 else 1) for (s, _, p), (u, c, q) in both]
            return self.slice(item.operands[0], tuple(inner))
        if item.operation == "reshape":
            source = self.shape(item.operands[0])
            if [n for n in source if n > 1] == [n for n in item.shape if n > 1]:
                wide = iter([part for part, n in zip(parts, item.shape, strict=True) if n > 1])
                moved = tuple(next(wide) if n > 1 else (0, 1, 1) for n in source)
                return self.reshape(self.slice(item.operands[0], moved), tuple(c for _, c, _ in parts))
        if item.operation == "concatenate":
            (axis,) = item.constants
            first, count, step = parts[axis]
            operand_and_start = self._operand_with(item, axis, *sorted((first, first + (count - 1) * step)))
            if operand_and_start is not None:
                operand, start = operand_and_start
                return self.slice(operand, (*parts[:axis], (first - start, count, step), *parts[axis + 1 :]))
        return self.write("slice", (index,), *parts)

    def _operand_with(self, item: Instruction, axis: int, low: int, high: int) -> tuple[int, int] | None:
        """Find the operand of a concatenation that has all of low..high on its axis, and its start."""
        start = 0
        for operand in item.operands:
            stop = start + self.shape(operand)[axis]
            if start <= low and high < stop:
                return operand, start
            start = stop
        return None

    def gather(self, index: int, positions: Positions) -> int:
        """Take the entries at flat positions; the result has the shape of `positions`."""
        if not positions.size:
            raise _empty()
        shape = tuple(int(n) for n in positions.shape)
        index, flat = self.traced_back(index, positions.ravel())
        source, size = self.shape(index), self.instructions[index].size
        if len(flat) == size and np.array_equal(flat, np.arange(size)):
            return self.reshape(index, shape)
        steps = np.unique(np.diff(flat)) if len(flat) > 1 else np.array([1])
        if shape and len(source) == 1 and len(steps) == 1 and steps[0] != 0:
            return self.reshape(self.slice(index, ((int(flat[0]), len(flat), int(steps[0])),)), shape)
        return self.write("gather", (index,), *flat.tolist(), shape=shape)

    def traced_back(self, index: int, flat: Positions) -> tuple[int, Positions]:
        """Express entries of an array that only rearranges another one as entries of that one."""
        while True:
            item = self.instructions[index]
            operation, constants = item.operation, item.constants
            if operation == "gather":
                flat = np.array(constants, dtype=np.int64)[flat]
            elif operation == "slice" or (operation == "einsum" and self.is_transpose(item)):
                axes: Any = np.unravel_index(flat, item.shape)
                if operation == "slice":
                    axes = tuple(s + i * p for (s, _, p), i in zip(constants, axes, strict=True))
                else:
                    (term,), result = constants
                    axes = tuple(axes[result.index(letter)] for letter in term)
                flat = np.ravel_multi_index(axes, self.shape(item.operands[0]))
            elif operation == "concatenate" and constants[0] == 0:
                width = prod(item.shape[1:])
                operand_and_start = self._operand_with(item, 0, flat.min() // width, flat.max() // width)
                if operand_and_start is None:
                    return index, flat
                index, flat = operand_and_start[0], flat - operand_and_start[1] * width
                continue
            elif operation != "reshape":
                return index, flat
            index = item.operands[0]

    @staticmethod
    def is_transpose(item: Instruction) -> bool:
        """Return whether an instruction is an einsum with one operand that only permutes axes."""
        return (
            item.operation == "einsum"
            and len(item.operands) == 1
            and len(item.constants[0][0]) == len(item.shape)
        )

    def concatenate(self, axis: int, indices: Sequence[int]) -> int:
        return indices[0] if len(indices) == 1 else self.write("concatenate", tuple(indices), axis)

    # -- analytic operations ------------------------------------------------------------------------

    def exp(self, index: int) -> int:
        return self.write("exp", (index,))

    def sqrt(self, index: int) -> int:
        """Write a square root; that of a constant is computed, in float64 if it is not rational."""
        item, value = self.instructions[index], self.value(index)
        if value is not None:
            if any(entry < 0 for entry in value.flat):
                raise wrong_input("the square root of a negative number")
            return self.constant(elementwise(_constant_root, value))
        if item.operation == "power" and item.constants[0] % 2 == 0:
            raise not_polynomial(
                "the square root of a square is an absolute value, whose sign depends on the point; write the function itself"
            )
        return self.write("sqrt", (index,))

    def reciprocal(self, index: int) -> int:
        item = self.instructions[index]
        value = self.value(index)
        if value is not None:
            if not value.all():
                raise wrong_input("a division by zero")
            return self.constant(np.asarray(1 / value))
        return item.operands[0] if item.operation == "reciprocal" else self.write("reciprocal", (index,))

    def maximum(self, index: int, axes: tuple[int, ...], shape: Shape) -> int:
        """Take the largest entries along these axes; only a softmax, where they cancel, may use them."""
        made = Instruction("maximum", axes, (index,), shape)
        for known in self.maxima:
            if self.instructions[known] == made:
                return known
        self.maxima[len(self.instructions)] = current_line()
        self.instructions.append(made)
        return len(self.instructions) - 1

    def check_maxima(self, results: Sequence[int]) -> None:
        """Refuse a maximum that one of the results still needs."""
        for index in sorted(indices_needed(self.instructions, results) & set(self.maxima), reverse=True):
            raise not_polynomial(
                "the largest entry is not a polynomial; use a mean, a sum or torch.softmax. max is supported only in a softmax:\n"
                "    e = np.exp(S - S.max(axis, keepdims=True)); e / e.sum(axis, keepdims=True)",
                self.maxima[index],
            )


def _constant_root(value: Fraction) -> Fraction | float:
    try:
        return Fraction(exact_root(value))
    except NotPolynomialError:
        return sqrt(value)


def _empty() -> Exception:
    return wrong_input("an empty subarray; arrays of a network have at least one entry")
