"""Finite symmetries that are read off a program: permutations of equal slices (neurons, heads, channels), and signs of weights.

A permutation of one index passes through a program when every instruction treats its axes alike: axes that an einsum, a sum or a
product ties together are permuted together. So the axes of all instructions fall into classes, and a class in which no axis
belongs to an input, an output or a constant, and none is cut or reshaped, carries a full symmetric group.

The sign of a product is the product of the signs, and a sum keeps a sign only if its terms agree. So the program says which sets
of weights must change their signs evenly, and the rest is linear algebra over F_2.

What is found is proved; a symmetry that only a cancellation would allow is not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import factorial, prod

import numpy as np

from m2bridge.families.symmetries import SignedPermutation
from m2bridge.programs.arithmetics import ObjectArithmetic, object_array
from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.points import Integers
from m2bridge.programs.program import Instruction, Program
from m2bridge.programs.run import Lettered, evaluate
from m2bridge.symmetry.names import entry_name, slice_name

MOST_SIGNED_WEIGHTS = 2000
"""A network with more weights is not searched: the masks of its entries would take more than a few seconds."""

Axis = tuple[int, int]
"""An instruction and an axis of its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteSymmetry:
    """A finite group acting on the weights: its name, order, which axes or arrays it acts on, and that it was verified."""

    group: str
    order: int
    acts_on: tuple[str, ...]
    verified: bool


def symmetric_group(n: int, acts_on: Sequence[str]) -> FiniteSymmetry:
    return FiniteSymmetry(group=f"S_{n}", order=factorial(n), acts_on=tuple(acts_on), verified=True)


# -- permutations -------------------------------------------------------------


def permutations(program: Program) -> list[FiniteSymmetry]:
    """Symmetric groups that permute equal slices."""
    return [
        symmetric_group(n, [f"{name} axis {k}" for name, k in axes]) for n, axes in permuted_axes(program)
    ]


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


def _ties(program: Program, place: int, item: Instruction) -> tuple[list[tuple[Axis, Axis]], list[Axis]]:  # noqa: C901 -- one case for each instruction
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


# -- signs -----------------------------------------------------------------------------------------------


class _Parity:
    """The sign of a number when weights change theirs: `mask` holds the weights on which it depends; zero has every sign.

    A sum has a sign only where the signs of its terms agree: `agree` collects the masks that must be even.
    """

    __slots__ = ("agree", "mask")

    def __init__(self, mask: int | None, agree: set[int]) -> None:
        self.mask, self.agree = mask, agree

    def __add__(self, other: _Parity) -> _Parity:
        if self.mask is None or other.mask is None:
            return other if self.mask is None else self
        self.agree.add(self.mask ^ other.mask)
        return self

    def __mul__(self, other: _Parity) -> _Parity:
        zero = self.mask is None or other.mask is None
        return _Parity(None if zero else self.mask ^ other.mask, self.agree)  # type: ignore[operator]

    def __truediv__(self, other: _Parity) -> _Parity:
        return self * other

    def __rtruediv__(self, one: int) -> _Parity:
        return self

    def exp(self) -> _Parity:
        self.agree.add(self.mask or 0)
        return _Parity(0, self.agree)


def signs(program: Program) -> list[FiniteSymmetry]:
    """Generators of the group of signs of weights that change no output."""
    return [
        FiniteSymmetry(group="sign", order=2, acts_on=_moved(program, mask), verified=True)
        for mask in _sign_changes(program)
    ]


def finite_group(
    program: Program, more: Sequence[SignedPermutation] = (), *, most: int
) -> tuple[SignedPermutation, ...]:
    """Elements of the group that permutations of slices, signs and more generate: the identity first, at most so many."""
    size = program.parameter_count
    masks = [np.array([mask >> k & 1 for k in range(size)]) for mask in _sign_changes(program)]
    signs = [SignedPermutation(tuple(range(size)), tuple((1 - 2 * mask).tolist())) for mask in masks]
    return permuting_elements(program, permuted_axes(program), [*signs, *more], most=most)


def slices_permuted(program: Program, n: int, axes: Iterable[tuple[str, int]]) -> list[Integers]:
    """Where flat weights come from when n slices along axes are permuted together: by a swap and a turn, which generate all."""
    found, along = [], list(axes)
    for moved in ([1, 0, *range(2, n)], [*range(1, n), 0])[: n - 1]:
        order = np.arange(program.parameter_count)
        for name, shape, part in flat_parts(program.parameters):
            for axis in (k for other, k in along if other == name):
                order[part] = np.take(order[part].reshape(shape), moved, axis=axis).reshape(-1)
        found.append(order)
    return found


def permuting_elements(
    program: Program,
    permuted: Iterable[tuple[int, list[tuple[str, int]]]],
    more: Sequence[SignedPermutation] = (),
    *,
    most: int,
) -> tuple[SignedPermutation, ...]:
    """Elements of the group that permutations along axes, and more generators, generate: the identity first, at most so many."""
    size, plus = program.parameter_count, (1,) * program.parameter_count
    orders = [order for n, axes in permuted for order in slices_permuted(program, n, axes)]
    generators = [*more, *(SignedPermutation(tuple(order.tolist()), plus) for order in orders)]
    found = [SignedPermutation(tuple(range(size)), plus)]
    for element in found:
        found += [new for step in generators if (new := step.after(element)) not in found][
            : most - len(found)
        ]
    return tuple(found)


def _sign_changes(program: Program) -> list[int]:
    """Sets of weights, as masks, whose signs can change together, generators of them all: whole arrays first, then slices."""
    size = program.parameter_count
    if size > MOST_SIGNED_WEIGHTS:
        return []
    whole = [(1 << part.stop) - (1 << part.start) for _, _, part in flat_parts(program.parameters)]
    even = _even_sets(program)
    by_array = [sum((mask & array).bit_count() % 2 << k for k, array in enumerate(whole)) for mask in even]
    arrays = [
        sum(array for k, array in enumerate(whole) if choice >> k & 1)
        for choice in _short_kernel(by_array, len(whole))
    ]
    found: list[int] = []
    for mask in (*arrays, *_short_kernel(even, size)):
        if _rest(mask, _echelon(found)):
            found.append(mask)
    return found


def _moved(program: Program, mask: int) -> tuple[str, ...]:
    """The arrays and slices whose sign changes."""
    names: list[str] = []
    for name, shape, part in flat_parts(program.parameters):
        chosen = np.array([mask >> k & 1 for k in range(part.start, part.stop)]).reshape(shape)
        indices = [tuple(int(i) for i in index) for index in np.argwhere(chosen)]
        if indices:
            where = slice_name(shape, indices)
            names += [entry_name(name, index) for index in indices] if where is None else [f"{name}{where}"]
    return tuple(names)


def _even_sets(program: Program) -> list[int]:
    """Sets of weights of which an even number must change its sign, so that no output changes."""
    agree: set[int] = set()
    arithmetic = ObjectArithmetic(lambda number: _Parity(0 if number else None, agree))
    given = {}
    for name, shape, part in flat_parts(program.parameters):
        own = [_Parity(1 << k, agree) for k in range(part.start, part.stop)]
        given[name] = Lettered("", object_array(own, shape), arithmetic)
    for name, shape in program.input_shapes.items():
        given[name] = Lettered("", object_array([_Parity(0, agree)] * prod(shape), shape), arithmetic)
    values = evaluate(program, arithmetic, given)
    for _, place in program.outputs:
        agree.update(entry.mask or 0 for entry in values[place].array.reshape(-1))
    return sorted(agree - {0})


# -- linear algebra over F_2, vectors as bits of integers ------------------------------------------------


def _echelon(rows: Iterable[int]) -> dict[int, int]:
    """A reduced basis of the span: highest bit to vector, no vector with the highest bit of another."""
    basis: dict[int, int] = {}
    for row in rows:
        if rest := _rest(row, basis):
            top = rest.bit_length() - 1
            basis = {bit: other ^ rest if other >> top & 1 else other for bit, other in basis.items()}
            basis[top] = rest
    return basis


def _rest(row: int, basis: dict[int, int]) -> int:
    """What is left of a vector modulo a reduced basis: zero exactly if it lies in the span."""
    for top, other in basis.items():
        if row >> top & 1:
            row ^= other
    return row


def _short_kernel(rows: Iterable[int], size: int) -> list[int]:
    """A basis of the vectors of length `size` that meet every row in an even number of places; no sum of two of them is
    shorter than the longer one.

    >>> [bin(vector) for vector in _short_kernel([0b011, 0b110], 3)]
    ['0b111']
    """
    basis = _echelon(rows)
    free = [bit for bit in range(size) if bit not in basis]
    found = [1 << bit | sum(1 << top for top, row in basis.items() if row >> bit & 1) for bit in free]
    changed = True
    while changed:
        found.sort(key=int.bit_count)
        changed = False
        for k in range(len(found)):
            for short in found[:k]:
                if (found[k] ^ short).bit_count() < found[k].bit_count():
                    found[k] ^= short
                    changed = True
    return found
