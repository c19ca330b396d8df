"""Choose primes p for computations over F_p that divide none of the numbers in the user's input.

If p divides the numerator or the denominator of a coefficient or a weight, then reduction modulo p changes the map or the point,
or is not defined. A default prime is then replaced by a smaller one; a prime chosen by the user is rejected with an error that
names a suitable prime.

:func:`given_numbers` collects the numbers of the input, :func:`prime_for` chooses the prime, :func:`primes_below` lists others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any, Protocol

import numpy as np
from flint import fmpz

from m2bridge.errors import InputError

MACAULAY2_PRIME = 32003  # the default for Groebner bases in Macaulay2
LARGEST_MACAULAY2_PRIME = 32749  # the largest p for which Macaulay2 1.21 computes Groebner bases over ZZ/p
LARGE_PRIME = 8_388_593  # the largest prime below 2^23; the default for ranks
BLAS_BELOW = 2**23  # below this, float64 represents sums of hundreds of products of residues exactly
MATRICES_BELOW = 2**63  # below this, FLINT computes with matrices modulo p


def is_prime(n: int) -> bool:
    """Return whether n is prime (a proof, not a probabilistic test).

    >>> is_prime(8388593), is_prime(8388593 * 2 + 1), is_prime(32003)
    (True, False, True)
    """
    return n > 1 and bool(fmpz(n).is_prime())


def check_prime(p: int, option: str = "--prime", *, below: int = BLAS_BELOW) -> int:
    """Return p if it is a prime less than `below`; raise InputError otherwise.

    `option` names the source of p in the error message. With the default bound, float64 products of residues are exact.
    """
    if not isinstance(p, (int, np.integer)) or isinstance(p, bool):
        raise InputError(f"{option} must be an integer, not {p!r}")
    if p >= below or not is_prime(int(p)):
        reason = "too large" if p >= below else "not prime"
        raise InputError(f"{option} {p} is {reason}; a prime below {below} is required")
    return int(p)


class GivenNumbers(frozenset[int | Fraction]):
    """The set of numbers in the user's input.

    >>> GivenNumbers([Fraction(6, 35), 8, 0]).divided_by(7)
    Fraction(6, 35)
    >>> GivenNumbers([Fraction(6, 35), 8, 0]).divided_by(11) is None
    True
    """

    def __or__(self, other: Iterable[int | Fraction]) -> GivenNumbers:  # type: ignore[override]
        return GivenNumbers({*self, *other})

    def divided_by(self, p: int) -> int | Fraction | None:
        """Return a non-zero number whose numerator or denominator is divisible by p; None if there is none."""
        return next((x for x in self if (x and x.numerator % p == 0) or x.denominator % p == 0), None)


NOTHING = GivenNumbers()


def numbers_in(polynomials: Iterable[Mapping[tuple[int, ...], int | Fraction]]) -> GivenNumbers:
    """Collect the coefficients and the exponents of polynomials.

    Exponents are included because the derivative of x^e vanishes modulo a prime that divides e.
    """
    numbers: set[int | Fraction] = set()
    for polynomial in polynomials:
        numbers.update(polynomial.values())
        for exponents in polynomial:
            numbers.update(exponents)
    return GivenNumbers(numbers)


class HasNumbers(Protocol):
    """What is defined with numbers, such as a polynomial map with its coefficients."""

    @property
    def numbers(self) -> GivenNumbers: ...


def given_numbers(model: HasNumbers | None = None, weights: Mapping[str, Any] | None = None) -> GivenNumbers:
    """Collect the numbers in a model (coefficients and exponents) and in weights (entries of arrays)."""
    arrays = (np.asarray(array, dtype=object).ravel() for array in (weights or {}).values())
    entries = GivenNumbers(x for array in arrays for x in array)
    return entries if model is None else model.numbers | entries


def primes_below(start: int, *, count: int, without: int = 0, numbers: GivenNumbers = NOTHING) -> list[int]:
    """Return the `count` largest primes up to `start` that divide none of `numbers`, in decreasing order.

    The prime `without` is skipped. The list is shorter if there are fewer such primes.

    >>> primes_below(30, count=3, without=23)
    [29, 19, 17]
    >>> primes_below(30, count=2, numbers=GivenNumbers([Fraction(1, 29)]))
    [23, 19]
    """
    primes = (p for p in range(start, 1, -1) if p != without and is_prime(p))
    return list(islice((p for p in primes if numbers.divided_by(p) is None), count))


def prime_for(numbers: GivenNumbers, *, chosen: int | None, default: int) -> int:
    """Return the prime to compute with: `chosen`, or the largest prime up to `default` that divides none of `numbers`.

    Raises InputError if `chosen` divides one of `numbers`; the message names a prime that does not.

    >>> prime_for(GivenNumbers([32003]), chosen=None, default=32003)
    31991
    """
    if chosen is None:
        return primes_below(default, count=1, numbers=numbers)[0]
    chosen = int(chosen)
    multiple = numbers.divided_by(chosen)
    if multiple is not None:
        other = primes_below(default, count=1, numbers=numbers)[0]
        shown = str(multiple) if len(str(multiple)) <= 40 else f"{str(multiple)[:37]}..."
        raise InputError(
            f"--prime {chosen} divides the number {shown} in the input, so the problem modulo {chosen} is a "
            f"different one; use for example --prime {other}"
        )
    return chosen
