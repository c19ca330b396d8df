"""Compute the normal form of weights under the declared symmetries, which shows that two weights are on the same orbit.

The groups are applied one after the other. Each one normalizes a weight on which no remaining group acts: a change of basis gives
it reduced echelon form, a scaling makes its first non-zero entry 1, and neurons are sorted. Weights on the same orbit then have
the same normal form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m2bridge.families import Model, Symmetry
from m2bridge.programs.arithmetics import elementwise, object_array
from m2bridge.questions import over_q
from m2bridge.questions.equal import comparison

Weights = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An element of a group of symmetries, as exact texts: a matrix, one for each copy, scalars, or a permutation."""

    group: str
    element: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalForm:
    """The normal form, the group elements that give it, and the groups that could not be applied."""

    weights: Weights
    moves: tuple[Move, ...]
    left: tuple[str, ...]


def normal_form(model: Model, weights: Mapping[str, np.ndarray], seed: int) -> NormalForm:
    """Compute the normal form of weights under all groups for which this is possible."""
    current, moves = dict(weights), list[Move]()
    remaining = list(model.knowledge.symmetries)
    left: list[str] = []
    while remaining:
        elements = (
            (group, _element(group, current, _weights_of_one_group(group, remaining))) for group in remaining
        )
        chosen, element = next(((group, g) for group, g in elements if g is not None), (None, None))
        if chosen is None or element is None:
            left += [group.name for group in remaining]
            break
        before, current = current, acted(chosen, element, current)
        if any((current[name] != before[name]).any() for name in chosen.axes):
            moves.append(Move(group=chosen.name, element=elementwise(str, element).tolist()))
        remaining.remove(chosen)
        if chosen.copies > 1:
            left.append(f"permutations of the copies, {chosen.name}")
        if chosen.kind == "torus":
            order, tied = _sorting(model, chosen, current, remaining, seed)
            left += [f"permutations of equal neurons or not verified ones, {chosen.name}"] * tied
            if order is not None:
                current = _permuted(chosen, order, current)
                moves.append(Move(group=f"permutation, {chosen.name}", element=[int(k) for k in order]))
    return NormalForm(weights=current, moves=tuple(moves), left=tuple(left))


def _weights_of_one_group(group: Symmetry, groups: Sequence[Symmetry]) -> list[str]:
    """Return the weights on which only this group acts."""
    other_weights = {name for other in groups if other is not group for name in other.axes}
    return [name for name in group.axes if name not in other_weights]


def _element(group: Symmetry, weights: Weights, references: Sequence[str]) -> np.ndarray | None:
    """Return the element that gives the references their normal form; None if they do not determine it."""
    if group.kind == "gl":
        return _basis_change(group, weights, references)
    scalars = []
    for i in range(group.size):
        scalar = None
        for name in references:
            for axis, label in enumerate(group.axes[name]):
                if label in (1, -1) and scalar is None:
                    entries = (
                        weights[name] if group.kind == "scaling" else np.take(weights[name], [i], axis=axis)
                    )
                    first = next((x for x in entries.flat if x), None)
                    scalar = None if first is None else 1 / first if label == 1 else first
        if scalar is None:
            return None
        scalars.append(scalar)
    return object_array(scalars, (len(scalars),))


def _basis_change(group: Symmetry, weights: Weights, references: Sequence[str]) -> np.ndarray | None:
    """Return for each copy of GL(n) the matrix that gives the references reduced echelon form; None if there is none."""
    for label in (1, -1):
        blocks = [
            np.moveaxis(weights[name], labels.index(label), int(group.copies > 1)).reshape(
                group.copies, group.size, -1
            )
            for name, labels in group.axes.items()
            if name in references and sum(x in (1, -1) for x in labels) == 1 and label in labels
        ]
        if blocks:
            changes = [_to_echelon(matrix) for matrix in np.concatenate(blocks, axis=2)]
            matrices = [g if label == 1 else over_q.inverse(g).T for g in changes if g is not None]
            if len(matrices) == group.copies:
                return np.stack(matrices)
    return None


def _to_echelon(matrix: np.ndarray) -> np.ndarray | None:
    """Return the g for which g * matrix is in reduced echelon form; None if the rows are dependent."""
    pivots, _ = over_q.echelon(matrix)
    return over_q.inverse(matrix[:, pivots]) if len(pivots) == len(matrix) else None


def acted(group: Symmetry, element: Any, weights: Mapping[str, np.ndarray]) -> Weights:
    """Return the weights moved by an element: matrices (copy, n, n) for GL(n), scalars for a torus or a scaling."""
    moved = dict(weights)
    for name, labels in group.axes.items():
        for axis, label in enumerate(labels):
            if label not in (0, "*"):
                moved[name] = _acted_along(group, element, moved[name], axis, int(label))
    return moved


def _acted_along(group: Symmetry, element: Any, array: np.ndarray, axis: int, label: int) -> np.ndarray:
    if group.kind != "gl":
        factors = object_array([s**label for s in element], (len(element),))
        scaled: np.ndarray = array * factors.reshape([-1 if k == axis else 1 for k in range(array.ndim)])
        return scaled
    matrices = element if label == 1 else np.stack([over_q.inverse(g).T for g in element])
    letters = "abcdef"[: array.ndim]
    copy = letters[: group.copies > 1]  # the axis of the copies is the first
    subscripts = f"{copy}z{letters[axis]},{letters}->{letters.replace(letters[axis], 'z')}"
    return np.asarray(np.einsum(subscripts, matrices if copy else matrices[0], array))


def _sorting(
    model: Model, group: Symmetry, weights: Weights, remaining: Sequence[Symmetry], seed: int
) -> tuple[np.ndarray | None, bool]:
    """Return the order that sorts the neurons of a torus, if it keeps the function, and whether neurons are equal.

    Neurons are compared by the weights on which no remaining group acts.
    """
    later = {name for other in remaining for name in other.axes}
    rows = [
        tuple(
            entry
            for name, labels in group.axes.items()
            if name not in later
            for axis, label in enumerate(labels)
            if label not in (0, "*")
            for entry in np.take(weights[name], [i], axis=axis).flat
        )
        for i in range(group.size)
    ]
    order = np.array(sorted(range(group.size), key=rows.__getitem__))
    tied = bool(later) and len(set(rows)) < group.size
    if (order == np.arange(group.size)).all():
        return None, tied
    kept = comparison(model, weights, _permuted(group, order, weights), seed).same
    return (order, tied) if kept else (None, kept is None)


def _permuted(group: Symmetry, order: np.ndarray, weights: Weights) -> Weights:
    moved = dict(weights)
    for name, labels in group.axes.items():
        for axis, label in enumerate(labels):
            if label not in (0, "*"):
                moved[name] = np.take(moved[name], order, axis=axis)
    return moved
