"""Compute equations of low degree that vanish on an image, verified over QQ. They need not be all equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import lcm

from m2bridge.families.base import Model
from m2bridge.linear.residues import rational
from m2bridge.questions.closure.image import image_of
from m2bridge.questions.closure.interpolation import interpolate
from m2bridge.questions.closure.result import Equation, equation

Choice = Callable[[Sequence[Equation]], Sequence[Equation]]


def low_degree_equations(
    model: Model, degree: int, choose: Choice, *, prime: int, seed: int
) -> tuple[tuple[Equation, ...], bool]:
    """Return equations up to a degree, those that `choose` keeps, and whether they hold over ZZ.

    They are interpolated from points of the image over F_p. Where exact substitution shows that the lifts of all of them vanish
    on the image, the lifts are returned; else the equations over F_p.
    """
    interpolation = interpolate(model, degree, prime=prime, seed=seed)
    listed = (terms for polynomials in interpolation.generators.values() for terms in polynomials)
    modular = tuple(choose([equation(terms, interpolation.span.basis, p=prime) for terms in listed]))
    lifted = lift_to_integers(model, modular, prime)
    return (modular, False) if lifted is None else (lifted, True)


def lift_to_integers(model: Model, equations: Sequence[Equation], p: int) -> tuple[Equation, ...] | None:
    """Return the equations over ZZ, each verified to vanish on the image by substitution; None if one cannot be.

    Coefficients are guessed by rational reconstruction; the substitution decides, so that a wrong guess cannot pass.
    """
    polynomials = image_of(model).polynomials
    if polynomials is None:
        return None
    lifted = []
    for modular in equations:
        fractions = [rational(c, p) for c in modular.coefficients]
        numbers = [f for f in fractions if f is not None]
        if len(numbers) < len(fractions):
            return None
        scale = lcm(*(f.denominator for f in numbers))
        guess = replace(modular, coefficients=tuple(int(f * scale) for f in numbers))
        if guess.at(polynomials) != 0:
            return None
        lifted.append(guess)
    return tuple(lifted)
