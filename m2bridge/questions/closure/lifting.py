"""From equations over F_p to equations over QQ: the same ones over other primes, their lift, and its exact check.

Let I be the ideal of the lifted equations, P that of the closure over QQ, and a bar the same modulo p. When the equations vanish
exactly, I lies in P. In every degree the Hilbert functions satisfy H(P) >= H(P bar), because the rank of the monomials in the
coordinates is not smaller over QQ, and H(I) <= H(I bar), because the rank of what the equations generate is not smaller. So
I bar = P bar gives H(P) >= H(P bar) = H(I bar) >= H(I) >= H(P): the equations are complete over QQ too, and dimension and
degree are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, lcm
from typing import Any

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.frontends.polynomials import Polynomial, variables_of
from m2bridge.limits import Clock, LimitReached
from m2bridge.linear.residues import rational, reduce_polynomial, residue
from m2bridge.questions.closure.completeness import MONOMIAL_RANKS, Conclusion, fresh_points_evidence
from m2bridge.questions.closure.image import Span
from m2bridge.questions.closure.interpolation import Equations, Interpolation, begin_interpolation
from m2bridge.questions.closure.size import ImageSize
from m2bridge.questions.closure.stages import (
    EMPTY,
    BadPrime,
    Complete,
    LimitStop,
    Report,
    Setting,
    limit_sentence,
)
from m2bridge.questions.hilbert import generated_rank

_MOST_LIFTED_COLUMNS = 1500
"""Monomials of a degree whose equations are lifted to QQ."""
_PRIMES = 6  # other primes that may be needed to determine the coefficients over QQ


# -- Chinese remainders ----------------------------------------------------------------------------------------------


def combine(residues: Sequence[int], moduli: Sequence[int]) -> tuple[int, int]:
    """Return the residue modulo the product of coprime moduli (Chinese remainders), and the product.

    >>> combine([2, 3], [5, 7])
    (17, 35)
    """
    value, modulus = 0, 1
    for r, m in zip(residues, moduli, strict=True):
        value += modulus * ((r - value) * pow(modulus, -1, m) % m)
        modulus *= m
    return value, modulus


def lift_polynomials(
    systems: Sequence[Sequence[Polynomial]], primes: Sequence[int]
) -> list[dict[tuple[int, ...], Fraction]] | None:
    """Return rational polynomials from their residues modulo several primes, or None if these do not determine them.

    `systems[k]` lists the same polynomials modulo `primes[k]`, normalised alike. The last prime is only used to check what
    the others give.
    """
    if len(primes) < 2 or len({len(system) for system in systems}) != 1:
        return None
    lifted: list[dict[tuple[int, ...], Fraction]] = []
    for versions in zip(*systems, strict=True):
        polynomial: dict[tuple[int, ...], Fraction] = {}
        for monomial in set().union(*versions):
            residues = [int(f.get(monomial, 0)) for f in versions]
            fraction = rational(*combine(residues[:-1], primes[:-1]))
            if fraction is None or fraction.denominator % primes[-1] == 0:
                return None
            if residue(fraction, primes[-1]) != residues[-1]:
                return None
            polynomial[monomial] = fraction
        lifted.append(polynomial)
    return lifted


# -- the lift of a closure's equations -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """Equations over QQ: generators in the coordinates of the span, and linear forms in all coordinates.

    `exact`: they vanish identically on the image and are complete and minimal over QQ, without a random choice.
    """

    polynomials: Sequence[Polynomial]
    linear_forms: Sequence[Polynomial]
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifting:
    """The result of the comparison with other primes: the lift if there is one, and what stood against it."""

    lift: Lift | None = None
    stop: BadPrime | LimitStop | None = None
    report: Report = EMPTY


def lift_equations(
    setting: Setting, size: ImageSize, equations: Equations, conclusion: Conclusion
) -> Lifting:
    """Compare equations with those over other primes and lift them to QQ; check the lift exactly if QQ is the chosen field."""
    compared = _compare_primes(setting, equations)
    if compared.lift is None:
        return compared
    checked = _check_lift(setting, size, equations, compared.lift, conclusion)
    return replace(checked, report=compared.report + checked.report)


def _compare_primes(setting: Setting, equations: Equations) -> Lifting:
    """Interpolate over other primes until the equations can be lifted; an unlucky prime has smaller ranks."""
    ranks = equations.hilbert_function[: equations.top_degree + 1]
    evidence: list[Evidence] = []
    others: list[Interpolation] = []
    for number, p in enumerate(setting.other_primes(_PRIMES)):
        setting.context.report_progress(f"the same modulo {p}")
        other = begin_interpolation(setting, p)
        if not other.reach(equations.top_degree):
            if isinstance(other.stop, LimitStop):
                lacking = (limit_sentence("agreement with a second prime"),)
                return Lifting(stop=other.stop, report=Report(evidence=tuple(evidence), not_shown=lacking))
            continue
        evidence += _interpolation_evidence(setting, other.equations, other.hilbert_function, p)
        if number == 0:
            evidence += _interpolation_evidence(setting, equations, ranks, setting.prime)
        if other.counts != equations.counts or other.span.basis != equations.span.basis:
            if _smaller(other.hilbert_function, ranks):
                continue  # ranks modulo p never exceed those over QQ: the other prime is the unlucky one
            reason = f"F_{setting.prime} and F_{p} disagree: one of the primes is unlucky, use a larger one"
            return Lifting(stop=BadPrime(), report=Report(evidence=tuple(evidence), not_shown=(reason,)))
        others.append(other)
        lift = _lift(others, equations, setting.prime)
        if lift is not None:
            return Lifting(lift=lift, report=Report(evidence=tuple(evidence)))
    sentence = "the equations could not be lifted to QQ from six primes"
    return Lifting(report=Report(evidence=tuple(evidence), not_shown=(sentence,)))


def _lift(others: Sequence[Interpolation], equations: Equations, prime: int) -> Lift | None:
    primes = [*(other.p for other in others), prime]
    systems = [*(other.equations for other in others), equations]
    forms = lift_polynomials([system.span.polynomials for system in systems], primes)
    polynomials = lift_polynomials([system.polynomials for system in systems], primes)
    if forms is None or polynomials is None:
        return None
    return Lift(polynomials=polynomials, linear_forms=forms)


def _smaller(ranks: Sequence[int], others: Sequence[int]) -> bool:
    return all(a <= b for a, b in zip(ranks, others, strict=False)) and list(ranks) != list(others)


def _interpolation_evidence(
    setting: Setting, equations: Equations, ranks: Sequence[int], p: int
) -> Iterator[Evidence]:
    """State the Hilbert function up to the highest generator, and the generators, over one prime."""
    yield setting.statement(
        "hilbert_function_to_top_generator", list(ranks), "modular", MONOMIAL_RANKS, prime=p
    )
    yield setting.count_statement("modular", f"interpolation over F_{p}", equations.counts, p)


def lift_linear_forms(setting: Setting, span: Span) -> Sequence[Polynomial] | None:
    """Return the linear forms over QQ, from the span modulo several primes; None if these do not determine them."""
    primes, forms = [setting.prime], [span.polynomials]
    for p in setting.other_primes(_PRIMES):
        primes.insert(-1, p)
        forms.insert(-1, setting.image.span(setting.rng(), p).polynomials)
        if (lifted := lift_polynomials(forms, primes)) is not None:
            return lifted
    return None


# -- exact checks ----------------------------------------------------------------------------------------------------


def _check_lift(
    setting: Setting, size: ImageSize, equations: Equations, lift: Lift, conclusion: Conclusion
) -> Lifting:
    """Evaluate at fresh points over a further prime; for QQ substitute the coordinates as integer polynomials."""
    p = setting.other_primes(9)[-1]
    reduced = [reduce_polynomial(f, p) for f in lift.polynomials]
    fresh = fresh_points_evidence(setting, size, reduced, p)
    shown = (f"lifted to QQ, the equations vanish at fresh points over F_{p}",) if fresh.value else ()
    lifting = Lifting(lift=lift, report=Report(evidence=(fresh,), shown=shown))
    if size.dense or not setting.rational:
        return lifting
    setting.context.report_progress("exact substitution")
    substituted = substitute(setting, equations.span, lift, conclusion.report.evidence)
    report = lifting.report + substituted.report
    if substituted.vanishes is None:
        sentence = "that the lifted equations vanish identically: no exact substitution (too many terms)"
        report += Report(not_shown=(sentence,))
    if not substituted.vanishes or conclusion.completeness != Complete(exact=True):
        return Lifting(lift=lift, stop=substituted.stop, report=report)
    minimal = _minimality(setting, equations, lift.polynomials)
    if not minimal.shown:
        return Lifting(lift=lift, report=report + minimal)
    evidence = _exact_evidence(setting, size, conclusion)
    return Lifting(lift=replace(lift, exact=True), report=report + minimal + Report(evidence=evidence))


def _exact_evidence(setting: Setting, size: ImageSize, conclusion: Conclusion) -> tuple[Evidence, ...]:
    """State dimension and degree over QQ, which the exact equations show."""
    method = "Hilbert functions of the exact equations, between those of the image over F_p and over QQ"
    exact = {"certainty": Certainty.COMPUTED, "prime": None, "field": "QQ"}
    values = {"image_dim": size.cone_dim - setting.image.homogenized, "degree": conclusion.degree}
    return tuple(
        setting.statement(name, value, "equations", method, **exact) for name, value in values.items()
    )


def _minimality(setting: Setting, equations: Equations, lifted: Sequence[Polynomial]) -> Report:
    """Report whether the generators are minimal over QQ: those of lower degree generate no more there than over F_p.

    In degree k they generate a space of dimension at least (all equations) - (new ones), its dimension over F_p; the
    exact rank over QQ shows that it is not larger.
    """
    n, counts = equations.span.dim, equations.counts
    for degree in list(counts)[1:]:
        total = comb(n + degree - 1, degree)
        if total > _MOST_LIFTED_COLUMNS:
            sentence = f"that the generators of degree {degree} are minimal over QQ (they are over F_{setting.prime})"
            return Report(not_shown=(sentence,))
        lower = [f for f in lifted if sum(next(iter(f))) < degree]
        expected = total - equations.hilbert_function[degree] - counts[degree]
        if generated_rank(lower, degree, n) != expected:
            return Report(
                not_shown=(
                    f"that the generators of degree {degree} are minimal over QQ: fewer generators suffice",
                )
            )
    return Report(shown=("over QQ the generators are minimal (exact ranks)",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitution:
    """Whether every lifted equation vanishes identically on the parametrization; None if that is out of reach."""

    vanishes: bool | None = None
    stop: LimitStop | None = None
    report: Report = EMPTY


def substitute(setting: Setting, span: Span, lift: Lift, evidence: Sequence[Evidence] = ()) -> Substitution:
    """Substitute the coordinates into the lifted equations, exactly.

    `evidence` is what was stated over F_p: where the equations vanish, its upper bounds of the dimension hold over QQ.
    """
    coordinates = setting.image.polynomials
    if coordinates is None:
        return Substitution()
    clock, of_span = setting.context.clock, [coordinates[i] for i in span.basis]
    try:
        vanishes = all(vanishes_exactly(f, of_span, clock) for f in lift.polynomials) and all(
            vanishes_exactly(f, coordinates, clock) for f in lift.linear_forms
        )
    except LimitReached as reached:
        return Substitution(stop=LimitStop.of(reached))
    method = "exact substitution of the coordinates over ZZ"
    exact = {"prime": None, "certainty": Certainty.PROVED}
    stated = (setting.statement("vanishing", vanishes, "substitution", method, **exact),)
    if not vanishes:
        return Substitution(vanishes=False, report=Report(evidence=stated))
    shown = "over QQ every equation vanishes identically on the parametrization (exact substitution)"
    reason = "its value over QQ is at most its value modulo p"
    bounds = tuple(
        replace(e, field="QQ", certainty=Certainty.COMPUTED, method=f"{e.method}; {reason}")
        for e in evidence
        if (e.quantity, e.relation, e.witness) == ("image_dim", "<=", "macaulay2")
    )
    return Substitution(vanishes=True, report=Report(evidence=stated + bounds, shown=(shown,)))


def vanishes_exactly(polynomial: Polynomial, coordinates: Sequence[Any], clock: Clock | None = None) -> bool:
    """Return whether a rational polynomial in the coordinates is the zero polynomial in the weights: exact substitution over ZZ.

    `coordinates` are python-flint polynomials in the weights, one for each variable of `polynomial`.
    """
    common = lcm(*(c.denominator for c in polynomial.values()))
    total = coordinates[0] * 0
    products: dict[tuple[int, ...], Any] = {(): total + 1}

    def product(factors: tuple[int, ...]) -> Any:
        if factors not in products:
            products[factors] = product(factors[:-1]) * coordinates[factors[-1]]
        return products[factors]

    for monomial, coefficient in polynomial.items():
        if clock is not None:
            clock.check()
        total = total + product(variables_of(monomial)) * int(coefficient * common)
    return bool(total == 0)
