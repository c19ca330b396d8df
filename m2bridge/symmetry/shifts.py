"""Shifts of a weight that a later weight undoes, or that nothing sees: biases before a linear map, or of keys under softmax.

The derivative along a weight is carried through the factored program as a sum of products of weights and values. A later bias
undoes it if it depends on no input; a softmax does not see what is constant along its axis, and its weights add up to one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np

from m2bridge.symmetry.axis_groups import entries_of
from m2bridge.symmetry.factored import FactoredProgram, Letters, Tensor
from m2bridge.symmetry.fields import Monomial, VectorField

_MOST_FACTORS = 2
"""A later bias moves by a product of at most this many weights."""
_SUMMED = 1_000_000
"""Letters from here on are summed over."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A part of the derivative of a tensor along entry f of a weight.

    `pinned` says for each axis of the tensor the axis of the weight whose index it must have, or None. `factors` are tensors with
    a letter for each axis: the position of an axis of the result, -1 - k for the index f_k, or a letter that is summed over.
    """

    coefficient: Fraction
    pinned: tuple[int | None, ...]
    factors: tuple[tuple[int, Letters], ...] = ()

    def is_constant_along(self, position: int) -> bool:
        """Return whether the term does not depend on the index of an axis."""
        return self.pinned[position] is None and all(position not in letters for _, letters in self.factors)


@dataclass(frozen=True, eq=False, slots=True)
class Shift:
    """A weight whose entries may be shifted, and the biases that undo it, each with the terms by which it moves.

    Entries that differ in the index of the axis `along` alone are shifted by the same number.
    """

    program: FactoredProgram
    weight: int
    answers: tuple[tuple[int, tuple[_Term, ...]], ...]
    along: int | None = None

    @property
    def dim(self) -> int:
        return len(self.lines())

    def lines(self) -> np.ndarray:
        """Return the flat weights that are shifted together, one row for each field."""
        entries = entries_of(self.program.tensors[self.weight])
        if self.along is None:
            return entries.reshape(-1, 1)
        return np.moveaxis(entries, self.along, -1).reshape(-1, entries.shape[self.along])

    @property
    def moved(self) -> tuple[str, ...]:
        """The names of the weights that move."""
        return tuple(self.program.tensors[k].name for k in (self.weight, *(k for k, _ in self.answers)))

    @property
    def name(self) -> str:
        return f"R^{self.dim}"

    @property
    def text(self) -> str:
        """The shift in words."""
        first, *others = self.moved
        first += "" if self.along is None else f" along axis {self.along}"
        return f"shift of {first}, " + (
            f"undone by {', '.join(others)}" if others else "which changes nothing"
        )

    def entries(self) -> list[np.ndarray]:
        """Return the flat weights that move, for each weight."""
        return [entries_of(self.program.tensors[k]) for k in (self.weight, *(k for k, _ in self.answers))]

    @property
    def unit(self) -> int:
        """By how much a field moves its entry of the weight: the common denominator of what the biases move."""
        return lcm(*(term.coefficient.denominator for _, terms in self.answers for term in terms))

    def fields(self) -> Iterator[VectorField]:
        """List the vector fields, one for each entry of the weight, or for each line along the axis."""
        shape, unit = self.program.tensors[self.weight].shape, self.unit
        kept = [1 if axis == self.along else n for axis, n in enumerate(shape)]
        for index, line in zip(np.ndindex(*kept), self.lines().tolist(), strict=True):
            terms: dict[tuple[int, Monomial], Fraction] = {(i, ()): Fraction(1) for i in line}
            for k, answer in self.answers:
                for term in answer:
                    self._add(terms, k, term, index)
            yield VectorField(tuple(sorted((i, int(unit * c), m) for (i, m), c in terms.items() if c)))

    def _add(
        self, terms: dict[tuple[int, Monomial], Fraction], k: int, term: _Term, index: tuple[int, ...]
    ) -> None:
        entries = entries_of(self.program.tensors[k])
        sizes = self._summed_sizes(term)
        pins = [slice(None) if j is None else slice(index[j], index[j] + 1) for j in term.pinned]
        places = np.argwhere(np.ones(entries[tuple(pins)].shape))
        offset = [pin.start or 0 for pin in pins]
        for place in places + np.array(offset, dtype=int) if pins else places:
            for summed in np.ndindex(*sizes.values()):
                at = dict(zip(sizes, summed, strict=True)) | dict(enumerate(place.tolist()))
                at |= {-1 - j: value for j, value in enumerate(index)}
                monomial = tuple(
                    sorted(
                        int(entries_of(self.program.tensors[w])[tuple(at[letter] for letter in letters)])
                        for w, letters in term.factors
                    )
                )
                key = (int(entries[tuple(place)]), monomial)
                terms[key] = terms.get(key, Fraction(0)) - term.coefficient

    def _summed_sizes(self, term: _Term) -> dict[int, int]:
        return {
            letter: n
            for k, letters in term.factors
            for letter, n in zip(letters, self.program.tensors[k].shape, strict=True)
            if letter >= _SUMMED
        }


def shifts(program: FactoredProgram) -> list[Shift]:
    """List the weights whose entries may be shifted, or else their lines along one axis."""
    found: list[Shift] = []
    for place, weight in program.weights():
        whole = _Carrying(program, place).result()
        lines = (_Carrying(program, place).result(axis) for axis in range(len(weight.shape)))
        found += [item for item in ([whole] if whole else lines) if item is not None]
    return found


class _NoShiftError(Exception):
    """The derivative cannot be undone."""


class _Carrying:
    """Carries the derivative along one weight through the program."""

    def __init__(self, program: FactoredProgram, weight: int) -> None:
        self.program, self.weight = program, weight
        self.uses = Counter(k for item in program.tensors for k in item.operands)
        self.terms: dict[int, list[_Term]] = {}
        self.answers: dict[int, list[_Term]] = {}
        self.letter = _SUMMED

    def result(self, along: int | None = None) -> Shift | None:
        """Return the shift, or None if the function changes."""
        axes = range(len(self.program.tensors[self.weight].shape))
        pinned = tuple(None if axis == along else axis for axis in axes)
        self.terms[self.weight] = [_Term(Fraction(1), pinned)]
        try:
            for place, item in enumerate(self.program.tensors):
                if any(k in self.terms for k in item.operands):
                    moved = self._step(item)
                    if moved:
                        self.terms[place] = moved
        except _NoShiftError:
            return None
        if any(k in self.terms for k in self.program.outputs):
            return None
        answers = tuple((k, tuple(terms)) for k, terms in self.answers.items())
        return Shift(self.program, self.weight, answers, along)

    def _step(self, item: Tensor) -> list[_Term]:
        if item.operation == "einsum":
            return [term for side in range(len(item.operands)) for term in self._einsum(item, side)]
        if item.operation == "add":
            return self._add(item)
        own = self.terms.get(item.operands[0], [])
        if item.operation == "scale":
            return [replace(term, coefficient=term.coefficient * item.number) for term in own]
        if item.operation == "softmax":
            along = [item.letters[0].index(letter) for letter in item.along]
            if all(term.is_constant_along(position) for term in own for position in along):
                return []
        raise _NoShiftError

    def _add(self, item: Tensor) -> list[_Term]:
        found = []
        for side, k in enumerate(item.operands):
            for term in self.terms.get(k, ()):
                found.append(_renamed(term, item.letters[side], item.result))
        for side, k in enumerate(item.operands):
            if self._can_answer(k):
                own = [_restricted(term, item.result, item.letters[side]) for term in found]
                if all(term is not None and self._is_of_weights(term) for term in own):
                    self.answers[k] = [term for term in own if term is not None]
                    return []
        return found

    def _can_answer(self, k: int) -> bool:
        """Return whether a tensor is a weight that is used once and does not move."""
        unmoved = k not in self.terms and k not in self.answers
        return self.program.tensors[k].operation == "weight" and self.uses[k] == 1 and unmoved

    def _is_of_weights(self, term: _Term) -> bool:
        """Return whether all factors of a term are weights that do not move."""
        return len(term.factors) <= _MOST_FACTORS and all(
            self.program.tensors[k].operation == "weight" and k not in self.terms and k not in self.answers
            for k, _ in term.factors
        )

    def _einsum(self, item: Tensor, side: int) -> Iterator[_Term]:
        """Multiply the terms of one operand by the other one and sum over letters."""
        own = item.letters[side]
        others = [(k, item.letters[j]) for j, k in enumerate(item.operands) if j != side]
        for term in self.terms.get(item.operands[side], ()):
            if len(others) + len(term.factors) > _MOST_FACTORS + 1:
                raise _NoShiftError
            yield self._product(item, own, term, others)

    def _product(
        self, item: Tensor, own: Letters, term: _Term, others: Sequence[tuple[int, Letters]]
    ) -> _Term:
        pins = {letter: j for letter, j in zip(own, term.pinned, strict=True) if j is not None}
        left = [
            (k, letters) for k, letters in others if not self._adds_up_to_one(k, letters, item, own, term)
        ]
        used = {own[a] for _, letters in term.factors for a in letters if 0 <= a < _SUMMED}
        used |= {letter for _, letters in left for letter in letters}
        coefficient, names = term.coefficient, dict[int, int]()
        sizes = self._sizes(item)
        for letter in dict.fromkeys([*own, *(a for _, letters in left for a in letters)]):
            if letter in pins:
                names[letter] = -1 - pins[letter]
            elif letter in item.result:
                names[letter] = item.result.index(letter)
            elif letter in used:
                self.letter += 1
                names[letter] = self.letter
            elif not any(letter in letters for _, letters in others):
                coefficient *= sizes[letter]  # a sum of equal terms
        factors = [
            (k, tuple(names[own[a]] if 0 <= a < _SUMMED else a for a in letters))
            for k, letters in term.factors
        ]
        factors += [(k, tuple(names[a] for a in letters)) for k, letters in left]
        pinned = tuple(pins.get(letter) for letter in item.result)
        return _Term(coefficient, pinned, tuple(factors))

    def _sizes(self, item: Tensor) -> dict[int, int]:
        return {
            letter: n
            for k, letters in zip(item.operands, item.letters, strict=True)
            for letter, n in zip(letters, self.program.tensors[k].shape, strict=True)
        }

    def _adds_up_to_one(self, k: int, letters: Letters, item: Tensor, own: Letters, term: _Term) -> bool:
        """Return whether an operand is a softmax that is summed along its axis with something constant."""
        other = self.program.tensors[k]
        if other.operation != "softmax":
            return False
        along = {letters[other.result.index(letter)] for letter in other.along}
        summed = {letter for letter in letters if letter not in item.result}
        return summed == along and all(
            letter in own and term.is_constant_along(own.index(letter)) for letter in along
        )


def _renamed(term: _Term, letters: Letters, result: Letters) -> _Term:
    """Return the term on the axes of a sum; axes that the operand lacks are free."""
    pins = dict(zip(letters, term.pinned, strict=True))
    factors = tuple(
        (k, tuple(result.index(letters[a]) if 0 <= a < _SUMMED else a for a in own))
        for k, own in term.factors
    )
    return _Term(term.coefficient, tuple(pins.get(letter) for letter in result), factors)


def _restricted(term: _Term, result: Letters, letters: Letters) -> _Term | None:
    """Return the term on some axes, if it is constant along the others."""
    if not all(term.is_constant_along(a) for a, letter in enumerate(result) if letter not in letters):
        return None
    pinned = tuple(term.pinned[result.index(letter)] for letter in letters)
    factors = tuple(
        (k, tuple(letters.index(result[a]) if 0 <= a < _SUMMED else a for a in own))
        for k, own in term.factors
    )
    return _Term(term.coefficient, pinned, factors)
