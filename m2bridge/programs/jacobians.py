"""The one reverse pass: rows of a program's Jacobian, for chosen output entries and chosen weights, over any arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from m2bridge.programs.arithmetics import Array, Floats
from m2bridge.programs.instructions import Instruction, flat_parts
from m2bridge.programs.points import NOTHING_HELD, Held
from m2bridge.programs.program import Program
from m2bridge.programs.run import LINEAR, Lettered, aligned, axis_from_end, evaluate, places, slices, slope


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
    reached = program.depending_on(program.weights[name] for name in wanted)
    pulled = {place: seed.within(arithmetic) for place, seed in seeds.items()}
    for place in range(max(seeds), -1, -1):
        item = program.instructions[place]
        if place not in pulled or not item.operands:
            continue
        cotangent = pulled.pop(place)
        for position, source in enumerate(item.operands):
            if reached[source]:
                operands = [values[k] for k in item.operands]
                part = pull(item, position, operands, values[place], cotangent)
                pulled[source] = accumulated(pulled[source], part) if source in pulled else part
    return {name: pulled.get(program.weights[name]) for name in wanted}


def accumulated(known: Lettered, part: Lettered) -> Lettered:
    """The cotangent of a value that is used more than once."""
    return known + part


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


@dataclass(frozen=True, slots=True)
class LastLayer:
    """The output is V Z: `weight` is V, of shape (outputs, width), and `tokens` is the place of Z, with `columns` columns."""

    weight: str
    tokens: int
    outputs: int
    width: int
    columns: int

    def few(self, analytic: bool) -> int:
        """How many rows of V usually suffice: as many as there are tokens, or one less for averages of tokens."""
        available = min(self.outputs, self.width)
        if self.columns == 1:  # one token: rows of V see different weights
            return available
        return min(available, max(1, self.columns - 1 if analytic else self.columns))


def last_layer(program: Program, held: Held = NOTHING_HELD) -> LastLayer | None:
    """The last linear layer of a program, when its weight is free and used nowhere else."""
    if len(program.outputs) != 1 or program.vanishing:
        return None
    item = program.instructions[program.outputs[0][1]]
    if item.operation != "einsum" or item.constants not in ((("ab", "bc"), "ac"), (("ab", "b"), "a")):
        return None
    place, tokens = item.operands
    weight = program.instructions[place]
    uses = sum(other.operands.count(place) for other in program.instructions)
    if weight.operation != "weight" or uses != 1 or not program.sees_inputs[tokens]:
        return None
    name = str(weight.constants[0])
    if name in held.masks:
        return None
    outputs, width = weight.shape
    return LastLayer(name, tokens, outputs, width, item.shape[1] if len(item.shape) == 2 else 1)


def output_seeds(
    program: Program, arithmetic: Floats, entries: np.ndarray | None = None
) -> dict[int, Lettered]:
    """One row for each output entry; with `entries`, for each sample some flat output entries, one row each."""
    lead, rows = ("R", np.arange(program.output_count)) if entries is None else ("NR", entries)
    seeds: dict[int, Lettered] = {}
    for name, shape, part in flat_parts(program.output_shapes):
        place = dict(program.outputs)[name]
        unit = (rows[..., None] == np.arange(part.start, part.stop)).astype(np.int64)
        seed = Lettered(lead, arithmetic.integers(unit.reshape(*rows.shape, *shape)), arithmetic)
        seeds[place] = seed if place not in seeds else seeds[place] + seed
    return seeds


def token_seeds(program: Program, arithmetic: Floats, layer: LastLayer, forms: Array) -> Lettered:
    """Rows of V (`forms`) in each column of Z, as linear forms of Z: ordered by the row, then by the column."""
    n = layer.columns
    eye = arithmetic.integers(np.eye(n, dtype=np.int64))
    table = Lettered("", forms, arithmetic).contract("ab", Lettered("", eye), "cd", "acbd")
    shape = program.instructions[layer.tokens].shape
    return Lettered("R", table.array.reshape((forms.shape[0] * n, *shape)))


def jacobian_block(
    program: Program,
    arithmetic: Floats,
    given: Mapping[str, Lettered],
    columns: Mapping[str, np.ndarray],
    *,
    layer: LastLayer | None = None,
    outputs: int = 0,
    entries: np.ndarray | None = None,
) -> Array:
    """The Jacobian by chosen weight entries, one row for each sample and output entry.

    With `entries`, only these flat output entries of each sample are looked at. With `layer`, only the first `outputs` rows of V
    are, and their entries in V are the first columns.
    """
    values = evaluate(program, arithmetic, given)
    if layer is None:
        seeds = output_seeds(program, arithmetic, entries)
        block = jacobian_rows(program, arithmetic, values, seeds, columns)
        return block.reshape((block.shape[0] * block.shape[1], block.shape[2]))
    seed = token_seeds(program, arithmetic, layer, given[layer.weight].array[:outputs])
    inner = jacobian_rows(program, arithmetic, values, {layer.tokens: seed}, columns)
    tokens = values[layer.tokens].reshaped((layer.width, layer.columns))
    eye = arithmetic.integers(np.eye(outputs, dtype=np.int64))
    own = Lettered("", eye, arithmetic).contract("ab", tokens, "cd", "adbc")
    shape = (inner.shape[0], outputs * layer.columns, outputs * layer.width)
    block = arithmetic.concatenate([own.array.reshape(shape), inner], -1)
    return block.reshape((block.shape[0] * block.shape[1], block.shape[2]))


def free_columns(program: Program, held: Held, layer: LastLayer | None = None) -> dict[str, np.ndarray]:
    """Places of the weight entries that are not held, without those of the last layer; weights with none are left out."""
    found = {
        name: held.free(name, shape)
        for name, shape in program.parameters.items()
        if layer is None or name != layer.weight
    }
    return {name: places for name, places in found.items() if len(places)}


def flat_columns(program: Program, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Chosen weight entries as places in the flat weights."""
    found = [
        part.start + columns[name] for name, _, part in flat_parts(program.parameters) if name in columns
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def columns_by_weight(program: Program, flat: np.ndarray) -> dict[str, np.ndarray]:
    """The inverse of :func:`flat_columns`, for places in ascending order."""
    parts = flat_parts(program.parameters)
    found = {name: flat[(flat >= part.start) & (flat < part.stop)] - part.start for name, _, part in parts}
    return {name: places for name, places in found.items() if len(places)}
