"""Section 4: what the paper expects of skip connections and of several heads."""

from __future__ import annotations

import numpy as np

from m2bridge.claims.base import (
    Claim,
    Context,
    Correction,
    Size,
    Verdict,
    disagreement,
    fails,
    holds,
    out_of_reach,
)
from m2bridge.claims.lightning_attention import PAPER
from m2bridge.claims.lightning_attention.dimensions import ONE_LAYER_WITNESSES
from m2bridge.models import DeepLightning
from m2bridge.models.symbolic import rational_variables, variable_array
from m2bridge.questions.dimension import dimension
from m2bridge.results import Certainty


def check_scaling_broken(size: Size, _: Context) -> Verdict:
    """Whether (s A, V / s) changes a layer with a skip connection: tested as an identity of polynomials, s = 2."""
    d, t = size["d"], size["t"]
    model = DeepLightning(d=(d, d), t=t, skip=True, parametrization="attention")
    variables = rational_variables([f"w{i}" for i in range(2 * d * d)] + [f"x{i}" for i in range(d * t)])
    A, V, X = (variable_array(variables, shape) for shape in ((d, d), (d, d), (d, t)))
    plain = model.forward({"A1": A, "V1": V}, X)
    scaled = model.forward({"A1": A * 2, "V1": V / 2}, X)
    if all(a == b for a, b in zip(plain.ravel(), scaled.ravel(), strict=True)):
        witness = {"identity": "X + V X X^T A X is unchanged by A -> 2 A, V -> V / 2"}
        return fails(
            Certainty.PROVED,
            witness,
            "the scaling survives in every layer, so generic fibers are not single points",
        )
    return holds(Certainty.PROVED, "scaling changes the function")


def check_only_permutations(size: Size, context: Context) -> Verdict:
    """If heads could only be permuted, the dimension of several heads would be that of one head times their number."""
    d, dp, a, heads = (size[name] for name in ("d", "dp", "a", "heads"))
    models = (DeepLightning(d=(d, dp), a=(a,), t=2, heads=(n,)) for n in (1, heads))
    one, many = (
        dimension(model, engine=context.engine, seed=context.seed, limits=context.limits) for model in models
    )
    for result in (one, many):
        if result.agreement is False:
            return disagreement(result.conflicts)
    span = many.span_dim or heads * one.image_dim
    naive = min(heads * one.image_dim, span)
    computed = {"one_head": one.image_dim, "all_heads": many.image_dim, "if_only_permuted": naive}
    if many.image_dim == naive and many.certainty is Certainty.PROVED:
        return holds(Certainty.PROVED, **computed)
    if many.upper_bound < naive:
        reason = f"{heads} heads have dimension at most {many.upper_bound} < {naive}: there are continuous symmetries between heads"
        return fails(Certainty.PROVED, computed, reason, **computed)
    return out_of_reach(f"computed {many.image_dim}, bounds {many.lower_bound} to {many.upper_bound}")


def check_permutation(size: Size, context: Context) -> Verdict:
    """Exchanging two heads does not change the function: at random weights, as an identity over F_p in each entry."""
    model = DeepLightning(d=(size["d"], size["dp"]), a=(size["a"],), t=2, heads=(size["heads"],))
    rng = np.random.default_rng(context.seed)
    weights = {
        name: rng.integers(-9, 10, size=shape).astype(object) for name, shape in model.parameters.items()
    }
    X = rng.integers(-9, 10, size=model.input_shape).astype(object)
    order = np.roll(np.arange(size["heads"]), 1)
    moved = {name: value[order] for name, value in weights.items()}
    same = bool(np.array_equal(model.forward(weights, X), model.forward(moved, X)))
    if same:
        return holds(Certainty.PROBABLE, "identical at a random integer point")
    return fails(Certainty.PROVED, {"order": order.tolist()}, "exchanging heads changes the function")


_SKIP: tuple[Size, ...] = ({"d": 2, "t": 2}, {"d": 3, "t": 2}, {"d": 2, "t": 3})
_HEADS: tuple[Size, ...] = tuple(
    {"d": d, "dp": dp, "a": a, "heads": h}
    for d, dp, a, h in ((2, 2, 2, 2), (3, 2, 1, 2), (3, 2, 2, 2), (3, 3, 3, 2), (3, 3, 3, 3))
)

CLAIMS = (
    Claim(
        id="section-4-skip",
        number="Section 4, skip connections",
        paper=PAPER,
        statement="With skip connections the scaling symmetry breaks, and the parametrization is expected to be generically one-to-one.",
        checked="whether a layer X + V X X^T A X changes under (A, V) -> (2 A, V / 2), as an identity of polynomials",
        witnesses=("the forward pass over polynomials in all weights and inputs",),
        sizes=_SKIP,
        quick=_SKIP[:1],
        run=check_scaling_broken,
        correction=Correction(
            smallest="d = 1, t = 1: x + v a x^3 depends on the product v a alone",
            witness="A -> 2 A, V -> V / 2 leaves V X X^T A X, and so X + V X X^T A X, unchanged.",
            macaulay2="""\
R = QQ[a_0..a_3,v_0..v_3,x_0..x_3]; A = genericMatrix(R,a_0,2,2); V = genericMatrix(R,v_0,2,2); X = genericMatrix(R,x_0,2,2);
layer = (A,V) -> X + V*X*transpose X*A*X;
<< (layer(2*A, (1/2)*V) == layer(A, V)) << endl;
""",
            reason=(
                "The skip connection makes the network inhomogeneous in X, which breaks the scalings between layers; the "
                "scaling between A and V inside one layer does not touch X and survives."
            ),
            unaffected="Everything in Sections 2 and 3: this is an expectation about future work.",
            repaired=(
                "With skip connections generic fibers contain a torus of one scaling a layer; computed dimensions are sum over the "
                "layers of dim{rk A <= a_i} + d^2 - 1 (see results/dimension)."
            ),
        ),
    ),
    Claim(
        id="section-4-heads-permutation",
        number="Section 4, several heads: permutations are symmetries",
        paper=PAPER,
        statement="Permuting the heads of a layer does not change the function.",
        checked="a cyclic permutation of the heads at random integer weights and inputs",
        witnesses=("the forward pass over the integers",),
        sizes=_HEADS[:2],
        quick=_HEADS[:1],
        run=check_permutation,
    ),
    Claim(
        id="section-4-heads-only",
        number="Section 4, several heads: only permutations?",
        paper=PAPER,
        statement=(
            "If permutations were the only new symmetry of several heads, as for MLPs, H heads would have H times the dimension of "
            "one (or fill the span). The paper does not say so; this is what one may read into it."
        ),
        checked="the dimension of several heads against that many times the dimension of one",
        witnesses=ONE_LAYER_WITNESSES,
        sizes=_HEADS,
        quick=_HEADS[:2],
        run=check_only_permutations,
    ),
)
