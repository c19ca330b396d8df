"""How polynomials travel to Macaulay2 and back: coefficients, and monomials as lists of variable indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from m2bridge.errors import OutputError
from m2bridge.protocol import Values

Polynomial = Mapping[tuple[int, ...], Any]
"""Exponents, one for each variable -> coefficient: a residue in (0, p) over F_p, a fraction over QQ."""


def to_lists(polynomials: Sequence[Polynomial], p: int) -> list[list[object]]:
    """Polynomials over F_p as integer lists: coefficients (balanced), monomials as lists of variable indices."""
    return [
        [[c if 2 * c <= p else c - p for c in f.values()], [list(factors(m)) for m in f]] for f in polynomials
    ]


def factors(exponents: Sequence[int]) -> tuple[int, ...]:
    """The variables of a monomial, with repetition.

    >>> factors((2, 0, 1))
    (0, 0, 2)
    """
    return tuple(i for i, e in enumerate(exponents) for _ in range(e))


def exponents_of(variables: Sequence[int], count: int) -> tuple[int, ...]:
    """The exponents of a product of so many variables.

    >>> exponents_of((0, 0, 2), 3)
    (2, 0, 1)
    """
    found = [0] * count
    for i in variables:
        found[i] += 1
    return tuple(found)


def polynomials_in(
    listed: Any, count: int, p: int, tag: str, values: Values
) -> list[dict[tuple[int, ...], Any]]:
    """Polynomials that a script emitted as such lists, coefficients as text; residues for p > 0, fractions for p = 0."""
    try:
        return [
            {
                exponents_of(variables, count): int(text) % p if p else Fraction(text)
                for text, variables in zip(coefficients, monomials, strict=True)
            }
            for coefficients, monomials in listed
        ]
    except (ValueError, TypeError, IndexError) as error:
        raise OutputError(f"{tag} holds no list of polynomials: {error}", run=values.run) from None
