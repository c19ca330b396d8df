"""Values of a program at random points modulo p, also with exponentials and square roots.

Independent units are in the place of exponentials, also where exponentials satisfy relations: fields are verified for units, too.
Points at which a denominator is zero or a square root does not exist are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from m2bridge.errors import OutOfReachError
from m2bridge.linear.residues import field_of
from m2bridge.programs.arithmetics import Array, PrimeFieldArithmetic, square_roots
from m2bridge.programs.exponentials import Units
from m2bridge.programs.points import Integers, integer_rows
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate
from m2bridge.programs.work import entries
from m2bridge.symmetry.fields import arrays_at

_MOST_SAMPLED_VALUES = 1 << 22
"""Points are evaluated together as long as their arrays have at most this many entries."""
_MOST_TRIED_POINTS = 1 << 14
"""No more points are drawn: of a program with many square roots hardly any is left."""


class PointValues(NamedTuple):
    """Flat weights and inputs of some points, one point a row, and the values of all instructions there (axis N)."""

    weights: Integers
    inputs: Integers
    values: list[Lettered]


class RandomPoints:
    """Random points of a program, always the same ones for a seed and two streams, each with other weights and inputs."""

    def __init__(self, program: Program, p: int, seed: int, weights: int, inputs: int) -> None:
        self.program, self.p, self.seed = program, p, seed
        self.arithmetic = PrimeFieldArithmetic(field_of(p))
        self._streams = ((weights, program.parameter_count), (inputs, program.input_count))

    def between(self, start: int, stop: int) -> PointValues:
        """Return the points with these numbers at which the program is defined."""
        rows = np.arange(start, stop)
        weights, inputs = (
            integer_rows(self.seed, stream, rows, width, self.p) for stream, width in self._streams
        )
        if self.program.polynomial:
            arrays = arrays_at(self.program, weights, inputs, self.arithmetic)
            return PointValues(weights, inputs, evaluate(self.program, self.arithmetic, arrays))
        arithmetic = _UndefinedLeftOut(self.p, len(rows))
        arrays = arrays_at(self.program, weights, inputs, arithmetic)
        units = Units(
            self.program, {}, p=self.p, seed=self.seed, groups=len(rows), first_group=start, draws=rows
        )
        values = evaluate(self.program, arithmetic, arrays, units)
        kept = arithmetic.kept
        left = [Lettered(v.lead, v.array[kept] if v.lead else v.array, self.arithmetic) for v in values]
        return PointValues(weights[kept], inputs[kept], left)

    def first(self, count: int) -> PointValues:
        """Return at least `count` points at which the program is defined."""
        if self.program.polynomial:
            return self.between(0, count)
        size = max(2, min(count, _MOST_SAMPLED_VALUES // entries(self.program)))
        parts: list[PointValues] = []
        while sum(len(part.weights) for part in parts) < count:
            need_points(len(parts) * size)
            parts.append(self.between(len(parts) * size, (len(parts) + 1) * size))
        values = [
            Lettered(same[0].lead, np.concatenate([v.array for v in same]), self.arithmetic)
            if same[0].lead
            else same[0]
            for same in zip(*(part.values for part in parts), strict=True)
        ]
        weights, inputs = (np.concatenate(rows) for rows in zip(*(part[:2] for part in parts), strict=True))
        return PointValues(weights, inputs, values)


def need_points(drawn: int) -> None:
    """Raise OutOfReachError if too many points would be drawn."""
    if drawn > _MOST_TRIED_POINTS:
        raise OutOfReachError(
            f"square roots exist at too few of {_MOST_TRIED_POINTS} random points", estimate=drawn
        )


class _UndefinedLeftOut(PrimeFieldArithmetic):
    """F_p at several points, on the first axis of every array; those at which an operation is not defined are left out."""

    def __init__(self, p: int, points: int) -> None:
        super().__init__(field_of(p))
        self.kept = np.ones(points, dtype=bool)

    def reciprocal(self, array: Array) -> Array:
        return super().reciprocal(np.where(self._leave_out(array == 0), 1.0, array))

    def sqrt(self, array: Array) -> Array:
        missing = square_roots(self.field.p)[self.field.canonical(array)] == 0
        return super().sqrt(np.where(self._leave_out(missing), 1.0, array))

    def _leave_out(self, undefined: Array) -> Array:
        if undefined.any():
            at_points = undefined.shape[:1] == self.kept.shape  # otherwise a constant
            self.kept &= ~undefined.reshape(len(undefined), -1).any(axis=1) if at_points else False
        return undefined
