"""Bound analytic programs from above, by pieces of a polynomial program that share no weights.

Replace every analytic instruction by a new input, and add its argument to the outputs. The values of the old program are computed
from those of the new one, so that the dimension of the old image is at most that of the new one. The same holds for replacing
any instruction. If no weight is used on both sides of it, the program splits into pieces, and the sum of their dimensions is a
bound.
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
    """Replace instructions by new inputs, and add the old values (for analytic instructions the arguments) to the outputs.

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
        operands = tuple(moved[k] for k in item.operands)
        if item.operation in ("weight", "input"):
            letter = "w" if item.operation == "weight" else "x"
            moved[index] = builder.write(item.operation, (), f"{letter}{index}", shape=item.shape)
            continue
        if index in indices and item.operation in ANALYTIC:  # all of these have one operand
            outputs += operands
        else:
            moved[index] = builder.write(item.operation, operands, *item.constants, shape=item.shape)
            outputs += [moved[index]] if index in indices else []
        if index in indices:
            moved[index] = builder.write("input", (), f"x{index}", shape=item.shape)
    outputs = [moved[index] for _, index in program.outputs] + outputs
    return builder.finished([(f"y{number}", index) for number, index in enumerate(outputs)])


def pieces(program: Program, *, rank: int, p: int, seed: int, work: WorkBudget) -> list[Program]:
    """Split the program into programs that share no weights and determine its values, with ranks that add up to `rank`.

    Splits into nearly equal sides are tried first, until the `work` budget is spent.
    """
    several: dict[frozenset[frozenset[str]], tuple[Program, ...]] = {}
    for index, item in enumerate(program.instructions):
        if item.operands:
            split_program = relaxed(program, {index})
            groups = _groups(split_program)
            if len(groups) > 1:  # the last of the indices with the same split of the weights is kept
                names = list(split_program.parameters)
                split = frozenset(frozenset(names[k] for k in used) for used, _ in groups)
                several[split] = tuple(_of_outputs(split_program, *group) for group in groups)
    for sides in sorted(several.values(), key=lambda sides: max(side.parameter_count for side in sides)):
        if not work.spend(sum(map(of_rank, sides))):
            break
        ranks = [rank_of(side, p, seed) for side in sides]
        if sum(ranks) == rank:
            ranked = zip(sides, ranks, strict=True)
            return [
                piece
                for side, side_rank in ranked
                for piece in pieces(side, rank=side_rank, p=p, seed=seed, work=work)
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

    `lower` is a lower bound of the dimension. If the ranks of the pieces add up to it, splitting loses nothing.
    """
    if program.parameter_count > MOST_RELAXED_WEIGHTS:
        return None
    work = work or WorkBudget(OF_ANALYTIC)
    analytic = {k for k, item in enumerate(program.instructions) if item.operation in ANALYTIC}
    all_pieces = pieces(relaxed(program, analytic), rank=lower, p=p, seed=seed, work=work)
    distinct = list(dict.fromkeys(all_pieces))
    bounds: dict[Program, int] = {}
    for number, piece in enumerate(distinct):
        bounds[piece] = _piece_bound(piece, p=p, seed=seed, work=work.share(1 / (len(distinct) - number)))
    count = f"{len(all_pieces)} pieces that share no weights, " if len(all_pieces) > 1 else ""
    method = f"{count}new inputs in place of analytic steps: weights minus verified vector fields"
    return UpperBound(value=sum(bounds[piece] for piece in all_pieces), method=method, argument=None)


def _piece_bound(piece: Program, *, p: int, seed: int, work: WorkBudget) -> int:
    if piece.parameter_count > MOST_WEIGHTS_OF_A_PIECE or work.left <= 0:
        return piece.parameter_count
    rank = rank_of(piece, p, seed)
    search = Search(piece, p=p, seed=seed, work=work.share(0.9), corank=piece.parameter_count - rank).run(1)
    return UpperBounds(p=p, seed=seed, work=work).best(piece, search.fields, rank).value
