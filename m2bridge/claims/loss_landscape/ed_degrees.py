"""ED degrees that the literature states, each reached by counting in the weights.

Draisma, Horobet, Ottaviani, Sturmfels, Thomas (arXiv:1309.0049): matrices of rank at most r in the Frobenius norm (Eckart-Young),
rational normal curves in general and in Bombieri coordinates. Ottaviani, Spaenlehauer, Sturmfels (arXiv:1311.2376): matrices of given
rank in a general metric.
"""

from __future__ import annotations

from dataclasses import replace
from math import comb

from m2bridge.claims.base import Claim, Context, Size, Verdict, by_ancestry, disagreement, fails, holds
from m2bridge.models import parse_spec
from m2bridge.questions.critical_points import critical_points
from m2bridge.results import Certainty

_DHOST, _OSS = "arXiv:1309.0049", "arXiv:1311.2376"


def _verdict(spec: str, printed: int, context: Context, **options: object) -> Verdict:
    answer = context.once(critical_points, parse_spec(spec), **options)
    if answer.agreement is False:
        return disagreement(answer.conflicts)
    computed = {"model": spec, "printed": printed, "ed_degree": answer.ed_degree}
    if answer.ed_degree != printed:
        return fails(
            Certainty.PROBABLE, computed, f"computed {answer.ed_degree}, printed {printed}", **computed
        )
    verdict = holds(Certainty.PROBABLE, f"{printed} critical points", **computed)
    return replace(verdict, witnesses=by_ancestry(answer.evidence, "regular"))


def check_eckart_young(size: Size, context: Context) -> Verdict:
    """Rank r in m x n matrices, m <= n, in the Frobenius norm: C(m, r)."""
    m, n, r = size["m"], size["n"], size["r"]
    return _verdict(f"linear(widths=[{n},{r},{m}])", comb(min(m, n), r), context, metric="bombieri")


def check_rank(size: Size, context: Context) -> Verdict:
    """The printed number of critical points for rank r and a general metric."""
    return _verdict(f"linear(widths=[{size['n']},{size['r']},{size['m']}])", size["printed"], context)


def check_rational_normal_curve(size: Size, context: Context) -> Verdict:
    """3n - 2 in general coordinates; n when the coordinates carry binomial weights, here as sqrt-free powers of a linear form."""
    n = size["n"]
    if size["metric"] == "bombieri":
        return _verdict(f"mlp(widths=[2,1,1],r={n})", n, context, metric="bombieri")
    powers = ";".join(f"s^{n - i}*t^{i}" for i in range(n + 1))
    return _verdict(f"map:s,t->{powers}", 3 * n - 2, context)


_WITNESSES = {
    "template": ("Groebner basis in a chart of the weights",),
    "program": ("the program's polynomials with another prime, gauge and elimination",),
    "formula": ("Chern classes, where their hypotheses hold",),
}
_CHECKED = "the printed number against a count over F_p with a second witness"
CLAIMS = (
    Claim(
        id="ed-eckart-young",
        number="Eckart-Young",
        paper=_DHOST,
        statement="The Frobenius distance to m x n matrices of rank at most r has C(min(m, n), r) critical points.",
        checked=_CHECKED,
        witnesses=_WITNESSES,
        sizes=(
            {"m": 2, "n": 2, "r": 1},
            {"m": 2, "n": 3, "r": 1},
            {"m": 3, "n": 3, "r": 1},
            {"m": 3, "n": 3, "r": 2},
        ),
        quick=({"m": 2, "n": 2, "r": 1},),
        run=check_eckart_young,
    ),
    Claim(
        id="ed-rank-general-metric",
        number="Table of generic ED degrees",
        paper=_OSS,
        statement="In a general metric: 6 for 2 x 2, 10 for 2 x 3 of rank one; 39 for 3 x 3 of rank one and of rank two.",
        checked=_CHECKED,
        witnesses=_WITNESSES,
        sizes=(
            {"m": 2, "n": 2, "r": 1, "printed": 6},
            {"m": 2, "n": 3, "r": 1, "printed": 10},
            {"m": 3, "n": 3, "r": 1, "printed": 39},
            {"m": 3, "n": 3, "r": 2, "printed": 39},
        ),
        quick=({"m": 2, "n": 2, "r": 1, "printed": 6},),
        run=check_rank,
    ),
    Claim(
        id="ed-rational-normal-curve",
        number="Rational normal curves",
        paper=_DHOST,
        statement="The cone over the rational normal curve of degree n has ED degree 3n - 2 in general and n in Bombieri coordinates.",
        checked=_CHECKED,
        witnesses=_WITNESSES,
        sizes=tuple({"n": n, "metric": metric} for n in (2, 3, 4) for metric in ("generic", "bombieri")),
        quick=({"n": 3, "metric": "generic"},),
        run=check_rational_normal_curve,
    ),
)
