"""A user's own polynomial map, as data.

From SymPy (:func:`from_sympy`), from polynomials as text (:func:`from_text`), or from a file
(:mod:`m2bridge.models.files`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import InputError, NotPolynomialError, SpecError
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, prime_for
from m2bridge.linear.residues import Mod
from m2bridge.models.base import Model, Shape, Weights
from m2bridge.models.polynomials import (
    NAME,
    Polynomial,
    Terms,
    for_macaulay2,
    parse_polynomial,
    polynomial_text,
    split_at_commas,
    whole,
)
from m2bridge.models.sources import expected_codimension, point_on_variety, refuse_products
from m2bridge.models.systems import PolynomialSystem, polynomial_program
from m2bridge.programs.program import Program

LONGEST_INLINE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class PolynomialMap(Model):
    """A map given by its coordinates, polynomials in named variables that may satisfy equations.

    Attributes
    ----------
    name: a title.
    variables: names of the variables; the one parameter ``x`` is the vector of them.
    polynomials, constraints: the coordinates, and polynomials that vanish on the source.

    Examples
    --------
    >>> cubic = from_text("twisted cubic", ["s", "t"], ["s^3", "s^2*t", "s*t^2", "t^3"])
    >>> cubic.spec
    'map:s,t->s^3;s^2*t;s*t^2;t^3'
    """

    family: ClassVar[str] = "map"
    m2_partial = "_custom"

    name: str = field(default="polynomial map", compare=False)
    variables: tuple[str, ...]
    polynomials: tuple[Terms, ...]
    constraints: tuple[Terms, ...] = ()

    def __post_init__(self) -> None:
        if not self.variables or not self.polynomials:
            raise SpecError("a polynomial map needs at least one variable and one polynomial")
        check_variables(self.variables)

    @property
    def spec(self) -> str:
        """The map itself, also when it came from a file: a record must not depend on what the file says later."""
        shown = ";".join(polynomial_text(dict(f), self.variables) for f in self.polynomials)
        given = ";".join(polynomial_text(dict(f), self.variables) for f in self.constraints)
        return f"map:{','.join(self.variables)}->{shown}" + (f"|{given}" if given else "")

    @property
    def title(self) -> str:
        m, n = len(self.polynomials), len(self.variables)
        return f"{self.name}, {m} polynomial{'s' * (m != 1)} in {n} variable{'s' * (n != 1)}"

    @cached_property
    def system(self) -> PolynomialSystem:
        """The coordinates, ready to be evaluated at many points."""
        return PolynomialSystem([dict(f) for f in self.polynomials], len(self.variables))

    @cached_property
    def equations(self) -> PolynomialSystem:
        """The constraints, ready to be evaluated at many points."""
        return PolynomialSystem([dict(f) for f in self.constraints], len(self.variables))

    @property
    def parameters(self) -> dict[str, Shape]:
        return {"x": (len(self.variables),)}

    @cached_property
    def program(self) -> Program:
        return polynomial_program(self.system, self.equations)

    @cached_property
    def _source_dim(self) -> int:
        refuse_products(self.constraints, self.variables)
        p = prime_for(given_numbers(self), chosen=None, default=LARGE_PRIME)
        point = self.draw_weights(np.random.default_rng(0), p)["x"]
        rank = rank_mod(self.equations.jacobian(Mod(point, p)).values, p)
        if rank < len(self.constraints):
            raise InputError(
                f"{self.name}: at a random point of the source the differentials of the {len(self.constraints)} constraints have "
                f"rank {rank}; leave out constraints that follow from others, and give the equations of a reduced source"
            )
        return len(self.variables) - rank

    @property
    def parameter_dim(self) -> int:
        """Number of variables minus that of the constraints, which are independent at a random point over F_p.

        That it is the dimension of the whole source is certain where :attr:`parameter_dim_proved`.
        """
        return self._source_dim if self.constraints else len(self.variables)

    @property
    def parameter_dim_proved(self) -> bool:
        return expected_codimension(self.constraints)

    def draw_weights(self, rng: np.random.Generator, p: int) -> dict[str, np.ndarray]:
        """A random point of the source over F_p; with constraints, one found by solving for variables in
        turn.
        """
        if not self.constraints:
            return Model.draw_weights(self, rng, p)
        return {"x": point_on_variety(self.equations, rng, p)}

    def draw_point(self, rng: np.random.Generator, p: int, *, zero: tuple[int, ...] = ()) -> np.ndarray:
        """A random point of the source over F_p at which the variables `zero` vanish; InputError when none was found."""
        return point_on_variety(self.equations, rng, p, zero=zero)

    def draw_real_weights(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        if self.constraints:
            raise InputError(
                f"{self.name}: real points of a source with constraints are not drawn; use a prime"
            )
        return Model.draw_real_weights(self, rng)

    def constraint_jacobian(self, weights: Weights) -> Any:
        return self.equations.jacobian(weights["x"]) if self.constraints else None

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        return tuple(polynomial_text(dict(f), self.variables) for f in self.polynomials)

    @property
    def coordinate_count(self) -> int:
        return len(self.polynomials)

    @property
    def m2_parameters(self) -> dict[str, object]:
        return polynomials_for_macaulay2(len(self.variables), self.polynomials, self.constraints)


def check_variables(names: Sequence[str]) -> None:
    """Refuse names that are not variables, or are declared twice."""
    seen: set[str] = set()
    for place, name in enumerate(names):
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise SpecError(f"variable {place + 1}: {name!r} is not a name such as x, x_1 or x_(0,1)")
        if name in seen:
            raise SpecError(f"variable {place + 1}: {name!r} is declared twice")
        seen.add(name)


def polynomials_for_macaulay2(
    variables: int, polynomials: Iterable[Terms], constraints: Iterable[Terms] = ()
) -> dict[str, object]:
    """Polynomials as numbers for the partial ``_custom``: no text of a user reaches a script."""
    return {
        "variableCount": variables,
        "polynomialTerms": [for_macaulay2(dict(terms)) for terms in polynomials],
        "constraintTerms": [for_macaulay2(dict(terms)) for terms in constraints],
    }


def terms_of(polynomial: Polynomial) -> Terms:
    """A sparse polynomial in canonical order (descending lexicographic)."""
    return tuple(sorted(polynomial.items(), reverse=True))


def built_map(
    name: str,
    variables: Sequence[str],
    polynomials: Iterable[Any],
    constraints: Iterable[Any],
    read: Callable[[Any, str], Polynomial],
) -> PolynomialMap:
    """A map from polynomials in any form; `read` makes one of them, and is told which one for its errors."""
    check_variables(variables)

    def listed(items: Iterable[Any], what: str) -> tuple[Terms, ...]:
        return tuple(terms_of(read(item, f"{what} {i}")) for i, item in enumerate(items, start=1))

    return PolynomialMap(
        name=name,
        variables=tuple(variables),
        polynomials=listed(polynomials, "polynomial"),
        constraints=listed(constraints, "constraint"),
    )


def from_text(
    name: str, variables: Sequence[str], polynomials: Sequence[str], constraints: Sequence[str] = ()
) -> PolynomialMap:
    """A map from polynomials as text; errors name the polynomial and the column."""

    def read(text: str, where: str) -> Polynomial:
        return parse_polynomial(text, variables, source=where)

    return built_map(name, variables, polynomials, constraints, read)


def from_sympy(
    polynomials: Sequence[Any],
    variables: Sequence[Any],
    *,
    constraints: Sequence[Any] = (),
    name: str = "SymPy map",
) -> PolynomialMap:
    """A map from SymPy polynomials with rational coefficients.

    >>> import sympy
    >>> s, t = sympy.symbols("s t")
    >>> from_sympy([s**2, s * t, t**2 / 2], [s, t]).spec
    'map:s,t->s^2;s*t;1/2*t^2'
    """
    names = tuple(str(variable) for variable in variables)
    return built_map(name, names, polynomials, constraints, lambda f, where: _from_sympy(f, variables, where))


def _from_sympy(expression: Any, variables: Sequence[Any], where: str) -> Polynomial:
    import sympy
    from sympy.polys.polyerrors import BasePolynomialError

    if isinstance(expression, str):
        raise InputError(f"{where} is a text; use from_text, which evaluates no code")
    try:
        checked = sympy.sympify(expression, strict=True)
        if checked.has(sympy.Float):
            raise InputError(f"{where} has an inexact number in it; write it as a Rational")
        table = sympy.Poly(checked, *variables, domain="QQ").as_dict()
    except (BasePolynomialError, sympy.SympifyError) as error:
        reason = str(error).splitlines()[0]
        raise NotPolynomialError(f"{where} is not a polynomial over QQ in the variables: {reason}") from None
    return {tuple(key): whole(Fraction(int(value.p), int(value.q))) for key, value in table.items() if value}


def read_inline(text: str) -> PolynomialMap:
    """The map in an inline spec ``map:s,t->s^2;s*t;t^2``, with equations of the source after a bar.

    >>> read_inline("map:c,s->c^2;c*s|c^2+s^2-1").parameter_dim
    1
    """
    if len(text) > LONGEST_INLINE:
        raise SpecError(
            f"an inline map of {len(text)} characters is too long (at most {LONGEST_INLINE}); use a file"
        )
    variables, arrow, rest = text.removeprefix("map:").partition("->")
    if not arrow:
        raise SpecError(
            f"{text[:80]}: expected '->' after the variables, as in map:s,t->s^2;s*t;t^2", position=5
        )
    polynomials, _, constraints = rest.partition("|")
    names = [name for _, name in split_at_commas(variables)]
    listed = [part for part in constraints.split(";") if part.strip()]
    return from_text("polynomial map", names, polynomials.split(";"), listed)
