"""The search for equations: interpolation degree by degree, until Macaulay2's account of the equations settles it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from m2bridge.frontends.polynomials import derivative
from m2bridge.limits import LimitReached
from m2bridge.linear.modular import rank_mod
from m2bridge.questions.closure.completeness import Account, account_of
from m2bridge.questions.closure.image import Matrix
from m2bridge.questions.closure.interpolation import Equations, Interpolation, evaluate
from m2bridge.questions.closure.size import DegreeCount, ImageSize
from m2bridge.questions.closure.stages import LimitStop, Setting, TooFewPoints

_DEGREE_CAP = 12  # degree up to which equations are searched
_DEGREE_CAP_UNKNOWN = 6  # the same, if the degree of the closure is not known
_LARGE_SPACE = 250
"""Monomials in a weight space: beyond, the next degree costs more than an account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationSearch:
    """The equations up to a degree, Macaulay2's account of them if it settled the search, and what ended it before that."""

    equations: Equations
    account: Account | None = None
    stop: LimitStop | TooFewPoints | None = None


def interpolation(setting: Setting, p: int) -> Interpolation:
    """Begin an interpolation over a prime; only the span is computed."""
    return Interpolation(setting.image, prime=p, seed=setting.context.seed, clock=setting.context.clock)


def search_equations(
    setting: Setting, size: ImageSize, count: DegreeCount, begun: Interpolation, max_degree: int | None
) -> EquationSearch:
    """Interpolate to `max_degree`, or until the equations have the dimension and degree of the image and a degree adds none.

    A limit ends the search; the degrees finished before it are returned.
    """
    try:
        account = _advance(setting, size, count, begun, max_degree)
    except LimitReached as reached:
        return EquationSearch(equations=begun.equations, stop=LimitStop.of(reached))
    return EquationSearch(equations=begun.equations, account=account, stop=begun.stop)


def _advance(
    setting: Setting, size: ImageSize, count: DegreeCount, begun: Interpolation, max_degree: int | None
) -> Account | None:
    """Advance an interpolation; the account that settled the search, or None.

    Macaulay2 runs only when the equations define the image near a general point, and not before a degree without new
    generators, unless the next degree is large.
    """
    bound = max_degree or (
        _DEGREE_CAP_UNKNOWN if count.degree is None else min(count.degree + 1, _DEGREE_CAP)
    )
    point = setting.image.points(setting.rng(2), 1, setting.prime)[:, size.span.basis]
    accounted = -1
    while begun.degree_reached < bound and size.codim:
        setting.context.report_progress(f"equations of degree {begun.degree_reached + 1}")
        if not begun.advance():
            return None
        if max_degree is not None:
            continue
        equations = begun.equations
        fresh = bool(begun.generators[begun.degree_reached])
        early = fresh and begun.largest <= _LARGE_SPACE and begun.degree_reached < bound
        unchanged = accounted == len(equations.polynomials)
        if early or unchanged or not _smooth_at(setting, size, equations, point):
            continue
        accounted = len(equations.polynomials)
        of_equations = account_of(setting, size, equations)
        values = of_equations.values
        right_degree = not fresh if count.degree is None else values.get("degree") == count.degree
        if of_equations.limit is not None or (values.get("codim") == size.codim and right_degree):
            return of_equations
    return None


def _smooth_at(setting: Setting, size: ImageSize, equations: Equations, point: Matrix) -> bool:
    """Return whether the equations' Jacobian has rank `codim` at an image point: then they define the image near a general point.

    This is a cheap necessary condition for the right dimension with multiplicity one.
    """
    variables, p = range(size.span.dim), setting.prime
    rows = [[int(evaluate(derivative(f, i), point, p)[0]) for i in variables] for f in equations.polynomials]
    return bool(rows) and rank_mod(np.array(rows, dtype=np.int64), p) == size.codim
