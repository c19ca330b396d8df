"""Theorem 3.4 and Corollaries A.1 and A.6: closedness and boundary of one layer.

A point of the image is on the relative boundary when it is a limit of points of the closure that are not in the image. What lies in the image
is decided here by Macaulay2's count of the real points of a fiber, and not by the criterion that the theorem amounts to. One
point suffices for a whole sequence: the group GL_d x GL_d x GL_d' acts linearly on closure and image, and moves S + T to S + 4^-k T.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.claims.base import (
    Claim,
    Context,
    Size,
    Verdict,
    decided,
    disagreement,
    fails,
    holds,
    sizes,
)
from m2bridge.claims.lightning_attention.lemma_a_3 import Ranks, critical, orbits, printed, representative
from m2bridge.claims.lightning_attention.theorem_3_2 import ABOUT, asked, components_of
from m2bridge.engine import Engine, Limits
from m2bridge.linear.integer import rank_over_q
from m2bridge.models import Lightning
from m2bridge.protocol import read
from m2bridge.questions.boundary import TEMPLATE, decide, parameters, place_of_fiber
from m2bridge.questions.boundary.points import Coordinates, separated
from m2bridge.results import Certainty
from m2bridge.scripts import render


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
    reason = "no base points, so the image is the cone over a compact set (Corollary A.1)"
    otherwise = "the zero function has other weights: the argument breaks"
    return decided(found == expected, answer[1], reason, otherwise, **computed)


def flattening_ranks(model: Lightning, z: np.ndarray) -> tuple[int, int]:
    """Ranks of a point of the closure as a map from columns of A and from rows of V; both are one for closure-only points."""
    table = np.asarray(z).reshape(model.dp, model.d, -1)
    return rank_over_q(np.moveaxis(table, 1, 0).reshape(model.d, -1)), rank_over_q(
        table.reshape(model.dp, -1)
    )


def neighbour(model: Lightning, ranks: Ranks, sign: int) -> Coordinates | None:
    """A point of the closure that the group moves arbitrarily near to a representative of the orbit; None when it has a flattening
    of rank two.

    Points that are only in the closure have both flattenings of rank one (the proof of Corollary A.6), and so have their limits,
    unless they are zero. At such a point h (x) q (x) S, S = x_1^2 or x_1 x_2, scalings of x_1 and x_2 move S + x_2^2 to
    S + 4^-k x_2^2. Zero is a limit of multiples of h (x) q (x) (x_1^2 + x_2^2).
    """
    A, V = representative(model.d, model.dp, ranks).values()
    if max(flattening_ranks(model, model.coordinates({"A": A, "V": V}))) > 1:
        return None
    hessian = np.zeros((model.d, model.d), dtype=int)
    if ranks[0] * ranks[1]:
        hessian = np.outer(A[:, 0], V[0]) + np.outer(V[0], A[:, 0])
    else:
        hessian[0, 0] = 2
    hessian[1, 1] += 2 * sign
    h, q = np.eye(model.dp, dtype=int)[0], np.eye(model.d, dtype=int)[0]
    return tuple(separated(model, h, q, hessian))


def places(
    model: Lightning, *, engine: Engine, seed: int, limits: Limits, points: list[Coordinates]
) -> list[str]:
    """Where points lie, by Macaulay2's count of complex and real points of their fibers over QQ."""
    given = {**parameters(model, points, seed), "wantsIdeals": False, "wantsKernel": False}
    script = render(TEMPLATE, {**model.m2_parameters, **given}, partial=model.m2_partial)
    return [place_of_fiber(fiber) for fiber in read(engine.run(script, limits))["fibers"]]


def limits_of_closure_only(model: Lightning, context: Context) -> dict[Ranks, bool] | Verdict:
    """For each orbit, whether it is a limit of points that are only in the closure; or that two decisions of a point differ."""
    near = {
        (ranks, sign): z
        for ranks in orbits(model.d, model.dp, model.a)
        for sign in (1, -1)
        if (z := neighbour(model, ranks, sign)) is not None
    }
    points = list(dict.fromkeys(near.values()))
    found = dict(zip(points, context.once(places, model, points=points), strict=True))
    for z, where in found.items():
        ours = decide(model, z).where
        if ours != where:
            return disagreement(
                [f"Macaulay2 says {where}, exact linear algebra {ours}, of the point {[str(c) for c in z]}"]
            )
    only = {ranks for (ranks, _), z in near.items() if found[z] == "closure-only"}
    return {ranks: ranks in only for ranks in orbits(model.d, model.dp, model.a)}


def _check(predicts: Any) -> Any:
    def check(size: Size, context: Context) -> Verdict:
        model = Lightning(**size, parametrization="attention")
        found = limits_of_closure_only(model, context)
        if isinstance(found, Verdict):
            return found
        for ranks, on_boundary in found.items():
            if on_boundary != predicts(model, ranks):
                named = zip(("rank_a", "rank_v", "meet"), ranks, strict=True)
                witness = {**dict(named), "on_boundary": on_boundary}
                word = "on" if on_boundary else "not on"
                reason = f"{word} the boundary at rk A = {ranks[0]}, rk V = {ranks[1]}, meet {ranks[2]}"
                return fails(Certainty.PROBABLE, witness, reason)
        rows = [[*ranks, on_boundary] for ranks, on_boundary in found.items()]
        reason = "limits by explicit sequences; where there is none, the directions that were tried stay in the image"
        return holds(Certainty.PROBABLE, reason, orbits=rows)

    return check


def printed_boundary(_: Lightning, ranks: Ranks) -> bool:
    """A = k q^T and V = h k^T for some q, k, h; the zero function is of this form whatever its weights are."""
    return ranks[0] * ranks[1] == 0 or printed(ranks)


_SIZES = sizes("d dp a", (2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 2, 2), (3, 3, 3))
_WITNESSES = {
    "template": ("Macaulay2: real and complex points of the fibers of nearby points",),
    "program": ("exact ranks of flattenings over QQ",),
    "formula": ("the sign of e2, for the same points",),
    "construction": ("sequences in the closure that are no images",),
}

CLAIMS = (
    Claim(
        id="theorem-3.4-closed",
        number="Theorem 3.4, closedness (Corollary A.1)",
        statement="The neuromanifold of one layer is closed in the Euclidean topology.",
        checked=(
            "the hypothesis of the paper's proof, that only A = 0 or V = 0 give the zero function; a continuous image of a compact set "
            "is compact, and the neuromanifold is the cone over it"
        ),
        witnesses={
            "template": ("Macaulay2: components of the zero fiber",),
            "program": ("the forward pass's equations",),
        },
        about=ABOUT,
        sizes=_SIZES[:5],
        run=check_closed,
    ),
    Claim(
        id="theorem-3.4-boundary",
        number="Theorem 3.4, boundary points",
        statement="The relative boundary points are those with A = k q^T and V = h k^T.",
        checked="for every orbit, whether it is a limit of points of the closure whose fibers have no real points",
        witnesses=_WITNESSES,
        sizes=_SIZES,
        run=_check(printed_boundary),
    ),
    Claim(
        id="corollary-a.6",
        number="Corollary A.6",
        statement="A network is on the relative boundary exactly when its weights are critical for (A, V) -> network.",
        checked="the same limits, against the rank over QQ of the differential at every orbit",
        witnesses={**_WITNESSES, "program": ("rank over QQ of the differential", *_WITNESSES["program"])},
        sizes=_SIZES,
        run=_check(lambda model, ranks: critical(model.d, model.dp, ranks)),
    ),
)
