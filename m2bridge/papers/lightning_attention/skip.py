"""Skip connections: an expectation of Section 4, which the authors state as a belief, so that its rows are probes."""

from __future__ import annotations

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.families import Attention, DeepLightning
from m2bridge.families.symbolic import rational_variables, variable_array
from m2bridge.families.virtual import virtual_weights
from m2bridge.papers.base import CheckContext, Claim, Correction, Kind, Size, Verdict, sizes


def check_skip(size: Size, context: CheckContext) -> Verdict:
    """Check whether the function determines (M, L) up to finitely many values, and depends on (M, L) only.

    For one layer (M, L) = (A, V), and (2 A, V / 2) gives the same function. For more layers the function does not depend on
    (M, L) alone.
    """
    d, t, layers = size["d"], size["t"], size["layers"]
    model = DeepLightning(d=(d,) * (layers + 1), t=t, skip=True, parametrization="attention")
    return _one_layer(model) if layers == 1 else _several_layers(model, context)


def _one_layer(model: Attention) -> Verdict:
    d, t = model.d, model.t
    variables = rational_variables([f"w{i}" for i in range(2 * d * d)] + [f"x{i}" for i in range(d * t)])
    A, V, X = (variable_array(variables, shape) for shape in ((d, d), (d, d), (d, t)))
    plain = model.forward({"A1": A, "V1": V}, X)
    scaled = model.forward({"A1": A * 2, "V1": V / 2}, X)
    if any(a != b for a, b in zip(plain.ravel(), scaled.ravel(), strict=True)):
        return Verdict.holds(Certainty.PROVED, "scaling changes the function")
    witness = {"identity": "X + V X X^T A X is unchanged by A -> 2 A, V -> V / 2"}
    reason = "the scaling (A, V) -> (2 A, V / 2) survives: fibers are not single points"
    return Verdict.fails(Certainty.PROVED, witness, reason)


def _several_layers(model: Attention, context: CheckContext) -> Verdict:
    """Compare two networks with the same (M, L), related by a change of basis between layers, at one integer input."""
    rng = np.random.default_rng([context.seed, 4])
    w = {name: rng.integers(-3, 4, shape).astype(object) for name, shape in model.parameters.items()}
    C, inverse = (np.eye(model.d, dtype=int).astype(object) for _ in range(2))
    C[0, -1], inverse[0, -1] = 1, -1  # a shear and its inverse
    moved = {**w, "V1": C @ w["V1"], "V2": w["V2"] @ inverse, "A2": inverse.T @ w["A2"] @ inverse}
    layers = range(1, model.layers + 1)
    (M, L), (N, K) = (
        virtual_weights([v[f"A{i}"] for i in layers], [v[f"V{i}"] for i in layers]) for v in (w, moved)
    )
    if not all(np.array_equal(a, b) for a, b in zip([*M, L], [*N, K], strict=True)):
        return Verdict.disagreement(["the change of basis moved the virtual weights"])
    X = rng.integers(-3, 4, model.input_shape).astype(object)
    if np.array_equal(model.forward(w, X), model.forward(moved, X)):
        return Verdict.holds(Certainty.PROBABLE, "two networks with the same (M, L) agree at a random input")
    networks = {"weights": w, "other": moved}
    witness = {name: {n: v.tolist() for n, v in weights.items()} for name, weights in networks.items()}
    reason = "two networks with the same (M, L) differ: the network is not a function of (M, L)"
    return Verdict.fails(Certainty.PROVED, witness, reason)


_SKIP = sizes("d t layers", (2, 2, 1), (3, 2, 1), (2, 3, 1), (2, 2, 2), (3, 3, 3))
CLAIMS = (
    Claim(
        id="section-4-skip",
        number="Section 4, skip connections",
        statement="With skip connections the parametrization by (M, L) is expected to be generically one-to-one. For one layer (M, L) = (A, V), and "
        "the scaling survives; for more layers the network is not a function of (M, L), so the expectation is not well-defined.",
        quote="We believe that in this case the parameterization via (M, L) is generically one-to-one",
        checked="one layer: an identity of polynomials; more layers: two networks with the same (M, L), evaluated at an integer input",
        witnesses={
            "program": ("the forward pass over polynomials and integers",), "construction": ("a change of basis between layers",),
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
            reason="The skip connection makes the network inhomogeneous in X, which breaks the scalings and changes of basis between layers; the "
            "scaling between A and V inside one layer does not touch X and survives.",
            unaffected="Everything in Sections 2 and 3: this is an expectation about future work.",
            repaired="With skip connections generic fibers in (A, V) contain a torus of one scaling per layer; computed dimensions are sum over the "
            "layers of dim{rk A <= a_i} + d^2 - 1 (see results/dimension).",
        ),
    ),
)  # fmt: skip
