"""Programs interpreted: values, and tangents beside them, over any arithmetic.

One set of rules serves values, tangents and cotangents of many inputs at once, because leading axes have names: a
:class:`Lettered` is an array whose first axes are named by capital letters, N for the samples, R for the rows of a Jacobian,
T for tangent directions. The axes behind them are those that the program knows. Operations align axes by their letters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from math import prod
from typing import NamedTuple

import numpy as np

from m2bridge.programs.arithmetics import Array, Floats
from m2bridge.programs.instructions import Instruction, Shape, broadcast_shape
from m2bridge.programs.program import Program


@dataclass(frozen=True, slots=True)
class Lettered:
    """An array of shape (one axis for each letter of `lead`, *core), to be computed with in one arithmetic."""

    lead: str
    array: Array
    arithmetic: Floats = None  # type: ignore[assignment]  # given where programs are interpreted

    @property
    def core(self) -> Shape:
        return tuple(self.array.shape[len(self.lead) :])

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(self.lead, self.array.shape, strict=False))

    def within(self, arithmetic: Floats) -> Lettered:
        """The same array, to be computed with in this arithmetic."""
        return self if self.arithmetic is arithmetic else Lettered(self.lead, self.array, arithmetic)

    def like(self, array: Array) -> Lettered:
        """Another array behind the same letters."""
        return Lettered(self.lead, array, self.arithmetic)

    # -- arithmetic: both axes and letters are broadcast --------------------------------------------------

    def __add__(self, other: Lettered) -> Lettered:
        return self._combined(self.arithmetic.add, other)

    def __mul__(self, other: Lettered) -> Lettered:
        return self._combined(self.arithmetic.multiply, other)

    def _combined(self, function: Callable[[Array, Array], Array], other: Lettered) -> Lettered:
        lead, ndim = joined(self.lead, other.lead), max(len(self.core), len(other.core))
        array = function(aligned(self, lead, ndim), aligned(other, lead, ndim))
        return Lettered(lead, array, self.arithmetic)

    def __neg__(self) -> Lettered:
        return self.like(self.arithmetic.negative(self.array))

    def __sub__(self, other: Lettered) -> Lettered:
        return self + -other

    def scaled(self, factor: Fraction) -> Lettered:
        return self.like(self.arithmetic.scale(factor, self.array))

    # -- sums and products of entries ---------------------------------------------------------------------

    def contract(self, term: str, other: Lettered, other_term: str, result: str) -> Lettered:
        """The einsum of two arrays; letters of the leads are kept, and those of both are matched.

        Everything is brought to one product of (stacks of) matrices, which is where the time goes.
        """
        arithmetic, lead = self.arithmetic, joined(self.lead, other.lead)
        plan = _plan(self.lead + term, other.lead + other_term, lead + result)
        x, y = self.array, other.array
        x = arithmetic.sum(x, plan.left_sums) if plan.left_sums else x
        y = arithmetic.sum(y, plan.right_sums) if plan.right_sums else y
        x = x.transpose(*plan.left_order) if plan.left_order else x
        y = y.transpose(*plan.right_order) if plan.right_order else y
        stack, inner = plan.stack, plan.inner
        outer, rows = x.shape[:stack], x.shape[stack : len(x.shape) - inner]
        columns = y.shape[stack + inner :]
        if inner:
            k, depth = prod(y.shape[stack : stack + inner]), (prod(outer),) if stack else ()
            left, right = x.reshape((*depth, prod(rows), k)), y.reshape((*depth, k, prod(columns)))
            product = arithmetic.matmul(left, right).reshape((*outer, *rows, *columns))
        else:
            wide = x.reshape((*outer, *rows, *(1,) * len(columns)))
            product = arithmetic.multiply(wide, y.reshape((*outer, *(1,) * len(rows), *columns)))
        return Lettered(lead, product.transpose(*plan.out_order) if plan.out_order else product, arithmetic)

    def single(self, term: str, result: str) -> Lettered:
        """The einsum of one array: a sum over the letters that the result does not have, then a transpose."""
        before, after = self.lead + term, self.lead + result
        axes = tuple(k for k, letter in enumerate(before) if letter not in after)
        array = self.arithmetic.sum(self.array, axes) if axes else self.array
        order = _order([letter for letter in before if letter in after], after)
        return self.like(array.transpose(*order) if order else array)

    def kept_sum(self, axis: int) -> Lettered:
        """The sum over one core axis (counted from the end), which stays with length 1."""
        core = list(self.core)
        core[axis] = 1
        total = self.arithmetic.sum(self.array, (len(self.array.shape) + axis,))
        return self.like(total).reshaped(tuple(core))

    def summed_to(self, core: Shape) -> Lettered:
        """The transpose of broadcasting: sums over core axes that an operand of shape `core` did not have."""
        extra, offset = len(self.core) - len(core), len(self.lead)
        axes = tuple(
            offset + k for k, n in enumerate(self.core) if k < extra or (core[k - extra] == 1 and n != 1)
        )
        return self.like(self.arithmetic.sum(self.array, axes)).reshaped(core) if axes else self

    # -- the same entries elsewhere -----------------------------------------------------------------------

    def reshaped(self, shape: Shape) -> Lettered:
        return self.like(self.array.reshape((*self.array.shape[: len(self.lead)], *shape)))

    def indexed(self, key: tuple[object, ...]) -> Lettered:
        """The array with an index on its core axes only."""
        return self.like(self.array[(*(slice(None),) * len(self.lead), *key)])

    def repeated(self, core: Shape) -> Lettered:
        """The array broadcast to a core shape."""
        shape = broadcast_shape(self.core, core)
        array = aligned(self, self.lead, len(shape))
        return self.like(self.arithmetic.broadcast(array, (*array.shape[: len(self.lead)], *shape)))


@lru_cache(maxsize=4096)
def joined(first: str, second: str) -> str:
    """The letters of both, those of the first in front."""
    return first + "".join(letter for letter in second if letter not in first)


def aligned(item: Lettered, lead: str, ndim: int) -> Array:
    """The array with an axis for each letter of `lead` (of length 1 where it has none) and `ndim` core axes."""
    if item.lead == lead and len(item.array.shape) == len(lead) + ndim:
        return item.array
    sizes, core = item.sizes, item.core
    order = [item.lead.index(letter) for letter in lead if letter in sizes]
    array = item.array
    if order != sorted(order):
        array = array.transpose(*order, *range(len(order), len(array.shape)))
    shape = (*(sizes.get(letter, 1) for letter in lead), *(1,) * (ndim - len(core)), *core)
    return array.reshape(shape) if tuple(array.shape) != shape else array


class _Plan(NamedTuple):
    """How an einsum of two arrays becomes a product of matrices; an empty order leaves the axes as they are.

    After sums over letters that occur once the left axes are (stack, rows, inner), the right ones (stack, inner, columns).
    """

    left_sums: tuple[int, ...]
    right_sums: tuple[int, ...]
    left_order: tuple[int, ...]
    right_order: tuple[int, ...]
    out_order: tuple[int, ...]
    stack: int
    inner: int


@lru_cache(maxsize=4096)
def _plan(a: str, b: str, out: str) -> _Plan:
    left_sums = tuple(k for k, letter in enumerate(a) if letter not in b and letter not in out)
    right_sums = tuple(k for k, letter in enumerate(b) if letter not in a and letter not in out)
    a = "".join(letter for letter in a if letter in b or letter in out)
    b = "".join(letter for letter in b if letter in a or letter in out)
    stack = [letter for letter in a if letter in b and letter in out]
    inner = [letter for letter in a if letter in b and letter not in out]
    rows = [letter for letter in a if letter not in b]
    columns = [letter for letter in b if letter not in a]
    orders = (_order(a, stack + rows + inner), _order(b, stack + inner + columns))
    return _Plan(left_sums, right_sums, *orders, _order(stack + rows + columns, out), len(stack), len(inner))


def _order(before: Sequence[str], after: Sequence[str]) -> tuple[int, ...]:
    """The permutation of axes from one order of letters to another; empty when nothing moves."""
    found = tuple(before.index(letter) for letter in after)
    return () if found == tuple(range(len(found))) else found


def evaluate(program: Program, arithmetic: Floats, given: Mapping[str, Lettered]) -> list[Lettered]:
    """The value of every instruction, from arrays for all weights and inputs by name."""
    values: list[Lettered] = []
    for item in program.instructions:
        if item.operation in ("weight", "input"):
            values.append(given[str(item.constants[0])].within(arithmetic))
        else:
            values.append(apply(arithmetic, item, [values[k] for k in item.operands]))
    return values


LINEAR = frozenset({"scale", "einsum", "reshape", "slice", "gather", "concatenate"})
"""Operations that are linear in their operand (einsum: with one operand)."""


def apply(arithmetic: Floats, item: Instruction, operands: Sequence[Lettered]) -> Lettered:
    """The result of one instruction. In all but add, multiply, einsum and concatenate letters pass through untouched."""
    operation, constants = item.operation, item.constants
    if operation == "constant":
        return Lettered("", arithmetic.constant(constants, item.shape), arithmetic)
    first = operands[0].within(arithmetic)
    match operation:
        case "add":
            return first + operands[1]
        case "multiply":
            return first * operands[1]
        case "einsum":
            (term, *other), result = constants
            if not other:
                return first.single(term, result)
            return first.contract(term, operands[1], other[0], result)
        case "scale":
            return first.scaled(constants[0])
        case "reshape":
            return first.reshaped(item.shape)
        case "slice":
            return first.indexed(slices(item))
        case "gather":
            return first.reshaped((prod(first.core),)).indexed((places(item),)).reshaped(item.shape)
        case "concatenate":
            return _concatenated(arithmetic, item, operands)
        case "power":
            return first.like(arithmetic.power(first.array, constants[0]))
        case "softmax":
            return first.like(arithmetic.softmax(first.array, axis_from_end(item)))
        case "exp":
            return first.like(arithmetic.exp(first.array))
    return first.like(arithmetic.reciprocal(first.array))


def _concatenated(arithmetic: Floats, item: Instruction, operands: Sequence[Lettered]) -> Lettered:
    lead = reduce(joined, (operand.lead for operand in operands))
    sizes = {letter: n for operand in operands for letter, n in operand.sizes.items()}
    outer = tuple(sizes[letter] for letter in lead)
    parts = [
        arithmetic.broadcast(aligned(operand, lead, len(item.shape)), (*outer, *operand.core))
        for operand in operands
    ]
    return Lettered(lead, arithmetic.concatenate(parts, axis_from_end(item)), arithmetic)


def tangents(
    program: Program, arithmetic: Floats, values: Sequence[Lettered], given: Mapping[str, Lettered]
) -> list[Lettered | None]:
    """The derivative of every instruction in the directions that are given for weights or inputs; None is zero.

    This is the forward rule, one line of calculus for each instruction; it shares nothing with the reverse pass but
    the values, so that each checks the other.
    """
    found: list[Lettered | None] = []
    for place, item in enumerate(program.instructions):
        if item.operation in ("weight", "input"):
            direction = given.get(str(item.constants[0]))
            found.append(None if direction is None else direction.within(arithmetic))
        else:
            operands, directions = [values[k] for k in item.operands], [found[k] for k in item.operands]
            found.append(tangent(arithmetic, item, operands, values[place], directions))
    return found


def tangent(
    arithmetic: Floats,
    item: Instruction,
    operands: Sequence[Lettered],
    value: Lettered,
    directions: Sequence[Lettered | None],
) -> Lettered | None:
    """The derivative of one instruction, from those of its operands; None is zero."""
    moving = {k: d.within(arithmetic) for k, d in enumerate(directions) if d is not None}
    if not moving:
        return None
    operation, direction = item.operation, next(iter(moving.values()))
    if operation == "concatenate":
        zeros = [Lettered("", arithmetic.zeros(operand.core), arithmetic) for operand in operands]
        return apply(arithmetic, item, [moving.get(k, zero) for k, zero in enumerate(zeros)])
    if operation == "add":
        return reduce(lambda a, b: a + b, [d.repeated(item.shape) for d in moving.values()])
    if operation in ("multiply", "einsum") and len(operands) == 2:
        pairs = [[d if k == place else operands[place] for place in (0, 1)] for k, d in moving.items()]
        return reduce(lambda a, b: a + b, [apply(arithmetic, item, pair) for pair in pairs])
    if operation in LINEAR:
        return apply(arithmetic, item, [direction])
    if operation == "softmax":
        weighted = direction * value
        return weighted - weighted.kept_sum(axis_from_end(item)) * value
    return direction * slope(item, operands[0].within(arithmetic), value.within(arithmetic))


def slope(item: Instruction, operand: Lettered, value: Lettered) -> Lettered:
    """The entrywise derivative of power, exp or reciprocal."""
    if item.operation == "exp":
        return value
    if item.operation == "reciprocal":
        return -(value * value)
    n = item.constants[0]
    lower = operand if n == 2 else operand.like(operand.arithmetic.power(operand.array, n - 1))
    return lower.scaled(Fraction(n))


def axis_from_end(item: Instruction) -> int:
    """The axis of a softmax or a concatenation, counted from the end: letters stand before it."""
    return int(item.constants[0]) - len(item.shape)


def slices(item: Instruction) -> tuple[slice, ...]:
    """The index of a slice instruction."""
    stops = [start + count * step for start, count, step in item.constants]
    return tuple(
        slice(start, stop if stop >= 0 else None, step)
        for (start, _, step), stop in zip(item.constants, stops, strict=True)
    )


def places(item: Instruction) -> np.ndarray:
    """The flat index of a gather instruction."""
    return np.array(item.constants, dtype=np.int64)
