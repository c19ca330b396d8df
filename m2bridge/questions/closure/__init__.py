"""The ideal of the Zariski closure of a model's image, with what is shown about it.

Two methods stand behind one question: ``kernel`` (Macaulay2's ring map kernel, the reference) and ``interpolation`` (exact linear
algebra over F_p in each multidegree, then Macaulay2 on what was found). ``auto`` interpolates, and asks for the kernel when
completeness could not be shown otherwise and the kernel may be in reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import partial
from typing import Annotated, Any, Literal, get_args

import numpy as np

from m2bridge.alarm import suspended_alarm
from m2bridge.certainty import Certainty
from m2bridge.certificates.points import closure_certificates
from m2bridge.errors import InputError
from m2bridge.evidence import Evidence, Relation
from m2bridge.families.base import Model
from m2bridge.frontends.polynomials import Polynomial
from m2bridge.limits import LimitReached
from m2bridge.linear.primes import (
    LARGE_PRIME,
    LARGEST_MACAULAY2_PRIME,
    MACAULAY2_PRIME,
    check_prime,
    prime_for,
    primes_below,
)
from m2bridge.protocol import Values
from m2bridge.questions.closure import methods
from m2bridge.questions.closure.formats import FORMATS
from m2bridge.questions.closure.image import Image, Span, image_of
from m2bridge.questions.closure.interpolation import Interpolation, interpolate
from m2bridge.questions.closure.result import Closure, Completeness, Equation, equation
from m2bridge.questions.closure.series import HilbertSeries, expanded
from m2bridge.questions.kernel import Context, Option, question

__all__ = ["FORMATS", "Closure", "Equation", "HilbertSeries", "Work", "closure", "interpolate", "read_field"]

Method = Literal["auto", "interpolation", "kernel"]
_KERNEL_SPAN = 20
_FEW_POINTS = 5
"""Over a smaller field polynomials such as x^p - x vanish at all points: nothing is interpolated unless a user asks for it."""
_SHORT_EQUATION = 160
"""A single equation that is not longer is part of every answer."""


def read_field(text: str) -> int | Literal["QQ"]:
    """The field that a user names: QQ, or a prime as 32003, F_32003 or ZZ/32003."""
    if text.upper() == "QQ":
        return "QQ"
    try:
        p = int(text.removeprefix("F_").removeprefix("ZZ/"))
    except ValueError:
        raise InputError(f"--field {text!r} is neither QQ nor a prime") from None
    return check_prime(p, "--field")


@question(
    asks="The equations of the Zariski closure of a network's functions, with what is shown about them.",
    primes=(2, LARGE_PRIME),
    templates=("closure_kernel", "closure_accounting", "closure_unmixed", "closure_section"),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "codim": "the codimension of the closure in its linear span",
        "degree": "the degree of the closure",
        "generators": "how many minimal generators of which degree",
    },
    example="m2bridge closure --d 2 --dp 1 --equations",
    warm=True,
    formats=FORMATS,
)
def closure(
    context: Context,
    model: Model,
    *,
    method: Annotated[Method, Option("How to find the equations: auto, interpolation or kernel.")] = "auto",
    max_degree: Annotated[
        int | None, Option("Look for generators up to this degree (default: until settled).", least=1)
    ] = None,
    field: Annotated[
        int | Literal["QQ"] | None, Option("QQ, or a prime (the same as --prime).", read=read_field)
    ] = None,
    cross_check: Annotated[bool, Option("Also compute the kernel, and compare.")] = False,
    equations: Annotated[
        bool, Option("Print and record the equations; a single short one always is.", unasked=False)
    ] = True,
) -> Closure:
    """The ideal of the Zariski closure of the image of a polynomial model.

    Over ``"QQ"`` equations are lifted and checked by exact substitution. When limits are reached, the degrees finished before are
    returned.

    Examples
    --------
    >>> answer = closure("lightning(d=2, dp=1, a=2)")  # doctest: +SKIP
    >>> answer.generator_counts, answer.codim, answer.degree, answer.completeness  # doctest: +SKIP
    ({4: 1}, 1, 4, 'complete')
    """
    if method not in get_args(Method):
        raise InputError(f"--method {method!r} is not one of {', '.join(get_args(Method))}")
    if max_degree is not None and max_degree < 1:
        raise InputError(f"--max-degree {max_degree}: a positive degree is needed")
    field = context.prime if field is None else field
    chosen = None if field is None or field == "QQ" else int(read_field(str(field)))
    image = image_of(model)
    prime = prime_for(image.numbers, chosen=chosen, default=MACAULAY2_PRIME)
    if chosen is None:
        with image.watched(context.clock.check):
            prime = _lucky_prime(image, prime, context.seed)
    context.require_engine()
    begin = partial(Work, context=context, model=model, image=image, rational=field == "QQ")
    work = begin(prime=prime)
    if method != "interpolation" and prime < _FEW_POINTS:
        methods.by_kernel(work, max_degree, alone=True)
        work.lacks(f"agreement with interpolation: F_{prime} has too few points to tell polynomials apart")
    elif method == "kernel":
        methods.by_kernel(work, max_degree)
    else:
        methods.by_interpolation(work, max_degree)
        if work.unlucky and chosen is None:  # once more with another prime, for a user who has chosen none
            work = begin(prime=primes_below(prime - 1, count=1, numbers=image.numbers)[0])
            methods.by_interpolation(work, max_degree)
        if work.few_points and method == "auto" and not work.complete:
            work = _kernel_instead(work, begin(prime=work.prime), max_degree)
        elif cross_check or (method == "auto" and _kernel_may_settle(work)):
            methods.compare_with_kernel(work)
    done: str = method
    if method == "auto":
        used = {"interpolation": work.interpolated, "kernel": work.kernel_used}
        done = "+".join(name for name, was_used in used.items() if was_used)
    over = "QQ" if field == "QQ" else f"F_{work.prime}"
    options = {"method": method, "max_degree": max_degree, "field": over, "cross_check": cross_check}
    p = 0 if work.over_q else work.prime
    certificate: tuple[Mapping[str, Any], ...] = ()
    with work.keeping("a certificate"):
        certificate = closure_certificates(model, work.equations(), p, work.degree_bound, seed=context.seed)
    with suspended_alarm():  # what is known is written down, also when time is over
        return work.result(method=done, equations=equations, options=options, certificate=certificate)


def _lucky_prime(image: Image, prime: int, seed: int) -> int:
    """A prime over which the image spans as much as over a large one, for a user who has chosen none."""
    if not image.numbers:
        return prime

    def spans(p: int) -> int:
        return image.span(np.random.default_rng(seed), p).dim

    wanted = max(spans(image.large_prime), spans(image.second_prime))
    if spans(prime) == wanted:
        return prime
    tried = primes_below(LARGEST_MACAULAY2_PRIME, count=8, without=prime, numbers=image.numbers)
    return next((p for p in tried if spans(p) == wanted), prime)


def _kernel_instead(work: Work, other: Work, max_degree: int | None) -> Work:
    """The kernel of the ring map, where points over F_p do not determine equations; `work` as it is if that takes too long."""
    methods.by_kernel(other, max_degree, alone=True)
    if not other.complete:
        work.limit = work.limit or other.limit
        work.lacks("the kernel of the ring map: Macaulay2 did not finish it in time")
        return work
    other.lacks(
        f"agreement with interpolation: {work.image.too_few_points(work.degree_bound + 1, work.prime)}"
    )
    return other


def _kernel_may_settle(work: Work) -> bool:
    """Whether completeness is still open and the kernel may be in reach."""
    open_ = not work.complete and work.limit is None
    return open_ and work.span.dim <= _KERNEL_SPAN and not work.image.padded


# -- what is known so far, and the answer ----------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Work:
    """The state of one computation.

    `cone_dim`, `codim` and `degree` are those of the image made a cone; `polynomials` are in the coordinates of the span, over
    F_p; `lifted` and `lifted_forms` (the linear ones, in all coordinates) are over QQ. `drops`: over F_p the rank at a random
    point is smaller than over QQ; `unlucky`: the prime should be another one; `few_points`: points over F_p do not determine
    equations of the next degree. `series` is Macaulay2's Hilbert series of the
    equations' ideal: the numerator, the exponent of 1 - T for the cone, and the characteristic.
    """

    context: Context
    model: Model
    image: Image
    prime: int
    rational: bool = False

    evidence: list[Evidence] = dataclass_field(default_factory=list)
    shown: list[str] = dataclass_field(default_factory=list)
    not_shown: list[str] = dataclass_field(default_factory=list)
    polynomials: Sequence[Polynomial] = ()
    lifted: Sequence[Polynomial] | None = None
    lifted_forms: Sequence[Polynomial] | None = None
    span: Span = dataclass_field(init=False)
    cone_dim: int = dataclass_field(init=False)
    codim: int | None = None
    degree: int | None = None
    counts: Mapping[int, int] = dataclass_field(default_factory=dict)
    hilbert_function: tuple[int, ...] = ()
    series: tuple[tuple[int, ...], int, int] | None = None
    degree_bound: int = 1
    complete: bool = False
    proved: bool = False
    limit: str | None = None
    interpolated: bool = False
    kernel_used: bool = False
    unlucky: bool = False
    drops: bool = False
    few_points: bool = False

    def say(self, quantity: str, value: Any, witness: str, method: str, **more: Any) -> None:
        """Add a witness's word over the prime of the computation, unless said otherwise, about the field of that prime.

        A number over F_p and the same over QQ are different quantities.
        """
        own = {"prime": self.prime, **more}
        own.setdefault("field", f"F_{own['prime']}" if own["prime"] else "QQ")
        self.evidence.append(Evidence(quantity, value, witness, method, **own))

    def say_counts(self, witness: str, method: str, counts: Mapping[int, int], p: int | None) -> None:
        """Add how many minimal generators of which degree a witness found."""
        self.say("generators", {str(k): v for k, v in sorted(counts.items())}, witness, method, prime=p)

    def shows(self, sentence: str) -> None:
        self.shown.append(sentence)

    def lacks(self, sentence: str) -> None:
        self.not_shown.append(sentence)

    @contextmanager
    def keeping(self, step: str) -> Iterator[None]:
        """Run a step that a limit may end: what was found before it is the answer, which says what is missing."""
        with self.context.keep_partial(step):
            try:
                yield
            except LimitReached as reached:
                self.limit = self.limit or reached.reason
                self.lacks(f"{step}: a limit came first")
                raise

    def other_primes(self, count: int) -> list[int]:
        """Large primes that divide nothing that was given, other than the one of the computation."""
        large, numbers = self.image.large_prime, self.image.numbers
        return primes_below(large, count=count, without=self.prime, numbers=numbers)

    def interpolation(self, p: int) -> Interpolation:
        """Nothing but the span yet, over one prime."""
        return Interpolation(self.image, prime=p, seed=self.context.seed, clock=self.context.clock)

    @property
    def known_degree(self) -> int | None:
        """The degree that was counted on the parametrization, without equations."""
        counted = (
            e.value for e in self.evidence if e.quantity == "degree" and e.witness == "parametrization"
        )
        return next(map(int, counted), None)

    @property
    def dense(self) -> bool:
        """Whether the image is dense in the whole space, which ranks modulo p show over QQ."""
        return self.codim == 0 and not self.span.linear_forms

    def take_series(self, values: Values, p: int) -> None:
        """Keep Macaulay2's Hilbert series of an ideal in the coordinates of the span, over F_p or, for p = 0, over QQ."""
        if "h_vector" in values:
            self.series = values.integers("h_vector"), self.span.dim - values.integer("codim"), p

    def hilbert_series(self, *, exact: bool) -> HilbertSeries | None:
        """The Hilbert series of the closure; None unless the equations are complete and Macaulay2 computed it.

        Its first coefficients are compared with the ranks of monomials at points of the image. `exact`: the equations are
        complete over QQ, where the Hilbert function then is the same as over F_p (:mod:`lifting`).
        """
        if not self.complete or self.series is None:
            return None
        numerator, cone_dim, p = self.series
        if self.hilbert_function:
            first = list(expanded(numerator, cone_dim, len(self.hilbert_function) - 1))
            self.say(
                "hilbert_function",
                first,
                "macaulay2",
                "Hilbert series of the equations' ideal",
                prime=p or None,
            )
        return HilbertSeries(
            numerator=numerator,
            denominator_exponent=cone_dim - self.image.homogenized,
            certainty=Certainty.COMPUTED if exact else Certainty.PROBABLE,
        )

    @property
    def over_q(self) -> bool:
        """Whether what is known holds over QQ."""
        return self.dense or (self.rational and self.lifted is not None)

    def codims(self) -> list[Evidence]:
        """What is said of the image's dimension, said of its codimension in the span."""
        turned: dict[Relation, Relation] = {"=": "=", ">=": "<=", "<=": ">="}
        span = self.span.dim - self.image.homogenized
        return [
            replace(e, quantity="codim", value=span - e.value, relation=turned[e.relation])
            for e in self.evidence
            if e.quantity == "image_dim" and e.value is not None
        ]

    # -- the answer -------------------------------------------------------------------------------------------

    def result(
        self, *, method: str, equations: bool, options: dict[str, Any], certificate: tuple[Mapping[str, Any], ...]
    ) -> Closure:  # fmt: skip
        """The answer; without `equations` it carries only a single short one."""
        completeness: Completeness = (
            "complete" if self.complete
            else "partial" if self.limit or self.context.limit
            else "up-to-degree"
        )  # fmt: skip
        lifted = self.over_q
        exact = self.proved and lifted and self.complete
        if self.dense:  # the rank is the number of coordinates
            exact_over_q = {"certainty": Certainty.COMPUTED, "prime": None, "field": "QQ"}
            dim = self.cone_dim - self.image.homogenized
            self.say("image_dim", dim, "ambient", "number of coordinates", relation="<=", **exact_over_q)
            self.say("degree", 1, "ambient", "the closure is the whole space", **exact_over_q)
        found = self.equations()
        curved = [f for f in found if f.degree > 1]
        kept = equations or (len(curved) == 1 and len(curved[0].text()) <= _SHORT_EQUATION)
        series = self.hilbert_series(exact=exact)
        return self.context.build_result(
            Closure, model=self.model.spec, options=options,
            certainty=Certainty.COMPUTED if exact else Certainty.PROBABLE,
            evidence=[*self.evidence, *self.codims()], limit=self.limit, certificate=certificate,
            ambient_dim=self.model.ambient_dim, coordinate_count=self.model.coordinate_count,
            span_dim=self.span.dim - self.image.homogenized, linear_forms=len(self.span.linear_forms),
            image_dim=self.cone_dim - self.image.homogenized, codim=self.codim, degree=self.degree,
            generator_counts=dict(sorted(self.counts.items())), hilbert_function=self.hilbert_function,
            hilbert_series=series, coordinates=self.model.coordinate_description,
            completeness=completeness, degree_bound=self.degree_bound, method=method,
            field="QQ" if lifted else f"F_{self.prime}", homogenized=self.image.homogenized,
            shown=tuple(self.shown), not_shown=tuple(self.not_shown), equations=found if kept else None,
            variables=self._variables() if kept else None,
        )  # fmt: skip

    def _variables(self) -> tuple[str, ...]:
        """What the coordinates are, in the model's own words."""
        named = self.image.source if self.model.polynomial else self.model
        return tuple(named.coordinate_names)[: self.model.coordinate_count]

    def equations(self) -> tuple[Equation, ...]:
        """Linear forms, then generators: over QQ where that was asked and reached, else over F_p."""
        if self.rational and self.lifted is not None:
            p, forms, curved = 0, self.lifted_forms or self.span.polynomials, self.lifted
        else:
            p, forms, curved = self.prime, self.span.polynomials, self.polynomials
        return *self.written(forms, p, range(self.span.ambient)), *self.written(curved, p)

    def written(
        self, polynomials: Sequence[Polynomial], p: int, names: Sequence[int] | None = None
    ) -> tuple[Equation, ...]:
        """Polynomials in the coordinates `names`, by default those of the span, as equations; over QQ for p = 0.

        The coordinate that is constantly 1, where the image was no cone, is left out.
        """
        places = self.span.basis if names is None else names
        constant = self.span.ambient - 1 if self.image.homogenized else None
        return tuple(equation(f, places, p=p, constant=constant) for f in polynomials)
