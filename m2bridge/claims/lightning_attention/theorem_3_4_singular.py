"""Theorem 3.4 and Corollary A.4: the singular points of one layer, as printed and repaired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from m2bridge.claims.base import (
    Claim,
    Context,
    Correction,
    Kind,
    Size,
    Verdict,
    fails,
    holds,
    out_of_reach,
    sizes,
)
from m2bridge.claims.lightning_attention.said import predicts_singular
from m2bridge.models import Lightning
from m2bridge.questions.singular_locus import SingularLocus, Stratum, singular_locus
from m2bridge.results import Certainty

Prediction = Callable[[Lightning, Stratum], bool]


def printed(_: Lightning, stratum: Stratum) -> bool:
    """Singular exactly when rk A * rk V <= 1."""
    return predicts_singular(stratum)


def repaired(model: Lightning, stratum: Stratum) -> bool:
    """Singular exactly when rk A * rk V <= 1, or a < d and rk A < a."""
    return printed(model, stratum) or (stratum.rank_a < model.a < model.d)


def compare(model: Lightning, result: SingularLocus, predicts: Prediction) -> Verdict:
    """Every orbit's verdict against the statement's prediction."""
    computed: dict[str, Any] = {"strata": [[s.rank_a, s.rank_v, s.meet, s.verdict] for s in result.strata]}
    for stratum in result.strata:
        if stratum.verdict != "undecided" and (stratum.verdict == "singular") != predicts(model, stratum):
            copied = ("rank_a", "rank_v", "meet", "tangent_lower", "tangent_upper")
            witness = {
                **{name: getattr(stratum, name) for name in copied},
                **{name: [list(row) for row in rows] for name, rows in stratum.representative.items()},
                "image_dim": result.image_dim,
            }
            reason = f"computed {stratum.verdict} at rk A = {stratum.rank_a}, rk V = {stratum.rank_v}"
            return fails(stratum.certainty, witness, reason, **computed)
    open_orbits = [(s.rank_a, s.rank_v, s.meet) for s in result.strata if s.verdict == "undecided"]
    if open_orbits:
        return out_of_reach(
            f"undecided at (rk A, rk V, meet) = {open_orbits}; no other orbit contradicts the statement"
        )
    return holds(Certainty.weakest(s.certainty for s in result.strata), **computed)


def _check(predicts: Prediction) -> Callable[[Size, Context], Verdict]:
    def check(size: Size, context: Context) -> Verdict:
        model = Lightning(**size)
        return compare(model, context.once(singular_locus, model), predicts)

    return check


_ALL = sizes(
    "d dp a",
    (2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 1, 3), (3, 2, 1), (3, 2, 2), (3, 2, 3), (3, 3, 2), (4, 2, 2)
)  # fmt: skip
_QUICK = sizes("d dp a", (2, 1, 2), (2, 2, 1), (3, 2, 2))
_WITNESSES = {
    "construction": ("curves through each orbit over QQ (lower bound)",),
    "program": (
        "equations over ZZ verified by substitution (upper bound)",
        "NumPy at a randomly moved point",
    ),
    "template": ("Macaulay2's Jacobian ranks", "fibers, where equations do not decide"),
}
_CHECKED = "the verdict of every orbit of (A, V) under GL_d x GL_d x GL_d'"

_CORRECTION = Correction(
    smallest="(d, d', a) = (3, 2, 2)",
    witness=(
        "A = e1 e1^T (rank 1), V = [e1, e2]^T (rank 2): for every B of rank one, A + sB has rank at most 2, so the whole line of "
        "networks lies in the neuromanifold. These lines and the derivatives in V span 14 dimensions, one more than the "
        "neuromanifold has."
    ),
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
    reason=(
        "The variety {rk A <= a} is itself singular where rk A < a, so for 1 < a < d the source of the parametrization is not "
        "smooth there, and the lemma on finite birational maps that the proof cites needs a smooth source."
    ),
    unaffected=(
        "The statement is right for a >= d and for a = 1 (with d' >= 2), in particular for M(2,1,2) of Figure 1; closedness, the "
        "boundary and all dimension formulas do not use it."
    ),
    repaired="The point of (A, V) is singular exactly when rk A * rk V <= 1, or a < d and rk A < a.",
    claim="theorem-3.4-singular-repaired",
)

CLAIMS = (
    Claim(
        id="theorem-3.4-singular",
        number="Theorem 3.4, singular points (Corollary A.4)",
        statement=(
            "For t >= 2 and d, d' >= 2 or d, a >= 2, the network of (A, V) is a singular point of the neuromanifold exactly when "
            "rk A * rk V <= 1."
        ),
        quote="its singular points are the phi_(A,V) satisfying rk(A) rk(V) <= 1",
        checked=_CHECKED,
        witnesses=_WITNESSES,
        about=("tangent", "image_dim"),
        sizes=_ALL,
        quick=_QUICK,
        run=_check(printed),
        correction=_CORRECTION,
    ),
    Claim(
        id="theorem-3.4-singular-repaired",
        number="Theorem 3.4, singular points, repaired",
        statement="Under the same hypotheses, singular exactly when rk A * rk V <= 1, or a < d and rk A < a.",
        checked=_CHECKED,
        witnesses=_WITNESSES,
        about=("tangent", "image_dim"),
        sizes=_ALL,
        quick=_QUICK,
        run=_check(repaired),
        kind=Kind.REPAIRED,
    ),
)
