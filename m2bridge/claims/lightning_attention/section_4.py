"""Section 4: what the paper expects of skip connections and of several heads. These are beliefs, so the rows are probes."""

from __future__ import annotations

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
from m2bridge.claims.dimensions import ABOUT, ONE_LAYER_WITNESSES
from m2bridge.models import DeepLightning
from m2bridge.models.symbolic import rational_variables, variable_array
from m2bridge.models.virtual import virtual_weights
from m2bridge.questions.dimension import dimension
from m2bridge.results import Certainty


def check_skip(size: Size, context: Context) -> Verdict:
    """One layer: (M, L) = (A, V), and (2 A, V / 2) gives the same function. More layers: the function does not depend on (M, L) alone."""
    d, t, layers = size["d"], size["t"], size["layers"]
    model = DeepLightning(d=(d,) * (layers + 1), t=t, skip=True, parametrization="attention")
    return _one_layer(model) if layers == 1 else _several_layers(model, context)


def _one_layer(model: DeepLightning) -> Verdict:
    d, t = model.d[0], model.t
    variables = rational_variables([f"w{i}" for i in range(2 * d * d)] + [f"x{i}" for i in range(d * t)])
    A, V, X = (variable_array(variables, shape) for shape in ((d, d), (d, d), (d, t)))
    plain = model.forward({"A1": A, "V1": V}, X)
    scaled = model.forward({"A1": A * 2, "V1": V / 2}, X)
    if all(a == b for a, b in zip(plain.ravel(), scaled.ravel(), strict=True)):
        witness = {"identity": "X + V X X^T A X is unchanged by A -> 2 A, V -> V / 2"}
        return fails(
            Certainty.PROVED,
            witness,
            "the scaling (A, V) -> (2 A, V / 2) survives: fibers are not single points",
        )
    return holds(Certainty.PROVED, "scaling changes the function")


def _several_layers(model: DeepLightning, context: Context) -> Verdict:
    """Two networks with the same (M, L), related by a change of basis between layers, at integer weights and one integer input."""
    d, layers = model.d[0], model.layers
    rng = np.random.default_rng([context.seed, 4])
    w = {name: rng.integers(-3, 4, shape).astype(object) for name, shape in model.parameters.items()}
    C, inverse = (np.eye(d, dtype=int).astype(object) for _ in range(2))
    C[0, -1], inverse[0, -1] = 1, -1  # a shear and its inverse
    moved = {**w, "V1": C @ w["V1"], "V2": w["V2"] @ inverse, "A2": inverse.T @ w["A2"] @ inverse}
    places = range(1, layers + 1)
    same = [virtual_weights([v[f"A{i}"] for i in places], [v[f"V{i}"] for i in places]) for v in (w, moved)]
    if not all(
        np.array_equal(a, b)
        for a, b in zip([*same[0][0], same[0][1]], [*same[1][0], same[1][1]], strict=True)
    ):
        return disagreement(["the change of basis moved the virtual weights"])
    X = rng.integers(-3, 4, model.input_shape).astype(object)
    if np.array_equal(model.forward(w, X), model.forward(moved, X)):
        return holds(Certainty.PROBABLE, "two networks with the same (M, L) agree at a random input")
    witness = {
        "weights": {n: v.tolist() for n, v in w.items()},
        "other": {n: v.tolist() for n, v in moved.items()},
    }
    return fails(
        Certainty.PROVED,
        witness,
        "two networks with the same (M, L) differ: the function is not one of (M, L)",
    )


def check_only_permutations(size: Size, context: Context) -> Verdict:
    """If heads could only be permuted, the dimension of several heads would be that of one head times their number."""
    d, dp, a, heads = (size[name] for name in ("d", "dp", "a", "heads"))
    one, many = (
        context.once(dimension, DeepLightning(d=(d, dp), a=(a,), t=2, heads=(n,))) for n in (1, heads)
    )
    span = many.span_dim or heads * one.image_dim
    naive = min(heads * one.image_dim, span)
    computed = {"one_head": one.image_dim, "all_heads": many.image_dim, "if_only_permuted": naive}
    if many.image_dim == naive and many.certainty is Certainty.PROVED:
        return holds(Certainty.PROVED, f"{heads} heads have dimension {naive}", **computed)
    if many.upper_bound < naive:
        reason = f"{heads} heads have dimension at most {many.upper_bound} < {naive}: there are continuous symmetries between heads"
        return fails(Certainty.PROVED, computed, reason, **computed)
    return out_of_reach(f"computed {many.image_dim}, bounds {many.lower_bound} to {many.upper_bound}")


_SKIP = sizes("d t layers", (2, 2, 1), (3, 2, 1), (2, 3, 1), (2, 2, 2), (3, 3, 3))
_HEADS = sizes("d dp a heads", (2, 2, 2, 2), (3, 2, 1, 2), (3, 2, 2, 2), (3, 3, 3, 2), (3, 3, 3, 3))

CLAIMS = (
    Claim(
        id="section-4-skip",
        number="Section 4, skip connections",
        statement=(
            "With skip connections the parametrization by (M, L) is expected to be generically one-to-one. For one layer (M, L) = (A, V), and "
            "the scaling survives; for more layers the function is none of (M, L), so the expectation has no meaning as it is put."
        ),
        quote="We believe that in this case the parameterization via (M, L) is generically one-to-one",
        checked="one layer: an identity of polynomials; more layers: two networks with the same (M, L), evaluated at an integer input",
        witnesses={
            "program": ("the forward pass over polynomials and integers",),
            "construction": ("a change of basis between layers",),
        },
        sizes=_SKIP,
        quick=(_SKIP[0], _SKIP[3]),
        run=check_skip,
        kind=Kind.PROBE,
        correction=Correction(
            smallest="d = 1, t = 1, one layer: x + v a x^3 depends on the product v a alone",
            witness="A -> 2 A, V -> V / 2 leaves V X X^T A X, and so X + V X X^T A X, unchanged.",
            macaulay2="""\
R = QQ[a_0..a_3,v_0..v_3,x_0..x_3]; A = genericMatrix(R,a_0,2,2); V = genericMatrix(R,v_0,2,2); X = genericMatrix(R,x_0,2,2);
layer = (A,V) -> X + V*X*transpose X*A*X;
<< (layer(2*A, (1/2)*V) == layer(A, V)) << endl;
""",
            reason=(
                "The skip connection makes the network inhomogeneous in X, which breaks the scalings and changes of basis between layers; the "
                "scaling between A and V inside one layer does not touch X and survives."
            ),
            unaffected="Everything in Sections 2 and 3: this is an expectation about future work.",
            repaired=(
                "With skip connections generic fibers in (A, V) contain a torus of one scaling a layer; computed dimensions are sum over the "
                "layers of dim{rk A <= a_i} + d^2 - 1 (see results/dimension)."
            ),
        ),
    ),
    Claim(
        id="section-4-heads-only",
        number="Section 4, several heads: only permutations?",
        statement=(
            "If permutations were the only new symmetry of several heads, as for MLPs, H heads would have H times the dimension of "
            "one (or fill the span). The paper does not say so; this is what one may read into it."
        ),
        quote="introduces new symmetries due to permutation of heads",
        checked="the dimension of several heads against that many times the dimension of one",
        witnesses=ONE_LAYER_WITNESSES,
        about=ABOUT,
        sizes=_HEADS,
        quick=(_HEADS[0], _HEADS[3]),
        run=check_only_permutations,
        kind=Kind.PROBE,
    ),
)
