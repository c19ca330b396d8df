"""GL and O that act along axes of the weights: axes that the steps of a program tie move together, or dually."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from m2bridge.symmetry.axis_factors import DisjointSets
from m2bridge.symmetry.axis_groups import Action, AxisGroup, Labels, Node, entries_of, ordered_actions
from m2bridge.symmetry.factored import FactoredProgram, Letters, Tensor


def matrix_groups(program: FactoredProgram) -> list[tuple[AxisGroup, Labels]]:
    """Return the groups of matrices, each with the labels of its diagonal matrices."""
    matrices = _Matrices(program)
    groups = [matrices.group(ties, fixes_ones) for ties, fixes_ones in _components(program)]
    return [item for item in groups if item is not None]


@dataclass(frozen=True, slots=True)
class _Tie:
    """Two axes of tensors that move together (sign 1) or dually (-1), and positions of axes of both with the same letter."""

    first: Node
    second: Node
    sign: int
    beside: tuple[tuple[int, int], ...]


def _ties(program: FactoredProgram) -> tuple[list[_Tie], list[Node], list[Node]]:
    """List the axes that matrices move together, those along which no matrix can act, and those where it has to fix ones."""
    ties: list[_Tie] = []
    ones: list[Node] = []
    still: list[Node] = [(k, (a,)) for k in program.outputs for a in range(len(program.tensors[k].shape))]
    for index, item in enumerate(program.tensors):
        sides = item.sides
        if item.operation == "fixed":
            still += [(index, (a,)) for a in range(len(item.shape))]
        if not item.operands:
            continue
        for letter in dict.fromkeys(a for letters in (*item.letters, item.result) for a in letters):
            axes = [(k, letters) for k, letters in sides if letter in letters]
            if letter in item.result:
                axes.append((index, item.result))
            summed = item.operation == "einsum" and len(axes) == 1 and axes[0][1].count(letter) == 1
            spread = item.operation == "add" and len(axes) <= len(sides)
            centred = item.operation == "centred" and letter in item.along
            if summed or spread or centred:  # a product of the array with ones, or a sum with one
                ones.append((axes[-1][0], (axes[-1][1].index(letter),)))
            elif len(axes) != 2 if item.operation == "einsum" else not _keeps(item, letter):
                still += [(k, (letters.index(letter),)) for k, letters in axes]
                continue
            sign = 1 if letter in item.result else -1
            mixed = {letter, *item.along}
            ties += [_tie(axes[0], other, letter, sign, mixed) for other in axes[1:]]
    return ties, still, ones


def _keeps(item: Tensor, letter: int) -> bool:
    """Return whether matrices along the axis commute with a step that is no einsum."""
    linear = item.operation in ("add", "scale", "centred", "opaque")
    return linear and letter in item.result and all(letter in letters for letters in item.letters)


def _tie(
    first: tuple[int, Letters], second: tuple[int, Letters], letter: int, sign: int, mixed: Collection[int]
) -> _Tie:
    """Tie the axes with a letter; axes whose indices are mixed count no copies of a group."""
    (k, a), (j, b) = first, second
    beside = tuple((a.index(x), b.index(x)) for x in a if x not in mixed and x in b)
    return _Tie((k, (a.index(letter),)), (j, (b.index(letter),)), sign, beside)


def _components(program: FactoredProgram) -> list[tuple[list[_Tie], bool]]:
    """List the ties of each set of axes along which matrices act, and whether these have to fix the vector of ones."""
    ties, still, ones = _ties(program)
    sets = DisjointSets()
    for tie in ties:
        sets.join(tie.first, tie.second)
    fixed = {sets.root(node) for node in still}
    components: dict[object, list[_Tie]] = {}
    for tie in ties:
        if sets.root(tie.first) not in fixed:
            components.setdefault(sets.root(tie.first), []).append(tie)
    fixing = {sets.root(node) for node in ones}
    return [(component, root in fixing) for root, component in components.items()]


class _Matrices:
    """Makes the group of matrices of one set of axes that move together."""

    def __init__(self, program: FactoredProgram) -> None:
        self.program = program

    def group(self, ties: Sequence[_Tie], fixes_ones: bool) -> tuple[AxisGroup, Labels] | None:
        """Return GL or O on these axes, and the labels of its diagonal matrices; None if no weight moves."""
        signs = _signs(ties)
        nodes = list(dict.fromkeys(node for tie in ties for node in (tie.first, tie.second)))
        moved = [(k, axes) for k, axes in nodes if self.program.tensors[k].operation == "weight"]
        if not moved:
            return None
        orthogonal = signs is None
        signs = signs or dict.fromkeys(nodes, 1)
        copies = self._copy_axes(ties, nodes)
        actions = ordered_actions([self._action(node, signs[node], copies) for node in moved])
        count, size, _ = actions[0].entries.shape
        if size - fixes_ones <= orthogonal:
            return None
        labels = (
            {}
            if orthogonal or fixes_ones
            else {(k, (*self._beside(k, axes, copies), *axes)): Fraction(signs[k, axes]) for k, axes in moved}
        )
        return AxisGroup("o" if orthogonal else "gl", size, count, actions, fixes_ones), labels

    def _beside(self, k: int, axes: Letters, copies: Sequence[Mapping[Node, int]]) -> Letters:
        return tuple(family[k, axes] for family in copies)

    def _action(self, node: Node, sign: int, copies: Sequence[Mapping[Node, int]]) -> Action:
        item = self.program.tensors[node[0]]
        beside = self._beside(*node, copies)
        entries = np.moveaxis(entries_of(item), (*beside, *node[1]), range(len(beside) + 1))
        count = prod(item.shape[a] for a in beside)
        return Action(item, sign, entries.reshape(count, item.shape[node[1][0]], -1), beside, node[1])

    def _copy_axes(self, ties: Sequence[_Tie], nodes: Sequence[Node]) -> list[dict[Node, int]]:
        """Return axes beside those that move, one for each, which all ties keep: each index there has matrices of its own."""
        sets, broken = DisjointSets(), []
        others = {
            node: [a for a in range(len(self.program.tensors[node[0]].shape)) if (a,) != node[1]]
            for node in nodes
        }
        for tie in ties:
            first, second = dict(tie.beside), {b: a for a, b in tie.beside}
            for a, b in tie.beside:
                sets.join((tie.first, a), (tie.second, b))
            broken += [(tie.first, a) for a in others[tie.first] if a not in first]
            broken += [(tie.second, b) for b in others[tie.second] if b not in second]
        bad = {sets.root(pair) for pair in broken}
        families: dict[object, list[tuple[Node, int]]] = {}
        for node in nodes:
            for a in others[node]:
                families.setdefault(sets.root((node, a)), []).append((node, a))
        return [
            dict(family)
            for root, family in families.items()
            if root not in bad and len(family) == len(nodes) == len(dict(family))
        ]


def _signs(ties: Sequence[_Tie]) -> dict[Node, int] | None:
    """Return a sign for each axis that agrees with all ties, or None if there is none."""
    beside: dict[Node, list[tuple[Node, int]]] = {}
    for tie in ties:
        beside.setdefault(tie.first, []).append((tie.second, tie.sign))
        beside.setdefault(tie.second, []).append((tie.first, tie.sign))
    start = next(iter(beside))
    signs = {start: 1}
    waiting = [start]
    while waiting:
        node = waiting.pop()
        for other, sign in beside[node]:
            if other not in signs:
                waiting.append(other)
            if signs.setdefault(other, sign * signs[node]) != sign * signs[node]:
                return None
    return signs
