"""One polynomial equation, with integer coefficients, as it is kept in results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any

Monomial = tuple[int, ...]
"""Non-decreasing indices of variables, with repetition: (0, 0, 3) is z0^2*z3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """A polynomial in z0, z1, ... with integer coefficients (balanced residues when it is over F_p).

    `degree` is the degree of the homogeneous equation it comes from.

    >>> Equation(degree=2, coefficients=(1, -2), monomials=((0, 3), (1, 1))).text()
    'z0*z3 - 2*z1^2'
    """

    degree: int
    coefficients: tuple[int, ...]
    monomials: tuple[Monomial, ...]

    def at(self, values: Sequence[Any]) -> Any:
        """The value at a point."""
        total: Any = 0
        for coefficient, monomial in zip(self.coefficients, self.monomials, strict=True):
            term: Any = coefficient
            for i in monomial:
                term = term * values[i]
            total = total + term
        return total

    def gradient(self, values: Sequence[Any]) -> list[Any]:
        """The partial derivatives at a point, one for each of its coordinates."""
        row: list[Any] = [0] * len(values)
        for coefficient, monomial in zip(self.coefficients, self.monomials, strict=True):
            if sum(1 for i in monomial if values[i] == 0) > 1:
                continue  # every partial derivative keeps a factor that vanishes here
            for i, power in _powers(monomial):
                term: Any = coefficient * power
                rest = list(monomial)
                rest.remove(i)
                for j in rest:
                    term = term * values[j]
                row[i] = row[i] + term
        return row

    def relative_residual(self, values: Sequence[float]) -> float:
        """Absolute value at a real point, divided by the sum of the terms' absolute values (0 when all terms vanish)."""
        size = Equation(
            degree=self.degree,
            coefficients=tuple(abs(c) for c in self.coefficients),
            monomials=self.monomials,
        ).at([abs(v) for v in values])
        return abs(float(self.at(values))) / float(size) if size else 0.0

    def text(self, *, power: str = "^") -> str:
        """Plain text, as Macaulay2, Singular and (with ``power="**"``) Python read it."""
        return self._written("*", lambda i, e: f"z{i}" if e == 1 else f"z{i}{power}{e}")

    def latex(self) -> str:
        """LaTeX source."""
        return self._written("", lambda i, e: f"z_{{{i}}}" if e == 1 else f"z_{{{i}}}^{{{e}}}")

    def _written(self, times: str, factor: Callable[[int, int], str]) -> str:
        text = ""
        for coefficient, monomial in zip(self.coefficients, self.monomials, strict=True):
            factors = [factor(i, e) for i, e in _powers(monomial)]
            number = [] if abs(coefficient) == 1 and factors else [str(abs(coefficient))]
            signs = ("-", "") if not text else (" - ", " + ")
            text += signs[coefficient >= 0] + times.join(number + factors)
        return text or "0"


def _powers(monomial: Monomial) -> list[tuple[int, int]]:
    return sorted(Counter(monomial).items())


def equation(
    terms: Mapping[tuple[int, ...], int | Fraction] | Iterable[tuple[tuple[int, ...], int | Fraction]],
    names: Sequence[int],
    *,
    p: int = 0,
    constant: int | None = None,
) -> Equation:
    """An equation from exponents in the span's coordinates.

    Parameters
    ----------
    terms: exponents -> coefficient; a fraction over QQ, a residue over F_p.
    names: the index of each of the span's coordinates among all coordinates.
    p: the characteristic; coefficients are balanced around 0 when positive, cleared of denominators and content when 0.
    constant: index of the homogenizing coordinate, to be set to 1.
    """
    pairs = sorted(dict(terms).items(), reverse=True)
    if p:
        values = [int(c) % p for _, c in pairs]
        coefficients = [c if 2 * c <= p else c - p for c in values]
    else:
        fractions = [Fraction(c) for _, c in pairs]
        common = lcm(*(f.denominator for f in fractions)) if fractions else 1
        coefficients = [int(f * common) for f in fractions]
        content = gcd(*coefficients) if coefficients else 1
        coefficients = [c // content for c in coefficients]
    if coefficients and coefficients[0] < 0:
        coefficients = [-c for c in coefficients]
    monomials = tuple(
        tuple(names[i] for i, e in enumerate(exponents) for _ in range(e) if names[i] != constant)
        for exponents, _ in pairs
    )
    degree = max((sum(exponents) for exponents, _ in pairs), default=0)
    return Equation(degree=degree, coefficients=tuple(coefficients), monomials=monomials)
