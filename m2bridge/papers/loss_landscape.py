"""Critical points of losses: the comments of giovanni-marchetti/LinearIndepCode, the public code of *Linear Independence of Polynomial
Compositions and Identifiability of Deep Neural Networks* (arXiv:2608.27113), and ED degrees that the literature states.

The public scripts are about M(2,1,2), one layer of attention with d = 2 and one output row. A set of critical points is written as
{zero loss, affine dimension, degree}; dimension 0: so many points. The scripts work with the one equation of the closure over QQ; here
the same sets are counted in the weights over F_p and from a second prime.

ED degrees: Draisma, Horobet, Ottaviani, Sturmfels, Thomas (arXiv:1309.0049) for matrices of rank at most r in the Frobenius norm
(Eckart-Young) and rational normal curves in general and in Bombieri coordinates; Ottaviani, Spaenlehauer, Sturmfels (arXiv:1311.2376)
for matrices of given rank in a general metric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import comb
from typing import Any

from m2bridge.certainty import Certainty
from m2bridge.families import Lightning, parse_spec
from m2bridge.papers.base import Check, CheckContext, Claim, Kind, Size, Verdict, by_ancestry, sizes
from m2bridge.questions.critical_points import CriticalPoints, StratumPoints, critical_points

PAPER = "code of arXiv:2608.27113 (giovanni-marchetti/LinearIndepCode); ED degrees of arXiv:1309.0049 and arXiv:1311.2376"
_WITNESSES = {
    "template": ("Groebner basis in a chart of the weights",),
    "program": ("the program's polynomials with another prime, gauge and elimination",),
    "formula": ("Chern classes, where their hypotheses hold",),
}


def _verdict(
    truth: bool, reason: str, otherwise: str, answer: Any = None, *about: str, **computed: Any
) -> Verdict:
    """Return a verdict with the certainty of a count over F_p; if it holds, with the witnesses of the quantities `about`."""
    verdict = Verdict.decided(truth, Certainty.PROBABLE, reason, otherwise, **computed)
    return replace(verdict, witnesses=by_ancestry(answer.evidence, *about)) if truth and about else verdict


# -- the public code -----------------------------------------------------------------------------------------------------------

_REGULAR = {
    ("kernel", 0): ((False, 0, 14),),
    ("kernel", 1): ((True, 0, 4), (False, 0, 10)),
    ("kernel", 2): ((True, 1, 4), (False, 0, 4)),
    ("kernel", 3): ((True, 2, 4),),
    ("kernel", 4): ((True, 3, 4),),
    ("kernel", 5): ((True, 4, 4),),
    ("samples", 1): ((True, 3, 4),),
    ("samples", 2): ((True, 1, 2), (False, 1, 2)),
    ("samples", 3): ((False, 0, 14),),
}
_SINGULAR = {
    ("kernel", 0): ((False, 0, 10),),
    ("kernel", 1): ((False, 0, 10),),
    ("kernel", 2): ((True, 0, 3), (False, 0, 7)),
    ("kernel", 3): ((True, 1, 3), (False, 0, 3)),
    ("kernel", 4): ((True, 2, 3),),
    ("kernel", 5): ((True, 3, 3),),
    ("samples", 1): ((True, 2, 1), (False, 2, 1)),
    ("samples", 2): ((False, 1, 6),),
    ("samples", 3): ((False, 0, 10),),
}
"""The comments of the scripts, keyed by the dimension of the quadric's kernel or the number of samples."""


def kinds_of(answer: CriticalPoints | StratumPoints) -> list[list[Any]]:
    """Return the critical points of an answer by zero loss, dimension and degree."""
    families = answer.positive_dimensional if isinstance(answer, CriticalPoints) else answer.families
    if families:
        return [[f.zero_loss, f.dim, f.degree] for f in families]
    count = answer.regular if isinstance(answer, CriticalPoints) else answer.count
    zero = answer.zero_loss or 0
    return [[z, 0, n] for z, n in ((True, zero), (False, (count or 0) - zero)) if n]


def _answered(size: Size, context: CheckContext) -> CriticalPoints:
    return context.once(critical_points, Lightning(d=2, dp=1), **dict(size))


def _stratum(answer: CriticalPoints) -> StratumPoints:
    return (answer.singular or ())[0]


def check_table(table: Mapping[Any, Sequence[Sequence[Any]]], *about: str) -> Check:
    """Return a check of critical points against a script's comment: the regular ones, or those on the singular locus."""

    def check(size: Size, context: CheckContext) -> Verdict:
        answer = _answered(size, context)
        kinds = kinds_of(_stratum(answer) if about == ("singular",) else answer)
        printed = [list(row) for row in table[next(iter(size.items()))]]
        reasons = ("the same dimensions and degrees", "the sets differ")
        return _verdict(kinds == printed, *reasons, answer, *about, printed=printed, computed=kinds)

    return check


def check_in_weights(size: Size, context: CheckContext) -> Verdict:
    """Check whether some critical point of the singular locus is critical for the weights (A, V)."""
    stratum = _stratum(_answered(size, context))
    computed = {"on_stratum": stratum.count, "critical_in_weights": stratum.in_weights}
    otherwise = "none is: the two branches have different tangent spaces"
    return _verdict(bool(stratum.in_weights), "some are", otherwise, **computed)


def check_samples_are_general(size: Size, context: CheckContext) -> Verdict:
    """Check whether s samples have the critical points of a general quadric of the same rank."""
    answers = [_answered(options, context) for options in (size, {"kernel": 6 - 2 * size["samples"]})]
    samples, general = ([kinds_of(answer), kinds_of(_stratum(answer))] for answer in answers)
    otherwise = "the sets differ: samples give no general quadric"
    return _verdict(samples == general, "the same sets", otherwise, samples=samples, general=general)


_KERNELS = sizes("kernel", *((k,) for k in range(6)))
_SAMPLES = sizes("samples", (1,), (2,), (3,))
_QUADRIC, _MSE = "attentionGenericQuadric.m2", "attentionMSEloss.m2"
_CODE = Claim(
    id="landscape-quadric-regular",
    number=_QUADRIC,
    paper="giovanni-marchetti/LinearIndepCode",
    statement="A general quadric with a k-dimensional kernel on M(2,1,2): 14 regular critical points for k = 0; 4 of zero loss and 10 others "
    "for k = 1; a curve of degree 4 of zero loss and 4 points for k = 2; only zero loss, of degree 4, for k = 3, 4, 5.",
    checked="zero loss, dimension and degree of the critical points over F_p",
    witnesses=_WITNESSES,
    sizes=_KERNELS,
    run=check_table(_REGULAR, "regular", "positive_dimensional"),
)  # fmt: skip
_IN_SAMPLES = _CODE.also(number=_MSE, sizes=_SAMPLES)
PUBLIC_CODE = (
    _CODE,
    _CODE.also(
        id="landscape-quadric-singular",
        statement="On its singular locus: 10 points for k = 0 and 1; 3 of zero loss and 7 others for k = 2; a curve of degree 3 of zero loss and "
        "3 points for k = 3; only zero loss, of degree 3, for k = 4, 5.",
        run=check_table(_SINGULAR, "singular"),
    ),
    _IN_SAMPLES.also(
        id="landscape-samples-regular",
        statement="The squared error of s general samples: a threefold of degree 4 of zero loss for s = 1; two curves of degree 2, one of zero "
        "loss, for s = 2; 14 points for s = 3.",
    ),
    _IN_SAMPLES.also(
        id="landscape-samples-singular",
        statement="On the singular locus: two planes, one of zero loss, for s = 1; a curve of degree 6 for s = 2; 10 points for s = 3.",
        run=check_table(_SINGULAR, "singular"),
    ),
    _IN_SAMPLES.also(
        id="landscape-samples-are-general",
        statement="Samples have the critical points of a general quadric of the same rank.",
        run=check_samples_are_general,
        kind=Kind.PROBE,
    ),
    _CODE.also(
        id="landscape-singular-in-weights",
        statement="Some critical point of the loss on the singular locus is critical for the weights.",
        sizes=({"kernel": 0}, {"samples": 3}),
        run=check_in_weights,
        kind=Kind.PROBE,
    ),
)  # fmt: skip


# -- ED degrees ----------------------------------------------------------------------------------------------------------------


def check_degree(spec: str, printed: int, context: CheckContext, **options: object) -> Verdict:
    """Check whether a model has the printed ED degree."""
    answer = context.once(critical_points, parse_spec(spec), **options)
    reasons = (f"{printed} critical points", f"computed {answer.ed_degree}, printed {printed}")
    computed: dict[str, Any] = {"model": spec, "printed": printed, "ed_degree": answer.ed_degree}
    return _verdict(answer.ed_degree == printed, *reasons, answer, "regular", **computed)


def check_eckart_young(size: Size, context: CheckContext) -> Verdict:
    """Check the ED degree C(m, r) of m x n matrices of rank r, m <= n, in the Frobenius norm."""
    m, n, r = size["m"], size["n"], size["r"]
    return check_degree(f"linear(widths=[{n},{r},{m}])", comb(min(m, n), r), context, metric="bombieri")


def check_rank(size: Size, context: CheckContext) -> Verdict:
    """Check the printed number of critical points for rank r and a general metric."""
    return check_degree(f"linear(widths=[{size['n']},{size['r']},{size['m']}])", size["printed"], context)


def check_rational_normal_curve(size: Size, context: CheckContext) -> Verdict:
    """Check the ED degree 3n - 2 in general coordinates, or n in Bombieri coordinates (powers of a linear form)."""
    n = size["n"]
    if size["metric"] == "bombieri":
        return check_degree(f"mlp(widths=[2,1,1],r={n})", n, context, metric="bombieri")
    powers = ";".join(f"s^{n - i}*t^{i}" for i in range(n + 1))
    return check_degree(f"map:s,t->{powers}", 3 * n - 2, context)


_CURVES = sizes("n metric", *((n, metric) for n in (2, 3, 4) for metric in ("generic", "bombieri")))
_ED = Claim(
    id="ed-eckart-young",
    number="Eckart-Young",
    paper="arXiv:1309.0049",
    statement="The Frobenius distance to m x n matrices of rank at most r has C(min(m, n), r) critical points.",
    checked="the printed number against a count over F_p with a second witness",
    witnesses=_WITNESSES,
    sizes=sizes("m n r", (2, 2, 1), (2, 3, 1), (3, 3, 1), (3, 3, 2)),
    run=check_eckart_young,
)
CLAIMS = (
    *PUBLIC_CODE,
    _ED,
    _ED.also(
        id="ed-rank-general-metric",
        number="Table of generic ED degrees",
        paper="arXiv:1311.2376",
        statement="In a general metric: 6 for 2 x 2, 10 for 2 x 3 of rank one; 39 for 3 x 3 of rank one and of rank two.",
        sizes=sizes("m n r printed", (2, 2, 1, 6), (2, 3, 1, 10), (3, 3, 1, 39), (3, 3, 2, 39)),
        run=check_rank,
    ),
    _ED.also(
        id="ed-rational-normal-curve",
        number="Rational normal curves",
        statement="The cone over the rational normal curve of degree n has ED degree 3n - 2 in general and n in Bombieri coordinates.",
        sizes=_CURVES,
        quick=(_CURVES[2],),
        run=check_rational_normal_curve,
    ),
)
