"""Fibers: of one layer at every orbit of (A, V) (Theorem 3.2, Corollary A.2), of deep networks by virtual weights (Theorem 3.7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.families import Attention, DeepLightning, Lightning
from m2bridge.families.attention_strata import all_orbits
from m2bridge.families.virtual import virtual_weights
from m2bridge.linear.modular import rank_over_q
from m2bridge.papers.base import Check, CheckContext, Claim, Correction, Kind, Size, Verdict, sizes
from m2bridge.papers.lightning_attention.comments import macaulay2_orbits, weights_of, zero_fiber_dims
from m2bridge.questions.fiber import Fiber, fiber
from m2bridge.questions.orbits import exchanged

ABOUT = ("components", "fiber_dim", "orbits", "tangent_dim", "independent equations", "outputs at the point")
"""Quantities of a fiber: its components and orbits, its tangent space, and the equations that define it."""
Pair = tuple[np.ndarray, np.ndarray]
"""(A, V), exact numbers."""


def model_of(size: Size) -> Attention:
    return Lightning(d=size["d"], dp=size["dp"], a=size["a"], parametrization="attention")


def fiber_at(size: Size, context: CheckContext) -> Fiber:
    """Return the fiber through a representative of the orbit."""
    stratum = ",".join(f"{name}={size[name]}" for name in ("rank_a", "rank_v", "meet"))
    return context.once(fiber, model_of(size), at=stratum)


def rescaled(first: Pair, second: Pair) -> bool:
    """Return whether the second pair is (s A, V / s)."""
    i = tuple(np.argwhere(first[0])[0])
    s = second[0][i] / first[0][i]
    return bool(s and (second[0] == s * first[0]).all() and (second[1] == first[1] / s).all())


def printed_points(model: Attention, pair: Pair) -> int | None:
    """Return the number of curves of rescalings that the theorem lists; None if one of them has another function."""
    partner = exchanged(*pair)
    if partner is None:
        return 1
    images = [model.coordinates({"A": A, "V": V}) for A, V in (pair, partner)]
    if not np.array_equal(*images):
        return None
    return 1 if rescaled(pair, partner) else 2


def components_of(result: Fiber) -> tuple[list[tuple[int, int]], Certainty]:
    """Return (dimension, number) of the components over the algebraic closure, and their certainty; empty if unknown."""
    if result.components is None or not all(c.absolute for c in result.components):
        return [], Certainty.PROBABLE
    over_q = [e.certainty for e in result.evidence if (e.quantity, e.field) == ("components", "QQ")]
    certainty = Certainty.weakest(over_q) if over_q else Certainty.PROBABLE
    return counted(c.dim for c in result.components), certainty


def counted(dims: Iterable[int]) -> list[tuple[int, int]]:
    """Return each dimension and how often it occurs."""
    return sorted(Counter(dims).items())


NO_COMPONENTS = "the components over the algebraic closure were not computed"


def check_one_layer(size: Size, context: CheckContext) -> Verdict:
    """Check that the components of the fiber are the curves of rescalings that the theorem lists.

    These curves lie in the fiber and are closed and irreducible: if the fiber has as many components, all of dimension one, then
    these are the curves. The same argument holds for {A = 0} and {V = 0} in the fiber of the zero function.
    """
    result, model = fiber_at(size, context), model_of(size)
    components, certainty = components_of(result)
    if not components:
        return Verdict.out_of_reach(NO_COMPONENTS)
    if size["rank_a"] * size["rank_v"] == 0:
        printed = counted(zero_fiber_dims(model))
        description = "components {V = 0} and {A = 0}"
    else:
        weights = weights_of(result)
        curves = printed_points(model, (weights["A"], weights["V"]))
        if curves is None:
            return Verdict.fails(
                Certainty.PROVED, {"at": dict(result.at)}, "(v q^T, h k^T) computes another function"
            )
        printed = [(1, curves)]
        description = "one curve of rescalings" if curves == 1 else "rescalings of W and of W', two curves"
    computed = {"components": [list(p) for p in components], "printed": [list(p) for p in printed]}
    otherwise = f"components (dimension, number): {components}, printed {printed}"
    return Verdict.decided(components == printed, certainty, description, otherwise, **computed)


def cardinality(expected: int) -> Check:
    """Return a check that the fiber has `expected` points up to rescaling."""

    def run(size: Size, context: CheckContext) -> Verdict:
        components, certainty = components_of(fiber_at(size, context))
        if not components:
            return Verdict.out_of_reach(NO_COMPONENTS)
        count = sum(number for _, number in components)
        computed = {"points": count, "printed": expected}
        otherwise = f"the fiber has {count} up to rescaling, not {expected}"
        return Verdict.decided(
            components == [(1, expected)], certainty, f"{count} up to rescaling", otherwise, **computed
        )

    return run


# -- deep networks -------------------------------------------------------------------------------------------------------------


def check_deep(size: Size, context: CheckContext) -> Verdict:
    """Check whether the fiber through virtual weights that satisfy the hypotheses is one orbit of rescalings.

    Macaulay2's count of the orbits is compared. A second orbit by a formula counts only if the identity of the two networks was
    verified over QQ.
    """
    model = DeepLightning(d=size["d"], t=size["t"], parametrization="virtual")
    return verdict_on(context.once(fiber, model, at=f"m1={size['m1']},m2={size['m2']}"))


def verdict_on(result: Fiber) -> Verdict:
    """Return the verdict of a computed fiber about Theorem 3.7."""
    if result.agreement is False:
        return Verdict.disagreement(result.conflicts)
    components, orbits = result.components, macaulay2_orbits(result)
    computed: dict[str, Any] = {
        "components": None if components is None else [[c.dim, c.degree, c.reduced] for c in components],
        "known_symmetry_dim": result.known_symmetry_dim,
        "orbits": orbits,
    }
    reason = "the hypotheses hold and the fiber is more than the rescalings"
    if result.counterexample is not None:
        if result.counterexample.get("verified") is not True:
            return Verdict.disagreement(
                ["the formula for a second orbit gives another function, so it proves nothing"]
            )
        return Verdict.fails(Certainty.PROVED, result.counterexample, reason, **computed)
    if result.limit is not None or orbits is None:
        return Verdict.out_of_reach(result.limit or "the orbits in the fiber were not counted")
    return Verdict.decided(orbits == 1, Certainty.PROBABLE, "", reason, **computed)


def check_generic(size: Size, context: CheckContext) -> Verdict:
    """Check that the conditions are generic: they are open, so that one point that satisfies them suffices."""
    model = DeepLightning(d=size["d"], a=size["a"], t=3)
    rng = np.random.default_rng([context.seed, 37])
    points = 5
    for _ in range(points):
        held = conditions(model, rng)
        if all(held.values()):
            return Verdict.holds(
                Certainty.PROVED, "all conditions hold at an integer point", conditions=len(held)
            )
    failing = ", ".join(name for name, truth in held.items() if not truth)
    reason = f"not satisfied at {points} random points: {failing}"
    return Verdict.fails(Certainty.PROBABLE, {"conditions": held}, reason)


def conditions(model: Attention, rng: np.random.Generator) -> dict[str, bool]:
    """Return the conditions of the theorem at random integer weights."""
    layers = range(1, model.layers + 1)
    w = {name: rng.integers(-99, 100, shape).astype(object) for name, shape in model.parameters.items()}
    M, L = virtual_weights([w[f"K{i}"].T @ w[f"Q{i}"] for i in layers], [w[f"V{i}"] for i in layers])
    return {
        "L != 0": bool(L.any()),
        **{f"rk M_{i} >= 2": rank_over_q(m) >= 2 for i, m in enumerate(M, start=1)},
        **{f"M_{i} not skew": bool((m + m.T).any()) for i, m in enumerate(M, start=1)},
    }


# -- the statements ------------------------------------------------------------------------------------------------------------

_NAMES = "d dp a rank_a rank_v meet"
_ORBITS = sizes(_NAMES, *(
    (d, dp, a, o.rank_a, o.rank_v, o.meet)
    for d, dp, a in ((2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 2, 2)) for o in all_orbits(d, dp, a)
))  # fmt: skip
_QUICK = tuple(s for s in _ORBITS if (s["d"], s["dp"], s["a"]) == (2, 1, 2))


def _of_rank_one(chosen: tuple[Size, ...]) -> tuple[Size, ...]:
    return tuple(s for s in chosen if s["rank_a"] == s["rank_v"] == 1)


def _of_rank_two(chosen: tuple[Size, ...]) -> tuple[Size, ...]:
    return tuple(s for s in chosen if s["rank_a"] * s["rank_v"] >= 2)


def _deep(*cases: tuple[str, str, int]) -> tuple[Size, ...]:
    return sizes("d m1 m2 t", *(((2, 2, 2), *case) for case in cases))


# every size satisfies the hypotheses of its claim; the theorem does not apply to other sizes
_GENERIC = _deep(("generic", "generic", 3), ("symmetric", "generic", 3))
_SKEW = _deep(("skew", "generic", 3))
_TWO = _deep(("generic", "generic", 2), ("symmetric", "generic", 2), ("generic", "symmetric", 2))
_CONDITIONS = sizes(
    "d a", ((2, 2), (2,)), ((2, 2, 2), (2, 2)), ((3, 2, 4, 2), (2, 3, 2)), ((5, 2, 2, 2, 2), (2, 2, 2, 2))
)

_THEOREM_32 = Claim(
    id="theorem-3.2",
    number="Theorem 3.2",
    statement="For t >= 2 the fiber through (A, V) consists of rescalings; through rk A = rk V = 1 also of rescalings of (v q^T, h k^T); "
    "the zero function comes from A = 0 or V = 0.",
    checked="that the components of the fiber are the listed sets, through a representative of every orbit at each (d, d', a)",
    witnesses={
        "template": ("Macaulay2: components of the fiber's ideal",),
        "program": ("kernel of the forward pass's Jacobian", "the listed weights, evaluated"),
        "formula": ("orbits of the symmetries",),
    },
    about=ABOUT,
    sizes=_ORBITS,
    quick=_QUICK,
    run=check_one_layer,
)  # fmt: skip
_THEOREM_37 = Claim(
    id="theorem-3.7",
    number="Theorem 3.7",
    statement="For t >= 3, L not zero, all rk M_i >= 2 and M_i not skew-symmetric for i > 1, the fiber of a deep network consists of the "
    "rescalings of Equation 13.",
    quote="For 1 < i <= l, M_i is not skew-symmetric",
    checked="the components of the fiber through virtual weights of each kind",
    witnesses={
        "template": ("Macaulay2: components of the fiber's ideal",),
        "program": ("kernel of the forward pass's Jacobian",),
        "formula": ("an exact identity of polynomials over QQ for the second orbit",),
    },
    about=ABOUT,
    sizes=_GENERIC + _SKEW,
    quick=_GENERIC[:1] + _SKEW,
    run=check_deep,
    correction=Correction(
        smallest="l = 2, d = (2, 2, 2), M_1 = J = [[0, 1], [-1, 0]]",
        witness="For J skew and not zero and N invertible, both 2 x 2, (M_1, M_2, L) = (J, N, L) and (N, J, (det J / det N) L) are "
        "the same function: A^T J A = det(A) J for every 2 x 2 matrix A, and J J^T = det(J) I. The first satisfies all printed hypotheses.",
        macaulay2="""\
R = QQ[x_0..x_3]; X = genericMatrix(R,x_0,2,2); J = matrix{{0,1},{-1,0}}**R; N = matrix{{1,2},{3,5}}**R; L = matrix{{1,7},{2,3}}**R;
network = (M1,M2,L) -> (G := transpose X*M1*X; L*X*G*transpose G*transpose X*M2*X*G);  -- Equation 11
<< (network(J,N,L) == network(N,J,(1/lift(det N,QQ))*L)) << endl;
""",
        reason="The induction starts from the factor x_3^T A_1 x_2 x_2^T A_1 x_1 - x_3^T A_1 x_1 x_2^T A_1 x_2, and products of the quadratic "
        "forms of all M_j are divided by; the form of M_1 vanishes identically when M_1 is skew.",
        unaffected="Generic weights are not skew: the generic fibers, Corollary 3.8 and the dimension formulas are unchanged.",
        repaired="The same with M_i not skew-symmetric for all i; and then t >= 2 is enough at the sizes checked.",
        claim="theorem-3.7-repaired",
    ),
)  # fmt: skip
_CONDITIONS_37 = Claim(
    id="theorem-3.7-generic",
    number="Theorem 3.7, its conditions are generic",
    statement="If all d_i, a_i >= 2, generic weights satisfy the conditions of Theorem 3.7 (and no M_i is skew, M_1 included).",
    quote="The conditions of the above theorem are generic if d_i, a_i >= 2 for all i",
    checked="the conditions at one integer point: they are open, so that one point shows that they are generic",
    witnesses={"program": ("virtual weights at an integer point, exact ranks",)},
    sizes=_CONDITIONS,
    quick=_CONDITIONS[:2],
    run=check_generic,
)
CLAIMS = (
    _THEOREM_32,
    _THEOREM_32.also(
        id="corollary-a.2",
        number="Corollary A.2",
        statement="Up to rescaling the map is one-to-one where rk A * rk V >= 2.",
        quote="birational onto its image, with special fibers of cardinality 2",
        checked="the number of points up to rescaling: one at the orbits with rk A * rk V >= 2",
        sizes=_of_rank_two(_ORBITS),
        quick=_of_rank_two(_QUICK),
        run=cardinality(1),
    ),
    _THEOREM_32.also(
        id="corollary-a.2-special",
        number="Corollary A.2, every special fiber",
        statement="Read literally: over rk A = rk V = 1 every fiber has two points up to rescaling. Where k and v are proportional (meet=1) W "
        "and W' coincide, and the fiber is one double point.",
        quote="special fibers of cardinality 2",
        checked="the number of points up to rescaling at the orbits with both ranks one",
        sizes=_of_rank_one(_ORBITS),
        quick=_of_rank_one(_QUICK),
        run=cardinality(2),
        kind=Kind.PROBE,
    ),
    _THEOREM_32.also(
        id="corollary-a.2-outside",
        number="Corollary A.2 at a = d' = 1",
        statement="Generically one-to-one also at a = d' = 1, which Section 3.2 excludes? There every W has both ranks one, and generic "
        "fibers (meet=0) have two points.",
        quote="either d, d' >= 2 or d, a >= 2",
        checked="the number of points up to rescaling at a generic orbit",
        sizes=sizes(_NAMES, (2, 1, 1, 1, 1, 0), (3, 1, 1, 1, 1, 0)),
        run=cardinality(1),
        kind=Kind.PROBE,
    ),
    _THEOREM_37,
    _THEOREM_37.also(
        id="theorem-3.7-repaired",
        number="Theorem 3.7, repaired",
        statement="The same statement with M_i not skew-symmetric for all i, and for t >= 2.",
        sizes=_GENERIC + _TWO,
        quick=_GENERIC[:1] + _TWO[:1],
        kind=Kind.REPAIRED,
    ),
    _CONDITIONS_37,
    _CONDITIONS_37.also(
        id="theorem-3.7-generic-outside",
        number="Theorem 3.7, its conditions for smaller sizes",
        statement="The conditions with a width or a rank of one, which the sentence excludes.",
        quote="generic if d_i, a_i >= 2 for all i",
        checked="the conditions at one integer point",
        sizes=sizes("d a", ((3, 1, 3), (2, 2)), ((3, 3, 3), (2, 1))),
        kind=Kind.PROBE,
    ),
)  # fmt: skip
