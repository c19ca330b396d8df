"""One layer: critical points of (A, V) -> network (Lemma A.3), singular points, closedness and boundary (Theorem 3.4, Corollaries A.1, A.4
and A.6), as printed and repaired.

A point of the image is on the relative boundary if it is a limit of points of the closure that are not in the image. Whether a point is in
the image is decided by the weights that `membership` computes or excludes, and not by a criterion equivalent to the theorem. One point gives a
whole sequence: the group GL_d x GL_d x GL_d' acts linearly on closure and image, and moves S + T to S + 4^-k T.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.families import Attention, Lightning
from m2bridge.families.attention_strata import Orbit
from m2bridge.linear.modular import rank_over_q
from m2bridge.linear.numeric import numeric_rank
from m2bridge.papers.base import Check, CheckContext, Claim, Correction, Kind, Size, Verdict, sizes
from m2bridge.papers.lightning_attention import fibers
from m2bridge.papers.lightning_attention.comments import predicts_singular, written_stratum, zero_fiber_dims
from m2bridge.questions.boundary import decide, location_of
from m2bridge.questions.boundary.points import Coordinates, separated
from m2bridge.questions.membership import membership
from m2bridge.questions.singular_locus import Stratum, singular_locus

# -- critical points: Lemma A.3 --------------------------------------------------------------------------------------------------

Ranks = tuple[int, int, int]
"""rk A, rk V and dim(col A ∩ row V)."""


def orbits(d: int, dp: int, a: int | None = None) -> Iterator[Ranks]:
    """Yield every orbit of pairs (A, V) with rk A <= a, including those of the zero function."""
    for r in range(min(d, a or d) + 1):
        for s in range(min(d, dp) + 1):
            for c in range(max(0, r + s - d), min(r, s) + 1):
                yield r, s, c


def representative(d: int, dp: int, ranks: Ranks) -> dict[str, np.ndarray]:
    """Return matrices of zeros and ones in the orbit."""
    return dict(zip("AV", Orbit(*ranks).representative(d, dp), strict=True))


def differential(d: int, dp: int, weights: dict[str, np.ndarray]) -> np.ndarray:
    """Return the Jacobian of (A, V) -> network in Segre coordinates, by the program."""
    model = Lightning(d=d, dp=dp, a=d, parametrization="attention")
    return np.asarray(model.coordinate_jacobian(weights)).T


def differential_ranks(d: int, dp: int) -> tuple[dict[Ranks, int], int]:
    """Return the rank over QQ of the differential at every orbit, and the largest one, which is that of the dense orbit."""
    by_orbit = {
        ranks: rank_over_q(differential(d, dp, representative(d, dp, ranks))) for ranks in orbits(d, dp)
    }
    return by_orbit, max(by_orbit.values())


def printed(ranks: Ranks) -> bool:
    """Return whether A = k q^T and V = h k^T for some q, k, h: ranks at most one, and the same k unless one of them is zero."""
    r, s, c = ranks
    return r <= 1 and s <= 1 and (r * s == 0 or c == 1)


def completed(ranks: Ranks) -> bool:
    """Return whether the printed condition holds, or A = 0, or V = 0."""
    return ranks[0] * ranks[1] == 0 or printed(ranks)


def check_critical(predicts: Callable[[Ranks], bool]) -> Check:
    def check(size: Size, context: CheckContext) -> Verdict:
        d, dp = size["d"], size["dp"]
        rng = np.random.default_rng(context.seed)
        by_orbit, generic = differential_ranks(d, dp)
        for ranks, exact in by_orbit.items():
            weights = representative(d, dp, ranks)
            g, h, k = (rng.standard_normal((n, n)) for n in (d, d, dp))
            moved = {"A": g @ weights["A"] @ h, "V": k @ weights["V"] @ g.T}
            numeric = numeric_rank(differential(d, dp, moved)).rank
            if numeric is not None and numeric != exact:
                return Verdict.disagreement([f"rank {numeric} in float64, {exact} over QQ, at {ranks}"])
            if (exact < generic) != predicts(ranks):
                written: dict[str, Any] = {n: w.tolist() for n, w in weights.items()}
                verdict = "critical" if exact < generic else "not critical"
                return Verdict.fails(
                    Certainty.PROVED,
                    {**written, "rank": exact, "generic_rank": generic},
                    f"{verdict} at rk A = {ranks[0]}, rk V = {ranks[1]}",
                )
        return Verdict.holds(Certainty.PROVED, generic_rank=generic)

    return check


# -- singular points: Theorem 3.4 ------------------------------------------------------------------------------------------------


def repaired(model: Attention, stratum: Stratum) -> bool:
    """Return the repaired prediction: singular exactly if rk A * rk V <= 1, or a < d and rk A < a."""
    return predicts_singular(stratum) or (stratum.ranks["A"] < model.a < model.d)


def check_singular(predicts: Callable[[Attention, Stratum], bool]) -> Check:
    """Return a check of the verdict at every orbit against a prediction."""

    def check(size: Size, context: CheckContext) -> Verdict:
        model = Lightning(**size)
        result = context.once(singular_locus, model)
        computed: dict[str, Any] = {"strata": [[*s.ranks.values(), s.verdict] for s in result.strata]}
        for stratum in result.strata:
            if stratum.verdict != "undecided" and (stratum.verdict == "singular") != predicts(model, stratum):
                witness = written_stratum(stratum, result.image_dim)
                reason = (
                    f"computed {stratum.verdict} at rk A = {stratum.ranks['A']}, rk V = {stratum.ranks['V']}"
                )
                return Verdict.fails(stratum.certainty, witness, reason, **computed)
        if undecided := [tuple(s.ranks.values()) for s in result.strata if s.verdict == "undecided"]:
            return Verdict.out_of_reach(
                f"undecided at (rk A, rk V, meet) = {undecided}; no other orbit contradicts the statement"
            )
        return Verdict.holds(Certainty.weakest(s.certainty for s in result.strata), **computed)

    return check


# -- closedness and boundary: Theorem 3.4, Corollary A.6 -------------------------------------------------------------------------


def check_closed(size: Size, context: CheckContext) -> Verdict:
    """Check the hypothesis of the compactness argument: only A = 0 or V = 0 give the zero function (no base points)."""
    result = fibers.fiber_at({**size, "rank_a": 0, "rank_v": 0, "meet": 0}, context)
    components, certainty = fibers.components_of(result)
    if not components:
        return Verdict.out_of_reach(fibers.NO_COMPONENTS)
    expected = sorted(zero_fiber_dims(fibers.model_of(size)))
    dims = sorted(component.dim for component in result.components or ())
    reason = "no base points, so the image is the cone over a compact set (Corollary A.1)"
    otherwise = "the zero function has other weights: the argument does not apply"
    return Verdict.decided(dims == expected, certainty, reason, otherwise, components=dims, printed=expected)


def neighbour(model: Attention, ranks: Ranks, sign: int) -> Coordinates | None:
    """Return a point of the closure that the group moves arbitrarily near to the orbit; None if a flattening has rank two.

    Points that are only in the closure have both flattenings of rank one (the proof of Corollary A.6), as a map from columns of A and from
    rows of V, and so have their limits, unless they are zero. At such a point h (x) q (x) S, S = x_1^2 or x_1 x_2, scalings of x_1 and x_2
    move S + x_2^2 to S + 4^-k x_2^2. Zero is a limit of multiples of h (x) q (x) (x_1^2 + x_2^2).
    """
    A, V = representative(model.d, model.dp, ranks).values()
    table = np.asarray(model.coordinates({"A": A, "V": V})).reshape(model.dp, model.d, -1)
    if max(rank_over_q(np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)) for axis in (0, 1)) > 1:
        return None
    hessian = np.zeros((model.d, model.d), dtype=int)
    if ranks[0] * ranks[1]:
        hessian = np.outer(A[:, 0], V[0]) + np.outer(V[0], A[:, 0])
    else:
        hessian[0, 0] = 2
    hessian[1, 1] += 2 * sign
    h, q = np.eye(model.dp, dtype=int)[0], np.eye(model.d, dtype=int)[0]
    return tuple(separated(model, h, q, hessian))


def check_boundary(predicts: Callable[[Attention, Ranks], bool]) -> Check:
    """Return a check for each orbit whether it is a limit of points outside the image, against a prediction."""

    def check(size: Size, context: CheckContext) -> Verdict:
        model = Lightning(**size, parametrization="attention")
        strata = list(orbits(model.d, model.dp, model.a))
        neighbour_of = {(ranks, sign): neighbour(model, ranks, sign) for ranks in strata for sign in (1, -1)}
        points = list(dict.fromkeys(z for z in neighbour_of.values() if z is not None))
        any_rank = model.with_rank(model.d)  # rk A is that of a flattening
        location = {z: location_of(context.once(membership, any_rank, point=z)) for z in points}
        if None in location.values():
            return Verdict.out_of_reach(
                "it was not decided within the limits whether a point has real weights"
            )
        for point, where in location.items():
            by_criterion = decide(model, point).where
            if ("image" if by_criterion == "boundary" else by_criterion) != where:
                return Verdict.disagreement(
                    [f"point {[*map(str, point)]}: {where} by weights, {by_criterion} by ranks and e2"]
                )
        rows = []
        for ranks in strata:
            neighbours = [z for sign in (1, -1) if (z := neighbour_of[ranks, sign]) is not None]
            on_boundary = any(location[z] == "closure-only" for z in neighbours)
            rows.append([*ranks, on_boundary])
            if on_boundary != predicts(model, ranks):
                named = zip(("rank_a", "rank_v", "meet"), ranks, strict=True)
                position = "on" if on_boundary else "not on"
                reason = f"{position} the boundary at rk A = {ranks[0]}, rk V = {ranks[1]}, meet {ranks[2]}"
                return Verdict.fails(Certainty.PROBABLE, {**dict(named), "on_boundary": on_boundary}, reason)
        reason = (
            "limits by explicit sequences; if there is no sequence, all tested directions stay in the image"
        )
        return Verdict.holds(Certainty.PROBABLE, reason, orbits=rows)

    return check


def critical(model: Attention, ranks: Ranks) -> bool:
    """Return whether the rank over QQ of the differential at the orbit is smaller than the generic one."""
    by_orbit, generic = differential_ranks(model.d, model.dp)
    return by_orbit[ranks] < generic


# -- the statements ------------------------------------------------------------------------------------------------------------

_CRITICAL = sizes("d dp", (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2))
_SINGULAR = sizes("d dp a",
    (2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 1, 3), (3, 2, 1), (3, 2, 2), (3, 2, 3), (3, 3, 2), (4, 2, 2)
)  # fmt: skip
_BOUNDARY = sizes("d dp a", (2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 2, 2), (3, 3, 3))

_LEMMA_A3 = Claim(
    id="lemma-a.3",
    number="Lemma A.3",
    statement="(A, V) is critical for the parametrization exactly when A = k q^T and V = h k^T for some q, k, h.",
    checked="the rank of the differential at every orbit of pairs (A, V), A of any rank",
    witnesses={
        "program": ("rank over QQ of the differential at every orbit", "float64 rank at a randomly moved point"),
        "construction": ("the orbits of GL_d x GL_d x GL_d'",),
    },
    sizes=_CRITICAL,
    quick=_CRITICAL[:2],
    run=check_critical(printed),
    correction=Correction(
        smallest="(d, d') = (2, 1), A the identity, V = 0",
        witness="At V = 0 the differential is (A', V') -> V' X X^T A X: it kills all (A', 0), a space of dimension 4 > 1.",
        macaulay2="""\
R = QQ[a_0..a_3,v_0,v_1]; A = genericMatrix(R,a_0,2,2); V = matrix{{v_0,v_1}};
f = flatten apply(2,m -> {A_(0,m)*v_0, A_(0,m)*v_1+A_(1,m)*v_0, A_(1,m)*v_1});
J = jacobian matrix{f};
<< rank J << " generically, " << rank sub(J,{a_0=>1,a_1=>0,a_2=>0,a_3=>1,v_0=>0,v_1=>0}) << " at A = 1, V = 0" << endl;
""",
        reason="The proof treats A = 0 and V = 0, and finds them critical; the statement does not list them when the other matrix has rank >= 2.",
        unaffected="The zero function is a singular point and a boundary point anyway, so Theorem 3.4 and Corollary A.6 do not change "
        "as statements about functions.",
        repaired="(A, V) is critical exactly when A = 0, or V = 0, or A = k q^T and V = h k^T for some q, k, h.",
        claim="lemma-a.3-completed",
    ),
)  # fmt: skip
_THEOREM_34 = Claim(
    id="theorem-3.4-singular",
    number="Theorem 3.4, singular points (Corollary A.4)",
    statement="For t >= 2 and d, d' >= 2 or d, a >= 2, the network of (A, V) is a singular point of the neuromanifold exactly when "
    "rk A * rk V <= 1.",
    quote="its singular points are the phi_(A,V) satisfying rk(A) rk(V) <= 1",
    checked="the verdict of every orbit of (A, V) under GL_d x GL_d x GL_d'",
    witnesses={
        "construction": ("curves through each orbit over QQ (lower bound)",),
        "program": ("equations over ZZ verified by substitution (upper bound)", "NumPy at a randomly moved point"),
        "template": ("Macaulay2's Jacobian ranks", "fibers, where equations do not decide"),
    },
    about=("tangent", "image_dim"),
    sizes=_SINGULAR,
    quick=(_SINGULAR[0], _SINGULAR[1], _SINGULAR[6]),
    run=check_singular(lambda _, stratum: predicts_singular(stratum)),
    correction=Correction(
        smallest="(d, d', a) = (3, 2, 2)",
        witness="A = e1 e1^T (rank 1), V = [e1, e2]^T (rank 2): for every B of rank one, A + sB has rank at most 2, so the whole line of "
        "networks lies in the neuromanifold. These lines and the derivatives in V span 14 dimensions, one more than the "
        "neuromanifold has.",
        macaulay2="""\
R = QQ[b_0..b_8, c_0..c_5];
A = matrix{{1,0,0},{0,0,0},{0,0,0}}; V = matrix{{1,0,0},{0,1,0}};
B = genericMatrix(R,b_0,3,3); C = genericMatrix(R,c_0,2,3);
coordinates = (A,V) -> flatten flatten apply(2,n -> apply(3,m -> flatten apply(3,i -> apply(toList(i..2),j ->
  if i==j then A_(i,m)*V_(n,i) else A_(i,m)*V_(n,j)+A_(j,m)*V_(n,i)))));
-- derivative of the network along (B,C); every B is a sum of B of rank one, and A + s B stays of rank <= 2 for those
tangent = matrix{coordinates(B,sub(V,R)) + coordinates(sub(A,R),C)};
<< rank sub(diff(transpose matrix{toList(b_0..b_8)|toList(c_0..c_5)}, tangent), QQ) << endl;  -- 14 > 13
""",
        reason="The variety {rk A <= a} is itself singular where rk A < a, so for 1 < a < d the source of the parametrization is not "
        "smooth there, and the lemma on finite birational maps that the proof cites needs a smooth source.",
        unaffected="The statement is right for a >= d and for a = 1 (with d' >= 2), in particular for M(2,1,2) of Figure 1; closedness, the "
        "boundary and all dimension formulas do not use it.",
        repaired="The point of (A, V) is singular exactly when rk A * rk V <= 1, or a < d and rk A < a.",
        claim="theorem-3.4-singular-repaired",
    ),
)  # fmt: skip
_BOUNDARY_WITNESSES = {
    "template": ("Macaulay2: real and complex points of the fibers of nearby points",),
    "program": ("exact ranks of flattenings over QQ",),
    "formula": ("the sign of e2, for the same points",),
    "construction": ("sequences in the closure outside the image",),
}
CLAIMS = (
    _THEOREM_34,
    _THEOREM_34.also(
        id="theorem-3.4-singular-repaired",
        number="Theorem 3.4, singular points, repaired",
        statement="Under the same hypotheses, singular exactly when rk A * rk V <= 1, or a < d and rk A < a.",
        run=check_singular(repaired),
        kind=Kind.REPAIRED,
    ),
    Claim(
        id="theorem-3.4-closed",
        number="Theorem 3.4, closedness (Corollary A.1)",
        statement="The neuromanifold of one layer is closed in the Euclidean topology.",
        checked="the hypothesis of the paper's proof, that only A = 0 or V = 0 give the zero function; a continuous image of a compact set "
        "is compact, and the neuromanifold is the cone over it",
        witnesses={
            "template": ("Macaulay2: components of the zero fiber",), "program": ("the forward pass's equations",),
        },
        about=fibers.ABOUT,
        sizes=_BOUNDARY[:5],
        run=check_closed,
    ),
    Claim(
        id="theorem-3.4-boundary",
        number="Theorem 3.4, boundary points",
        statement="The relative boundary points are those with A = k q^T and V = h k^T.",
        checked="for every orbit, whether it is a limit of points of the closure whose fibers have no real points",
        witnesses=_BOUNDARY_WITNESSES,
        sizes=_BOUNDARY,
        run=check_boundary(lambda _, ranks: completed(ranks)),  # the zero function is of this form whatever its weights are
    ),
    Claim(
        id="corollary-a.6",
        number="Corollary A.6",
        statement="A network is on the relative boundary exactly when its weights are critical for (A, V) -> network.",
        checked="the same limits, against the rank over QQ of the differential at every orbit",
        witnesses={
            **_BOUNDARY_WITNESSES,
            "program": ("rank over QQ of the differential", *_BOUNDARY_WITNESSES["program"]),
        },
        sizes=_BOUNDARY,
        run=check_boundary(critical),
    ),
    _LEMMA_A3,
    _LEMMA_A3.also(
        id="lemma-a.3-completed",
        number="Lemma A.3, completed",
        statement="(A, V) is critical exactly when A = 0, or V = 0, or A = k q^T and V = h k^T for some q, k, h.",
        run=check_critical(completed),
        kind=Kind.REPAIRED,
    ),
)  # fmt: skip
