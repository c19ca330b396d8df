"""Finite symmetries that are read off a program: permutations of equal slices (neurons, heads, channels), and signs of weights.

A permutation of one index passes through a program when every step treats its axes alike: axes that an einsum, a sum or a
product ties together are permuted together. So the axes of the factored program (:mod:`m2bridge.symmetry.factored`) fall into
classes, and a class in which no axis belongs to an input, an output, a constant or an opaque step has a full symmetric group.

The sign of a product is the product of the signs, and a sum keeps a sign only if its terms agree. So the program says which sets
of weights must change their signs evenly, and the rest is linear algebra over F_2.

What is found is proved; a symmetry that only a cancellation would allow is not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from math import factorial, prod
from typing import NamedTuple

import numpy as np

from m2bridge.families.symmetries import SignedPermutation
from m2bridge.programs.arithmetics import ObjectArithmetic, object_array
from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.points import Integers
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate
from m2bridge.symmetry.axis_groups import entries_of
from m2bridge.symmetry.factored import factored
from m2bridge.symmetry.names import entry_name, slice_name
from m2bridge.symmetry.tori import index_spaces

MOST_SIGNED_WEIGHTS = 2000
"""A network with more weights is not searched: the masks of its entries would take more than a few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteSymmetry:
    """A finite group acting on the weights: its name, order, which axes or arrays it acts on, and that it was verified."""

    group: str
    order: int
    acts_on: tuple[str, ...]
    verified: bool

    @property
    def text(self) -> str:
        """Return the group in words."""
        moved = ", ".join(self.acts_on)
        if self.group == "sign":
            return f"sign change of {moved}"
        if all(" axis " in item for item in self.acts_on):
            return f"{self.group}, permutations of units: {moved}"
        return f"{self.group} on {moved}"


def symmetric_group(n: int, acts_on: Sequence[str]) -> FiniteSymmetry:
    return FiniteSymmetry(group=f"S_{n}", order=factorial(n), acts_on=tuple(acts_on), verified=True)


# -- permutations -------------------------------------------------------------


class PermutedAxis(NamedTuple):
    """An axis of a weight, or a factor of one: the name, the axis, its text, and the flat weights with that index first."""

    name: str
    axis: int
    text: str
    entries: Integers


def permutations(program: Program) -> list[FiniteSymmetry]:
    """Return symmetric groups that permute equal slices."""
    return [symmetric_group(n, [axis.text for axis in axes]) for n, axes in permuted_axes(program)]


def permuted_axes(program: Program) -> list[tuple[int, list[PermutedAxis]]]:
    """List axes of weights along which one permutation of all of them changes no output: their length, and which they are."""
    steps = factored(program)
    sets = index_spaces(steps)
    pinned = [(k, (a,)) for k in steps.outputs for a in range(len(steps.tensors[k].shape))]
    classes: dict[object, list[PermutedAxis]] = {}
    for index, item in enumerate(steps.tensors):
        if item.operation in ("fixed", "opaque"):
            kept = set(item.result).intersection(*item.letters) if item.operands else set()
            for k, letters in ((index, item.result), *zip(item.operands, item.letters, strict=True)):
                pinned += [(k, (a,)) for a, letter in enumerate(letters) if letter not in kept]
        for a, n in enumerate(item.shape if item.operation == "weight" else ()):
            entries = np.moveaxis(entries_of(item), a, 0).reshape(n, -1)
            permuted = PermutedAxis(item.name.split("[")[0], item.axes[a][0], item.axis_text(a), entries)
            classes.setdefault(sets.root((index, (a,))), []).append(permuted)
    fixed = {sets.root(axis) for axis in pinned}
    return [(len(axes[0].entries), axes) for space, axes in classes.items() if space not in fixed]


# -- signs -----------------------------------------------------------------------------------------------


_Quotient = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
"""Numerator and denominator, polynomials in one exponential: coefficients, the lowest first."""


class _Parity:
    """The sign of a number when weights change theirs: `mask` holds the weights on which it depends; zero has every sign.

    A sum has a sign only where the signs of its terms agree: `agree` collects the masks that must be even. A number, and a
    function of one exponential exp(y), is kept as a `quotient`, which shows whether it is odd or even in y, as tanh is odd.
    """

    __slots__ = ("_mask", "agree", "argument", "quotient")

    def __init__(
        self,
        mask: int | None,
        agree: set[int],
        quotient: _Quotient | None = None,
        argument: _Parity | None = None,
    ) -> None:
        self._mask, self.agree, self.quotient, self.argument = mask, agree, quotient, argument

    @classmethod
    def of_number(cls, number: Fraction, agree: set[int]) -> _Parity:
        return cls(0 if number else None, agree, ((number,), (Fraction(1),)))

    @property
    def mask(self) -> int | None:
        """Return the weights on which the sign depends; those of y must be even if a function of exp(y) is not odd or even."""
        if self.argument is not None and self.quotient is not None:
            top, bottom = self.quotient
            shift = (Fraction(0),) * abs(len(top) - len(bottom))
            here, there = _product(top, bottom[::-1]), _product(top[::-1], bottom)
            here, there = (shift + here, there) if len(top) > len(bottom) else (here, shift + there)
            pairs = list(zip_longest(here, there, fillvalue=Fraction(0)))
            odd = all(x == -y for x, y in pairs)
            if not odd and any(x != y for x, y in pairs):
                self.agree.add(self.argument.mask or 0)
            self._mask, self.argument = (self.argument.mask if odd else 0) if any(top) else None, None
            self.quotient = None
        return self._mask

    def _common_argument(self, other: _Parity) -> bool:
        """Return whether both are functions of one exponential, or numbers."""
        arguments = [x.argument for x in (self, other) if x.argument is not None]
        return None not in (self.quotient, other.quotient) and all(x is arguments[0] for x in arguments)

    def _combined(self, other: _Parity, quotient: _Quotient) -> _Parity:
        return _Parity(0 if any(quotient[0]) else None, self.agree, quotient, self.argument or other.argument)

    def __add__(self, other: _Parity) -> _Parity:
        if self._common_argument(other):
            (a, b), (c, d) = self.quotient, other.quotient  # type: ignore[misc]
            pairs = zip_longest(_product(a, d), _product(c, b), fillvalue=Fraction(0))
            return self._combined(other, (tuple(x + y for x, y in pairs), _product(b, d)))
        if self.mask is None or other.mask is None:
            return other if self.mask is None else self
        self.agree.add(self.mask ^ other.mask)
        return self

    def __mul__(self, other: _Parity) -> _Parity:
        if self._common_argument(other):
            (a, b), (c, d) = self.quotient, other.quotient  # type: ignore[misc]
            return self._combined(other, (_product(a, c), _product(b, d)))
        zero = self.mask is None or other.mask is None
        return _Parity(None if zero else self.mask ^ other.mask, self.agree)  # type: ignore[operator]

    def __truediv__(self, other: _Parity) -> _Parity:
        return self * (1 / other)

    def __rtruediv__(self, one: int) -> _Parity:
        if self.quotient is None:
            return self
        return self._combined(self, self.quotient[::-1])

    def exp(self) -> _Parity:
        if not self.mask:
            return _Parity(0, self.agree)
        return _Parity(0, self.agree, ((Fraction(0), Fraction(1)), (Fraction(1),)), self)

    def sqrt(self) -> _Parity:
        self.agree.add(self.mask or 0)
        return _Parity(0, self.agree)


def _product(first: Sequence[Fraction], second: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Multiply two polynomials in one variable."""
    total = [Fraction(0)] * (len(first) + len(second) - 1)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            total[i + j] += a * b
    return tuple(total)


def signs(program: Program) -> list[FiniteSymmetry]:
    """Generators of the group of signs of weights that change no output."""
    return [
        FiniteSymmetry(group="sign", order=2, acts_on=_moved(program, mask), verified=True)
        for mask in _sign_changes(program)
    ]


def finite_group(
    program: Program, more: Sequence[SignedPermutation] = (), *, most: int
) -> tuple[SignedPermutation, ...]:
    """Elements of the group that permutations of slices, signs and more generate: the identity first, at most this many."""
    size = program.parameter_count
    masks = [np.array([mask >> k & 1 for k in range(size)]) for mask in _sign_changes(program)]
    signs = [SignedPermutation(tuple(range(size)), tuple((1 - 2 * mask).tolist())) for mask in masks]
    return permuting_elements(program, permuted_axes(program), [*signs, *more], most=most)


def slices_permuted(program: Program, n: int, tables: Iterable[Integers]) -> list[Integers]:
    """Return where flat weights come from when n slices are permuted together: by a swap and a turn, which generate all.

    Each of the `tables` has n rows of flat weights, the slices along one axis.
    """
    orders, along = [], list(tables)
    for moved in ([1, 0, *range(2, n)], [*range(1, n), 0])[: n - 1]:
        order = np.arange(program.parameter_count)
        for table in along:
            order[table] = order[table[moved]]
        orders.append(order)
    return orders


def permuting_elements(
    program: Program,
    permuted: Iterable[tuple[int, list[PermutedAxis]]],
    more: Sequence[SignedPermutation] = (),
    *,
    most: int,
) -> tuple[SignedPermutation, ...]:
    """Return elements of the group that permutations along axes, and `more`, generate: identity first, at most `most`."""
    size, plus = program.parameter_count, (1,) * program.parameter_count
    tables = [(n, [axis.entries for axis in axes]) for n, axes in permuted]
    orders = [order for n, entries in tables for order in slices_permuted(program, n, entries)]
    generators = [*more, *(SignedPermutation(tuple(order.tolist()), plus) for order in orders)]
    elements = [SignedPermutation(tuple(range(size)), plus)]
    for element in elements:
        elements += [new for step in generators if (new := step.after(element)) not in elements][
            : most - len(elements)
        ]
    return tuple(elements)


def _sign_changes(program: Program) -> list[int]:
    """Return sets of weights, as masks, whose signs can change together, generators of all: whole arrays first, then slices."""
    size = program.parameter_count
    if size > MOST_SIGNED_WEIGHTS:
        return []
    whole = [(1 << entries.stop) - (1 << entries.start) for _, _, entries in flat_parts(program.parameters)]
    even = _even_sets(program)
    by_array = [sum((mask & array).bit_count() % 2 << k for k, array in enumerate(whole)) for mask in even]
    arrays = [
        sum(array for k, array in enumerate(whole) if choice >> k & 1)
        for choice in _short_kernel(by_array, len(whole))
    ]
    masks: list[int] = []
    for mask in (*arrays, *_short_kernel(even, size)):
        if _rest(mask, _echelon(masks)):
            masks.append(mask)
    return masks


def _moved(program: Program, mask: int) -> tuple[str, ...]:
    """Return the arrays and slices whose sign changes."""
    names: list[str] = []
    for name, shape, entries in flat_parts(program.parameters):
        chosen = np.array([mask >> k & 1 for k in range(entries.start, entries.stop)]).reshape(shape)
        indices = [tuple(int(i) for i in index) for index in np.argwhere(chosen)]
        if indices:
            where = slice_name(shape, indices)
            names += [entry_name(name, index) for index in indices] if where is None else [f"{name}{where}"]
    return tuple(names)


def _even_sets(program: Program) -> list[int]:
    """Return sets of weights of which an even number must change its sign, so that no output changes."""
    agree: set[int] = set()
    arithmetic = ObjectArithmetic(lambda number: _Parity.of_number(number, agree))
    arrays = {}
    for name, shape, entries in flat_parts(program.parameters):
        parities = [_Parity(1 << k, agree) for k in range(entries.start, entries.stop)]
        arrays[name] = Lettered("", object_array(parities, shape), arithmetic)
    for name, shape in program.input_shapes.items():
        arrays[name] = Lettered("", object_array([_Parity(0, agree)] * prod(shape), shape), arithmetic)
    values = evaluate(program, arithmetic, arrays)
    for _, index in program.outputs:
        agree.update(entry.mask or 0 for entry in values[index].array.reshape(-1))
    return sorted(agree - {0})


# -- linear algebra over F_2, vectors as bits of integers ------------------------------------------------


def _echelon(rows: Iterable[int]) -> dict[int, int]:
    """Return a reduced basis of the span: highest bit to vector, no vector with the highest bit of another."""
    basis: dict[int, int] = {}
    for row in rows:
        if rest := _rest(row, basis):
            top = rest.bit_length() - 1
            basis = {bit: other ^ rest if other >> top & 1 else other for bit, other in basis.items()}
            basis[top] = rest
    return basis


def _rest(row: int, basis: dict[int, int]) -> int:
    """Return what is left of a vector modulo a reduced basis: zero exactly if it lies in the span."""
    for top, other in basis.items():
        if row >> top & 1:
            row ^= other
    return row


def _short_kernel(rows: Iterable[int], size: int) -> list[int]:
    """Return a basis of the vectors of length `size` that meet every row in an even number of places; no sum of two of them is
    shorter than the longer one.

    >>> [bin(vector) for vector in _short_kernel([0b011, 0b110], 3)]
    ['0b111']
    """
    basis = _echelon(rows)
    free = [bit for bit in range(size) if bit not in basis]
    vectors = [1 << bit | sum(1 << top for top, row in basis.items() if row >> bit & 1) for bit in free]
    changed = True
    while changed:
        vectors.sort(key=int.bit_count)
        changed = False
        for k in range(len(vectors)):
            for short in vectors[:k]:
                if (vectors[k] ^ short).bit_count() < vectors[k].bit_count():
                    vectors[k] ^= short
                    changed = True
    return vectors
