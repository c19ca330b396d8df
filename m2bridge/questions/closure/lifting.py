"""From residues modulo several primes to rational numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import lcm
from typing import Any

from m2bridge.linear.modular import rank_over_q
from m2bridge.linear.residues import rational, residue
from m2bridge.models.polynomials import Polynomial, exponents_of, variables_of
from m2bridge.questions.asking import Clock


def combine(residues: Sequence[int], moduli: Sequence[int]) -> tuple[int, int]:
    """The residue modulo the product of coprime moduli (Chinese remainders), with the product.

    >>> combine([2, 3], [5, 7])
    (17, 35)
    """
    value, modulus = 0, 1
    for r, m in zip(residues, moduli, strict=True):
        value += modulus * ((r - value) * pow(modulus, -1, m) % m)
        modulus *= m
    return value, modulus


def lift_polynomials(
    systems: Sequence[Sequence[Polynomial]], primes: Sequence[int]
) -> list[dict[tuple[int, ...], Fraction]] | None:
    """Rational polynomials from their residues modulo several primes, or None when these do not determine them.

    `systems[k]` lists the same polynomials modulo `primes[k]`, normalised alike. The last prime is only used to check what
    the others give.
    """
    if len(primes) < 2 or len({len(system) for system in systems}) != 1:
        return None
    lifted: list[dict[tuple[int, ...], Fraction]] = []
    for versions in zip(*systems, strict=True):
        monomials = set().union(*versions)
        polynomial: dict[tuple[int, ...], Fraction] = {}
        for monomial in monomials:
            value, modulus = combine([f.get(monomial, 0) for f in versions[:-1]], primes[:-1])
            fraction = rational(value, modulus)
            if fraction is None or fraction.denominator % primes[-1] == 0:
                return None
            if residue(fraction, primes[-1]) != versions[-1].get(monomial, 0):
                return None
            polynomial[monomial] = fraction
        lifted.append(polynomial)
    return lifted


def reduce_polynomial(polynomial: Polynomial, p: int) -> dict[tuple[int, ...], int]:
    """Residues of a rational polynomial modulo a prime that divides no denominator."""
    return {m: r for m, c in polynomial.items() if (r := residue(c, p))}


def vanishes_exactly(polynomial: Polynomial, coordinates: Sequence[Any], clock: Clock | None = None) -> bool:
    """Whether a rational polynomial in the coordinates is the zero polynomial in the weights: exact substitution over ZZ.

    `coordinates` are python-flint integer polynomials in the weights, one for each variable of `polynomial`.
    """
    common = lcm(*(c.denominator for c in polynomial.values()))
    total = coordinates[0] * 0
    products: dict[tuple[int, ...], Any] = {}
    for monomial, coefficient in polynomial.items():
        if clock is not None:
            clock.check()
        total = total + _product(variables_of(monomial), coordinates, products) * int(coefficient * common)
    return bool(total == 0)


def _product(
    chosen: tuple[int, ...], coordinates: Sequence[Any], products: dict[tuple[int, ...], Any]
) -> Any:
    if not chosen:
        return coordinates[0] * 0 + 1
    if chosen not in products:
        products[chosen] = _product(chosen[:-1], coordinates, products) * coordinates[chosen[-1]]
    return products[chosen]


def generated_rank(polynomials: Sequence[Polynomial], degree: int, count: int) -> int:
    """The dimension over QQ of what homogeneous polynomials in `count` variables generate in a degree: an exact rank.

    >>> generated_rank([{(2, 0): Fraction(1)}, {(1, 1): Fraction(1, 2)}], 3, 2)
    3
    """
    columns: dict[tuple[int, ...], int] = {}
    rows: list[dict[int, int]] = []
    for f in polynomials:
        common = lcm(*(c.denominator for c in f.values()))
        for shift in combinations_with_replacement(range(count), degree - sum(next(iter(f)))):
            row: dict[int, int] = {}
            for monomial, c in f.items():
                product = exponents_of((*variables_of(monomial), *shift), count)
                row[columns.setdefault(product, len(columns))] = int(c * common)
            rows.append(row)
    table = [[row.get(i, 0) for i in range(len(columns))] for row in rows]
    return rank_over_q(table) if table else 0
