"""The one reverse pass: rows of a program's Jacobian, for chosen output entries and chosen weights, over any arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from m2bridge.programs import lettered
from m2bridge.programs.arithmetics import Floats
from m2bridge.programs.instructions import Instruction
from m2bridge.programs.lettered import Lettered
from m2bridge.programs.program import Program
from m2bridge.programs.run import LINEAR, _einsum, _integer, _kept_sum, negative, places, slices, slope


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
    pulled: dict[int, Lettered] = dict(seeds)
    for place in range(max(seeds), -1, -1):
        item = program.instructions[place]
        if place not in pulled or not item.operands:
            continue
        cotangent = pulled.pop(place)
        for position, source in enumerate(item.operands):
            if source in reached:
                operands = [values[k] for k in item.operands]
                part = pull(arithmetic, item, position, operands, values[place], cotangent)
                known = pulled.get(source)
                pulled[source] = part if known is None else lettered.add(arithmetic, known, part)
    return {name: pulled.get(program.weights[name]) for name in wanted}


def _reached(program: Program, leaves: set[int]) -> set[int]:
    """The places whose values depend on one of the leaves."""
    found = set(leaves)
    for place, item in enumerate(program.instructions):
        if any(k in found for k in item.operands):
            found.add(place)
    return found


def pull(
    arithmetic: Floats,
    item: Instruction,
    position: int,
    operands: Sequence[Lettered],
    value: Lettered,
    cotangent: Lettered,
) -> Lettered:
    """The cotangent of one operand, given that of the result."""
    operation, operand = item.operation, operands[position]
    if operation == "add":
        return lettered.summed_to(arithmetic, cotangent, operand.core)
    if operation == "multiply":
        other = operands[1 - position]
        return lettered.summed_to(arithmetic, lettered.multiply(arithmetic, cotangent, other), operand.core)
    if operation == "einsum":
        return _pull_einsum(arithmetic, item, position, operands, cotangent)
    if operation in LINEAR:
        return _pull_linear(arithmetic, item, position, operands, cotangent)
    if operation == "softmax":
        axis = _integer(item) - len(item.shape)
        weighted = lettered.multiply(arithmetic, cotangent, value)
        mean = negative(arithmetic, _kept_sum(arithmetic, weighted, axis))
        return lettered.multiply(arithmetic, lettered.add(arithmetic, cotangent, mean), value)
    return lettered.multiply(arithmetic, cotangent, slope(arithmetic, item, operand, value))


def _pull_einsum(
    arithmetic: Floats, item: Instruction, position: int, operands: Sequence[Lettered], cotangent: Lettered
) -> Lettered:
    terms, result = _einsum(item)
    term, core = terms[position], operands[position].core
    seen = result if len(operands) == 1 else result + terms[1 - position]
    known = "".join(letter for letter in term if letter in seen)
    if len(operands) == 1:
        found = lettered.single(arithmetic, cotangent, result, known)
    else:
        other = operands[1 - position]
        found = lettered.contract(arithmetic, cotangent, result, other, terms[1 - position], known)
    if known == term:
        return found
    shape = tuple(size if letter in seen else 1 for letter, size in zip(term, core, strict=True))
    return lettered.repeated(arithmetic, lettered.reshaped(found, shape), core)


def _pull_linear(
    arithmetic: Floats, item: Instruction, position: int, operands: Sequence[Lettered], cotangent: Lettered
) -> Lettered:
    operation, core = item.operation, operands[position].core
    if operation == "scale":
        return Lettered(cotangent.lead, arithmetic.scale(item.constants[0], cotangent.array))
    if operation == "reshape":
        return lettered.reshaped(cotangent, core)
    if operation == "concatenate":
        axis = _integer(item)
        start = sum(operand.core[axis] for operand in operands[:position])
        key: list[Any] = [slice(None)] * len(item.shape)
        key[axis] = slice(start, start + core[axis])
        return lettered.indexed(cotangent, tuple(key))
    size = int(np.prod(core))
    where = np.arange(size).reshape(core)[slices(item)] if operation == "slice" else places(item)
    flat = lettered.reshaped(cotangent, (int(np.prod(item.shape)),))
    spread = Lettered(flat.lead, arithmetic.spread(flat.array, where.reshape(-1), size))
    return lettered.reshaped(spread, core)


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
        array = lettered.aligned(cotangent, "NR", len(cotangent.core))
        flat = array.reshape((*array.shape[:2], int(np.prod(cotangent.core))))
        picked = flat if flat.shape[-1] == len(chosen) else flat[:, :, chosen]
        parts.append(arithmetic.broadcast(picked, (samples, rows, len(chosen))))
    return arithmetic.concatenate(parts, -1) if parts else arithmetic.zeros((samples, rows, 0))
