"""Corollary 3.8 and the parameter count after it: the dimension of deep networks."""

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
    fails,
    holds,
    out_of_reach,
    sizes,
)
from m2bridge.claims.dimensions import ABOUT, WITNESSES, compared
from m2bridge.linear.modular import rank_over_q
from m2bridge.models import DeepLightning
from m2bridge.models.virtual import virtual_weights
from m2bridge.questions import over_q
from m2bridge.questions.dimension import dimension
from m2bridge.results import Certainty


def equation_14(d: tuple[int, ...], a: tuple[int, ...]) -> int:
    """The printed dimension; the common width of the hidden layers is d_1."""
    delta, layers = d[1], len(a)
    alpha = [min(ai, width) for ai, width in zip(a, d, strict=False)]
    first = 2 * alpha[0] * d[0] - alpha[0] ** 2 + delta * (d[0] + d[-1]) - delta**2 - layers
    return first + sum(2 * ai * delta - ai**2 for ai in alpha[1:])


def check(size: Size, context: Context) -> Verdict:
    model = DeepLightning(**size)
    return compared(model, equation_14(model.d, model.a), context)


def check_ratio(size: Size, context: Context) -> Verdict:
    """Number of weights over dimension at d = delta, a = delta, for growing depth."""
    delta, layers = size["d"], size["layers"]
    model = DeepLightning(d=(delta,) * (layers + 1), t=3)
    result = context.once(dimension, model, engine=False)
    counted, printed = model.parameter_count, 1.5 * delta**2 * layers
    computed = {
        "weights": counted,
        "printed_weights": printed,
        "image_dim": result.image_dim,
        "ratio": round(counted / result.image_dim, 3),
    }
    if counted == printed:
        return holds(result.certainty, **computed)
    reason = f"(Q, K, V) has {counted} entries, printed {printed:g}; the ratio to the dimension is {computed['ratio']}"
    return fails(Certainty.PROVED, computed, reason, **computed)


def another_orbit(model: DeepLightning, seed: int) -> dict[str, Any] | None:
    """Weights with the same function and V_1 of smaller rank, which no change of basis gives; None when there are none of this kind.

    Later layers see V_1 only on the span E of the rows and columns of M_2, ..., M_l and of the rows of L. So V_1 may be replaced by its
    product with the orthogonal projection to E; both networks are evaluated at an integer input.
    """
    rng = np.random.default_rng([seed, 38])
    w = {name: rng.integers(-3, 4, shape).astype(object) for name, shape in model.parameters.items()}
    places = range(1, model.layers + 1)
    M, L = virtual_weights([w[f"K{i}"].T @ w[f"Q{i}"] for i in places], [w[f"V{i}"] for i in places])
    pivots, rows = over_q.echelon(np.concatenate([L, *(part for m in M[1:] for part in (m, m.T))]))
    rank = rank_over_q(w["V1"])
    if len(pivots) >= rank:
        return None
    E = rows[: len(pivots)]
    projection = E.T @ over_q.solve(E @ E.T, E)
    other = {**w, "V1": w["V1"] @ projection}
    X = rng.integers(-3, 4, model.input_shape).astype(object)
    if not np.array_equal(model.forward(w, X), model.forward(other, X)):
        return None
    return {
        "rank": rank,
        "other_rank": len(pivots),
        "V1": w["V1"].tolist(),
        "projection": [[str(x) for x in r] for r in projection],
    }


def check_three_symmetries(size: Size, context: Context) -> Verdict:
    """Whether generic fibers are as large as orbits of the three symmetries, and not larger."""
    model = DeepLightning(**size)
    result = context.once(dimension, model)
    second = another_orbit(model, context.seed)
    fibers = (result.parameters - result.upper_bound, result.parameters - result.lower_bound)
    computed = {"orbits": result.symmetry_dim, "generic_fibers": result.generic_fiber_dim}
    if fibers[0] > result.symmetry_dim:
        reason = f"generic fibers have dimension {result.generic_fiber_dim}, the three symmetries move {result.symmetry_dim}"
        return fails(Certainty.PROVED, computed, reason, **computed)
    if second is not None:
        reason = (
            f"the fiber has another orbit: V_1 of rank {second['other_rank']} in place of {second['rank']}"
        )
        return fails(Certainty.PROVED, second, reason, **computed)
    if fibers[1] == result.symmetry_dim:
        return holds(Certainty.PROVED, f"both have dimension {result.symmetry_dim}", **computed)
    return out_of_reach(f"generic fibers have dimension between {fibers[0]} and {fibers[1]}")


_NAMES = "d a t"
_INSIDE = sizes(_NAMES,
    ((2, 2, 2), (2, 2), 3), ((3, 3, 3), (2, 2), 3), ((3, 3, 3), (3, 3), 3), ((4, 3, 5), (2, 3), 3),
    ((3, 2, 2, 3), (2, 2, 2), 3), ((4, 4, 4, 4), (2, 3, 4), 3), ((8, 8, 8), (2, 2), 3), ((16, 16, 16), (4, 4), 3),
)  # fmt: skip

_SYMMETRIES = sizes(_NAMES, ((2, 2, 2), (2, 2), 3), ((4, 3, 5), (2, 3), 3), ((3, 2, 2, 3), (2, 2, 2), 3))
_WIDE = sizes(_NAMES, ((2, 3, 2), (2, 2), 3), ((6, 6, 1), (2, 2), 3))
_NARROWING = sizes(_NAMES, ((5, 5, 1), (2, 2), 3))

CLAIMS = (
    Claim(
        id="corollary-3.8",
        number="Corollary 3.8 (Equation 14)",
        statement=(
            "For t >= 3, all a_i >= 2, hidden widths equal to delta >= 2 and d_0, d_l >= delta, the dimension is given by "
            "Equation 14."
        ),
        checked="the printed number against a dimension proved from both sides",
        witnesses=WITNESSES,
        about=ABOUT,
        sizes=_INSIDE,
        quick=_INSIDE[:3],
        run=check,
    ),
    Claim(
        id="corollary-3.8-two-tokens",
        number="Corollary 3.8 at t = 2",
        statement="Equation 14 already at t = 2, where the corollary says nothing.",
        quote="Suppose that t >= 3",
        kind=Kind.PROBE,
        checked="the number of Equation 14 against a dimension proved from both sides",
        witnesses=WITNESSES,
        about=ABOUT,
        sizes=tuple({**size, "t": 2} for size in _INSIDE),
        quick=tuple({**size, "t": 2} for size in _INSIDE[:2]),
        run=check,
    ),
    Claim(
        id="corollary-3.8-outside",
        number="Equation 14 outside the hypotheses of Corollary 3.8",
        statement="Equation 14 for one token, for widening widths, and for a_1 = 1 followed by a_2 = 2.",
        quote="t >= 3, a_i >= 2 for all i, and ... d_0, d_l >= delta",
        kind=Kind.PROBE,
        checked="the number of Equation 14 against a dimension bounded from both sides",
        witnesses=WITNESSES,
        about=ABOUT,
        sizes=sizes(_NAMES, ((2, 2, 2), (2, 2), 1), ((2, 3, 2), (2, 2), 3), ((3, 3, 3), (1, 2), 3)),
        quick=sizes(_NAMES, ((2, 3, 2), (2, 2), 3)),
        run=check,
    ),
    Claim(
        id="three-symmetries",
        number='"Precisely three types of symmetries" (after Theorem 3.7)',
        statement=(
            "The parameters of a generic deep network have no symmetries but scalings of layers, changes of basis of keys and queries, and "
            "changes of basis between layers."
        ),
        quote="a generic function in the neuromanifold has precisely three types of symmetries in its parameters",
        checked=(
            "the dimension of generic fibers in (Q, K, V) against that of the orbits of the three symmetries, and whether weights of "
            "another orbit have the same function"
        ),
        witnesses=WITNESSES,
        about=ABOUT,
        sizes=_SYMMETRIES + _NARROWING + _WIDE,
        quick=_SYMMETRIES[:1] + _WIDE,
        run=check_three_symmetries,
        correction=Correction(
            smallest="d = (2, 3, 2), a = (2, 2), t = 3",
            witness=(
                "The hidden width 3 exceeds d_0 = 2: a third row of V_1 and column of V_2 act on a space that the tokens do not reach, and "
                "A_2 is seen on the two-dimensional image of V_1 only. At d = (6, 6, 1), a = (2, 2) the 6 x 6 matrix V_1 is seen on the four "
                "dimensions of rows and columns of M_2 and on one row of L, so that V_1 of rank 5 does as well."
            ),
            macaulay2="""\
R = QQ[b_0..b_8,v_0..v_5,w_0..w_5]; A = genericMatrix(R,b_0,3,3); V = genericMatrix(R,v_0,3,2); W = genericMatrix(R,w_0,2,3);
virtual = flatten entries(transpose V*A*V) | flatten entries(W*V);  -- M_2 and L; M_1 = A_1 is free, 4 more
<< 4 + rank sub(jacobian matrix{virtual}, apply(gens R, x -> x => random(QQ))) << " virtual weights, up to 2 scalings" << endl;
""",
            reason=(
                "Theorem 3.7 is about the fibers in (M, L). The fibers of (A, V) -> (M, L) are orbits of changes of basis between layers in a "
                "bottleneck architecture (Lemma 3.5), which the summary does not repeat."
            ),
            unaffected="Theorem 3.7, Lemma 3.5 and Corollary 3.8, which have their own hypotheses.",
            repaired="The same for bottleneck architectures: hidden widths delta and d_0, d_l >= delta.",
            claim="three-symmetries-repaired",
        ),
    ),
    Claim(
        id="three-symmetries-repaired",
        number="Three types of symmetries, bottleneck architectures",
        statement="The same for hidden widths delta >= 2 and d_0, d_l >= delta.",
        checked="the dimension of generic fibers in (Q, K, V) against that of the orbits of the three symmetries",
        witnesses=WITNESSES,
        about=ABOUT,
        sizes=_SYMMETRIES,
        run=check_three_symmetries,
        kind=Kind.REPAIRED,
    ),
    Claim(
        id="parameter-count",
        number="Parameter count after Corollary 3.8",
        statement="With all widths and all a_i equal to d, a network of l layers has 3/2 d^2 l parameters.",
        checked="the number of entries of (Q, K, V), counted, and its ratio to the proved dimension",
        quote="the number of parameters is 3/2 d^2 l",
        witnesses={**WITNESSES, "program": ("the weights themselves, counted", *WITNESSES["program"])},
        sizes=({"d": 2, "layers": 2}, {"d": 3, "layers": 3}, {"d": 4, "layers": 8}),
        quick=({"d": 2, "layers": 2},),
        run=check_ratio,
        correction=Correction(
            smallest="d = 2, l = 1: Q, K and V are 2 x 2 matrices, 12 entries, where the printed count gives 6",
            witness="Q_i, K_i and V_i are d x d: 3 d^2 entries a layer.",
            macaulay2='d = 2; l = 1; << 3*d^2*l << " entries, printed " << 3/2*d^2*l << endl;\n',
            reason="3/2 is the ratio of neither count: (Q, K, V) has 3 d^2 l entries and (A, V) has 2 d^2 l.",
            unaffected="The dimension, Equation 14.",
            repaired=(
                "The number of parameters is 3 d^2 l for (Q, K, V), three times the dimension asymptotically in l, or 2 d^2 l "
                "for (A, V), twice the dimension."
            ),
        ),
    ),
)
