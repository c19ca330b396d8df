"""From equations over F_p to equations over QQ: the same ones over other primes, their lift, and its exact check.

Let I be the ideal of the lifted equations, P that of the closure over QQ, and a bar the same modulo p. When the equations vanish
exactly, I lies in P. In every degree the Hilbert functions satisfy H(P) >= H(P bar), because the rank of the monomials in the
coordinates is not smaller over QQ, and H(I) <= H(I bar), because the rank of what the equations generate is not smaller. So
I bar = P bar gives H(P) >= H(P bar) = H(I bar) >= H(I) >= H(P): the equations are complete over QQ too, and dimension and
degree are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb, lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.frontends.polynomials import Polynomial, exponents_of, variables_of
from m2bridge.limits import Clock, LimitReached
from m2bridge.linear.modular import Interruption, echelon_mod, rank_over_q
from m2bridge.linear.residues import rational, residue
from m2bridge.questions.closure.accounting import MONOMIAL_RANKS, vanish_at_fresh_points
from m2bridge.questions.closure.interpolation import Interpolation

if TYPE_CHECKING:
    from m2bridge.questions.closure import Work

_MOST_COLUMNS = 1500
_PRIMES = 6


def combine(residues: Sequence[int], moduli: Sequence[int]) -> tuple[int, int]:
    """The residue modulo the product of coprime moduli (Chinese remainders), with the product.

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
    """Rational polynomials from their residues modulo several primes, or None when these do not determine them.

    `systems[k]` lists the same polynomials modulo `primes[k]`, normalised alike. The last prime is only used to check what
    the others give.
    """
    if len(primes) < 2 or len({len(system) for system in systems}) != 1:
        return None
    lifted: list[dict[tuple[int, ...], Fraction]] = []
    for versions in zip(*systems, strict=True):
        polynomial: dict[tuple[int, ...], Fraction] = {}
        for monomial in set().union(*versions):
            known = [int(f.get(monomial, 0)) for f in versions]
            fraction = rational(*combine(known[:-1], primes[:-1]))
            if fraction is None or fraction.denominator % primes[-1] == 0:
                return None
            if residue(fraction, primes[-1]) != known[-1]:
                return None
            polynomial[monomial] = fraction
        lifted.append(polynomial)
    return lifted


def reduce_polynomial(polynomial: Polynomial, p: int) -> dict[tuple[int, ...], int]:
    """Residues of a rational polynomial modulo a prime that divides no denominator."""
    return {m: r for m, c in polynomial.items() if (r := residue(c, p))}


def vanishes_exactly(polynomial: Polynomial, coordinates: Sequence[Any], clock: Clock | None = None) -> bool:
    """Whether a rational polynomial in the coordinates is the zero polynomial in the weights: exact substitution over ZZ.

    `coordinates` are python-flint polynomials in the weights, one for each variable of `polynomial`.
    """
    common = lcm(*(c.denominator for c in polynomial.values()))
    total = coordinates[0] * 0
    products: dict[tuple[int, ...], Any] = {(): total + 1}

    def product(chosen: tuple[int, ...]) -> Any:
        if chosen not in products:
            products[chosen] = product(chosen[:-1]) * coordinates[chosen[-1]]
        return products[chosen]

    for monomial, coefficient in polynomial.items():
        if clock is not None:
            clock.check()
        total = total + product(variables_of(monomial)) * int(coefficient * common)
    return bool(total == 0)


def generated_rank(
    polynomials: Sequence[Polynomial], degree: int, count: int, p: int = 0, check: Interruption | None = None
) -> int:
    """The dimension of what homogeneous polynomials in `count` variables generate in a degree: over F_p, or exactly over QQ.

    >>> generated_rank([{(2, 0): Fraction(1)}, {(1, 1): Fraction(1, 2)}], 3, 2)
    3
    """
    rows: list[dict[tuple[int, ...], int]] = []
    for f in polynomials:
        common, gap = lcm(*(c.denominator for c in f.values())), degree - sum(next(iter(f)))
        whole = [(variables_of(m), int(c * common)) for m, c in f.items()]
        for shift in combinations_with_replacement(range(count), gap) if gap >= 0 else ():
            rows.append({exponents_of((*m, *shift), count): c for m, c in whole})
    columns = {m: i for i, m in enumerate(dict.fromkeys(m for row in rows for m in row))}
    table = np.zeros((len(rows), len(columns)), dtype=np.int64 if p else object)
    for place, row in zip(table, rows, strict=True):
        place[[columns[m] for m in row]] = list(row.values())
    return len(echelon_mod(table, p, check)[1]) if p and rows else rank_over_q(table)


def compare_primes(work: Work, found: Interpolation) -> None:
    """Compare with other primes; an unlucky one shows by smaller ranks. Lift, and check the lift exactly, for QQ."""
    top = max(work.counts, default=1)
    ranks = found.hilbert_function[: top + 1]
    others: list[Interpolation] = []
    for number, p in enumerate(work.other_primes(_PRIMES) if work.limit is None else ()):
        work.context.report_progress(f"the same modulo {p}")
        other = work.interpolation(p)
        if not other.reach(top):
            work.limit = work.limit or other.limit
            break
        _say_interpolated(work, other.hilbert_function, other.counts, p)
        if number == 0:
            _say_interpolated(work, ranks, work.counts, work.prime)
        if other.counts != work.counts or other.span.basis != work.span.basis:
            if _smaller(other.hilbert_function, ranks):
                continue  # ranks modulo p never exceed those over QQ: the other prime is the unlucky one
            work.lacks(f"F_{work.prime} and F_{p} disagree: one of the primes is unlucky, use a larger one")
            work.unlucky = True
            return
        others.append(other)
        primes = [*(o.p for o in others), work.prime]
        forms = lift_polynomials([*(o.span.polynomials for o in others), work.span.polynomials], primes)
        lifted = lift_polynomials([*(o.polynomials for o in others), work.polynomials], primes)
        if forms is not None and lifted is not None:
            work.lifted, work.lifted_forms = lifted, forms
            break
    if work.limit is not None:
        work.lacks("agreement with a second prime: a limit came first")
    elif work.lifted is None:
        work.lacks("the equations could not be lifted to QQ from six primes")
    else:
        _check_lift(work, work.lifted)


def _smaller(ranks: Sequence[int], others: Sequence[int]) -> bool:
    return all(a <= b for a, b in zip(ranks, others, strict=False)) and list(ranks) != list(others)


def _say_interpolated(work: Work, ranks: Sequence[int], counts: Mapping[int, int], p: int) -> None:
    """The Hilbert function up to the highest generator, and the generators, over one prime."""
    work.say("hilbert_function_to_top_generator", list(ranks), "modular", MONOMIAL_RANKS, prime=p)
    work.say_counts("modular", f"interpolation over F_{p}", counts, p)


def lift_forms(work: Work) -> Sequence[Polynomial] | None:
    """The linear forms over QQ, from the span modulo several primes; None when these do not determine them."""
    primes, forms = [work.prime], [work.span.polynomials]
    for p in work.other_primes(_PRIMES):
        primes.insert(-1, p)
        forms.insert(-1, work.image.span(np.random.default_rng(work.context.seed), p).polynomials)
        if (lifted := lift_polynomials(forms, primes)) is not None:
            return lifted
    return None


def _check_lift(work: Work, lifted: Sequence[Polynomial]) -> None:
    """Fresh points over a second prime; for QQ exact substitution into the coordinates as integer polynomials."""
    p = work.other_primes(9)[-1]
    if vanish_at_fresh_points(work, [reduce_polynomial(f, p) for f in lifted], p):
        work.shows(f"lifted to QQ, the equations vanish at fresh points over F_{p}")
    if work.dense:
        return
    exact = None
    if work.rational:
        work.context.report_progress("exact substitution")
        exact = substitute(work)
        if exact is None:
            work.lacks("that the lifted equations vanish identically: no exact substitution (too many terms)")
    work.proved = work.proved and bool(exact) and _minimal(work, lifted)
    if work.proved:
        method = "Hilbert functions of the exact equations, between those of the image over F_p and over QQ"
        dim = work.cone_dim - work.image.homogenized
        for quantity, value in (("image_dim", dim), ("degree", work.degree)):
            work.say(
                quantity, value, "equations", method, certainty=Certainty.COMPUTED, prime=None, field="QQ"
            )


def _minimal(work: Work, lifted: Sequence[Polynomial]) -> bool:
    """Whether the generators are minimal over QQ: those of lower degree generate no more there than over F_p.

    In degree k they generate a space of dimension at least (all equations) - (new ones), its dimension over F_p; the
    exact rank over QQ shows that it is not larger.
    """
    n, first = work.span.dim, min(work.counts, default=0)
    for degree in (k for k in sorted(work.counts) if k > first):
        total = comb(n + degree - 1, degree)
        if total > _MOST_COLUMNS:
            work.lacks(
                f"that the generators of degree {degree} are minimal over QQ (they are over F_{work.prime})"
            )
            return False
        lower = [f for f in lifted if sum(next(iter(f))) < degree]
        expected = total - work.hilbert_function[degree] - work.counts[degree]
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
    clock, chosen = work.context.clock, [coordinates[i] for i in work.span.basis]
    try:
        exact = all(vanishes_exactly(f, chosen, clock) for f in work.lifted) and all(
            vanishes_exactly(f, coordinates, clock) for f in work.lifted_forms
        )
    except LimitReached as reached:
        work.limit = work.limit or reached.reason
        return None
    method = "exact substitution of the coordinates over ZZ"
    work.say("vanishing", exact, "substitution", method, prime=None, certainty=Certainty.PROVED)
    if exact:
        work.evidence += [
            replace(e, field="QQ", certainty=Certainty.COMPUTED, method=f"{e.method}; over QQ it is at most what it is modulo p")
            for e in work.evidence if (e.quantity, e.relation, e.witness) == ("image_dim", "<=", "macaulay2")
        ]  # fmt: skip
        work.shows("over QQ every equation vanishes identically on the parametrization (exact substitution)")
    return exact
