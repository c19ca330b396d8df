"""An upper bound for analytic programs: they factor through polynomial ones, which fall into pieces.

Put a new input in the place of every analytic instruction, and let its argument be an output: the values of the old program are
computed from those of the new one, so that the old image is no larger than the new one. The same may be done at any place. Done
where no weight is on both sides, it leaves pieces that share no weights; their dimensions add up to an upper bound.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from functools import lru_cache

from m2bridge.programs.instructions import ANALYTIC
from m2bridge.programs.program import Builder, Program
from m2bridge.programs.ranks import generic_rank
from m2bridge.symmetry.bounds import Bounds
from m2bridge.symmetry.search import Search

MOST_WEIGHTS = 2500
MOST_WEIGHTS_OF_A_PIECE = 700
"""Larger pieces are not searched for symmetries: all their weights count."""


def relaxed_bound(
    program: Program, *, lower: int, p: int, seed: int, seconds: float
) -> tuple[int, str] | None:
    """An upper bound of the dimension of an analytic program and how it was found; None for large ones.

    `lower` is a lower bound: where the pieces' ranks add up to it, cutting loses nothing.
    """
    if program.vanishing or program.parameter_count > MOST_WEIGHTS:
        return None
    until = time.monotonic() + seconds
    analytic = {k for k, item in enumerate(program.instructions) if item.operation in ANALYTIC}
    parts = pieces(relaxed(program, analytic), rank=lower, p=p, seed=seed, until=until)
    bounds: dict[Program, int] = {}
    for number, part in enumerate(parts):
        left = (until - time.monotonic()) / (len(parts) - number)
        if part not in bounds:
            bounds[part] = _bound(part, p=p, seed=seed, seconds=left)
    count = f"{len(parts)} pieces that share no weights, " if len(parts) > 1 else ""
    method = f"{count}new inputs in the place of analytic steps: weights minus verified vector fields"
    return sum(bounds[part] for part in parts), method


def _bound(part: Program, *, p: int, seed: int, seconds: float) -> int:
    if part.parameter_count > MOST_WEIGHTS_OF_A_PIECE or seconds <= 0:
        return part.parameter_count
    rank = _rank(part, p, seed)
    search = Search(part, p=p, seed=seed, seconds=seconds, corank=part.parameter_count - rank)
    return Bounds(p=p, seed=seed, seconds=1.0).best(part, search.run(1).fields, rank).value


@lru_cache(maxsize=64)
def _rank(program: Program, p: int, seed: int) -> int:
    return generic_rank(program, p=p, seed=seed).rank


def relaxed(program: Program, places: Collection[int]) -> Program:
    """The program with new inputs at these places, whose values before that (of analytic steps the arguments) are outputs too.

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
    for place, item in enumerate(program.instructions):
        own = tuple(moved[k] for k in item.operands)
        if item.operation in ("weight", "input"):
            letter = "w" if item.operation == "weight" else "x"
            moved[place] = builder.write(item.operation, (), f"{letter}{place}", shape=item.shape)
        elif place not in places:
            moved[place] = builder.write(item.operation, own, *item.constants, shape=item.shape)
        else:
            moved[place] = builder.write("input", (), f"x{place}", shape=item.shape)
            analytic = item.operation in ANALYTIC  # all of these have one operand
            outputs.append(
                own[0] if analytic else builder.write(item.operation, own, *item.constants, shape=item.shape)
            )
    outputs = [moved[place] for _, place in program.outputs] + outputs
    return builder.finished([(f"y{number}", place) for number, place in enumerate(outputs)])


def pieces(program: Program, *, rank: int, p: int, seed: int, until: float) -> list[Program]:
    """Programs that share no weights, through whose values the program factors, their ranks adding up to `rank`.

    Nearly equal sides are tried first.
    """
    several: dict[frozenset[frozenset[str]], tuple[Program, ...]] = {}
    for place, item in enumerate(program.instructions):
        if item.operands:
            cut = relaxed(program, {place})
            groups = _groups(cut)
            if len(groups) > 1:  # of places with the same split of the weights the last
                names = list(cut.parameters)
                split = frozenset(frozenset(names[k] for k in used) for used, _ in groups)
                several[split] = tuple(_of_outputs(cut, *group) for group in groups)
    for sides in sorted(several.values(), key=lambda sides: max(side.parameter_count for side in sides)):
        if time.monotonic() > until:
            break
        ranks = [_rank(side, p, seed) for side in sides]
        if sum(ranks) == rank:
            found = zip(sides, ranks, strict=True)
            return [
                piece for side, own in found for piece in pieces(side, rank=own, p=p, seed=seed, until=until)
            ]
    return [program]


def _groups(program: Program) -> list[tuple[set[int], list[int]]]:
    """Weights that outputs use together, and the places of these outputs."""
    reached: list[frozenset[int]] = []
    for place, item in enumerate(program.instructions):
        own = frozenset({place}) if item.operation == "weight" else frozenset[int]()
        reached.append(own.union(*(reached[k] for k in item.operands)))
    groups: list[tuple[set[int], list[int]]] = []
    for _, place in program.outputs:
        used, chosen = set(reached[place]), [place]
        for group in [g for g in groups if g[0] & used]:
            groups.remove(group)
            used |= group[0]
            chosen = group[1] + chosen
        if used:
            groups.append((used, chosen))
    return groups


def _of_outputs(program: Program, weights: set[int], outputs: list[int]) -> Program:
    """Some outputs of a program with what they need; arrays are named by their order, so that equal pieces are equal."""
    needed = {*outputs, *weights}
    for place in reversed(range(len(program.instructions))):
        if place in needed:
            needed.update(program.instructions[place].operands)
    builder, moved = Builder(), dict[int, int]()
    for number, place in enumerate(sorted(needed)):
        item = program.instructions[place]
        named = {"weight": (f"w{number}",), "input": (f"x{number}",)}.get(item.operation, item.constants)
        own = tuple(moved[k] for k in item.operands)
        moved[place] = builder.write(item.operation, own, *named, shape=item.shape)
    return builder.finished([(f"y{number}", moved[place]) for number, place in enumerate(outputs)])
