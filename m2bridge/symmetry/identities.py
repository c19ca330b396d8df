"""Whether a vector field is a symmetry, decided by exact expansion of its derivative.

The derivative is carried forward through the program as polynomials over QQ. Everything that does not depend on the weights in
the field is a new variable. So is an array whose derivative is B times itself, B a matrix of numbers: after that was
verified, the array may take any value. This is a chain through the layers: a symmetry between two layers is expanded in
these layers alone, and where the derivative has become zero, it stays zero in all that follows. A field that is no
symmetry for independent values of these variables may still be one; then fewer and fewer arrays are taken for variables.

Exponentials, reciprocals and square roots are variables too, with d(e^u) = e^u du, d(1/v) = -dv/v^2, and d(sqrt v) = c sqrt(v)/2
if dv = c v. To see whether a polynomial is zero, reciprocals are cleared as denominators, and squares of roots are replaced.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from fractions import Fraction
from math import comb, prod
from typing import Any

import numpy as np
from flint import Ordering, fmpq, fmpq_mpoly_ctx

from m2bridge.errors import OutOfReachError
from m2bridge.linear.modular import echelon_mod
from m2bridge.linear.residues import rational
from m2bridge.programs.arithmetics import FloatArithmetic, ObjectArithmetic, object_array
from m2bridge.programs.instructions import ANALYTIC
from m2bridge.programs.points import Integers
from m2bridge.programs.program import Instruction, Program
from m2bridge.programs.run import Lettered, apply, tangent, tangents
from m2bridge.symmetry.fields import VectorField, arrays_at, flat_values
from m2bridge.symmetry.random_points import RandomPoints

MOST_TERMS = 60_000
"""No instruction may multiply more terms; such an expansion takes about a second."""
MOST_VARIABLES = 2000  # variables of a polynomial identity that is expanded
MOST_CHAINED = 160
"""Arrays with more entries are not compared with their derivative."""

Relation = dict[int, list[tuple[int, Fraction]]]
"""For each entry whose derivative is not zero, the combination of entries that it is."""
Owners = Sequence[tuple[str, int]]


class Verifier:
    """Verifies fields of one program; what is expanded for one field is kept for those that move the same weights."""

    def __init__(self, program: Program, p: int, seed: int = 0) -> None:
        self.program, self.p = program, p
        self.carried: dict[VectorField, frozenset[int]] = {}
        """Instructions that were used to verify a field, for fields that do not need the whole program."""
        self._expansions: dict[tuple[frozenset[str], frozenset[int], frozenset[int], bool], _Expansion] = {}
        self.owners = [(name, k) for name, shape in program.parameters.items() for k in range(prod(shape))]
        """For each flat weight its array and its place there."""
        small = [item.size for item in program.instructions if item.size <= MOST_CHAINED]
        samples = RandomPoints(program, p, seed, 21, 22)
        self.weights, self.inputs, self.values = samples.first(max(small, default=1) + 6)
        self.samples, self.arithmetic = len(self.weights), samples.arithmetic

    def is_symmetry(self, field: VectorField) -> bool | None:
        """Return whether a field is a symmetry: True and False are proved, None means that the expansion is infeasible.

        In an analytic program exponentials are independent variables. A field that is no symmetry for these may still be one.
        """
        moves = self._moves(field)
        alive = frozenset(moves)
        verdict: bool | None = False if self.program.polynomial else None
        if any(index in alive for _, index in self.program.outputs):
            return verdict  # it moves an output at one point modulo p
        names = frozenset(self.owners[i][0] for i in field.involved)
        relations = self._relations(moves)
        for chained, whole in ((relations, False), ({}, False), ({}, True)):
            try:
                key = (names, alive, frozenset(chained), whole)
                if key not in self._expansions:
                    self._expansions[key] = _Expansion(self.program, names, alive, frozenset(chained), whole)
                if self._expansions[key].vanishes(field, self.owners, chained):
                    if not whole:
                        self.carried[field] = frozenset(self._expansions[key].carried)
                    return True
            except OutOfReachError:
                verdict = None
        return verdict

    def _moves(self, field: VectorField) -> dict[int, Integers]:
        """Return derivatives along the field at random points modulo p, flat, for the places where they are not zero."""
        moved = field.at(self.weights, self.p)
        names = {self.owners[i][0] for i in field.moved}
        arrays = arrays_at(self.program, moved, self.inputs, self.arithmetic)
        directions = {name: array for name, array in arrays.items() if name in names}
        derivatives = {}
        for index, item in enumerate(tangents(self.program, self.arithmetic, self.values, directions)):
            if item is not None:
                array = flat_values(item, self.samples, self.arithmetic)
                if array.any():
                    derivatives[index] = array
        return derivatives

    def _relations(self, moves: Mapping[int, Integers]) -> dict[int, Relation]:
        """Return the derivatives of arrays as linear combinations of their entries, fitted to the samples."""
        relations = {}
        for index, move in moves.items():
            item = self.program.instructions[index]
            if item.operands and item.size <= MOST_CHAINED and item.operation not in ANALYTIC:
                values = flat_values(self.values[index], self.samples, self.arithmetic)
                relation = self._relation(values, move)
                if relation is not None:
                    relations[index] = relation
        return relations

    def _relation(self, values: Integers, move: Integers) -> Relation | None:
        width, alive = values.shape[1], np.flatnonzero(move.any(axis=0))
        reduced, pivots = echelon_mod(np.concatenate([values, move[:, alive]], axis=1), self.p)
        if pivots and pivots[-1] >= width:
            return None
        relation: Relation = {}
        for k, entry in enumerate(alive):
            column = reduced[:, width + k]
            terms = [(pivots[row], rational(int(column[row]), self.p)) for row in np.flatnonzero(column)]
            if any(c is None for _, c in terms):
                return None
            relation[int(entry)] = [(j, c) for j, c in terms if c is not None]
        return relation


class _Expansion:
    """The part of a program through which a derivative is carried, over polynomials.

    `names` are the weights that the fields move or contain; `alive` the places where derivatives are expected not to vanish;
    `chained` those whose derivative is a combination of their entries. With `whole`, only weights and inputs are variables.
    """

    def __init__(
        self,
        program: Program,
        names: Iterable[str],
        alive: frozenset[int],
        chained: frozenset[int],
        whole: bool,
    ) -> None:
        self.program, self.alive, self.chained = program, alive, chained
        items = program.instructions
        weights = {program.weights[name] for name in names}
        opened = [bool(item.operands) for item in items] if whole else program.depending_on(weights)
        self.inverses = [
            k for k, item in enumerate(items) if opened[k] and item.operation in ("reciprocal", "sqrt")
        ]
        self.carried = [k for k, item in enumerate(items) if alive.intersection(item.operands)]
        needed = weights | {o for k in self.carried for o in items[k].operands}
        for k in range(len(items) - 1, -1, -1):
            if k in needed and (k in self.inverses or self._is_expanded(k, opened, chained)):
                needed.update(items[k].operands)
        self.inverses = [k for k in self.inverses if k in needed]
        self.leaves = {
            k
            for k in needed
            if items[k].operation != "constant" and not self._is_expanded(k, opened, chained)
        }
        count = sum(items[k].size for k in self.leaves)
        if count > MOST_VARIABLES:
            raise OutOfReachError(f"an expansion in {count} variables is infeasible", estimate=count)
        ring = fmpq_mpoly_ctx.get([f"v{i}" for i in range(count)], Ordering.lex)
        self.ring, self.arithmetic = ring, ObjectArithmetic(lambda q: fmpq(q.numerator, q.denominator))
        variables = list(ring.gens())
        self.defined: list[tuple[str, int, Any]] = []
        """For each variable that is a reciprocal or a root: which of both, its number, and the polynomial of its operand."""
        self.values: dict[int, Lettered] = {}
        for k in sorted(needed):
            if k in self.leaves:
                taken, variables = variables[: items[k].size], variables[items[k].size :]
                if k in chained:  # entries that are zero, such as masked ones, stay zero
                    entries = self._computed(k).array.reshape(-1)
                    taken = [fmpq(0) if entry == 0 else v for entry, v in zip(entries, taken, strict=True)]
                if items[k].operation == "softmax":
                    taken = _adding_up_to_one(items[k], taken)
                self._define(k, count - len(variables) - len(taken))
                self.values[k] = Lettered("", object_array(taken, items[k].shape), self.arithmetic)
            else:
                self.values[k] = self._computed(k)

    def _is_expanded(self, index: int, opened: Sequence[bool], chained: Container[int]) -> bool:
        """Return whether the value of an instruction is expanded in those of its operands."""
        item = self.program.instructions[index]
        return (
            opened[index] and bool(item.operands) and index not in chained and item.operation not in ANALYTIC
        )

    def _define(self, index: int, first: int) -> None:
        """Note what the variables from number `first` on are, if an instruction is a reciprocal or a root."""
        if index in self.inverses:
            item = self.program.instructions[index]
            entries = self.values[item.operands[0]].array.reshape(-1)
            self.defined += [(item.operation, first + n, entry) for n, entry in enumerate(entries)]

    def _computed(self, index: int) -> Lettered:
        item = self.program.instructions[index]
        operands = [self.values[o] for o in item.operands]
        _refuse_large(item, operands)
        return apply(self.arithmetic, item, operands)

    def vanishes(self, field: VectorField, owners: Owners, relations: Mapping[int, Relation]) -> bool:
        """Return whether the derivative along the field has the expected form everywhere."""
        moves = {
            self.program.weights[name]: Lettered("", array, self.arithmetic)
            for name, array in self._directions(field, owners).items()
        }
        for k in self.carried:
            derivative = self._moved(k, moves)
            if derivative is None:
                continue
            if k not in self.alive:
                if not all(self._is_zero(entry) for entry in derivative.array.reshape(-1)):
                    return False
                continue
            moves[k] = derivative
            if k in self.chained:
                if k not in self.values:
                    continue
                expected = _combination(self._computed(k), relations[k]).array.reshape(-1)
                if not all(
                    self._is_zero(a - b) for a, b in zip(derivative.array.reshape(-1), expected, strict=True)
                ):
                    return False
                moves[k] = _combination(self.values[k], relations[k])
        return True

    def _moved(self, index: int, moves: Mapping[int, Lettered]) -> Lettered | None:
        """Return the derivative of one instruction; None where it is zero."""
        item = self.program.instructions[index]
        directions = [moves.get(o) for o in item.operands]
        operands = [self.values[o] for o in item.operands]
        for o, move in enumerate(directions):
            if move is not None:
                _refuse_large(item, [move if n == o else operand for n, operand in enumerate(operands)])
        if item.operation in ("reciprocal", "sqrt"):
            derivative = self._moved_inverse(index, directions[0])
        else:
            value = self.values[index] if item.operation in ANALYTIC else operands[0]
            derivative = tangent(self.arithmetic, item, operands, value, directions)
        return (
            derivative
            if derivative is not None and any(e != 0 for e in derivative.array.reshape(-1))
            else None
        )

    def _moved_inverse(self, index: int, direction: Lettered | None) -> Lettered | None:
        """Return the derivative of reciprocals or roots of v: -q/v if v' = q v, else -v'/v^2; c/2 sqrt(v) if v' = c v.

        For roots c must be a number: certificates have no other derivatives of roots.
        """
        if direction is None:
            return None
        item, value = self.program.instructions[index], self.values[index]
        root = item.operation == "sqrt"
        operands = self.values[item.operands[0]].array.reshape(-1)
        moved = []
        for v, dv, f in zip(operands, direction.array.reshape(-1), value.array.reshape(-1), strict=True):
            quotient = self._quotient(dv, v)
            if root and not (isinstance(quotient, fmpq) or (quotient is not None and quotient.is_constant())):
                raise OutOfReachError("the derivative of a square root is not a multiple of the root")
            moved.append(-dv * f * f if quotient is None else quotient * f * fmpq(1 if root else -2, 2))
        return value.like(object_array(moved, value.array.shape))

    def _quotient(self, dividend: Any, divisor: Any) -> Any:
        """Return the quotient of two polynomials; None if it is no polynomial."""
        if isinstance(divisor, fmpq):
            return dividend / divisor
        quotient, rest = divmod(self.ring.constant(0) + dividend, divisor)
        return quotient if rest == 0 else None

    def _is_zero(self, value: Any) -> bool:
        """Return whether a polynomial is zero for the reciprocals and roots: they are eliminated one by one, the last first."""
        for operation, number, operand in reversed(self.defined):
            if isinstance(value, fmpq) or value == 0:
                break
            parts = _by_powers(self.ring, value, number)
            if len(parts) == 1:
                value = parts[next(iter(parts))]
                continue
            if operation == "reciprocal":
                powers = {max(parts) - k: part for k, part in parts.items()}
                value = _at(powers, operand)
            else:
                variable = self.ring.gens()[number]
                odd, even = ({k // 2: part for k, part in parts.items() if k % 2 == r} for r in (1, 0))
                value = _at(even, operand) + variable * _at(odd, operand)
        return bool(value == 0)

    def _directions(self, field: VectorField, owners: Owners) -> dict[str, np.ndarray]:
        directions: dict[str, np.ndarray] = {}
        for i, c, monomial in field.terms:
            name, index = owners[i]
            if name not in directions:
                directions[name] = self.arithmetic.zeros((prod(self.program.parameters[name]),))
            value = fmpq(c)
            for j in monomial:
                other, where = owners[j]
                value = value * self.values[self.program.weights[other]].array.reshape(-1)[where]
            directions[name][index] = directions[name][index] + value
        return {name: array.reshape(self.program.parameters[name]) for name, array in directions.items()}


def _combination(value: Lettered, relation: Relation) -> Lettered:
    """Return the derivative of an array that the relation states."""
    flat = value.array.reshape(-1)
    entries = [fmpq(0)] * len(flat)
    for k, terms in relation.items():
        for j, c in terms:
            entries[k] = entries[k] + flat[j] * fmpq(c.numerator, c.denominator)
    return value.like(object_array(entries, value.array.shape))


def _by_powers(ring: fmpq_mpoly_ctx, value: Any, number: int) -> dict[int, Any]:
    """Return the coefficients of a polynomial by the powers of one variable."""
    parts: dict[int, dict[tuple[int, ...], fmpq]] = {}
    for exponents, c in value.to_dict().items():
        rest = (*exponents[:number], 0, *exponents[number + 1 :])
        parts.setdefault(exponents[number], {})[rest] = c
    return {power: ring.from_dict(terms) for power, terms in parts.items()}


def _at(parts: Mapping[int, Any], operand: Any) -> Any:
    """Return the sum of coefficients times powers of an operand."""
    value = fmpq(0)
    for power in range(max(parts, default=0), -1, -1):
        if _terms(value) * _terms(operand) > MOST_TERMS:
            raise OutOfReachError(
                f"a common denominator has more than {MOST_TERMS} terms", estimate=MOST_TERMS
            )
        value = value * operand + parts.get(power, 0)
    return value


def _terms(value: Any) -> int:
    return 1 if isinstance(value, fmpq) else len(value)


def _adding_up_to_one(item: Instruction, variables: Sequence[Any]) -> list[Any]:
    """Replace the first variable of each line of a softmax by one minus the sum of the others."""
    axis = item.constants[0]
    table = np.moveaxis(object_array(list(variables), item.shape), axis, 0).copy()
    table[0] = 1 - table[1:].sum(axis=0) if len(table) > 1 else table[0] * 0 + 1
    return list(np.moveaxis(table, 0, axis).reshape(-1))


def _counts(item: Lettered) -> Lettered:
    """Return the number of terms of each entry."""
    numbers = [
        float(entry != 0) if isinstance(entry, fmpq) else float(len(entry))
        for entry in item.array.reshape(-1)
    ]
    return Lettered("", np.array(numbers).reshape(item.array.shape))


def _refuse_large(item: Instruction, operands: Sequence[Lettered]) -> None:
    """Refuse an instruction that would multiply too many terms, before it is expanded."""
    counts = [_counts(operand) for operand in operands]
    if item.operation == "power":
        n = int(item.constants[0])
        needed = sum(comb(int(t) + n - 1, n) for t in counts[0].array.reshape(-1) if t)
    elif item.operation in ("multiply", "einsum") and len(counts) == 2:
        needed = int(apply(FloatArithmetic(), item, counts).array.sum())
    else:
        return
    if needed > MOST_TERMS:
        raise OutOfReachError(
            f"{item.operation} would give {needed} terms, more than {MOST_TERMS}", estimate=needed
        )
