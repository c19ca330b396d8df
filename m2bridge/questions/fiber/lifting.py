"""Analyses stage, fiber: the fiber in fine weights from that in coarser ones, which the network factors through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from m2bridge.models import DeepLightning, Lightning
from m2bridge.questions.fiber import gauge
from m2bridge.questions.fiber.computing import Outcome, said
from m2bridge.questions.fiber.points import Point, virtual_point

_OF_COARSER_WEIGHTS = ("fiber_dim", "dim_at_point", "degree", "components")
"""Quantities that are others in finer weights; the number of orbits is the same."""


def coarser(point: Point) -> tuple[Point, int, list[str]] | None:
    """Coarser weights that the network factors through, the dimension of the fibers of that step, and the lemmas used.

    (Q, K, V) -> (A, V) has fibers GL_a where rk A = a <= d (Lemma 3.1). (A_i, V_i) -> (M, L) has fibers GL_delta^(l-1) where the
    hidden widths are delta <= d_0, d_l and rk L = delta (Lemma 3.5). None when a hypothesis fails at the point.
    """
    model = point.model
    if isinstance(model, Lightning) and model.parametrization == "weights":
        A = point.weights["K"].T @ point.weights["Q"]
        if gauge.rank(gauge.exact(A.tolist())) != model.a or model.a > model.d:
            return None
        below = replace(model, parametrization="attention")
        weights = {"A": A, "V": point.weights["V"]}
        return replace(point, model=below, weights=weights), model.a**2, ["Lemma 3.1"]
    if not isinstance(model, DeepLightning) or model.skip or model.multi_head or model.layers < 2:
        return None
    if model.parametrization == "virtual":
        return None
    virtual = virtual_point(point)
    delta = model.d[1]
    if not widths_are_rank(model.d, virtual.matrix("L")):
        return None
    added, lemmas = (model.layers - 1) * delta**2, ["Lemma 3.5"]
    if model.parametrization == "weights":
        for i, a in enumerate(model.a, start=1):
            A = point.weights[f"K{i}"].T @ point.weights[f"Q{i}"]
            if gauge.rank(gauge.exact(A.tolist())) != a:
                return None
            added += a * a
        lemmas.append("Lemma 3.1")
    return virtual, added, lemmas


def widths_are_rank(widths: Sequence[int], L: gauge.Matrix) -> bool:
    """Whether all hidden widths are rk L: then the changes of basis between layers are determined (Lemma 3.5)."""
    return set(widths[1:-1]) == {gauge.rank(L)}


def lifted(outcome: Outcome, added: int, lemmas: list[str], *, orbits_only: bool) -> Outcome:
    """The fiber in finer weights from that in coarser ones.

    Over an orbit of scalings the hypotheses of the lemmas hold as they do at the point, so that each orbit lifts to one orbit.
    When `orbits_only`, a fiber that was not shown to be that one orbit is not lifted: the hypotheses may fail elsewhere in it.
    """
    result = replace(
        outcome,
        method="lifted",
        degree=None,
        evidence=[e for e in outcome.evidence if e.quantity not in _OF_COARSER_WEIGHTS],
        dim_at_point=None,
    )
    result.notes = [
        *outcome.notes,
        f"computed in coarser weights and lifted by {' and '.join(lemmas)}, which adds {added} dimensions",
    ]
    one_orbit = outcome.orbits == 1 and all(c.orbit for c in outcome.components or ())
    if outcome.components is None or (orbits_only and not one_orbit):
        result.forget()
        if outcome.components is not None:
            result.notes.append(
                "the fiber in coarser weights was not shown to be one orbit: it was not lifted"
            )
        return result
    result.components = tuple(
        replace(
            c, dim=c.dim + added, degree=None, orbit_dim=None, tangent_dim=None, point=None, equations=None
        )
        for c in outcome.components
    )
    result.fiber_dim = None if outcome.fiber_dim is None else outcome.fiber_dim + added
    result.least_dim = result.fiber_dim
    through = [c.dim for c in result.components if c.orbit]
    result.dim_at_point = max(through, default=None)
    p = next((e.prime for e in outcome.evidence if e.prime), None) or 0
    method = f"in coarser weights, lifted by {' and '.join(lemmas)}"
    result.evidence.append(said("fiber_dim", method, result.fiber_dim, p))
    return result
