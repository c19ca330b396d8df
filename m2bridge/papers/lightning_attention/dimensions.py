"""Dimensions: one layer (Corollary 3.3, Proposition A.5, Figure 1, several heads), deep networks (Corollary 3.8, the remarks around
it), and normalised attention (Equation 16, Figure 3).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.families import Attention, DeepLightning, Lightning, Softmax
from m2bridge.families.symbolic import coefficient_rank, symbolic_map
from m2bridge.families.virtual import virtual_weights
from m2bridge.linear.modular import rank_over_q
from m2bridge.papers.base import CheckContext, Claim, Correction, Kind, Size, Verdict, sizes
from m2bridge.papers.dimensions import ABOUT, ONE_LAYER_WITNESSES, WITNESSES, dimension_claim
from m2bridge.questions import over_q
from m2bridge.questions.dimension import dimension


def equation_7(model: Attention) -> int:
    """Return the printed dimension of one layer."""
    d, dp, a = model.d, model.dp, model.a
    return 2 * a * d + d * dp - a * a - 1 if a <= d else d * d + d * dp - 1


def equation_14(model: Attention) -> int:
    """Return the printed dimension of a deep network; the common width of the hidden layers is d_1."""
    d, delta = model.widths, model.widths[1]
    alpha = [min(ai, width) for ai, width in zip(model.ranks, d, strict=False)]
    first = 2 * alpha[0] * d[0] - alpha[0] ** 2 + delta * (d[0] + d[-1]) - delta**2 - model.layers
    return first + sum(2 * ai * delta - ai**2 for ai in alpha[1:])


def equation_16(model: Attention) -> int:
    """Return the printed dimension with softmax: Equation 14 plus the number of layers."""
    return equation_14(model) + model.layers


# -- one layer -----------------------------------------------------------------------------------------------------------------


def check_isomorphism(size: Size, _: CheckContext) -> Verdict:
    """Check that all coefficients of the network and the Segre coordinates span the same space of polynomials."""
    segre, full = (symbolic_map(Lightning(**size, coordinate_system=name)) for name in ("segre", "full"))
    ranks = {
        "segre": coefficient_rank(segre),
        "full": coefficient_rank(full),
        "together": coefficient_rank(segre + full),
    }
    if len(set(ranks.values())) > 1:
        return Verdict.fails(
            Certainty.PROVED, ranks, "the two sets of coordinates span different spaces", **ranks
        )
    counts = {"coordinates": len(segre), "ambient": len(full)}
    return Verdict.holds(Certainty.PROVED, "the same linear span over QQ", **ranks, **counts)


def check_figure_1(size: Size, context: CheckContext) -> Verdict:
    """Check the dimension of the neuromanifold, and that of the space of all cubic maps by counting monomials."""
    model = Lightning(**size, coordinate_system="full")
    result = context.once(dimension, model)
    cubics = {tuple(sorted(c)) for c in product(range(model.d * model.t), repeat=3)}
    ambient = len(cubics) * model.dp * model.t
    coefficients = symbolic_map(model)
    computed = {
        "image_dim": result.image_dim,
        "ambient_dim": ambient,
        "span_dim": coefficient_rank(coefficients),
    }
    if len(coefficients) != ambient:
        return Verdict.disagreement([f"{len(coefficients)} coefficients of the network, {ambient} monomials"])
    numbers = f"dimension {result.image_dim} in {ambient}, spanning {computed['span_dim']}"
    return Verdict.decided(
        (result.image_dim, ambient) == (5, 40), result.certainty, numbers, numbers, **computed
    )


def check_only_permutations(size: Size, context: CheckContext) -> Verdict:
    """Check whether several heads have the dimension of one head times their number, as if only permuted."""
    d, dp, a, heads = (size[name] for name in ("d", "dp", "a", "heads"))
    one_head, all_heads = (
        context.once(dimension, DeepLightning(d=(d, dp), a=(a,), t=2, heads=(n,))) for n in (1, heads)
    )
    naive = min(heads * one_head.image_dim, all_heads.span_dim or heads * one_head.image_dim)
    computed = {"one_head": one_head.image_dim, "all_heads": all_heads.image_dim, "if_only_permuted": naive}
    if all_heads.image_dim == naive and all_heads.certainty.exact:
        return Verdict.holds(Certainty.PROVED, f"{heads} heads have dimension {naive}", **computed)
    if all_heads.upper_bound < naive:
        reason = f"{heads} heads have dimension at most {all_heads.upper_bound} < {naive}: there are continuous symmetries between heads"
        return Verdict.fails(Certainty.PROVED, computed, reason, **computed)
    return Verdict.out_of_reach(
        f"computed {all_heads.image_dim}, bounds {all_heads.lower_bound} to {all_heads.upper_bound}"
    )


_LAYER = "d dp a t"
_INSIDE_7 = sizes(_LAYER,
    *((d, dp, a, 2) for d in (2, 3) for dp in (1, 2, 3) for a in range(1, d + 2) if dp >= 2 or a >= 2),
    (5, 1, 3, 2), (5, 3, 1, 2), (5, 3, 6, 2), (8, 4, 3, 2), (3, 2, 2, 3), (3, 2, 2, 5),
)  # fmt: skip
_OUTSIDE_7 = sizes(_LAYER, (2, 1, 1, 2), (3, 1, 1, 2), (1, 1, 1, 2), (1, 2, 1, 2), (2, 2, 2, 1), (3, 2, 2, 1))
_SEGRE = sizes(_LAYER, (2, 1, 2, 2), (2, 2, 1, 2), (2, 1, 2, 3), (3, 1, 2, 2), (3, 2, 3, 2))
_HEADS = sizes("d dp a heads", (2, 2, 2, 2), (3, 2, 1, 2), (3, 2, 2, 2), (3, 3, 3, 2), (3, 3, 3, 3))

_COROLLARY_33 = dimension_claim(
    Lightning, equation_7,
    id="corollary-3.3",
    number="Corollary 3.3 (Equation 7)",
    statement="For t >= 2 and d, d' >= 2 or d, a >= 2, the neuromanifold of one layer has dimension 2ad + dd' - a^2 - 1 if a <= d "
    "and d^2 + dd' - 1 otherwise.",
    witnesses=ONE_LAYER_WITNESSES,
    sizes=_INSIDE_7,
    quick=sizes(_LAYER, (2, 1, 2, 2), (2, 2, 1, 2), (3, 2, 2, 2), (3, 2, 4, 2)),
)  # fmt: skip
ONE_LAYER = (
    _COROLLARY_33,
    _COROLLARY_33.also(
        id="corollary-3.3-outside",
        number="Corollary 3.3, outside its hypotheses",
        statement="Equation 7 at a = d' = 1, at d = 1 and at t = 1, where the corollary does not apply: does it hold there?",
        quote="Suppose that t >= 2 and that d, d' >= 2 or d, a >= 2",
        checked="the number of Equation 7 against a dimension bounded from both sides",
        sizes=_OUTSIDE_7,
        quick=(_OUTSIDE_7[0], _OUTSIDE_7[4]),
        kind=Kind.PROBE,
    ),
    Claim(
        id="proposition-a.5",
        number="Proposition A.5",
        statement="The neuromanifold of one layer is linearly isomorphic to the set of all (alpha_m nu_n), products of linear forms.",
        checked="ranks over QQ of all coefficients of the network, of the products, and of both together",
        witnesses={"program": ("the forward pass over polynomials in X",), "formula": ("the products of linear forms",)},
        sizes=_SEGRE,
        quick=_SEGRE[:2],
        run=check_isomorphism,
    ),
    Claim(
        id="figure-1",
        number="Numbers around Figure 1",
        statement="M(2,1,2) for t = 2 has dimension 5 in the 40-dimensional space Sym3(R^4, R^2).",
        checked="the dimension of the image and of the ambient space",
        quote="has dimension 5 and is embedded in the 40-dimensional space",
        witnesses=ONE_LAYER_WITNESSES,
        about=ABOUT,
        sizes=_SEGRE[:1],
        run=check_figure_1,
    ),
    Claim(
        id="section-4-heads-only",
        number="Section 4, several heads: only permutations?",
        statement="If permutations were the only new symmetry of several heads, as for MLPs, H heads would have H times the dimension of "
        "one (or fill the span). The paper does not state this; it is a possible reading.",
        quote="introduces new symmetries due to permutation of heads",
        checked="the dimension of several heads against that many times the dimension of one",
        witnesses=ONE_LAYER_WITNESSES,
        about=ABOUT,
        sizes=_HEADS,
        quick=(_HEADS[0], _HEADS[3]),
        run=check_only_permutations,
        kind=Kind.PROBE,
    ),
)  # fmt: skip


# -- deep networks -------------------------------------------------------------------------------------------------------------


def check_ratio(size: Size, context: CheckContext) -> Verdict:
    """Compare the number of weights with the printed one, and with the dimension, at d = a = delta for growing depth."""
    delta, layers = size["d"], size["layers"]
    model = DeepLightning(d=(delta,) * (layers + 1), t=3)
    dim = context.once(dimension, model, engine=False).image_dim
    counted, printed = model.parameter_count, 1.5 * delta**2 * layers
    ratio = round(counted / dim, 3)
    computed = {"weights": counted, "printed_weights": printed, "image_dim": dim, "ratio": ratio}
    reason = f"(Q, K, V) has {counted} entries, printed {printed:g}; the ratio to the dimension is {ratio}"
    return Verdict.decided(counted == printed, Certainty.PROVED, "", reason, **computed)


def another_orbit(model: Attention, seed: int) -> dict[str, Any] | None:
    """Return weights with the same function and V_1 of smaller rank, so in another orbit; None if this construction has none.

    Later layers depend on V_1 only through its restriction to the span E of the rows and columns of M_2, ..., M_l and of the rows of L.
    So V_1 may be replaced by its product with the orthogonal projection to E; both networks are evaluated at an integer input.
    """
    rng = np.random.default_rng([seed, 38])
    w = {name: rng.integers(-3, 4, shape).astype(object) for name, shape in model.parameters.items()}
    layers = range(1, model.layers + 1)
    M, L = virtual_weights([w[f"K{i}"].T @ w[f"Q{i}"] for i in layers], [w[f"V{i}"] for i in layers])
    pivots, rows = over_q.echelon(np.concatenate([L, *(matrix for m in M[1:] for matrix in (m, m.T))]))
    rank = rank_over_q(w["V1"])
    if len(pivots) >= rank:
        return None
    E = rows[: len(pivots)]
    projection = E.T @ over_q.solve(E @ E.T, E)
    X = rng.integers(-3, 4, model.input_shape).astype(object)
    if not np.array_equal(model.forward(w, X), model.forward({**w, "V1": w["V1"] @ projection}, X)):
        return None
    written = {"V1": w["V1"].tolist(), "projection": [[str(x) for x in r] for r in projection]}
    return {"rank": rank, "other_rank": len(pivots), **written}


def check_three_symmetries(size: Size, context: CheckContext) -> Verdict:
    """Check whether generic fibers have the dimension of the orbits of the three symmetries."""
    model = DeepLightning(**size)
    result = context.once(dimension, model)
    second = another_orbit(model, context.seed)
    fibers = (result.parameters - result.upper_bound, result.parameters - result.lower_bound)
    computed = {"orbits": result.symmetry_dim, "generic_fibers": result.generic_fiber_dim}
    if fibers[0] > result.symmetry_dim:
        reason = f"generic fibers have dimension {result.generic_fiber_dim}, the three symmetries move {result.symmetry_dim}"
        return Verdict.fails(Certainty.PROVED, computed, reason, **computed)
    if second is not None:
        reason = (
            f"the fiber has another orbit: V_1 of rank {second['other_rank']} in place of {second['rank']}"
        )
        return Verdict.fails(Certainty.PROVED, second, reason, **computed)
    if fibers[1] == result.symmetry_dim:
        return Verdict.holds(Certainty.PROVED, f"both have dimension {result.symmetry_dim}", **computed)
    return Verdict.out_of_reach(f"generic fibers have dimension between {fibers[0]} and {fibers[1]}")


_DEEP = "d a t"
_INSIDE_14 = sizes(_DEEP,
    ((2, 2, 2), (2, 2), 3), ((3, 3, 3), (2, 2), 3), ((3, 3, 3), (3, 3), 3), ((4, 3, 5), (2, 3), 3),
    ((3, 2, 2, 3), (2, 2, 2), 3), ((4, 4, 4, 4), (2, 3, 4), 3), ((8, 8, 8), (2, 2), 3), ((16, 16, 16), (4, 4), 3),
)  # fmt: skip
_TWO_TOKENS = tuple({**size, "t": 2} for size in _INSIDE_14)
_OUTSIDE_14 = sizes(_DEEP, ((2, 2, 2), (2, 2), 1), ((2, 3, 2), (2, 2), 3), ((3, 3, 3), (1, 2), 3))
_SYMMETRIES = sizes(_DEEP, ((2, 2, 2), (2, 2), 3), ((4, 3, 5), (2, 3), 3), ((3, 2, 2, 3), (2, 2, 2), 3))
_WIDE = sizes(_DEEP, ((2, 3, 2), (2, 2), 3), ((6, 6, 1), (2, 2), 3))
_NARROWING = sizes(_DEEP, ((5, 5, 1), (2, 2), 3))

_COROLLARY_38 = dimension_claim(
    DeepLightning, equation_14,
    id="corollary-3.8",
    number="Corollary 3.8 (Equation 14)",
    statement="For t >= 3, all a_i >= 2, hidden widths equal to delta >= 2 and d_0, d_l >= delta, the dimension is given by Equation 14.",
    sizes=_INSIDE_14,
    quick=_INSIDE_14[:3],
)  # fmt: skip
_THREE_SYMMETRIES = Claim(
    id="three-symmetries",
    number='"Precisely three types of symmetries" (after Theorem 3.7)',
    statement="The parameters of a generic deep network have no symmetries but scalings of layers, changes of basis of keys and queries, "
    "and changes of basis between layers.",
    quote="a generic function in the neuromanifold has precisely three types of symmetries in its parameters",
    checked="the dimension of generic fibers in (Q, K, V) against that of the orbits of the three symmetries, and whether weights of "
    "another orbit have the same function",
    witnesses=WITNESSES,
    about=ABOUT,
    sizes=_SYMMETRIES + _NARROWING + _WIDE,
    quick=_SYMMETRIES[:1] + _WIDE,
    run=check_three_symmetries,
    correction=Correction(
        smallest="d = (2, 3, 2), a = (2, 2), t = 3",
        witness="The hidden width 3 exceeds d_0 = 2: a third row of V_1 and column of V_2 act on a space that the tokens do not reach, and "
        "A_2 acts only on the two-dimensional image of V_1. At d = (6, 6, 1), a = (2, 2) the 6 x 6 matrix V_1 enters only through the "
        "four dimensions of rows and columns of M_2 and one row of L, so that some V_1 of rank 5 gives the same function.",
        macaulay2="""\
R = QQ[b_0..b_8,v_0..v_5,w_0..w_5]; A = genericMatrix(R,b_0,3,3); V = genericMatrix(R,v_0,3,2); W = genericMatrix(R,w_0,2,3);
virtual = flatten entries(transpose V*A*V) | flatten entries(W*V);  -- M_2 and L; M_1 = A_1 is free, 4 more
<< 4 + rank sub(jacobian matrix{virtual}, apply(gens R, x -> x => random(QQ))) << " virtual weights, up to 2 scalings" << endl;
""",
        reason="Theorem 3.7 is about the fibers in (M, L). The fibers of (A, V) -> (M, L) are orbits of changes of basis between layers in a "
        "bottleneck architecture (Lemma 3.5), which the summary does not repeat.",
        unaffected="Theorem 3.7, Lemma 3.5 and Corollary 3.8, which have their own hypotheses.",
        repaired="The same for bottleneck architectures: hidden widths delta and d_0, d_l >= delta.",
        claim="three-symmetries-repaired",
    ),
)  # fmt: skip
DEEP = (
    _COROLLARY_38,
    _COROLLARY_38.also(
        id="corollary-3.8-two-tokens",
        number="Corollary 3.8 at t = 2",
        statement="Equation 14 at t = 2, where the corollary does not apply.",
        quote="Suppose that t >= 3",
        kind=Kind.PROBE,
        checked="the number of Equation 14 against a dimension proved from both sides",
        sizes=_TWO_TOKENS,
        quick=_TWO_TOKENS[:2],
    ),
    _COROLLARY_38.also(
        id="corollary-3.8-outside",
        number="Equation 14 outside the hypotheses of Corollary 3.8",
        statement="Equation 14 for one token, for widening widths, and for a_1 = 1 followed by a_2 = 2.",
        quote="t >= 3, a_i >= 2 for all i, and ... d_0, d_l >= delta",
        kind=Kind.PROBE,
        checked="the number of Equation 14 against a dimension bounded from both sides",
        sizes=_OUTSIDE_14,
        quick=_OUTSIDE_14[1:2],
    ),
    _THREE_SYMMETRIES,
    _THREE_SYMMETRIES.also(
        id="three-symmetries-repaired",
        number="Three types of symmetries, bottleneck architectures",
        statement="The same for hidden widths delta >= 2 and d_0, d_l >= delta.",
        checked="the dimension of generic fibers in (Q, K, V) against that of the orbits of the three symmetries",
        sizes=_SYMMETRIES,
        kind=Kind.REPAIRED,
    ),
    Claim(
        id="parameter-count",
        number="Parameter count after Corollary 3.8",
        statement="With all widths and all a_i equal to d, a network of l layers has 3/2 d^2 l parameters.",
        checked="the number of entries of (Q, K, V), counted, and its ratio to the proved dimension",
        quote="the number of parameters is 3/2 d^2 l",
        witnesses={**WITNESSES, "program": ("the weights themselves, counted", *WITNESSES["program"])},
        sizes=sizes("d layers", (2, 2), (3, 3), (4, 8)),
        run=check_ratio,
        correction=Correction(
            smallest="d = 2, l = 1: Q, K and V are 2 x 2 matrices, 12 entries, where the printed count gives 6",
            witness="Q_i, K_i and V_i are d x d: 3 d^2 entries per layer.",
            macaulay2='d = 2; l = 1; << 3*d^2*l << " entries, printed " << 3/2*d^2*l << endl;\n',
            reason="3/2 is the ratio of neither count: (Q, K, V) has 3 d^2 l entries and (A, V) has 2 d^2 l.",
            unaffected="The dimension, Equation 14.",
            repaired="The number of parameters is 3 d^2 l for (Q, K, V), three times the dimension asymptotically in l, or 2 d^2 l "
            "for (A, V), twice the dimension.",
        ),
    ),
)  # fmt: skip


# -- normalised attention ------------------------------------------------------------------------------------------------------

_FIGURE_3 = sizes(_DEEP, *(((delta,) * 3, (2, 2), 3) for delta in range(3, 11)))
_MORE = sizes(_DEEP,
    ((3, 3, 3, 3), (2, 2, 2), 3), ((4, 3, 5), (2, 3), 2), ((3, 3, 3), (3, 3), 4), ((64,) * 5, (8,) * 4, 8)
)  # fmt: skip
_EQUATION_16 = dimension_claim(
    Softmax, equation_16, engine=False,
    id="conjecture-3.10-dimension",
    number="Equation 16",
    statement="For deep networks with softmax in bottleneck architectures the dimension is given by Equation 16.",
    witnesses={
        "program": ("rank of the Jacobian modulo p, with units in place of exponentials", "float64 singular values"),
        "construction": ("rank of proved symmetries, or a gauge slice", "rank of (Q, K, V) -> (M, L)"),
        "formula": ("virtual weights counted by flags",),
    },
    sizes=_MORE,
    quick=_MORE[1:2],
)  # fmt: skip
NORMALISED = (
    _EQUATION_16,
    _EQUATION_16.also(
        id="figure-3",
        number="Figure 3",
        statement="For l = 2, t = 3, a = 2 and delta = 3, ..., 10 the estimated dimension equals Equation 16.",
        quote="The two values coincide for all delta",
        checked="each of the eight numbers against a dimension proved from both sides",
        sizes=_FIGURE_3,
        quick=(_FIGURE_3[0], _FIGURE_3[-1]),
    ),
)
CLAIMS = ONE_LAYER + DEEP + NORMALISED
