"""Programs interpreted: values, and tangents beside them, over any arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import prod

import numpy as np

from m2bridge.programs.arithmetics import Floats
from m2bridge.programs.instructions import Instruction
from m2bridge.programs.lettered import Lettered, aligned, joined
from m2bridge.programs.program import Program


def evaluate(program: Program, arithmetic: Floats, given: Mapping[str, Lettered]) -> list[Lettered]:
    """The value of every instruction, from arrays for all weights and inputs by name."""
    values: list[Lettered] = []
    for item in program.instructions:
        if item.operation in ("weight", "input"):
            values.append(given[str(item.constants[0])].within(arithmetic))
        else:
            values.append(apply(arithmetic, item, [values[k] for k in item.operands]))
    return values


def apply(arithmetic: Floats, item: Instruction, operands: Sequence[Lettered]) -> Lettered:
    """The result of one instruction. In all but add, multiply and einsum letters pass through untouched."""
    operation, constants = item.operation, item.constants
    if operation == "constant":
        return Lettered("", arithmetic.constant(constants, item.shape), arithmetic)
    first = operands[0].within(arithmetic)
    if operation == "add":
        return first + operands[1]
    if operation == "multiply":
        return first * operands[1]
    if operation == "einsum" and len(operands) == 2:
        terms, result = constants
        return first.contract(terms[0], operands[1], terms[1], result)
    if operation in LINEAR:
        return linear(item, [first, *operands[1:]])
    if operation == "power":
        return first.like(arithmetic.power(first.array, constants[0]))
    if operation == "softmax":
        return first.like(arithmetic.softmax(first.array, axis_from_end(item)))
    return first.like(
        arithmetic.exp(first.array) if operation == "exp" else arithmetic.reciprocal(first.array)
    )


LINEAR = frozenset({"scale", "einsum", "reshape", "slice", "gather", "concatenate"})
"""Operations that are linear in their operand (einsum: with one operand)."""


def linear(item: Instruction, operands: Sequence[Lettered]) -> Lettered:
    """The result of an instruction that is linear in its operands taken together."""
    operation, first = item.operation, operands[0]
    if operation == "scale":
        return first.scaled(item.constants[0])
    if operation == "einsum":
        (term,), result = item.constants
        return first.single(term, result)
    if operation == "reshape":
        return first.reshaped(item.shape)
    if operation == "slice":
        return first.indexed(slices(item))
    if operation == "gather":
        return first.reshaped((prod(first.core),)).indexed((places(item),)).reshaped(item.shape)
    lead = reduce(joined, (operand.lead for operand in operands))
    sizes = {letter: n for operand in operands for letter, n in operand.sizes.items()}
    outer = tuple(sizes[letter] for letter in lead)
    arithmetic = first.arithmetic
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
    moving = [(k, d.within(arithmetic)) for k, d in enumerate(directions) if d is not None]
    if not moving:
        return None
    operation, (_, direction) = item.operation, moving[0]
    if operation == "concatenate":
        moved = dict(moving)
        zeros = [Lettered("", arithmetic.zeros(operand.core), arithmetic) for operand in operands]
        return linear(item, [moved.get(k, zero) for k, zero in enumerate(zeros)])
    if operation == "add":
        return reduce(lambda a, b: a + b, [direction.repeated(item.shape) for _, direction in moving])
    if operation in ("multiply", "einsum") and len(operands) == 2:
        parts = []
        for k, direction in moving:
            pair = [direction if place == k else operand for place, operand in enumerate(operands)]
            parts.append(apply(arithmetic, item, pair))
        return reduce(lambda a, b: a + b, parts)
    if operation in LINEAR:
        return linear(item, [direction])
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
