"""Places at which a program is a composition, and its two parts as programs of their own.

At a cut k the function is g(f(x), x), where f computes instruction k, and g has an input in its place. A part is numbered as the
checker numbers it: weights, inputs (the cut comes last among them), then the other instructions, in their old order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from m2bridge.programs.program import Instruction, Program


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a program: a program of its own, possibly without weights.

    `flat` are its flat weights within the whole, `places` its instructions there; an input in the place of a cut has none.
    """

    program: Program
    flat: tuple[int, ...]
    places: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a program is cut: `early` and `late` have the same weights before them, and `late` is computed from `early` alone.

    `first` ends in `late`, `inner` in `early`, and `second` begins with `late`.
    """

    early: int
    late: int
    first: Part
    inner: Part
    second: Part


def cuts(program: Program) -> list[Cut]:
    """All cuts that no weight passes, for each split of the weights one: what inputs there are may bypass it.

    Where all weights are on one side, the cut takes off what comes before or after them.
    """
    outputs = {place for _, place in program.outputs}
    before, weights = _weights_before(program), frozenset(program.weights.values())
    groups: dict[frozenset[int], list[int]] = {}
    for k, item in enumerate(program.instructions):
        if not item.operands or k in outputs or not (before[k] or program.sees_inputs[k]):
            continue
        behind = part(program, sorted(outputs), k).program
        used = {program.weights[name] for name in behind.parameters}
        if (before[k] or len(behind.inputs) == 1) and not used & before[k]:
            groups.setdefault(before[k], []).append(k)
    found = []
    for split, places in groups.items():
        early, late = places[0], places[-1]
        if split == weights:
            late = early
        elif not split or not _computed_from(program, late, early):
            early = late
        found.append(
            Cut(
                early,
                late,
                part(program, [late], None),
                part(program, [early], None),
                part(program, sorted(outputs), late),
            )
        )
    return found


def part(program: Program, outputs: Sequence[int], cut: int | None) -> Part:
    """The program of what these places use, with an input in the place of the cut."""
    used: set[int] = set()
    for k in reversed(range(len(program.instructions))):
        if k in outputs or k in used:
            used |= {k, *(program.instructions[k].operands if k != cut else ())}
    items = {k: program.instructions[k] for k in sorted(used)}
    if cut is not None and cut in items:
        name = "cut"
        while name in program.inputs or name in program.weights:
            name += "_"
        items[cut] = Instruction("input", (name,), (), items[cut].shape)
    order = sorted(items, key=lambda k: {"weight": 0, "input": 1}.get(items[k].operation, 2))
    place = {k: n for n, k in enumerate(order)}
    made = tuple(
        Instruction(
            items[k].operation, items[k].constants, tuple(place[j] for j in items[k].operands), items[k].shape
        )
        for k in order
    )
    names = {str(items[k].constants[0]) for k in order if items[k].operation == "weight"}
    flat: list[int] = []
    start = 0
    for name, shape in program.parameters.items():
        if name in names:
            flat += range(start, start + prod(shape))
        start += prod(shape)
    named = tuple((f"y{n}", place[k]) for n, k in enumerate(outputs))
    return Part(Program(made, named), tuple(flat), tuple(None if k == cut else k for k in order))


def place_in_part(program: Program, outputs: Sequence[int], k: int) -> int:
    """The number that instruction k has in the part of a program that ends in `outputs`."""
    used: set[int] = set()
    for n in reversed(range(len(program.instructions))):
        if n in outputs or n in used:
            used |= {n, *program.instructions[n].operands}
    kinds = {n: {"weight": 0, "input": 1}.get(program.instructions[n].operation, 2) for n in used}
    return sorted(used, key=lambda n: (kinds[n], n)).index(k)


def _weights_before(program: Program) -> list[frozenset[int]]:
    found: list[frozenset[int]] = []
    for k, item in enumerate(program.instructions):
        own = frozenset([k]) if item.operation == "weight" else frozenset[int]()
        found.append(own.union(*(found[j] for j in item.operands)))
    return found


def _computed_from(program: Program, late: int, early: int) -> bool:
    """Whether `late` uses nothing but `early` and constants."""
    waiting, seen = [late], {early}
    while waiting:
        k = waiting.pop()
        if k in seen:
            continue
        seen.add(k)
        item = program.instructions[k]
        if item.operation in ("weight", "input"):
            return False
        waiting += item.operands
    return True
