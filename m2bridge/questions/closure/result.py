"""The result :class:`Closure` with its :class:`Equation` s: evaluation, membership and export without computing again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from fractions import Fraction
from math import gcd, lcm, prod
from typing import Any, ClassVar, Literal

from m2bridge.errors import InputError
from m2bridge.evidence import Value
from m2bridge.frontends.polynomials import exponents_of
from m2bridge.limits import limit_advice
from m2bridge.linear.residues import residue
from m2bridge.questions.closure import formats
from m2bridge.questions.hilbert import HilbertSeries
from m2bridge.results import Result, register_result
from m2bridge.views import View, value_text

Completeness = Literal["complete", "up-to-degree", "partial"]
KERNEL = "the kernel of the ring map"
"""The first words of a sentence of `not_shown` about a kernel that was not computed."""
Monomial = tuple[int, ...]
"""Non-decreasing indices of variables, with repetition: (0, 0, 3) is z0^2*z3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """A polynomial in z0, z1, ... with integer coefficients (balanced residues when it is over F_p).

    `degree` is the degree of the homogeneous equation it comes from.

    >>> Equation(degree=2, coefficients=(1, -2), monomials=((0, 3), (1, 1))).text()
    'z0*z3 - 2*z1^2'
    """

    degree: int
    coefficients: tuple[int, ...]
    monomials: tuple[Monomial, ...]

    def terms(self, count: int) -> dict[tuple[int, ...], int]:
        """Return exponents in `count` variables -> coefficient."""
        exponents = (exponents_of(m, count) for m in self.monomials)
        return dict(zip(exponents, self.coefficients, strict=True))

    def _terms_at(self, values: Sequence[Any]) -> list[Any]:
        pairs = zip(self.coefficients, self.monomials, strict=True)
        return [prod((values[i] for i in m), start=c) for c, m in pairs]

    def at(self, values: Sequence[Any], p: int = 0) -> Any:
        """Evaluate at a point, modulo p unless p is 0."""
        value = sum(self._terms_at(values))
        return value % p if p else value

    def gradient(self, values: Sequence[Any]) -> list[Any]:
        """Return the partial derivatives at a point, one for each of its coordinates."""
        row: list[Any] = [0] * len(values)
        for coefficient, monomial in zip(self.coefficients, self.monomials, strict=True):
            if sum(1 for i in monomial if values[i] == 0) > 1:
                continue  # every partial derivative keeps a factor that vanishes here
            for i, power in Counter(monomial).items():
                rest = list(monomial)
                rest.remove(i)
                row[i] = row[i] + prod((values[j] for j in rest), start=coefficient * power)
        return row

    def relative_residual(self, values: Sequence[float]) -> float:
        """Return the absolute value at a real point over the sum of the terms' absolute values (0 when all terms vanish)."""
        terms = self._terms_at(values)
        size = sum(map(abs, terms))
        return abs(float(sum(terms))) / float(size) if size else 0.0

    def text(self, *, power: str = "^", name: str = "z{}") -> str:
        """Write plain text, as Macaulay2 and (with ``power="**"``) Python read it; `name` is that of variable {}."""
        return self._written("*", lambda i, e: name.format(i) + (f"{power}{e}" if e > 1 else ""))

    def latex(self) -> str:
        """Write LaTeX source."""
        return self._written("", lambda i, e: f"z_{{{i}}}" if e == 1 else f"z_{{{i}}}^{{{e}}}")

    def _written(self, times: str, factor: Callable[[int, int], str]) -> str:
        text = ""
        for coefficient, monomial in zip(self.coefficients, self.monomials, strict=True):
            factors = [factor(i, e) for i, e in sorted(Counter(monomial).items())]
            number = [] if abs(coefficient) == 1 and factors else [str(abs(coefficient))]
            signs = ("-", "") if not text else (" - ", " + ")
            text += signs[coefficient >= 0] + times.join(number + factors)
        return text or "0"


def equation(
    terms: Mapping[tuple[int, ...], int | Fraction] | Iterable[tuple[tuple[int, ...], int | Fraction]],
    names: Sequence[int],
    *,
    p: int = 0,
    constant: int | None = None,
) -> Equation:
    """Make an equation from exponents in the span's coordinates.

    Parameters
    ----------
    terms: exponents -> coefficient; a fraction over QQ, a residue over F_p.
    names: the index of each of the span's coordinates among all coordinates.
    p: the characteristic; coefficients are balanced around 0 when positive, cleared of denominators and content when 0.
    constant: index of the homogenizing coordinate, to be set to 1.
    """
    pairs = sorted(dict(terms).items(), reverse=True)
    if p:
        residues = [int(c) % p for _, c in pairs]
        coefficients = [c if 2 * c <= p else c - p for c in residues]
    else:
        fractions = [Fraction(c) for _, c in pairs]
        content = Fraction(gcd(*(f.numerator for f in fractions)), lcm(*(f.denominator for f in fractions)))
        coefficients = [int(f / content) for f in fractions]
    if coefficients and coefficients[0] < 0:
        coefficients = [-c for c in coefficients]
    monomials = tuple(
        tuple(names[i] for i, e in enumerate(exponents) for _ in range(e) if names[i] != constant)
        for exponents, _ in pairs
    )
    degree = max((sum(exponents) for exponents, _ in pairs), default=0)
    return Equation(degree=degree, coefficients=tuple(coefficients), monomials=monomials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Whether a point satisfies the equations, and in which sense; true or false in an ``if``.

    `arithmetic` is ``exact`` (over QQ), ``mod p`` or ``real``; for ``real`` the largest residual, relative to the
    largest term of its equation, was compared with `tolerance`.
    """

    verdict: bool
    arithmetic: str
    residual: float | None = None
    tolerance: float | None = None

    def __bool__(self) -> bool:
        return self.verdict


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class Closure(Result):
    """The Zariski closure of the image of a model: its equations, invariants, and what is shown about them.

    Attributes
    ----------
    ambient_dim: dimension of the model's function space, which is the number of all coefficients of the network.
    coordinate_count, coordinates: how many coordinates z0, z1, ... are used, and what they are, in a sentence.
    span_dim: affine dimension of the linear span of the image; `linear_forms`: how many independent linear equations hold in
        the coordinates that are used. In all coefficients of the network they are `ambient_dim - span_dim`.
    image_dim: affine dimension of the image; `codim`, `degree`: of the closure in its span. None when not reached.
    generator_counts: degree -> number of minimal generators, in the span; called ``generators`` in JSON. The generators
        themselves, as SymPy polynomials, are made on demand by the property `generators`.
    hilbert_function: of the image in degrees 0, 1, ...; by evaluation ranks, or of the kernel.
    hilbert_series: of the closure, by Macaulay2 from the equations, with its own certainty; None unless they are complete.
    completeness: ``complete``: the generators generate the ideal of the closure; ``up-to-degree``: they generate it up
        to degree `degree_bound`; ``partial``: a limit was reached, the same holds for the smaller `degree_bound`.
    shown, not_shown: what these words rest on, in sentences.
    homogenized: the image is no cone; degrees and generators are those of its cone, one coordinate of which is 1.
    equations: linear forms first, then the minimal generators; None when they were not asked for.
    variables: what z0, z1, ... stand for; None without equations.
    certificate: the equations over ZZ, for `m2bridge check`; empty where they are not known there, or are too large.
    """

    ANALYSIS: ClassVar[str] = "closure"
    VERSION: ClassVar[int] = 4
    HEADLINE: ClassVar[tuple[str, ...]] = ("image_dim", "codim", "degree")

    ambient_dim: int
    coordinate_count: int
    coordinates: str
    span_dim: int
    linear_forms: int
    image_dim: int | None
    codim: int | None
    degree: int | None
    generator_counts: Mapping[int, int] = dataclass_field(metadata={"key": "generators"})
    hilbert_function: tuple[int, ...]
    completeness: Completeness
    degree_bound: int
    method: str
    field: str
    hilbert_series: HilbertSeries | None = None
    homogenized: bool = False
    shown: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()
    equations: tuple[Equation, ...] | None = None
    variables: tuple[str, ...] | None = None
    certificate: tuple[Mapping[str, Value], ...] = ()

    def certified(self) -> frozenset[str]:
        """Over QQ that the equations vanish and, where it reaches as far, the minimal generators; never the degree."""
        if self.characteristic or not self.certificate:
            return frozenset()
        reached = all(document["statement"]["degree"] >= self.degree_bound for document in self.certificate)
        return frozenset({"vanishing", "generators"} if reached else {"vanishing"})

    @property
    def characteristic(self) -> int:
        """Return 0 for equations over QQ, else the prime."""
        return 0 if self.field == "QQ" else int(self.field.removeprefix("F_"))

    @property
    def known_equations(self) -> tuple[Equation, ...]:
        """Return the equations; an error where the record has none."""
        if self.equations is None:
            raise InputError("the record contains no equations; compute it again with --equations")
        return self.equations

    @property
    def generators(self) -> tuple[Any, ...]:
        """Return the minimal generators in the span as SymPy polynomials in z0, z1, ...; without the linear forms."""
        return self.polynomials[self.linear_forms :]

    @property
    def polynomials(self) -> tuple[Any, ...]:
        """Return all equations, linear forms first, as SymPy polynomials in z0, z1, ..., over QQ or the finite field."""
        return formats.sympy_polynomials(self.known_equations, self.coordinate_count, self.characteristic)

    def written(self, form: str) -> str:
        """Write the equations as text: ``m2``, ``sympy``, ``latex``, ``json`` or ``mrdi``."""
        return formats.written(self.known_equations, self.coordinate_count, self.characteristic, form)

    def to_m2(self) -> str:
        """Write Macaulay2 source that defines the ring S and the ideal I."""
        return self.written("m2")

    def contains(self, point: Sequence[Any], *, tolerance: float = 1e-9) -> Membership:
        """Return whether a point of the coordinate space satisfies all equations.

        Integers and Fractions are decided exactly when the equations are over QQ, and modulo p when they are over F_p (then a
        "no" is certain for integer points only if the equations lift). Floats are decided up to `tolerance`, and only
        for equations over QQ. A yes means membership in the zero set of the equations that were found.
        """
        values = list(point)
        if len(values) != self.coordinate_count:
            raise InputError(f"a point has {self.coordinate_count} coordinates here, not {len(values)}")
        p, equations = self.characteristic, self.known_equations
        if all(isinstance(v, (int, Fraction)) or hasattr(v, "__index__") for v in values):
            exact = [v if isinstance(v, Fraction) else int(v) for v in values]
            point = [residue(v, p) for v in exact] if p else exact
            verdict = all(f.at(point, p) == 0 for f in equations)
            return Membership(verdict=verdict, arithmetic=f"mod {p}" if p else "exact")
        if p:
            raise InputError("equations over F_p do not define real points; compute the closure over QQ")
        worst = max((f.relative_residual([float(v) for v in values]) for f in equations), default=0.0)
        return Membership(verdict=worst <= tolerance, arithmetic="real", residual=worst, tolerance=tolerance)

    def _repr_latex_(self) -> str:
        if self.equations is None or len(self.equations) > 12:
            told = f"equations in the span of dimension {self.span_dim}: {self._counts()}; codimension {self.codim}"
            told += f", degree {self.degree}; {self.completeness} ({self.certainty.value})"
            return f"$$\\text{{{told}}}$$"
        zero = formats.latex_zero(self.characteristic)
        lines = r" \\ ".join(f"&{f.latex()} {zero}" for f in self.equations)
        return f"$$\\begin{{aligned}}{lines}\\end{{aligned}}$$"

    def view(self) -> View:
        cone = ", not a cone" if self.homogenized else ""
        facts = [
            ("coordinates", f"{_numbered(self.coordinate_count)}: {self.coordinates}"),
            ("linear span", f"affine dimension {self.span_dim}; {self._linear_forms()}"),
            ("image", f"affine dimension {value_text(self.image_dim)}{cone}"),
        ]
        reached = f"{self.completeness}, searched up to degree {self.degree_bound}, over {self.field}"
        facts.append(("minimal generators", self._counts()))
        facts.append(("completeness", reached))
        if self.hilbert_series is not None:
            facts.append(
                ("Hilbert series", f"{self.hilbert_series.text} ({self.hilbert_series.certainty.value})")
            )
        notes = [
            *(f"+ {line}" for line in self.shown),
            *(f"- not established: {line}" for line in self.not_shown),
        ]
        affine = f"affine dimension {value_text(self.image_dim)}"
        return View(
            answer=f"{affine}, codimension {value_text(self.codim)} in its span, degree {value_text(self.degree)}",
            facts=tuple(facts), notes=(*notes, *self._written_equations()), to_prove=self._to_prove(),
        )  # fmt: skip

    def _to_prove(self) -> str:
        if self.field != "QQ":
            return "--field QQ lifts the equations and checks them exactly"
        lacking = next((line for line in self.not_shown if line.startswith(KERNEL)), None)
        if lacking is None:
            return "--method kernel: a kernel over QQ is all of the ideal"
        return limit_advice(lacking, "a kernel of the ring map over QQ") + f": {KERNEL} was not finished"

    def _counts(self) -> str:
        counts = sorted(self.generator_counts.items())
        return ", ".join(f"{count} of degree {degree}" for degree, count in counts) or "none"

    def _linear_forms(self) -> str:
        """Count the linear equations, in the coordinates that are used and in all coefficients."""
        used, every = self.coordinate_count, self.ambient_dim
        words = f"{self.linear_forms} linear forms in the {used} coordinates"
        return words if used == every else f"{words}, {every - self.span_dim} in all {every} coefficients"

    def _written_equations(self) -> list[str]:
        """Write the equations after the meaning of their variables."""
        equations = self.equations or ()
        zero = f"= 0 (mod {self.characteristic})" if self.characteristic else "= 0"
        lines = [f"  {f.text()} {zero}" for f in equations]
        used = sorted({i for f in equations for m in f.monomials for i in m})
        return [f"  z{i}: {_meaning(self.variables[i])}" for i in used if self.variables] + lines


def _numbered(count: int) -> str:
    """Name the coordinates z0, z1, ..."""
    return ", ".join(f"z{i}" for i in range(count)) if count < 4 else f"z0, z1, ..., z{count - 1}"


def _meaning(name: str) -> str:
    """Explain the name of a coordinate: ``y[1]: x[1]^2`` is a coefficient of an output."""
    output, _, monomial = name.partition(": ")
    return f"coefficient of {monomial} in {output}" if monomial else name
