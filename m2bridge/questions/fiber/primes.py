"""Primes at which a point stays the point it is.

A prime that divides a denominator, makes a non-zero entry vanish or lowers a rank would ask about another point: then another
prime is taken, and said so.
"""

from __future__ import annotations

from itertools import chain, islice

import numpy as np

from m2bridge.errors import InputError
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import (
    LARGE_PRIME,
    LARGEST_MACAULAY2_PRIME,
    LEAST_PRIME,
    check_prime,
    given_numbers,
    is_prime,
)
from m2bridge.models import Model
from m2bridge.questions import over_q
from m2bridge.questions.fiber.points import Point, residues


def good_prime(point: Point, p: int) -> tuple[int, str | None]:
    """`p`, or the next smaller prime at which the point keeps its entries and ranks, with a note that says so."""
    largest = LARGEST_MACAULAY2_PRIME
    check_prime(p, least=LEAST_PRIME, most=largest)
    first = _objection(point, p)
    if first is None:
        return p, None
    for q in chain(range(p - 1, LEAST_PRIME - 1, -1), range(largest, p, -1)):
        if is_prime(q) and _objection(point, q) is None:
            return q, f"modulo {p} {first}: computed modulo {q} instead"
    raise InputError(
        f"modulo {p} {first}, and no other prime up to {largest} keeps the point: use smaller weights"
    )


def other_primes(point: Point, p: int, count: int) -> list[int]:
    """Other primes at which the point keeps its entries and ranks, the largest first."""
    below = (q for q in range(LARGEST_MACAULAY2_PRIME, LEAST_PRIME, -1) if q != p and is_prime(q))
    return list(islice((q for q in below if _objection(point, q) is None), count))


def second_prime(point: Point, p: int) -> int | None:
    """Another prime at which the point keeps its entries and ranks."""
    return next(iter(other_primes(point, p, 1)), None)


def rank_prime(model: Model, point: Point | None = None) -> int:
    """The largest prime up to `LARGE_PRIME` that divides nothing in the model and leaves the point what it is."""
    numbers = given_numbers(model)
    for p in range(LARGE_PRIME, LEAST_PRIME, -2):
        if is_prime(p) and numbers.divided_by(p) is None and (point is None or _objection(point, p) is None):
            return p
    raise InputError("no prime below 2^23 keeps the point: use smaller weights")


def _objection(point: Point, p: int) -> str | None:
    if (found := given_numbers(point.model).divided_by(p)) is not None:
        return f"the number {found} of the map vanishes or does not exist"
    for name, array in point.weights.items():
        for index, x in np.ndenumerate(array):
            if x and (x.numerator % p == 0 or x.denominator % p == 0):
                what = "vanishes" if x.numerator % p == 0 else "does not exist"
                return f"the entry {name}{[i + 1 for i in index]} = {x} {what}"
        matrix = array.ndim == 2 and array.size <= 400
        if matrix and rank_mod(residues(array, p), p) != over_q.rank(array):
            return f"the rank of {name} is smaller"
    return None
