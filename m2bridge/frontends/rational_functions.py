"""Read, write and reduce rational functions.

A fraction is a pair of sparse polynomials in lowest terms. The denominator has integer coefficients without a common factor, and
the first of them is positive, so that equal functions have equal fractions.

>>> fraction_text(parse_fraction("1/(x+y) - 1/(2*x)", ["x", "y"]), ["x", "y"])
'(1/2*x-1/2*y)/(x^2+x*y)'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from math import gcd, lcm
from typing import Any

from flint import fmpq, fmpq_mpoly_ctx

from m2bridge.errors import OutOfReachError
from m2bridge.frontends.polynomials import (
    ParseLimits,
    Polynomial,
    PolynomialParser,
    Terms,
    polynomial_text,
    terms_of,
    whole,
)

Quotient = tuple[Terms, Terms]
"""Numerator and denominator in lowest terms."""

_MOST_FRACTION_TERMS = 100_000  # terms of a numerator or denominator


def parse_fraction(
    text: str, variables: Sequence[str], *, source: str = "", line: int = 1, column: int = 1
) -> Quotient:
    """Parse a rational function; errors are those of :func:`~m2bridge.frontends.polynomials.parse_polynomial`."""
    parser = PolynomialParser(text, variables, (source, line, column), ParseLimits(), fractions=True)
    numerator, denominator = parser.parsed()
    if denominator is None:
        return terms_of(numerator), constant_terms(1, len(variables))
    return lowest_terms(numerator, denominator)


def constant_terms(value: int | Fraction, count: int) -> Terms:
    """Write a number as a polynomial in `count` variables."""
    return (((0,) * count, value),) if value else ()


def lowest_terms(numerator: Polynomial, denominator: Polynomial) -> Quotient:
    """Divide numerator and denominator by their greatest common divisor, and normalize the denominator.

    >>> lowest_terms({(2,): 1, (0,): -1}, {(1,): -2, (0,): 2})
    ((((1,), Fraction(-1, 2)), ((0,), Fraction(-1, 2))), (((0,), 1),))
    """
    count = len(next(iter(denominator)))
    if not numerator:
        return (), constant_terms(1, count)
    over, under = (_flint(f, count) for f in (numerator, denominator))
    common = over.gcd(under)
    top, bottom = (_terms(f / common) for f in (over, under))
    coefficients = [Fraction(c) for _, c in bottom]
    content = Fraction(gcd(*(c.numerator for c in coefficients)), lcm(*(c.denominator for c in coefficients)))
    content = -content if coefficients[0] < 0 else content
    return _scaled(top, content), _scaled(bottom, content)


def _flint(polynomial: Polynomial, count: int) -> Any:
    context = fmpq_mpoly_ctx.get([f"w{i}" for i in range(count)], "lex")
    return context.from_dict(
        {m: fmpq(Fraction(c).numerator, Fraction(c).denominator) for m, c in polynomial.items()}
    )


def _terms(polynomial: Any) -> Terms:
    pairs = ((tuple(map(int, m)), Fraction(int(c.p), int(c.q))) for m, c in polynomial.to_dict().items())
    return terms_of({m: whole(c) for m, c in pairs})


def _scaled(terms: Terms, divisor: Fraction) -> Terms:
    return tuple((m, whole(Fraction(c) / divisor)) for m, c in terms)


def is_constant(terms: Terms) -> bool:
    """Return whether a polynomial is a number."""
    return not any(any(exponents) for exponents, _ in terms)


def fraction_text(fraction: Quotient, variables: Sequence[str]) -> str:
    """Write a fraction as a text that :func:`parse_fraction` reads back.

    >>> fraction_text(parse_fraction("x/(2*y)", ["x", "y"]), ["x", "y"])
    '1/2*x/y'
    """
    numerator, denominator = (polynomial_text(dict(terms), variables) for terms in fraction)
    if is_constant(fraction[1]):
        return numerator
    over = f"({numerator})" if len(fraction[0]) > 1 else numerator
    under = (
        denominator
        if re.fullmatch(r"[^-+*/()]+|[^-+*/()]+\([\d,]+\)(\^\d+)?", denominator)
        else f"({denominator})"
    )
    return f"{over}/{under}"


def cleared(fractions: Sequence[Quotient]) -> tuple[Terms, ...]:
    """Multiply all fractions by the least common multiple Q of their denominators; Q itself stands last.

    >>> cleared([parse_fraction("1/s", ["s"]), parse_fraction("s", ["s"])])
    ((((0,), 1),), (((2,), 1),), (((1,), 1),))
    """
    count = len(fractions[0][1][0][0])
    unders = [_flint(dict(under), count) for _, under in fractions]
    common = reduce(lambda a, b: a * (b / a.gcd(b)), unders)
    numerators = []
    for (over, _), under in zip(fractions, unders, strict=True):
        product = _flint(dict(over), count) * (common / under)
        if len(product.to_dict()) > _MOST_FRACTION_TERMS:
            raise OutOfReachError(
                "the fractions have too large a common denominator", estimate=_MOST_FRACTION_TERMS
            )
        numerators.append(_terms(product))
    return (*numerators, _terms(common))
