"""Find a symmetry that maps one checkpoint to another in float64: permutations, scalings, changes of basis, shifts.

Slices are matched up to what the groups by structure do with them, one index after the other; then each group is solved on a
weight that no group still to come moves. That the first weights become the second ones is checked at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from m2bridge.programs.program import Program
from m2bridge.symmetry.axis_groups import Action, AxisGroup
from m2bridge.symmetry.exponent_shifts import ExponentShift
from m2bridge.symmetry.finite import PermutedAxis, permuted_axes
from m2bridge.symmetry.gains import GainedGroup
from m2bridge.symmetry.shifts import Shift
from m2bridge.symmetry.structure import Family, Structure, structure

Floats = NDArray[np.float64]


def alignment(program: Program, first: Floats, second: Floats, tolerance: float) -> list[str] | None:
    """Describe symmetries that map `first` to `second` up to a relative tolerance; None if none were found."""
    symmetries, at, moves = structure(program), first.copy(), list[str]()
    for n, axes in sorted(
        permuted_axes(program), key=lambda item: min(int(a.entries.min()) for a in item[1])
    ):
        order = _matched(symmetries, axes, at, second)
        if order is not None and order != list(range(n)):
            at = _permuted(axes, order, at)
            moves.append(f"permutation {order} of {axes[0].text}")
        for group in symmetries.groups:
            if group.kind == "torus" and _has_rows(group.actions[0], axes[0]):
                at = _carried(group, group.actions[0], at, second, moves)
    for family, action in symmetries.in_order(_is_wide):
        at = _carried(family, action, at, second, moves)
    scale = max(1e-300, float(np.abs(second).max()))
    return list(dict.fromkeys(moves)) if np.abs(at - second).max() <= tolerance * scale else None


def _is_wide(group: AxisGroup, action: Action) -> bool:
    """Return whether a weight has enough entries to determine an element of the group."""
    return group.kind == "torus" or action.entries.shape[2] >= group.size


def _has_rows(action: Action, axis: PermutedAxis) -> bool:
    return action.entries.shape[1] == len(axis.entries) and set(action.entries[0, 0].tolist()) == set(
        axis.entries[0].tolist()
    )


def _matched(
    symmetries: Structure, axes: Sequence[PermutedAxis], first: Floats, second: Floats
) -> list[int] | None:
    """Return for each slice of the second weights the slice of the first ones that it is; None if this is not a permutation."""
    left, right = (_signatures(symmetries, axes[0], at) for at in (first, second))
    if left is None or right is None:
        return None
    distances = (left**2).sum(axis=1)[:, None] - 2 * left @ right.T  # up to the norms of the right ones
    order = [int(k) for k in distances.argmin(axis=0)]
    return order if sorted(order) == list(range(len(order))) else None


def _signatures(symmetries: Structure, axis: PermutedAxis, at: Floats) -> Floats | None:
    """Return a vector for each slice that scalings and changes of basis do not change; None if a group mixes the slices."""
    for group in symmetries.groups:
        for action in group.actions if group.kind != "torus" else ():
            if set(axis.entries.reshape(-1).tolist()) != set(action.entries.reshape(-1).tolist()):
                continue
            if len(axis.entries) == group.copies and set(axis.entries[0]) == set(
                action.entries[0].reshape(-1)
            ):
                return np.stack([_projector(at[block]).reshape(-1) for block in action.entries])
            return None
    rows = at[axis.entries]
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    leading = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return rows / np.where(norms == 0, 1, norms) * np.where(leading < 0, -1, 1)


def _projector(rows: Floats) -> Floats:
    """Return the orthogonal projector to the span of rows."""
    return np.asarray(np.linalg.pinv(rows) @ rows)


def _permuted(axes: Sequence[PermutedAxis], order: list[int], at: Floats) -> Floats:
    moved = at.copy()
    for axis in axes:
        moved[axis.entries] = at[axis.entries[order]]
    return moved


def _carried(family: Family, action: Action | None, at: Floats, second: Floats, moves: list[str]) -> Floats:
    """Move weights by the element of a family that carries one weight to the other, and append it in words."""
    if isinstance(family, GainedGroup):
        assert action is not None, "groups are free on a weight"
        moved = _based(family.group, action, at * family.factors(at), second * family.factors(second))
        moved /= family.factors(at)
    elif isinstance(family, Shift):
        moved = _shifted(family, at, second)
    elif isinstance(family, ExponentShift):
        moved = _shifted_in_exponents(family, at, second)
    elif action is None:
        moved = at
    elif family.kind == "torus":
        moved = _scaled(family, action, at, second)
    else:
        moved = _based(family, action, at, second)
    if not np.allclose(moved, at, rtol=1e-12, atol=1e-14) and np.isfinite(moved).all():
        moves.append(family.text)
        return moved
    return at


def _scaled(group: AxisGroup, action: Action, at: Floats, second: Floats) -> Floats:
    old, new = at[action.entries[0]], second[action.entries[0]]
    squares = (old**2).sum(axis=1)
    ratios = (old * new).sum(axis=1) / np.where(squares == 0, 1, squares)
    signs = np.where(ratios < 0, -1.0, 1.0) if action.label % 2 else np.ones(len(ratios))
    factors = signs * np.abs(np.where(ratios == 0, 1, ratios)) ** (1 / action.label)
    moved = at.copy()
    for other in group.actions:
        moved[other.entries[0]] *= factors[:, None] ** other.label
    return moved


def _based(group: AxisGroup, action: Action, at: Floats, second: Floats) -> Floats:
    moved = at.copy()
    for copy in range(group.copies):
        matrix = second[action.entries[copy]] @ np.linalg.pinv(at[action.entries[copy]])
        dual = np.linalg.pinv(matrix).T
        for other in group.actions:
            element = matrix if other.label == action.label else dual
            moved[other.entries[copy]] = element @ moved[other.entries[copy]]
    return moved


def _shifted(shift: Shift, at: Floats, second: Floats) -> Floats:
    moved, own = at.copy(), set(shift.entries()[0].reshape(-1).tolist())
    for field in shift.fields():
        steps = [(i, c * float(np.prod(at[list(monomial)]))) for i, c, monomial in field.terms]
        base, unit = next((i, step) for i, step in steps if i in own)
        for i, step in steps:
            moved[i] += (second[base] - at[base]) / unit * step
    return moved


def _shifted_in_exponents(family: ExponentShift, at: Floats, second: Floats) -> Floats:
    first, moved = family.motions[0], at.copy()
    t = (second[first.entries] - at[first.entries]).mean(axis=1, keepdims=True) / first.shift
    for motion in family.motions:
        moved[motion.entries] = moved[motion.entries] * np.exp(motion.label * t) + motion.shift * t
    return moved
