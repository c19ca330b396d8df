"""Whether given equations generate the ideal of the closure.

Let I be the ideal of equations over F_p and P the prime ideal of the closure. Macaulay2 computes I's codimension, degree and
Hilbert function, and evaluates the equations at image points from its own copy of the network; the rank of the parametrization's
Jacobian, evaluation ranks and a count of the degree without equations give the same numbers for P.

I inside P, dim I = dim P and deg I = deg P make P the only component of I of maximal dimension, with multiplicity one;
when I is unmixed besides, I = P. A Cohen-Macaulay coordinate ring is unmixed, and it is Cohen-Macaulay iff a linear
section of complementary dimension that is finite has length deg I.

deg P is at most deg I. It is at least the number of lines in which a linear space L of codimension dim P - 1 meets the cone over
the image, when it meets the zeros of I in finitely many (Bezout's inequality). The section above is a hyperplane of L: where
it is finite, L meets the zeros of I in finitely many lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from m2bridge.evidence import Evidence
from m2bridge.frontends.polynomials import Polynomial, for_macaulay2
from m2bridge.protocol import Values
from m2bridge.questions.closure.image import Matrix
from m2bridge.questions.closure.interpolation import Equations, evaluate
from m2bridge.questions.closure.size import DegreeCount, ImageSize, random_section
from m2bridge.questions.closure.stages import (
    EMPTY,
    Complete,
    LimitStop,
    Report,
    Setting,
    limit_sentence,
)

_SHARE_FOR_UNMIXEDNESS = 0.5
"""Share of the time left; what comes after needs time too."""
MONOMIAL_RANKS = "ranks of all monomials at random image points"
_SMALL_SPAN = (
    14  # coordinates up to which unmixedness is tested in general; with more, if the user allows an hour
)
_POINTS = 2  # image points that both definitions of the network compute
_FRESH_POINTS = 20  # an equation that is wrong vanishes at all of them with probability (degree/p)^20


# -- Macaulay2's account of the equations ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Account:
    """What Macaulay2 computed about the ideal of the equations, and the limit that ended the script, if one did."""

    values: Values
    limit: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConeSeries:
    """A Hilbert series by Macaulay2, in the coordinates of the span: numerator(T) / (1 - T)^cone_dim; over QQ for p = 0."""

    numerator: tuple[int, ...]
    cone_dim: int
    prime: int


def cone_series(values: Values, span_dim: int, p: int) -> ConeSeries | None:
    """Read the Hilbert series that a template emitted; None if it emitted none."""
    if "h_vector" not in values:
        return None
    return ConeSeries(
        numerator=values.integers("h_vector"), cone_dim=span_dim - values.integer("codim"), prime=p
    )


def account_of(setting: Setting, size: ImageSize, equations: Equations) -> Account:
    """Run Macaulay2 on equations over F_p, and on their zeros in a linear space that should meet the image in 0 only.

    One equation needs no such section: its ideal is unmixed.
    """
    setting.context.report_progress("accounting")
    weights = [w.reshape(_POINTS, -1) for w in _tested_weights(setting).values()]
    request = {
        "p": setting.prime,
        "points": np.concatenate(weights, axis=1).tolist(),
        "chosen": list(size.span.basis),
        "equations": _balanced(equations, setting.prime),
        "section": random_section(setting, size)[0].tolist() if len(equations.polynomials) > 1 else [],
        "hilbertDegrees": equations.degree_bound + 1,
        "smallSpan": _SMALL_SPAN,
    }
    return Account(*setting.context.run_template("closure_accounting", request, setting.image.source))


def _tested_weights(setting: Setting) -> dict[str, Matrix]:
    return setting.image.source.draw_weights(setting.rng(5), setting.prime, _POINTS)


def _balanced(equations: Equations, p: int) -> list[list[list[object]]]:
    """Write the equations for a template, with residues around 0."""
    return [
        for_macaulay2({m: c if 2 * c <= p else c - p for m, c in f.items()}) for f in equations.polynomials
    ]


# -- evidence about the equations ------------------------------------------------------------------------------------


def fresh_points_evidence(
    setting: Setting, size: ImageSize, polynomials: Sequence[Polynomial], p: int
) -> Evidence:
    """State whether all equations vanish at random image points over F_p that were not used to find them."""
    image = setting.image
    points = image.points(setting.rng(99), _FRESH_POINTS, p)[:, size.span.basis]
    value = all(not evaluate(f, points, p).any() for f in polynomials)
    bound = None
    if value and image.polynomials is not None and polynomials:
        # a wrong equation of degree D in the weights vanishes at a random point with probability at most D/p
        inner = max(int(sum(m)) for f in image.polynomials for m in f.monoms())
        degree = inner * max(sum(next(iter(f))) for f in polynomials)
        bound = min(1.0, len(polynomials) * (degree / p) ** _FRESH_POINTS)
    method = f"all equations at {_FRESH_POINTS} fresh image points"
    return setting.statement("vanishing", value, "modular", method, prime=p, error_probability=bound)


def account_evidence(
    setting: Setting, size: ImageSize, equations: Equations, values: Values
) -> tuple[Evidence, ...]:
    """State what Macaulay2 computed about the equations, beside values of the network's program and evaluation ranks."""
    evidence = _image_points_evidence(setting, size, values) if "image_points" in values else []
    if "vanishing" in values:
        method = "all equations at its own image points"
        evidence.append(setting.statement("vanishing", values["vanishing"], "macaulay2", method))
    if "codim" in values:  # the zeros of the equations contain the image: their dimension is an upper bound
        dim = size.span.dim - values.integer("codim") - setting.image.homogenized
        method = "dimension of the equations' ideal (Groebner basis)"
        bound = {"relation": "<=", "seconds": values.run.seconds}
        evidence.append(setting.statement("image_dim", dim, "macaulay2", method, **bound))
    ranks = list(equations.hilbert_function)
    emitted = values.integers("hilbert_function") if "hilbert_function" in values else ()
    if len(emitted) >= len(ranks):
        method = "Hilbert function of the equations' ideal (Groebner basis)"
        first = list(emitted[: len(ranks)])
        evidence.append(setting.statement("hilbert_function", first, "macaulay2", method))
    evidence.append(setting.statement("hilbert_function", ranks, "modular", MONOMIAL_RANKS))
    return tuple(evidence)


def _image_points_evidence(setting: Setting, size: ImageSize, values: Values) -> list[Evidence]:
    """State the coordinates of the same points from both definitions of the network: where they agree, a few only."""
    p, count = setting.prime, setting.image.source.coordinate_count
    ours = setting.image.at(_tested_weights(setting), p)[:, :count].tolist()
    theirs = [[int(x) % p for x in row] for row in values["image_points"]]
    compared = list(range(count))
    if theirs == ours:
        compared = [i for i in size.span.basis if i in compared][:12]
    method = f"coordinates of {_POINTS} image points from the network's definition"
    return [
        setting.statement("image_points", [row[i] for row in rows for i in compared], witness, method)
        for witness, rows in (("modular", ours), ("macaulay2", theirs))
    ]


# -- the conclusion --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What was shown about the equations over F_p, and the degree of the closure if the equations show it.

    `completeness` is None if equations of higher degree may exist.
    """

    degree: int | None = None
    completeness: Complete | None = None
    series: ConeSeries | None = None
    stop: LimitStop | None = None
    report: Report = EMPTY


def conclude(
    setting: Setting, size: ImageSize, count: DegreeCount, equations: Equations, account: Account | None
) -> Conclusion:
    """Decide from Macaulay2's account what is shown about the equations."""
    report = _vanishing_report(setting, size, equations)
    lacking = "codimension and degree of the equations' ideal"
    if account is None:
        report += Report(not_shown=(limit_sentence(lacking),))
        return Conclusion(report=report)
    values = account.values
    report += Report(evidence=account_evidence(setting, size, equations, values))
    if "degree" not in values:
        report += Report(not_shown=(f"{lacking}: Macaulay2 reached a limit",))
        return Conclusion(stop=None if account.limit is None else LimitStop(account.limit), report=report)
    conclusion = _conclude_from_numbers(setting, size, count, equations, values)
    series = cone_series(values, size.span.dim, setting.prime)
    return replace(conclusion, series=series, report=report + conclusion.report)


def _vanishing_report(setting: Setting, size: ImageSize, equations: Equations) -> Report:
    """Report that the equations solve linear conditions at points, and their values at other points."""
    method = "solutions of linear equations at random image points"
    evidence = (
        setting.statement("vanishing", True, "interpolation", method),
        fresh_points_evidence(setting, size, equations.polynomials, setting.prime),
    )
    sentence = f"every equation of degree at most {equations.degree_bound} over F_{setting.prime} is generated by these"
    return Report(evidence=evidence, shown=() if size.drops else (sentence,))


def _conclude_from_numbers(
    setting: Setting, size: ImageSize, count: DegreeCount, equations: Equations, values: Values
) -> Conclusion:
    """Compare codimension and degree of the equations' ideal with those of the image, and settle completeness."""
    codim, degree = values.integer("codim"), values.integer("degree")
    same_dim = codim == size.codim
    conclusion = _hypersurface(size, equations)
    if conclusion is None:
        conclusion = Conclusion(degree=count.degree)
        if same_dim and degree == count.degree:
            conclusion = _settle_unmixedness(setting, size, count, equations, values)
    if (
        size.drops
    ):  # statements over F_p then do not hold over QQ, and the torus over QQ is not all of that over F_p
        conclusion = replace(conclusion, completeness=None)
    report = _numbers_report(codim, degree, size, count) + conclusion.report
    if same_dim:  # an upper bound of the closure's degree, because the dimensions agree
        relation = "=" if conclusion.completeness else "<="
        method = "degree of the equations' ideal (Groebner basis)"
        evidence = setting.statement("degree", degree, "macaulay2", method, relation=relation)
        report += Report(evidence=(evidence,))
    return replace(conclusion, report=report)


def _numbers_report(codim: int, degree: int, size: ImageSize, count: DegreeCount) -> Report:
    """Say whether the equations' ideal has the codimension and the degree of the image."""
    if codim != size.codim:
        larger = f"the equations found so far define a larger set, of codimension {codim}"
        return Report(not_shown=(f"{larger}: more exist in higher degree",))
    shown = "the equations' ideal has the dimension of the image"
    if count.degree is None:
        return Report(shown=(shown,))
    if degree == count.degree:
        counted = "the equations' ideal has the degree of the image, counted independently"
        return Report(shown=(shown, counted))
    other = f"the equations' ideal has degree {degree}, the image {count.degree}"
    return Report(shown=(shown,), not_shown=(other,))


def _hypersurface(size: ImageSize, equations: Equations) -> Conclusion | None:
    """Conclude in codimension 0 and 1: a prime ideal of codimension one is generated by its element of lowest degree.

    The degree of the image is not needed.
    """
    counts = equations.counts
    if size.codim == 0:
        shown, degree = "the image is dense in its linear span", 1
    elif size.codim == 1 and sum(counts.values()) == 1:
        shown = "the closure is a hypersurface, and its ideal is generated by its equation of lowest degree"
        degree = next(iter(counts))
    else:
        return None
    return Conclusion(degree=degree, completeness=Complete(exact=True), report=Report(shown=(shown,)))


def _settle_unmixedness(
    setting: Setting, size: ImageSize, count: DegreeCount, equations: Equations, values: Values
) -> Conclusion:
    """Decide whether the ideal, of the dimension and degree of the closure, is unmixed: then it is its prime ideal."""
    degree = values.integer("degree")
    length = values.get("section_length") if size.codim else degree
    if length == degree and min(values.get("h_vector") or [0]) >= 0:
        shown = "its coordinate ring is Cohen-Macaulay, so the ideal is unmixed and equals the prime ideal of the closure"
    else:
        verdict, reason = _unmixed(setting, size, equations)
        if not verdict:
            return Conclusion(degree=degree, report=Report(not_shown=(reason,)))
        shown = (
            "the ideal is unmixed (dimensions of Ext modules), so it equals the prime ideal of the closure"
        )
    if length is None or count.distinct != degree:
        return Conclusion(degree=degree, completeness=Complete(exact=False), report=Report(shown=(shown,)))
    points = (
        f"a linear space meets the image in {degree} points and the zeros of the equations in finitely many: "
        "the degree is not smaller"
    )
    return Conclusion(degree=degree, completeness=Complete(exact=True), report=Report(shown=(shown, points)))


def _unmixed(setting: Setting, size: ImageSize, equations: Equations) -> tuple[bool, str]:
    """Run the general test of unmixedness; if it fails, also return the reason."""
    verdict = None
    reason = (
        f"the general test was not attempted: {size.span.dim} coordinates > {_SMALL_SPAN}, "
        "which needs a --timeout of at least 1h"
    )
    if size.span.dim <= _SMALL_SPAN or setting.patient:
        setting.context.report_progress("unmixedness")
        request = {
            "p": setting.prime,
            "variableCount": size.span.dim,
            "equations": _balanced(equations, setting.prime),
        }
        values, stopped = setting.context.run_template(
            "closure_unmixed", request, share=_SHARE_FOR_UNMIXEDNESS
        )
        verdict, reason = values.get("unmixed"), stopped or "Macaulay2 did not decide it"
    if verdict is False:
        return False, "the ideal has embedded or smaller components: equations of higher degree exist"
    return bool(verdict), f"that the ideal is unmixed (not Cohen-Macaulay; {reason})"
