"""Signs of weights that change no output, read off the program.

The sign of a product is the product of the signs, and a sum keeps a sign only if its terms agree. So the program says which sets
of weights must change their signs evenly, and the rest is linear algebra over F_2. What is found is proved; a sign that only a
cancellation would allow is not found.
"""

from __future__ import annotations

from math import prod

import numpy as np

from m2bridge.linear.modular import kernel_mod, rank_mod
from m2bridge.models.symmetries import SignedPermutation
from m2bridge.programs.arithmetics import Objects, object_array
from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.points import Integers
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate
from m2bridge.symmetry.finite import FiniteSymmetry, permuted_axes
from m2bridge.symmetry.names import entry_name, slice_name

MOST_SIGNED_WEIGHTS = 400
"""A network with more weights is not searched: the masks of its entries would take too long."""


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
        FiniteSymmetry(group="sign", order=2, acts_on=_moved(program, choice), verified=True)
        for choice in _sign_changes(program)
    ]


def finite_group(program: Program, *, most: int) -> tuple[SignedPermutation, ...]:
    """Elements of the group that permutations of slices and signs generate: the identity first, at most so many."""
    size = program.parameter_count
    same, plus = np.arange(size), np.ones(size, dtype=np.int64)
    generators = [(same, 1 - 2 * choice) for choice in _sign_changes(program)]
    for n, axes in permuted_axes(program):
        for moved in ([1, 0, *range(2, n)], [*range(1, n), 0])[: n - 1]:
            order = same.copy()
            for name, shape, part in flat_parts(program.parameters):
                for axis in (k for other, k in axes if other == name):
                    order[part] = np.take(order[part].reshape(shape), moved, axis=axis).reshape(-1)
            generators.append((order, plus))
    elements = [SignedPermutation(tuple(order.tolist()), tuple(sign.tolist())) for order, sign in generators]
    found = [SignedPermutation(tuple(same.tolist()), tuple(plus.tolist()))]
    for element in found:
        found += [new for step in elements if (new := step.after(element)) not in found][: most - len(found)]
    return tuple(found)


def _sign_changes(program: Program) -> list[Integers]:
    """Sets of weights whose signs can change together, generators of them all: whole arrays first, then slices."""
    size = program.parameter_count
    if size > MOST_SIGNED_WEIGHTS:
        return []
    even, arrays = _even_sets(program), np.zeros((len(program.parameters), size), dtype=np.int64)
    for row, (_, _, part) in zip(arrays, flat_parts(program.parameters), strict=True):
        row[part] = 1
    whole = _short_kernel(even @ arrays.T % 2) @ arrays
    found: list[Integers] = []
    for choice in (*whole, *_short_kernel(even)):
        if rank_mod(np.stack([*found, choice]), 2) > len(found):
            found.append(choice)
    return found


def _short_kernel(even: Integers) -> Integers:
    """A basis of the kernel over F_2, as rows, in which no sum of two is shorter than the longer of them."""
    vectors, changed = kernel_mod(even[:, ::-1], 2)[0][::-1, ::-1].copy(), True
    while changed:
        vectors, changed = vectors[np.argsort(vectors.sum(axis=1), kind="stable")], False
        for k in range(1, len(vectors)):
            sums = vectors[k] ^ vectors[:k]
            lengths = sums.sum(axis=1)
            if lengths.min() < vectors[k].sum():
                vectors[k], changed = sums[lengths.argmin()], True
    return vectors


def _moved(program: Program, choice: Integers) -> tuple[str, ...]:
    """The arrays and slices whose sign changes."""
    names: list[str] = []
    for name, shape, part in flat_parts(program.parameters):
        indices = [tuple(int(i) for i in index) for index in np.argwhere(choice[part].reshape(shape))]
        if indices:
            where = slice_name(shape, indices)
            names += [entry_name(name, index) for index in indices] if where is None else [f"{name}{where}"]
    return tuple(names)


def _even_sets(program: Program) -> Integers:
    """Sets of weights, one a row, of which an even number must change its sign, so that no output changes."""
    agree: set[int] = set()
    arithmetic = Objects(lambda number: _Parity(0 if number else None, agree))
    given = {}
    for name, shape, part in flat_parts(program.parameters):
        own = [_Parity(1 << k, agree) for k in range(part.start, part.stop)]
        given[name] = Lettered("", object_array(own, shape), arithmetic)
    for name, shape in program.input_shapes.items():
        given[name] = Lettered("", object_array([_Parity(0, agree)] * prod(shape), shape), arithmetic)
    values = evaluate(program, arithmetic, given)
    for _, place in program.outputs:
        agree.update(entry.mask or 0 for entry in values[place].array.reshape(-1))
    rows = [[mask >> k & 1 for k in range(program.parameter_count)] for mask in sorted(agree - {0})]
    return np.array(rows, dtype=np.int64).reshape(len(rows), program.parameter_count)
