"""Shifts of a weight that later biases undo, or that nothing sees.

The derivative along a weight is carried through the factored program as a sum of products of weights and values. A later bias
undoes it if it depends on no input. Some of it vanishes: a softmax does not see what is constant along its axis, and its entries
add up to one; a centred array x - mean(x), as in LayerNorm, does not see what is constant along its axes, and its entries add up
to zero. Behind gains g of a norm, the columns of a linear map move by numbers divided by the gains. An
exponential moves by a multiple of itself; so do products, powers, and sums of what moves by one multiple. A quotient of two
such sums, as in linear attention, does not move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import lcm, prod

import numpy as np

from m2bridge.symmetry.axis_groups import entries_of
from m2bridge.symmetry.factored import FactoredProgram, Letters, Tensor
from m2bridge.symmetry.fields import Monomial, VectorField, without_denominators

_MOST_FACTORS = 2
"""A later bias moves by a product of at most this many weights."""
_MOST_PRODUCTS = 256
"""An array is not written as a sum of more products than this."""
_MOST_GAINS = 128
"""A field is multiplied by the product of at most this many gains."""
_RATES = {
    "exp": Fraction(1),
    "einsum": Fraction(1),
    "add": Fraction(1),
    "scale": Fraction(1),
    "power": Fraction(1),
    "reciprocal": Fraction(-1),
}
"""Steps of arrays that move by multiples of themselves, with the factor for these; that of a power is its exponent.

Certificates do not express that of a square root.
"""
_SUMMED = 1_000_000
"""Letters from here on are summed over."""

Factor = tuple[int, Letters]
"""A tensor with a letter for each axis."""
Product = tuple[Fraction, list[Factor]]
"""A product of tensors with a coefficient."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A part of the derivative of a tensor along entry f of a weight.

    `pinned` says for each axis of the tensor the axis of the weight whose index it must have, or None. A letter of `factors` and
    `divisors` is the position of an axis of the result, -1 - k for the index f_k, or a letter that is summed over.
    """

    coefficient: Fraction
    pinned: tuple[int | None, ...]
    factors: tuple[Factor, ...] = ()
    divisors: tuple[Factor, ...] = ()

    def is_constant_along(self, position: int) -> bool:
        """Return whether the term does not depend on the index of an axis."""
        parts = (*self.factors, *self.divisors)
        return self.pinned[position] is None and all(position not in letters for _, letters in parts)

    def on_axes(self, names: Mapping[int, int], pinned: tuple[int | None, ...]) -> _Term:
        """Return the term on other axes; `names` maps the positions of the present ones to letters."""
        factors, divisors = (
            tuple((k, tuple(names.get(a, a) for a in letters)) for k, letters in parts)
            for parts in (self.factors, self.divisors)
        )
        return _Term(self.coefficient, pinned, factors, divisors)


@dataclass(frozen=True, eq=False, slots=True)
class Shift:
    """A weight whose entries may be shifted, and the biases that undo it.

    Attributes
    ----------
    parts: the weights that move, the shifted one first, each with the terms by which it moves, but for the sign.
    along: axes of the weight; entries that differ in their indices alone are shifted together.
    centred: whether a centred array does not see the shift.
    """

    program: FactoredProgram
    parts: tuple[tuple[int, tuple[_Term, ...]], ...]
    along: Letters = ()
    centred: bool = False

    @property
    def _weight(self) -> Tensor:
        return self.program.tensors[self.parts[0][0]]

    @property
    def dim(self) -> int:
        return prod(self._lines)

    @property
    def _lines(self) -> list[int]:
        """Return the lengths of the axes of the weight, but 1 for those along which all entries are shifted together."""
        return [1 if axis in self.along else n for axis, n in enumerate(self._weight.shape)]

    @property
    def is_by_numbers(self) -> bool:
        """Return whether one weight moves alone, by numbers."""
        return len(self.parts) == 1 and not self.parts[0][1][0].divisors

    @property
    def moved(self) -> tuple[str, ...]:
        """The names of the weights that move."""
        return tuple(self.program.tensors[k].name for k, _ in self.parts)

    @property
    def name(self) -> str:
        return f"R^{self.dim}"

    @property
    def text(self) -> str:
        """The shift in words."""
        first, *others = self.moved
        axes = [f"axis {axis}{factor}" for axis, factor in (self._weight.axes[k] for k in self.along)]
        gains = [self.program.tensors[k].name for k, _ in self.parts[0][1][0].divisors]
        words = [f"shift of {first}" + (f" along {', '.join(axes)}" if axes else "")]
        words += [f"divided by {', '.join(gains)}"] if gains else []
        if others:
            words.append(f"undone by {', '.join(others)}")
        elif not self.centred:
            words.append("which changes nothing")
        return ", ".join(words) + (": the array there is centred" if self.centred else "")

    def entries(self) -> list[np.ndarray]:
        """Return the flat weights that move, for each weight."""
        return [entries_of(self.program.tensors[k]) for k, _ in self.parts]

    def fields(self) -> Iterator[VectorField]:
        """List the vector fields, one for each entry of the weight, or for each set of entries that are shifted together."""
        unit = lcm(*(term.coefficient.denominator for _, terms in self.parts for term in terms))
        for index in np.ndindex(*self._lines):
            total: dict[tuple[int, Monomial, Monomial], Fraction] = {}
            for k, terms in self.parts:
                for term in terms:
                    self._add(total, k, term, index)
            yield without_denominators(
                (i, int(unit * c), up, dict.fromkeys(down, -1)) for (i, up, down), c in total.items() if c
            )

    def _add(
        self,
        total: dict[tuple[int, Monomial, Monomial], Fraction],
        k: int,
        term: _Term,
        index: tuple[int, ...],
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
                up, down = (self._monomial(parts, at) for parts in (term.factors, term.divisors))
                key = (int(entries[tuple(place)]), up, down)
                total[key] = total.get(key, Fraction(0)) - term.coefficient

    def _monomial(self, parts: Sequence[Factor], at: Mapping[int, int]) -> Monomial:
        """Return the product of entries of weights at given indices of all letters."""
        tables = ((entries_of(self.program.tensors[k]), letters) for k, letters in parts)
        return tuple(sorted(int(table[tuple(at[a] for a in letters)]) for table, letters in tables))

    def _summed_sizes(self, term: _Term) -> dict[int, int]:
        return {
            letter: n
            for k, letters in (*term.factors, *term.divisors)
            for letter, n in zip(letters, self.program.tensors[k].shape, strict=True)
            if letter >= _SUMMED
        }


def shifts(program: FactoredProgram) -> list[Shift]:
    """List the weights whose entries may be shifted one by one, or else together along some axes."""
    found: list[Shift] = []
    together = {1} | {len(item.along) for item in program.tensors if item.along}
    for place, weight in program.weights():
        whole = _shift(program, place)
        if whole is not None:
            found.append(whole)
            continue
        lines: list[Shift] = []
        for size in sorted(together):
            for along in combinations(range(len(weight.shape)), size):
                if not any(set(line.along) <= set(along) for line in lines):
                    line = _shift(program, place, along)
                    lines += [] if line is None else [line]
        found += lines
    return found


def _shift(program: FactoredProgram, weight: int, along: Letters = ()) -> Shift | None:
    """Return the shift of a weight along some axes, without biases that undo it if none are needed; None if there is none."""
    for divisors in dict.fromkeys([(), _Carrying(program, weight).gains(along)]):
        undone = _Carrying(program, weight).result(along, divisors)
        if undone is not None:
            return _Carrying(program, weight, answering=False).result(along, divisors) or undone
    return None


class _NoShiftError(Exception):
    """The derivative cannot be undone."""


class _Carrying:
    """Carries the derivative along one weight through the program; without `answering`, no bias undoes it."""

    def __init__(self, program: FactoredProgram, weight: int, *, answering: bool = True) -> None:
        self.program, self.tensors, self.weight, self.answering = program, program.tensors, weight, answering
        self.uses = Counter(k for item in program.tensors for k in item.operands)
        self.terms: dict[int, list[_Term]] = {}
        self.rates: dict[int, list[_Term]] = {}
        """Tensors that move by a multiple of themselves, as exp(z) moves by z' exp(z), with the factor."""
        self.answers: dict[int, list[_Term]] = {}
        self.letter = _SUMMED
        self.centred = False

    def result(self, along: Letters, divisors: Sequence[Factor]) -> Shift | None:
        """Return the shift by a number, or by a number divided by `divisors`; None if the function changes."""
        axes = range(len(self.tensors[self.weight].shape))
        start = _Term(Fraction(1), tuple(None if k in along else k for k in axes), divisors=tuple(divisors))
        self.terms[self.weight] = [start]
        try:
            for place, item in enumerate(self.tensors):
                if item.operation == "exp" or any(k in self.rates for k in item.operands):
                    rates = self._rates(item)
                    if rates:
                        self.rates[place] = rates
                elif any(k in self.terms for k in item.operands):
                    moved = self._step(item)
                    if moved:
                        self.terms[place] = moved
        except _NoShiftError:
            return None
        if any(k in self.terms or k in self.rates for k in self.program.outputs):
            return None
        answers = ((k, tuple(terms)) for k, terms in self.answers.items())
        parts = ((self.weight, (replace(start, coefficient=Fraction(-1)),)), *answers)
        return Shift(self.program, parts, along, self.centred)

    def gains(self, along: Letters) -> tuple[Factor, ...]:
        """Return the gains of a centred array that the weight multiplies along some axes; letters are axes of the weight."""
        if not along or prod(self.tensors[self.weight].shape[k] for k in along) > _MOST_GAINS:
            return ()
        item = next((item for item in self.tensors if self.weight in item.operands), None)
        if item is None:  # the weight is an output
            return ()
        side = item.operands.index(self.weight)
        own, others = _sides(item, side)
        wanted = {own[k] for k in along}
        for k, letters in others if item.operation == "einsum" else ():
            for _, product in self._expanded(k, letters, wanted):
                if any(self._along(factor) == wanted for factor in product):
                    return tuple(
                        (j, tuple(own.index(a) for a in named))
                        for j, named in product
                        if self.tensors[j].operation == "weight" and set(named) == wanted
                    )
        return ()

    # -- steps --------------------------------------------------------------------------------------------

    def _step(self, item: Tensor) -> list[_Term]:
        if item.operation == "einsum":
            return [term for side in range(len(item.operands)) for term in self._einsum(item, side)]
        if item.operation == "add":
            return self._add(item)
        own = self.terms.get(item.operands[0], [])
        if item.operation == "scale":
            return [replace(term, coefficient=term.coefficient * item.number) for term in own]
        if item.operation in ("softmax", "centred"):
            along = [item.letters[0].index(letter) for letter in item.along]
            seen = [term for term in own if not all(map(term.is_constant_along, along))]
            self.centred |= item.operation == "centred" and len(seen) < len(own)
            if item.operation == "centred":
                return [part for term in seen for part in self._minus_mean(item, term)]
            if not seen:
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
        return self.answering and self.tensors[k].operation == "weight" and self.uses[k] == 1 and unmoved

    def _is_of_weights(self, term: _Term) -> bool:
        """Return whether all factors of a term are weights that do not move."""
        return len(term.factors) <= _MOST_FACTORS and all(
            self.tensors[k].operation == "weight" and k not in self.terms and k not in self.answers
            for k, _ in (*term.factors, *term.divisors)
        )

    def _minus_mean(self, item: Tensor, term: _Term) -> list[_Term]:
        """Return a term minus its mean along the axes of a centred array."""
        (letters,) = item.letters
        kept = tuple(letter for letter in item.result if letter not in item.along)
        count = prod(self._sizes(item)[letter] for letter in item.along)
        mean = self._product(replace(item, result=kept), letters, term, (Fraction(-1, count), []))
        return [_renamed(term, letters, item.result), _renamed(mean, kept, item.result)]

    def _rates(self, item: Tensor) -> list[_Term]:
        """Return the factor by which a tensor moves, as a sum without equal terms."""
        source = self.terms if item.operation == "exp" else self.rates
        other = self.rates if item.operation == "exp" else self.terms
        if item.operation not in _RATES or any(k in other for k in item.operands):
            raise _NoShiftError
        sides = [_like_terms(_at_result(source.get(k, ()), own, item)) for k, own in item.sides]
        if item.operation == "add":
            if any(side != sides[0] for side in sides):
                raise _NoShiftError
            del sides[1:]
        factor = item.number if item.operation == "power" else _RATES[item.operation]
        total = _like_terms(replace(t, coefficient=factor * c) for side in sides for t, c in side.items())
        return [replace(term, coefficient=c) for term, c in total.items()]

    # -- products -----------------------------------------------------------------------------------------

    def _einsum(self, item: Tensor, side: int) -> Iterator[_Term]:
        """Multiply the terms of one operand by the other one and sum over letters."""
        own, others = _sides(item, side)
        for term in self.terms.get(item.operands[side], ()):
            wanted = set(own) - set(item.result) - _letters(own, replace(term, divisors=()))
            products: list[Product] = [(Fraction(1), [])]
            for k, letters in others:
                products = self._expanded(k, letters, wanted)
            for product in products:
                made = self._summed(item, own, term, product)
                if made is not None:
                    yield made

    def _summed(self, item: Tensor, own: Letters, term: _Term, product: Product) -> _Term | None:
        """Multiply a term by a product and sum over letters; None if a centred factor adds up to zero."""
        coefficient, factors = product[0], list(product[1])
        divisors = []
        for k, positions in term.divisors:
            gains = (k, tuple(own[a] if 0 <= a < _SUMMED else a for a in positions))
            if gains in factors:
                factors.remove(gains)
            else:
                divisors.append((k, positions))
        term, done = replace(term, divisors=tuple(divisors)), set[int]()
        for factor in list(factors):
            others = {a for other in factors if other is not factor for a in other[1]}
            used, along = others | set(item.result) | _letters(own, term), self._along(factor)
            if not along or along & used:
                continue
            if self.tensors[factor[0]].operation == "centred":
                self.centred = True
                return None
            if set(factor[1]) <= along | used:  # a softmax adds up to one
                factors.remove(factor)
                done |= along
        if len(factors) + len(term.factors) > _MOST_FACTORS + 1:
            raise _NoShiftError
        return self._product(item, own, term, (coefficient, factors), done)

    def _along(self, factor: Factor) -> set[int]:
        """Return the letters along which a factor adds up to zero or one; none if it does not."""
        item = self.tensors[factor[0]]
        return {factor[1][item.result.index(letter)] for letter in item.along}

    def _expanded(self, k: int, letters: Letters, wanted: set[int]) -> list[Product]:
        """Write a tensor as a sum of products, as far as its dependence on the wanted letters is linear."""
        products = self._products(k, letters, wanted)
        return products if len(products) <= _MOST_PRODUCTS else [(Fraction(1), [(k, letters)])]

    def _products(self, k: int, letters: Letters, wanted: set[int]) -> list[Product]:
        item, sizes = self.tensors[k], self._sizes(self.tensors[k])
        named = dict(zip(item.result, letters, strict=True))
        summed = [letter for letter in sizes if letter not in named]
        for letter in summed:
            self.letter += 1
            named[letter] = self.letter
        sides = [
            (j, tuple(named[a] for a in own)) for j, own in zip(item.operands, item.letters, strict=True)
        ]
        depending = [wanted.intersection(own) and self.tensors[j].operation != "weight" for j, own in sides]
        if item.operation == "add" and wanted.intersection(letters):
            return [product for side in sides for product in self._expanded(*side, wanted)]
        if item.operation not in ("scale", "einsum") or sum(map(bool, depending)) != 1:
            return [(Fraction(1), [(k, letters)])]
        products: list[Product] = [(Fraction(item.number), [])]
        for side, depends in zip(sides, depending, strict=True):
            more = self._expanded(*side, wanted) if depends else [(Fraction(1), [side])]
            products = [(a * b, [*x, *y]) for a, x in products for b, y in more]
        return [self._repeated(product, {named[a]: sizes[a] for a in summed}) for product in products]

    def _repeated(self, product: Product, sizes: Mapping[int, int]) -> Product:
        """Return the sum of a product over letters that it does not have, and leave the sum over the others to be done."""
        coefficient, factors = product
        present = {a for _, letters in factors for a in letters}
        return coefficient * prod(n for letter, n in sizes.items() if letter not in present), factors

    def _product(
        self, item: Tensor, own: Letters, term: _Term, product: Product, done: Collection[int] = ()
    ) -> _Term:
        """Sum a term times a product over the letters that are not in the result; sums over letters in `done` are one."""
        coefficient, factors = product
        pins = {letter: j for letter, j in zip(own, term.pinned, strict=True) if j is not None}
        used = _letters(own, term) | {letter for _, letters in factors for letter in letters}
        coefficient, names = coefficient * term.coefficient, dict[int, int]()
        sizes = self._sizes(item)
        for letter in dict.fromkeys([*own, *(a for _, letters in factors for a in letters)]):
            if letter in pins:
                names[letter] = -1 - pins[letter]
            elif letter in item.result:
                names[letter] = item.result.index(letter)
            elif letter in used:
                self.letter += 1
                names[letter] = self.letter
            elif letter not in done:
                coefficient *= sizes[letter]  # a sum of equal terms
        positions = {a: names[letter] for a, letter in enumerate(own) if letter in names}
        moved = term.on_axes(positions, tuple(pins.get(letter) for letter in item.result))
        more = tuple((k, tuple(names[a] for a in letters)) for k, letters in factors)
        return replace(moved, coefficient=coefficient, factors=moved.factors + more)

    def _sizes(self, item: Tensor) -> dict[int, int]:
        return {
            letter: n
            for k, letters in zip(item.operands, item.letters, strict=True)
            for letter, n in zip(letters, self.tensors[k].shape, strict=True)
        }


def _sides(item: Tensor, side: int) -> tuple[Letters, list[Factor]]:
    """Return the letters of one operand, and the other operands."""
    return item.letters[side], [(k, item.letters[j]) for j, k in enumerate(item.operands) if j != side]


def _letters(own: Letters, term: _Term) -> set[int]:
    """Return the letters on which a term of an operand with these letters depends."""
    return {letter for position, letter in enumerate(own) if not term.is_constant_along(position)}


def _renamed(term: _Term, letters: Letters, result: Letters) -> _Term:
    """Return the term on the axes of a sum; axes that the operand lacks are free."""
    pins = dict(zip(letters, term.pinned, strict=True))
    positions = {a: result.index(letter) for a, letter in enumerate(letters)}
    return term.on_axes(positions, tuple(pins.get(letter) for letter in result))


def _at_result(terms: Sequence[_Term], letters: Letters, item: Tensor) -> Iterator[_Term]:
    """List terms on the axes of a result; they must be constant along the letters over which the result is a sum."""
    summed = [a for a, letter in enumerate(letters) if letter not in item.result]
    kept = tuple(letter for letter in letters if letter in item.result)
    for term in terms:
        if len(set(letters)) < len(letters) or not all(map(term.is_constant_along, summed)):
            raise _NoShiftError
        names = {letters.index(letter): a for a, letter in enumerate(kept)}
        pinned = tuple(term.pinned[letters.index(letter)] for letter in kept)
        yield _renamed(term.on_axes(names, pinned), kept, item.result)


def _like_terms(terms: Iterable[_Term]) -> dict[_Term, Fraction]:
    """Return the coefficients of different terms that are not zero."""
    total: dict[_Term, Fraction] = {}
    for term in terms:
        key = replace(term, coefficient=Fraction(1), factors=tuple(sorted(term.factors)))
        total[key] = total.get(key, Fraction(0)) + term.coefficient
    return {term: c for term, c in total.items() if c}


def _restricted(term: _Term, result: Letters, letters: Letters) -> _Term | None:
    """Return the term on some axes, if it is constant along the others."""
    if not all(term.is_constant_along(a) for a, letter in enumerate(result) if letter not in letters):
        return None
    positions = {result.index(letter): a for a, letter in enumerate(letters)}
    return term.on_axes(positions, tuple(term.pinned[result.index(letter)] for letter in letters))
