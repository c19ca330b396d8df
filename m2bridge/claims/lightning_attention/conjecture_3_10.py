"""Conjecture 3.10, its dimension part (Equation 16), and Figure 3."""

from __future__ import annotations

from m2bridge.claims.base import Claim, Context, Size, Verdict
from m2bridge.claims.lightning_attention import PAPER
from m2bridge.claims.lightning_attention.corollary_3_8 import equation_14
from m2bridge.claims.lightning_attention.dimensions import verdict_on
from m2bridge.models import Softmax
from m2bridge.questions.dimension import dimension


def equation_16(d: tuple[int, ...], a: tuple[int, ...]) -> int:
    """The printed dimension: Equation 14 and one more for each layer."""
    return equation_14(d, a) + len(a)


def check(size: Size, context: Context) -> Verdict:
    model = Softmax(**size)
    result = dimension(model, engine=False, seed=context.seed, limits=context.limits)
    return verdict_on(result, equation_16(model.d, model.a))


def _sizes(*cases: tuple[tuple[int, ...], tuple[int, ...], int]) -> tuple[Size, ...]:
    return tuple({"d": list(d), "a": list(a), "t": t} for d, a, t in cases)


_FIGURE_3 = _sizes(*(((delta,) * 3, (2, 2), 3) for delta in range(3, 11)))
_MORE = _sizes(((3, 3, 3, 3), (2, 2, 2), 3), ((4, 3, 5), (2, 3), 2), ((3, 3, 3), (3, 3), 4))
_WITNESSES = (
    "ball arithmetic: a minor of the forward pass's Jacobian is not zero (lower bound)",
    "rank of proved symmetries, or a gauge slice (upper bound)",
    "float64 singular values",
)

CLAIMS = (
    Claim(
        id="conjecture-3.10-dimension",
        number="Conjecture 3.10, dimension (Equation 16)",
        paper=PAPER,
        statement=(
            "For deep networks with softmax the dimension is given by Equation 16. (That generic fibers are single points is "
            "more, and is not checked here.)"
        ),
        checked="the printed number against a dimension proved from both sides",
        witnesses=_WITNESSES,
        sizes=_MORE,
        quick=_MORE[:1],
        run=check,
    ),
    Claim(
        id="figure-3",
        number="Figure 3",
        paper=PAPER,
        statement="For l = 2, t = 3, a = 2 and delta = 3, ..., 10 the estimated dimension equals Equation 16.",
        checked="each of the eight numbers against a dimension proved from both sides",
        witnesses=_WITNESSES,
        sizes=_FIGURE_3,
        quick=(_FIGURE_3[0], _FIGURE_3[-1]),
        run=check,
    ),
)
