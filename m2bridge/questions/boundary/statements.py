"""Theorem 3.4 and Corollary A.6 of Henry, Marchetti, Kohn on boundary points, compared with what was computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from m2bridge.linear.integer import rank_over_q
from m2bridge.models import Lightning
from m2bridge.questions.boundary.decide import decide
from m2bridge.questions.boundary.result import OrbitPlace
from m2bridge.questions.singular_locus.orbits import Orbit, all_orbits, differential
from m2bridge.questions.singular_locus.theorem import applies
from m2bridge.results import TheoremCheck

_HYPOTHESES = "for t >= 2 and (d, d' >= 2 or d, a >= 2)"


def orbit_places(model: Lightning) -> tuple[OrbitPlace, ...]:
    """Every orbit of weights (those of the zero function included, one for each pair of ranks), decided exactly."""
    d, dp = model.d, model.dp
    generic = max(differential_rank(model, *orbit.representative(d, dp)) for orbit in all_orbits(d, dp, d))
    pairs = [(o.rank_a, o.rank_v, o.meet) for o in all_orbits(d, dp, model.a) if not o.is_zero]
    pairs += [(r, 0, 0) for r in range(min(model.a, d) + 1)] + [(0, s, 0) for s in range(1, min(d, dp) + 1)]
    places = []
    for rank_a, rank_v, meet in sorted(pairs):
        A, V = _representative(d, dp, rank_a, rank_v, meet)
        where = decide(model, model.coordinates({"A": A, "V": V}).tolist()).where
        critical = differential_rank(model, A, V) < generic
        places.append(OrbitPlace(rank_a=rank_a, rank_v=rank_v, meet=meet, where=where, critical=critical))
    return tuple(places)


def _representative(d: int, dp: int, rank_a: int, rank_v: int, meet: int) -> tuple[np.ndarray, np.ndarray]:
    return Orbit(rank_a, rank_v, meet).representative(d, dp)


def differential_rank(model: Lightning, A: np.ndarray, V: np.ndarray) -> int:
    """Rank over QQ of the differential of (A, V) -> network at integer weights; A varies in all d x d matrices."""
    return rank_over_q(differential(model, A, V))


def theorem(model: Lightning, places: Sequence[OrbitPlace]) -> TheoremCheck:
    """Theorem 3.4: boundary points are those with A = k (x) q and V = h (x) k."""
    statement = f"{_HYPOTHESES}, boundary points are exactly those with A = k (x) q and V = h (x) k"
    # k, q, h may be zero, so the zero function is of this form whatever weights represent it
    return _compare(
        model, places, "Theorem 3.4 (boundary points)", statement,
        lambda p: p.rank_a * p.rank_v == 0 or (p.rank_a, p.rank_v, p.meet) == (1, 1, 1),
    )  # fmt: skip


def corollary(model: Lightning, places: Sequence[OrbitPlace]) -> TheoremCheck:
    """Corollary A.6: boundary points are the images of critical weights."""
    statement = f"{_HYPOTHESES}, a point is on the boundary exactly when its weights are critical for (A, V) -> network"
    return _compare(model, places, "Corollary A.6", statement, lambda p: p.critical)


def _compare(
    model: Lightning,
    places: Sequence[OrbitPlace],
    name: str,
    statement: str,
    predicts: Callable[[OrbitPlace], bool],
) -> TheoremCheck:
    failure = next((p for p in places if (p.where == "boundary") != predicts(p)), None)
    holds = applies(model)
    witness = None
    if holds and failure is not None:
        printed = "boundary" if predicts(failure) else "not on the boundary"
        ranks = {key: getattr(failure, key) for key in ("rank_a", "rank_v", "meet")}
        witness = {**ranks, "printed": printed, "computed": failure.where}
    agrees = failure is None if holds else None
    return TheoremCheck(name=name, statement=statement, applies=holds, agrees=agrees, witness=witness)
