"""How polynomials travel to Macaulay2 and back: coefficients, and monomials as lists of variable indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from m2bridge.errors import OutputError
from m2bridge.protocol import Values

Polynomial = Mapping[tuple[int, ...], Any]


def to_lists(polynomials: Sequence[Polynomial], p: int) -> list[list[object]]:
    """Polynomials over F_p as integer lists: coefficients (balanced), monomials as lists of variable indices."""
    return [
        [
            [c if 2 * c <= p else c - p for c in f.values()],
            [[i for i, e in enumerate(m) for _ in range(e)] for m in f],
        ]
        for f in polynomials
    ]


def from_lists(values: Values, tag: str, count: int, p: int) -> list[dict[tuple[int, ...], Any]]:
    """Polynomials that a script emitted as such lists, coefficients as text; residues for p > 0, fractions for p = 0."""
    found: list[dict[tuple[int, ...], Any]] = []
    try:
        for coefficients, monomials in values[tag]:
            polynomial: dict[tuple[int, ...], Any] = {}
            for text, variables in zip(coefficients, monomials, strict=True):
                exponents = [0] * count
                for i in variables:
                    exponents[i] += 1
                polynomial[tuple(exponents)] = int(text) % p if p else Fraction(text)
            found.append(polynomial)
    except (ValueError, TypeError, IndexError) as error:
        raise OutputError(f"{tag} holds no list of polynomials: {error}", run=values.run) from None
    return found
