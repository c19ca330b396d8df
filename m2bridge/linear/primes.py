"""The primes that computations use, and how one is chosen that divides nothing the user gave.

Modulo a prime that divides a coefficient or a weight, the user's map or point is another one. So a default prime steps aside
silently, and a prime that the user chose is refused with a message that names another.

Over F_p, `given_numbers` is what the user wrote, `prime_for` the prime to compute with, `primes_below` are further ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from flint import fmpz

from m2bridge.errors import InputError

MACAULAY2_PRIME = 32003  # the default where Macaulay2 computes Groebner bases
LARGEST_MACAULAY2_PRIME = 32749  # Macaulay2 1.21 computes Groebner bases over ZZ/p for p up to this one
LARGE_PRIME = 8_388_593  # the largest prime below 2^23: the default for ranks
BLAS_BELOW = 2**23  # float64 holds sums of hundreds of products of residues exactly
MATRICES_BELOW = 2**63  # FLINT eliminates matrices of integers modulo these


def is_prime(n: int) -> bool:
    """Whether n is prime, proved.

    >>> is_prime(8388593), is_prime(8388593 * 2 + 1), is_prime(32003)
    (True, False, True)
    """
    return n > 1 and bool(fmpz(n).is_prime())


def check_prime(p: int, option: str = "--prime", *, below: int = BLAS_BELOW) -> int:
    """p, when it is a prime below a bound, by default one for which float64 products are exact; `option` is what set it."""
    if not isinstance(p, (int, np.integer)) or isinstance(p, bool):
        raise InputError(f"{option} must be an integer, not {p!r}")
    if p >= below or not is_prime(int(p)):
        reason = f"{p} is too large" if p >= below else f"{p} is not prime"
        raise InputError(f"{option} {p}: a prime below {below} is needed here; {reason}")
    return int(p)


class GivenNumbers(frozenset[int | Fraction]):
    """All numbers that a user gave.

    >>> GivenNumbers([Fraction(6, 35), 8, 0]).divided_by(7)
    Fraction(6, 35)
    >>> GivenNumbers([Fraction(6, 35), 8, 0]).divided_by(11) is None
    True
    """

    def __or__(self, other: Iterable[int | Fraction]) -> GivenNumbers:  # type: ignore[override]
        return GivenNumbers({*self, *other})

    def divided_by(self, p: int) -> int | Fraction | None:
        """A number, not 0, whose numerator or denominator p divides; None when there is none."""
        return next((x for x in self if (x and x.numerator % p == 0) or x.denominator % p == 0), None)


NOTHING = GivenNumbers()


def numbers_in(polynomials: Iterable[Mapping[tuple[int, ...], int | Fraction]]) -> GivenNumbers:
    """All coefficients of polynomials, and exponents: a prime that divides an exponent makes a derivative vanish."""
    found: list[int | Fraction] = []
    for polynomial in polynomials:
        found += [*polynomial.values(), *{e for exponents in polynomial for e in exponents}]
    return GivenNumbers(found)


def given_numbers(model: Any = None, weights: Mapping[str, Any] | None = None) -> GivenNumbers:
    """All numbers in a model and in weights: coefficients and exponents of its polynomials, entries of matrices.

    A built-in family has no numbers of its own; those of a user's network are the constants and exponents of its program.
    """
    if getattr(model, "family", None) == "program":
        own: GivenNumbers = model.program.numbers
    else:
        fractions = getattr(model, "fractions", None)
        terms = (
            getattr(model, "polynomials", ())
            if fractions is None
            else (f for pair in fractions for f in pair)
        )
        own = numbers_in(map(dict, terms))
    arrays = (np.asarray(array, dtype=object).ravel() for array in (weights or {}).values())
    return own | GivenNumbers(x for array in arrays for x in array)


def primes_below(start: int, *, count: int, without: int = 0, numbers: GivenNumbers = NOTHING) -> list[int]:
    """The `count` largest primes from `start` down that divide nothing given, one of them left out; fewer if there are no more.

    >>> primes_below(30, count=3, without=23)
    [29, 19, 17]
    >>> primes_below(30, count=2, numbers=GivenNumbers([Fraction(1, 29)]))
    [23, 19]
    """
    primes = (p for p in range(start, 1, -1) if p != without and is_prime(p))
    return list(islice((p for p in primes if numbers.divided_by(p) is None), count))


def prime_for(numbers: GivenNumbers, *, chosen: int | None, default: int) -> int:
    """The prime to compute with: the chosen one, or else the default or the next below it that divides nothing given.

    A chosen prime that divides something that was given is refused; the message names a prime that does not.

    >>> prime_for(GivenNumbers([32003]), chosen=None, default=32003)
    31991
    """
    if chosen is None:
        return primes_below(default, count=1, numbers=numbers)[0]
    chosen = int(chosen)
    bad = numbers.divided_by(chosen)
    if bad is not None:
        other = primes_below(default, count=1, numbers=numbers)[0]
        shown = str(bad) if len(str(bad)) <= 40 else f"{str(bad)[:37]}..."
        raise InputError(
            f"--prime {chosen} divides the number {shown} that was given, and modulo {chosen} that is another "
            f"question; --prime {other} divides nothing that was given"
        )
    return chosen
