"""The ideal of the Zariski closure of a model's image, with what is shown about it.

Two methods answer one question: ``kernel`` (Macaulay2's ring map kernel, the reference) and ``interpolation`` (exact linear
algebra over F_p in each multidegree, then Macaulay2 on the equations). ``auto`` interpolates, and computes the kernel when
completeness could not be shown otherwise and the kernel may be in reach.

Other questions use :func:`closure` with its :class:`Closure` and :class:`Equation`, and :func:`image_of`, the image of a model
as a cone with its random points, which needs no Macaulay2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal, get_args

import numpy as np

from m2bridge.alarm import suspended_alarm
from m2bridge.errors import InputError
from m2bridge.families.base import Model
from m2bridge.frontends.polynomials import derivative
from m2bridge.limits import LimitReached
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import (
    LARGE_PRIME,
    LARGEST_MACAULAY2_PRIME,
    MACAULAY2_PRIME,
    check_prime,
    prime_for,
    primes_below,
)
from m2bridge.questions.closure.completeness import Account, Conclusion, account_of, conclude
from m2bridge.questions.closure.findings import Findings, answer
from m2bridge.questions.closure.formats import FORMATS
from m2bridge.questions.closure.image import Matrix, image_of
from m2bridge.questions.closure.interpolation import (
    Equations,
    Interpolation,
    begin_interpolation,
    evaluate,
    interpolate,
)
from m2bridge.questions.closure.lifting import Lifting, lift_equations
from m2bridge.questions.closure.result import Closure, Equation, equation
from m2bridge.questions.closure.ring_kernel import closure_by_kernel, compare_with_kernel
from m2bridge.questions.closure.size import DegreeCount, ImageSize, count_degree, measure
from m2bridge.questions.closure.stages import (
    BadPrime,
    LimitStop,
    Report,
    Setting,
    TooFewPoints,
    limit_sentence,
)
from m2bridge.questions.kernel import Context, Option, question

__all__ = [
    "FORMATS",
    "Closure",
    "Equation",
    "chosen_field",
    "closure",
    "equation",
    "image_of",
    "interpolate",
    "read_field",
]

Method = Literal["auto", "interpolation", "kernel"]
_DEGREE_CAP = 12  # degree up to which equations are searched
_DEGREE_CAP_UNKNOWN = 6  # the same, if the degree of the closure is not known
_LARGE_SPACE = 250
"""Monomials in a weight space: beyond, the next degree costs more than an account."""
_KERNEL_SPAN = 20
"""Coordinates; with more the kernel is the last resort only if the user allows an hour."""
_FEW_POINTS = 5
"""Over a smaller field polynomials such as x^p - x vanish at all points: nothing is interpolated unless a user chooses it."""


def read_field(text: str) -> int | Literal["QQ"]:
    """Read a field: QQ, or a prime as 32003, F_32003 or ZZ/32003."""
    if text.upper() == "QQ":
        return "QQ"
    try:
        p = int(text.removeprefix("F_").removeprefix("ZZ/"))
    except ValueError:
        raise InputError(f"--field {text!r} is neither QQ nor a prime") from None
    return check_prime(p, "--field")


def chosen_field(field: int | str | None, prime: int | None) -> int | str | None:
    """Return the field of the options ``--field`` and ``--prime``, None if neither is set; both are an InputError."""
    if field is not None and prime is not None:
        raise InputError(f"--field {field} and --prime {prime} both choose the field; give one of them")
    return prime if field is None else field


@question(
    asks="Equations of the Zariski closure of the image of a network, and whether they are complete.",
    primes=(2, LARGE_PRIME),
    templates=("closure_kernel", "closure_accounting", "closure_unmixed", "closure_section"),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "codim": "the codimension of the closure in its linear span",
        "degree": "the degree of the closure",
        "generators": "how many minimal generators of which degree",
    },
    example="m2bridge closure --d 2 --dp 1 --equations",
    warm=True,
    formats=FORMATS,
)
def closure(
    context: Context,
    model: Model,
    *,
    method: Annotated[Method, Option("Method for the equations: auto, interpolation or kernel.")] = "auto",
    max_degree: Annotated[
        int | None,
        Option("Largest degree of generators (default: until the equations are complete).", least=1),
    ] = None,
    field: Annotated[
        int | Literal["QQ"] | None, Option("QQ, or a prime (the same as --prime).", read=read_field)
    ] = None,
    cross_check: Annotated[bool, Option("Also compute the kernel of the ring map, and compare.")] = False,
    equations: Annotated[
        bool,
        Option(
            "Print and record the equations (a single short equation is always recorded).", cli_default=False
        ),
    ] = True,
) -> Closure:
    """Compute the ideal of the Zariski closure of the image of a polynomial model.

    Over ``"QQ"`` equations are lifted and checked by exact substitution. When limits are reached, the degrees finished before are
    returned.

    Examples
    --------
    >>> answer = closure("lightning(d=2, dp=1, a=2)")  # doctest: +SKIP
    >>> answer.generator_counts, answer.codim, answer.degree, answer.completeness  # doctest: +SKIP
    ({4: 1}, 1, 4, 'complete')
    """
    if method not in get_args(Method):
        raise InputError(f"--method {method!r} is not one of {', '.join(get_args(Method))}")
    if max_degree is not None and max_degree < 1:
        raise InputError(f"--max-degree {max_degree}: a positive degree is needed")
    stated = chosen_field(field, context.prime)
    chosen = None if stated is None or stated == "QQ" else int(read_field(str(stated)))
    setting = _setting(context, model, chosen, rational=stated == "QQ")
    context.require_engine()
    findings = _find(setting, method, max_degree, chosen)
    kernel_may_settle = method == "auto" and _kernel_may_settle(findings)
    if "kernel" not in findings.methods and (cross_check or kernel_may_settle):
        findings = compare_with_kernel(findings)
    over = "QQ" if stated == "QQ" else f"F_{findings.setting.prime}"
    options = {"method": method, "max_degree": max_degree, "field": over, "cross_check": cross_check}
    used = "+".join(findings.methods) if method == "auto" else method
    with suspended_alarm():  # the answer is written also when the time is over
        return answer(findings, method=used, equations=equations, options=options)


# -- the choice of the prime and of the method -----------------------------------------------------------------------


def _setting(context: Context, model: Model, chosen: int | None, *, rational: bool) -> Setting:
    """Choose the prime of the computation: that of the user, or one over which the image spans as much as over a large one."""
    image = image_of(model)
    prime = prime_for(image.numbers, chosen=chosen, default=MACAULAY2_PRIME)
    setting = Setting(context=context, model=model, image=image, prime=prime, rational=rational)
    if chosen is not None or not image.numbers:
        return setting

    def span_dim(p: int) -> int:
        return image.span(setting.rng(), p).dim

    with image.watched(context.clock.check):
        largest = max(span_dim(image.large_prime), span_dim(image.second_prime))
        tried = primes_below(LARGEST_MACAULAY2_PRIME, count=8, without=prime, numbers=image.numbers)
        lucky = next((p for p in (prime, *tried) if span_dim(p) == largest), prime)
    return replace(setting, prime=lucky)


def _find(setting: Setting, method: Method, max_degree: int | None, chosen: int | None) -> Findings:
    """Find equations by the method in question; by the kernel where points over F_p do not determine equations."""
    if method != "interpolation" and setting.prime < _FEW_POINTS:
        lacking = (
            f"agreement with interpolation: F_{setting.prime} has too few points to distinguish polynomials"
        )
        return closure_by_kernel(setting, max_degree, alone=True).with_report(Report(not_shown=(lacking,)))
    if method == "kernel":
        return closure_by_kernel(setting, max_degree)
    findings = closure_by_interpolation(setting, max_degree)
    if chosen is None and findings.has(BadPrime):
        other = primes_below(setting.prime - 1, count=1, numbers=setting.image.numbers)[0]
        findings = closure_by_interpolation(replace(setting, prime=other), max_degree)
    if method == "auto" and findings.has(TooFewPoints) and not findings.complete:
        return _kernel_instead(findings, max_degree)
    return findings


def _kernel_instead(interpolated: Findings, max_degree: int | None) -> Findings:
    """Compute the kernel, where points over F_p do not determine equations; what was interpolated, if that takes too long."""
    setting = interpolated.setting
    findings = closure_by_kernel(setting, max_degree, alone=True)
    if not findings.complete:
        lacking = "the kernel of the ring map: Macaulay2 reached the time limit"
        obstacles = (*interpolated.obstacles, *findings.obstacles)
        return replace(interpolated, obstacles=obstacles).with_report(Report(not_shown=(lacking,)))
    reason = setting.image.too_few_points(interpolated.equations.degree_bound + 1, setting.prime)
    return findings.with_report(Report(not_shown=(f"agreement with interpolation: {reason}",)))


def _kernel_may_settle(findings: Findings) -> bool:
    """Return whether completeness is still open and the kernel may be in reach."""
    undecided = not findings.complete and findings.limit is None
    in_reach = findings.size.span.dim <= _KERNEL_SPAN or findings.setting.patient
    return undecided and in_reach and not findings.setting.image.padded


# -- interpolation, stage by stage -----------------------------------------------------------------------------------


def closure_by_interpolation(setting: Setting, max_degree: int | None) -> Findings:
    """Interpolate until Macaulay2's account of the equations settles their completeness, and lift them to QQ.

    A limit ends a stage; what was found before it is kept.
    """
    with setting.image.watched(setting.context.clock.check):  # nothing is known before the span is
        begun = begin_interpolation(setting, setting.prime)
    size = measure(setting, begun.span)
    equation_degree = None if max_degree else _hypersurface_degree(size, begun)
    count = setting.attempt(
        "an independent count of the degree",
        lambda: count_degree(setting, size, equation_degree),
        DegreeCount,
    )
    search = search_equations(setting, size, equation_degree or count.degree, begun, max_degree)
    findings = Findings(
        setting=setting, size=size, equations=search.equations, methods=("interpolation",), degree=count.degree,
        report=Report(evidence=size.evidence),
    )  # fmt: skip
    findings = findings.after(count.stop, count.report).after(search.stop, _search_report(setting, search))
    conclusion = setting.attempt(
        "completeness of the equations", lambda: _conclude(findings, count, search), Conclusion
    )
    degree = findings.degree if conclusion.degree is None else conclusion.degree
    concluded = replace(
        findings, completeness=conclusion.completeness, series=conclusion.series, degree=degree
    ).after(conclusion.stop, conclusion.report)
    if size.drops:
        reason = f"statements over F_{setting.prime}: over this field the image may have a smaller dimension than over QQ"
        concluded = concluded.after(BadPrime(), Report(not_shown=(reason,)))
    if concluded.limit is not None:
        return concluded.with_report(Report(not_shown=(limit_sentence("agreement with a second prime"),)))
    lifting = setting.attempt(
        "agreement with other primes",
        lambda: lift_equations(setting, size, search.equations, conclusion),
        Lifting,
    )
    return replace(concluded, lift=lifting.lift).after(lifting.stop, lifting.report)


def _hypersurface_degree(size: ImageSize, begun: Interpolation) -> int | None:
    """Interpolate in small spaces for the one equation of a hypersurface, and return its degree: it needs no other count."""
    if size.codim != 1:
        return None
    while not begun.counts and begun.degree_reached < _DEGREE_CAP - 1 and begun.largest <= _LARGE_SPACE:
        if not begun.advance():
            return None
    return next(iter(begun.counts), None) if sum(begun.counts.values()) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationSearch:
    """The equations up to a degree, Macaulay2's account of them if it settled the search, and what ended it before that."""

    equations: Equations
    account: Account | None = None
    stop: LimitStop | TooFewPoints | None = None


def search_equations(
    setting: Setting, size: ImageSize, degree: int | None, begun: Interpolation, max_degree: int | None
) -> EquationSearch:
    """Interpolate to `max_degree`, or until the equations have the dimension and `degree` of the image and a degree adds none.

    A limit ends the search; the degrees finished before it are returned.
    """
    try:
        account = _advance(setting, size, degree, begun, max_degree)
    except LimitReached as reached:
        return EquationSearch(equations=begun.equations, stop=LimitStop.of(reached))
    return EquationSearch(equations=begun.equations, account=account, stop=begun.stop)


def _advance(
    setting: Setting, size: ImageSize, degree: int | None, begun: Interpolation, max_degree: int | None
) -> Account | None:
    """Advance an interpolation; the account that settled the search, or None.

    Macaulay2 runs only when the equations define the image near a general point, and not before a degree without new
    generators, unless the next degree is large.
    """
    bound = max_degree or (_DEGREE_CAP_UNKNOWN if degree is None else min(degree + 1, _DEGREE_CAP))
    point = setting.image.points(setting.rng(2), 1, setting.prime)[:, size.span.basis]
    accounted = -1
    while begun.degree_reached < bound and size.codim:
        setting.context.report_progress(f"equations of degree {begun.degree_reached + 1}")
        if not begun.advance():
            return None
        if max_degree is not None:
            continue
        equations = begun.equations
        fresh = bool(begun.generators[begun.degree_reached])
        early = fresh and begun.largest <= _LARGE_SPACE and begun.degree_reached < bound
        unchanged = accounted == len(equations.polynomials)
        if early or unchanged or not _smooth_at(setting, size, equations, point):
            continue
        accounted = len(equations.polynomials)
        of_equations = account_of(setting, size, equations)
        values = of_equations.values
        right_degree = not fresh if degree is None else values.get("degree") == degree
        if of_equations.limit is not None or (values.get("codim") == size.codim and right_degree):
            return of_equations
    return None


def _smooth_at(setting: Setting, size: ImageSize, equations: Equations, point: Matrix) -> bool:
    """Return whether the equations' Jacobian has rank `codim` at an image point: then they define the image near a general point.

    This is a cheap necessary condition for the right dimension with multiplicity one.
    """
    variables, p = range(size.span.dim), setting.prime
    rows = [[int(evaluate(derivative(f, i), point, p)[0]) for i in variables] for f in equations.polynomials]
    return bool(rows) and rank_mod(np.array(rows, dtype=np.int64), p) == size.codim


def _search_report(setting: Setting, search: EquationSearch) -> Report:
    """Say why equations of higher degree were not searched."""
    step = "equations of higher degree"
    if isinstance(search.stop, LimitStop):
        return Report(not_shown=(limit_sentence(step),))
    if isinstance(search.stop, TooFewPoints):
        reason = setting.image.too_few_points(search.stop.degree, setting.prime)
        return Report(not_shown=(f"{step}: {reason}",))
    return Report()


def _conclude(findings: Findings, count: DegreeCount, search: EquationSearch) -> Conclusion:
    """Conclude from the account that settled the search, or from one of the last equations if there is time."""
    setting, size, account = findings.setting, findings.size, search.account
    if account is None and findings.limit is None:
        account = account_of(setting, size, search.equations)
    return conclude(setting, size, count, search.equations, account)
