"""Equations of the closure: read from Macaulay2 or interpolated, lifted to ZZ, verified, differentiated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import Any

import numpy as np
from flint import fmpz

from m2bridge.analyses.closure.image import image_of
from m2bridge.analyses.closure.interpolation import interpolate
from m2bridge.analyses.closure.lifting import rational
from m2bridge.errors import InputError
from m2bridge.models import Lightning
from m2bridge.rank.modular import eliminate


def check_prime(prime: int, largest: int) -> None:
    """Refuse what Macaulay2 cannot compute with, and characteristic 2, where alpha * nu loses its cross terms' symmetry."""
    if not 3 <= prime <= largest or not fmpz(prime).is_prime():
        raise InputError(f"--prime {prime}: give an odd prime number up to {largest}, e.g. 32003")


@dataclass(frozen=True, slots=True)
class Equation:
    """A homogeneous equation in the Segre coordinates z0, z1, ...: terms as (exponents, coefficient).

    `prime` is None when the coefficients are integers and the equation was verified to vanish identically on the image.
    """

    terms: tuple[tuple[tuple[int, ...], int], ...]
    prime: int | None

    @property
    def degree(self) -> int:
        return sum(self.terms[0][0])

    def as_lists(self) -> list[object]:
        """Coefficients and exponents for the template."""
        return [[c for _, c in self.terms], [list(e) for e, _ in self.terms]]

    def at(self, points: np.ndarray) -> np.ndarray:
        """Values at points (rows) of Python integers; residues when the equation is over F_p."""
        total = sum(
            (c * _monomial(points, e) for e, c in self.terms), start=np.zeros(len(points), dtype=object)
        )
        return total % self.prime if self.prime else total

    def gradient(self, point: Sequence[int]) -> list[int]:
        """The partial derivatives at one point of Python integers."""
        row = [0] * len(point)
        for exponents, coefficient in self.terms:
            support = [(i, power) for i, power in enumerate(exponents) if power]
            zeros = [(i, power) for i, power in support if point[i] == 0]
            if len(zeros) > 1 or any(power > 1 for _, power in zeros):
                continue  # every partial derivative keeps a factor that vanishes here
            for i, power in zeros or support:
                rest = prod(point[k] ** (e - (k == i)) for k, e in support)
                row[i] += coefficient * power * rest
        return [value % self.prime for value in row] if self.prime else row

    def __str__(self) -> str:
        text = ""
        for exponents, residue in self.terms:
            c = residue - self.prime if self.prime and residue > self.prime // 2 else residue
            factors = [f"z{i}" if e == 1 else f"z{i}^{e}" for i, e in enumerate(exponents) if e]
            sign = "-" if c < 0 else "+" if text else ""
            text += sign + "*".join([*([str(abs(c))] if abs(c) != 1 or not factors else []), *factors])
        return text


def _monomial(points: np.ndarray, exponents: Sequence[int]) -> np.ndarray:
    value = np.ones(len(points), dtype=object)
    for i, power in enumerate(exponents):
        if power:
            value = value * points[:, i] ** power
    return value


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
    terms = ((tuple(e), int(c) % prime if prime else int(c)) for e, c in polynomial.items())
    return Equation(tuple(sorted(((e, c) for e, c in terms if c), reverse=True)), prime)


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
            for i, power in enumerate(exponents):
                if power:
                    term = term * polynomials[i] ** power
            total += term
        if total != 0:
            return None
        result.append(Equation(terms, None))
    return tuple(result)
