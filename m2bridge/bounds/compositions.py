"""Split a program into compositions: both sides as programs.

At an instruction k the function is g(f(x), x), where f computes instruction k, and g has an input in its place. A side is
numbered as the checker numbers it: weights, inputs (the value of instruction k comes last among them), then the other
instructions, in their old order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.program import Instruction, Program, arranged, indices_needed


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a composition: a program, possibly without weights.

    `flat` are its flat weights within the whole program, `indices` its instructions there; the input in place of the other
    side has None.
    """

    program: Program
    flat: tuple[int, ...]
    indices: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Composition:
    """A program as a composition: `first` ends with the instruction `index`, and `second` begins with it."""

    index: int
    first: Side
    second: Side


def compositions(program: Program) -> list[Composition]:
    """List the compositions whose sides share no weight, one for each split of the weights; inputs may occur on both sides.

    If all weights are on one side, the other side consists of the instructions before or after them.
    """
    outputs = sorted({k for _, k in program.outputs})
    before = weights_before(program)
    weights = frozenset(program.weights.values())
    groups: dict[frozenset[int], list[int]] = {}
    for k, item in enumerate(program.instructions):
        if not item.operands or k in outputs or not (before[k] or program.sees_inputs[k]):
            continue
        behind = side_of(program, outputs, k).program
        used = {program.weights[name] for name in behind.parameters}
        if (before[k] or len(behind.inputs) == 1) and not used & before[k]:
            groups.setdefault(before[k], []).append(k)
    splits = []
    for split, indices in groups.items():
        index = indices[0] if split == weights else indices[-1]
        splits.append(Composition(index, side_of(program, [index], None), side_of(program, outputs, index)))
    return splits


def side_of(program: Program, outputs: Sequence[int], cut: int | None) -> Side:
    """Restrict a program to the instructions that these outputs use, with an input in place of the instruction `cut`."""
    items = {k: program.instructions[k] for k in sorted(indices_needed(program.instructions, outputs, cut))}
    if cut is not None and cut in items:
        name = "cut"
        while name in program.inputs or name in program.weights:
            name += "_"
        items[cut] = Instruction("input", (name,), (), items[cut].shape)
    side_program, order = arranged(items, [(f"y{n}", k) for n, k in enumerate(outputs)])
    spans = {program.weights[name]: span for name, _, span in flat_parts(program.parameters)}
    flat = [i for k in order if k in spans for i in range(spans[k].start, spans[k].stop)]
    return Side(side_program, tuple(flat), tuple(None if k == cut else k for k in order))


def weights_before(program: Program) -> list[frozenset[int]]:
    """List for each instruction the weights from which it is computed."""
    weights: list[frozenset[int]] = []
    for k, item in enumerate(program.instructions):
        itself = frozenset([k]) if item.operation == "weight" else frozenset[int]()
        weights.append(itself.union(*(weights[j] for j in item.operands)))
    return weights
