"""The one reverse pass: rows of a program's Jacobian, for chosen output entries and chosen weights, over any arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from m2bridge.programs.arithmetics import Floats
from m2bridge.programs.instructions import Instruction
from m2bridge.programs.lettered import Lettered, aligned
from m2bridge.programs.program import Program
from m2bridge.programs.run import LINEAR, axis_from_end, places, slices, slope


def cotangents(
    program: Program,
    arithmetic: Floats,
    values: Sequence[Lettered],
    seeds: Mapping[int, Lettered],
    wanted: Sequence[str],
) -> dict[str, Lettered | None]:
    """Derivatives of linear forms of some instructions by the wanted weights; None where they do not depend on one.

    `seeds` maps a place to the forms: their letters are R (one row each) and possibly N. The results have the letters N
    and R, or R alone where neither values nor seeds depend on a sample.
    """
    reached = _reached(program, {program.weights[name] for name in wanted})
    pulled = {place: seed.within(arithmetic) for place, seed in seeds.items()}
    for place in range(max(seeds), -1, -1):
        item = program.instructions[place]
        if place not in pulled or not item.operands:
            continue
        cotangent = pulled.pop(place)
        for position, source in enumerate(item.operands):
            if source in reached:
                operands = [values[k] for k in item.operands]
                part = pull(item, position, operands, values[place], cotangent)
                pulled[source] = accumulated(pulled[source], part) if source in pulled else part
    return {name: pulled.get(program.weights[name]) for name in wanted}


def accumulated(known: Lettered, part: Lettered) -> Lettered:
    """The cotangent of a value that is used more than once."""
    return known + part


def _reached(program: Program, leaves: set[int]) -> set[int]:
    """The places whose values depend on one of the leaves."""
    found = set(leaves)
    for place, item in enumerate(program.instructions):
        if any(k in found for k in item.operands):
            found.add(place)
    return found


def pull(
    item: Instruction, position: int, operands: Sequence[Lettered], value: Lettered, cotangent: Lettered
) -> Lettered:
    """The cotangent of one operand, given that of the result."""
    operation, operand = item.operation, operands[position]
    if operation == "add":
        return cotangent.summed_to(operand.core)
    if operation == "multiply":
        return (cotangent * operands[1 - position]).summed_to(operand.core)
    if operation == "einsum":
        return _pull_einsum(item, position, operands, cotangent)
    if operation in LINEAR:
        return _pull_linear(item, position, operands, cotangent)
    if operation == "softmax":
        mean = (cotangent * value).kept_sum(axis_from_end(item))
        return (cotangent - mean) * value
    return cotangent * slope(item, operand, value)


def _pull_einsum(
    item: Instruction, position: int, operands: Sequence[Lettered], cotangent: Lettered
) -> Lettered:
    terms, result = item.constants
    term, core = terms[position], operands[position].core
    other = terms[1 - position] if len(operands) == 2 else ""
    known = "".join(letter for letter in term if letter in result + other)
    if len(operands) == 1:
        found = cotangent.single(result, known)
    else:
        found = cotangent.contract(result, operands[1 - position], other, known)
    if known == term:
        return found
    shape = tuple(size if letter in known else 1 for letter, size in zip(term, core, strict=True))
    return found.reshaped(shape).repeated(core)


def _pull_linear(
    item: Instruction, position: int, operands: Sequence[Lettered], cotangent: Lettered
) -> Lettered:
    operation, core = item.operation, operands[position].core
    if operation == "scale":
        return cotangent.scaled(item.constants[0])
    if operation == "reshape":
        return cotangent.reshaped(core)
    if operation == "concatenate":
        (axis,) = item.constants
        start = sum(operand.core[axis] for operand in operands[:position])
        return cotangent.indexed((*(slice(None),) * axis, slice(start, start + core[axis])))
    size = prod(core)
    where = np.arange(size).reshape(core)[slices(item)] if operation == "slice" else places(item)
    flat = cotangent.reshaped((item.size,))
    spread = flat.arithmetic.spread(flat.array, where.reshape(-1), size)
    return flat.like(spread).reshaped(core)


def jacobian_rows(
    program: Program,
    arithmetic: Floats,
    values: Sequence[Lettered],
    seeds: Mapping[int, Lettered],
    columns: Mapping[str, np.ndarray],
) -> Any:
    """Derivatives of the forms in `seeds` by chosen weight entries: an array of shape (samples, rows, columns).

    `columns` maps names of weights to flat places within them; names without any are left out beforehand.
    """
    samples = max((value.sizes.get("N", 1) for value in values), default=1)
    rows = next(iter(seeds.values())).sizes["R"]
    found = cotangents(program, arithmetic, values, seeds, list(columns))
    parts = []
    for name, chosen in columns.items():
        cotangent = found[name]
        if cotangent is None:
            parts.append(arithmetic.zeros((samples, rows, len(chosen))))
            continue
        array = aligned(cotangent, "NR", len(cotangent.core))
        flat = array.reshape((*array.shape[:2], prod(cotangent.core)))
        picked = flat if flat.shape[-1] == len(chosen) else flat[:, :, chosen]
        parts.append(arithmetic.broadcast(picked, (samples, rows, len(chosen))))
    return arithmetic.concatenate(parts, -1) if parts else arithmetic.zeros((samples, rows, 0))
