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
from typing import NamedTuple, Protocol

import numpy as np

from m2bridge.programs.arithmetics import Arithmetic, Array
from m2bridge.programs.instructions import Instruction, Shape, broadcast_shape
from m2bridge.programs.program import Program


@dataclass(slots=True, eq=False)  # not frozen: that would double the time to make one
class Lettered:
    """An array of shape (one axis for each letter of `lead`, *core), to be computed with in one arithmetic."""

    lead: str
    array: Array
    arithmetic: Arithmetic = None  # type: ignore[assignment]  # given where programs are interpreted

    @property
    def core(self) -> Shape:
        return tuple(self.array.shape[len(self.lead) :])

    @property
    def ndim(self) -> int:
        """Return the number of core axes."""
        return len(self.array.shape) - len(self.lead)

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(self.lead, self.array.shape, strict=False))

    def within(self, arithmetic: Arithmetic) -> Lettered:
        """Return the same array with another arithmetic."""
        return self if self.arithmetic is arithmetic else Lettered(self.lead, self.array, arithmetic)

    def like(self, array: Array) -> Lettered:
        """Return another array with the same letters."""
        return Lettered(self.lead, array, self.arithmetic)

    # -- arithmetic: both axes and letters are broadcast --------------------------------------------------

    def __add__(self, other: Lettered) -> Lettered:
        return self._combined(self.arithmetic.add, other)

    def __mul__(self, other: Lettered) -> Lettered:
        return self._combined(self.arithmetic.multiply, other)

    def _combined(self, function: Callable[[Array, Array], Array], other: Lettered) -> Lettered:
        lead, ndim = joined(self.lead, other.lead), max(self.ndim, other.ndim)
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
        """Return the einsum of two arrays; letters of the leads are kept, and letters of both are matched.

        The einsum becomes one product of (stacks of) matrices, which takes most of the time.
        """
        arithmetic, lead = self.arithmetic, joined(self.lead, other.lead)
        shapes = self.array.shape, other.array.shape
        plan = _plan(self.lead + term, other.lead + other_term, lead + result, *shapes)
        left, right = plan.left.applied(arithmetic, self.array), plan.right.applied(arithmetic, other.array)
        product = (arithmetic.matmul if plan.inner else arithmetic.multiply)(left, right)
        product = product.reshape(plan.shape)
        return Lettered(lead, product.transpose(*plan.order) if plan.order else product, arithmetic)

    def single(self, term: str, result: str) -> Lettered:
        """Return the einsum of one array: a sum over the letters that the result does not have, then a transpose."""
        arrangement = _arrangement(self.lead + term, self.lead + result)
        return self.like(arrangement.applied(self.arithmetic, self.array))

    def kept_sum(self, axis: int) -> Lettered:
        """Sum over one core axis (counted from the end), which is kept with length 1."""
        return self.like(self.arithmetic.kept_sum(self.array, axis))

    def summed_to(self, core: Shape) -> Lettered:
        """Sum over the core axes that an operand of shape `core` did not have: the transpose of broadcasting."""
        extra, offset = len(self.core) - len(core), len(self.lead)
        axes = tuple(
            offset + k for k, n in enumerate(self.core) if k < extra or (core[k - extra] == 1 and n != 1)
        )
        return self.like(self.arithmetic.sum(self.array, axes)).reshaped(core) if axes else self

    # -- the same entries elsewhere -----------------------------------------------------------------------

    def reshaped(self, shape: Shape) -> Lettered:
        return self.like(self.array.reshape((*self.array.shape[: len(self.lead)], *shape)))

    def flattened(self) -> Lettered:
        return self.reshaped((prod(self.core),))

    def indexed(self, key: tuple[object, ...]) -> Lettered:
        """Index the core axes."""
        return self.like(self.array[(*(slice(None),) * len(self.lead), *key)])

    def repeated(self, core: Shape) -> Lettered:
        """Broadcast the core axes to a shape."""
        shape = broadcast_shape(self.core, core)
        array = aligned(self, self.lead, len(shape))
        return self.like(self.arithmetic.broadcast(array, (*array.shape[: len(self.lead)], *shape)))

    def behind(self, sizes: Mapping[str, int]) -> Array:
        """Broadcast the array to the axes named by `letters`."""
        array = aligned(self, "".join(sizes), self.ndim)
        return self.arithmetic.broadcast(array, (*sizes.values(), *self.core))


class ExponentialValues(Protocol):
    """Values in place of exponentials, for arithmetics without an exponential function."""

    def value(self, index: int, argument: Lettered) -> Lettered:
        """Return the exponentials of the argument of one instruction."""


@lru_cache(maxsize=4096)
def joined(first: str, second: str) -> str:
    """Return the union of two strings of letters, those of the first in front."""
    return first + "".join(letter for letter in second if letter not in first)


def aligned(item: Lettered, lead: str, ndim: int) -> Array:
    """Return the array with an axis for each letter of `lead` (of length 1 for a missing letter) and `ndim` core axes."""
    if item.lead == lead and len(item.array.shape) == len(lead) + ndim:
        return item.array
    sizes, core = item.sizes, item.core
    order = [item.lead.index(letter) for letter in lead if letter in sizes]
    array = item.array
    if order != sorted(order):
        array = array.transpose(*order, *range(len(order), len(array.shape)))
    return array.reshape((*(sizes.get(letter, 1) for letter in lead), *(1,) * (ndim - len(core)), *core))


class _Arrangement(NamedTuple):
    """Steps that rearrange the axes of an array: sums over some of them, a transpose, a new shape; each is optional."""

    sums: tuple[int, ...]
    order: tuple[int, ...]
    shape: Shape | None

    def applied(self, arithmetic: Arithmetic, array: Array) -> Array:
        if self.sums:
            array = arithmetic.sum(array, self.sums)
        if self.order:
            array = array.transpose(*self.order)
        return array if self.shape is None else array.reshape(self.shape)


@lru_cache(maxsize=4096)
def _arrangement(before: str, after: str, shape: Shape | None = None) -> _Arrangement:
    sums = tuple(k for k, letter in enumerate(before) if letter not in after)
    kept = [letter for letter in before if letter in after]
    order = tuple(kept.index(letter) for letter in after)
    return _Arrangement(sums, order if order != tuple(range(len(order))) else (), shape)


class _Plan(NamedTuple):
    """How an einsum of two arrays becomes a product of stacks of matrices, or without `inner` letters an entrywise one."""

    left: _Arrangement
    right: _Arrangement
    inner: bool
    shape: Shape
    order: tuple[int, ...]


@lru_cache(maxsize=4096)
def _plan(a: str, b: str, out: str, left: Shape, right: Shape) -> _Plan:
    lengths = dict(zip(a + b, left + right, strict=True))
    stack = "".join(letter for letter in a if letter in b and letter in out)
    inner = "".join(letter for letter in a if letter in b and letter not in out)
    rows = "".join(letter for letter in a if letter not in b and letter in out)
    columns = "".join(letter for letter in b if letter not in a and letter in out)
    depth, m, k, n = (
        prod(lengths[letter] for letter in letters) for letters in (stack, rows, inner, columns)
    )
    outer = (depth,) if stack else ()
    return _Plan(
        _arrangement(a, stack + rows + inner, (*outer, m, k)),
        _arrangement(b, stack + inner + columns, (*outer, k, n)),
        bool(inner),
        tuple(lengths[letter] for letter in stack + rows + columns),
        _arrangement(stack + rows + columns, out).order,
    )


def evaluate(
    program: Program,
    arithmetic: Arithmetic,
    arrays: Mapping[str, Lettered],
    units: ExponentialValues | None = None,
    stop: int | None = None,
) -> list[Lettered]:
    """Return the value of every instruction (before `stop`), from arrays for all weights and inputs by name.

    `units` replace exponentials.
    """
    values: list[Lettered] = []
    for index, item in enumerate(program.instructions[:stop]):
        if item.operation in ("weight", "input"):
            values.append(arrays[str(item.constants[0])].within(arithmetic))
        elif units is not None and item.operation in ("exp", "softmax"):
            argument = values[item.operands[0]].within(arithmetic)
            value = units.value(index, argument)
            if item.operation == "softmax":
                value = value.like(arithmetic.normalised(value.array, axis_from_end(item)))
            values.append(value)
        else:
            values.append(apply(arithmetic, item, [values[k] for k in item.operands]))
    return values


def flat_outputs(
    program: Program, arithmetic: Arithmetic, values: Sequence[Lettered | None], sizes: Mapping[str, int]
) -> Array:
    """Return all outputs as one vector with leading axes `sizes`, from a value for every instruction; None is zero."""
    vectors = []
    for _, index in program.outputs:
        shape = program.instructions[index].shape
        item = values[index] or Lettered("", arithmetic.zeros(shape), arithmetic)
        vectors.append(item.flattened().behind(sizes))
    return vectors[0] if len(vectors) == 1 else arithmetic.concatenate(vectors, -1)


LINEAR = frozenset({"scale", "einsum", "reshape", "slice", "gather", "concatenate"})
"""Operations that are linear in their operand (einsum: with one operand)."""


def apply(arithmetic: Arithmetic, item: Instruction, operands: Sequence[Lettered]) -> Lettered:  # noqa: C901, PLR0911, PLR0912 -- one case for each instruction
    """Compute the result of one instruction. Only add, multiply, einsum and concatenate change the leading letters."""
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
            return first.flattened().indexed((flat_indices(item, first.core),)).reshaped(item.shape)
        case "concatenate":
            return _concatenated(arithmetic, item, operands)
        case "power":
            return first.like(arithmetic.power(first.array, constants[0]))
        case "softmax":
            return first.like(arithmetic.softmax(first.array, axis_from_end(item)))
        case "exp":
            return first.like(arithmetic.exp(first.array))
        case "sqrt":
            return first.like(arithmetic.sqrt(first.array))
    return first.like(arithmetic.reciprocal(first.array))


def _concatenated(arithmetic: Arithmetic, item: Instruction, operands: Sequence[Lettered]) -> Lettered:
    sizes = reduce(lambda a, b: a | b, [operand.sizes for operand in operands])
    arrays = [operand.within(arithmetic).behind(sizes) for operand in operands]
    return Lettered("".join(sizes), arithmetic.concatenate(arrays, axis_from_end(item)), arithmetic)


def tangents(
    program: Program, arithmetic: Arithmetic, values: Sequence[Lettered], moves: Mapping[str, Lettered]
) -> list[Lettered | None]:
    """Return the derivative of every instruction in given directions of weights or inputs; None is zero.

    This is forward differentiation, with one rule for each instruction. It shares only the values with the reverse pass, so
    that each can be used to check the other.
    """
    derivatives: list[Lettered | None] = []
    for index, item in enumerate(program.instructions):
        if item.operation in ("weight", "input"):
            direction = moves.get(str(item.constants[0]))
            derivatives.append(None if direction is None else direction.within(arithmetic))
        else:
            operands, directions = [values[k] for k in item.operands], [derivatives[k] for k in item.operands]
            derivatives.append(tangent(arithmetic, item, operands, values[index], directions))
    return derivatives


def tangent(  # noqa: PLR0911 -- one case for each instruction
    arithmetic: Arithmetic,
    item: Instruction,
    operands: Sequence[Lettered],
    value: Lettered,
    directions: Sequence[Lettered | None],
) -> Lettered | None:
    """Return the derivative of one instruction from those of its operands; None is zero."""
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
        pairs = [[d if k == index else operands[index] for index in (0, 1)] for k, d in moving.items()]
        return reduce(lambda a, b: a + b, [apply(arithmetic, item, pair) for pair in pairs])
    if operation in LINEAR:
        return apply(arithmetic, item, [direction])
    if operation == "softmax":
        weighted = direction * value
        return weighted - weighted.kept_sum(axis_from_end(item)) * value
    return direction * slope(item, operands[0].within(arithmetic), value.within(arithmetic))


def slope(item: Instruction, operand: Lettered, value: Lettered) -> Lettered:
    """Return the entrywise derivative of power, exp, reciprocal or sqrt."""
    if item.operation == "exp":
        return value
    if item.operation == "sqrt":
        return value.like(value.arithmetic.reciprocal(value.array)).scaled(Fraction(1, 2))
    if item.operation == "reciprocal":
        return -(value * value)
    n = item.constants[0]
    lower = operand if n == 2 else operand.like(operand.arithmetic.power(operand.array, n - 1))
    return lower.scaled(Fraction(n))


def axis_from_end(item: Instruction) -> int:
    """Return the axis of a softmax or a concatenation, counted from the end, because letters are in front."""
    return int(item.constants[0]) - len(item.shape)


def slices(item: Instruction) -> tuple[slice, ...]:
    """Return the NumPy index of a slice instruction."""
    stops = [start + count * step for start, count, step in item.constants]
    return tuple(
        slice(start, stop if stop >= 0 else None, step)
        for (start, _, step), stop in zip(item.constants, stops, strict=True)
    )


def flat_indices(item: Instruction, core: Shape) -> np.ndarray:
    """Return the flat indices into an operand of shape `core` that a slice or a gather selects."""
    if item.operation == "gather":
        return np.array(item.constants, dtype=np.int64)
    return np.arange(prod(core)).reshape(core)[slices(item)].reshape(-1)
