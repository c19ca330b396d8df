"""Misprints: formulas that are false as printed, each with the reading that is meant, both evaluated exactly at one size; and what
Section 4 expects of skip connections, a belief, so that its rows are probes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

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
    sizes,
)
from m2bridge.claims.lightning_attention.normalised import KERNELS, values
from m2bridge.linear.modular import rank_over_q
from m2bridge.models import DeepLightning, Lightning, Softmax
from m2bridge.models.symbolic import rational_variables, variable_array
from m2bridge.models.virtual import virtual_weights
from m2bridge.programs.arithmetics import elementwise
from m2bridge.results import Certainty

Truths = tuple[bool, bool]
"""Whether the formula holds as printed, and as it is meant."""


def _drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng([seed, 99, *shape]).integers(1, 6, shape).astype(object)


def equation_5(seed: int) -> Truths:
    """The number of weights of d = (2, 3, 4), a = (1, 2)."""
    d, a = (2, 3, 4), (1, 2)
    weights = DeepLightning(d=d, a=a, t=2).draw_weights(np.random.default_rng(seed), 101)
    counted = sum(w.size for w in weights.values())
    layers = list(zip(d[:-1], d[1:], a, strict=True))
    printed = sum(after * (2 * rank + before) for before, after, rank in layers)
    meant = sum(before * (2 * rank + after) for before, after, rank in layers)
    return counted == printed, counted == meant


def equation_12(seed: int) -> Truths:
    """One layer, where l~ = 1: the last factor with x_1, as printed, and with x_(k_1), in both sums over k_1; d = 2, t = 2."""
    A, V, X = _drawn(seed, 2, 2), _drawn(seed, 3, 2), _drawn(seed + 1, 2, 2)
    network = Lightning(d=2, dp=3, t=2, parametrization="attention").forward({"A": A, "V": V}, X)
    x = list(X.T)
    sides = []
    for last in ((0, 0), (0, 1)):  # the token in the last factor, for k_1 = 0 and 1
        columns = [sum((V @ x[k1]) * (x[last[k1]] @ A @ x[k]) for k1 in range(2)) for k in range(2)]
        sides.append(np.array_equal(np.array(columns).T, network))
    return sides[0], sides[1]


def equation_34(seed: int) -> Truths:
    """Three tokens x_1, x_2, x_2: the first output, with the numerator as printed and with t - 1 copies of x_2; S(x) = 1 + x, x >= 0."""
    shapes = enumerate(((2, 2), (1, 2), (2, 2)))
    A, V, X = (elementwise(Fraction, _drawn(seed + n, *shape)) for n, shape in shapes)
    kernel = KERNELS["1+x, 1/(1-x)"]
    model = Softmax(d=(2, 1), t=3, parametrization="attention")
    x1, x2 = X.T
    network = values(model, {"A1": A, "V1": V}, kernel)(np.column_stack([x1, x2, x2]))[:, 0]
    own, other = kernel.forward(x1 @ A @ x1), kernel.forward(x1 @ A @ x2)
    sides = [(own * (V @ x1) + copies * other * (V @ x2)) / (own + 2 * other) for copies in (1, 2)]
    return np.array_equal(sides[0], network), np.array_equal(sides[1], network)


def corollary_3_3_proof(_: int) -> Truths:
    """The dimension of {rk A <= a} at d = 3, a = 2, d' = 2, as the rank of (K, Q) -> K^T Q at one point and its largest value a(2d - a)."""
    d, dp, a = 3, 2, 2
    K, Q = _drawn(1, a, d), _drawn(2, a, d)
    moves = []
    for i, j in product(range(a), range(d)):
        e = np.zeros((a, d), dtype=object)
        e[i, j] = 1
        moves += [(K.T @ e).ravel(), (e.T @ Q).ravel()]
    rank = rank_over_q(np.array(moves))
    return rank == 2 * a * d + d * dp - a * a, rank == 2 * a * d - a * a


def irreducible_quadrics(_: int) -> Truths:
    """'rk A > 1 implies that x^T A x is irreducible', in the proofs of 3.2 and 3.7, for A = diag(1, -1); meant: if its symmetric part has rank > 2."""
    x, y = rational_variables(["x", "y"])
    factors = (x - y) * (x + y) == x * x - y * y
    return not factors, factors  # rank 2, so the meant condition is silent and the form factors


_PLACES: dict[str, tuple[Callable[[int], Truths], str]] = {
    "Definition 2 and Equation 5": (equation_5, "Q_i, K_i are a_i x d_(i-1), and there are sum d_(i-1) (2 a_i + d_i) weights"),
    "Equation 12": (equation_12, "the last factor is x_(k_l~)^T A_1 x_k, not x_l~^T A_1 x_k"),
    "Equation 34": (equation_34, "S(x_1^T A x_2) V x_2 has the factor t - 1; Theorem 3.9 stays true"),
    "Corollary 3.3, proof": (corollary_3_3_proof, "2ad + dd' - a^2 is the dimension of the space of (A, V), not of {rk A <= a}"),
    "Appendix A.2 and A.6, proofs": (
        irreducible_quadrics, "a quadratic form of rank 2 may factor, as x^2 - y^2 does; Theorem 3.2 is true all the same"
    ),
}  # fmt: skip
_ROWS = sizes("place", *((place,) for place in _PLACES))


def check_misprint(size: Size, context: Context) -> Verdict:
    run, meant = _PLACES[size["place"]]
    as_printed, as_meant = run(context.seed)
    if not as_meant:
        return disagreement([f"{size['place']}: our reading is false too: {meant}"])
    if as_printed:
        return holds(Certainty.PROVED, "right as printed")
    return fails(Certainty.PROVED, {"place": size["place"], "read": meant}, meant)


# -- skip connections ------------------------------------------------------------------------------------------------------------


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
    if any(a != b for a, b in zip(plain.ravel(), scaled.ravel(), strict=True)):
        return holds(Certainty.PROVED, "scaling changes the function")
    witness = {"identity": "X + V X X^T A X is unchanged by A -> 2 A, V -> V / 2"}
    reason = "the scaling (A, V) -> (2 A, V / 2) survives: fibers are not single points"
    return fails(Certainty.PROVED, witness, reason)


def _several_layers(model: DeepLightning, context: Context) -> Verdict:
    """Two networks with the same (M, L), related by a change of basis between layers, at integer weights and one integer input."""
    rng = np.random.default_rng([context.seed, 4])
    w = {name: rng.integers(-3, 4, shape).astype(object) for name, shape in model.parameters.items()}
    C, inverse = (np.eye(model.d[0], dtype=int).astype(object) for _ in range(2))
    C[0, -1], inverse[0, -1] = 1, -1  # a shear and its inverse
    moved = {**w, "V1": C @ w["V1"], "V2": w["V2"] @ inverse, "A2": inverse.T @ w["A2"] @ inverse}
    places = range(1, model.layers + 1)
    (M, L), (N, K) = (
        virtual_weights([v[f"A{i}"] for i in places], [v[f"V{i}"] for i in places]) for v in (w, moved)
    )
    if not all(np.array_equal(a, b) for a, b in zip([*M, L], [*N, K], strict=True)):
        return disagreement(["the change of basis moved the virtual weights"])
    X = rng.integers(-3, 4, model.input_shape).astype(object)
    if np.array_equal(model.forward(w, X), model.forward(moved, X)):
        return holds(Certainty.PROBABLE, "two networks with the same (M, L) agree at a random input")
    both = {"weights": w, "other": moved}
    witness = {name: {n: v.tolist() for n, v in weights.items()} for name, weights in both.items()}
    reason = "two networks with the same (M, L) differ: the function is not one of (M, L)"
    return fails(Certainty.PROVED, witness, reason)


_SKIP = sizes("d t layers", (2, 2, 1), (3, 2, 1), (2, 3, 1), (2, 2, 2), (3, 3, 3))
CLAIMS = (
    Claim(
        id="section-4-skip",
        number="Section 4, skip connections",
        statement="With skip connections the parametrization by (M, L) is expected to be generically one-to-one. For one layer (M, L) = (A, V), and "
        "the scaling survives; for more layers the function is none of (M, L), so the expectation has no meaning as it is put.",
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
            repaired="With skip connections generic fibers in (A, V) contain a torus of one scaling a layer; computed dimensions are sum over the "
            "layers of dim{rk A <= a_i} + d^2 - 1 (see results/dimension).",
        ),
    ),
    Claim(
        id="misprints",
        number="Misprints",
        statement='Formulas of the paper, as printed. (No rows, since there is nothing to compute: "Equation 11" after Equation 26 means '
        'Equation 10; in the proof of Corollary A.6, "non-real" means not proportional to a real form; Equation 15 pairs '
        "x_i^T A x_j where Equation 1 has x_j^T A x_i, which is another convention.)",
        checked="both sides at one size, as printed and as meant; the remark says how to read it",
        witnesses={
            "program": ("the forward pass, and its weights counted",), "formula": ("the printed formula, and as it is meant",),
        },
        sizes=_ROWS,
        quick=_ROWS,
        run=check_misprint,
        correction=Correction(
            smallest="as in the rows",
            witness="Equation 34 at t = 3: the tokens are x_1, x_2, x_2, and the sum over j has two terms with x_2.",
            macaulay2='t = 3; << #select({1,2,2}, i -> i == 2) << " terms with x_2, printed 1" << endl;\n',
            reason="Slips of indices and factors.",
            unaffected="All statements.",
            repaired="The remarks of the rows.",
        ),
    ),
)  # fmt: skip
