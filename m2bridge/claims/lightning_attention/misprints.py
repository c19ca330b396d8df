"""Misprints: formulas that are false as printed, each with the reading that is meant. Both are evaluated exactly at one size."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from m2bridge.claims.base import Claim, Context, Correction, Size, Verdict, disagreement, fails, holds
from m2bridge.claims.lightning_attention.theorem_3_9 import KERNELS, rational, values
from m2bridge.linear.modular import rank_over_q
from m2bridge.models import DeepLightning, Lightning, Softmax
from m2bridge.models.symbolic import rational_variables
from m2bridge.results import Certainty

Truths = tuple[bool, bool]
"""Whether the formula holds as printed, and as it is meant."""


def _drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng([seed, 99, *shape]).integers(1, 6, shape).astype(object)


def equation_5(seed: int) -> Truths:
    """The number of weights of d = (2, 3, 4), a = (1, 2)."""
    d, a = (2, 3, 4), (1, 2)
    counted = sum(
        w.size for w in DeepLightning(d=d, a=a, t=2).draw_weights(np.random.default_rng(seed), 101).values()
    )
    layers = range(1, len(d))
    printed = sum(d[i] * (2 * a[i - 1] + d[i - 1]) for i in layers)
    meant = sum(d[i - 1] * (2 * a[i - 1] + d[i]) for i in layers)
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
    A, V, X = (rational(_drawn(seed + n, *shape)) for n, shape in enumerate(((2, 2), (1, 2), (2, 2))))
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
    form = x * x - y * y
    factors = (x - y) * (x + y) == form
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
_SIZES: tuple[Size, ...] = tuple({"place": place} for place in _PLACES)


def check(size: Size, context: Context) -> Verdict:
    run, meant = _PLACES[size["place"]]
    as_printed, as_meant = run(context.seed)
    if not as_meant:
        return disagreement([f"{size['place']}: our reading is false too: {meant}"])
    if as_printed:
        return holds(Certainty.PROVED, "right as printed")
    return fails(Certainty.PROVED, {"place": size["place"], "read": meant}, meant)


CLAIMS = (
    Claim(
        id="misprints",
        number="Misprints",
        statement=(
            'Formulas of the paper, as printed. (No rows, since there is nothing to compute: "Equation 11" after Equation 26 means '
            'Equation 10; in the proof of Corollary A.6, "non-real" means not proportional to a real form; Equation 15 pairs '
            "x_i^T A x_j where Equation 1 has x_j^T A x_i, which is another convention.)"
        ),
        checked="both sides at one size, as printed and as meant; the remark says how to read it",
        witnesses={
            "program": ("the forward pass, and its weights counted",),
            "formula": ("the printed formula, and as it is meant",),
        },
        sizes=_SIZES,
        quick=_SIZES,
        run=check,
        correction=Correction(
            smallest="as in the rows",
            witness="Equation 34 at t = 3: the tokens are x_1, x_2, x_2, and the sum over j has two terms with x_2.",
            macaulay2='t = 3; << #select({1,2,2}, i -> i == 2) << " terms with x_2, printed 1" << endl;\n',
            reason="Slips of indices and factors.",
            unaffected="All statements.",
            repaired="The remarks of the rows.",
        ),
    ),
)
