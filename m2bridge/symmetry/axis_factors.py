"""The factors of the axes of a program: the least common refinement that its reshapes and slices need."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd

from m2bridge.programs.program import Instruction, Program, Shape

Axis = tuple[int, int]
"""An instruction and an axis of its result."""


class DisjointSets:
    """Disjoint sets: `root` returns the representative of an element, `join` unites two sets."""

    def __init__(self) -> None:
        self._parents: dict[object, object] = {}

    def root(self, item: object) -> object:
        parents = self._parents
        while parents.setdefault(item, item) != item:
            parents[item] = parents[parents[item]]
            item = parents[item]
        return item

    def join(self, first: object, second: object) -> None:
        self._parents[self.root(first)] = self.root(second)


class AxisFactors:
    """The factors of all axes of a program: the least common refinement that reshapes and slices need."""

    def __init__(self, program: Program) -> None:
        self.items = program.instructions
        self.sets = DisjointSets()
        self.divisors: dict[object, set[int]] = {}
        for index, item in enumerate(self.items):
            for axis, other in _equal_axes(self.items, index, item):
                self.sets.join(axis, other)
        changed = True
        while changed:
            changed = any([self._refined(index) for index in range(len(self.items))])

    def of_axis(self, index: int, axis: int) -> Shape:
        """Return the factors of one axis, outer first; none for an axis of length one."""
        length = self.items[index].shape[axis]
        steps = sorted({1, length, *self.divisors.get(self.sets.root((index, axis)), ())}, reverse=True)
        return tuple(large // small for large, small in pairwise(steps))

    def of(self, index: int) -> Shape:
        """Return the factors of all axes of an instruction."""
        return tuple(n for axis in range(len(self.items[index].shape)) for n in self.of_axis(index, axis))

    def spans(self, index: int) -> list[range]:
        """Return for each axis the positions of its factors in :meth:`of`."""
        ranges, start = [], 0
        for axis in range(len(self.items[index].shape)):
            stop = start + len(self.of_axis(index, axis))
            ranges.append(range(start, stop))
            start = stop
        return ranges

    def _refined(self, index: int) -> bool:
        """Refine the axes of a reshape or slice and of its operand; return whether something changed."""
        item = self.items[index]
        if item.operation == "reshape":
            sides = (index, item.operands[0])
            steps = {step for side in sides for step in self._steps(side)}
            return any([self._divide_all(side, steps) for side in sides])
        if item.operation == "slice":
            shape = self.items[item.operands[0]].shape
            changes = [
                self._slice_refined(index, item.operands[0], axis, bounds)
                for axis, (bounds, n) in enumerate(zip(item.constants, shape, strict=True))
                if bounds != (0, n, 1)
            ]
            return any(changes)
        return False

    def _steps(self, index: int) -> set[int]:
        """Return the numbers of entries of all trailing blocks of factors."""
        sizes, step = {1}, 1
        for n in reversed(self.of(index)):
            step *= n
            sizes.add(step)
        return sizes

    def _divide_all(self, index: int, steps: set[int]) -> bool:
        """Divide the axes of an instruction at trailing blocks with these numbers of entries, where that fits."""
        changed, inner = False, 1
        for axis in reversed(range(len(self.items[index].shape))):
            length = self.items[index].shape[axis]
            for step in steps:
                if step % inner == 0 and inner < step < inner * length:
                    changed |= self._divide(index, axis, step // inner)
            inner *= length
        return changed

    def _divide(self, index: int, axis: int, step: int) -> bool:
        """Divide an axis into blocks of `step` entries, if that fits the divisions before."""
        length = self.items[index].shape[axis]
        divisors = self.divisors.setdefault(self.sets.root((index, axis)), set())
        if step in divisors or not 1 < step < length or length % step:
            return False
        if any(step % other and other % step for other in divisors):
            return False
        divisors.add(step)
        return True

    def _slice_refined(self, index: int, operand: int, axis: int, bounds: tuple[int, int, int]) -> bool:
        start, count, step = bounds
        length = self.items[operand].shape[axis]
        common = gcd(start, count, length) if step == 1 else step
        changed = self._divide(operand, axis, common)
        for side, other in ((operand, index), (index, operand)):
            for divisor in list(self.divisors.get(self.sets.root((side, axis)), ())):
                if step == 1 and common % divisor == 0:
                    changed |= self._divide(other, axis, divisor)
        if step == 1:
            changed |= self._divide(index, axis, common)
        return changed


def _equal_axes(items: Sequence[Instruction], index: int, item: Instruction) -> list[tuple[Axis, Axis]]:
    """List pairs of axes with the same index in one instruction."""
    shapes = [items[k].shape for k in item.operands]
    if item.operation == "einsum":
        terms, result = item.constants
        first: dict[str, Axis] = {}
        pairs = []
        for k, term in (*zip(item.operands, terms, strict=True), (index, result)):
            for axis, letter in enumerate(term):
                pairs.append((first.setdefault(letter, (k, axis)), (k, axis)))
        return pairs
    pairs = []
    for k, shape in zip(item.operands, shapes, strict=True):
        if item.operation in ("add", "multiply"):
            shift = len(item.shape) - len(shape)
            equal = [(a, a + shift) for a, n in enumerate(shape) if n == item.shape[a + shift]]
        elif item.operation in ("reshape", "gather"):
            equal = []
        else:
            equal = [(a, a) for a, n in enumerate(shape) if n == item.shape[a]]
        pairs += [((k, a), (index, b)) for a, b in equal]
    return pairs
