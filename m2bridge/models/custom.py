"""A user's own polynomial map: from SymPy (:func:`from_sympy`), from polynomials as text (:func:`from_text`), from one line
``map:s,t->s^2;s*t`` or from a file (:func:`read_map`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np

from m2bridge.errors import InputError, NotPolynomialError, ParseError, SpecError
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, prime_for
from m2bridge.linear.residues import Mod
from m2bridge.models.base import Model, Shape, Weights
from m2bridge.models.evaluation import program_jacobian, run
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
from m2bridge.models.spec import suggestion
from m2bridge.models.symmetries import FoundSymmetries
from m2bridge.models.systems import (
    expected_codimension,
    point_on_variety,
    polynomial_program,
    refuse_products,
)
from m2bridge.programs.files import read_document
from m2bridge.programs.program import Program

LONGEST_INLINE = 1_000_000
LARGEST_FILE = 1_000_000
_MOST_LISTED = 12
_KEYS = ("name", "variables", "polynomials", "constraints")


class OwnModel(Model):
    """A model whose coordinates are polynomials in its flat weights; Macaulay2 is given these."""

    m2_partial = "_custom"
    unnamed: ClassVar[str]
    """The name of a model that the user gave none."""
    name: str
    polynomials: tuple[Terms, ...]
    constraints: tuple[Terms, ...]
    found: FoundSymmetries
    """Symmetries that were searched and verified; a model as the user gave it has none."""

    @property
    def own_name(self) -> str | None:
        return None if self.name == self.unnamed else self.name

    @property
    def m2_parameters(self) -> dict[str, object]:
        """The polynomials as numbers: no text of a user reaches a script."""
        self._must_be_polynomial()
        return {
            "variableCount": self.parameter_count,
            "polynomialTerms": [for_macaulay2(dict(terms)) for terms in self.polynomials],
            "constraintTerms": [for_macaulay2(dict(terms)) for terms in self.constraints],
        }


@dataclass(frozen=True, kw_only=True)
class PolynomialMap(OwnModel):
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
    unnamed: ClassVar[str] = "polynomial map"

    name: str = field(default=unnamed, compare=False)
    variables: tuple[str, ...]
    polynomials: tuple[Terms, ...]
    constraints: tuple[Terms, ...] = ()
    found: FoundSymmetries = field(default=FoundSymmetries(), compare=False, repr=False)

    def check(self) -> None:
        if not self.variables or not self.polynomials:
            raise SpecError("a polynomial map needs at least one variable and one polynomial")
        _check_variables(self.variables)

    @property
    def spec(self) -> str:
        """The map itself, also when it came from a file: a record must not depend on what the file says later."""
        given = ";".join(polynomial_text(dict(f), self.variables) for f in self.constraints)
        shown = f"map:{','.join(self.variables)}->{';'.join(self.coordinate_names)}"
        return f"{shown}|{given}" if given else shown

    @property
    def title(self) -> str:
        m, n = len(self.polynomials), len(self.variables)
        return f"{self.name}, {m} polynomial{'s' * (m != 1)} in {n} variable{'s' * (n != 1)}"

    @property
    def parameters(self) -> dict[str, Shape]:
        return {"x": (len(self.variables),)}

    @cached_property
    def program(self) -> Program:
        return polynomial_program(self.polynomials, self.parameters, self.constraints)

    @cached_property
    def parameter_dim(self) -> int:
        """Number of variables minus that of the constraints, which are independent at a random point over F_p.

        That it is the dimension of the whole source is certain where :attr:`parameter_dim_proved`.
        """
        if not self.constraints:
            return len(self.variables)
        refuse_products(self.constraints, self.variables)
        p = prime_for(given_numbers(self), chosen=None, default=LARGE_PRIME)
        point = self.draw_weights(np.random.default_rng(0), p)["x"]
        rank = rank_mod(self.constraint_jacobian({"x": Mod(point, p)}).values, p)
        if rank < len(self.constraints):
            raise InputError(
                f"{self.name}: at a random point of the source the differentials of the {len(self.constraints)} constraints have "
                f"rank {rank}; leave out constraints that follow from others, and give the equations of a reduced source"
            )
        return len(self.variables) - rank

    @property
    def parameter_dim_proved(self) -> bool:
        return expected_codimension(self.constraints)

    def draw_weights(self, rng: np.random.Generator, p: int) -> dict[str, np.ndarray]:
        """A random point of the source over F_p; with constraints, one found by solving for variables in turn."""
        return {"x": self.draw_point(rng, p)} if self.constraints else super().draw_weights(rng, p)

    def draw_point(self, rng: np.random.Generator, p: int, *, zero: tuple[int, ...] = ()) -> np.ndarray:
        """A random point of the source over F_p at which the variables `zero` vanish; InputError when none was found."""
        return point_on_variety(self.constraints, self._constraint_program, rng, p, zero)

    def draw_real_weights(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        if self.constraints:
            raise InputError(
                f"{self.name}: real points of a source with constraints are not drawn; use a prime"
            )
        return super().draw_real_weights(rng)

    @cached_property
    def _constraint_program(self) -> Program:
        return polynomial_program(self.constraints, self.parameters)

    def constraint_values(self, weights: Weights) -> Any:
        """The constraints at given weights; they vanish on the source."""
        return run(self._constraint_program, weights)

    def constraint_jacobian(self, weights: Weights) -> Any:
        return program_jacobian(self._constraint_program, weights) if self.constraints else None

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        return tuple(polynomial_text(dict(f), self.variables) for f in self.polynomials)


def terms_of(polynomial: Polynomial) -> Terms:
    """A sparse polynomial in canonical order (descending lexicographic)."""
    return tuple(sorted(polynomial.items(), reverse=True))


def _check_variables(names: Sequence[str]) -> None:
    """Refuse names that are not variables, or are declared twice."""
    for place, name in enumerate(names):
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise SpecError(f"variable {place + 1}: {name!r} is not a name such as x, x_1 or x_(0,1)")
        if name in names[:place]:
            raise SpecError(f"variable {place + 1}: {name!r} is declared twice")


def _built(
    name: str, variables: Sequence[str], polynomials: Iterable[Any], constraints: Iterable[Any],
    read: Callable[[Any, str], Polynomial],
) -> PolynomialMap:  # fmt: skip
    """A map from polynomials in any form; `read` makes one of them, and is told which one for its errors."""
    _check_variables(variables)

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

    return _built(name, variables, polynomials, constraints, read)


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
    return _built(name, names, polynomials, constraints, lambda f, where: _from_sympy(f, variables, where))


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
    listed = [part for part in constraints.split(";") if part.strip()]
    return from_text(PolynomialMap.unnamed, _listed(variables), polynomials.split(";"), listed)


def _listed(variables: str) -> list[str]:
    return [name for _, name in split_at_commas(variables)]


def variables_in(spec: str) -> tuple[str, ...]:
    """The variables of an inline map; none for the spec of any other model."""
    return tuple(_listed(spec[4:].partition("->")[0])) if spec.startswith("map:") else ()


def by_variable(spec: str, weights: Mapping[str, Any]) -> Mapping[str, Any]:
    """Weights by the names that the user gave: the entries of the one weight ``x`` of a map are its variables.

    >>> by_variable("map:s,t->s*t", {"x": [3, 4]})
    {'s': 3, 't': 4}
    """
    names = variables_in(spec)
    return dict(zip(names, weights["x"], strict=True)) if names else weights


def in_variables(spec: str, text: str) -> str:
    """Words about the weights of a map in the names of its variables.

    >>> in_variables("map:s,t->s*t", "scaling: x[0] by s, x[1] by s^-1"), in_variables("map:s,t->s*t", "x axis 0")
    ('scaling: s by lambda, t by lambda^-1', 's, t')
    """
    names = variables_in(spec)
    if not names:
        return text
    text = re.sub(r"\bby s\b", "by lambda", text) if "s" in names else text
    text = re.sub(r"\bx axis 0: (\d+) from (\d+)", r"x[\1] from x[\2]", text)
    every = ", ".join(names) if len(names) <= _MOST_LISTED else "all variables"
    return re.sub(r"\bx\b(?: axis 0|\[(\d+)\])?", lambda m: names[int(m[1])] if m[1] else every, text)


def read_map(path: str | Path) -> PolynomialMap:
    """The map in a TOML or JSON file with the keys name, variables, polynomials and, perhaps, constraints.

    ::

        name = "twisted cubic"
        variables = ["s", "t"]
        polynomials = ["s^3", "s^2*t", "s*t^2", "t^3"]

    A ParseError has the fields `source`, `line` and `column`.
    """
    file = Path(path)
    if file.suffix not in (".toml", ".json"):
        own = f"; a function in it is python:{file}:NAME" if file.suffix == ".py" else ""
        raise InputError(f"{file}: a map is read from a .toml or .json file{own}")
    text, document = read_document(file, LARGEST_FILE)

    def fail(key: str, message: str) -> NoReturn:
        lines = enumerate(text.splitlines(), start=1)
        number = next((n for n, line in lines if line.strip().strip('"{').startswith(key)), None)
        where = str(file) if number is None else f"{file}, line {number}"
        raise ParseError(f"{where}: {message}", source=str(file), line=number or 1, column=1)

    def strings(key: str) -> list[str]:
        value = document.get(key, [] if key == "constraints" else None)
        if value is None:
            fail(key, f"the key {key!r} is missing")
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            fail(key, f"{key} should be a list of texts")
        return list(value)

    for key in document:
        if key not in _KEYS:
            fail(key, f"there is no key {key!r}; {suggestion(str(key), _KEYS)}")
    variables = strings("variables")
    name = document.get("name", file.stem)
    if not isinstance(name, str) or not name.isprintable() or len(name) > 200:
        fail("name", "name should be a short line of text")
    read_up_to = 0

    def read(item: str, where: str) -> Polynomial:
        nonlocal read_up_to  # polynomials are looked for in the file one after the other
        places = (text.find(quote + item + quote, read_up_to) for quote in "\"'")
        read_up_to = next((place + 1 for place in places if place >= 0), read_up_to)
        before = text[:read_up_to]
        line, column = before.count("\n") + 1, max(1, len(before) - before.rfind("\n"))
        return parse_polynomial(item, variables, source=f"{file}, {where}", line=line, column=column)

    try:
        return _built(name, variables, strings("polynomials"), strings("constraints"), read)
    except SpecError as error:
        fail("variables", error.message)
