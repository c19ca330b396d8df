"""The fiber in fine weights from that in coarser ones, which the network factors through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from m2bridge.models import DeepLightning, Lightning
from m2bridge.questions import over_q
from m2bridge.questions.fiber.computed import ComputedFiber
from m2bridge.questions.fiber.points import Point, virtual_point


def coarser(point: Point) -> tuple[Point, int, list[str]] | None:
    """Coarser weights that the network factors through, the dimension of the fibers of that step, and the lemmas used.

    (Q, K, V) -> (A, V) has fibers GL_a where rk A = a <= d (Lemma 3.1). (A_i, V_i) -> (M, L) has fibers GL_delta^(l-1) where the
    hidden widths are delta <= d_0, d_l and rk L = delta (Lemma 3.5). None when a hypothesis fails at the point.
    """
    model, weights = point.model, point.weights
    if isinstance(model, Lightning) and model.parametrization == "weights":
        A = weights["K"].T @ weights["Q"]
        if over_q.rank(A) != model.a or model.a > model.d:
            return None
        below = replace(model, parametrization="attention")
        return replace(point, model=below, weights={"A": A, "V": weights["V"]}), model.a**2, ["Lemma 3.1"]
    if not isinstance(model, DeepLightning) or model.skip or model.multi_head or model.layers < 2:
        return None
    if model.parametrization == "virtual":
        return None
    virtual = virtual_point(point)
    if not widths_are_rank(model.d, virtual.weights["L"]):
        return None
    added, lemmas = (model.layers - 1) * model.d[1] ** 2, ["Lemma 3.5"]
    if model.parametrization == "weights":
        ranks = [over_q.rank(weights[f"K{i}"].T @ weights[f"Q{i}"]) for i in range(1, model.layers + 1)]
        if ranks != list(model.a):
            return None
        added, lemmas = added + sum(a * a for a in model.a), [*lemmas, "Lemma 3.1"]
    return virtual, added, lemmas


def widths_are_rank(widths: Sequence[int], L: np.ndarray) -> bool:
    """Whether all hidden widths are rk L: then the changes of basis between layers are determined (Lemma 3.5)."""
    return set(widths[1:-1]) == {over_q.rank(L)}


def lifted(found: ComputedFiber, added: int, lemmas: list[str], *, orbits_only: bool) -> ComputedFiber:
    """The fiber in finer weights from that in coarser ones.

    Over an orbit of scalings the hypotheses of the lemmas hold as they do at the point, so that each orbit lifts to one orbit.
    When `orbits_only`, a fiber that was not shown to be that one orbit is not lifted: the hypotheses may fail elsewhere in it.
    """
    how = f"lifted by {' and '.join(lemmas)}"
    notes = [*found.notes, f"computed in coarser weights and {how}, which adds {added} dimensions"]
    result = replace(found, method="lifted", degree=None, dim_at_point=None, notes=notes)
    # these are others in finer weights; the number of orbits is the same
    result.retract("fiber_dim", "dim_at_point", "degree", "components")
    if found.components is None or (orbits_only and not found.one_orbit):
        result.forget()
        if found.components is not None:
            notes.append("the fiber in coarser weights was not shown to be one orbit: it was not lifted")
        return result
    unknown: Any = dict.fromkeys(("degree", "orbit_dim", "tangent_dim", "point", "equations"))
    result.components = tuple(replace(c, dim=c.dim + added, **unknown) for c in found.components)
    result.fiber_dim = result.least_dim = None if found.fiber_dim is None else found.fiber_dim + added
    result.dim_at_point = max((c.dim for c in result.components if c.orbit), default=None)
    p = next((e.prime for e in found.evidence if e.prime), None) or 0
    result.say("fiber_dim", f"in coarser weights, {how}", result.fiber_dim, p)
    return result
