"""Conjecture 3.10 as printed, its theorem for t >= 2, its dimension (Equation 16), Figure 3, and skew-symmetric weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.claims.base import Claim, Context, Correction, Kind, Size, Verdict, fails, holds, sizes
from m2bridge.claims.dimensions import ABOUT, verdict_on
from m2bridge.claims.expansion import NotDeterminedError, drawn_inputs, germ, recovered, virtual_germ
from m2bridge.claims.lightning_attention.corollary_3_8 import equation_14
from m2bridge.models import Softmax
from m2bridge.models.virtual import virtual_weights
from m2bridge.questions.dimension import dimension
from m2bridge.results import Certainty


def equation_16(d: tuple[int, ...], a: tuple[int, ...]) -> int:
    """The printed dimension: Equation 14 and one more for each layer."""
    return equation_14(d, a) + len(a)


def check_dimension(size: Size, context: Context) -> Verdict:
    model = Softmax(**size)
    return verdict_on(context.once(dimension, model, engine=False), equation_16(model.d, model.a))


def _drawn(rng: np.random.Generator, *shape: int) -> Any:
    found = rng.integers(-3, 4, shape).astype(object)
    return found if found.any() else found + 1


def check_singleton(size: Size, context: Context) -> Verdict:
    """(M, L) is recovered from the Taylor coefficients of the function at 0, and compared with that of the weights.

    With one token the function does not change with M at all, as two networks show.
    """
    d, t, kernel = size["d"], size["t"], size["S"]
    layers = len(d) - 1
    model = Softmax(d=tuple(d), a=tuple(d[:-1]), t=t, parametrization="attention")
    rng = np.random.default_rng([context.seed, 310, t, *d])
    weights = {name: _drawn(rng, *shape) for name, shape in model.parameters.items()}
    places = range(1, layers + 1)
    M, L = virtual_weights([weights[f"A{i}"] for i in places], [weights[f"V{i}"] for i in places])
    function = germ(model, weights, kernel)
    try:
        found, last = recovered(function, d=d[0], t=t, layers=layers, kernel=kernel, seed=context.seed)
    except NotDeterminedError as error:
        x, U = _drawn(rng, d[0]), drawn_inputs(rng, d[0], t)
        other = germ(model, {**weights, "A1": weights["A1"] + 1}, kernel)
        if np.array_equal(function(x, U, 9), other(x, U, 9)):
            witness = {"A1": weights["A1"].tolist(), "other": (weights["A1"] + 1).tolist()}
            return fails(Certainty.PROVED, witness, "two values of M_1 give the same function")
        return fails(Certainty.PROBABLE, {"weights": {n: w.tolist() for n, w in weights.items()}}, str(error))
    if np.array_equal(last, L) and all(np.array_equal(a, b) for a, b in zip(found, M, strict=True)):
        return holds(
            Certainty.PROVED,
            "(M, L) recovered exactly from Taylor coefficients of the function",
            orders=layers,
        )
    return fails(Certainty.PROVED, {"M": [m.tolist() for m in M]}, "the recovery gives other virtual weights")


def check_skew(size: Size, context: Context) -> Verdict:
    """Whether M_2 is still determined when M_1 is skew."""
    d, t, kernel = size["d"], size["t"], size["S"]
    rng = np.random.default_rng([context.seed, 311, d, t])
    B = _drawn(rng, d, d)
    M1 = B - B.T
    M1[0, 1], M1[1, 0] = M1[0, 1] or 1, M1[1, 0] or -1
    M, L = [M1, _drawn(rng, d, d)], _drawn(rng, d, d)
    try:
        found, _ = recovered(
            virtual_germ(M, L, t, kernel), d=d, t=t, layers=2, kernel=kernel, seed=context.seed
        )
        if np.array_equal(found[1], M[1]):
            return holds(Certainty.PROVED, "M_2 is recovered exactly behind a skew M_1")
    except NotDeterminedError:
        pass
    x, U, order = _drawn(rng, d), drawn_inputs(rng, d, t), 25
    one, other = (virtual_germ([M1, m], L, t, kernel)(x, U, order) for m in (M[1], M[1] + 1))
    if np.array_equal(one, other):
        witness = {"M1": M1.tolist(), "M2": M[1].tolist(), "M2'": (M[1] + 1).tolist()}
        return fails(
            Certainty.PROVED,
            witness,
            "both tokens become equal behind a skew M_1, and M_2 is not seen (docs/conjecture-3.10.md)",
        )
    return holds(Certainty.PROBABLE, f"two M_2 differ in a Taylor coefficient of order <= {order}")


_FIGURE_3 = sizes("d a t", *(((delta,) * 3, (2, 2), 3) for delta in range(3, 11)))
_MORE = sizes("d a t",
    ((3, 3, 3, 3), (2, 2, 2), 3), ((4, 3, 5), (2, 3), 2), ((3, 3, 3), (3, 3), 4), ((64,) * 5, (8,) * 4, 8)
)  # fmt: skip
_DEEP = sizes("d t S",
    ((3, 2), 2, "exp(x)"), ((2, 2, 2), 2, "exp(x)"), ((2, 2, 2, 2), 2, "exp(x)"), ((2, 2, 2), 2, "1/(1-x)"),
    ((3, 2, 3), 3, "sqrt(1+4x)"), ((2, 3, 2, 1), 2, "exp(-x/3)"), ((3, 2, 2, 3), 4, "1/(1-x)"), ((1, 3, 1), 2, "exp(x)"), ((2, 2, 2, 2, 2), 2, "exp(x)"),
)  # fmt: skip
_ONE_TOKEN = sizes("d t S", ((2, 2, 2), 1, "exp(x)"))
_SKEW = sizes(
    "d t S", (2, 2, "exp(x)"), (3, 2, "exp(x)"), (2, 3, "exp(x)"), (3, 3, "exp(x)"), (2, 2, "1/(1-x)")
)
_BY_SERIES = {
    "program": ("the forward pass over power series over QQ",),
    "construction": ("the recovery of (M, L) from coefficients, which sees no weights",),
    "formula": ("the first term of each M_i (docs/conjecture-3.10.md)",),
}
_WITNESSES = {
    "program": (
        "ball arithmetic: a minor of the forward pass's Jacobian is not zero",
        "float64 singular values",
    ),
    "construction": ("rank of proved symmetries, or a gauge slice", "rank of (Q, K, V) -> (M, L)"),
    "formula": ("virtual weights counted by flags",),
}

CLAIMS = (
    Claim(
        id="conjecture-3.10",
        number="Conjecture 3.10",
        statement="For deep networks of normalised attention, generic fibers of the parametrization by (M, L) are single points.",
        quote="the generic fibers of the parametrization via (M, L) are singletons",
        checked=(
            "(M, L) recovered exactly from the function; the conjecture has no hypothesis on t, and is false for one token"
        ),
        witnesses=_BY_SERIES,
        sizes=_DEEP + _ONE_TOKEN,
        quick=_DEEP[:3] + _ONE_TOKEN,
        run=check_singleton,
        correction=Correction(
            smallest="t = 1, any widths and depth",
            witness="With one token every attention weight is S(x^T A x) / S(x^T A x) = 1, and the network is x -> L x whatever M is.",
            macaulay2="R = frac(QQ[s,v,x]); << (s/s*v*x == v*x) << endl;  -- s stands for S(x^T A x)\n",
            reason="Normalisation leaves nothing of a single attention weight.",
            unaffected="Theorem 3.9, which asks for t >= 2, and Figure 3, which has t = 3.",
            repaired=(
                "For t >= 2 and S that is C^2 near 0 with S'(0) != 0 it is a theorem, at every depth: the fiber of (M, L) is a single point when "
                "L != 0 and M_1, ..., M_(l-1) are not skew-symmetric. Proof in docs/conjecture-3.10.md."
            ),
            claim="conjecture-3.10-repaired",
        ),
    ),
    Claim(
        id="conjecture-3.10-repaired",
        number="Conjecture 3.10 for t >= 2, a theorem",
        statement=(
            "For t >= 2, S twice continuously differentiable near 0 with S'(0) != 0, L != 0 and M_1, ..., M_(l-1) not skew-symmetric, the fiber "
            "of (M, L) is a single point. (The proof is in docs/conjecture-3.10.md; the rows check its expansion at random weights.)"
        ),
        checked="(M, L) recovered exactly from the terms of order 1, 3, 7, 19, 55 of the function, and that nothing of M_i is seen before",
        witnesses=_BY_SERIES,
        sizes=_DEEP,
        quick=_DEEP[:3],
        run=check_singleton,
        kind=Kind.REPAIRED,
    ),
    Claim(
        id="conjecture-3.10-skew",
        number="Conjecture 3.10 behind a skew-symmetric M_1",
        statement=(
            "Is M_2 still determined when M_1 is skew-symmetric? Not for two tokens and S(x) S(-x) = 1, such as the exponential function: both "
            "tokens become equal. For three tokens it is."
        ),
        quote="generic fibers",
        checked="whether M_2 can be recovered, or two M_2 give the same function",
        witnesses=_BY_SERIES,
        sizes=_SKEW,
        quick=(_SKEW[0], _SKEW[2]),
        run=check_skew,
        kind=Kind.PROBE,
    ),
    Claim(
        id="conjecture-3.10-dimension",
        number="Equation 16",
        statement="For deep networks with softmax in bottleneck architectures the dimension is given by Equation 16.",
        checked="the printed number against a dimension proved from both sides",
        witnesses=_WITNESSES,
        about=ABOUT,
        sizes=_MORE,
        quick=_MORE[1:2],
        run=check_dimension,
    ),
    Claim(
        id="figure-3",
        number="Figure 3",
        statement="For l = 2, t = 3, a = 2 and delta = 3, ..., 10 the estimated dimension equals Equation 16.",
        quote="The two values coincide for all delta",
        checked="each of the eight numbers against a dimension proved from both sides",
        witnesses=_WITNESSES,
        about=ABOUT,
        sizes=_FIGURE_3,
        quick=(_FIGURE_3[0], _FIGURE_3[-1]),
        run=check_dimension,
    ),
)
