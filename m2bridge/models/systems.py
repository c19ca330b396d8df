"""Lists of sparse polynomials: evaluated and differentiated at many points at once, and points at which they vanish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import lcm, prod
from typing import Any

import numpy as np
from flint import fmpz_mpoly_ctx, nmod_poly

from m2bridge.errors import InputError
from m2bridge.linear.residues import Mod, residue
from m2bridge.models.evaluation import program_jacobian, run
from m2bridge.models.polynomials import Polynomial, Terms, polynomial_text
from m2bridge.programs.instructions import Shape
from m2bridge.programs.program import Builder, Program

_MOST_FACTORED_TERMS = 500
_MOST_FACTORED_DEGREE = 40
_ATTEMPTS = 200
_ATTEMPTS_WITH_ZEROS = 10


class PolynomialSystem:
    """Polynomials f_1, ..., f_m in n variables over QQ.

    Examples
    --------
    >>> from m2bridge.linear.residues import Mod
    >>> system = PolynomialSystem([{(2, 0): 1, (0, 1): -3}, {(1, 1): 2}], 2)
    >>> system(Mod([[1, 2], [5, 3]], 101)).values.tolist()
    [[96, 4], [16, 30]]
    >>> system.jacobian(Mod([1, 2], 101)).values.tolist()
    [[2, 98], [4, 2]]
    """

    def __init__(self, polynomials: Sequence[Polynomial], variables: int) -> None:
        self.polynomials = tuple(polynomials)
        self.variables = variables
        occurring = list(dict.fromkeys(exponents for f in self.polynomials for exponents in f))
        self.exponents = np.array(occurring, dtype=np.int64).reshape(len(occurring), variables)

    def __len__(self) -> int:
        return len(self.polynomials)

    @cached_property
    def program(self) -> Program:
        """The polynomials as a program with one weight ``x``."""
        return polynomial_program(self)

    def __call__(self, points: Any) -> Any:
        """Values at points, over any arithmetic: the last axis of `points` has length n, of the result length m."""
        return run(self.program, {"x": points})

    def jacobian(self, points: Any) -> Any:
        """The matrix of partial derivatives: the last two axes have lengths m and n."""
        return program_jacobian(self.program, {"x": points})


def polynomial_program(
    system: PolynomialSystem,
    equations: PolynomialSystem | None = None,
    weights: Mapping[str, Shape] | None = None,
) -> Program:
    """The program of a polynomial map: monomials from tables of powers, then their combinations.

    The variables are the entries of one weight ``x``, or of the given weights, one after the other.
    """
    builder = Builder()
    shapes = {"x": (system.variables,)} if weights is None else weights
    parts = [builder.write("weight", (), name, shape=shape) for name, shape in shapes.items()]
    flat = [
        place
        if len(builder.shape(place)) == 1
        else builder.write("reshape", (place,), shape=(prod(builder.shape(place)),))
        for place in parts
    ]
    x = flat[0] if len(flat) == 1 else builder.write("concatenate", flat, 0)
    output = _combination(builder, x, system)
    vanishing = [_combination(builder, x, equations)] if equations else []
    return builder.finished([("y", output)], vanishing)


def _combination(builder: Builder, x: int, system: PolynomialSystem) -> int:
    exponents, count = system.exponents, len(system.exponents)
    one = builder.write("constant", (), Fraction(1), shape=(1,))
    if not count:
        return builder.write("constant", (), *[Fraction(0)] * len(system), shape=(len(system),))
    total: int | None = None
    for variable in range(system.variables):
        occurring = sorted({int(e) for e in exponents[:, variable]})
        if occurring != [0]:
            base = builder.write("slice", (x,), (variable, 1, 1))
            powers = [
                one if n == 0 else base if n == 1 else builder.write("power", (base,), n) for n in occurring
            ]
            table = builder.write("concatenate", powers, 0) if len(powers) > 1 else powers[0]
            places = [occurring.index(int(e)) for e in exponents[:, variable]]
            part = builder.write("gather", (table,), *places, shape=(count,))
            total = part if total is None else builder.write("multiply", (total, part))
    if total is None:
        total = builder.write("constant", (), *[Fraction(1)] * count, shape=(count,))
    monomials = [tuple(row) for row in exponents.tolist()]
    matrix = [Fraction(f.get(monomial, 0)) for f in system.polynomials for monomial in monomials]
    combined = builder.write("constant", (), *matrix, shape=(len(system), count))
    return builder.write("einsum", (combined, total), ("ab", "b"), "a")


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

    One that is not :func:`factorable` passes unseen.

    Raises
    ------
    InputError
        With the factors, from which the user can choose.
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
    equations: PolynomialSystem, rng: np.random.Generator, p: int, *, zero: tuple[int, ...] = ()
) -> np.ndarray:
    """A random common zero over F_p, at which the variables `zero` vanish.

    All variables but one for each equation are drawn at random; the equations are then solved in turn, each
    for a variable that no later one has been solved for. This finds points of hypersurfaces and of
    triangular systems; what it returns is always checked. It lies on some component of the variety: others may never be met, and
    those that split over a larger field have hardly any points over F_p.

    Raises
    ------
    InputError
        No point was found.
    """
    for _ in range(_ATTEMPTS if not zero else _ATTEMPTS_WITH_ZEROS):
        point = rng.integers(0, p, size=equations.variables, dtype=np.int64)
        point[list(zero)] = 0
        if _solve_in_turn(equations, point, rng, p, set(zero)) and not equations(Mod(point, p)).values.any():
            return point
    raise InputError(
        f"no point over F_{p} was found on the variety of the constraints; give a parametrization of it instead"
    )


def _solve_in_turn(
    equations: PolynomialSystem, point: np.ndarray, rng: np.random.Generator, p: int, zero: set[int]
) -> bool:
    used = set(zero)
    for which in rng.permutation(len(equations)):
        polynomial = equations.polynomials[which]
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
