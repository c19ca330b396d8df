"""Find scalings (tori) along axes of the weights.

The label of an array is the exponent of its scaling; each step of the program gives linear equations between labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import lcm, prod

import numpy as np

from m2bridge.symmetry.axis_factors import DisjointSets
from m2bridge.symmetry.axis_groups import Action, AxisGroup, Labels, Node, entries_of, ordered_actions
from m2bridge.symmetry.factored import FactoredProgram, Letters, Tensor

_EXPONENTS = {"reciprocal": Fraction(-1), "sqrt": Fraction(1, 2)}
_MOST_SCALED_INDICES = 3
"""A torus has one scaling for each tuple of at most this many indices."""


def index_spaces(program: FactoredProgram) -> DisjointSets:
    """Unite axes, as (number of the tensor, (position,)), that have the same index."""
    sets = DisjointSets()
    for index, item in enumerate(program.tensors):
        first: dict[int, Node] = {}
        for k, letters in ((index, item.result), *zip(item.operands, item.letters, strict=True)):
            for position, letter in enumerate(letters):
                node = (k, (position,))
                sets.join(first.setdefault(letter, node), node)
    return sets


def axis_spaces(program: FactoredProgram) -> list[list[object]]:
    """Return for each tensor the index spaces of its axes."""
    sets = index_spaces(program)
    return [[sets.root((k, (a,))) for a in range(len(item.shape))] for k, item in enumerate(program.tensors)]


def chosen_spaces(program: FactoredProgram, spaces: Sequence[Sequence[object]]) -> list[tuple[object, ...]]:
    """List the tuples of different index spaces of axes of one weight, large ones first."""
    choices = dict.fromkeys(
        tuple(spaces[k][a] for a in axes)
        for k, _ in program.weights()
        for count in range(_MOST_SCALED_INDICES + 1)
        for axes in combinations(range(len(spaces[k])), count)
    )
    different = {frozenset(choice): choice for choice in choices if len(set(choice)) == len(choice)}
    return sorted(different.values(), key=len, reverse=True)


def tori(program: FactoredProgram, earlier: Sequence[Labels]) -> list[AxisGroup]:
    """Return tori with one scaling for each tuple of indices; larger tuples first, without scalings that were found before."""
    spaces, groups, before = axis_spaces(program), list[AxisGroup](), list(earlier)
    for choice in chosen_spaces(program, spaces):
        for labels in _torus_labels(program, spaces, choice, before):
            before.append(labels)
            groups.append(_torus(program, labels))
    return groups


def _torus_labels(
    program: FactoredProgram,
    spaces: Sequence[Sequence[object]],
    choice: tuple[object, ...],
    before: Sequence[Labels],
) -> list[Labels]:
    """Solve for the labels of weights at tuples of axes in given index spaces, modulo solutions that were found before."""
    unknowns: dict[Node, int] = {}
    forms: dict[Node, dict[Node, Fraction]] = {}
    equations: list[dict[Node, Fraction]] = []
    for index, item in enumerate(program.tensors):
        nodes = [(index, axes) for axes in axis_tuples(spaces[index], choice)]
        if item.operation == "weight":
            for node in nodes:
                unknowns[node] = len(unknowns)
                forms[node] = {node: Fraction(1)}
            continue
        results = {tuple(item.result[a] for a in axes): (index, axes) for _, axes in nodes}
        forms |= {node: {} for node in results.values()}
        for letters, sources in nodes_by_letters(item, spaces, choice).items():
            if item.operation == "centred" and not set(letters).isdisjoint(item.along):
                equations += [forms[node] for node in sources]
            else:
                equations += label_equations(item, results.get(letters), sources, forms)
    equations += [
        forms[node]
        for k in program.outputs
        for axes in axis_tuples(spaces[k], choice)
        for node in [(k, axes)]
    ]
    solutions = common_kernel(equations, list(unknowns))
    return independent_of(solutions, [projected(labels, spaces, choice) for labels in before])


def axis_tuples(spaces: Sequence[object], choice: Sequence[object]) -> Iterator[Letters]:
    """List the tuples of axes that lie in the chosen index spaces."""
    axes_in = [[a for a, space in enumerate(spaces) if space == wanted] for wanted in choice]
    if not all(axes_in):
        return
    chosen: list[Letters] = [()]
    for options in axes_in:
        chosen = [(*axes, a) for axes in chosen for a in options if a not in axes]
    yield from chosen


def nodes_by_letters(
    item: Tensor, spaces: Sequence[Sequence[object]], choice: tuple[object, ...]
) -> dict[Letters, list[Node]]:
    """Group the tuples of axes of the operands by their letters."""
    nodes: dict[Letters, list[Node]] = {}
    for k, letters in zip(item.operands, item.letters, strict=True):
        for axes in axis_tuples(spaces[k], choice):
            nodes.setdefault(tuple(letters[a] for a in axes), []).append((k, axes))
    return nodes


def label_equations(
    item: Tensor, result: Node | None, nodes: Sequence[Node], forms: dict[Node, dict[Node, Fraction]]
) -> list[dict[Node, Fraction]]:
    """Set the label of a result and return the forms that must vanish, for one tuple of letters of a step."""
    labels = [forms[node] for node in nodes]
    if item.operation in ("exp", "softmax"):
        return labels
    if item.operation in ("add", "scale", "centred", "opaque"):
        equal = [total_of([labels[0], multiple_of(other, -1)]) for other in labels[1:]]
        if result is None or (item.operation == "add" and len(labels) < len(item.operands)):
            return [*equal, labels[0]]
        forms[result] = labels[0]
        return equal
    total = multiple_of(
        total_of(labels), _EXPONENTS.get(item.operation, item.number if item.operation == "power" else 1)
    )
    if result is None:
        return [total]
    forms[result] = total
    return []


def total_of(forms: Sequence[Mapping[Node, Fraction]]) -> dict[Node, Fraction]:
    total: dict[Node, Fraction] = {}
    for form in forms:
        for node, c in form.items():
            total[node] = total.get(node, Fraction(0)) + c
    return {node: c for node, c in total.items() if c}


def multiple_of(form: Mapping[Node, Fraction], factor: int | Fraction) -> dict[Node, Fraction]:
    return {node: factor * c for node, c in form.items()}


def projected(labels: Labels, spaces: Sequence[Sequence[object]], choice: tuple[object, ...]) -> Labels:
    """Restrict a known torus to the axes in `choice`, with equal scalings along its other axes.

    Return {} if an action does not have exactly one axis in each chosen space.
    """
    products: Labels = {}
    for (k, axes), label in labels.items():
        inside = [[a for a in axes if spaces[k][a] == wanted] for wanted in choice]
        if any(len(options) != 1 for options in inside):
            return {}
        node = (k, tuple(options[0] for options in inside))
        products[node] = products.get(node, Fraction(0)) + label
    return products


def common_kernel(equations: Sequence[Mapping[Node, Fraction]], unknowns: Sequence[Node]) -> list[Labels]:
    """Return a basis of the labels at which all forms vanish."""
    solved: dict[Node, dict[Node, Fraction]] = {}
    for equation in equations:
        rest = _reduced(equation, solved)
        if not rest:
            continue
        pivot = next(iter(rest))
        form_of_pivot = {node: -c / rest[pivot] for node, c in rest.items() if node != pivot}
        solved = {node: _substituted(form, pivot, form_of_pivot) for node, form in solved.items()}
        solved[pivot] = form_of_pivot
    basis = []
    for free in unknowns:
        if free not in solved:
            basis.append(
                {free: Fraction(1)} | {n: form[free] for n, form in solved.items() if form.get(free)}
            )
    return basis


def _reduced(
    form: Mapping[Node, Fraction], solved: Mapping[Node, Mapping[Node, Fraction]]
) -> dict[Node, Fraction]:
    terms = [
        {other: c * d for other, d in solved[node].items()} if node in solved else {node: c}
        for node, c in form.items()
    ]
    return total_of(terms)


def _substituted(
    form: Mapping[Node, Fraction], pivot: Node, value: Mapping[Node, Fraction]
) -> dict[Node, Fraction]:
    return _reduced(form, {pivot: value}) if pivot in form else dict(form)


def independent_of(solutions: Sequence[Labels], earlier: Sequence[Labels]) -> list[Labels]:
    """Return those solutions that are independent of the known ones and of those before them, short ones first."""
    solved: dict[Node, dict[Node, Fraction]] = {}
    chosen = []
    for number, labels in enumerate([*earlier, *sorted(solutions, key=len)]):
        rest = {node: c for node, c in labels.items() if c}
        for pivot, row in solved.items():
            if pivot in rest:
                rest = total_of([rest, multiple_of(row, -rest[pivot])])
        if not rest:
            continue
        pivot = next(iter(rest))
        solved[pivot] = {node: c / rest[pivot] for node, c in rest.items()}
        if number >= len(earlier):
            chosen.append(labels)
    return chosen


def _torus(program: FactoredProgram, labels: Labels) -> AxisGroup:
    """Return the torus with the given labels, as integers without a common factor."""
    common = lcm(*(label.denominator for label in labels.values()))
    actions = []
    for (k, axes), label in labels.items():
        item = program.tensors[k]
        entries = np.moveaxis(entries_of(item), axes, range(len(axes)))
        size = prod(item.shape[a] for a in axes)
        actions.append(Action(item, int(label * common), entries.reshape(1, size, -1), (), axes))
    return AxisGroup("torus", actions[0].entries.shape[1], 1, ordered_actions(actions))
