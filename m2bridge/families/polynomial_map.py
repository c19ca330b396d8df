"""User-defined polynomial and rational maps.

They are built from SymPy (:func:`from_sympy`), from text (:func:`from_text`), from one line ``map:s,t->s^2;s*t`` or from a file
(:func:`read_map`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from m2bridge.errors import InputError, NotPolynomialError, ParseError, SpecError, suggestion
from m2bridge.families.base import Knowledge, Model, Shape
from m2bridge.families.symmetries import SearchedSymmetries
from m2bridge.families.user_definition import UserDefinition
from m2bridge.frontends.polynomial_programs import fraction_program, polynomial_program
from m2bridge.frontends.polynomials import (
    NAME,
    Terms,
    for_macaulay2,
    polynomial_text,
    split_at_commas,
    whole,
)
from m2bridge.frontends.program_files import NAME_RULE, is_short_line, read_document
from m2bridge.frontends.rational_functions import (
    Quotient,
    fraction_text,
    is_constant,
    lowest_terms,
    parse_fraction,
)
from m2bridge.linear.primes import numbers_in
from m2bridge.programs.program import Program

LONGEST_INLINE = 1_000_000  # characters of a map in a spec
LARGEST_MAP_FILE = 1_000_000
"""Bytes of a file with a map."""
_MOST_LISTED_VARIABLES = 12  # variables that a title lists
_KEYS = ("name", "variables", "polynomials")


class UserModel(Model):
    """A model whose coordinates are polynomials in its flat weights, which are passed to Macaulay2."""

    m2_partial = "_custom"
    unnamed: ClassVar[str]
    """The default name of a model."""
    name: str
    polynomials: tuple[Terms, ...]
    searched: SearchedSymmetries
    """Symmetries that were searched and verified; none in the user's definition."""

    @property
    def stated_name(self) -> str | None:
        """Return the name that the user stated; None for the default."""
        return None if self.name == self.unnamed else self.name

    @property
    def knowledge(self) -> Knowledge:
        return Knowledge(searched=self.searched)

    @property
    def m2_parameters(self) -> dict[str, object]:
        """Return the polynomials as numbers: no text of a user is copied into a script."""
        self._must_be_polynomial()
        return {
            "variableCount": self.parameter_count,
            "polynomialTerms": [for_macaulay2(dict(terms)) for terms in self.polynomials],
        }


def with_symmetries(model: Model, searched: SearchedSymmetries) -> Model:
    """Return a user-defined model with the symmetries that were searched."""
    return replace(model, searched=searched)  # type: ignore[type-var]


class UserMap(UserModel):
    """A map given by its coordinates, functions of named variables; the only parameter ``x`` is the vector of variables."""

    family: ClassVar[str] = "map"
    variables: tuple[str, ...]

    @property
    def spec(self) -> str:
        """Return the map itself, also if it was read from a file: a record must not depend on later changes of the file."""
        return f"map:{','.join(self.variables)}->{';'.join(self.coordinate_names)}"

    @property
    def parameters(self) -> dict[str, Shape]:
        return {"x": (len(self.variables),)}


@dataclass(frozen=True, kw_only=True)
class PolynomialMap(UserMap):
    """A map given by its coordinates, polynomials in named variables.

    Attributes
    ----------
    name: a title.
    variables: names of the variables; the one parameter ``x`` is the vector of them.
    polynomials: the coordinates.

    Examples
    --------
    >>> cubic = from_text("twisted cubic", ["s", "t"], ["s^3", "s^2*t", "s*t^2", "t^3"])
    >>> cubic.spec
    'map:s,t->s^3;s^2*t;s*t^2;t^3'
    """

    unnamed: ClassVar[str] = "polynomial map"

    name: str = field(default=unnamed, compare=False)
    variables: tuple[str, ...]
    polynomials: tuple[Terms, ...]
    searched: SearchedSymmetries = field(default=SearchedSymmetries(), compare=False, repr=False)

    def check(self) -> None:
        if not self.variables or not self.polynomials:
            raise SpecError("a polynomial map needs at least one variable and one polynomial")
        _check_variables(self.variables)

    @property
    def title(self) -> str:
        m, n = len(self.polynomials), len(self.variables)
        return f"{self.name}, {m} polynomial{'s' * (m != 1)} in {n} variable{'s' * (n != 1)}"

    @cached_property
    def user(self) -> UserDefinition:
        return UserDefinition(
            name=self.stated_name,
            variables=self.variables,
            polynomials=self.polynomials,
            numbers=numbers_in(map(dict, self.polynomials)),
        )

    @cached_property
    def program(self) -> Program:
        return polynomial_program(self.polynomials, self.parameters)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        return tuple(polynomial_text(dict(f), self.variables) for f in self.polynomials)

    @property
    def coordinate_description(self) -> str:
        return "the polynomials of the map, in their order"


@dataclass(frozen=True, kw_only=True)
class RationalMap(UserMap):
    """A map given by its coordinates, rational functions of named variables, where no denominator is zero.

    `fractions` are numerators and denominators in lowest terms; at least one denominator is not constant.

    >>> inverse = from_text("inversion", ["x", "y"], ["x/(x^2+y^2)", "y/(x^2+y^2)"])
    >>> inverse.spec, inverse.polynomial
    ('map:x,y->x/(x^2+y^2);y/(x^2+y^2)', False)
    """

    unnamed: ClassVar[str] = "rational map"

    name: str = field(default=unnamed, compare=False)
    variables: tuple[str, ...]
    fractions: tuple[Quotient, ...]
    searched: SearchedSymmetries = field(default=SearchedSymmetries(), compare=False, repr=False)

    def check(self) -> None:
        _check_variables(self.variables)

    @property
    def title(self) -> str:
        m, n = len(self.fractions), len(self.variables)
        return f"{self.name}, {m} rational function{'s' * (m != 1)} in {n} variable{'s' * (n != 1)}"

    @cached_property
    def user(self) -> UserDefinition:
        terms = (dict(polynomial) for fraction in self.fractions for polynomial in fraction)
        return UserDefinition(name=self.stated_name, variables=self.variables, numbers=numbers_in(terms))

    @cached_property
    def program(self) -> Program:
        return fraction_program(self.fractions, self.parameters)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        return tuple(fraction_text(f, self.variables) for f in self.fractions)


def _check_variables(names: Sequence[str]) -> None:
    """Refuse names that are not variables, or are declared twice."""
    for index, name in enumerate(names):
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise SpecError(f"variable {index + 1}: {name!r} is not a name such as x, x_1 or x_(0,1)")
        if name in names[:index]:
            raise SpecError(f"variable {index + 1}: {name!r} is declared twice")


def _built(
    name: str, variables: Sequence[str], coordinates: Iterable[Any], read: Callable[[Any, str], Quotient]
) -> PolynomialMap | RationalMap:
    """Return a map from functions in any form; `read` converts one of them, given its description for errors."""
    _check_variables(variables)
    fractions = tuple(read(item, f"polynomial {i}") for i, item in enumerate(coordinates, start=1))
    if not all(is_constant(denominator) for _, denominator in fractions):
        name = RationalMap.unnamed if name == PolynomialMap.unnamed else name
        return RationalMap(name=name, variables=tuple(variables), fractions=fractions)
    polynomials = tuple(numerator for numerator, _ in fractions)  # the constant denominators are 1
    return PolynomialMap(name=name, variables=tuple(variables), polynomials=polynomials)


def from_text(name: str, variables: Sequence[str], polynomials: Sequence[str]) -> PolynomialMap | RationalMap:
    """Return a map from polynomials or rational functions as text; errors name the function and the column."""

    def read(text: str, where: str) -> Quotient:
        return parse_fraction(text, variables, source=where)

    return _built(name, variables, polynomials, read)


def from_sympy(
    polynomials: Sequence[Any], variables: Sequence[Any], *, name: str = "SymPy map"
) -> PolynomialMap | RationalMap:
    """Return a map from SymPy polynomials or rational functions with rational coefficients.

    >>> import sympy
    >>> s, t = sympy.symbols("s t")
    >>> from_sympy([s**2, s * t, t**2 / 2], [s, t]).spec
    'map:s,t->s^2;s*t;1/2*t^2'
    """
    names = tuple(str(variable) for variable in variables)
    return _built(name, names, polynomials, lambda f, where: _from_sympy(f, variables, where))


def _from_sympy(expression: Any, variables: Sequence[Any], where: str) -> Quotient:
    import sympy
    from sympy.polys.polyerrors import BasePolynomialError

    if isinstance(expression, str):
        raise InputError(f"{where} is a string; use from_text, which evaluates no code")
    try:
        checked = sympy.sympify(expression, strict=True)
        if checked.has(sympy.Float):
            raise InputError(f"{where} has an inexact number in it; write it as a Rational")
        quotient = sympy.fraction(sympy.together(checked))
        tables = [sympy.Poly(polynomial, *variables, domain="QQ").as_dict() for polynomial in quotient]
    except (BasePolynomialError, sympy.SympifyError) as error:
        reason = str(error).splitlines()[0]
        raise NotPolynomialError(
            f"{where} is not a rational function over QQ of the variables: {reason}"
        ) from None
    numerator, denominator = (
        {tuple(key): whole(Fraction(int(value.p), int(value.q))) for key, value in table.items() if value}
        for table in tables
    )
    if not denominator:
        raise InputError(f"{where} has the denominator 0")
    return lowest_terms(numerator, denominator)


def read_inline(text: str) -> PolynomialMap | RationalMap:
    """Return the map in an inline spec; coordinates may be fractions, as in ``map:x,y->x/y;1/(x+y)``.

    >>> read_inline("map:s,t->s^2;s*t;t^2").title
    'polynomial map, 3 polynomials in 2 variables'
    """
    if len(text) > LONGEST_INLINE:
        raise SpecError(
            f"an inline map of {len(text)} characters is too long (at most {LONGEST_INLINE}); use a file"
        )
    variables, arrow, coordinates = text.removeprefix("map:").partition("->")
    if not arrow:
        raise SpecError(
            f"{text[:80]}: expected '->' after the variables, as in map:s,t->s^2;s*t;t^2", position=5
        )
    return from_text(PolynomialMap.unnamed, _listed(variables), coordinates.split(";"))


def _listed(variables: str) -> list[str]:
    return [name for _, name in split_at_commas(variables)]


def variables_in(spec: str) -> tuple[str, ...]:
    """Return the variables of an inline map; none for the spec of any other model."""
    return tuple(_listed(spec[4:].partition("->")[0])) if spec.startswith("map:") else ()


def by_variable(spec: str, weights: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return weights by the names of the user: the entries of the one weight ``x`` of a map are its variables.

    >>> by_variable("map:s,t->s*t", {"x": [3, 4]})
    {'s': 3, 't': 4}
    """
    names = variables_in(spec)
    return dict(zip(names, weights["x"], strict=True)) if names else weights


def in_variables(spec: str, text: str) -> str:
    """Rewrite a text about the weights of a map with the names of its variables.

    >>> in_variables("map:s,t->s*t", "scaling: x[0:1] by s, x[1] by s^-1"), in_variables("map:s,t->s*t", "x axis 0")
    ('scaling: s by lambda, t by lambda^-1', 's, t')
    """
    names = variables_in(spec)
    if not names:
        return text
    text = re.sub(r"\bby s\b", "by lambda", text) if "s" in names else text
    text = re.sub(r"\bx axis 0: (\d+) from (\d+)", r"x[\1] from x[\2]", text)
    every = ", ".join(names) if len(names) <= _MOST_LISTED_VARIABLES else "all variables"

    def listed(match: re.Match[str]) -> str:
        if match[1] is None:
            return every
        start = int(match[1])
        return ", ".join(names[start : int(match[2] or start + 1)])

    return re.sub(r"\bx\b(?: axis 0|\[(\d+)(?::(\d+))?\])?", listed, text)


def read_map(path: str | Path) -> PolynomialMap | RationalMap:  # noqa: C901 -- one message for each way in which a file can be wrong
    """Return the map in a TOML or JSON file with the keys name, variables and polynomials.

    ::

        name = "twisted cubic"
        variables = ["s", "t"]
        polynomials = ["s^3", "s^2*t", "s*t^2", "t^3"]

    A ParseError has the fields `source`, `line` and `column`.
    """
    file = Path(path)
    if file.suffix not in (".toml", ".json"):
        hint = f"; a function in it is python:{file}:NAME" if file.suffix == ".py" else ""
        raise InputError(f"{file}: a map is read from a .toml or .json file{hint}")
    text, document = read_document(file, LARGEST_MAP_FILE)

    def fail(key: str, message: str) -> NoReturn:
        lines = enumerate(text.splitlines(), start=1)
        number = next((n for n, line in lines if line.strip().strip('"{').startswith(key)), None)
        where = str(file) if number is None else f"{file}, line {number}"
        raise ParseError(f"{where}: {message}", source=str(file), line=number or 1, column=1)

    def strings(key: str) -> list[str]:
        value = document.get(key)
        if value is None:
            fail(key, f"the key {key!r} is missing")
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            fail(key, f"{key} should be a list of strings")
        return list(value)

    for key in document:
        if key not in _KEYS:
            fail(key, f"there is no key {key!r}; {suggestion(str(key), _KEYS)}")
    variables = strings("variables")
    name = document.get("name", file.stem)
    if not is_short_line(name):
        fail("name", NAME_RULE)
    read_up_to = 0

    def read(item: str, where: str) -> Quotient:
        nonlocal read_up_to  # polynomials are located in the file in their order
        offsets = (text.find(quote + item + quote, read_up_to) for quote in "\"'")
        read_up_to = next((offset + 1 for offset in offsets if offset >= 0), read_up_to)
        before = text[:read_up_to]
        line = before.count("\n") + 1
        column = max(1, len(before) - before.rfind("\n"))
        return parse_fraction(item, variables, source=f"{file}, {where}", line=line, column=column)

    try:
        return _built(name, variables, strings("polynomials"), read)
    except SpecError as error:
        fail("variables", error.message)
