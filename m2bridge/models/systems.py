"""Lists of sparse polynomials as programs, and points at which they vanish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import lcm
from typing import Any

import numpy as np
from flint import fmpz_mpoly_ctx, nmod_poly

from m2bridge.errors import InputError
from m2bridge.linear.residues import Mod, residue
from m2bridge.models.evaluation import run
from m2bridge.models.polynomials import Polynomial, Terms, polynomial_text
from m2bridge.programs.instructions import Shape
from m2bridge.programs.program import Program
from m2bridge.programs.recording import record_call

_MOST_FACTORED_TERMS = 500
_MOST_FACTORED_DEGREE = 40
_ATTEMPTS = 200
_ATTEMPTS_WITH_ZEROS = 10


def polynomial_program(
    polynomials: Sequence[Polynomial | Terms], weights: Mapping[str, Shape], constraints: Sequence[Terms] = ()
) -> Program:
    """The program of a polynomial map: monomials from tables of powers, then their combinations.

    The variables are the entries of the weights, one after the other.

    >>> squares = polynomial_program([{(2, 0): 1, (0, 1): -3}, {(1, 1): 2}], {"x": (2,)})
    >>> run(squares, {"x": Mod([[1, 2], [5, 3]], 101)}).values.tolist()
    [[96, 4], [16, 30]]
    """

    def values(given: Sequence[Polynomial | Terms], arrays: Mapping[str, Any]) -> Any:
        return _combination(np.concatenate([array.ravel() for array in arrays.values()]), given)

    zeros = partial(values, constraints) if constraints else None
    return record_call(lambda arrays, _: values(polynomials, arrays), weights, vanishing=zeros).program


def _combination(x: Any, given: Sequence[Polynomial | Terms]) -> Any:
    polynomials = [dict(f) for f in given]
    monomials = list(dict.fromkeys(exponents for f in polynomials for exponents in f))
    if not monomials:
        return np.zeros(len(polynomials), dtype=np.int64)
    total: Any = np.ones(len(monomials), dtype=np.int64)
    for variable, powers in enumerate(zip(*monomials, strict=True)):
        occurring = sorted(set(powers))
        table = np.concatenate([x[variable : variable + 1] ** n for n in occurring])
        total = total * table[list(map(occurring.index, powers))]
    return np.array([[f.get(monomial, 0) for monomial in monomials] for f in polynomials]) @ total


# -- sources that are given by equations ---------------------------------------------------------------


def factorable(terms: Terms) -> bool:
    """Whether a polynomial is small enough to be factored without asking."""
    return len(terms) <= _MOST_FACTORED_TERMS and max(sum(e) for e, _ in terms) <= _MOST_FACTORED_DEGREE


def expected_codimension(constraints: Sequence[Terms]) -> bool:
    """Whether so many constraints certainly cut out a source of that codimension, once :func:`refuse_products` let them pass.

    One does; two do that are irreducible and not proportional; more might meet in a component that is larger.
    """
    return len(constraints) <= 1 or (len(constraints) == 2 and all(map(factorable, constraints)))


def refuse_products(constraints: Sequence[Terms], variables: Sequence[str]) -> None:
    """Refuse a constraint that is constant or a product: its zeros are several sources, or one counted twice.

    The error shows the factors, from which the user can choose. One that is not :func:`factorable` passes unseen.
    """
    context = fmpz_mpoly_ctx.get([f"x{i}" for i in range(len(variables))], "degrevlex")
    for number, terms in enumerate(constraints, start=1):
        if not any(any(exponents) for exponents, _ in terms):
            raise InputError(f"constraint {number} is constant: it says nothing, or has no solution")
        if not factorable(terms):
            continue
        common = lcm(*(c.denominator for _, c in terms))
        _, factors = context.from_dict({e: int(c * common) for e, c in terms}).factor()
        if len(factors) > 1 or factors[0][1] > 1:
            shown = []
            for factor, power in factors:
                table = {tuple(map(int, e)): int(c) for e, c in factor.to_dict().items()}
                shown.append(f"({polynomial_text(table, variables)})" + (f"^{power}" if power > 1 else ""))
            raise InputError(
                f"constraint {number} is a product, {' * '.join(shown)}: write the factor that vanishes on the source you mean"
            )


def point_on_variety(
    constraints: Sequence[Terms],
    program: Program,
    rng: np.random.Generator,
    p: int,
    zero: tuple[int, ...] = (),
) -> np.ndarray:
    """A random common zero over F_p, at which the variables `zero` vanish; InputError where none was found.

    `program` computes the constraints. All variables but one for each equation are drawn at random; the equations are then solved
    in turn, each for a variable that no later one has been solved for. This finds points of hypersurfaces and of triangular
    systems; what it returns is always checked. It lies on some component of the variety: others may never be met, and those that
    split over a larger field have hardly any points over F_p.
    """
    for _ in range(_ATTEMPTS if not zero else _ATTEMPTS_WITH_ZEROS):
        point = rng.integers(0, p, size=program.parameter_count, dtype=np.int64)
        point[list(zero)] = 0
        solved = _solve_in_turn(constraints, point, rng, p, set(zero))
        if solved and not run(program, {"x": Mod(point, p)}).values.any():
            return point
    raise InputError(
        f"no point over F_{p} was found on the variety of the constraints; give a parametrization of it instead"
    )


def _solve_in_turn(
    constraints: Sequence[Terms], point: np.ndarray, rng: np.random.Generator, p: int, zero: set[int]
) -> bool:
    used = set(zero)
    for which in rng.permutation(len(constraints)):
        polynomial = dict(constraints[which])
        occurring = {v for exponents in polynomial for v, power in enumerate(exponents) if power}
        if not occurring - used and zero:
            continue  # the point is checked in the end
        if not occurring - used:
            return False
        variable = int(rng.choice(sorted(occurring - used)))
        used |= occurring
        coefficients: dict[int, int] = {}
        for exponents, value in polynomial.items():
            term = residue(value, p)
            for v, power in enumerate(exponents):
                if power and v != variable:
                    term = term * pow(int(point[v]), power, p) % p
            degree = exponents[variable]
            coefficients[degree] = (coefficients.get(degree, 0) + term) % p
        univariate = nmod_poly([coefficients.get(k, 0) for k in range(max(coefficients) + 1)], p)
        if univariate == 0:
            continue
        roots = [int(-factor[0] / factor[1]) for factor, _ in univariate.factor()[1] if factor.degree() == 1]
        if not roots:
            return False
        point[variable] = int(rng.choice(roots))
    return True
