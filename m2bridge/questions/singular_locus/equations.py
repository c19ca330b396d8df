"""Equations of the closure as :mod:`m2bridge.questions.closure` writes them: read or interpolated, chosen, and lifted to ZZ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import lcm

import numpy as np

from m2bridge.linear.modular import eliminate
from m2bridge.linear.residues import rational
from m2bridge.models import Lightning
from m2bridge.protocol import Values
from m2bridge.questions.closure import Equation, interpolate
from m2bridge.questions.closure.image import image_of
from m2bridge.questions.closure.result import equation


def read(values: Values, count: int, p: int) -> tuple[Equation, ...]:
    """The equations in `count` coordinates that the template emitted, over F_p, or over QQ for p = 0."""
    found = values.polynomials(values.get("equations") or (), count, p)
    return tuple(equation(terms, range(count), p=p) for terms in found)


def interpolated(model: Lightning, prime: int, seed: int, degree: int) -> tuple[Equation, ...]:
    """Equations of the image up to a degree, found from its points over F_p."""
    found = interpolate(model, degree, prime=prime, seed=seed)
    listed = (terms for polynomials in found.generators.values() for terms in polynomials)
    return tuple(equation(terms, found.span.basis, p=prime) for terms in listed)


def as_lists(equations: Iterable[Equation]) -> list[object]:
    """The equations as they travel to Macaulay2: coefficients, and monomials as lists of variable indices."""
    return [[list(e.coefficients), [list(m) for m in e.monomials]] for e in equations]


def gradients(equations: Sequence[Equation], point: Sequence[int]) -> np.ndarray:
    """The Jacobian at a point, one row an equation."""
    return np.array([e.gradient(point) for e in equations], dtype=object).reshape(-1, len(point))


def decisive(
    equations: Sequence[Equation], points: Sequence[Sequence[int]], prime: int
) -> tuple[Equation, ...]:
    """A few of the equations whose Jacobians have, at each of the points, the rank that all of them have."""
    kept = {i for point in points for i in eliminate(gradients(equations, point), prime).pivot_rows}
    return tuple(equations[i] for i in sorted(kept))


def degree_counts(equations: Iterable[Equation]) -> dict[str, int]:
    """Number of equations of each degree."""
    return {str(degree): count for degree, count in sorted(Counter(e.degree for e in equations).items())}


def lifted(model: Lightning, equations: Sequence[Equation], prime: int) -> tuple[Equation, ...] | None:
    """The equations over ZZ, each verified to vanish identically on the image by substitution; None if one cannot be.

    Coefficients are guessed by rational reconstruction; the substitution decides, so a wrong guess cannot pass.
    """
    polynomials = image_of(model).polynomials
    result = []
    for given in equations:
        fractions = [rational(c, prime) for c in given.coefficients]
        known = [f for f in fractions if f is not None]
        if polynomials is None or len(known) < len(fractions):
            return None
        scale = lcm(*(f.denominator for f in known))
        guess = replace(given, coefficients=tuple(int(f * scale) for f in known))
        if guess.at(polynomials) != 0:
            return None
        result.append(guess)
    return None if polynomials is None else tuple(result)
