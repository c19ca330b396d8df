"""Upper bounds of analytic programs, through pieces of a polynomial one that share no weights.

Put a new input in place of every analytic instruction, and let its argument be an output: the values of the old program are
computed from those of the new one, so that the old image is no larger than the new one. The same may be done at any instruction.
Done where no weight is on both sides, it leaves pieces whose dimensions add up to a bound.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from m2bridge.bounds.compositions import weights_before
from m2bridge.bounds.program_upper import UpperBounds
from m2bridge.bounds.upper_bound import UpperBound
from m2bridge.programs.instructions import ANALYTIC
from m2bridge.programs.program import Builder, Program, arranged, indices_needed
from m2bridge.programs.ranks import generic_rank
from m2bridge.programs.work import OF_ANALYTIC, WorkBudget, of_rank
from m2bridge.symmetry.search import Search

MOST_RELAXED_WEIGHTS = 2500  # weights of a program that is relaxed
MOST_WEIGHTS_OF_A_PIECE = 700
"""Larger pieces are not searched for symmetries: all their weights count."""


def relaxed(program: Program, indices: Collection[int]) -> Program:
    """Put new inputs in place of instructions, and add the old values (for analytic steps the arguments) to the outputs.

    >>> from m2bridge.programs import parse_program
    >>> text = "m2bridge program 1\\n%0 = weight w [2]\\n%1 = input x [2]\\n%2 = multiply %0 %1\\n%3 = exp %2\\noutput y %3\\n"
    >>> print(relaxed(parse_program(text), {3}).text.split(chr(10), 1)[1], end="")
    %0 = weight w0 [2]
    %1 = input x1 [2]
    %2 = input x3 [2]
    %3 = multiply %0 %1
    output y0 %2
    output y1 %3
    """
    builder, moved = Builder(), dict[int, int]()
    outputs: list[int] = []
    for index, item in enumerate(program.instructions):
        own = tuple(moved[k] for k in item.operands)
        if item.operation in ("weight", "input"):
            letter = "w" if item.operation == "weight" else "x"
            moved[index] = builder.write(item.operation, (), f"{letter}{index}", shape=item.shape)
            continue
        if index in indices and item.operation in ANALYTIC:  # all of these have one operand
            outputs += own
        else:
            moved[index] = builder.write(item.operation, own, *item.constants, shape=item.shape)
            outputs += [moved[index]] if index in indices else []
        if index in indices:
            moved[index] = builder.write("input", (), f"x{index}", shape=item.shape)
    outputs = [moved[index] for _, index in program.outputs] + outputs
    return builder.finished([(f"y{number}", index) for number, index in enumerate(outputs)])


def pieces(program: Program, *, rank: int, p: int, seed: int, work: WorkBudget) -> list[Program]:
    """Split the program into programs that share no weights and through which it factors, with ranks that add up to `rank`.

    Nearly equal sides are tried first, until the `work` is done.
    """
    several: dict[frozenset[frozenset[str]], tuple[Program, ...]] = {}
    for index, item in enumerate(program.instructions):
        if item.operands:
            cut = relaxed(program, {index})
            groups = _groups(cut)
            if len(groups) > 1:  # of indices with the same split of the weights the last
                names = list(cut.parameters)
                split = frozenset(frozenset(names[k] for k in used) for used, _ in groups)
                several[split] = tuple(_of_outputs(cut, *group) for group in groups)
    for sides in sorted(several.values(), key=lambda sides: max(side.parameter_count for side in sides)):
        if not work.spend(sum(map(of_rank, sides))):
            break
        ranks = [rank_of(side, p, seed) for side in sides]
        if sum(ranks) == rank:
            found = zip(sides, ranks, strict=True)
            return [
                piece for side, own in found for piece in pieces(side, rank=own, p=p, seed=seed, work=work)
            ]
    return [program]


@lru_cache(maxsize=64)
def rank_of(program: Program, p: int, seed: int) -> int:
    """Return the rank of the Jacobian of a program at a random point modulo p."""
    return generic_rank(program, p=p, seed=seed).rank


def _groups(program: Program) -> list[tuple[set[int], list[int]]]:
    """Group the outputs by the weights that they share; return the weights and outputs of each group."""
    before = weights_before(program)
    groups: list[tuple[set[int], list[int]]] = []
    for _, index in program.outputs:
        used, chosen = set(before[index]), [index]
        for group in [g for g in groups if g[0] & used]:
            groups.remove(group)
            used |= group[0]
            chosen = group[1] + chosen
        if used:
            groups.append((used, chosen))
    return groups


def _of_outputs(program: Program, weights: set[int], outputs: list[int]) -> Program:
    """Restrict a program to some outputs; arrays are named by their order, so that equal pieces are equal."""
    items = {}
    for number, index in enumerate(sorted(indices_needed(program.instructions, {*outputs, *weights}))):
        item = program.instructions[index]
        named = {"weight": (f"w{number}",), "input": (f"x{number}",)}.get(item.operation, item.constants)
        items[index] = replace(item, constants=named)
    return arranged(items, [(f"y{number}", index) for number, index in enumerate(outputs)])[0]


def relaxed_bound(
    program: Program, *, lower: int, p: int, seed: int, work: WorkBudget | None = None
) -> UpperBound | None:
    """Bound an analytic program through the pieces of a polynomial one; None for large programs.

    `lower` is a lower bound: where the pieces' ranks add up to it, cutting loses nothing.
    """
    if program.parameter_count > MOST_RELAXED_WEIGHTS:
        return None
    work = work or WorkBudget(OF_ANALYTIC)
    analytic = {k for k, item in enumerate(program.instructions) if item.operation in ANALYTIC}
    parts = pieces(relaxed(program, analytic), rank=lower, p=p, seed=seed, work=work)
    different = list(dict.fromkeys(parts))
    bounds: dict[Program, int] = {}
    for number, part in enumerate(different):
        bounds[part] = _piece_bound(part, p=p, seed=seed, work=work.share(1 / (len(different) - number)))
    count = f"{len(parts)} pieces that share no weights, " if len(parts) > 1 else ""
    method = f"{count}new inputs in place of analytic steps: weights minus verified vector fields"
    return UpperBound(value=sum(bounds[part] for part in parts), method=method, argument=None)


def _piece_bound(part: Program, *, p: int, seed: int, work: WorkBudget) -> int:
    if part.parameter_count > MOST_WEIGHTS_OF_A_PIECE or work.left <= 0:
        return part.parameter_count
    rank = rank_of(part, p, seed)
    search = Search(part, p=p, seed=seed, work=work.share(0.9), corank=part.parameter_count - rank).run(1)
    return UpperBounds(p=p, seed=seed, work=work).best(part, search.fields, rank).value
