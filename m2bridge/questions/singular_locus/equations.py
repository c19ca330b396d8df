"""Equations of the closure: read from Macaulay2 or interpolated, lifted to ZZ, verified, differentiated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import Any

import numpy as np
from flint import fmpz

from m2bridge.errors import InputError
from m2bridge.linear.lifting import rational
from m2bridge.linear.modular import eliminate
from m2bridge.models import Lightning
from m2bridge.questions.closure.image import image_of
from m2bridge.questions.closure.interpolation import interpolate

SMALLEST_PRIME = 101
"""Over fewer points, forms like x^3 y - x y^3 vanish everywhere and interpolation finds equations that are none."""


def check_prime(prime: int, largest: int) -> None:
    """Refuse what Macaulay2 cannot compute with, and fields with too few points to interpolate from."""
    if not SMALLEST_PRIME <= prime <= largest or not fmpz(prime).is_prime():
        raise InputError(
            f"--prime {prime}: give a prime number from {SMALLEST_PRIME} to {largest}, e.g. 32003"
        )


Support = tuple[tuple[int, int], ...]
"""A monomial: (index of the coordinate, exponent) of each coordinate in it."""


@dataclass(frozen=True, slots=True)
class Equation:
    """A homogeneous equation in the Segre coordinates z0, z1, ...: terms as (monomial, coefficient).

    `prime` is None when the coefficients are integers.
    """

    terms: tuple[tuple[Support, int], ...]
    prime: int | None

    @property
    def degree(self) -> int:
        return sum(power for _, power in self.terms[0][0])

    def as_lists(self) -> list[object]:
        """Coefficients and monomials for the template."""
        return [[c for _, c in self.terms], [[list(factor) for factor in m] for m, _ in self.terms]]

    def at(self, points: np.ndarray) -> np.ndarray:
        """Values at points (rows) of Python integers; residues when the equation is over F_p."""
        total = np.zeros(len(points), dtype=object)
        for monomial, coefficient in self.terms:
            total += coefficient * prod((points[:, i] ** power for i, power in monomial), start=np.int64(1))
        return total % self.prime if self.prime else total

    def gradient(self, point: Sequence[int]) -> list[int]:
        """The partial derivatives at one point of Python integers."""
        row = [0] * len(point)
        for monomial, coefficient in self.terms:
            zeros = [(i, power) for i, power in monomial if point[i] == 0]
            if len(zeros) > 1 or any(power > 1 for _, power in zeros):
                continue  # every partial derivative keeps a factor that vanishes here
            for i, power in zeros or monomial:
                rest = prod(point[k] ** (e - (k == i)) for k, e in monomial)
                row[i] += coefficient * power * rest
        return [value % self.prime for value in row] if self.prime else row

    def __str__(self) -> str:
        text = ""
        for monomial, residue in self.terms:
            c = residue - self.prime if self.prime and residue > self.prime // 2 else residue
            factors = [f"z{i}" if e == 1 else f"z{i}^{e}" for i, e in monomial]
            sign = "-" if c < 0 else "+" if text else ""
            text += sign + "*".join([*([str(abs(c))] if abs(c) != 1 or not factors else []), *factors])
        return text


def read(model: Lightning, texts: Sequence[str] | None, prime: int | None) -> tuple[Equation, ...]:
    """Equations from Macaulay2's text."""
    from m2bridge.models.polynomials import parse_polynomial

    names = [f"z{i}" for i in range(model.coordinate_count)]
    return tuple(_from_terms(parse_polynomial(text, names), prime) for text in texts or ())


def interpolated(model: Lightning, prime: int, seed: int, degree: int) -> tuple[Equation, ...]:
    """Equations of the image up to a degree, found from its points over F_p."""
    found = interpolate(model, degree, prime=prime, seed=seed)
    return tuple(
        _from_terms(polynomial, prime)
        for polynomials in found.generators.values()
        for polynomial in polynomials
    )


def _from_terms(polynomial: Mapping[tuple[int, ...], Any], prime: int | None) -> Equation:
    ordered = sorted(
        ((tuple(e), int(c) % prime if prime else int(c)) for e, c in polynomial.items()), reverse=True
    )
    return Equation(tuple((_support(e), c) for e, c in ordered if c), prime)


def _support(exponents: Sequence[int]) -> Support:
    return tuple((i, int(power)) for i, power in enumerate(exponents) if power)


def decisive(
    equations: Sequence[Equation], points: Sequence[Sequence[int]], prime: int
) -> tuple[Equation, ...]:
    """A few of the equations whose Jacobians have, at each of the points, the rank that all of them have."""
    kept: set[int] = set()
    for point in points:
        gradients = np.array([equation.gradient(point) for equation in equations], dtype=np.int64)
        kept.update(eliminate(gradients, prime).pivot_rows)
    return tuple(equations[i] for i in sorted(kept))


def degrees(equations: Iterable[Equation]) -> dict[str, int]:
    """Number of equations of each degree."""
    counts: dict[str, int] = {}
    for equation in sorted(equations, key=lambda e: e.degree):
        counts[str(equation.degree)] = counts.get(str(equation.degree), 0) + 1
    return counts


def lifted(model: Lightning, equations: Sequence[Equation]) -> tuple[Equation, ...] | None:
    """The equations over ZZ, each verified to vanish identically on the image by substitution; None if one cannot be.

    Coefficients are guessed by rational reconstruction; the substitution decides, so a wrong guess cannot pass.
    """
    polynomials = image_of(model).polynomials
    if polynomials is None:
        return None
    result = []
    for equation in equations:
        if equation.prime is None:
            return None
        fractions = [rational(c, equation.prime) for _, c in equation.terms]
        if any(f is None for f in fractions):
            return None
        scale = lcm(*(f.denominator for f in fractions if f is not None))
        terms = tuple(
            (e, int(f * scale)) for (e, _), f in zip(equation.terms, fractions, strict=True) if f is not None
        )
        total = polynomials[0] * 0
        for exponents, coefficient in terms:
            term = polynomials[0] * 0 + coefficient
            for i, power in exponents:
                term = term * polynomials[i] ** power
            total += term
        if total != 0:
            return None
        result.append(Equation(terms, None))
    return tuple(result)
