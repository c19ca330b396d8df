"""Write equations for msolve and read its output strictly.

msolve (Berthomieu, Eder, Safey El Din, https://msolve.lip6.fr) computes Groebner bases by F4 and parametrizations of finitely
many solutions. Two kinds of jobs are used:

- the leading monomials of an ideal over F_p, or of its saturation by a polynomial: they give the number of solutions;
- a rational parametrization: x_i = -v_i(t) / (c_i u(t)) at the roots t of w, over F_p or QQ; over QQ with boxes of real points.

The output must have exactly the form that msolve writes. A parametrization is also substituted into the equations, modulo w and
a prime, so that it is known to consist of solutions; a missing solution shows in the degree of the algebra, which msolve states
separately, and in counts by other means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

from flint import fmpq_poly, fmpz, nmod_poly

from m2bridge import protocol
from m2bridge.engine.base import Outcome, Run
from m2bridge.errors import InputError, NoEngineError, OutputError
from m2bridge.literals import NAME, literal
from m2bridge.scripts import Script

Exponents = tuple[int, ...]
Polynomial = Mapping[Exponents, int | Fraction]
LEAST_SATURATING_PRIME, MOST_SATURATING_PRIME = 2**16 + 1, 2**31 - 1
"""The primes for which saturations are supported."""
CHECK_PRIMES = (2_147_483_629, 2_147_483_587)
"""A parametrization over QQ is substituted into the equations modulo each of these."""
_SEED = ("--random-seed", "1")
_HEADER = re.compile(
    r"#Leading ideal data\n#---\n#field characteristic: (\d+)\n#variable order:       ([\w, ]+)\n"
    r"#monomial order:       graded reverse lexicographical\n#length of basis:      (\d+) elements?[a-z ]*\n#---\n"
)
_POWER = re.compile(r"(\w+)\^(\d+)")
_DYADIC = re.compile(r"(?<![\d-])(-?\d++) / 2(?:\^(\d+))?(?!\d)")
_ALLOWED = re.compile(r"[\[\]\d,\-\s\"A-Za-z_/^]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Equations in `variables` over F_p, over QQ for p = 0, as exponents -> coefficient."""

    variables: tuple[str, ...]
    p: int
    equations: tuple[Polynomial, ...]

    @property
    def text(self) -> str:
        """Return the input of msolve. Raises InputError for a name or coefficient that is not allowed in a script."""
        for name in self.variables:
            if not NAME.fullmatch(name):
                raise InputError(f"{name!r} is not a valid name for a variable of a script")
        lines = [terms for equation in self.equations if (terms := self._terms(equation))]
        return "\n".join([",".join(self.variables), literal(self.p), ",\n".join(lines) or "0", ""])

    def _terms(self, equation: Polynomial) -> str:
        terms = []
        for exponents, coefficient in equation.items():
            powers = [f"{x}^{e}" for x, e in zip(self.variables, exponents, strict=True) if e]
            number = literal(coefficient).strip("()")
            if coefficient:
                terms.append("*".join([number, *powers]))
        return "+".join(terms).replace("+-", "-")


def counting_script(name: str, system: System, saturate_by: Polynomial | None = None) -> Script:
    """Return the job that computes the leading monomials of the ideal, or of its saturation by a polynomial."""
    if saturate_by is None:
        return Script(name=name, text=system.text, arguments=("-g", "1", *_SEED))
    if not LEAST_SATURATING_PRIME <= system.p <= MOST_SATURATING_PRIME:
        raise InputError(
            f"msolve saturates over F_p for {LEAST_SATURATING_PRIME} <= p <= {MOST_SATURATING_PRIME}, not {system.p}"
        )
    whole = System(variables=system.variables, p=system.p, equations=(*system.equations, saturate_by))
    return Script(name=name, text=whole.text, arguments=("-S", "-g", "1", *_SEED))


def parametrizing_script(name: str, system: System) -> Script:
    """Return the job that computes a rational parametrization, over QQ also boxes of the real solutions."""
    return Script(name=name, text=system.text, arguments=("-P", "1", *_SEED))


# -- reading ---------------------------------------------------------------------------------------------


def check_finished(run: Run) -> None:
    """Raise the error for a run that did not finish; see :func:`m2bridge.protocol.read`."""
    if not run.began:
        raise NoEngineError(f"no msolve could load {run.script.name}: {run.stderr.strip()}", run=run)
    if run.outcome is not Outcome.FINISHED:
        raise protocol.failure(run)


def _malformed(run: Run, reason: str) -> OutputError:
    return OutputError(f"the output of msolve for {run.script.name} is malformed: {reason}", run=run)


def leading_monomials(run: Run, system: System) -> tuple[Exponents, ...]:
    """Return the minimal generators of the leading ideal, for the graded reverse lexicographic order."""
    check_finished(run)
    header = _HEADER.match(run.stdout)
    if header is None:
        raise _malformed(run, "no header")
    p, variables, length = header.groups()
    if int(p) != system.p or tuple(variables.split(", ")) != system.variables:
        raise _malformed(run, "another field or other variables")
    body = run.stdout[header.end() :]
    if not (body.startswith("[") and body.endswith("]:\n")):
        raise _malformed(run, "the list of monomials is not closed")
    words = body[1:-3].split(",\n")
    monomials = [_exponents(word, system.variables) for word in words]
    if None in monomials or len(set(monomials)) != len(monomials) or len(words) != int(length):
        raise _malformed(run, f"not {length} different monomials")
    return tuple(monomial for monomial in monomials if monomial is not None)


def _exponents(word: str, variables: Sequence[str]) -> Exponents | None:
    """Read a monomial such as x^2*y^1; None if it is none."""
    found = dict.fromkeys(variables, 0)
    for factor in word.split("*") if word != "1" else []:
        match = _POWER.fullmatch(factor)
        if match is None or found.get(match[1]) != 0:
            return None
        found[match[1]] = int(match[2])
    return tuple(found.values())


def standard_monomials(leading: Sequence[Exponents]) -> int | None:
    """Return the number of monomials outside a monomial ideal; None if there are infinitely many.

    >>> standard_monomials([(2, 0), (1, 1), (0, 3)]), standard_monomials([(1, 0)]), standard_monomials([(0, 0)])
    (4, None, 0)
    """
    generators = set(leading)
    variables = len(leading[0])
    if (0,) * variables in generators:
        return 0
    pure = [max(g) == sum(g) for g in generators]
    if len({g.index(max(g)) for g, alone in zip(generators, pure, strict=True) if alone}) < variables:
        return None
    level, total = {(0,) * variables}, 0
    while level:
        total += len(level)
        products = {(*m[:i], m[i] + 1, *m[i + 1 :]) for m in level for i in range(variables)}
        level = {m for m in products - generators if all(d in level for d in _divisors(m))}
    return total


def _divisors(monomial: Exponents) -> Iterator[Exponents]:
    """Yield the monomials of one degree less that divide it."""
    for i, e in enumerate(monomial):
        if e:
            yield (*monomial[:i], e - 1, *monomial[i + 1 :])


@dataclass(frozen=True, slots=True, kw_only=True)
class Parametrization:
    """Finitely many solutions: x_i = numerators_i(t) / denominator(t) at the roots t of `minimal`, which is squarefree.

    `degree` is the dimension of the algebra, at least the number of solutions. `boxes` are those that msolve printed around real
    solutions, a pair of numbers for each variable; empty over F_p.
    """

    p: int
    degree: int
    minimal: Any
    denominator: Any
    numerators: tuple[Any, ...]
    boxes: tuple[tuple[tuple[Fraction, Fraction], ...], ...] = ()

    @property
    def solutions(self) -> int:
        return max(int(self.minimal.degree()), 0)


def parametrization(run: Run, system: System) -> Parametrization | None:
    """Return the parametrization of the solutions; None if there are infinitely many.

    Raises
    ------
    OutputError
        The output is malformed, or contains something that is not a solution of the equations.
    """
    check_finished(run)
    n = len(system.variables)
    text = run.stdout
    if not text.endswith("]:\n"):
        raise _malformed(run, "it is truncated")
    quoted = _DYADIC.sub(lambda match: f'"{match[0]}"', text[:-2].replace("'", '"'))
    try:
        if not _ALLOWED.fullmatch(quoted):
            raise ValueError("unexpected characters")
        document = json.loads(quoted, parse_int=fmpz)
        if document == [-1]:
            empty = _polynomial([1], system.p)
            zeros = (empty * 0,) * n
            return Parametrization(p=system.p, degree=0, minimal=empty, denominator=empty, numerators=zeros)
        if document[0] == 1 and document[1:] == [n, -1, []]:
            return None
        solved = _read_document(document, system)
    except (ValueError, TypeError, IndexError, KeyError, ZeroDivisionError) as error:
        raise _malformed(run, str(error)) from None
    for p in (system.p,) if system.p else CHECK_PRIMES:
        if not satisfies(solved, system, p):
            raise OutputError(
                f"msolve's solutions for {run.script.name} do not satisfy the equations modulo {p}", run=run
            )
    return solved


def _read_document(document: Any, system: System) -> Parametrization:
    """Read the nested lists of a parametrization; any deviation from their form raises an error."""
    kind, data, *boxes = document
    p, count, degree, names, _, (_, (minimal, denominator, others)) = data
    _require(kind == 0 and int(p) == system.p, "another field")
    given = list(system.variables)
    added = len(names) - len(given)
    _require(int(count) == len(names) and sorted(names[: len(given)]) == sorted(given), "other variables")
    _require(added in (0, 1) and len(others) == len(names) - 1, "a coordinate is missing")
    w, u = _listed(minimal, system.p), _listed(denominator, system.p)
    _require(0 < w.degree() <= int(degree), "a degree that is too large")
    t = _polynomial([0, 1], system.p)
    written = {}
    for name, entry in zip(names, others, strict=False):
        numerator = -_listed(entry[0], system.p)
        written[name] = numerator / entry[1] if system.p == 0 else numerator
    if not added:
        written[names[-1]] = t * u
    numerators = tuple(written[name] for name in given)
    found = Parametrization(p=system.p, degree=int(degree), minimal=w, denominator=u, numerators=numerators)
    if system.p:
        _require(not boxes, "boxes over a finite field")
        return found
    ((_, listed),) = boxes
    _require(all(len(box) == len(given) for box in listed), "an incomplete box")
    return replace(found, boxes=tuple(tuple(map(_interval, box)) for box in listed))


def _interval(ends: Any) -> tuple[Fraction, Fraction]:
    """Read the ends of an interval, integers or texts such as 3 / 2^5."""
    low, high = (_dyadic(end) for end in ends)
    _require(low <= high, "an empty interval")
    return low, high


def _dyadic(end: Any) -> Fraction:
    if not isinstance(end, str):
        return Fraction(int(end))
    match = _DYADIC.fullmatch(end)
    _require(match is not None, "an end of an interval that is no dyadic number")
    assert match is not None
    return Fraction(int(match[1]), 2 ** int(match[2] or 1))


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


def _listed(entry: Any, p: int) -> Any:
    """Read a polynomial [degree, [coefficients from the constant one on]]."""
    degree, coefficients = entry
    _require(len(coefficients) == max(int(degree), 0) + 1, "a polynomial with a missing coefficient")
    return _polynomial(coefficients, p)


def _polynomial(coefficients: Sequence[Any], p: int) -> Any:
    numbers = [fmpz(c) for c in coefficients]
    return nmod_poly([int(c % p) for c in numbers], p) if p else fmpq_poly(numbers)


def satisfies(solved: Parametrization, system: System, p: int) -> bool:
    """Return whether the parametrized points are different and satisfy all equations, modulo `p` and the minimal polynomial.

    False also if `p` divides a denominator or the leading coefficient.
    """
    w, u = _reduce(solved.minimal, p), _reduce(solved.denominator, p)
    if w is None or u is None or w.degree() != solved.minimal.degree() or w.gcd(u).degree() != 0:
        return False
    if w.degree() > 0 and w.gcd(w.derivative()).degree() != 0:
        return False
    if w.degree() == 0:
        return True
    inverse = u.xgcd(w)[1]
    reduced = [_reduce(numerator, p) for numerator in solved.numerators]
    if None in reduced:
        return False
    values = [numerator * inverse % w for numerator in reduced if numerator is not None]
    return all(_value(equation, values, w) == 0 for equation in system.equations)


def _value(equation: Polynomial, values: Sequence[nmod_poly], w: nmod_poly) -> nmod_poly:
    """Return the value of an equation at residues modulo w."""
    p = int(w.modulus())

    @cache
    def power(i: int, e: int) -> nmod_poly:
        return values[i] if e == 1 else power(i, e - 1) * values[i] % w

    total = nmod_poly([], p)
    for exponents, coefficient in equation.items():
        number = Fraction(coefficient)
        term = nmod_poly([number.numerator * pow(number.denominator, -1, p) % p], p)
        for i, e in enumerate(exponents):
            if e:
                term = term * power(i, e) % w
        total += term
    return total % w


def _reduce(polynomial: Any, p: int) -> nmod_poly | None:
    """Reduce a polynomial modulo p; None if p divides a denominator."""
    if isinstance(polynomial, nmod_poly):
        return polynomial
    denominator = int(polynomial.denom() % p)
    if denominator == 0:
        return None
    inverse = pow(denominator, -1, p)
    return nmod_poly([int(c % p) * inverse % p for c in polynomial.numer().coeffs()], p)
