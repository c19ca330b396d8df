"""Analyses stage, closure: the user's prime and those that are used besides."""

from __future__ import annotations

from m2bridge.errors import InputError
from m2bridge.linear.residues import LARGEST_BLAS_PRIME, is_prime

DEFAULT_PRIME = 32003
LARGEST_M2_PRIME = 32749
"""Macaulay2 1.21 computes Groebner bases over ZZ/p for p up to this one."""


def check_prime(p: int, option: str = "--prime") -> None:
    """Refuse a modulus that is not a prime in the range where float64 products are exact; `option` is what set it."""
    if p >= LARGEST_BLAS_PRIME or not is_prime(p):
        raise InputError(f"{option} {p}: a prime below {LARGEST_BLAS_PRIME} is needed here")


def primes_below(start: int, *, count: int, without: int = 0) -> list[int]:
    """The `count` largest primes up to `start`, one of them left out.

    >>> primes_below(30, count=3, without=23)
    [29, 19, 17]
    """
    found: list[int] = []
    candidate = start
    while len(found) < count and candidate > 1:
        if candidate != without and is_prime(candidate):
            found.append(candidate)
        candidate -= 1
    return found
