"""Weights moved to the gauge slice: the known symmetries bring them to a normal form, exactly, and say by which elements.

A group is used up on a weight that no group still to come moves: a change of basis brings it to reduced echelon form, a scaling
makes its first entry that is not zero a 1, and neurons are sorted. Weights on one orbit then have one normal form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from flint import fmpq, fmpq_mat

from m2bridge.errors import InputError
from m2bridge.models import Model, Symmetry
from m2bridge.programs.arithmetics import elementwise, object_array
from m2bridge.questions.equal import compared, same_certificate
from m2bridge.questions.kernel import Asking, question
from m2bridge.questions.point import AtOption, RationalizeOption, one_of, resolve
from m2bridge.results import Certainty, Result, Value, register_result
from m2bridge.views import View, cut

Weights = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An element of a group of symmetries, as exact texts: a matrix, one for each copy, scalars, or a permutation."""

    group: str
    element: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalForm:
    """The weights, what moved them there, and the groups that could not be used up."""

    weights: Weights
    moves: tuple[Move, ...]
    left: tuple[str, ...]


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class Canonical(Result):
    """Weights in normal form under the known symmetries.

    Attributes
    ----------
    at, moved: the weights before and after, exact.
    moves: the elements that were applied, in this order.
    left: groups that could not be used up at these weights; when there are none, the whole orbit has this normal form.
    same_function: whether both compute one function, as was found by comparing them, not from the symmetries.
    certificate: both weights as a certificate of equal functions, or None.
    """

    ANALYSIS: ClassVar[str] = "canonical"
    VERSION: ClassVar[int] = 1

    at: Mapping[str, Any]
    moved: Mapping[str, Any]
    moves: tuple[Move, ...]
    left: tuple[str, ...]
    same_function: bool | None
    certificate: Mapping[str, Value] | None

    def view(self) -> View:
        facts = [(move.group, cut(str(move.element).replace("'", ""), 100)) for move in self.moves]
        facts += [(name, cut(str(w).replace("'", ""), 100)) for name, w in self.moved["weights"].items()]
        notes = [f"Not used up, because the weights are special: {name}." for name in self.left]
        answer = (
            f"moved by {len(self.moves)} elements of symmetry groups"
            if self.moves
            else "in normal form already"
        )
        if not self.left:
            notes.append("All weights on the orbit of the known symmetries have this normal form.")
        return View(answer=answer, facts=tuple(facts), notes=tuple(notes))


@question(
    asks="The weights moved to the gauge slice by symmetries, exactly, with the elements that move them.",
    quantities={"same_function": "whether the moved weights compute the same function"},
    example="m2bridge canonical 'mlp(widths=[2,3,2],r=2)' --at weights.npz",
    needs_engine=False,
    takes_prime=False,
)
def canonical(
    ask: Asking, model: Model, *, at: AtOption = None, rationalize: RationalizeOption = None
) -> Canonical:
    """The normal form of weights under the symmetries that the model names; random weights when `at` is None.

    Examples
    --------
    >>> found = canonical("mlp(widths=[1,2,1],r=2)", at={"W1": [[3], [2]], "W2": [[1, 1]]}, engine=False)
    >>> found.moved["weights"], found.same_function
    ({'W1': [['1'], ['1']], 'W2': [['4', '9']]}, True)
    """
    point = resolve(model, one_of(at, None, rationalize), ask.seed)
    if not model.symmetries:
        raise InputError(
            f"{model.title} names no symmetries, so that there is no slice to move to; m2bridge symmetries finds those it has"
        )
    found = normal_form(model, point.weights, ask.seed)
    moved = replace(point, weights=found.weights)
    comparison = compared(model, point.weights, found.weights, ask.seed)
    ask.evidence.append(comparison.evidence)
    if comparison.same is False:
        raise AssertionError(f"a symmetry of {model.spec} changed the function")
    return ask.answer(
        Canonical,
        model=model.spec,
        options={"rationalize": rationalize},
        certainty=Certainty.PROVED if comparison.same else Certainty.PROBABLE,
        at=point.document(None),
        moved=moved.document(None),
        moves=found.moves,
        left=found.left,
        same_function=comparison.same,
        certificate=same_certificate(model, point.vector, moved.vector) if comparison.proved_same else None,
    )


# -- the normal form -------------------------------------------------------------------------------------------------------------


def normal_form(model: Model, weights: Mapping[str, np.ndarray], seed: int) -> NormalForm:
    """The weights after every group has been used up that can be."""
    at, moves = dict(weights), list[Move]()
    remaining = list(model.symmetries)
    left: list[str] = []
    while remaining:
        chosen, element = None, None
        for group in remaining:
            others = {name for other in remaining if other is not group for name in other.axes}
            element = _element(group, at, [name for name in group.axes if name not in others])
            if element is not None:
                chosen = group
                break
        if chosen is None:
            left += [group.name for group in remaining]
            break
        at = acted(chosen, element, at)
        if not _is_identity(chosen, element):
            moves.append(Move(group=chosen.name, element=elementwise(str, np.asarray(element)).tolist()))
        remaining.remove(chosen)
        if chosen.copies > 1:
            left.append(f"permutations of the copies, {chosen.name}")
        if chosen.kind == "torus":
            order, tied = _sorting(model, chosen, at, remaining, seed)
            left += [f"permutations of equal neurons, {chosen.name}"] * tied
            if order is not None:
                at = _permuted(chosen, order, at)
                moves.append(Move(group=f"permutation, {chosen.name}", element=[int(k) for k in order]))
    return NormalForm(weights=at, moves=tuple(moves), left=tuple(left))


def _element(group: Symmetry, weights: Weights, references: Sequence[str]) -> Any:
    """The element that brings the references to normal form; None when they do not determine it."""
    if group.kind == "gl":
        return _basis_change(group, weights, references)
    found = []
    for i in range(group.size):
        scalar = None
        for name in references:
            for axis, label in enumerate(group.axes[name]):
                if label in (1, -1) and scalar is None:
                    part = weights[name] if group.kind == "scaling" else np.take(weights[name], i, axis=axis)
                    first = next((x for x in part.flat if x), None)
                    scalar = None if first is None else 1 / first if label == 1 else first
        if scalar is None:
            return None
        found.append(scalar)
    return object_array(found, (len(found),))


def _basis_change(group: Symmetry, weights: Weights, references: Sequence[str]) -> Any:
    """For each copy of GL(n) the matrix that brings the references to reduced echelon form."""
    for label in (1, -1):
        parts = [
            _unfolded(weights[name], labels, labels.index(label)).reshape(group.copies, group.size, -1)
            for name, labels in group.axes.items()
            if name in references and sum(x in (1, -1) for x in labels) == 1 and label in labels
        ]
        if parts:
            found = [_to_echelon(matrix) for matrix in np.concatenate(parts, axis=2)]
            whole = [g if label == 1 else _inverse(g).T for g in found if g is not None]
            if len(whole) == group.copies:
                return np.stack(whole)
    return None


def _unfolded(array: np.ndarray, labels: Sequence[Any], axis: int) -> np.ndarray:
    """The array with the axis of the copies first, of length 1 when there is none, and the given axis second."""
    if "*" in labels:
        return np.moveaxis(array, (labels.index("*"), axis), (0, 1))
    return np.moveaxis(array, axis, 0)[None]


def _to_echelon(matrix: np.ndarray) -> np.ndarray | None:
    """The g for which g * matrix is in reduced echelon form; None when the rows are dependent."""
    n, m = matrix.shape
    reduced, rank = _flint(matrix).rref()
    if rank < n:
        return None
    pivots = [next(j for j in range(m) if reduced[i, j] != 0) for i in range(n)]
    return _inverse(matrix[:, pivots])


def _flint(matrix: np.ndarray) -> Any:
    return fmpq_mat(*matrix.shape, [fmpq(x.numerator, x.denominator) for x in matrix.flat])


def _inverse(matrix: np.ndarray) -> np.ndarray:
    found = _flint(matrix).inv()
    return object_array([Fraction(int(x.p), int(x.q)) for x in found.entries()], matrix.shape)


def acted(group: Symmetry, element: Any, weights: Mapping[str, np.ndarray]) -> Weights:
    """The weights moved by an element: matrices (copy, n, n) for GL(n), scalars for a torus or a scaling."""
    moved = dict(weights)
    for name, labels in group.axes.items():
        array = moved[name]
        for axis, label in enumerate(labels):
            if label in (0, "*"):
                continue
            if group.kind == "scaling":
                array = array * element[0] ** int(label)
            elif group.kind == "torus":
                factors = np.array([s ** int(label) for s in element], dtype=object)
                array = array * factors.reshape([-1 if k == axis else 1 for k in range(array.ndim)])
            else:
                matrices = element if label == 1 else np.stack([_inverse(g).T for g in element])
                parts = _unfolded(array, labels, axis)
                found = (matrices @ parts.reshape(len(parts), group.size, -1)).reshape(parts.shape)
                stacked = "*" in labels
                array = (
                    np.moveaxis(found, (0, 1), (labels.index("*"), axis))
                    if stacked
                    else np.moveaxis(found[0], 0, axis)
                )
        moved[name] = array
    return moved


def _is_identity(group: Symmetry, element: Any) -> bool:
    unit = np.broadcast_to(np.eye(group.size, dtype=int), element.shape) if group.kind == "gl" else 1
    return bool(np.all(element == unit))


def _sorting(
    model: Model, group: Symmetry, weights: Weights, remaining: Sequence[Symmetry], seed: int
) -> tuple[np.ndarray | None, bool]:
    """The order that sorts the neurons of a torus, if there is need and it keeps the function; and whether neurons are equal.

    They are compared by the weights that no group to come moves.
    """
    later = {name for other in remaining for name in other.axes}
    rows = [
        tuple(
            entry
            for name, labels in group.axes.items()
            if name not in later
            for axis, label in enumerate(labels)
            if label not in (0, "*")
            for entry in np.take(weights[name], i, axis=axis).flat
        )
        for i in range(group.size)
    ]
    order = np.array(sorted(range(group.size), key=rows.__getitem__))
    tied = bool(later) and len(set(rows)) < group.size
    if (order == np.arange(group.size)).all():
        return None, tied
    kept = compared(model, weights, _permuted(group, order, weights), seed).same
    return (order, tied) if kept else (None, False)


def _permuted(group: Symmetry, order: np.ndarray, weights: Weights) -> Weights:
    moved = dict(weights)
    for name, labels in group.axes.items():
        for axis, label in enumerate(labels):
            if label not in (0, "*"):
                moved[name] = np.take(moved[name], order, axis=axis)
    return moved
