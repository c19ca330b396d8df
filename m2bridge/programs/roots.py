"""Square roots modulo a prime: points at which all of them exist, and points that show that they are independent.

A program with square roots is evaluated at points modulo p at which every radicand is a square other than zero. Weights and
inputs are drawn until this is so; of the two roots the one below p / 2 is taken. The rank of the Jacobian there is a lower bound
of the generic rank over the real numbers, provided that no radicand is the square of a function that is made of weights, inputs
and earlier roots (``docs/square-roots.md`` has the proof). Points that were rejected show this: one for each root, with the same
weights if the root depends on inputs, at which the roots before it exist and it does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from m2bridge.errors import InputError, OutOfReachError
from m2bridge.linear.residues import field_of
from m2bridge.programs.arithmetics import PrimeFieldArithmetic, ZeroDenominatorError, square_roots
from m2bridge.programs.points import INPUTS, NOTHING_HELD, Held, Integers, draw_inputs, draw_weights, lettered
from m2bridge.programs.program import Program, arranged, indices_needed
from m2bridge.programs.run import ExponentialValues, evaluate

MOST_DRAWS = 2**22
"""Points that are drawn for one set of points with all roots."""
ENOUGH_DRAWS = 64
"""A root that exists at all of these points, or at none, does so everywhere but for a chance of 2^-64."""
SEED_STEP = 1_000_003
"""From the seed of a point to the next one."""
_BATCH = (64, 1024)  # least and greatest number of points that are evaluated together
_VALUES = 2**22  # numbers that are computed together

Radicands = Callable[[int, Integers], Integers]
"""The flat radicands of one instruction modulo p at numbered points: (points, entries)."""
RootEntry = tuple[int, int]
"""The index of a square root, and one of its flat entries."""


@dataclass(frozen=True)
class SquareRoots:
    """Evidence that a rank at a point with square roots is a lower bound.

    Attributes
    ----------
    draws: the numbers of the inputs at which all roots exist.
    rejected_inputs: for each root that depends on inputs, in order, the number of an input at which the roots before it exist and
        it does not.
    rejected_weights: the same for each root of weights alone: the seed of weights.
    """

    draws: tuple[int, ...]
    rejected_inputs: tuple[int, ...]
    rejected_weights: tuple[int, ...]


class PointsWithRoots:
    """Numbered points at which all of some square roots exist, found by trying."""

    def __init__(
        self, program: Program, roots: Sequence[int], radicands: Radicands, *, p: int, first: int = 0
    ) -> None:
        self.program, self.roots, self.radicands, self.p = program, roots, radicands, p
        self.first_number = self.next_number = first
        self.accepted: list[int] = []
        self.rejected: dict[RootEntry, int] = {}
        self._reached: Counter[RootEntry] = Counter()
        self._passed: Counter[RootEntry] = Counter()

    @property
    def entries(self) -> list[RootEntry]:
        """List the square roots, entry by entry."""
        return [(k, entry) for k in self.roots for entry in range(self.program.instructions[k].size)]

    @property
    def witnesses(self) -> tuple[int, ...]:
        """Return for each entry of each root a point at which the roots before it exist and it does not."""
        return tuple(self.rejected[entry] for entry in self.entries)

    def first(self, count: int, *, witnesses: bool = True) -> Integers:
        """Return the first `count` points; with `witnesses`, go on until each root was seen not to exist at one point."""
        if not self.roots:
            return np.arange(self.first_number, self.first_number + count)
        missing = set(self.entries) if witnesses else set()
        while len(self.accepted) < count or missing - set(self.rejected):
            if self.next_number - self.first_number > MOST_DRAWS:
                raise OutOfReachError(
                    f"the network has {len(self.entries)} square roots for one input, and too few of {MOST_DRAWS} random "
                    "points have all of them modulo a prime; record it with fewer tokens"
                )
            self._extend()
        return np.array(self.accepted[:count])

    def _extend(self) -> None:
        """Try the next points. Points at which a denominator is zero are left out, with others of their batch.

        The size of a batch depends on the program alone, so that the points do too.
        """
        sizes = sum(item.size for item in self.program.instructions)
        batch = min(_BATCH[1], max(_BATCH[0], _VALUES // sizes))
        numbers = np.arange(self.next_number, self.next_number + batch)
        self.next_number += batch
        try:
            for index in self.roots:
                if len(numbers):
                    numbers = self._survivors(index, numbers)
        except ZeroDenominatorError:
            return
        self.accepted += numbers.tolist()

    def _survivors(self, index: int, numbers: Integers) -> Integers:
        """Return the points at which all entries of one root exist; keep one at which each entry does not."""
        table = self.radicands(index, numbers)
        exists = square_roots(self.p)[table] > 0
        alive = np.ones(len(numbers), dtype=bool)
        for entry in range(table.shape[1]):
            key = (index, entry)
            self._reached[key] += int(alive.sum())
            failing = numbers[alive & ~exists[:, entry] & (table[:, entry] != 0)]
            if len(failing):
                self.rejected.setdefault(key, int(failing[0]))
            alive &= exists[:, entry]
            self._passed[key] += int(alive.sum())
            self._refuse_if_dependent(key)
        return numbers[alive]

    def _refuse_if_dependent(self, key: RootEntry) -> None:
        if self._reached[key] < ENOUGH_DRAWS or (self._passed[key] and key in self.rejected):
            return
        text = f"%{key[0]} = {self.program.instructions[key[0]].text}"
        if not self._passed[key]:
            raise InputError(
                f"{text}: its radicand is zero, or a square times a constant or a function of weights"
            )
        raise InputError(
            f"{text}: its radicand is the square of a function, or of a product with earlier square roots. Such a root is an "
            "absolute value, whose sign depends on the point; write the function itself, or use one root of each radicand"
        )


def input_roots(
    program: Program, weights: Mapping[str, Integers], units: Callable[[Integers], ExponentialValues], *, p: int, seed: int,
    stream: int = INPUTS, first: int = 0,
) -> PointsWithRoots:  # fmt: skip
    """Return the inputs, numbered from `first` in their stream, at which the square roots exist for given weights.

    `units` returns the values in place of exponentials for numbered inputs.
    """
    roots = [k for k in program.roots if program.sees_inputs[k]]
    arithmetic = PrimeFieldArithmetic(field_of(p))
    at_weights = lettered(arithmetic, weights)

    def radicands(index: int, numbers: Integers) -> Integers:
        operand = program.instructions[index].operands[0]
        point = at_weights | lettered(arithmetic, draw_inputs(program, p, seed, numbers, stream), "N")
        value = evaluate(program, arithmetic, point, units(numbers), stop=operand + 1)[operand]
        return arithmetic.field.canonical(value.flattened().behind({"N": len(numbers)}))

    return PointsWithRoots(program, roots, radicands, p=p, first=first)


def weight_roots(program: Program, *, p: int, seed: int, held: Held = NOTHING_HELD) -> PointsWithRoots:
    """Return the points, numbered by the order of their seeds, at which the square roots of weights alone exist."""
    roots = [k for k in program.roots if not program.sees_inputs[k]]
    programs = {k: _computed_part(program, program.instructions[k].operands[0]) for k in roots}
    arithmetic = PrimeFieldArithmetic(field_of(p))

    def radicands(index: int, numbers: Integers) -> Integers:
        subprogram = programs[index]
        tables = []
        for point_seed in seeds(seed, numbers):
            weights = lettered(arithmetic, draw_weights(program, p, point_seed, held))
            value = evaluate(subprogram, arithmetic, weights)[subprogram.outputs[0][1]]
            tables.append(arithmetic.field.canonical(value.flattened().array))
        return np.stack(tables)

    return PointsWithRoots(program, roots, radicands, p=p)


def seeds(first: int, numbers: Iterable[int]) -> list[int]:
    """Return the seeds of points with these numbers."""
    return [first + int(number) * SEED_STEP for number in numbers]


def _computed_part(program: Program, index: int) -> Program:
    """Return the program of one value; it must have no exponentials."""
    needed = indices_needed(program.instructions, [index])
    subprogram = arranged({k: program.instructions[k] for k in needed}, [("y", index)])[0]
    if subprogram.exponential:
        raise InputError("the square root of an exponential of weights alone is not supported")
    return subprogram
