"""Theorem 3.7: the fibers of deep networks by virtual weights, as printed and repaired."""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.claims.base import (
    Claim,
    Context,
    Correction,
    Kind,
    Size,
    Verdict,
    disagreement,
    fails,
    holds,
    out_of_reach,
    sizes,
)
from m2bridge.claims.lightning_attention.said import macaulay2_orbits
from m2bridge.claims.lightning_attention.theorem_3_2 import ABOUT
from m2bridge.linear.modular import rank_over_q
from m2bridge.models import DeepLightning
from m2bridge.models.virtual import virtual_weights
from m2bridge.questions.fiber import Fiber, fiber
from m2bridge.results import Certainty

_POINTS = 5


def check(size: Size, context: Context) -> Verdict:
    """The fiber through virtual weights that satisfy the hypotheses: is it one orbit of rescalings?

    What is compared is Macaulay2's count of the orbits. A second orbit that a formula gives counts only when the identity of the two
    networks was verified over QQ.
    """
    model = DeepLightning(d=size["d"], t=size["t"], parametrization="virtual")
    stratum = ",".join(f"{name}={size[name]}" for name in ("m1", "m2"))
    result = context.once(fiber, model, at=stratum)
    return verdict_on(result)


def verdict_on(result: Fiber) -> Verdict:
    """What a computed fiber says about the statement."""
    if result.agreement is False:
        return disagreement(result.conflicts)
    computed: dict[str, Any] = {
        "components": None
        if result.components is None
        else [[c.dim, c.degree, c.reduced] for c in result.components],
        "known_symmetry_dim": result.known_symmetry_dim,
        "orbits": macaulay2_orbits(result),
    }
    reason = "the hypotheses hold and the fiber is more than the rescalings"
    counter = result.counterexample
    if counter is not None:
        if counter.get("verified") is not True:
            return disagreement(["the formula for a second orbit gives another function: it shows nothing"])
        return fails(Certainty.PROVED, counter, reason, **computed)
    if result.limit is not None:
        return out_of_reach(result.limit)
    if computed["orbits"] is None:
        return out_of_reach("the orbits in the fiber were not counted")
    if computed["orbits"] == 1:
        return holds(Certainty.PROBABLE, **computed)
    return fails(Certainty.PROBABLE, computed, reason, **computed)


def check_generic(size: Size, context: Context) -> Verdict:
    """The conditions are that polynomials in the weights do not all vanish: one point that satisfies them shows that they are generic."""
    model = DeepLightning(d=size["d"], a=size["a"], t=3)
    rng = np.random.default_rng([context.seed, 37])
    for _ in range(_POINTS):
        held = conditions(model, rng)
        failing = [name for name, truth in held.items() if not truth]
        if not failing:
            return holds(Certainty.PROVED, "all conditions hold at an integer point", conditions=len(held))
    reason = f"not satisfied at {_POINTS} random points: {', '.join(failing)}"
    return fails(Certainty.PROBABLE, {"conditions": held}, reason)


def conditions(model: DeepLightning, rng: np.random.Generator) -> dict[str, bool]:
    """The conditions of the theorem at random integer weights."""
    places = range(1, model.layers + 1)
    w = {name: rng.integers(-99, 100, shape).astype(object) for name, shape in model.parameters.items()}
    M, L = virtual_weights([w[f"K{i}"].T @ w[f"Q{i}"] for i in places], [w[f"V{i}"] for i in places])
    return {
        "L != 0": bool(L.any()),
        **{f"rk M_{i} >= 2": rank_over_q(m) >= 2 for i, m in enumerate(M, start=1)},
        **{f"M_{i} not skew": bool((m + m.T).any()) for i, m in enumerate(M, start=1)},
    }


def _sizes(*cases: tuple[str, str, int]) -> tuple[Size, ...]:
    return sizes("d m1 m2 t", *(((2, 2, 2), *case) for case in cases))


# every size satisfies the hypotheses of its claim: elsewhere the theorem says nothing, and there is nothing to check
_GENERIC = _sizes(("generic", "generic", 3), ("symmetric", "generic", 3))
_SKEW = _sizes(("skew", "generic", 3))
_TWO = _sizes(("generic", "generic", 2), ("symmetric", "generic", 2), ("generic", "symmetric", 2))
_WITNESSES = {
    "template": ("Macaulay2: components of the fiber's ideal",),
    "program": ("kernel of the forward pass's Jacobian",),
    "formula": ("an exact identity of polynomials over QQ for the second orbit",),
}
_CONDITIONS = sizes(
    "d a", ((2, 2), (2,)), ((2, 2, 2), (2, 2)), ((3, 2, 4, 2), (2, 3, 2)), ((5, 2, 2, 2, 2), (2, 2, 2, 2))
)
_NARROW = sizes("d a", ((3, 1, 3), (2, 2)), ((3, 3, 3), (2, 1)))

CLAIMS = (
    Claim(
        id="theorem-3.7",
        number="Theorem 3.7",
        statement=(
            "For t >= 3, L not zero, all rk M_i >= 2 and M_i not skew-symmetric for i > 1, the fiber of a deep network consists of the "
            "rescalings of Equation 13."
        ),
        quote="For 1 < i <= l, M_i is not skew-symmetric",
        checked="the components of the fiber through virtual weights of each kind",
        witnesses=_WITNESSES,
        about=ABOUT,
        sizes=_GENERIC + _SKEW,
        quick=_GENERIC[:1] + _SKEW,
        run=check,
        correction=Correction(
            smallest="l = 2, d = (2, 2, 2), M_1 = J = [[0, 1], [-1, 0]]",
            witness=(
                "For J skew and N invertible, both 2 x 2, (M_1, M_2, L) = (J, N, L) and (N, J, L / det N) are the same function: for "
                "symmetric 2 x 2 matrices S, S J S = det(S) J and J S J^T = adj(S). The first satisfies all printed hypotheses."
            ),
            macaulay2="""\
R = QQ[x_0..x_3]; X = genericMatrix(R,x_0,2,2); J = matrix{{0,1},{-1,0}}**R; N = matrix{{1,2},{3,5}}**R; L = matrix{{1,7},{2,3}}**R;
network = (M1,M2,L) -> (G := transpose X*M1*X; L*X*G*transpose G*transpose X*M2*X*G);  -- Equation 11
<< (network(J,N,L) == network(N,J,(1/lift(det N,QQ))*L)) << endl;
""",
            reason=(
                "The induction starts from the factor x_3^T A_1 x_2 x_2^T A_1 x_1 - x_3^T A_1 x_1 x_2^T A_1 x_2, and products of the quadratic "
                "forms of all M_j are divided by; the form of M_1 vanishes identically when M_1 is skew."
            ),
            unaffected="Generic weights are not skew: the generic fibers, Corollary 3.8 and the dimension formulas are unchanged.",
            repaired="The same with M_i not skew-symmetric for all i; and then t >= 2 is enough at the sizes checked.",
            claim="theorem-3.7-repaired",
        ),
    ),
    Claim(
        id="theorem-3.7-repaired",
        number="Theorem 3.7, repaired",
        statement="The same statement with M_i not skew-symmetric for all i, and for t >= 2.",
        checked="the components of the fiber through virtual weights of each kind",
        witnesses=_WITNESSES,
        about=ABOUT,
        sizes=_GENERIC + _TWO,
        quick=_GENERIC[:1] + _TWO[:1],
        run=check,
        kind=Kind.REPAIRED,
    ),
    Claim(
        id="theorem-3.7-generic",
        number="Theorem 3.7, its conditions are generic",
        statement="If all d_i, a_i >= 2, generic weights satisfy the conditions of Theorem 3.7 (and no M_i is skew, M_1 included).",
        quote="The conditions of the above theorem are generic if d_i, a_i >= 2 for all i",
        checked="the conditions at one integer point: they are open, so that one point shows that they are generic",
        witnesses={"program": ("virtual weights at an integer point, exact ranks",)},
        sizes=_CONDITIONS,
        quick=_CONDITIONS[:2],
        run=check_generic,
    ),
    Claim(
        id="theorem-3.7-generic-outside",
        number="Theorem 3.7, its conditions for smaller sizes",
        statement="The conditions with a width or a rank of one, which the sentence excludes.",
        quote="generic if d_i, a_i >= 2 for all i",
        checked="the conditions at one integer point",
        witnesses={"program": ("virtual weights at an integer point, exact ranks",)},
        sizes=_NARROW,
        run=check_generic,
        kind=Kind.PROBE,
    ),
)
