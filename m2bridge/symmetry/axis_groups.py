"""Symmetries that follow from the structure of a program, at any width.

A group acts on an index space (hidden units, channels, the coordinates of a head). An array moves along each of its axes
by a representation that a number tells: k for diag(s_1^k, ..., s_n^k); 1 or -1 for a matrix g or its inverse transpose. Each step
of the factored program then gives linear equations between these labels: a contraction needs opposite ones, a sum equal
ones, a power multiplies them, inputs and outputs have zero. Their solutions on the weights are symmetries, and the equations are
the proof. The number of unknowns does not depend on the widths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.programs.points import Integers
from m2bridge.symmetry.factored import Letters, Tensor
from m2bridge.symmetry.fields import VectorField

Node = tuple[int, Letters]
"""A tensor and positions of some of its axes."""
Labels = dict[Node, Fraction]
"""For each node the exponent k: index i of these axes is multiplied by s_i^k."""


@dataclass(frozen=True, eq=False, slots=True)
class Action:
    """How a group moves one weight: `entries` are flat weights with axes (copy, index, rest).

    `tensor` is the weight in the factored program; `copies` and `index` are positions of its axes.
    """

    tensor: Tensor
    label: int
    entries: np.ndarray
    copies: Letters
    index: Letters

    @property
    def name(self) -> str:
        return self.tensor.name

    def pair(self, copy: int, row: int, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the entries that move, and those by which they move, under a matrix with one entry."""
        to, source = (row, column) if self.label > 0 else (column, row)
        return self.entries[copy, to], self.entries[copy, source]


@dataclass(frozen=True, eq=False, slots=True)
class AxisGroup:
    """A group that acts on weights along some axes without changing the function.

    Attributes
    ----------
    kind: gl, o (orthogonal) or torus.
    size, copies: n of GL(n) or O(n) and how many copies act; the rank of a torus.
    fixes_ones: whether the matrices fix the vector of ones, from both sides.
    actions: the weights that move. Label k of a torus: index i is multiplied by s_i^k. Of gl: 1 for g, -1 for its
        inverse transpose.
    """

    kind: Literal["gl", "o", "torus"]
    size: int
    copies: int
    actions: tuple[Action, ...]
    fixes_ones: bool = False

    @property
    def dim(self) -> int:
        return self.copies * len(self._matrices())

    @property
    def moved(self) -> tuple[str, ...]:
        """Return the names of the weights that move."""
        return tuple(dict.fromkeys(action.name for action in self.actions))

    @property
    def text(self) -> str:
        """Return the group in words: ``GL(4) for each of 2 blocks (heads): Q, K``."""
        moved = " and ".join([", ".join(self.moved[:-1]), self.moved[-1]] if self.moved[1:] else self.moved)
        if self.kind == "torus":
            powers = ", ".join(
                f"{a.name} by s" + (f"^{a.label}" if a.label != 1 else "") for a in self.actions
            )
            return f"{self.size} scaling{'s' if self.size > 1 else ''}: {powers}"
        blocks = f" for each of {self.copies} blocks (heads)" if self.copies > 1 else ""
        fixing = " that fixes (1, ..., 1)" if self.fixes_ones else ""
        return f"{self.kind.upper()}({self.size}){fixing}{blocks} {'on' if len(self.moved) == 1 else 'between'} {moved}"

    @property
    def name(self) -> str:
        """Return the group, as ``GL(4)^2``."""
        if self.kind == "torus":
            return "GL(1)" if self.size == 1 else f"GL(1)^{self.size}"
        power = f"^{self.copies}" if self.copies > 1 else ""
        return f"{self.kind.upper()}({self.size - self.fixes_ones}){power}"

    def _matrices(self) -> list[tuple[tuple[int, int, int], ...]]:
        """List a basis of the Lie algebra: matrices by their entries (row, column, value)."""
        n = self.size
        if self.kind == "torus":
            return [((i, i, 1),) for i in range(n)]
        if self.fixes_ones:
            return self._matrices_that_fix_ones()
        if self.kind == "gl":
            return [((i, j, 1),) for i in range(n) for j in range(n)]
        return [((i, j, 1), (j, i, -1)) for i in range(n) for j in range(i)]

    def _matrices_that_fix_ones(self) -> list[tuple[tuple[int, int, int], ...]]:
        """List a basis of the matrices whose rows and columns add up to zero; of O(n), the antisymmetric ones."""
        last = self.size - 1
        if self.kind == "gl":
            return [
                ((i, j, 1), (i, last, -1), (last, j, -1), (last, last, 1))
                for i in range(last)
                for j in range(last)
            ]
        return [
            ((i, j, 1), (j, i, -1), (j, last, 1), (last, j, -1), (last, i, 1), (i, last, -1))
            for i in range(last)
            for j in range(i)
        ]

    def fields(self) -> Iterator[VectorField]:
        """List the vector fields of a basis of the Lie algebra, copy by copy."""
        for copy in range(self.copies):
            for matrix in self._matrices():
                terms: Counter[tuple[int, int]] = Counter()
                for row, column, c in matrix:
                    for action in self.actions:
                        for i, j in zip(*action.pair(copy, row, column), strict=True):
                            terms[int(i), int(j)] += c * action.label
                yield VectorField(tuple((i, c, (j,)) for (i, j), c in sorted(terms.items()) if c))

    def is_free_on(self, action: Action, point: Integers, p: int) -> bool:
        """Return whether the whole Lie algebra moves this one weight with full rank at a point modulo p."""
        values = point[action.entries] % p
        if self.kind == "torus":
            return action.label % p != 0 and bool(values.any(axis=2).all())
        if self.fixes_ones:
            values = (values[:, :-1] - values[:, -1:]) % p
        needed = values.shape[1] - (self.kind == "o")
        return values.shape[2] >= needed and all(rank_mod(matrix, p) >= needed for matrix in values)


def ordered_actions(actions: Sequence[Action]) -> tuple[Action, ...]:
    """Order actions by their weights, the first one with a positive label."""
    ordered = sorted(actions, key=lambda action: int(action.entries.min()))
    sign = 1 if ordered[0].label > 0 else -1
    return tuple(replace(action, label=sign * action.label) for action in ordered)


def entries_of(item: Tensor) -> np.ndarray:
    assert item.entries is not None, "only weights have entries"
    return item.entries
