"""Programs interpreted: values, and tangents beside them, over any arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from m2bridge.programs import lettered
from m2bridge.programs.arithmetics import Floats
from m2bridge.programs.lettered import Lettered
from m2bridge.programs.program import Instruction, Program


def evaluate(program: Program, arithmetic: Floats, given: Mapping[str, Lettered]) -> list[Lettered]:
    """The value of every instruction, from arrays for all weights and inputs by name."""
    values: list[Lettered] = []
    for item in program.instructions:
        if item.operation in ("weight", "input"):
            values.append(given[str(item.constants[0])])
        else:
            values.append(apply(arithmetic, item, [values[k] for k in item.operands]))
    return values


def apply(arithmetic: Floats, item: Instruction, operands: Sequence[Lettered]) -> Lettered:
    """The result of one instruction. In all but add, multiply and einsum letters pass through untouched."""
    operation = item.operation
    if operation == "constant":
        return Lettered("", arithmetic.constant(item.constants, item.shape))
    if operation == "add":
        return lettered.add(arithmetic, *operands)
    if operation == "multiply":
        return lettered.multiply(arithmetic, *operands)
    if operation == "einsum" and len(operands) == 2:
        terms, result = _einsum(item)
        left, right = operands
        return lettered.contract(arithmetic, left, terms[0], right, terms[1], result)
    (first, *_) = operands
    if operation in LINEAR:
        return linear(arithmetic, item, operands)
    if operation == "power":
        return Lettered(first.lead, arithmetic.power(first.array, _integer(item)))
    if operation == "exp":
        return Lettered(first.lead, arithmetic.exp(first.array))
    if operation == "reciprocal":
        return Lettered(first.lead, arithmetic.reciprocal(first.array))
    assert operation == "softmax", operation
    return Lettered(first.lead, arithmetic.softmax(first.array, _integer(item) - len(item.shape)))


LINEAR = frozenset({"scale", "einsum", "reshape", "slice", "gather", "concatenate"})
"""Operations that are linear in their operand (einsum: with one operand)."""


def linear(arithmetic: Floats, item: Instruction, operands: Sequence[Lettered]) -> Lettered:
    """The result of an instruction that is linear in its operands taken together."""
    operation, first = item.operation, operands[0]
    if operation == "scale":
        return Lettered(first.lead, arithmetic.scale(item.constants[0], first.array))
    if operation == "einsum":
        terms, result = _einsum(item)
        return lettered.single(arithmetic, first, terms[0], result)
    if operation == "reshape":
        return lettered.reshaped(first, item.shape)
    if operation == "slice":
        return lettered.indexed(first, slices(item))
    if operation == "gather":
        flat = lettered.reshaped(first, (int(np.prod(first.core)),))
        return lettered.reshaped(lettered.indexed(flat, (places(item),)), item.shape)
    lead = ""
    for operand in operands:
        lead = lettered.joined(lead, operand.lead)
    sizes = {letter: n for operand in operands for letter, n in operand.sizes.items()}
    outer = tuple(sizes[letter] for letter in lead)
    parts = [
        arithmetic.broadcast(lettered.aligned(operand, lead, len(item.shape)), (*outer, *operand.core))
        for operand in operands
    ]
    return Lettered(lead, arithmetic.concatenate(parts, _integer(item) - len(item.shape)))


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
            found.append(given.get(str(item.constants[0])))
        else:
            found.append(
                tangent(
                    arithmetic,
                    item,
                    [values[k] for k in item.operands],
                    values[place],
                    [found[k] for k in item.operands],
                )
            )
    return found


def tangent(
    arithmetic: Floats,
    item: Instruction,
    operands: Sequence[Lettered],
    value: Lettered,
    directions: Sequence[Lettered | None],
) -> Lettered | None:
    moving = [k for k, direction in enumerate(directions) if direction is not None]
    if not moving:
        return None
    operation = item.operation
    if operation == "concatenate":
        filled = [
            direction if direction is not None else Lettered("", arithmetic.zeros(operand.core))
            for direction, operand in zip(directions, operands, strict=True)
        ]
        return linear(arithmetic, item, filled)
    if operation in ("add", "multiply") or (operation == "einsum" and len(operands) == 2):
        parts = []
        for k in moving:
            direction = directions[k]
            assert direction is not None
            pair = [direction if place == k else operand for place, operand in enumerate(operands)]
            spread = operation == "add"
            parts.append(
                lettered.repeated(arithmetic, direction, item.shape)
                if spread
                else apply(arithmetic, item, pair)
            )
        return parts[0] if len(parts) == 1 else lettered.add(arithmetic, *parts)
    direction = directions[0]
    assert direction is not None
    if operation in LINEAR:
        return linear(arithmetic, item, [direction])
    if operation == "softmax":
        axis = _integer(item) - len(item.shape)
        weighted = lettered.multiply(arithmetic, direction, value)
        mean = _kept_sum(arithmetic, weighted, axis)
        return lettered.add(
            arithmetic, weighted, negative(arithmetic, lettered.multiply(arithmetic, mean, value))
        )
    return lettered.multiply(arithmetic, direction, slope(arithmetic, item, operands[0], value))


def slope(arithmetic: Floats, item: Instruction, operand: Lettered, value: Lettered) -> Lettered:
    """The entrywise derivative of power, exp or reciprocal."""
    if item.operation == "exp":
        return value
    if item.operation == "reciprocal":
        return negative(arithmetic, lettered.multiply(arithmetic, value, value))
    n = _integer(item)
    lower = operand.array if n == 2 else arithmetic.power(operand.array, n - 1)
    return Lettered(operand.lead, arithmetic.scale(Fraction(n), lower))


def negative(arithmetic: Floats, item: Lettered) -> Lettered:
    return Lettered(item.lead, arithmetic.negative(item.array))


def _kept_sum(arithmetic: Floats, item: Lettered, axis: int) -> Lettered:
    """The sum over one core axis, which stays with length 1."""
    core = list(item.core)
    core[axis] = 1
    total = Lettered(item.lead, arithmetic.sum(item.array, (len(item.array.shape) + axis,)))
    return lettered.reshaped(total, tuple(core))


def _einsum(item: Instruction) -> tuple[tuple[str, ...], str]:
    terms, result = item.constants
    return terms, result


def _integer(item: Instruction) -> int:
    return int(item.constants[0])


def slices(item: Instruction) -> tuple[slice, ...]:
    """The index of a slice instruction."""
    found = []
    for part in item.constants:
        assert isinstance(part, tuple)
        start, count, step = part
        stop = start + count * step
        found.append(slice(start, stop if stop >= 0 else None, step))
    return tuple(found)


def places(item: Instruction) -> np.ndarray:
    """The flat index of a gather instruction."""
    return np.array(item.constants, dtype=np.int64)
