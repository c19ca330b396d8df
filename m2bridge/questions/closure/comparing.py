"""The same equations over other primes, their lift to QQ, and its exact check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import comb

import numpy as np

from m2bridge.models.polynomials import Polynomial
from m2bridge.questions.asking import LimitReached
from m2bridge.questions.closure import accounting
from m2bridge.questions.closure.interpolation import Interpolation
from m2bridge.questions.closure.lifting import (
    generated_rank,
    lift_polynomials,
    reduce_polynomial,
    vanishes_exactly,
)
from m2bridge.questions.closure.work import Work, as_polynomials
from m2bridge.results import Certainty

_MOST_COLUMNS = 1500


def compare_primes(work: Work, found: Interpolation) -> None:
    """Compare with other primes; an unlucky one shows by smaller ranks. Lift, and check the lift exactly, for QQ."""
    if work.limit is not None:
        work.lacks("agreement with a second prime: a limit came first")
        return
    top = max(work.counts, default=1)
    systems: list[tuple[Polynomial, ...]] = []
    primes: list[int] = []
    forms: list[Sequence[Polynomial]] = []
    for p in work.other_primes(6):
        work.tell(f"the same modulo {p}")
        other = work.interpolation(p)
        if not other.reach(top):
            work.limit = work.limit or other.limit
            work.lacks("agreement with a second prime: a limit came first")
            return
        _say_interpolated(work, other.hilbert_function, other.counts, p)
        if not primes:
            _say_interpolated(work, found.hilbert_function[: top + 1], work.counts, work.prime)
        if other.counts != work.counts or other.span.basis != work.span.basis:
            if _smaller(other.hilbert_function, found.hilbert_function[: top + 1]):
                continue  # ranks modulo p never exceed those over QQ: the other prime is the unlucky one
            work.lacks(f"F_{work.prime} and F_{p} disagree: one of the primes is unlucky, use a larger one")
            work.unlucky = True
            return
        systems.append(other.polynomials)
        forms.append(as_polynomials(other.span))
        primes.append(p)
        if _lift(work, systems, forms, primes):
            break
    if work.lifted is None:
        work.lacks("the equations could not be lifted to QQ from six primes")
        return
    _check_lift(work)


def _smaller(ranks: Sequence[int], others: Sequence[int]) -> bool:
    return all(a <= b for a, b in zip(ranks, others, strict=False)) and list(ranks) != list(others)


def _say_interpolated(work: Work, ranks: Sequence[int], counts: Mapping[int, int], p: int) -> None:
    """The Hilbert function up to the highest generator, and the generators, over one prime."""
    quantity = "hilbert_function_to_top_generator"
    work.say(quantity, list(ranks), "modular", accounting.MONOMIAL_RANKS, prime=p)
    work.say_counts("modular", f"interpolation over F_{p}", counts, p)


def _lift(
    work: Work, systems: list[tuple[Polynomial, ...]], forms: list[Sequence[Polynomial]], primes: list[int]
) -> bool:
    order = [*primes, work.prime]
    work.lifted = lift_polynomials([*systems, work.polynomials], order)
    work.lifted_forms = lift_polynomials([*forms, as_polynomials(work.span)], order)
    if work.lifted is None or work.lifted_forms is None:
        work.lifted = None
    return work.lifted is not None


def lift_forms(work: Work) -> Sequence[Polynomial] | None:
    """The linear forms over QQ, from the span modulo several primes; None when these do not determine them."""
    primes: list[int] = []
    forms: list[Sequence[Polynomial]] = []
    for p in work.other_primes(6):
        span = work.image.span(np.random.default_rng(work.seed), p)
        primes.append(p)
        forms.append(as_polynomials(span))
        lifted = lift_polynomials([*forms, as_polynomials(work.span)], [*primes, work.prime])
        if lifted is not None:
            return lifted
    return None


def _check_lift(work: Work) -> None:
    """Fresh points over a second prime; for QQ exact substitution into the coordinates as integer polynomials."""
    assert work.lifted is not None
    p = work.other_primes(9)[-1]
    residues = [reduce_polynomial(f, p) for f in work.lifted]
    check = accounting.vanish_at_fresh_points(residues, work.image, work.span, p, work.seed)
    work.evidence.append(check)
    if check.value:
        work.shows(f"lifted to QQ, the equations vanish at fresh points over F_{p}")
    if not work.rational:
        work.proved = False
        return
    work.tell("exact substitution")
    exact = substitute(work)
    if exact is None:
        work.lacks(
            "that the lifted equations vanish identically: no exact substitution (too many terms, or constraints)"
        )
        work.proved = False
        return
    work.proved = work.proved and exact and _minimal(work)


def _minimal(work: Work) -> bool:
    """Whether the generators are minimal over QQ: those of lower degree generate no more there than over F_p.

    In degree k they generate a space of dimension at least (all equations) - (new ones), its dimension over F_p; the
    exact rank over QQ shows that it is not larger.
    """
    by_degree: dict[int, list[Polynomial]] = {}
    for f in work.lifted or ():
        by_degree.setdefault(sum(next(iter(f))), []).append(f)
    n = work.span.dim
    for degree in sorted(by_degree)[1:]:
        total = comb(n + degree - 1, degree)
        if total > _MOST_COLUMNS:
            work.lacks(
                f"that the generators of degree {degree} are minimal over QQ (they are over F_{work.prime})"
            )
            return False
        lower = [f for k, group in by_degree.items() if k < degree for f in group]
        expected = total - work.hilbert_function[degree] - len(by_degree[degree])
        if generated_rank(lower, degree, n) != expected:
            work.lacks(f"that the generators of degree {degree} are minimal over QQ: fewer suffice")
            return False
    work.shows("over QQ no generator can be left out (exact ranks)")
    return True


def substitute(work: Work) -> bool | None:
    """Whether every lifted equation vanishes identically on the parametrization, with the evidence; None when out of reach."""
    coordinates = work.image.polynomials
    if coordinates is None or work.lifted is None or work.lifted_forms is None:
        return None
    chosen = [coordinates[i] for i in work.span.basis]
    try:
        exact = all(vanishes_exactly(f, chosen, work.asking.clock) for f in work.lifted) and all(
            vanishes_exactly(f, coordinates, work.asking.clock) for f in work.lifted_forms
        )
    except LimitReached as reached:
        work.limit = work.limit or reached.reason
        return None
    method = "exact substitution of the coordinates over ZZ"
    work.say("vanishing", exact, "substitution", method, prime=None, certainty=Certainty.PROVED)
    if exact:
        work.evidence += [
            replace(e, field="QQ", method=f"{e.method}; over QQ it is at most what it is modulo p")
            for e in work.evidence
            if (e.quantity, e.relation, e.witness) == ("image_dim", "<=", "macaulay2")
        ]
        work.shows("over QQ every equation vanishes identically on the parametrization (exact substitution)")
    return exact
