"""Parts of a program as programs of their own: where it is a composition, and where it falls into pieces that share no weights.

At a cut k the function is g(f(x), x), where f computes instruction k, and g has an input in its place. A part is numbered as the
checker numbers it: weights, inputs (the cut comes last among them), then the other instructions, in their old order.

Pieces are for analytic programs. Put a new input in the place of every analytic instruction, and let its argument be an output:
the values of the old program are computed from those of the new one, so that the old image is no larger than the new one.
The same may be done at any place. Done where no weight is on both sides, it leaves pieces whose dimensions add up to a bound.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from m2bridge.programs.instructions import ANALYTIC, flat_parts
from m2bridge.programs.program import Builder, Instruction, Program, arranged, places_needed
from m2bridge.programs.ranks import generic_rank
from m2bridge.programs.work import WorkBudget, of_rank


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
    """Where a program is cut: `first` ends in this place, and `second` begins with it."""

    place: int
    first: Part
    second: Part


def cuts(program: Program) -> list[Cut]:
    """All cuts that no weight passes, for each split of the weights one: what inputs there are may bypass it.

    Where all weights are on one side, the cut takes off what comes before or after them.
    """
    outputs = sorted({place for _, place in program.outputs})
    before, weights = _weights_before(program), frozenset(program.weights.values())
    groups: dict[frozenset[int], list[int]] = {}
    for k, item in enumerate(program.instructions):
        if not item.operands or k in outputs or not (before[k] or program.sees_inputs[k]):
            continue
        behind = part(program, outputs, k).program
        used = {program.weights[name] for name in behind.parameters}
        if (before[k] or len(behind.inputs) == 1) and not used & before[k]:
            groups.setdefault(before[k], []).append(k)
    found = []
    for split, places in groups.items():
        place = places[0] if split == weights else places[-1]
        found.append(Cut(place, part(program, [place], None), part(program, outputs, place)))
    return found


def part(program: Program, outputs: Sequence[int], cut: int | None) -> Part:
    """The program of what these places use, with an input in the place of the cut."""
    items = {k: program.instructions[k] for k in sorted(places_needed(program.instructions, outputs, cut))}
    if cut is not None and cut in items:
        name = "cut"
        while name in program.inputs or name in program.weights:
            name += "_"
        items[cut] = Instruction("input", (name,), (), items[cut].shape)
    made, order = arranged(items, [(f"y{n}", k) for n, k in enumerate(outputs)])
    spans = {program.weights[name]: span for name, _, span in flat_parts(program.parameters)}
    flat = [i for k in order if k in spans for i in range(spans[k].start, spans[k].stop)]
    return Part(made, tuple(flat), tuple(None if k == cut else k for k in order))


def _weights_before(program: Program) -> list[frozenset[int]]:
    """For each place, the weights from which it is computed."""
    found: list[frozenset[int]] = []
    for k, item in enumerate(program.instructions):
        own = frozenset([k]) if item.operation == "weight" else frozenset[int]()
        found.append(own.union(*(found[j] for j in item.operands)))
    return found


# -- pieces ----------------------------------------------------------------------------------------------


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
            continue
        if place in places and item.operation in ANALYTIC:  # all of these have one operand
            outputs += own
        else:
            moved[place] = builder.write(item.operation, own, *item.constants, shape=item.shape)
            outputs += [moved[place]] if place in places else []
        if place in places:
            moved[place] = builder.write("input", (), f"x{place}", shape=item.shape)
    outputs = [moved[place] for _, place in program.outputs] + outputs
    return builder.finished([(f"y{number}", place) for number, place in enumerate(outputs)])


def pieces(program: Program, *, rank: int, p: int, seed: int, work: WorkBudget) -> list[Program]:
    """Programs that share no weights, through whose values the program factors, their ranks adding up to `rank`.

    Nearly equal sides are tried first, until the `work` is done.
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
    """The rank of the Jacobian of a program at a random point modulo p."""
    return generic_rank(program, p=p, seed=seed).rank


def _groups(program: Program) -> list[tuple[set[int], list[int]]]:
    """Weights that outputs use together, and the places of these outputs."""
    before = _weights_before(program)
    groups: list[tuple[set[int], list[int]]] = []
    for _, place in program.outputs:
        used, chosen = set(before[place]), [place]
        for group in [g for g in groups if g[0] & used]:
            groups.remove(group)
            used |= group[0]
            chosen = group[1] + chosen
        if used:
            groups.append((used, chosen))
    return groups


def _of_outputs(program: Program, weights: set[int], outputs: list[int]) -> Program:
    """Some outputs of a program with what they need; arrays are named by their order, so that equal pieces are equal."""
    items = {}
    for number, place in enumerate(sorted(places_needed(program.instructions, {*outputs, *weights}))):
        item = program.instructions[place]
        named = {"weight": (f"w{number}",), "input": (f"x{number}",)}.get(item.operation, item.constants)
        items[place] = replace(item, constants=named)
    return arranged(items, [(f"y{number}", place) for number, place in enumerate(outputs)])[0]
