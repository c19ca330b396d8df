"""Analyses stage, fiber: primes at which a point stays the point it is.

A prime that divides a denominator, makes a non-zero entry vanish or lowers a rank would ask about another point: then another
prime is taken, and said so.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import numpy as np

from m2bridge.errors import InputError
from m2bridge.linear.integer import rank_over_q
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import is_prime
from m2bridge.models import Model
from m2bridge.questions.fiber.points import Point, integers_of, residues

BIG_PRIME = 8_388_593
"""The largest prime below 2^23: ranks modulo such a prime are exact in float64 arithmetic."""
DEFAULT_PRIME = 32003
SMALLEST_PRIME = 101
LARGEST_PRIME = 32749
"""Macaulay2 1.21 computes Groebner bases over ZZ/p for p up to this one."""


def good_prime(point: Point, p: int) -> tuple[int, str | None]:
    """`p`, or the next smaller prime at which the point keeps its entries and ranks, with a note that says so."""
    if not is_prime(p) or not SMALLEST_PRIME <= p <= LARGEST_PRIME:
        raise InputError(
            f"--prime {p}: fibers are computed modulo a prime from {SMALLEST_PRIME} to {LARGEST_PRIME}"
        )
    first = _objection(point, p)
    if first is None:
        return p, None
    for candidate in range(p - 1, SMALLEST_PRIME - 1, -1):
        if is_prime(candidate) and _objection(point, candidate) is None:
            return candidate, f"modulo {p} {first}: computed modulo {candidate} instead"
    for candidate in range(LARGEST_PRIME, p, -1):
        if is_prime(candidate) and _objection(point, candidate) is None:
            return candidate, f"modulo {p} {first}: computed modulo {candidate} instead"
    raise InputError(
        f"modulo {p} {first}, and no other prime up to {LARGEST_PRIME} keeps the point: use smaller weights"
    )


def other_primes(point: Point, p: int, count: int) -> list[int]:
    """Other primes at which the point keeps its entries and ranks, the largest first."""
    below = (q for q in range(LARGEST_PRIME, SMALLEST_PRIME, -1) if q != p and is_prime(q))
    return list(islice((q for q in below if _objection(point, q) is None), count))


def second_prime(point: Point, p: int) -> int | None:
    """Another prime at which the point keeps its entries and ranks."""
    return next(iter(other_primes(point, p, 1)), None)


def rank_prime(model: Model, point: Point | None = None) -> int:
    """The largest prime up to `BIG_PRIME` that divides nothing in the model and leaves the point what it is."""
    for p in range(BIG_PRIME, SMALLEST_PRIME, -2):
        if is_prime(p) and not _divides_the_map(model, p) and (point is None or _objection(point, p) is None):
            return p
    raise InputError("no prime below 2^23 keeps the point: use smaller weights")


def _divides_the_map(model: Model, p: int) -> str | None:
    """A coefficient or an exponent of a map of one's own that p divides."""
    for part in (getattr(model, "polynomials", ()), getattr(model, "constraints", ())):
        for terms in part:
            for exponents, c in terms:
                fraction = Fraction(c)
                if fraction.numerator % p == 0 or fraction.denominator % p == 0:
                    return f"the coefficient {fraction} vanishes or does not exist"
                if any(e and e % p == 0 for e in exponents):
                    return "a derivative vanishes"
    return None


def _objection(point: Point, p: int) -> str | None:
    if (found := _divides_the_map(point.model, p)) is not None:
        return found
    for name, array in point.weights.items():
        for index, x in np.ndenumerate(array):
            place = f"{name}{[i + 1 for i in index]}"
            if x.denominator % p == 0:
                return f"the entry {place} = {x} does not exist"
            if x and x.numerator % p == 0:
                return f"the entry {place} = {x} vanishes"
        if (
            array.ndim == 2
            and array.size <= 400
            and rank_mod(residues(array, p), p) != rank_over_q(integers_of(array))
        ):
            return f"the rank of {name} is smaller"
    return None
