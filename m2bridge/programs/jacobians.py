"""The one reverse pass: rows of a program's Jacobian, for chosen output entries and chosen weights, over any arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from m2bridge.programs.arithmetics import Arithmetic, Array
from m2bridge.programs.instructions import Instruction, flat_parts, split_flat
from m2bridge.programs.layers import output_layer
from m2bridge.programs.points import NOTHING_HELD, Held
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, axis_from_end, evaluate, flat_indices, slope


def cotangents(
    program: Program,
    arithmetic: Arithmetic,
    values: Sequence[Lettered],
    seeds: Mapping[int, Lettered],
    wanted: Sequence[str],
) -> dict[str, Lettered | None]:
    """Return derivatives of linear forms of some instructions by the wanted weights; None where they do not depend on one.

    `seeds` maps an index to the forms: their letters are R (one row each) and possibly N. The results have the letters N
    and R, or R alone where neither values nor seeds depend on a sample.
    """
    reached = program.depending_on(program.weights[name] for name in wanted)
    pulled = {index: seed.within(arithmetic) for index, seed in seeds.items()}
    for index in range(max(seeds), -1, -1):
        item = program.instructions[index]
        if index not in pulled or not item.operands:
            continue
        cotangent = pulled.pop(index)
        for position, source in enumerate(item.operands):
            if reached[source]:
                operands = [values[k] for k in item.operands]
                term = pull(item, position, operands, values[index], cotangent)
                pulled[source] = accumulated(pulled[source], term) if source in pulled else term
    return {name: pulled.get(program.weights[name]) for name in wanted}


def accumulated(total: Lettered, term: Lettered) -> Lettered:
    """Return the cotangent of a value that is used more than once."""
    return total + term


def pull(  # noqa: PLR0911 -- one case for each instruction
    item: Instruction, position: int, operands: Sequence[Lettered], value: Lettered, cotangent: Lettered
) -> Lettered:
    """Return the cotangent of one operand, given that of the result."""
    operand, core = operands[position], operands[position].core
    match item.operation:
        case "add":
            return cotangent.summed_to(core)
        case "multiply":
            return (cotangent * operands[1 - position]).summed_to(core)
        case "einsum":
            return _pull_einsum(item, position, operands, cotangent)
        case "scale":
            return cotangent.scaled(item.constants[0])
        case "reshape":
            return cotangent.reshaped(core)
        case "slice" | "gather":
            flat = cotangent.flattened()
            spread = flat.arithmetic.spread(flat.array, flat_indices(item, core), prod(core))
            return flat.like(spread).reshaped(core)
        case "concatenate":
            (axis,) = item.constants
            start = sum(other.core[axis] for other in operands[:position])
            return cotangent.indexed((*(slice(None),) * axis, slice(start, start + core[axis])))
        case "softmax":
            mean = (cotangent * value).kept_sum(axis_from_end(item))
            return (cotangent - mean) * value
    return cotangent * slope(item, operand, value)


def _pull_einsum(
    item: Instruction, position: int, operands: Sequence[Lettered], cotangent: Lettered
) -> Lettered:
    terms, result = item.constants
    term, core = terms[position], operands[position].core
    other = terms[1 - position] if len(operands) == 2 else ""
    letters = "".join(letter for letter in term if letter in result + other)
    if len(operands) == 1:
        pulled = cotangent.single(result, letters)
    else:
        pulled = cotangent.contract(result, operands[1 - position], other, letters)
    if letters == term:
        return pulled
    shape = tuple(size if letter in letters else 1 for letter, size in zip(term, core, strict=True))
    return pulled.reshaped(shape).repeated(core)


def jacobian_rows(
    program: Program,
    arithmetic: Arithmetic,
    values: Sequence[Lettered],
    seeds: Mapping[int, Lettered],
    columns: np.ndarray,
) -> Array:
    """Return derivatives of the forms in `seeds` by chosen flat weights, in ascending order: (samples, rows, columns)."""
    samples = max((value.sizes.get("N", 1) for value in values), default=1)
    sizes = {"N": samples, "R": next(iter(seeds.values())).sizes["R"]}
    chosen = {}
    for name, _, entries in flat_parts(program.parameters):
        first, last = np.searchsorted(columns, (entries.start, entries.stop))
        if first < last:
            chosen[name] = columns[first:last] - entries.start
    derivatives = cotangents(program, arithmetic, values, seeds, list(chosen))
    blocks = []
    for name, indices in chosen.items():
        shape = program.parameters[name]
        flat = (derivatives[name] or Lettered("", arithmetic.zeros(shape), arithmetic)).flattened()
        blocks.append((flat if flat.core == indices.shape else flat.indexed((indices,))).behind(sizes))
    return arithmetic.concatenate(blocks, -1) if blocks else arithmetic.zeros((*sizes.values(), 0))


@dataclass(frozen=True, slots=True)
class LastLayer:
    """The output is V Z: `weight` is V, of shape (outputs, width), and `tokens` is the index of Z, with `columns` columns."""

    weight: str
    tokens: int
    outputs: int
    width: int
    columns: int

    def few(self, analytic: bool) -> int:
        """Return how many rows of V usually suffice: as many as there are tokens, or one less for averages of tokens."""
        available = min(self.outputs, self.width)
        if self.columns == 1:  # one token: rows of V see different weights
            return available
        return min(available, max(1, self.columns - 1 if analytic else self.columns))


def last_layer(program: Program, held: Held = NOTHING_HELD) -> LastLayer | None:
    """Return the last linear layer of a program, when its weight is free and used nowhere else."""
    layer = output_layer(program)
    if layer is None or not program.sees_inputs[layer.argument]:
        return None
    name = str(program.instructions[layer.weight].constants[0])
    uses = sum(item.operands.count(layer.weight) for item in program.instructions)
    if uses != 1 or name in held.masks:
        return None
    return LastLayer(name, layer.argument, layer.rows, layer.width, layer.columns or 1)


def output_seeds(
    program: Program, arithmetic: Arithmetic, entries: np.ndarray | None = None
) -> dict[int, Lettered]:
    """Return one row for each output entry; with `entries`, for each sample some flat output entries, one row each."""
    every = np.arange(program.output_count)
    lead, rows = ("R", every) if entries is None else ("NR", entries)
    return form_seeds(program, arithmetic, lead, (rows[..., None] == every).astype(np.int64))


def form_seeds(program: Program, arithmetic: Arithmetic, lead: str, forms: np.ndarray) -> dict[int, Lettered]:
    """Return linear forms of the flat outputs, which the last axis of `forms` is over, as forms of instructions."""
    seeds: dict[int, Lettered] = {}
    for name, array in split_flat(forms, program.output_shapes).items():
        index = dict(program.outputs)[name]
        seed = Lettered(lead, arithmetic.integers(array), arithmetic)
        seeds[index] = seed if index not in seeds else seeds[index] + seed
    return seeds


def token_seeds(program: Program, arithmetic: Arithmetic, layer: LastLayer, forms: Array) -> Lettered:
    """Return rows of V (`forms`) in each column of Z, as linear forms of Z: ordered by the row, then by the column."""
    n = layer.columns
    eye = arithmetic.integers(np.eye(n, dtype=np.int64))
    table = Lettered("", forms, arithmetic).contract("ab", Lettered("", eye), "cd", "acbd")
    shape = program.instructions[layer.tokens].shape
    return Lettered("R", table.array.reshape((forms.shape[0] * n, *shape)))


def jacobian_block(
    program: Program,
    arithmetic: Arithmetic,
    arrays: Mapping[str, Lettered],
    columns: np.ndarray,
    *,
    layer: LastLayer | None = None,
    outputs: int = 0,
    entries: np.ndarray | None = None,
) -> Array:
    """Return the Jacobian by chosen flat weights, one row for each sample and output entry.

    With `entries`, only these flat output entries of each sample are used. With `layer`, only the first `outputs` rows of V
    are, and their entries in V are the first columns.
    """
    values = evaluate(program, arithmetic, arrays)
    if layer is None:
        seeds = output_seeds(program, arithmetic, entries)
        block = jacobian_rows(program, arithmetic, values, seeds, columns)
    else:
        seed = token_seeds(program, arithmetic, layer, arrays[layer.weight].array[:outputs])
        inner = jacobian_rows(program, arithmetic, values, {layer.tokens: seed}, columns)
        tokens = values[layer.tokens].reshaped((layer.width, layer.columns))
        eye = Lettered("", arithmetic.integers(np.eye(outputs, dtype=np.int64)), arithmetic)
        last = eye.contract("ab", tokens, "cd", "adbc").array
        last = last.reshape((*inner.shape[:2], outputs * layer.width))
        block = arithmetic.concatenate([last, inner], -1)
    return block.reshape((block.shape[0] * block.shape[1], block.shape[2]))


def free_columns(program: Program, held: Held, layer: LastLayer | None = None) -> np.ndarray:
    """Return flat weights that are not held, without those of the last layer."""
    indices = [
        entries.start + held.free(name, shape)
        for name, shape, entries in flat_parts(program.parameters)
        if layer is None or name != layer.weight
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *indices])
