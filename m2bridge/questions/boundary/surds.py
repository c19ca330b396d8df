"""Numbers x + y√D with rational x, y and an integer D: the exact weights of rational points.

A rational point whose attention and value matrix both have rank one is the product of two linear forms that are defined over
QQ(√D): real when D > 0, a complex-conjugate pair when D < 0. The network's one definition runs over object arrays of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

Rational = int | Fraction
_TRIAL = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Surd:
    """The number rational + surd * √radicand.

    Examples
    --------
    >>> w = Surd(1, 2, 5)
    >>> str(w), str(w * w), w * w.conjugate() == -19
    ('1+2*sqrt(5)', '21+4*sqrt(5)', True)
    """

    rational: Rational
    surd: Rational = 0
    radicand: int = 0

    def _common(self, other: Surd) -> int:
        if not self.surd or not other.surd or self.radicand == other.radicand:
            return self.radicand if self.surd else other.radicand
        raise ValueError(f"√{self.radicand} and √{other.radicand} are not in one quadratic field")

    def __add__(self, other: Any) -> Surd:
        other = as_surd(other)
        return Surd(self.rational + other.rational, self.surd + other.surd, self._common(other))

    def __mul__(self, other: Any) -> Surd:
        other = as_surd(other)
        radicand = self._common(other)
        return Surd(
            self.rational * other.rational + self.surd * other.surd * radicand,
            self.rational * other.surd + self.surd * other.rational,
            radicand,
        )

    def __neg__(self) -> Surd:
        return Surd(-self.rational, -self.surd, self.radicand)

    def __sub__(self, other: Any) -> Surd:
        return self + -as_surd(other)

    def __rsub__(self, other: Any) -> Surd:
        return as_surd(other) - self

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (int, Fraction, Surd)):
            return NotImplemented
        other = as_surd(other)
        if self.rational != other.rational or self.surd != other.surd:
            return False
        return not self.surd or self.radicand == other.radicand

    def __hash__(self) -> int:
        return hash((self.rational, self.surd, self.radicand if self.surd else 0))

    def conjugate(self) -> Surd:
        """rational - surd * √radicand; the complex conjugate when the radicand is negative."""
        return Surd(self.rational, -self.surd, self.radicand)

    @property
    def is_real(self) -> bool:
        return not self.surd or self.radicand >= 0

    def __complex__(self) -> complex:
        root = complex(abs(self.radicand)) ** 0.5 * (1j if self.radicand < 0 else 1)
        return complex(self.rational) + float(self.surd) * root

    def __float__(self) -> float:
        if not self.is_real:
            raise ValueError(f"{self} is not real")
        return complex(self).real

    def __str__(self) -> str:
        if not self.surd:
            return str(self.rational)
        size = abs(self.surd)
        root = f"{'' if size == 1 else f'{size}*'}sqrt({self.radicand})"
        sign = "-" if self.surd < 0 else "+" if self.rational else ""
        return f"{self.rational if self.rational else ''}{sign}{root}"


def as_surd(value: Any) -> Surd:
    """A rational number, or a surd, as a surd."""
    return value if isinstance(value, Surd) else Surd(value)


def square_root(value: Rational) -> Surd:
    """A square root of a rational number, as a multiple of √D with an integer D free of small square factors.

    >>> str(square_root(Fraction(8, 9))), str(square_root(Fraction(4, 9))), str(square_root(-12))
    ('2/3*sqrt(2)', '2/3', '2*sqrt(-3)')
    """
    value = Fraction(value)
    radicand, factor = abs(value.numerator * value.denominator), Fraction(1, value.denominator)
    for prime in range(2, _TRIAL):  # composite trial divisors find nothing that their factors left
        while radicand and radicand % (prime * prime) == 0:
            radicand //= prime * prime
            factor *= prime
    root = isqrt(radicand)
    if root * root == radicand:
        radicand, factor = 1, factor * root
    if value < 0:
        return Surd(0, factor, -radicand)
    return Surd(0, factor, radicand) if radicand != 1 else Surd(factor)
