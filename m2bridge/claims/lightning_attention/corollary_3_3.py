"""Corollary 3.3: the dimension of one layer."""

from __future__ import annotations

from m2bridge.claims.base import Claim, Context, Kind, Size, Verdict, sizes
from m2bridge.claims.dimensions import ABOUT, ONE_LAYER_WITNESSES, compared
from m2bridge.models import Lightning


def equation_7(d: int, dp: int, a: int) -> int:
    """The printed dimension."""
    return 2 * a * d + d * dp - a * a - 1 if a <= d else d * d + d * dp - 1


def check(size: Size, context: Context) -> Verdict:
    model = Lightning(**size)
    return compared(model, equation_7(model.d, model.dp, model.a), context)


_NAMES = "d dp a t"
_INSIDE = sizes(
    _NAMES,
    *((d, dp, a, 2) for d in (2, 3) for dp in (1, 2, 3) for a in range(1, d + 2) if dp >= 2 or a >= 2),
    (5, 1, 3, 2), (5, 3, 1, 2), (5, 3, 6, 2), (8, 4, 3, 2), (3, 2, 2, 3), (3, 2, 2, 5),
)  # fmt: skip
_OUTSIDE = sizes(_NAMES, (2, 1, 1, 2), (3, 1, 1, 2), (1, 1, 1, 2), (1, 2, 1, 2), (2, 2, 2, 1), (3, 2, 2, 1))

CLAIMS = (
    Claim(
        id="corollary-3.3",
        number="Corollary 3.3 (Equation 7)",
        statement=(
            "For t >= 2 and d, d' >= 2 or d, a >= 2, the neuromanifold of one layer has dimension 2ad + dd' - a^2 - 1 if a <= d "
            "and d^2 + dd' - 1 otherwise."
        ),
        checked="the printed number against a dimension proved from both sides",
        witnesses=ONE_LAYER_WITNESSES,
        about=ABOUT,
        sizes=_INSIDE,
        quick=sizes(_NAMES, (2, 1, 2, 2), (2, 2, 1, 2), (3, 2, 2, 2), (3, 2, 4, 2)),
        run=check,
    ),
    Claim(
        id="corollary-3.3-outside",
        number="Corollary 3.3, outside its hypotheses",
        statement="Equation 7 at a = d' = 1, at d = 1 and at t = 1, where the corollary says nothing: is it right there?",
        quote="Suppose that t >= 2 and that d, d' >= 2 or d, a >= 2",
        checked="the number of Equation 7 against a dimension bounded from both sides",
        witnesses=ONE_LAYER_WITNESSES,
        about=ABOUT,
        sizes=_OUTSIDE,
        quick=(_OUTSIDE[0], _OUTSIDE[4]),
        run=check,
        kind=Kind.PROBE,
    ),
)
