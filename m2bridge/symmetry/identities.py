"""Whether a vector field is a symmetry, decided by exact expansion of its derivative.

The derivative is carried forward through the program as polynomials over QQ. Everything that does not depend on the weights in
the field is a new variable. So is an array whose derivative is B times itself, B a matrix of numbers: after that was
verified, the array may take any value. This is a chain through the layers: a symmetry between two layers is expanded in
these layers alone, and where the derivative has become zero, it stays zero in all that follows. A field that is no
symmetry for independent values of these variables may still be one; then fewer and fewer arrays are taken for variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import comb, prod

import numpy as np
from flint import Ordering, fmpq, fmpq_mpoly_ctx

from m2bridge.errors import OutOfReachError
from m2bridge.linear.modular import echelon_mod
from m2bridge.linear.residues import field_of, rational
from m2bridge.programs.arithmetics import (
    FloatArithmetic,
    ObjectArithmetic,
    PrimeFieldArithmetic,
    object_array,
)
from m2bridge.programs.points import Integers, integers
from m2bridge.programs.program import Instruction, Program
from m2bridge.programs.run import Lettered, apply, evaluate, tangent, tangents
from m2bridge.symmetry.fields import VectorField, arrays_at, flat_values

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
        self.arithmetic = PrimeFieldArithmetic(field_of(p))
        self.carried: dict[VectorField, frozenset[int]] = {}
        """Instructions that were used to verify a field, for fields that do not need the whole program."""
        self._expansions: dict[tuple[frozenset[str], frozenset[int], frozenset[int], bool], _Expansion] = {}
        self.owners = [(name, k) for name, shape in program.parameters.items() for k in range(prod(shape))]
        """For each flat weight its array and its place there."""
        small = [item.size for item in program.instructions if item.size <= MOST_CHAINED]
        self.samples = max(small, default=1) + 6
        self.weights, self.inputs = (
            integers(seed, stream, self.samples * width, p).reshape(self.samples, width)
            for stream, width in ((21, program.parameter_count), (22, program.input_count))
        )
        arrays = arrays_at(program, self.weights, self.inputs, self.arithmetic)
        self.values = evaluate(program, self.arithmetic, arrays) if program.polynomial else []

    def is_symmetry(self, field: VectorField) -> bool | None:
        """Return whether a field is a symmetry: True and False are proved, None means that the expansion is infeasible."""
        if not self.program.polynomial:
            return None
        moves = self._moves(field)
        alive = frozenset(moves)
        if any(index in alive for _, index in self.program.outputs):
            return False  # it moves an output at one point modulo p
        names = frozenset(self.owners[i][0] for i in field.involved)
        relations = self._relations(moves)
        verdict: bool | None = False
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
            if item.operands and item.size <= MOST_CHAINED:
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
        self.carried = [k for k, item in enumerate(items) if alive.intersection(item.operands)]
        needed = weights | {o for k in self.carried for o in items[k].operands}
        for k in range(len(items) - 1, -1, -1):
            if k in needed and opened[k] and k not in chained:
                needed.update(items[k].operands)
        self.leaves = {
            k
            for k in needed
            if items[k].operation != "constant" and (k in chained or not opened[k] or not items[k].operands)
        }
        count = sum(items[k].size for k in self.leaves)
        if count > MOST_VARIABLES:
            raise OutOfReachError(f"an expansion in {count} variables is infeasible", estimate=count)
        ring = fmpq_mpoly_ctx.get([f"v{i}" for i in range(count)], Ordering.lex)
        self.arithmetic = ObjectArithmetic(lambda q: fmpq(q.numerator, q.denominator))
        variables = list(ring.gens())
        self.values: dict[int, Lettered] = {}
        for k in sorted(needed):
            if k in self.leaves:
                taken, variables = variables[: items[k].size], variables[items[k].size :]
                if k in chained:  # entries that are zero, such as masked ones, stay zero
                    entries = self._computed(k).array.reshape(-1)
                    taken = [fmpq(0) if entry == 0 else v for entry, v in zip(entries, taken, strict=True)]
                self.values[k] = Lettered("", object_array(taken, items[k].shape), self.arithmetic)
            else:
                self.values[k] = self._computed(k)

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
                return False
            moves[k] = derivative
            if k in self.chained:
                if k not in self.values:
                    continue
                expected = _combination(self._computed(k), relations[k]).array.reshape(-1)
                if any(a - b != 0 for a, b in zip(derivative.array.reshape(-1), expected, strict=True)):
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
        derivative = tangent(self.arithmetic, item, operands, operands[0], directions)
        return (
            derivative
            if derivative is not None and any(e != 0 for e in derivative.array.reshape(-1))
            else None
        )

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
