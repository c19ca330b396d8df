"""The comments of the public Macaulay2 scripts on M(2,1,2), one layer of attention with d = 2 and one output row, as claims.

A set of critical points is written as {zero loss, affine dimension, degree}; dimension 0: so many points. The scripts work with the
one equation of the closure over QQ; here the same sets are counted in the weights over F_p and from a second prime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from m2bridge.claims.base import Claim, Context, Kind, Size, Verdict, by_ancestry, disagreement, fails, holds
from m2bridge.models import Lightning
from m2bridge.questions.critical_points import CriticalPoints, StratumPoints, critical_points
from m2bridge.results import Certainty

CODE = "giovanni-marchetti/LinearIndepCode"
Kinds = Sequence[Sequence[Any]]

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
"""What the comments of the scripts say, keyed by the dimension of the quadric's kernel or the number of samples."""


def kinds_of(found: CriticalPoints | StratumPoints) -> list[list[Any]]:
    """The critical points of an answer by zero loss, dimension and degree."""
    families = found.positive_dimensional if isinstance(found, CriticalPoints) else found.families
    if families:
        return [[f.zero_loss, f.dim, f.degree] for f in families]
    count = found.regular if isinstance(found, CriticalPoints) else found.count
    zero = found.zero_loss or 0
    return [[z, 0, n] for z, n in ((True, zero), (False, (count or 0) - zero)) if n]


def _answered(size: Size, context: Context) -> CriticalPoints:
    return context.once(critical_points, Lightning(d=2, dp=1), **dict(size))


def _compared(answer: CriticalPoints, found: Kinds, printed: Kinds, quantities: tuple[str, ...]) -> Verdict:
    if answer.agreement is False:
        return disagreement(answer.conflicts)
    computed = {"printed": [list(row) for row in printed], "computed": [list(row) for row in found]}
    if computed["printed"] != computed["computed"]:
        return fails(Certainty.PROBABLE, computed, "the sets differ", **computed)
    verdict = holds(Certainty.PROBABLE, "the same dimensions and degrees", **computed)
    return replace(verdict, witnesses=by_ancestry(answer.evidence, *quantities))


def check_regular(size: Size, context: Context) -> Verdict:
    """The regular critical points at one size against the script's comment."""
    answer = _answered(size, context)
    ((option, number),) = size.items()
    return _compared(answer, kinds_of(answer), _REGULAR[option, number], ("regular", "positive_dimensional"))


def check_singular(size: Size, context: Context) -> Verdict:
    """The critical points on the singular locus, as a variety of its own, against the script's comment."""
    answer = _answered(size, context)
    ((option, number),) = size.items()
    stratum = (answer.singular or ())[0]
    return _compared(answer, kinds_of(stratum), _SINGULAR[option, number], ("singular",))


def check_in_weights(size: Size, context: Context) -> Verdict:
    """Whether some critical point of the singular locus is critical for the weights (A, V)."""
    answer = _answered(size, context)
    if answer.agreement is False:
        return disagreement(answer.conflicts)
    stratum = (answer.singular or ())[0]
    computed = {"on_stratum": stratum.count, "critical_in_weights": stratum.in_weights}
    if stratum.in_weights:
        return holds(Certainty.PROBABLE, "some are", **computed)
    return fails(
        Certainty.PROBABLE, computed, "none is: the two branches have different tangent spaces", **computed
    )


def check_samples_are_general(size: Size, context: Context) -> Verdict:
    """Whether s samples have the critical points of a general quadric of the same rank."""
    samples = _answered(size, context)
    general = _answered({"kernel": 6 - 2 * size["samples"]}, context)
    for answer in (samples, general):
        if answer.agreement is False:
            return disagreement(answer.conflicts)
    singular = [kinds_of((answer.singular or ())[0]) for answer in (samples, general)]
    computed = {
        "samples": [kinds_of(samples), singular[0]],
        "general": [kinds_of(general), singular[1]],
    }
    if computed["samples"] == computed["general"]:
        return holds(Certainty.PROBABLE, "the same sets", **computed)
    return fails(Certainty.PROBABLE, computed, "the sets differ: samples give no general quadric", **computed)


_KERNELS: tuple[Size, ...] = tuple({"kernel": k} for k in range(6))
_SAMPLES: tuple[Size, ...] = tuple({"samples": s} for s in (1, 2, 3))
_WITNESSES = {
    "template": ("Groebner basis in a chart of the weights",),
    "program": ("the program's polynomials with another prime, gauge and elimination",),
    "formula": ("Chern classes, where their hypotheses hold",),
}


def _claim(
    identifier: str, file: str, statement: str, run: Any, sizes: tuple[Size, ...], kind: Kind
) -> Claim:
    return Claim(
        id=identifier,
        number=file,
        paper=CODE,
        statement=statement,
        checked="zero loss, dimension and degree of the critical points over F_p",
        witnesses=_WITNESSES,
        sizes=sizes,
        quick=sizes[:1],
        run=run,
        kind=kind,
    )


_QUADRIC, _MSE = "attentionGenericQuadric.m2", "attentionMSEloss.m2"
CLAIMS = (
    _claim(
        "landscape-quadric-regular", _QUADRIC,
        "A general quadric with a k-dimensional kernel on M(2,1,2): 14 regular critical points for k = 0; 4 of zero loss and 10 others "
        "for k = 1; a curve of degree 4 of zero loss and 4 points for k = 2; only zero loss, of degree 4, for k = 3, 4, 5.",
        check_regular, _KERNELS, Kind.PRINTED,
    ),
    _claim(
        "landscape-quadric-singular", _QUADRIC,
        "On its singular locus: 10 points for k = 0 and 1; 3 of zero loss and 7 others for k = 2; a curve of degree 3 of zero loss and "
        "3 points for k = 3; only zero loss, of degree 3, for k = 4, 5.",
        check_singular, _KERNELS, Kind.PRINTED,
    ),
    _claim(
        "landscape-samples-regular", _MSE,
        "The squared error of s general samples: a threefold of degree 4 of zero loss for s = 1; two curves of degree 2, one of zero "
        "loss, for s = 2; 14 points for s = 3.",
        check_regular, _SAMPLES, Kind.PRINTED,
    ),
    _claim(
        "landscape-samples-singular", _MSE,
        "On the singular locus: two planes, one of zero loss, for s = 1; a curve of degree 6 for s = 2; 10 points for s = 3.",
        check_singular, _SAMPLES, Kind.PRINTED,
    ),
    _claim(
        "landscape-samples-are-general", _MSE,
        "Samples have the critical points of a general quadric of the same rank.",
        check_samples_are_general, _SAMPLES, Kind.PROBE,
    ),
    _claim(
        "landscape-singular-in-weights", _QUADRIC,
        "Some critical point of the loss on the singular locus is critical for the weights.",
        check_in_weights, ({"kernel": 0}, {"samples": 3}), Kind.PROBE,
    ),
)  # fmt: skip
