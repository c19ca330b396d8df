"""An ideal that a user brings, as a file of polynomials: dimension, degree, radical, components, singularities.

Text enters and is parsed into polynomials (:mod:`m2bridge.models.ideal_text`); they travel to Macaulay2 as integers, never as
text. The second witness is the Hilbert function in low degrees, by exact ranks of the generators' multiples over the same field.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import comb, lcm
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from m2bridge.engine import open_engine
from m2bridge.engine.base import Engine, Limits
from m2bridge.errors import InputError
from m2bridge.linear.integer import rank_over_q
from m2bridge.linear.modular import echelon_mod
from m2bridge.linear.primes import MACAULAY2_PRIME, check_prime, numbers_in, prime_for
from m2bridge.linear.residues import residue
from m2bridge.models.ideal_text import GivenIdeal, read_ideal
from m2bridge.models.polynomials import parse_polynomial, polynomial_text
from m2bridge.questions.clock import Clock, LimitReached
from m2bridge.questions.closure.asking import Asking
from m2bridge.questions.closure.monomials import monomials_of_degree
from m2bridge.results import Certainty, Evidence, Result, register_result, weigh
from m2bridge.scripts import Script, render

TEMPLATE = "ideal"
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


def ideal(
    given: GivenIdeal | Sequence[str] | str,
    *,
    field: int | Literal["QQ"] | None = None,
    components: bool = True,
    singular: bool = True,
    engine: Engine | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    keep: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> IdealSummary:
    """Invariants of an ideal: dimension, degree, Hilbert series, radical, components, singular locus.

    Parameters
    ----------
    given: the ideal, or its text (see :func:`~m2bridge.models.ideal_text.read_ideal`).
    field: a prime, or ``"QQ"``; by default what the file states, else F_32003, or the next smaller prime that divides no
        coefficient.
    components, singular: what to compute besides dimension and degree.
    """
    if not isinstance(given, GivenIdeal):
        given = read_ideal(given if isinstance(given, str) else "\n".join(_lines(given)))
    p = _characteristic(field, given)
    started = time.monotonic()
    limits = limits or Limits()
    clock = Clock(limits.wall_seconds, limits.memory_bytes)
    request = _request(given, p, components=components, singular=singular)
    with open_engine() if engine is None else nullcontext(engine) as opened:
        asking = Asking(opened, limits, clock, keep=keep, progress=progress)
        values, limit = asking.ask(TEMPLATE, request)
        evidence = _evidence(given, values.get("h_vector"), values.get("dim"), p, clock)
        found = values.get("components")
        not_shown = [] if "singular_skipped" not in values else [
            f"the singular locus: {values['singular_skipped']} Jacobian minors are too many"
        ]  # fmt: skip
        singular_dim, singular_degree = values.get("singular_dim"), values.get("singular_degree")
        if singular_dim is not None and (found is None or len({c for c, _, _ in found}) > 1):
            # the minors of the size of the codimension do not see singularities of smaller components
            not_shown.append("the singular locus: components may have different dimensions")
            singular_dim = singular_degree = None
        if p:
            not_shown.append(f"that these numbers are the same over QQ: they were computed over F_{p}")
        if p and (
            gone := next((c for f in given.polynomials for c in f.values() if c.numerator % p == 0), None)
        ):
            not_shown.append(f"anything about the ideal over QQ: its coefficient {gone} is 0 in F_{p}")
        return IdealSummary(
            model="ideal", options={"components": components, "singular": singular, "generators": list(given.texts())},
            certainty=Certainty.PROBABLE if p else Certainty.PROVED, agreement=weigh(evidence).verdict,
            evidence=tuple(evidence), engine=asking.engine_use, scripts=tuple(asking.scripts), seed=seed,
            seconds=time.monotonic() - started, peak_memory_bytes=asking.peak_memory_bytes, limit=limit,
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
    terms = [[[c.numerator, c.denominator, list(m)] for m, c in f.items()] for f in given.polynomials if f]
    return {
        "p": p, "variableCount": len(given.variables), "polynomials": terms,
        "wantComponents": components, "wantSingular": singular,
    }  # fmt: skip


def script_of(found: IdealSummary) -> Script:
    """The script that led to a summary, rendered again from what the summary says."""
    polynomials = tuple(parse_polynomial(text, found.variables) for text in found.generators)
    given = GivenIdeal(variables=found.variables, polynomials=polynomials)
    p = 0 if found.field == "QQ" else int(found.field.removeprefix("F_"))
    wanted = {name: bool(found.options.get(name, True)) for name in ("components", "singular")}
    return render(TEMPLATE, _request(given, p, **wanted))


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
    return [
        Evidence(
            quantity="hilbert_function", witness="macaulay2", method="Hilbert series of the ideal", value=series,
            prime=p or None, certainty=certainty, field=over,
        ),
        Evidence(
            quantity="hilbert_function", witness="modular" if p else "exact", method="ranks of the generators' multiples",
            value=ranks, prime=p or None, certainty=certainty, field=over, ancestry="program",
        ),
    ]  # fmt: skip


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
    common = 1 if p else lcm(*(c.denominator for c in polynomial.values()))
    values = {m: residue(c, p) if p else int(c * common) for m, c in polynomial.items()}
    return {m: c for m, c in values.items() if c}


def _exponents(n: int, degree: int) -> list[tuple[int, ...]]:
    return [tuple(np.bincount(row, minlength=n).tolist()) for row in monomials_of_degree(n, degree)]
