"""Polynomials as text and as data, and the parser between them.

The parser converts a text (of a user, or printed by Macaulay2's ``toString``) to a sparse polynomial
``{exponents: coefficient}``. It knows integers, fractions, ``+ - * / ^``, parentheses, one sign in
front of a factor (``x + -3*y``) and declared variables (``x``, ``x_0``, ``x_(0,1)``); it evaluates no code, and limits
bound its work.

>>> parse_polynomial("3*x_0^2*x_1 - (x_1 - 1/2)^2", ["x_0", "x_1"]) == {
...     (2, 1): 3, (0, 2): -1, (0, 1): 1, (0, 0): Fraction(-1, 4)}
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, TypeVar

from m2bridge.errors import ParseError, suggestion

T = TypeVar("T")
Exponents = tuple[int, ...]
Coefficient = int | Fraction
Polynomial = Mapping[Exponents, Coefficient]
"""A sparse polynomial: exponents -> non-zero coefficient, an int unless it is not a whole number."""

Fractional = tuple[Polynomial, Polynomial | None]
"""Numerator and denominator; None for 1."""

Terms = tuple[tuple[Exponents, Coefficient], ...]
"""A sparse polynomial as sorted pairs, so that models can be compared and hashed."""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9']*(?:_(?:\d+|[A-Za-z][A-Za-z0-9]*|\(\s*\d+(?:\s*,\s*\d+)*\s*\)))?")
"""A variable: a letter, letters and digits, and one subscript at most."""

_TOKEN = re.compile(rf"\s*(?:(?P<number>\d+)|(?P<name>{NAME.pattern})|(?P<sign>\*\*|[-+*/^()]))")

_FUNCTIONS = frozenset(("exp", "sqrt", "tanh", "sigmoid", "softmax"))
"""Functions that a network may contain, and a polynomial may not."""
FACTOR = "a number, a variable or '('"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseLimits:
    """Limits of the work for one text, which no input of a readable size reaches."""

    characters: int = 4_000_000
    digits: int = 4_000
    exponent: int = 1_000
    nesting: int = 50
    terms: int = 200_000
    products: int = 300_000


def parse_polynomial(
    text: str,
    variables: Sequence[str],
    *,
    source: str = "",
    line: int = 1,
    column: int = 1,
    limits: ParseLimits | None = None,
) -> dict[Exponents, Coefficient]:
    """Parse a sparse polynomial; exponents are in the order of `variables`, the names that it may use.

    A ParseError has the fields `source`, `line` and `column`: the source of the text, and the position of the error.
    """
    parser = PolynomialParser(text, variables, (source, line, column), limits or ParseLimits())
    return dict(parser.parsed()[0])


class PolynomialParser:
    """Sums of products of factors, read from left to right, with one token ahead: its `kind`, `token` and `start`.

    If `fractions`, everything can be divided by; otherwise only integers.
    """

    def __init__(
        self,
        text: str,
        variables: Sequence[str],
        origin: tuple[str, int, int],
        limits: ParseLimits,
        *,
        fractions: bool = False,
    ) -> None:
        self.text, self.origin, self.limits, self.fractions = text, origin, limits, fractions
        self.variables = [_canonical(name) for name in variables]
        self.index = {name: i for i, name in enumerate(self.variables)}
        self.depth = self.products = self.start = self.at = 0
        if len(text) > limits.characters:
            self.fail(f"the text has {len(text)} characters, more than {limits.characters}", 0)
        self.advance()

    def parsed(self) -> Fractional:
        """Read the whole text."""
        result = self.quotient()
        if self.kind != "end":
            self.unexpected("an operator")
        return result

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        source, line, column = self.origin
        before = self.text[: self.start if position is None else position]
        column = len(before) - before.rfind("\n") if "\n" in before else column + len(before)
        line += before.count("\n")
        where = (f"{source}, " if source else "") + f"line {line}, column {column}"
        raise ParseError(f"{where}: {message}", source=source, line=line, column=column)

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            rest = self.text[self.at :]
            self.start = self.at + len(rest) - len(rest.lstrip())
            if self.start < len(self.text):
                hint = "; write 1/10 for 0.1" if self.text[self.start] == "." else ""
                self.fail(f"{self.text[self.start]!r} is not allowed in a polynomial{hint}")
            self.kind, self.token = "end", ""
            return
        self.kind = match.lastgroup or ""
        self.token = match.group(self.kind)
        self.start, self.at = match.start(self.kind), match.end()

    def unexpected(self, wanted: str) -> NoReturn:
        hint = "; a ')' too many" if self.token == ")" and wanted == "an operator" else ""
        if wanted != FACTOR and (self.kind in ("number", "name") or self.token == "("):
            hint = "; write a product with '*'"
        elif wanted == FACTOR and self.token in ("+", "-"):
            hint = "; one sign too many"
        self.fail(f"expected {wanted}, found {self.found}{hint}")

    @property
    def found(self) -> str:
        """Return the token as it is shown in errors."""
        return repr(self.token) if self.token else "the end of the text"

    def quotient(self) -> Fractional:
        """Read a sum of terms; return its numerator, and its denominator unless that is 1."""
        total: dict[Exponents, Coefficient] = {}
        below: Polynomial | None = None
        sign = self.sign()
        while True:
            start = self.start
            over, under = self.term(sign)
            if under != below:  # both over the product of the denominators
                total = dict(self.times(total, under, start) or {})
                over = self.times(over, below, start) or {}
                below = self.times(below, under, start)
            for exponents, coefficient in over.items():
                value = total.get(exponents, 0) + coefficient
                if value:
                    total[exponents] = value
                else:
                    total.pop(exponents, None)
            if len(total) > self.limits.terms:
                self.fail(f"the polynomial has more than {self.limits.terms} terms")
            if self.token not in ("+", "-"):
                return {exponents: whole(value) for exponents, value in total.items()}, below
            sign = self.sign()

    def sign(self) -> int:
        """Read an optional sign; return 1 if there is none."""
        value = -1 if self.token == "-" else 1
        if self.token in ("+", "-"):
            self.advance()
        return value

    def term(self, sign: int) -> Fractional:  # noqa: C901 -- one case for each token of the grammar
        """Read a product of factors; plain ones are collected in one monomial, parentheses are multiplied out."""
        coefficient: Coefficient = sign
        exponents = [0] * len(self.variables)
        over: Polynomial | None = None
        under: Polynomial | None = None
        divides = False
        while True:
            coefficient *= self.sign()
            start = self.start
            if self.kind == "number":
                value = self.number()
                if divides and value == 0:
                    self.fail("a division by zero", start)
                coefficient = Fraction(coefficient) / value if divides else coefficient * value
            elif self.kind == "name" and not divides:
                variable = self.variable()
                exponents[variable] += self.exponent()
                if exponents[variable] > self.limits.exponent:
                    self.fail(f"the exponent {exponents[variable]} is above {self.limits.exponent}", start)
            else:
                top, bottom = self.variable_power() if self.kind == "name" else self.power()
                if divides and not top:
                    self.fail("a division by zero: this denominator is 0", start)
                top, bottom = (bottom, top) if divides else (top, bottom)
                over, under = self.times(over, top, start), self.times(under, bottom, start)
            if Fraction(coefficient).numerator.bit_length() > 16 * self.limits.digits:
                self.fail("a coefficient is too large", start)
            if self.token not in ("*", "/"):
                break
            divides = self.token == "/"
            self.advance()
            if divides and not self.fractions and self.kind != "number":
                self.fail(f"only division by an integer is allowed, found {self.found} after '/'")
        if not coefficient:
            return {}, None
        return self.times({tuple(exponents): coefficient}, over, self.start) or {}, under

    def number(self) -> int:
        """Read an integer with an optional exponent."""
        start, value = self.start, self.integer()
        exponent = self.exponent()
        if value.bit_length() * exponent > 4 * self.limits.digits:
            self.fail(f"a number has more than {self.limits.digits} digits", start)
        return int(value**exponent)

    def variable_power(self) -> tuple[Polynomial | None, Polynomial | None]:
        variable = self.variable()
        return {exponents_of([variable] * self.exponent(), len(self.variables)): 1}, None

    def power(self) -> tuple[Polynomial | None, Polynomial | None]:
        """Read parentheses with an optional exponent: numerator and denominator, None for 1."""
        if self.token != "(":
            self.unexpected(FACTOR)
        start = self.start
        inner, below = self.nested(self.quotient)
        over: Polynomial | None = None
        under: Polynomial | None = None
        for _ in range(self.exponent(start)):
            over, under = self.times(over, inner, start), self.times(under, below, start)
        return over, under

    def integer(self) -> int:
        if len(self.token) > self.limits.digits:
            self.fail(f"a number has more than {self.limits.digits} digits")
        value = int(self.token)
        self.advance()
        return value

    def variable(self) -> int:
        name = _canonical(self.token)
        if name not in self.index:
            known = suggestion(name, self.variables)
            if name in _FUNCTIONS:
                known += f"; for the function {name} write a Python function, python:FILE.py:f"
            self.fail(f"the variable {name!r} is not declared; {known}")
        self.advance()
        return self.index[name]

    def exponent(self, position: int | None = None) -> int:
        """Read an optional exponent; return 1 if there is none; a power of parentheses (at `position`) is at least 1."""
        if self.token not in ("^", "**"):
            return 1
        self.advance()
        if self.kind != "number":
            hint = "; write 1/x^2 for x^-2" if self.token == "-" else ""
            self.fail(f"an exponent must be a number without sign, found {self.found}{hint}")
        if len(self.token) > 9 or int(self.token) > self.limits.exponent:
            self.fail(f"the exponent {self.token[:20]} is above {self.limits.exponent}")
        value = self.integer()
        if self.token in ("^", "**"):
            self.fail("a power of a power requires parentheses")
        if value == 0 and position is not None:
            self.fail("(...)^0 is not supported; write 1", position)
        return value

    def nested(self, read: Callable[[], T]) -> T:
        """Read what stands in parentheses by one of the parser's own methods."""
        opening = self.start
        self.depth += 1
        if self.depth > self.limits.nesting:
            self.fail(f"parentheses are nested more than {self.limits.nesting} deep")
        self.advance()
        inner = read()
        if self.kind == "end":
            self.fail("this '(' is never closed", opening)
        if self.token != ")":
            self.unexpected("')'")
        self.depth -= 1
        self.advance()
        return inner

    def times(self, left: Polynomial | None, right: Polynomial | None, start: int) -> Polynomial | None:
        """Multiply polynomials, of which None is 1."""
        if left is None or right is None:
            return right if left is None else left
        return self.product(left, right, start)

    def product(self, left: Polynomial, right: Polynomial, start: int) -> dict[Exponents, Coefficient]:
        self.products += len(left) * len(right)
        if self.products > self.limits.products:
            self.fail("the product is too large to multiply out", start)
        total: dict[Exponents, Coefficient] = {}
        for a, x in left.items():
            for b, y in right.items():
                key = tuple(i + j for i, j in zip(a, b, strict=True))
                total[key] = total.get(key, 0) + x * y
        if any(max(key, default=0) > self.limits.exponent for key in total):
            self.fail(f"an exponent is above {self.limits.exponent}", start)
        return {key: value for key, value in total.items() if value}


def terms_of(polynomial: Polynomial) -> Terms:
    """Sort a sparse polynomial into its canonical order (descending lexicographic)."""
    return tuple(sorted(polynomial.items(), reverse=True))


def _canonical(name: str) -> str:
    return "".join(name.split())


def whole(value: Coefficient) -> Coefficient:
    """Return an int if the number is an integer."""
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def polynomial_text(polynomial: Polynomial, variables: Sequence[str]) -> str:
    """Return a text that :func:`parse_polynomial` reads back.

    >>> polynomial_text({(1, 0): -1, (0, 2): Fraction(3, 2)}, ["x", "y"])
    '-x+3/2*y^2'
    """
    terms = []
    for exponents, coefficient in polynomial.items():
        factors = [
            name if power == 1 else f"{name}^{power}"
            for name, power in zip(variables, exponents, strict=True)
            if power
        ]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        terms.append(("-" if coefficient < 0 else "+") + "*".join(factors))
    return "".join(terms).removeprefix("+") or "0"


def derivative(polynomial: Polynomial, variable: int) -> dict[Exponents, Coefficient]:
    """Return the formal partial derivative by the variable with this index.

    >>> derivative({(3, 1): 2}, 0)
    {(2, 1): 6}
    """
    return {
        (*exponents[:variable], exponents[variable] - 1, *exponents[variable + 1 :]): coefficient
        * exponents[variable]
        for exponents, coefficient in polynomial.items()
        if exponents[variable]
    }


def variables_of(exponents: Exponents) -> tuple[int, ...]:
    """Return the variables of a monomial, with repetition.

    >>> variables_of((2, 0, 1))
    (0, 0, 2)
    """
    return tuple(i for i, e in enumerate(exponents) for _ in range(e))


def exponents_of(variables: Sequence[int], count: int) -> Exponents:
    """Return the exponents of a product of some of `count` variables.

    >>> exponents_of((0, 0, 2), 3)
    (2, 0, 1)
    """
    exponents = [0] * count
    for i in variables:
        exponents[i] += 1
    return tuple(exponents)


def for_macaulay2(polynomial: Polynomial) -> list[list[object]]:
    """Write polynomials for a template, in the format of the partial ``_emit``: coefficients and monomials.

    >>> for_macaulay2({(2, 0): 1, (0, 1): -3})
    [[1, -3], [[0, 0], [1]]]
    """
    return [list(polynomial.values()), [list(variables_of(m)) for m in polynomial]]


def split_at_commas(text: str, start: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the texts between commas outside parentheses, each with its position; subscripts such as ``x_(0,1)`` stay whole."""
    depth = begin = 0
    for position, char in enumerate(text + ","):
        depth += char in "([{"
        depth -= char in ")]}"
        if (char == "," and depth == 0) or position == len(text):
            piece = text[begin:position]
            yield start + begin + len(piece) - len(piece.lstrip()), piece.strip()
            begin = position + 1
