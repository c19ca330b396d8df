"""Theorem 3.4 and Corollaries A.1 and A.6: closedness and boundary of one layer."""

from __future__ import annotations

from typing import Any

from m2bridge.claims.base import Claim, Context, Size, Verdict, disagreement, fails, holds, out_of_reach
from m2bridge.claims.lightning_attention import PAPER
from m2bridge.models import Lightning
from m2bridge.questions.boundary import boundary
from m2bridge.results import Certainty, TheoremCheck


def _compared(check: TheoremCheck, certainty: Certainty, **computed: Any) -> Verdict:
    if not check.applies:
        return out_of_reach("the hypotheses do not hold at this size")
    if check.agrees:
        return holds(certainty, **computed)
    return fails(certainty, check.witness or {}, "an orbit is not where the statement puts it", **computed)


def check_boundary(size: Size, context: Context) -> Verdict:
    result = context.once(boundary, Lightning(**size))
    if result.agreement is False:
        return disagreement(result.conflicts)
    return _compared(
        result.theorem,
        result.certainty,
        boundary_dim=result.boundary_dim,
        closure_only_dim=result.closure_only_dim,
    )


def check_critical(size: Size, context: Context) -> Verdict:
    result = context.once(boundary, Lightning(**size))
    if result.agreement is False:
        return disagreement(result.conflicts)
    orbits = [[o.rank_a, o.rank_v, o.meet, o.where, o.critical] for o in result.orbits]
    return _compared(result.corollary, result.certainty, orbits=orbits)


def check_closed(size: Size, context: Context) -> Verdict:
    """Limits of convergent sequences of networks, their weights growing or not, are looked for in the image."""
    result = context.once(boundary, Lightning(**size))
    if result.agreement is False:
        return disagreement(result.conflicts)
    experiment = result.closedness
    computed = {"sequences": len(experiment.sequences)}
    if experiment.limits_in_image:
        return holds(
            Certainty.NUMERIC, "an experiment: every limit that was tried lies in the image", **computed
        )
    outside = [s.name for s in experiment.sequences if s.limit not in ("image", "boundary")]
    return fails(
        Certainty.NUMERIC, {"sequences": outside}, "a limit of networks is not in the image", **computed
    )


def _sizes(*triples: tuple[int, int, int]) -> tuple[Size, ...]:
    return tuple({"d": d, "dp": dp, "a": a} for d, dp, a in triples)


_SIZES = _sizes((2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2))
_WITNESSES = (
    "exact decision over QQ with explicit weights",
    "Macaulay2: real and complex points of the fiber",
    "least squares over real weights in NumPy",
)

CLAIMS = (
    Claim(
        id="theorem-3.4-closed",
        number="Theorem 3.4, closedness (Corollary A.1)",
        paper=PAPER,
        statement="The neuromanifold of one layer is closed in the Euclidean topology.",
        checked="limits of convergent sequences of networks (an experiment: the paper's compactness argument is the proof)",
        witnesses=("sequences of weights in float64, their limits decided exactly",),
        sizes=_SIZES[:3],
        quick=_SIZES[:1],
        run=check_closed,
    ),
    Claim(
        id="theorem-3.4-boundary",
        number="Theorem 3.4, boundary points",
        paper=PAPER,
        statement="The relative boundary points are those with A = k q^T and V = h k^T.",
        checked="where each orbit of weights lies, and exact random points of every kind",
        witnesses=_WITNESSES,
        sizes=_SIZES,
        quick=_SIZES[:1],
        run=check_boundary,
    ),
    Claim(
        id="corollary-a.6",
        number="Corollary A.6",
        paper=PAPER,
        statement="A network is on the relative boundary exactly when its weights are critical for (A, V) -> network.",
        checked="the rank of the differential and the place of every orbit of weights",
        witnesses=("rank over QQ of the differential", *_WITNESSES),
        sizes=_SIZES,
        quick=_SIZES[:1],
        run=check_critical,
    ),
)
