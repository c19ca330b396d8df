"""Compute invariants of an ideal that the user provides: dimension, degree, radical, components, singularities.

The text is parsed into polynomials (:mod:`m2bridge.frontends.ideals`), which are passed to Macaulay2 as integers, never as text.
The second witness is the Hilbert function in low degrees, by exact ranks of the generators' multiples over the same field.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from m2bridge.certainty import Certainty
from m2bridge.errors import InputError, LimitError, OutputError, ParseError, ScriptError
from m2bridge.evidence import Evidence
from m2bridge.frontends.ideals import GivenIdeal, read_ideal
from m2bridge.frontends.polynomials import for_macaulay2, polynomial_text
from m2bridge.limits import LimitReached
from m2bridge.linear.primes import LARGE_PRIME, MACAULAY2_PRIME, check_prime, numbers_in, prime_for
from m2bridge.linear.residues import reduce_polynomial
from m2bridge.protocol import Values
from m2bridge.questions.closure import Closure, chosen_field, read_field
from m2bridge.questions.custom_template import mistake_in
from m2bridge.questions.hilbert import expanded, generated_rank
from m2bridge.questions.kernel import Context, Option, Subject, question
from m2bridge.results import Result, register_result
from m2bridge.scripts import PARAMETERS_LINE, declare_text, template_directory, template_texts, verbatim
from m2bridge.views import View, shorten, value_text

_LARGEST_IDEAL_FILE = 16 * 2**20
"""Bytes of a file with an ideal."""
_MOST_IDEAL_MONOMIALS = 1500  # columns of a rank over F_p
_MOST_RATIONAL_MONOMIALS = 130  # columns of an exact rank over QQ
_HIGHEST_CHECKED = 8  # degree in which the Hilbert function is compared


@dataclass(frozen=True, slots=True, kw_only=True)
class IdealComponent:
    """A minimal prime: its codimension, degree and generators as text in the user's variables."""

    codim: int
    degree: int
    generators: tuple[str, ...]


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class IdealSummary(Result):
    """Invariants of an ideal of the user; None for those that were not requested or not computed.

    Dimensions are affine (dim -1: the unit ideal). `degree` of a non-homogeneous ideal is that of its projective closure.
    `h_vector` is the numerator of the reduced Hilbert series of a homogeneous ideal. `singular_scheme_degree` counts
    multiplicities in the scheme of the Jacobian minors; `singular_degree` of singular-locus is that of the reduced set.
    """

    ANALYSIS: ClassVar[str] = "ideal"
    VERSION: ClassVar[int] = 2
    HEADLINE: ClassVar[tuple[str, ...]] = ("dim", "codim", "degree")

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
    singular_scheme_degree: int | None
    not_shown: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Return the title of the summary: generators, variables and field."""
        generators = shorten(", ".join(self.generators), 120)
        variables = shorten(", ".join(self.variables), 80)
        return f"ideal of {generators} in {variables} over {self.field}"

    def view(self) -> View:
        dim, codim, degree = (value_text(number) for number in (self.dim, self.codim, self.degree))
        size = f"dimension {dim} (affine), codimension {codim}, degree {degree}"
        answer = "the unit ideal: its zero set is empty" if self.dim is not None and self.dim < 0 else size
        values = {"homogeneous": self.homogeneous, "h-vector": self.h_vector, "radical": self.radical}
        facts = [(name, str(value)) for name, value in values.items() if value is not None]
        if self.singular_dim is not None:
            scheme = f"affine dimension {self.singular_dim}, degree {self.singular_scheme_degree} with multiplicities"
            facts.append(("singular scheme", "empty" if self.singular_dim < 0 else scheme))
        for number, component in enumerate(self.components or (), start=1):
            generators = ", ".join(component.generators) or "0"
            text = generators if len(generators) <= 200 else f"{len(component.generators)} generators"
            facts.append(
                (f"component {number}", f"codimension {component.codim}, degree {component.degree}: {text}")
            )
        notes = tuple(f"- not established: {sentence}" for sentence in self.not_shown)
        return View(
            answer=answer,
            facts=tuple(facts),
            notes=notes,
            to_prove="--field QQ",
            decided=self.dim is not None,
        )


@dataclass(frozen=True, slots=True)
class IdealText:
    """A text with an ideal, or a script that defines one."""

    text: str
    source: str = "the ideal"


def _as_ideal(value: Any) -> GivenIdeal | IdealText:
    """Read an ideal from an ideal, a string, a list of strings, or the result of `closure`."""
    if isinstance(value, GivenIdeal | IdealText):
        return value
    if isinstance(value, Closure):
        count = value.coordinate_count
        return GivenIdeal(
            variables=tuple(f"z{i}" for i in range(count)), characteristic=value.characteristic,
            polynomials=tuple(f.terms(count) for f in value.known_equations),
        )  # fmt: skip
    lines = [value] if isinstance(value, str) else value
    if not isinstance(lines, Sequence) or not all(isinstance(line, str) for line in lines):
        raise InputError(
            f"an ideal is a string or a list of strings, not the {type(value).__name__} {str(value)[:40]!r}"
        )
    return IdealText("\n".join(lines))


def _from_file(file: str) -> IdealText:
    try:
        if file != "-" and Path(file).stat().st_size > _LARGEST_IDEAL_FILE:
            raise InputError(f"{file} is larger than {_LARGEST_IDEAL_FILE // 2**20} MB")
        text = sys.stdin.read(_LARGEST_IDEAL_FILE) if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', error)}") from None
    return IdealText(text, "standard input" if file == "-" else Path(file).name)


IDEAL = Subject(
    of=_as_ideal,
    read=_from_file,
    metavar="FILE",
    help="File of polynomials, one per line, or a list such as ideal(x*y - z^2, x^3), as Macaulay2 or Singular write it, or an "
    '.mrdi file; - for standard input. A ring QQ[x,y,z] or a line "variables: x, y, z" declares the variables.',
)


@question(
    asks="Dimension, degree, Hilbert series, radical, components and singular locus of a given ideal.",
    templates=("ideal", "named_ideal"),
    quantities={
        "dim": "the dimension of the zero set, affine",
        "codim": "its codimension",
        "degree": "its degree",
        "hilbert_function": "the Hilbert function in low degrees",
    },
    primes=(2, LARGE_PRIME),
    example="m2bridge closure --d 2 --dp 1 --format m2 | m2bridge ideal -",
    subject=IDEAL,
)
def ideal(
    context: Context,
    read: GivenIdeal | IdealText,
    *,
    field: Annotated[
        int | Literal["QQ"] | None,
        Option("QQ or a prime (default: the ring of the file, or 32003).", read=read_field),
    ] = None,
    components: Annotated[
        bool, Option("Compute the minimal primes, and whether the ideal is radical.")
    ] = True,
    singular: Annotated[bool, Option("Compute the singular locus if it is small.")] = True,
    run: Annotated[
        str | None,
        Option(
            "Run FILE as a script with Macaulay2, and take its ideal of this name (default: FILE is only parsed)."
        ),
    ] = None,
) -> IdealSummary:
    """Compute invariants of an ideal: dimension, degree, Hilbert series, radical, components, singular locus.

    :func:`~m2bridge.frontends.ideals.read_ideal` describes the format of the text. The default field is the one that the file
    states, otherwise F_32003, or that of the next smaller prime that divides no coefficient. With `run`, the text
    is run as a script in the sandbox, and must define an ideal of this name in commuting variables of degree 1.
    """
    user_ideal = read if isinstance(read, GivenIdeal) else _ideal_of(context, read, run)
    p = _characteristic(chosen_field(field, context.prime), user_ideal)
    request = {
        "p": p, "variableCount": len(user_ideal.variables),
        "polynomials": [for_macaulay2(f) for f in user_ideal.polynomials if f],
        "wantComponents": components, "wantSingular": singular,
    }  # fmt: skip
    values, limit = context.run_template("ideal", request)
    certainty, field_name = (Certainty.PROBABLE, f"F_{p}") if p else (Certainty.COMPUTED, "QQ")
    over_field = partial(Evidence, certainty=certainty, prime=p or None, field=field_name)
    for name in IdealSummary.HEADLINE:
        if name in values:
            context.add_evidence(over_field(name, values[name], "macaulay2", "Groebner basis"))
    _add_hilbert_evidence(context, user_ideal, values.get("h_vector"), values.get("dim"), p)
    primes = values.get("components")
    of_one_dimension = primes is not None and len({codim for codim, _, _ in primes}) <= 1
    # The minors of the size of the codimension do not detect singularities of components of smaller dimension.
    singular_locus = values if of_one_dimension else {}

    def component(codim: int, degree: int, generators: Any) -> IdealComponent:
        polynomials = values.polynomials(generators, len(user_ideal.variables))
        texts = tuple(polynomial_text(f, user_ideal.variables) for f in polynomials)
        return IdealComponent(codim=codim, degree=degree, generators=texts)

    sizes = {name: values.get(name) for name in ("homogeneous", "dim", "codim", "degree", "radical")}
    lists = {name: values.get(name) for name in ("generator_degrees", "h_vector")}
    return context.build_result(
        IdealSummary, model="ideal",
        options={"components": components, "singular": singular, "generators": list(user_ideal.texts())},
        certainty=certainty, limit=limit,
        variables=user_ideal.variables, generators=user_ideal.texts(), field=f"F_{p}" if p else "QQ", **sizes,
        **{name: None if listed is None else tuple(listed) for name, listed in lists.items()},
        components=None if primes is None else tuple(component(*item) for item in primes),
        singular_dim=singular_locus.get("singular_dim"), singular_scheme_degree=singular_locus.get("singular_scheme_degree"),
        not_shown=_not_shown(user_ideal, values, p, of_one_dimension=of_one_dimension),
    )  # fmt: skip


def _ideal_of(context: Context, read: IdealText, run: str | None) -> GivenIdeal:
    """Return the ideal in the text or, if `run` is a name, the one that the script defines."""
    if run is not None:
        return _run(context, read, run)
    try:
        return read_ideal(read.text, source=read.source)
    except ParseError as error:
        hint = "; --run NAME runs it with Macaulay2 and takes its ideal NAME" if read.text.strip() else ""
        raise ParseError(f"{error.message}{hint}", **error.fields) from None


def _run(context: Context, script: IdealText, name: str) -> GivenIdeal:
    """Return the ideal that the script of a user defines."""
    template = template_texts(template_directory())["named_ideal.m2.j2"]
    start = PARAMETERS_LINE.search(template)
    text = f'{verbatim(script.text)}\nidealName = "I";\n{template[start.start() if start else 0 :]}'
    try:
        values, limit = context.run_template(declare_text("named_ideal.m2.j2", text), {"idealName": name})
    except (ScriptError, OutputError) as error:
        raise mistake_in(script.source, text, error) from error
    if limit is not None:
        raise LimitError(f"ideal: {limit}")
    if "problem" in values:
        raise InputError(f"{script.source}, ideal {name}: {values['problem']}")
    variables = values.strings("variables")
    polynomials = values.polynomials(values["polynomials"], len(variables))
    return GivenIdeal(
        variables=variables, polynomials=tuple(polynomials), characteristic=values.integer("characteristic")
    )


def _not_shown(user_ideal: GivenIdeal, values: Values, p: int, *, of_one_dimension: bool) -> tuple[str, ...]:
    """State what the computation does not show, in sentences."""
    sentences = []
    if "singular_skipped" in values:
        sentences.append(f"the singular locus: {values['singular_skipped']} Jacobian minors are too many")
    if values.get("singular_dim") is not None and not of_one_dimension:
        sentences.append("the singular locus: components may have different dimensions")
    if p:
        sentences.append(f"that these numbers are the same over QQ: they were computed over F_{p}")
        coefficients = (c for f in user_ideal.polynomials for c in f.values())
        if (vanishing := next((c for c in coefficients if c.numerator % p == 0), None)) is not None:
            sentences.append(f"statements about the ideal over QQ: its coefficient {vanishing} is 0 in F_{p}")
    return tuple(sentences)


def _characteristic(field: int | str | None, user_ideal: GivenIdeal) -> int:
    """Return 0 for QQ, or the prime.

    A prime that the user or the file states is the field of the question; all coefficients must be defined there. The default
    prime divides no coefficient.
    """
    stated = (
        user_ideal.characteristic if field is None else 0 if field == "QQ" else int(read_field(str(field)))
    )
    if stated == 0:
        return 0
    default = prime_for(numbers_in(user_ideal.polynomials), chosen=None, default=MACAULAY2_PRIME)
    if stated is None:
        return default
    p = check_prime(stated, "--field" if field is not None else "the file's ring, characteristic")
    lost = [c for f in user_ideal.polynomials for c in f.values() if c.denominator % p == 0]
    if lost:
        raise InputError(
            f"the coefficient {lost[0]} of the ideal is not defined modulo {p}; use --field {default}, or --field QQ"
        )
    return p


def _add_hilbert_evidence(
    context: Context, user_ideal: GivenIdeal, h_vector: Sequence[int] | None, dim: int | None, p: int
) -> None:
    """Add the Hilbert function in low degrees from Macaulay2's series, and by ranks over the same field (QQ if p = 0)."""
    if h_vector is None or dim is None or dim < 0:
        return
    n = len(user_ideal.variables)
    most = _MOST_IDEAL_MONOMIALS if p else _MOST_RATIONAL_MONOMIALS
    top = max(k for k in range(_HIGHEST_CHECKED + 1) if comb(n + k - 1, k) <= most or k <= 1)
    generators = [f for f in (reduce_polynomial(f, p) if p else f for f in user_ideal.polynomials) if f]
    try:
        ranks = [
            comb(n + k - 1, k) - generated_rank(generators, k, n, p, context.clock.check)
            for k in range(top + 1)
        ]
    except LimitReached:
        return
    certainty, field_name = (Certainty.PROBABLE, f"F_{p}") if p else (Certainty.COMPUTED, "QQ")
    evidence_of = partial(
        Evidence, "hilbert_function", prime=p or None, certainty=certainty, field=field_name
    )
    witness = "modular" if p else "exact"
    method = "ranks of the generators' multiples"
    context.add_evidence(
        evidence_of(list(expanded(h_vector, dim, top)), "macaulay2", "Hilbert series of the ideal"),
        evidence_of(ranks, witness, method, ancestry="program"),
    )
