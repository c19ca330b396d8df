"""Hilbert series of closures and ideals, and the dimension of an ideal in one degree.

The coefficient of T^s counts the polynomials of degree at most s on the closure modulo those of degree less than s. For a cone
this is the Hilbert series of the homogeneous coordinate ring. If the image is not a cone, adding a coordinate that is equal to 1
on the image makes it one; that coordinate is not a zero divisor, so that the series of the closure is that of the cone times
1 - T.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations_with_replacement
from math import lcm

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.frontends.polynomials import Polynomial, exponents_of, polynomial_text, variables_of
from m2bridge.linear.modular import Interruption, echelon_mod, rank_over_q


@dataclass(frozen=True, slots=True, kw_only=True)
class HilbertSeries:
    """The series numerator(T) / (1 - T)^denominator_exponent; `numerator` lists the coefficients of T^0, T^1, ...

    >>> series = HilbertSeries(numerator=(1, 2), denominator_exponent=2, certainty=Certainty.PROVED)
    >>> series.text, series.coefficients(3)
    ('(1 + 2*T)/(1 - T)^2', (1, 4, 7, 10))
    """

    numerator: tuple[int, ...]
    denominator_exponent: int
    certainty: Certainty

    @property
    def text(self) -> str:
        """Return the series as a fraction, e.g. ``(1 + 2*T)/(1 - T)^2``.

        >>> HilbertSeries(numerator=(-1, 0, 2, -1), denominator_exponent=0, certainty=Certainty.PROVED).text
        '-1 + 2*T^2 - T^3'
        """
        terms: Polynomial = {(k,): c for k, c in enumerate(self.numerator) if c}
        top = re.sub(
            r"(?<=.)([+-])", r" \1 ", polynomial_text(terms, ["T"])
        )  # the sign of the first term stays
        exponent = self.denominator_exponent
        if exponent and " " in top:
            top = f"({top})"
        return top + {0: "", 1: "/(1 - T)"}.get(exponent, f"/(1 - T)^{exponent}")

    def coefficients(self, top: int) -> tuple[int, ...]:
        """Return the coefficients of T^0, ..., T^top."""
        return expanded(self.numerator, self.denominator_exponent, top)


def expanded(numerator: Sequence[int], exponent: int, top: int) -> tuple[int, ...]:
    """Return the coefficients of T^0, ..., T^top of numerator(T) / (1 - T)^exponent.

    >>> expanded([1, 2], 2, 4)
    (1, 4, 7, 10, 13)
    """
    series = [*numerator, *[0] * top][: top + 1]
    for _ in range(exponent):
        series = list(accumulate(series))
    return tuple(series)


def generated_rank(
    polynomials: Sequence[Polynomial], degree: int, count: int, p: int = 0, check: Interruption | None = None
) -> int:
    """Return the dimension, in one degree, of the ideal of forms in `count` variables: over F_p, or exactly over QQ.

    >>> from fractions import Fraction
    >>> generated_rank([{(2, 0): Fraction(1)}, {(1, 1): Fraction(1, 2)}], 3, 2)
    3
    """
    rows: list[dict[tuple[int, ...], int]] = []
    for f in polynomials:
        common = lcm(*(c.denominator for c in f.values()))
        gap = degree - sum(next(iter(f)))
        integral = [(variables_of(m), int(c * common)) for m, c in f.items()]
        for shift in combinations_with_replacement(range(count), gap) if gap >= 0 else ():
            rows.append({exponents_of((*m, *shift), count): c for m, c in integral})
    columns = {m: i for i, m in enumerate(dict.fromkeys(m for row in rows for m in row))}
    small = all(abs(c) < 2**63 for row in rows for c in row.values())
    table = np.zeros((len(rows), len(columns)), dtype=np.int64 if small else object)
    for table_row, row in zip(table, rows, strict=True):
        table_row[[columns[m] for m in row]] = list(row.values())
    return len(echelon_mod(table, p, check)[1]) if p and rows else rank_over_q(table)
