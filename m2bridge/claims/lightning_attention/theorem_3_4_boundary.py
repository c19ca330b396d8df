"""Theorem 3.4 and Corollaries A.1 and A.6: closedness and boundary of one layer.

A point of the image is on the relative boundary when it is a limit of points of the closure that are not in the image. What lies in the image
is decided here by Macaulay2's count of the real points of a fiber, and not by the criterion that the theorem amounts to. One
point suffices for a whole sequence: the group GL_d x GL_d x GL_d' acts linearly on closure and image, and moves S + T to S + 4^-k T.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from m2bridge.claims.base import (
    Claim,
    Context,
    Size,
    Verdict,
    by_ancestry,
    disagreement,
    fails,
    holds,
    out_of_reach,
)
from m2bridge.claims.lightning_attention import PAPER
from m2bridge.claims.lightning_attention.lemma_a_3 import Ranks, critical, orbits, printed, representative
from m2bridge.claims.lightning_attention.theorem_3_2 import asked, components_of
from m2bridge.linear.integer import rank_over_q
from m2bridge.models import Lightning
from m2bridge.questions.boundary import boundary
from m2bridge.questions.boundary.examples import separated
from m2bridge.results import Certainty

_BY_MACAULAY2 = ("where: point", "macaulay2")


def check_closed(size: Size, context: Context) -> Verdict:
    """What the compactness argument needs: only A = 0 or V = 0 give the zero function, so there are no base points."""
    result = asked({**size, "rank_a": 0, "rank_v": 0, "meet": 0}, context)
    answer = components_of(result)
    if isinstance(answer, Verdict):
        return answer
    model = Lightning(**size, parametrization="attention")
    weights = {name: int(np.prod(shape)) for name, shape in model.parameters.items()}
    bounded = model.attention_rank * (2 * model.d - model.attention_rank)
    expected = sorted([bounded, weights["V"]])
    found = sorted(component.dim for component in result.components or ())
    computed = {"components": found, "printed": expected}
    verdict = (
        holds(
            answer[1],
            "no base points, so the image is the cone over a compact set (Corollary A.1)",
            **computed,
        )
        if found == expected
        else fails(
            answer[1], computed, "the zero function has other weights: the argument breaks", **computed
        )
    )
    return replace(verdict, witnesses=by_ancestry(result.evidence, "components", "fiber_dim"))


def flattening_ranks(model: Lightning, z: np.ndarray) -> tuple[int, int]:
    """Ranks of a point of the closure as a map from columns of A and from rows of V; both are one for closure-only points."""
    table = np.asarray(z).reshape(model.dp, model.d, -1)
    return rank_over_q(np.moveaxis(table, 1, 0).reshape(model.d, -1)), rank_over_q(
        table.reshape(model.dp, -1)
    )


def limit_of_closure_only(model: Lightning, ranks: Ranks, context: Context) -> bool | Verdict:
    """Whether a representative of the orbit is a limit of points that are only in the closure; or why that is not known.

    Points that are only in the closure have both flattenings of rank one (the proof of Corollary A.6), and so have
    their limits, unless they are zero. At such a point h (x) q (x) S with S = x_1^2 or x_1 x_2, the directions x_2^2 and -x_2^2 are
    tried: scalings of x_1 and x_2 move S + x_2^2 to S + 4^-k x_2^2. Zero is a limit of multiples of h (x) q (x) (x_1^2 + x_2^2).
    """
    A, V = (np.asarray(m) for m in representative(model.d, model.dp, ranks).values())
    flat = flattening_ranks(model, model.coordinates({"A": A, "V": V}))
    if max(flat) > 1:
        return False
    hessian = np.zeros((model.d, model.d), dtype=int)
    if ranks[0] * ranks[1]:
        k, v = A[:, 0], V[0]
        hessian = np.outer(k, v) + np.outer(v, k)
    h, q = np.eye(model.dp, dtype=int)[0], np.eye(model.d, dtype=int)[0]
    for direction in ((0, 2), (0, -2)) if hessian.any() else ((2, 2),):
        moved = hessian.copy()
        moved[0, 0] += direction[0]
        moved[1, 1] += direction[1]
        result = context.once(boundary, model, point=list(separated(model, h, q, moved)))
        if result.agreement is False:
            return disagreement(result.conflicts)
        said = [e.value for e in result.evidence if (e.quantity, e.witness) == _BY_MACAULAY2]
        if not said:
            return out_of_reach("Macaulay2 did not count the real points of a fiber")
        if said[0] == "closure-only":
            return True
    return False


def _check(predicts: Any) -> Any:
    def check(size: Size, context: Context) -> Verdict:
        model = Lightning(**size, parametrization="attention")
        rows = []
        for ranks in orbits(model.d, model.dp, model.a):
            on_boundary = limit_of_closure_only(model, ranks, context)
            if isinstance(on_boundary, Verdict):
                return on_boundary
            rows.append([*ranks, on_boundary])
            if on_boundary != predicts(model, ranks):
                witness = {
                    "rank_a": ranks[0],
                    "rank_v": ranks[1],
                    "meet": ranks[2],
                    "on_boundary": on_boundary,
                }
                word = "on" if on_boundary else "not on"
                reason = f"{word} the boundary at rk A = {ranks[0]}, rk V = {ranks[1]}, meet {ranks[2]}"
                return fails(Certainty.PROBABLE, witness, reason)
        reason = "limits by explicit sequences; where there is none, the directions that were tried stay in the image"
        return holds(Certainty.PROBABLE, reason, orbits=rows)

    return check


def printed_boundary(_: Lightning, ranks: Ranks) -> bool:
    """A = k q^T and V = h k^T for some q, k, h; the zero function is of this form whatever its weights are."""
    return ranks[0] * ranks[1] == 0 or printed(ranks)


def _sizes(*triples: tuple[int, int, int]) -> tuple[Size, ...]:
    return tuple({"d": d, "dp": dp, "a": a} for d, dp, a in triples)


_SIZES = _sizes((2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2))
_WITNESSES = {
    "template": ("Macaulay2: real and complex points of the fibers of nearby points",),
    "program": ("exact ranks of flattenings over QQ", "least squares over real weights"),
    "construction": ("sequences in the closure that are no images",),
}

CLAIMS = (
    Claim(
        id="theorem-3.4-closed",
        number="Theorem 3.4, closedness (Corollary A.1)",
        paper=PAPER,
        statement="The neuromanifold of one layer is closed in the Euclidean topology.",
        checked=(
            "the hypothesis of the paper's proof, that only A = 0 or V = 0 give the zero function; a continuous image of a compact set "
            "is compact, and the neuromanifold is the cone over it"
        ),
        witnesses={
            "template": ("Macaulay2: components of the zero fiber",),
            "program": ("the forward pass's equations",),
        },
        sizes=(*_SIZES, *_sizes((3, 2, 2))),
        quick=_SIZES[:1],
        run=check_closed,
    ),
    Claim(
        id="theorem-3.4-boundary",
        number="Theorem 3.4, boundary points",
        paper=PAPER,
        statement="The relative boundary points are those with A = k q^T and V = h k^T.",
        checked="for every orbit, whether it is a limit of points of the closure whose fibers have no real points",
        witnesses=_WITNESSES,
        sizes=_SIZES,
        quick=_SIZES[:1],
        run=_check(printed_boundary),
    ),
    Claim(
        id="corollary-a.6",
        number="Corollary A.6",
        paper=PAPER,
        statement="A network is on the relative boundary exactly when its weights are critical for (A, V) -> network.",
        checked="the same limits, against the rank over QQ of the differential at every orbit",
        witnesses={**_WITNESSES, "program": ("rank over QQ of the differential", *_WITNESSES["program"])},
        sizes=_SIZES,
        quick=_SIZES[:1],
        run=_check(lambda model, ranks: critical(model.d, model.dp, ranks)),
    ),
)
