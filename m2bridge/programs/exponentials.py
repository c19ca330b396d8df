"""Exponentials modulo a prime: units in their place, and the independence under which ranks with them are lower bounds.

Modulo p there is no exponential function. A program with exponentials is therefore evaluated with a *unit*, a random number that
is not zero, in place of each exponential, and is differentiated by d(e^u) = e^u du. By Ax's theorem the rank of the Jacobian
at such a point is a lower bound of the generic rank over the real numbers, provided that

* the arguments that depend on weights alone are linearly independent over QQ, together with 1 and the weights, and
* no rational combination of the inputs and of the arguments that depend on an input is a function of the weights alone.

Two ranks modulo p show this (:func:`formal_exponentials`). Where arguments are dependent, as with e^u beside e^(2u), the relation
is found, and the dependent exponential is a monomial in the units of the others. ``docs/exponentials.md`` has the proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, lcm, prod
from typing import NamedTuple

import numpy as np

from m2bridge.linear.modular import echelon_mod
from m2bridge.linear.residues import field_of, rational, residue
from m2bridge.programs.arithmetics import Array, PrimeFieldArithmetic, ZeroDenominatorError
from m2bridge.programs.instructions import flat_parts, split_flat
from m2bridge.programs.points import Integers, integer_rows, integers, lettered
from m2bridge.programs.program import Program
from m2bridge.programs.roots import input_roots
from m2bridge.programs.run import Lettered, evaluate

WEIGHT_UNITS, SAMPLE_UNITS = 3, 4
"""Streams of units (:mod:`m2bridge.programs.points`): for functions of the weights, and for functions of weights and inputs."""
TEST_WEIGHTS, TEST_INPUTS = 5, 6
"""Streams of the points at which independence is tested."""
LARGEST_COEFFICIENT = 64
"""Bound of numerators and denominators in relations: a random residue modulo 8388593 reconstructs to numbers of about 2,000."""
MOST_COLUMNS = 4000
"""Columns of a rank that tests independence; 4,000 take about 5 s."""
EXTRA_ROWS = 8
"""Rows beyond the number of columns: random rows then show the rank."""

Relation = Mapping[int, Fraction]
"""Columns, and the coefficients with which they add up to a dependent argument."""


class ExponentialInstruction(NamedTuple):
    """An instruction with exponentials: its index, that of its operand, the column of its first argument, and how many it has."""

    instruction_index: int
    operand: int
    column: int
    size: int


@dataclass(frozen=True)
class Columns:
    """The functions whose independence matters: 1, the flat weights, the arguments without inputs, the inputs, the others.

    `sample_start` is the number of the first input: columns from there on depend on inputs.
    """

    gates: tuple[ExponentialInstruction, ...]
    weights: int
    inputs: int
    sample_start: int
    count: int

    def is_sample(self, column: int) -> bool:
        """Return whether a column depends on the inputs."""
        return column >= self.sample_start


@lru_cache(maxsize=64)
def columns_of(program: Program) -> Columns:
    """Return the numbered functions of a program: the arguments of its exponentials, with 1, weights and inputs."""
    indices = [k for k, item in enumerate(program.instructions) if item.operation in ("exp", "softmax")]
    gates = []
    start = sample_start = 1 + program.parameter_count
    for sees_input in (False, True):
        if sees_input:
            sample_start = start
            start += program.input_count
        for index in indices:
            if program.sees_inputs[index] is sees_input:
                item = program.instructions[index]
                gates.append(ExponentialInstruction(index, item.operands[0], start, item.size))
                start += item.size
    return Columns(tuple(gates), program.parameter_count, program.input_count, sample_start, start)


# -- units -----------------------------------------------------------------------------------------------


class Units:
    """Units in place of exponentials, drawn from a seed: a certificate names the seed.

    With N the common denominator of all relations, the exponential of an independent function is t^N for a drawn number t, and
    that of a dependent one the product of the t^(N c). `groups` is the number of weight points that are evaluated together, from
    number `first_group` on; `draws` are the numbers of the inputs, without them the first ones.
    """

    def __init__(
        self, program: Program, relations: Mapping[int, Relation], *, p: int, seed: int, groups: int = 1, first_group: int = 0,
        draws: Integers | None = None,
    ) -> None:  # fmt: skip
        self.program, self.columns, self.relations = program, columns_of(program), relations
        self.p, self.seed, self.groups, self.first_group, self.draws = p, seed, groups, first_group, draws
        self.gates = {gate.instruction_index: gate for gate in self.columns.gates}
        self._drawn: dict[tuple[int, int], Integers] = {}

    def at(self, draws: Integers) -> Units:
        """Return the units for other inputs."""
        return Units(
            self.program, self.relations, p=self.p, seed=self.seed, groups=self.groups, first_group=self.first_group, draws=draws
        )  # fmt: skip

    @property
    def exponent(self) -> int:
        """Return N, the common denominator of all coefficients of relations."""
        coefficients = (c for relation in self.relations.values() for c in relation.values())
        return lcm(*(c.denominator for c in coefficients))

    def value(self, index: int, argument: Lettered) -> Lettered:
        """Return the units of one instruction: one set for each sample, or for each group if it depends on no input."""
        gate = self.gates[index]
        lead, sizes = argument.lead, argument.array.shape[: len(argument.lead)]
        if not self.columns.is_sample(gate.column):
            lead, sizes = ("N", (self.groups,)) if self.groups > 1 else ("", ())
        table = np.empty((prod(sizes), gate.size), dtype=np.int64)
        power = self.exponent
        for k in range(gate.size):
            relation = self.relations.get(gate.column + k) or {gate.column + k: Fraction(1)}
            table[:, k] = self._monomial(relation, len(table), power)
        array = field_of(self.p).residues(table).reshape((*sizes, *argument.core))
        return Lettered(lead, array, argument.arithmetic)

    def _monomial(self, relation: Relation, points: int, power: int) -> Integers:
        value = np.ones(points, dtype=np.int64)
        for column, coefficient in relation.items():
            value = value * power_mod(self._unit(column, points), int(coefficient * power), self.p) % self.p
        return value

    def _unit(self, column: int, points: int) -> Integers:
        """Return the number drawn for one function, at each point; that of a function of the weights is one for each group."""
        start = self.columns.sample_start
        if self.columns.is_sample(column):
            return self._table(SAMPLE_UNITS, points, self.columns.count - start)[:, column - start]
        unit = self._table(WEIGHT_UNITS, self.groups, start)[:, column]
        if column == 0:  # in the place of e, a constant: the same at all points
            unit = np.full_like(unit, integers(self.seed, WEIGHT_UNITS, 1, self.p - 1)[0] + 1)
        return np.repeat(unit, points // self.groups)

    def _table(self, stream: int, points: int, width: int) -> Integers:
        if (stream, points) not in self._drawn:
            rows = np.arange(points) + (self.first_group if stream == WEIGHT_UNITS else 0)
            if stream == SAMPLE_UNITS and self.draws is not None:
                rows = self.draws
            self._drawn[stream, points] = integer_rows(self.seed, stream, rows, width, self.p - 1) + 1
        return self._drawn[stream, points]


def power_mod(base: Integers, exponent: int, p: int) -> Integers:
    """Return base^exponent modulo p, entry by entry; the entries are units, and the exponent may be negative."""
    exponent %= p - 1
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base % p
        base = base * base % p
        exponent >>= 1
    return result


# -- independence ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FormalExponentials:
    """Evidence that ranks with units are lower bounds: relations between arguments, and a test that the others are independent.

    `points` are the sizes of the test: how many weight points, with how many input points each, drawn from `seed`; `draws` are
    the numbers of the input points in a program with square roots, which do not exist at all points.
    """

    relations: Mapping[int, Relation]
    points: tuple[int, int]
    draws: tuple[int, ...] | None
    p: int
    seed: int


def formal_exponentials(program: Program, *, p: int, seed: int) -> FormalExponentials | str:
    """Return the relations between the arguments of all exponentials, or a sentence that explains why they were not determined.

    An argument may contain earlier exponentials, and these must be correct before it can be tested. So the instructions are
    tested in order, and each test uses the relations of the instructions before.
    """
    relations: dict[int, Relation] = {}
    columns = columns_of(program)
    if any(not program.sees_inputs[k] for k in program.roots):
        return "Ax's theorem is not applied to networks with square roots of weights alone"
    if columns.count - columns.weights > MOST_COLUMNS:
        return f"{columns.count - columns.weights} exponentials and inputs; at most {MOST_COLUMNS} are tested for independence"
    for _ in range(len(columns.gates) + 1):
        test = _Test(program, relations, p=p, seed=seed)
        new = test.first_new_relations()
        if isinstance(new, str):
            return new
        if not new:
            draws = None if test.draws is None else tuple(test.draws.tolist())
            return FormalExponentials(relations, test.points, draws, p, seed)
        relations |= new
    return "the relations between the arguments of exponentials were not determined"


class _PointsLeftOut(PrimeFieldArithmetic):
    """F_p at many weight points, on the first axis of every array; those at which a denominator is zero are left out."""

    def __init__(self, p: int, groups: int) -> None:
        super().__init__(field_of(p))
        self.kept = np.ones(groups, dtype=bool)

    def reciprocal(self, array: Array) -> Array:
        zero = array == 0
        if zero.any():
            if zero.shape[:1] != self.kept.shape:
                raise ZeroDenominatorError(self.field.p)
            self.kept &= ~zero.reshape(len(zero), -1).any(axis=1)
        return super().reciprocal(np.where(zero, 1.0, array))


class _Test:
    """Values of all columns at random points, for given relations between earlier arguments."""

    def __init__(self, program: Program, relations: Mapping[int, Relation], *, p: int, seed: int) -> None:
        self.program, self.relations, self.p, self.seed = program, relations, p, seed
        self.columns = columns_of(program)
        self.moving = self._weights_in_arguments()
        wide = self.columns.count - self.columns.sample_start
        members = 1 + max(1, min(wide, self.columns.inputs))
        needed = max(wide, 1 + len(self.moving) + self.columns.sample_start - 1 - self.columns.weights)
        self.points = (ceil((wide + EXTRA_ROWS) / (members - 1)) + EXTRA_ROWS, members)
        if self.moving:
            self.points = (max(self.points[0], needed + EXTRA_ROWS), members)
        groups = self.points[0]
        weights = integers(self.seed, TEST_WEIGHTS, groups * program.parameter_count, p)
        self.weights = weights.reshape(groups, program.parameter_count)
        self.draws = self._draws_with_roots() if program.roots else None

    def _draws_with_roots(self) -> Integers:
        """Return the numbers of inputs at which all square roots exist, for one weight point after the other."""
        program, p, (groups, members) = self.program, self.p, self.points
        numbers, first = [], 0
        for group in range(groups):
            units = Units(program, self.relations, p=p, seed=self.seed, first_group=group)
            arrays = split_flat(self.weights[group], program.parameters)
            points = input_roots(
                program, arrays, units.at, p=p, seed=self.seed, stream=TEST_INPUTS, first=first
            )
            numbers.append(points.first(members, witnesses=False))
            first = points.next_number
        return np.concatenate(numbers)

    def _weights_in_arguments(self) -> list[int]:
        """Return the flat weights that arguments without inputs, and remainders of relations, may depend on."""
        chosen = [gate.operand for gate in self.columns.gates if not self.columns.is_sample(gate.column)]
        indices: list[int] = []
        for name, _, window in flat_parts(self.program.parameters):
            reached = self.program.depending_on([self.program.weights[name]])
            if any(reached[index] for index in chosen):
                indices += range(window.start, window.stop)
        return indices

    def values(self) -> tuple[Integers, Integers]:
        """Return the values of functions of the weights (groups, columns), and of the others (groups, members, columns)."""
        groups, members = self.points
        program, p = self.program, self.p
        weights, rows = self.weights, groups * members if self.draws is None else self.draws
        inputs = integer_rows(self.seed, TEST_INPUTS, rows, program.input_count, p)
        inputs = inputs.reshape(groups, members, program.input_count)
        arithmetic = _PointsLeftOut(p, groups)
        arrays = lettered(arithmetic, split_flat(weights, program.parameters), "N")
        arrays |= lettered(arithmetic, split_flat(inputs, program.input_shapes), "NM")
        units = Units(program, self.relations, p=p, seed=self.seed, groups=groups, draws=self.draws)
        results = evaluate(program, arithmetic, arrays, units)
        constant = np.ones((groups, 1), dtype=np.int64)
        ours, others = [constant, weights], [inputs]
        for gate in self.columns.gates:
            sample = self.columns.is_sample(gate.column)
            sizes = {"N": groups, "M": members} if sample else {"N": groups}
            values = arithmetic.field.canonical(results[gate.operand].flattened().behind(sizes))
            (others if sample else ours).append(values)
        return np.concatenate(ours, axis=-1)[arithmetic.kept], np.concatenate(others, axis=-1)[
            arithmetic.kept
        ]

    def first_new_relations(self) -> dict[int, Relation] | str:
        """Return relations of the first instruction whose arguments are dependent; none where all are known."""
        ours, others = self.values()
        start, weights = self.columns.sample_start, self.columns.weights
        among_weights = [0, *(1 + i for i in self.moving), *range(1 + weights, start)]
        table = ours[:, among_weights]
        relations = _dependent(table, among_weights, self.p)
        differences = (others[:, 1:] - others[:, :1]) % self.p
        relations |= _dependent(
            differences.reshape(prod(differences.shape[:2]), differences.shape[2]),
            range(start, self.columns.count),
            self.p,
        )
        for gate in self.columns.gates:
            new = {
                column: relations[column]
                for column in range(gate.column, gate.column + gate.size)
                if column in relations and column not in self.relations
            }
            if new:
                return self._completed(new, ours, others)
        return {}

    def _completed(
        self, new: Mapping[int, Relation | None], ours: Integers, others: Integers
    ) -> dict[int, Relation] | str:
        """Return relations completed by their remainder, a number or a multiple of one weight; a sentence if this fails."""
        start, completed = self.columns.sample_start, dict[int, Relation]()
        for column, relation in new.items():
            if relation is None:
                return "the arguments of exponentials are dependent, and the relation has no small rational coefficients"
            rest: Relation | None = {}
            if self.columns.is_sample(column):
                left = others[:, 0, column - start].copy()
                for other, c in relation.items():
                    left = (left - others[:, 0, other - start] * residue(c, self.p)) % self.p
                rest = _multiple(left, ours[:, : 1 + self.columns.weights], self.p)
            if rest is None:
                return "arguments of exponentials differ by a function of the weights that is not a multiple of one weight"
            completed[column] = {**relation, **rest}
        return completed


def _multiple(values: Integers, table: Integers, p: int) -> Relation | None:
    """Return the column of which the values are a rational multiple, with the factor; nothing for zero, None if there is none."""
    if not values.any():
        return {}
    for column in range(table.shape[1]):
        if table[0, column]:
            factor = int(values[0]) * pow(int(table[0, column]), -1, p) % p
            if np.array_equal(table[:, column] * factor % p, values):
                coefficient = _small_rational(factor, p)
                return None if coefficient is None else {column: coefficient}
    return None


def _small_rational(value: int, p: int) -> Fraction | None:
    fraction = rational(value, p)
    small = fraction is not None and max(abs(fraction.numerator), fraction.denominator) <= LARGEST_COEFFICIENT
    return fraction if small else None


def _dependent(table: Integers, columns: Sequence[int], p: int) -> dict[int, Relation | None]:
    """Return the columns that depend on columns before them, with the coefficients; None if these are not small rationals."""
    if not len(columns):
        return {}
    reduced, pivots = echelon_mod(table, p)
    relations: dict[int, Relation | None] = {}
    for index in sorted(set(range(len(columns))) - set(pivots)):
        rows = np.flatnonzero(reduced[:, index]).tolist()
        coefficients = [_small_rational(int(reduced[row, index]), p) for row in rows]
        relation = {
            columns[pivots[row]]: c for row, c in zip(rows, coefficients, strict=True) if c is not None
        }
        relations[columns[index]] = relation if len(relation) == len(rows) else None
    return relations
