"""Corollary 3.8 and the parameter count after it: the dimension of deep networks."""

from __future__ import annotations

from m2bridge.claims.base import Claim, Context, Correction, Size, Verdict, fails, holds
from m2bridge.claims.lightning_attention import PAPER
from m2bridge.claims.lightning_attention.dimensions import WITNESSES, compared
from m2bridge.models import DeepLightning
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
    result = dimension(model, engine=False, seed=context.seed, limits=context.limits)
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


def _sizes(*cases: tuple[tuple[int, ...], tuple[int, ...], int]) -> tuple[Size, ...]:
    return tuple({"d": list(d), "a": list(a), "t": t} for d, a, t in cases)


_INSIDE = _sizes(
    ((2, 2, 2), (2, 2), 3), ((3, 3, 3), (2, 2), 3), ((3, 3, 3), (3, 3), 3), ((4, 3, 5), (2, 3), 3),
    ((3, 2, 2, 3), (2, 2, 2), 3), ((4, 4, 4, 4), (2, 3, 4), 3), ((8, 8, 8), (2, 2), 3), ((16, 16, 16), (4, 4), 3),
)  # fmt: skip

CLAIMS = (
    Claim(
        id="corollary-3.8",
        number="Corollary 3.8 (Equation 14)",
        paper=PAPER,
        statement=(
            "For t >= 3, all a_i >= 2, hidden widths equal to delta >= 2 and d_0, d_l >= delta, the dimension is given by "
            "Equation 14."
        ),
        checked="the printed number against a dimension proved from both sides",
        witnesses=WITNESSES,
        sizes=_INSIDE,
        quick=_INSIDE[:3],
        run=check,
    ),
    Claim(
        id="corollary-3.8-two-tokens",
        number="Corollary 3.8 at t = 2",
        paper=PAPER,
        statement="Equation 14 already at t = 2, where the corollary says nothing.",
        checked="the number of Equation 14 against a dimension proved from both sides",
        witnesses=WITNESSES,
        sizes=tuple({**size, "t": 2} for size in _INSIDE),
        quick=tuple({**size, "t": 2} for size in _INSIDE[:2]),
        run=check,
    ),
    Claim(
        id="corollary-3.8-outside",
        number="Equation 14 outside the hypotheses of Corollary 3.8",
        paper=PAPER,
        statement="Equation 14 for one token, for widening widths, and for a_1 = 1 followed by a_2 = 2.",
        checked="the number of Equation 14 against a dimension bounded from both sides",
        witnesses=WITNESSES,
        sizes=_sizes(((2, 2, 2), (2, 2), 1), ((2, 3, 2), (2, 2), 3), ((3, 3, 3), (1, 2), 3)),
        quick=_sizes(((2, 3, 2), (2, 2), 3)),
        run=check,
    ),
    Claim(
        id="parameter-count",
        number="Parameter count after Corollary 3.8",
        paper=PAPER,
        statement="With all widths and all a_i equal to d, a network of l layers has 3/2 d^2 l parameters.",
        checked="the number of entries of (Q, K, V), counted, and its ratio to the proved dimension",
        witnesses=("the weights themselves, counted", *WITNESSES),
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
