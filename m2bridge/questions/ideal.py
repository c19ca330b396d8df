"""An ideal that a user brings, as a file of polynomials: dimension, degree, radical, components, singularities.

Text enters and is parsed into polynomials (:mod:`m2bridge.models.ideal_text`); they travel to Macaulay2 as integers, never as
text. The second witness is the Hilbert function in low degrees, by exact ranks of the generators' multiples over the same field.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb, lcm, prod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from m2bridge.errors import InputError
from m2bridge.linear.modular import echelon_mod, rank_over_q
from m2bridge.linear.primes import LARGE_PRIME, MACAULAY2_PRIME, check_prime, numbers_in, prime_for
from m2bridge.models.ideal_text import GivenIdeal, read_ideal
from m2bridge.models.polynomials import for_macaulay2, parse_polynomial, polynomial_text
from m2bridge.questions.asking import Clock, LimitReached
from m2bridge.questions.closure import Closure, read_field
from m2bridge.questions.closure.lifting import reduce_polynomial
from m2bridge.questions.closure.monomials import monomials_of_degree
from m2bridge.questions.cost import Expense
from m2bridge.questions.kernel import Asking, Option, Subject, question
from m2bridge.results import Certainty, Evidence, Result, register_result, said
from m2bridge.views import View, cut, known

TEMPLATE = "ideal"
_LARGEST_FILE = 16 * 2**20
_MOST_MONOMIALS = 1500
_MOST_RATIONAL_MONOMIALS = 130
_HIGHEST_CHECKED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class IdealComponent:
    """A minimal prime: its codimension, degree and generators as text in the user's variables."""

    codim: int
    degree: int
    generators: tuple[str, ...]


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class IdealSummary(Result):
    """Invariants of an ideal that a user brought; None for what was not wanted or not reached.

    Dimensions are affine (dim -1: the unit ideal). `degree` of a non-homogeneous ideal is that of its projective closure.
    `h_vector` is the numerator of the reduced Hilbert series of a homogeneous ideal.
    """

    ANALYSIS: ClassVar[str] = "ideal"
    VERSION: ClassVar[int] = 1

    variables: tuple[str, ...]
    generators: tuple[str, ...]
    field: str
    homogeneous: bool | None
    dim: int | None
    codim: int | None
    degree: int | None
    generator_degrees: tuple[int, ...] | None
    h_vector: tuple[int, ...] | None
    radical: bool | None
    components: tuple[IdealComponent, ...] | None
    singular_dim: int | None
    singular_degree: int | None
    not_shown: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What the summary is about."""
        return f"ideal of {cut(', '.join(self.generators), 120)} in {cut(', '.join(self.variables), 80)} over {self.field}"

    def view(self) -> View:
        size = f"dimension {known(self.dim)} (affine), codimension {known(self.codim)}, degree {known(self.degree)}"
        answer = "the unit ideal: its zero set is empty" if self.dim is not None and self.dim < 0 else size
        facts = [
            (name, str(value))
            for name, value in (
                ("homogeneous", self.homogeneous), ("h-vector", self.h_vector), ("radical", self.radical),
            )
            if value is not None
        ]  # fmt: skip
        if self.singular_dim is not None:
            place = f"dimension {self.singular_dim}, degree {self.singular_degree}"
            facts.append(("singular locus", "empty" if self.singular_dim < 0 else place))
        for number, part in enumerate(self.components or (), start=1):
            shown = ", ".join(part.generators) or "0"
            text = shown if len(shown) <= 200 else f"{len(part.generators)} generators"
            facts.append((f"component {number}", f"codimension {part.codim}, degree {part.degree}: {text}"))
        notes = tuple(f"- not shown: {sentence}" for sentence in self.not_shown)
        return View(answer=answer, facts=tuple(facts), notes=notes, to_prove="--field QQ")


def _given(given: Any) -> GivenIdeal:
    """An ideal as itself, as text, as a list of polynomials as texts, or as the answer of the question about a closure."""
    if isinstance(given, GivenIdeal):
        return given
    if isinstance(given, Closure):
        return read_ideal(given.to_m2(), source="the closure")
    return read_ideal(given if isinstance(given, str) else "\n".join(_lines(given)))


def _from_file(file: str) -> GivenIdeal:
    try:
        if file != "-" and Path(file).stat().st_size > _LARGEST_FILE:
            raise InputError(f"{file} is larger than {_LARGEST_FILE // 2**20} MB")
        text = sys.stdin.read(_LARGEST_FILE) if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from None
    return read_ideal(text, source="standard input" if file == "-" else Path(file).name)


IDEAL = Subject(
    of=_given,
    read=_from_file,
    metavar="FILE",
    help="A file of polynomials, one a line or a list such as ideal(x*y - z^2, x^3), as Macaulay2 or Singular write it, or an "
    '.mrdi file; - for standard input. A ring QQ\\[x,y,z] or a line "variables: x, y, z" declares the variables.',
)


def _cost(given: GivenIdeal, _: Mapping[str, Any]) -> Expense:
    """From the Bezout number of the generators of highest degree, as many as there are variables."""
    degrees = sorted((max(map(sum, f), default=0) for f in given.polynomials), reverse=True)
    bezout = prod(max(1, k) for k in degrees[: len(given.variables)])
    return Expense(
        seconds=1.5 + 1e-3 * float(bezout) ** 1.5,
        megabytes=95 + 0.01 * float(bezout),
        rests_on=f"{len(given.variables)} variables and Bezout number {bezout}",
    )


@question(
    asks="Dimension, degree, Hilbert series, radical, components and singular locus of an ideal of yours.",
    templates=("ideal",),
    quantities={"hilbert_function": "the Hilbert function in low degrees"},
    primes=(2, LARGE_PRIME),
    example="m2bridge closure --d 2 --dp 1 --format m2 | m2bridge ideal -",
    subject=IDEAL,
    cost=_cost,
)
def ideal(
    ask: Asking,
    given: GivenIdeal,
    *,
    field: Annotated[
        int | Literal["QQ"] | None,
        Option("QQ or a prime (default: the file's ring, else 32003).", read=read_field),
    ] = None,
    components: Annotated[bool, Option("Minimal primes and whether the ideal is radical.")] = True,
    singular: Annotated[bool, Option("The singular locus, when it is small.")] = True,
) -> IdealSummary:
    """Invariants of an ideal: dimension, degree, Hilbert series, radical, components, singular locus.

    The ideal is given by its text (see :func:`~m2bridge.models.ideal_text.read_ideal`). By default it is computed over the field
    that the file states, else over F_32003, or the next smaller prime that divides no coefficient.
    """
    p = _characteristic(ask.prime if field is None else field, given)
    values, limit = ask.ask(TEMPLATE, _request(given, p, components=components, singular=singular))
    ask.evidence += _evidence(given, values.get("h_vector"), values.get("dim"), p, ask.clock)
    found = values.get("components")
    not_shown = []
    if "singular_skipped" in values:
        not_shown.append(f"the singular locus: {values['singular_skipped']} Jacobian minors are too many")
    singular_dim, singular_degree = values.get("singular_dim"), values.get("singular_degree")
    if singular_dim is not None and (found is None or len({c for c, _, _ in found}) > 1):
        # the minors of the size of the codimension do not see singularities of smaller components
        not_shown.append("the singular locus: components may have different dimensions")
        singular_dim = singular_degree = None
    if p:
        not_shown.append(f"that these numbers are the same over QQ: they were computed over F_{p}")
        if gone := next((c for f in given.polynomials for c in f.values() if c.numerator % p == 0), None):
            not_shown.append(f"anything about the ideal over QQ: its coefficient {gone} is 0 in F_{p}")
    return ask.answer(
        IdealSummary, model="ideal",
        options={"components": components, "singular": singular, "generators": list(given.texts())},
        certainty=Certainty.PROBABLE if p else Certainty.PROVED, limit=limit,
        variables=given.variables, generators=given.texts(), field=f"F_{p}" if p else "QQ",
        homogeneous=values.get("homogeneous"), dim=values.get("dim"), codim=values.get("codim"),
        degree=values.get("degree"), generator_degrees=_tuple(values.get("generator_degrees")),
        h_vector=_tuple(values.get("h_vector")), radical=values.get("radical"),
        components=None if found is None else tuple(
            IdealComponent(codim=c, degree=d, generators=tuple(_renamed(g, given.variables) for g in gens))
            for c, d, gens in found
        ),
        singular_dim=singular_dim, singular_degree=singular_degree,
        not_shown=tuple(not_shown),
    )  # fmt: skip


def _lines(given: object) -> list[str]:
    if not isinstance(given, Sequence) or not all(isinstance(line, str) for line in given):
        raise InputError(
            "an ideal is given by its text or by a list of polynomials as texts, "
            f"not by the {type(given).__name__} {str(given)[:40]!r}"
        )
    return list(given)


def _request(given: GivenIdeal, p: int, *, components: bool, singular: bool) -> dict[str, object]:
    """Values for the template."""
    terms = [for_macaulay2(f) for f in given.polynomials if f]
    return {
        "p": p, "variableCount": len(given.variables), "polynomials": terms,
        "wantComponents": components, "wantSingular": singular,
    }  # fmt: skip


def _characteristic(field: int | str | None, given: GivenIdeal) -> int:
    """0 for QQ, or the prime. A prime that the user or the file names is the field of the question, where all coefficients exist.

    The default divides none of them.
    """
    stated = given.characteristic if field is None else 0 if field == "QQ" else int(field)
    if stated == 0:
        return 0
    default = prime_for(numbers_in(given.polynomials), chosen=None, default=MACAULAY2_PRIME)
    if stated is None:
        return default
    option = "--field" if field is not None else "the file's ring, characteristic"
    p = check_prime(stated, option)
    lost = [c for f in given.polynomials for c in f.values() if c.denominator % p == 0]
    if lost:
        raise InputError(
            f"the coefficient {lost[0]} of the ideal has no meaning modulo {p}; use --field {default}, or --field QQ"
        )
    return p


def _tuple(values: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


def _renamed(text: str, variables: Sequence[str]) -> str:
    """Macaulay2's polynomial in x0, x1, ... written in the user's variables; parsed, not replaced as text."""
    internal = [f"x{i}" for i in range(len(variables))]
    return polynomial_text(parse_polynomial(text, internal, source="Macaulay2's output"), variables)


def _evidence(
    given: GivenIdeal, h_vector: Sequence[int] | None, dim: int | None, p: int, clock: Clock
) -> list[Evidence]:
    """The Hilbert function in low degrees from Macaulay2's series, and by ranks over the same field: QQ for p = 0."""
    if h_vector is None or dim is None or dim < 0:
        return []
    n = len(given.variables)
    most = _MOST_MONOMIALS if p else _MOST_RATIONAL_MONOMIALS
    top = max(k for k in range(_HIGHEST_CHECKED + 1) if comb(n + k - 1, k) <= most or k <= 1)
    series = [_expanded(h_vector, dim, k) for k in range(top + 1)]
    certainty, over = (Certainty.PROBABLE, f"F_{p}") if p else (Certainty.PROVED, "QQ")
    try:
        ranks = [_hilbert(given, k, p, clock) for k in range(top + 1)]
    except LimitReached:
        return []
    say = partial(said, "hilbert_function", prime=p or None, certainty=certainty, field=over)
    witness, method = "modular" if p else "exact", "ranks of the generators' multiples"
    return [
        say(series, "macaulay2", "Hilbert series of the ideal"),
        say(ranks, witness, method, ancestry="program"),
    ]


def _expanded(h_vector: Sequence[int], dim: int, degree: int) -> int:
    """A coefficient of h(T) / (1-T)^dim."""
    if dim == 0:
        return h_vector[degree] if degree < len(h_vector) else 0
    return sum(h * comb(degree - i + dim - 1, dim - 1) for i, h in enumerate(h_vector) if i <= degree)


def _hilbert(given: GivenIdeal, degree: int, p: int, clock: Clock) -> int:
    """The Hilbert function in one degree: monomials minus the rank of the generators' multiples, over F_p, or QQ for p = 0."""
    n = len(given.variables)
    place = {tuple(row): i for i, row in enumerate(_exponents(n, degree))}
    rows: list[np.ndarray] = []
    for polynomial in given.polynomials:
        f = _integral(polynomial, p)
        gap = degree - max((sum(m) for m in f), default=degree + 1)
        for shift in _exponents(n, gap) if gap >= 0 else []:
            row = np.zeros(len(place), dtype=np.int64 if p else object)
            for m, c in f.items():
                row[place[tuple(a + b for a, b in zip(m, shift, strict=True))]] = c
            rows.append(row)
    clock.check()
    if not rows:
        return len(place)
    return len(place) - (
        len(echelon_mod(np.array(rows), p, clock.check)[1]) if p else rank_over_q(np.array(rows))
    )


def _integral(polynomial: Mapping[tuple[int, ...], Any], p: int) -> dict[tuple[int, ...], int]:
    """Residues modulo p; for p = 0 the multiple with integer coefficients."""
    if p:
        return reduce_polynomial(polynomial, p)
    common = lcm(*(c.denominator for c in polynomial.values()))
    return {m: int(c * common) for m, c in polynomial.items() if c}


def _exponents(n: int, degree: int) -> list[tuple[int, ...]]:
    return [tuple(np.bincount(row, minlength=n).tolist()) for row in monomials_of_degree(n, degree)]
