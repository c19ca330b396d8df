"""Finite symmetries that permute weights: equal slices of arrays (neurons, heads, channels), and equal arrays (branches).

A permutation of one index passes through a program when every instruction treats its axes alike: axes that an einsum, a sum or a
product ties together are permuted together. So the axes of all instructions fall into classes, and a class in which no axis
belongs to an input, an output or a constant, and none is cut or reshaped, carries a full symmetric group. This is a proof.

Exchanges are found by trying. Arrays of one shape change places in pairs; what leaves the outputs at random points is proved by
the program, which is the same after the exchange up to the order of terms and factors, or by expansion. In small maps the weights
that do not move may answer by an affine map: the two parts of a mixture can be exchanged if the mixing weight w becomes 1 - w.
The answer is computed at random weights over F_p, an affine map is fitted, and the identity is verified as one of polynomials.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import factorial, prod
from typing import Any

import numpy as np

from m2bridge.errors import OutOfReachError
from m2bridge.linear.modular import echelon_mod
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.linear.residues import Mod
from m2bridge.models.own import OwnNetwork
from m2bridge.models.symbolic import symbolic_weights
from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.points import INPUTS, WEIGHTS, Integers, integers
from m2bridge.programs.program import Instruction, Program
from m2bridge.symmetry.fields import outputs_at

MOST_WEIGHTS = 24
"""Weights up to which answers of other weights are looked for; polynomials are expanded to verify them."""
MOST_EXCHANGES = 2000
"""So many exchanges of arrays are tried, those of few pairs first; with answers of other weights a tenth of it."""
MOST_NUMBERS = 4_000_000
"""Numbers in the outputs and weights of all exchanges that are tried at once."""
_LARGEST = 1000

Axis = tuple[int, int]
"""An instruction and an axis of its result."""
Pairs = tuple[tuple[str, str], ...]
"""Arrays that change places."""
Affine = tuple[np.ndarray, np.ndarray]
"""An integer matrix M and a vector c: the other weights r become M r + c."""
Trial = tuple[int, list[str], Collection[str], list[Integers]]
"""What is tried: n of the group S_n, its words, the arrays that move, and where flat weights come from under its generators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteSymmetry:
    """A finite group acting on the weights: its name, order, which axes or arrays it acts on, and that it was verified."""

    group: str
    order: int
    acts_on: tuple[str, ...]
    verified: bool


def _symmetric(n: int, acts_on: Sequence[str]) -> FiniteSymmetry:
    return FiniteSymmetry(group=f"S_{n}", order=factorial(n), acts_on=tuple(acts_on), verified=True)


# -- permutations that the instructions show -------------------------------------------------------------


def permutations(program: Program) -> list[FiniteSymmetry]:
    """Symmetric groups that permute equal slices."""
    return [_symmetric(n, [f"{name} axis {k}" for name, k in axes]) for n, axes in permuted_axes(program)]


def permuted_axes(program: Program) -> list[tuple[int, list[tuple[str, int]]]]:
    """Axes of weights along which one permutation of all of them changes no output: their length, and which they are."""
    parents: dict[Axis, Axis] = {}

    def root(axis: Axis) -> Axis:
        while parents.setdefault(axis, axis) != axis:
            axis = parents[axis]
        return axis

    pinned: set[Axis] = set()
    outputs = {k for _, k in program.outputs}
    for place, item in enumerate(program.instructions):
        if item.operation in ("input", "constant") or place in outputs:
            pinned.update((place, k) for k in range(len(item.shape)))
        ties, held = _ties(program, place, item)
        pinned.update(held)
        for a, b in ties:
            parents[root(a)] = root(b)
    classes: dict[Axis, list[tuple[str, int]]] = {}
    lengths: dict[Axis, int] = {}
    for name, place in program.weights.items():
        for k, n in enumerate(program.instructions[place].shape):
            if n > 1:
                classes.setdefault(root((place, k)), []).append((name, k))
                lengths[root((place, k))] = n
    fixed = {root(axis) for axis in pinned}
    return [(lengths[axis], axes) for axis, axes in classes.items() if axis not in fixed]


def _ties(program: Program, place: int, item: Instruction) -> tuple[list[tuple[Axis, Axis]], list[Axis]]:
    """Axes that are permuted together in one instruction, and axes that it does not let be permuted."""
    shapes = [program.instructions[k].shape for k in item.operands]
    axes = [[(k, a) for a in range(len(shape))] for k, shape in zip(item.operands, shapes, strict=True)]
    own = [(place, a) for a in range(len(item.shape))]
    if item.operation == "einsum":
        terms, result = item.constants
        by_letter: dict[str, list[Axis]] = {}
        for term, part in (*zip(terms, axes, strict=True), (result, own)):
            for letter, axis in zip(term, part, strict=True):
                by_letter.setdefault(letter, []).append(axis)
        return [(same[0], other) for same in by_letter.values() for other in same[1:]], []
    if item.operation in ("add", "multiply"):
        ties: list[tuple[Axis, Axis]] = []
        for shape, part in zip(shapes, axes, strict=True):
            shift = len(item.shape) - len(shape)
            for a, axis in enumerate(part):
                if shape[a] == item.shape[a + shift]:
                    ties.append((axis, own[a + shift]))
        return ties, []
    if item.operation in ("scale", "power", "exp", "reciprocal", "softmax"):
        return list(zip(axes[0], own, strict=True)), []
    if item.operation == "slice":
        kept = [c == (0, n, 1) for c, n in zip(item.constants, shapes[0], strict=True)]
        ties = [(a, b) for a, b, keep in zip(axes[0], own, kept, strict=True) if keep]
        return ties, [x for a, b, keep in zip(axes[0], own, kept, strict=True) if not keep for x in (a, b)]
    if item.operation == "reshape":
        before = [axis for axis, n in zip(axes[0], shapes[0], strict=True) if n > 1]
        after = [axis for axis, n in zip(own, item.shape, strict=True) if n > 1]
        if [n for n in shapes[0] if n > 1] == [n for n in item.shape if n > 1]:
            return list(zip(before, after, strict=True)), []
    return [], [axis for part in (*axes, own) for axis in part] if item.operands else []


# -- exchanges that are tried ----------------------------------------------------------------------------


def exchanges(
    program: Program, known: Sequence[FiniteSymmetry] = (), *, p: int = LARGE_PRIME
) -> tuple[FiniteSymmetry, ...]:
    """Symmetric groups on arrays, and on slices that are not among the known ones, with what they do to the other weights."""
    if not program.polynomial or program.vanishing:
        return ()
    small = _SmallMap(program, p) if program.parameter_count <= MOST_WEIGHTS else None
    swaps = [
        pairs
        for pairs in _minimal(_swaps_at_a_point(program, p))
        if _same_program(program, pairs) or (small is not None and small.swapped(pairs) is not None)
    ]
    found = _groups_of_swaps(swaps)
    if small is not None:
        found += small.exchanges(known, swaps)
    return tuple(found)


def _candidates(program: Program) -> Iterator[Pairs]:
    """Disjoint pairs of arrays of one shape: one pair, then two, and so on."""
    shapes = program.parameters
    pairs = [pair for pair in combinations(shapes, 2) if shapes[pair[0]] == shapes[pair[1]]]
    for size in range(1, len(shapes) // 2 + 1):
        for chosen in combinations(pairs, size):
            if len({name for pair in chosen for name in pair}) == 2 * size:
                yield chosen


def _order(program: Program, pairs: Pairs) -> Integers:
    """Where each flat weight comes from when arrays change places."""
    parts = {name: part for name, _, part in flat_parts(program.parameters)}
    order = np.arange(program.parameter_count)
    for a, b in pairs:
        order[parts[a]], order[parts[b]] = order[parts[b]], order[parts[a]].copy()
    return order


def _swaps_at_a_point(program: Program, p: int) -> Iterator[Pairs]:
    """Exchanges of arrays that leave the outputs at one random point."""
    size = program.parameter_count + sum(item.size for item in program.instructions)
    tried = islice(_candidates(program), min(MOST_EXCHANGES, 10 * MOST_NUMBERS // size))
    weights = integers(0, WEIGHTS + 48, program.parameter_count, p)
    inputs = integers(0, INPUTS + 48, program.input_count, p)
    expected = outputs_at(program, p, weights[None], inputs[None])
    while group := list(islice(tried, max(1, MOST_NUMBERS // size))):
        points = np.stack([weights[_order(program, pairs)] for pairs in group])
        found = outputs_at(program, p, points, np.repeat(inputs[None], len(group), axis=0))
        yield from (group[k] for k in np.flatnonzero((found == expected).all(axis=1)))


def _minimal(several: Iterator[Pairs]) -> Iterator[Pairs]:
    """Exchanges that do not contain an earlier one."""
    before: list[Pairs] = []
    for pairs in several:
        if not any(set(less) <= set(pairs) for less in before):
            before.append(pairs)
            yield pairs


def _same_program(program: Program, pairs: Pairs) -> bool:
    """Whether the program is the same after the exchange, up to the order of terms and factors."""
    numbers: dict[Any, int] = {}
    names = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    return _numbered(program, {}, numbers) == _numbered(program, names, numbers)


def _numbered(program: Program, names: Mapping[str, str], numbers: dict[Any, int]) -> list[int]:
    """The outputs, as numbers that are equal for equal computations; weights are renamed first.

    Sums and products are lists of their terms in ascending order, and an einsum is written with its operands in this order.
    """
    found: list[int] = []
    terms: list[tuple[str, list[int]]] = []
    for item in program.instructions:
        own, constants = [found[k] for k in item.operands], item.constants
        if item.operation == "weight":
            constants = (names.get(str(constants[0]), constants[0]),)
        if item.operation in ("add", "multiply"):
            parts = [terms[k][1] if terms[k][0] == item.operation else [found[k]] for k in item.operands]
            own = sorted(number for part in parts for number in part)
        if item.operation == "einsum":
            constants, own = min(
                _written(constants, own), _written((constants[0][::-1], constants[1]), own[::-1])
            )
        key = (item.operation, constants, tuple(own), item.shape)
        found.append(numbers.setdefault(key, len(numbers)))
        terms.append((item.operation, own))
    return [found[place] for _, place in program.outputs]


def _written(constants: tuple[Any, ...], own: list[int]) -> tuple[tuple[Any, ...], list[int]]:
    """An einsum with its letters in the order in which they first occur."""
    terms, result = constants
    letters = dict.fromkeys("".join(terms) + result)
    table = str.maketrans({letter: chr(97 + k) for k, letter in enumerate(letters)})
    return (tuple(term.translate(table) for term in terms), result.translate(table)), own


def _groups_of_swaps(swaps: Sequence[Pairs]) -> list[FiniteSymmetry]:
    """Symmetric groups: all n(n-1)/2 exchanges of n blocks of arrays are one, other exchanges stand alone."""
    orbits: dict[str, tuple[str, ...]] = {}
    for a, b in (pair for pairs in swaps for pair in pairs):
        joined = tuple(dict.fromkeys((*orbits.get(a, (a,)), *orbits.get(b, (b,)))))
        orbits.update(dict.fromkeys(joined, joined))
    by_orbits: dict[frozenset[tuple[str, ...]], list[Pairs]] = {}
    for pairs in swaps:
        by_orbits.setdefault(frozenset(orbits[a] for a, _ in pairs), []).append(pairs)
    found = []
    for same in by_orbits.values():
        first = [orbits[a] for a, _ in same[0]]
        n = len(first[0])
        if (
            len(set(first)) == len(first)
            and {len(orbit) for orbit in first} == {n}
            and 2 * len(same) == n * (n - 1)
        ):
            found.append(_symmetric(n, [" <-> ".join(orbit) for orbit in first]))
        else:
            found += [_symmetric(2, [" <-> ".join(pair) for pair in pairs]) for pairs in same]
    return found


class _SmallMap:
    """A map with few weights: those that an exchange does not move may answer it by an affine map."""

    def __init__(self, program: Program, p: int) -> None:
        self.program, self.p, self.model = program, p, OwnNetwork(recorded=program)
        self.parts = {name: (shape, part) for name, shape, part in flat_parts(program.parameters)}

    def swapped(self, pairs: Pairs) -> Affine | None:
        """How the other weights answer an exchange of arrays in which they need not move; None if it is no symmetry."""
        return self._verified(_order(self.program, pairs), [], (np.zeros((0, 0), int), np.zeros(0, int)))

    def exchanges(self, known: Sequence[FiniteSymmetry], swaps: Sequence[Pairs]) -> Iterator[FiniteSymmetry]:
        """Exchanges of slices and of arrays that are not known, with what the other weights answer."""
        for n, words, moved, orders in (*self._slices(known), *self._swaps(swaps)):
            answers = [self._answer(order, moved) for order in orders]
            if answers[0] is not None and None not in answers:
                yield _symmetric(n, [*words, *self._told(moved, answers[0])])

    def _slices(self, known: Sequence[FiniteSymmetry]) -> Iterator[Trial]:
        """Slices along axes of one length, permuted together: a swap and a turn generate all permutations."""
        shapes = self.program.parameters
        for n in sorted({length for shape in shapes.values() for length in shape if length > 1}):
            axes = {name: shape.index(n) for name, shape in shapes.items() if shape.count(n) == 1}
            words = [f"{name} axis {axis}" for name, axis in axes.items()]
            equal = [set(item.acts_on) for item in known if item.group == f"S_{n}"]
            shown = set[str]().union(*(own for own in equal if own <= set(words)))
            if axes and shown != set(words) and not any(set(words) <= own for own in equal):
                several = ([1, 0, *range(2, n)], [*range(1, n), 0])[: n - 1]
                yield n, words, axes, [self._sliced(axes, order) for order in several]

    def _swaps(self, known: Sequence[Pairs]) -> Iterator[Trial]:
        for pairs in islice(_candidates(self.program), MOST_EXCHANGES // 10):
            moved = {name for pair in pairs for name in pair}
            seen = any(set(other) <= set(pairs) or set(pairs) <= set(other) for other in known)
            if not seen and len(moved) < len(self.parts):
                yield 2, [" <-> ".join(pair) for pair in pairs], moved, [_order(self.program, pairs)]

    def _sliced(self, axes: Mapping[str, int], order: list[int]) -> Integers:
        found = np.arange(self.program.parameter_count)
        for name, axis in axes.items():
            shape, part = self.parts[name]
            found[part] = np.take(found[part].reshape(shape), order, axis=axis).reshape(-1)
        return found

    def _answer(self, order: Integers, moved: Collection[str]) -> Affine | None:
        """How the weights that are not moved answer a permutation of the others; None if no affine map does."""
        rest = [
            k
            for name, (_, part) in self.parts.items()
            if name not in moved
            for k in range(part.start, part.stop)
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
        if balanced.size and np.abs(balanced).max() > _LARGEST:
            return None
        return self._verified(order, rest, (balanced[:-1].T, balanced[-1]))

    def _coordinates(self, points: Sequence[Integers]) -> Integers:
        """The coordinates at flat weights, one point a row."""
        table, p = np.stack(points) % self.p, self.p
        given = {
            name: Mod(table[:, part].reshape(len(table), *shape), p)
            for name, (shape, part) in self.parts.items()
        }
        return np.asarray(self.model.coordinates(given).values).reshape(len(table), -1)

    def _solved(self, columns: Any, right: int) -> np.ndarray | None:
        """The only solution of a linear system over F_p, right sides in the last columns; None if there is not exactly one."""
        table = np.stack(list(columns), axis=1) % self.p
        unknowns = table.shape[1] - right
        reduced, pivots = echelon_mod(table, self.p)
        return reduced[:unknowns, unknowns:] if pivots == tuple(range(unknowns)) else None

    @cached_property
    def _variables(self) -> tuple[np.ndarray, list[Any]]:
        """The flat weights as variables, and the coordinates as polynomials in them."""
        weights, _ = symbolic_weights(self.model)
        flat = np.concatenate([array.reshape(-1) for array in weights.values()])
        return flat, list(self.model.coordinates(weights).reshape(-1))

    def _verified(self, order: Integers, rest: list[int], answer: Affine) -> Affine | None:
        """The answer, if with it every coordinate stays as it is, as polynomials in the weights."""
        try:
            flat, before = self._variables
            moved = flat[order]
            for k, row, c in zip(rest, *answer, strict=True):
                moved[k] = sum(
                    (int(m) * r for m, r in zip(row, flat[rest], strict=True)), flat[0] * 0 + int(c)
                )
            given = {name: moved[part].reshape(shape) for name, (shape, part) in self.parts.items()}
            after = self.model.coordinates(given).reshape(-1)
        except OutOfReachError:
            return None
        return answer if all(a == b for a, b in zip(before, after, strict=True)) else None

    def _told(self, moved: Collection[str], answer: Affine) -> list[str]:
        """What happens to the other weights, in words: ``weight -> 1 - weight``."""
        (matrix, shift), words, start = answer, [], 0
        for name, (shape, _) in self.parts.items():
            if name in moved:
                continue
            own = slice(start, start + prod(shape))
            start = own.stop
            unit = np.zeros_like(matrix[own])
            unit[:, own] = np.eye(prod(shape), dtype=int)
            if (matrix[own] == unit).all() and not shift[own].any():
                continue
            if prod(shape) == 1 and not (matrix[own] * (1 - unit)).any():
                m, c = int(matrix[own.start, own.start]), int(shift[own.start])
                term = {1: name, -1: f"-{name}"}.get(m, f"{m} {name}")
                words.append(f"{name} -> {f'{c} - {name}' if m == -1 else f'{c} + {term}' if c else term}")
            else:
                words.append(f"{name} by an affine map")
        return words
