"""Finite symmetries that are found by trying: equal slices of arrays, or equal arrays, change places.

Arrays of one shape change places in pairs; what leaves the outputs at random points is proved by the program, which is the same
after the exchange up to the order of terms and factors, or by expansion. In small maps the weights that do not move may answer
by an affine map: the two parts of a mixture can be exchanged if the mixing weight w becomes 1 - w. The answer is computed at
random weights over F_p, an affine map is fitted, and the identity is verified as one of polynomials.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, islice
from math import prod
from typing import Any

import numpy as np

from m2bridge.errors import OutOfReachError
from m2bridge.families.symbolic import symbolic_weights
from m2bridge.families.user_definition import UserDefinition
from m2bridge.families.user_network import UserNetwork
from m2bridge.frontends.polynomial_programs import polynomial_program
from m2bridge.linear.modular import echelon_mod
from m2bridge.linear.primes import LARGE_PRIME, prime_for
from m2bridge.linear.residues import Mod
from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.points import INPUTS, WEIGHTS, Integers, integers
from m2bridge.programs.program import Program
from m2bridge.symmetry.fields import outputs_at
from m2bridge.symmetry.finite import FiniteSymmetry, slices_permuted, symmetric_group

MOST_EXCHANGED_WEIGHTS = 24
"""Weights up to which answers of other weights are looked for; polynomials are expanded to verify them."""
MOST_EXCHANGES = 2000
"""This many exchanges of arrays are tried, those of few pairs first; with answers of other weights a tenth of it."""
MOST_COMPARED_NUMBERS = 4_000_000
"""Numbers in the outputs and weights of all exchanges that are tried at once."""
_LARGEST_BALANCED = 1000
"""Entries of a fitted affine map, balanced modulo p; larger ones are no integers of a symmetry."""

Pairs = tuple[tuple[str, str], ...]
"""Arrays that change places."""
Affine = tuple[np.ndarray, np.ndarray]
"""An integer matrix M and a vector c: the other weights r become M r + c."""
Trial = tuple[int, list[str], Collection[str], list[Integers]]
"""What is tried: n of the group S_n, its words, the arrays that move, and where flat weights come from under its generators."""


def exchanges(
    program: Program, listed: Sequence[FiniteSymmetry] = (), *, p: int = LARGE_PRIME
) -> tuple[FiniteSymmetry, ...]:
    """Return symmetric groups on arrays, and on slices that are not in `listed`, with what they do to the other weights."""
    if not program.polynomial:
        return ()
    swaps, small = verified_swaps(program, p=p), _small(program, p)
    groups = groups_of_swaps(swaps)
    if small is not None:
        groups += small.exchanges(listed, swaps)
    return tuple(groups)


def exchanged_variables(user: UserDefinition) -> list[Pairs]:
    """Variables of a polynomial map that change places, in one pair or in several at once, without changing the map."""
    if user.polynomials is None:
        return []
    program = polynomial_program(user.polynomials, dict.fromkeys(user.variables, ()))
    return verified_swaps(program, p=prime_for(program.numbers, chosen=None, default=LARGE_PRIME))


def verified_swaps(program: Program, *, p: int) -> list[Pairs]:
    """Arrays that change places, in one pair or in several at once, without changing an output."""
    small = _small(program, p)
    return [
        pairs
        for pairs in _minimal(_swaps_at_a_point(program, p))
        if _same_program(program, pairs) or (small is not None and small.swapped(pairs) is not None)
    ]


def _small(program: Program, p: int) -> _SmallMap | None:
    return _SmallMap(program, p) if program.parameter_count <= MOST_EXCHANGED_WEIGHTS else None


def _candidates(program: Program) -> Iterator[Pairs]:
    """Disjoint pairs of arrays of one shape: one pair, then two, and so on."""
    shapes = program.parameters
    pairs = [pair for pair in combinations(shapes, 2) if shapes[pair[0]] == shapes[pair[1]]]
    for size in range(1, len(shapes) // 2 + 1):
        for chosen in combinations(pairs, size):
            if len({name for pair in chosen for name in pair}) == 2 * size:
                yield chosen


def _order(program: Program, pairs: Pairs) -> Integers:
    """Return where each flat weight comes from when arrays change places."""
    slices = {name: entries for name, _, entries in flat_parts(program.parameters)}
    order = np.arange(program.parameter_count)
    for a, b in pairs:
        order[slices[a]], order[slices[b]] = order[slices[b]], order[slices[a]].copy()
    return order


def _swaps_at_a_point(program: Program, p: int) -> Iterator[Pairs]:
    """Yield exchanges of arrays that leave the outputs at one random point."""
    size = program.parameter_count + sum(item.size for item in program.instructions)
    tried = islice(_candidates(program), min(MOST_EXCHANGES, 10 * MOST_COMPARED_NUMBERS // size))
    weights = integers(0, WEIGHTS + 48, program.parameter_count, p)
    inputs = integers(0, INPUTS + 48, program.input_count, p)
    expected = outputs_at(program, p, weights[None], inputs[None])
    while group := list(islice(tried, max(1, MOST_COMPARED_NUMBERS // size))):
        points = np.stack([weights[_order(program, pairs)] for pairs in group])
        values = outputs_at(program, p, points, np.repeat(inputs[None], len(group), axis=0))
        yield from (group[k] for k in np.flatnonzero((values == expected).all(axis=1)))


def _minimal(several: Iterator[Pairs]) -> Iterator[Pairs]:
    """Exchanges that do not contain an earlier one."""
    before: list[Pairs] = []
    for pairs in several:
        if not any(set(less) <= set(pairs) for less in before):
            before.append(pairs)
            yield pairs


def _same_program(program: Program, pairs: Pairs) -> bool:
    """Return whether the program is the same after the exchange, up to the order of terms and factors."""
    numbers: dict[Any, int] = {}
    names = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    return _numbered(program, {}, numbers) == _numbered(program, names, numbers)


def _numbered(program: Program, names: Mapping[str, str], numbers: dict[Any, int]) -> list[int]:
    """Return the outputs, as numbers that are equal for equal computations; weights are renamed first.

    Sums and products are lists of their terms in ascending order, and an einsum is written with its operands in this order.
    """
    labels: list[int] = []
    terms: list[tuple[str, list[int]]] = []
    for item in program.instructions:
        operands, constants = [labels[k] for k in item.operands], item.constants
        if item.operation == "weight":
            constants = (names.get(str(constants[0]), constants[0]),)
        if item.operation in ("add", "multiply"):
            lists = [terms[k][1] if terms[k][0] == item.operation else [labels[k]] for k in item.operands]
            operands = sorted(number for nested in lists for number in nested)
        if item.operation == "einsum":
            constants, operands = min(
                _written(constants, operands), _written((constants[0][::-1], constants[1]), operands[::-1])
            )
        key = (item.operation, constants, tuple(operands), item.shape)
        labels.append(numbers.setdefault(key, len(numbers)))
        terms.append((item.operation, operands))
    return [labels[index] for _, index in program.outputs]


def _written(constants: tuple[Any, ...], operands: list[int]) -> tuple[tuple[Any, ...], list[int]]:
    """Return an einsum with its letters in the order in which they first occur."""
    terms, result = constants
    letters = dict.fromkeys("".join(terms) + result)
    table = str.maketrans({letter: chr(97 + k) for k, letter in enumerate(letters)})
    return (tuple(term.translate(table) for term in terms), result.translate(table)), operands


def groups_of_swaps(swaps: Sequence[Pairs]) -> list[FiniteSymmetry]:
    """Return symmetric groups: all n(n-1)/2 exchanges of n blocks of arrays are one, other exchanges stand alone."""
    orbits: dict[str, tuple[str, ...]] = {}
    for a, b in (pair for pairs in swaps for pair in pairs):
        joined = tuple(dict.fromkeys((*orbits.get(a, (a,)), *orbits.get(b, (b,)))))
        orbits.update(dict.fromkeys(joined, joined))
    by_orbits: dict[frozenset[tuple[str, ...]], list[Pairs]] = {}
    for pairs in swaps:
        by_orbits.setdefault(frozenset(orbits[a] for a, _ in pairs), []).append(pairs)
    groups = []
    for same in by_orbits.values():
        first = [orbits[a] for a, _ in same[0]]
        n = len(first[0])
        if (
            len(set(first)) == len(first)
            and {len(orbit) for orbit in first} == {n}
            and 2 * len(same) == n * (n - 1)
        ):
            groups.append(symmetric_group(n, [" <-> ".join(orbit) for orbit in first]))
        else:
            groups += [symmetric_group(2, [" <-> ".join(pair) for pair in pairs]) for pairs in same]
    return groups


class _SmallMap:
    """A map with few weights: those that an exchange does not move may answer it by an affine map."""

    def __init__(self, program: Program, p: int) -> None:
        self.program, self.p, self.model = program, p, UserNetwork(recorded=program)
        self.parts = {name: (shape, entries) for name, shape, entries in flat_parts(program.parameters)}

    def swapped(self, pairs: Pairs) -> Affine | None:
        """Return how the other weights answer an exchange of arrays in which they need not move; None if it is no symmetry."""
        return self._verified(_order(self.program, pairs), [], (np.zeros((0, 0), int), np.zeros(0, int)))

    def exchanges(self, listed: Sequence[FiniteSymmetry], swaps: Sequence[Pairs]) -> Iterator[FiniteSymmetry]:
        """Yield exchanges of slices and of arrays that are not known, with what the other weights answer."""
        before: list[set[str]] = []
        for n, words, moved, orders in (*self._slices(listed), *self._swaps(swaps)):
            if any(less <= set(words) for less in before):
                continue
            answers = [self._answer(order, moved) for order in orders]
            if answers[0] is not None and None not in answers:
                before.append(set(words))
                yield symmetric_group(n, [*words, *self._told(moved, answers[0])])

    def _slices(self, listed: Sequence[FiniteSymmetry]) -> Iterator[Trial]:
        """Yield slices along axes of one length, permuted together."""
        shapes = self.program.parameters
        for n in sorted({length for shape in shapes.values() for length in shape if length > 1}):
            axes = {name: shape.index(n) for name, shape in shapes.items() if shape.count(n) == 1}
            words = [f"{name} axis {axis}" for name, axis in axes.items()]
            equal = [set(item.acts_on) for item in listed if item.group == f"S_{n}"]
            shown = set[str]().union(*(acted for acted in equal if acted <= set(words)))
            if axes and shown != set(words) and not any(set(words) <= acted for acted in equal):
                yield n, words, axes, slices_permuted(self.program, n, map(self._table, axes, axes.values()))

    def _table(self, name: str, axis: int) -> Integers:
        """Return the flat weights of an array, one row for each index on an axis."""
        shape, bounds = self.parts[name]
        entries = np.arange(bounds.start, bounds.stop).reshape(shape)
        return np.moveaxis(entries, axis, 0).reshape(shape[axis], -1)

    def _swaps(self, swaps: Sequence[Pairs]) -> Iterator[Trial]:
        for pairs in islice(_candidates(self.program), MOST_EXCHANGES // 10):
            moved = {name for pair in pairs for name in pair}
            seen = any(set(other) <= set(pairs) or set(pairs) <= set(other) for other in swaps)
            if not seen and len(moved) < len(self.parts):
                yield 2, [" <-> ".join(pair) for pair in pairs], moved, [_order(self.program, pairs)]

    def _answer(self, order: Integers, moved: Collection[str]) -> Affine | None:
        """Return how the weights that are not moved answer a permutation of the others; None if no affine map does."""
        try:
            return self._fitted(order, moved)
        except OutOfReachError:
            return None

    def _fitted(self, order: Integers, moved: Collection[str]) -> Affine | None:
        """Fit an affine map of the weights that are not moved at random points, and verify it; None if there is none."""
        rest = [
            k
            for name, (_, entries) in self.parts.items()
            if name not in moved
            for k in range(entries.start, entries.stop)
        ]
        rng, rows, p = np.random.default_rng(0), [], self.p
        units = np.eye(len(order), dtype=np.int64)[rest]
        for _ in range(len(rest) + 1):
            weights = rng.integers(0, p, size=len(order))
            moved_weights = weights[order]
            target, base, *columns = self._coordinates([weights, moved_weights, *(moved_weights + units)])
            step = self._solved([*(column - base for column in columns), target - base], 1)
            if step is None:
                return None
            rows.append([*weights[rest], 1, *(weights[rest] + step[:, 0])])
        fitted = self._solved(np.array(rows).T, len(rest))
        if fitted is None:
            return None
        balanced = np.where(fitted > p // 2, fitted - p, fitted).reshape(len(rest) + 1, len(rest))
        if balanced.size and np.abs(balanced).max() > _LARGEST_BALANCED:
            return None
        return self._verified(order, rest, (balanced[:-1].T, balanced[-1]))

    def _coordinates(self, points: Sequence[Integers]) -> Integers:
        """Return the coordinates at flat weights, one point per row; OutOfReachError if they have too many terms."""
        weights = self.model.unflatten(Mod(np.stack(points), self.p))
        return np.asarray(self.model.coordinates(weights).values).reshape(len(points), -1)

    def _solved(self, columns: Any, right: int) -> np.ndarray | None:
        """Return the only solution of a linear system over F_p, right sides in the last columns; else None."""
        table = np.stack(list(columns), axis=1) % self.p
        unknowns = table.shape[1] - right
        reduced, pivots = echelon_mod(table, self.p)
        return reduced[:unknowns, unknowns:] if pivots == tuple(range(unknowns)) else None

    @cached_property
    def _variables(self) -> tuple[np.ndarray, list[Any]]:
        """Return the flat weights as variables, and the coordinates as polynomials in them."""
        weights, _ = symbolic_weights(self.model)
        return self.model.flatten(weights), list(self.model.coordinates(weights).reshape(-1))

    def _verified(self, order: Integers, rest: list[int], answer: Affine) -> Affine | None:
        """Return the answer, if with it every coordinate stays as it is, as polynomials in the weights."""
        try:
            flat, before = self._variables
            moved = flat[order]
            for k, row, c in zip(rest, *answer, strict=True):
                moved[k] = sum(
                    (int(m) * r for m, r in zip(row, flat[rest], strict=True)), flat[0] * 0 + int(c)
                )
            after = self.model.coordinates(self.model.unflatten(moved)).reshape(-1)
        except OutOfReachError:
            return None
        return answer if all(a == b for a, b in zip(before, after, strict=True)) else None

    def _told(self, moved: Collection[str], answer: Affine) -> list[str]:
        """Describe what happens to the other weights, in words: ``weight -> 1 - weight``."""
        (matrix, shift), words, start = answer, [], 0
        for name, (shape, _) in self.parts.items():
            if name in moved:
                continue
            rows = slice(start, start + prod(shape))
            start = rows.stop
            unit = np.zeros_like(matrix[rows])
            unit[:, rows] = np.eye(prod(shape), dtype=int)
            if (matrix[rows] == unit).all() and not shift[rows].any():
                continue
            if prod(shape) == 1 and not (matrix[rows] * (1 - unit)).any():
                m, c = int(matrix[rows.start, rows.start]), int(shift[rows.start])
                term = {1: name, -1: f"-{name}"}.get(m, f"{m} {name}")
                words.append(f"{name} -> {f'{c} - {name}' if m == -1 else f'{c} + {term}' if c else term}")
            else:
                words.append(f"{name} by an affine map")
        return words
