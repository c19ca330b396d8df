"""Theorem 3.2 and Corollary A.2: the fibers of one layer, at every orbit of (A, V)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.claims.base import (
    Claim,
    Context,
    Kind,
    Size,
    Verdict,
    decided,
    fails,
    out_of_reach,
)
from m2bridge.models import Lightning
from m2bridge.questions.fiber import Fiber, fiber
from m2bridge.questions.orbits import all_orbits
from m2bridge.results import Certainty

ABOUT = ("components", "fiber_dim", "orbits", "tangent_dim", "independent equations", "outputs at the point")
"""What is said about a fiber: its components and orbits, its tangent space, and the equations that define it."""
Pair = tuple[np.ndarray, np.ndarray]
"""(A, V), exact numbers."""


def model_of(size: Size) -> Lightning:
    return Lightning(d=size["d"], dp=size["dp"], a=size["a"], parametrization="attention")


def asked(size: Size, context: Context) -> Fiber:
    """The fiber through a representative of the orbit."""
    stratum = ",".join(f"{name}={size[name]}" for name in ("rank_a", "rank_v", "meet"))
    return context.once(fiber, model_of(size), at=stratum)


def point_of(result: Fiber) -> Pair:
    """The weights that the fiber was computed through."""
    given = result.at["weights"]
    A, V = (np.array([[Fraction(x) for x in row] for row in given[name]], dtype=object) for name in "AV")
    return A, V


def exchanged(pair: Pair) -> Pair | None:
    """(v q^T, h k^T) for A = k q^T and V = h v^T; None unless both have rank one."""
    A, V = pair
    if not A.any() or not V.any():
        return None
    i, j = next(index for index, x in np.ndenumerate(A) if x)
    m, n = next(index for index, x in np.ndenumerate(V) if x)
    k, q, h, v = A[:, j], A[i] / A[i, j], V[:, n], V[m] / V[m, n]
    if (np.outer(k, q) != A).any() or (np.outer(h, v) != V).any():
        return None
    return np.outer(v, q), np.outer(h, k)


def rescaled(one: Pair, other: Pair) -> bool:
    """Whether the second pair is (s A, V / s)."""
    i = next(index for index, x in np.ndenumerate(one[0]) if x)
    s = other[0][i] / one[0][i]
    return bool(s and (other[0] == s * one[0]).all() and (other[1] == one[1] / s).all())


def printed_points(model: Lightning, pair: Pair) -> list[Pair] | None:
    """The weights that the theorem lists, one for each curve of rescalings; None when one of them computes another function."""
    partner = exchanged(pair)
    found = [pair]
    if partner is not None:
        same = model.coordinates({"A": partner[0], "V": partner[1]}) == model.coordinates(
            {"A": pair[0], "V": pair[1]}
        )
        if not np.all(same):
            return None
        if not rescaled(pair, partner):
            found.append(partner)
    return found


def components_of(result: Fiber) -> tuple[list[tuple[int, int]], Certainty] | Verdict:
    """Dimension and number of the components over the algebraic closure, with their certainty over QQ; or why there are none."""
    if result.components is None or not all(c.absolute for c in result.components):
        return out_of_reach("the components over the algebraic closure were not computed")
    dims = [component.dim for component in result.components]
    over_q = [e.certainty for e in result.evidence if (e.quantity, e.field) == ("components", "QQ")]
    certainty = Certainty.weakest(over_q) if over_q else Certainty.PROBABLE
    return sorted((dim, dims.count(dim)) for dim in set(dims)), certainty


def check(size: Size, context: Context) -> Verdict:
    """The curves of rescalings that the theorem lists lie in the fiber and are closed and irreducible: if the fiber has as many components,
    all of dimension one, then these are the curves. For the zero function the same is said of {A = 0} and {V = 0}.
    """
    result = asked(size, context)
    return verdict_on(result, size)


def verdict_on(result: Fiber, size: Size) -> Verdict:
    """Whether the components of a computed fiber are the sets that the theorem lists."""
    model, answer = model_of(size), components_of(result)
    if isinstance(answer, Verdict):
        return answer
    found, certainty = answer
    if size["rank_a"] * size["rank_v"] == 0:
        rank = min(model.a, model.d)
        dims = [rank * (2 * model.d - rank), model.d * model.dp]
        printed = sorted((dim, dims.count(dim)) for dim in set(dims))
        what = "components {V = 0} and {A = 0}"
    else:
        points = printed_points(model, point_of(result))
        if points is None:
            return fails(
                Certainty.PROVED, {"at": dict(result.at)}, "(v q^T, h k^T) computes another function"
            )
        printed = [(1, len(points))]
        what = "one curve of rescalings" if len(points) == 1 else "rescalings of W and of W', two curves"
    computed: dict[str, Any] = {"components": [list(p) for p in found], "printed": [list(p) for p in printed]}
    otherwise = f"components (dimension, number): {found}, printed {printed}"
    return decided(found == printed, certainty, what, otherwise, **computed)


def cardinality(expected: int) -> Any:
    """A check that the fiber has so many points up to rescaling."""

    def run(size: Size, context: Context) -> Verdict:
        result = asked(size, context)
        answer = components_of(result)
        if isinstance(answer, Verdict):
            return answer
        found, certainty = answer
        count = sum(number for _, number in found)
        computed = {"points": count, "printed": expected}
        otherwise = f"the fiber has {count} up to rescaling, not {expected}"
        right = count == expected and found == [(1, count)]
        return decided(right, certainty, f"{count} up to rescaling", otherwise, **computed)

    return run


def _orbits(*triples: tuple[int, int, int]) -> tuple[Size, ...]:
    return tuple(
        {"d": d, "dp": dp, "a": a, "rank_a": o.rank_a, "rank_v": o.rank_v, "meet": o.meet}
        for d, dp, a in triples
        for o in all_orbits(d, dp, a)
    )


_SIZES = _orbits((2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 2, 2))
_ONE_ONE = tuple(s for s in _SIZES if (s["rank_a"], s["rank_v"]) == (1, 1))
_QUICK = tuple(s for s in _SIZES if (s["d"], s["dp"], s["a"]) == (2, 1, 2))
_WITNESSES = {
    "template": ("Macaulay2: components of the fiber's ideal",),
    "program": ("kernel of the forward pass's Jacobian", "the listed weights, evaluated"),
    "formula": ("orbits of the symmetries",),
}

CLAIMS = (
    Claim(
        id="theorem-3.2",
        number="Theorem 3.2",
        statement=(
            "For t >= 2 the fiber through (A, V) consists of rescalings; through rk A = rk V = 1 also of rescalings of (v q^T, h k^T); "
            "the zero function comes from A = 0 or V = 0."
        ),
        checked="that the components of the fiber are the listed sets, through a representative of every orbit at each (d, d', a)",
        witnesses=_WITNESSES,
        about=ABOUT,
        sizes=_SIZES,
        quick=_QUICK,
        run=check,
    ),
    Claim(
        id="corollary-a.2",
        number="Corollary A.2",
        statement=(
            "Up to rescaling the map is one-to-one where rk A * rk V >= 2, and the special fibers have two points where W and W' are "
            "not rescalings of each other."
        ),
        quote="birational onto its image, with special fibers of cardinality 2",
        checked="the number of points up to rescaling: one at the orbits with rk A * rk V >= 2",
        witnesses=_WITNESSES,
        about=ABOUT,
        sizes=tuple(s for s in _SIZES if s["rank_a"] * s["rank_v"] >= 2),
        quick=tuple(s for s in _QUICK if s["rank_a"] * s["rank_v"] >= 2),
        run=cardinality(1),
    ),
    Claim(
        id="corollary-a.2-special",
        number="Corollary A.2, every special fiber",
        statement=(
            "Read literally: over rk A = rk V = 1 every fiber has two points up to rescaling. Where k and v are proportional (meet=1) W "
            "and W' coincide, and the fiber is one double point."
        ),
        quote="special fibers of cardinality 2",
        checked="the number of points up to rescaling at the orbits with both ranks one",
        witnesses=_WITNESSES,
        about=ABOUT,
        sizes=_ONE_ONE,
        quick=tuple(s for s in _ONE_ONE if s in _QUICK),
        run=cardinality(2),
        kind=Kind.PROBE,
    ),
    Claim(
        id="corollary-a.2-outside",
        number="Corollary A.2 at a = d' = 1",
        statement=(
            "Generically one-to-one also at a = d' = 1, which Section 3.2 excludes? There every W has both ranks one, and generic "
            "fibers (meet=0) have two points."
        ),
        quote="either d, d' >= 2 or d, a >= 2",
        checked="the number of points up to rescaling at a generic orbit",
        witnesses=_WITNESSES,
        about=ABOUT,
        sizes=tuple({"d": d, "dp": 1, "a": 1, "rank_a": 1, "rank_v": 1, "meet": 0} for d in (2, 3)),
        quick=({"d": 2, "dp": 1, "a": 1, "rank_a": 1, "rank_v": 1, "meet": 0},),
        run=cardinality(1),
        kind=Kind.PROBE,
    ),
)
