"""Theorem 3.4 and Corollary A.6 of Henry, Marchetti, Kohn on boundary points, compared with what was computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from m2bridge.linear.integer import rank_over_q
from m2bridge.models import Lightning
from m2bridge.questions.boundary.decide import decide
from m2bridge.questions.boundary.result import OrbitPlace
from m2bridge.questions.singular_locus.orbits import all_orbits
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
        places.append(
            OrbitPlace(
                rank_a=rank_a,
                rank_v=rank_v,
                meet=meet,
                where=decide(model, model.coordinates({"A": A, "V": V}).tolist()).where,
                critical=differential_rank(model, A, V) < generic,
            )
        )
    return tuple(places)


def _representative(d: int, dp: int, rank_a: int, rank_v: int, meet: int) -> tuple[np.ndarray, np.ndarray]:
    A, V = np.zeros((d, d), dtype=np.int64), np.zeros((dp, d), dtype=np.int64)
    for i in range(rank_a):
        A[i, i] = 1
    for n in range(rank_v):
        V[n, n if n < meet or not rank_a else rank_a + n - meet] = 1
    return A, V


def differential_rank(model: Lightning, A: np.ndarray, V: np.ndarray) -> int:
    """Rank over QQ of the differential of (A, V) -> network at integer weights; A varies in all d x d matrices."""
    d, dp = model.d, model.dp
    rows = [model.coordinates({"A": e.reshape(d, d), "V": V}) for e in np.eye(d * d, dtype=np.int64)]
    rows += [model.coordinates({"A": A, "V": e.reshape(dp, d)}) for e in np.eye(dp * d, dtype=np.int64)]
    return rank_over_q(np.array(rows))


def theorem(model: Lightning, places: Sequence[OrbitPlace]) -> TheoremCheck:
    """Theorem 3.4: boundary points are those with A = k (x) q and V = h (x) k."""
    statement = f"{_HYPOTHESES}, boundary points are exactly those with A = k (x) q and V = h (x) k"
    # k, q, h may be zero, so the zero function is of this form whatever weights represent it
    return _compare(
        model,
        places,
        "Theorem 3.4 (boundary points)",
        statement,
        lambda p: p.rank_a * p.rank_v == 0 or (p.rank_a, p.rank_v, p.meet) == (1, 1, 1),
    )


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
    applies = model.t >= 2 and model.d >= 2 and (model.dp >= 2 or model.a >= 2)
    failures = [p for p in places if (p.where == "boundary") != predicts(p)]
    agrees = not failures if applies else None
    witness = None
    if agrees is False:
        first = failures[0]
        witness = {
            "rank_a": first.rank_a,
            "rank_v": first.rank_v,
            "meet": first.meet,
            "printed": "boundary" if predicts(first) else "not on the boundary",
            "computed": first.where,
        }
    return TheoremCheck(name=name, statement=statement, applies=applies, agrees=agrees, witness=witness)
