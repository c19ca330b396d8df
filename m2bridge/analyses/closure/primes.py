"""Analyses stage, closure: the primes that are used besides the user's."""

from __future__ import annotations

from flint import fmpz


def primes_below(start: int, *, count: int, without: int = 0) -> list[int]:
    """The `count` largest primes up to `start`, one of them left out.

    >>> primes_below(30, count=3, without=23)
    [29, 19, 17]
    """
    found: list[int] = []
    candidate = start
    while len(found) < count and candidate > 1:
        if candidate != without and fmpz(candidate).is_prime():
            found.append(candidate)
        candidate -= 1
    return found
