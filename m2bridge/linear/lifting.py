"""From residues to rational numbers."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, isqrt


def rational(residue: int, modulus: int) -> Fraction | None:
    """The fraction a/b with a = residue * b mod modulus and |a|, b <= sqrt(modulus/2), or None; it is unique.

    >>> rational(pow(3, -1, 10007) * -2 % 10007, 10007)
    Fraction(-2, 3)
    """
    bound = isqrt(modulus // 2)
    r0, r1, t0, t1 = modulus, residue % modulus, 0, 1
    while r1 > bound:
        q = r0 // r1
        r0, r1, t0, t1 = r1, r0 - q * r1, t1, t0 - q * t1
    if t1 == 0 or abs(t1) > bound or gcd(r1, abs(t1)) != 1:
        return None
    return Fraction(r1, t1)
