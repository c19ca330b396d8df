"""The ideal of the Zariski closure of a model's image, with what is shown about it.

Two methods stand behind one question: ``kernel`` (Macaulay2's ring map kernel, the reference) and ``interpolation`` (exact linear
algebra over F_p in each multidegree, then Macaulay2 on what was found). ``auto`` interpolates, and asks for the kernel when
completeness could not be shown otherwise and the kernel may be in reach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import partial
from typing import Annotated, Any, Literal, get_args

import numpy as np

from m2bridge.certificates.points import closure_certificates
from m2bridge.errors import InputError
from m2bridge.linear.primes import (
    LARGE_PRIME,
    LARGEST_MACAULAY2_PRIME,
    MACAULAY2_PRIME,
    check_prime,
    prime_for,
    primes_below,
)
from m2bridge.models.base import Model
from m2bridge.models.polynomials import Polynomial
from m2bridge.questions.closure import methods
from m2bridge.questions.closure.accounting import PATIENCE
from m2bridge.questions.closure.formats import FORMATS
from m2bridge.questions.closure.image import Image, Span, image_of
from m2bridge.questions.closure.interpolation import Interpolation, interpolate
from m2bridge.questions.closure.names import named_generators
from m2bridge.questions.closure.result import Closure, Completeness, Equation, ImageComponent, equation
from m2bridge.questions.closure.union import with_source_equations
from m2bridge.questions.cost import from_coordinates
from m2bridge.questions.kernel import Asking, Option, question
from m2bridge.results import Certainty, Evidence, said

__all__ = ["FORMATS", "Closure", "Equation", "Work", "closure", "interpolate", "read_field"]

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


_TEMPLATES = (
    "closure_kernel", "closure_accounting", "closure_unmixed", "closure_section", "closure_union",
    "source_components", "source_points",
)  # fmt: skip


@question(
    asks="The equations of the Zariski closure of a network's functions, with what is shown about them.",
    primes=(2, LARGE_PRIME),
    templates=_TEMPLATES,
    quantities={
        "image_dim": "the dimension of the image, affine",
        "codim": "the codimension of the closure in its linear span",
        "degree": "the degree of the closure",
        "generators": "how many minimal generators of which degree",
    },
    example="m2bridge closure --d 2 --dp 1 --equations",
    warm=True,
    formats=FORMATS,
    cost=from_coordinates,
)
def closure(
    ask: Asking,
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
    returned. `cross_check` also counts the degree on the parametrization.

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
    field = ask.prime if field is None else field
    chosen = None if field is None or field == "QQ" else int(read_field(str(field)))
    image = image_of(model)
    prime = prime_for(image.numbers, chosen=chosen, default=MACAULAY2_PRIME)
    equations_of_source = bool(image.source.constraints)
    if chosen is None and not equations_of_source:
        with image.watched(ask.clock.check):
            prime = _lucky_prime(image, prime, ask.seed)
    ask.require_engine()
    begin = partial(Work, ask=ask, model=model, image=image, rational=field == "QQ", thorough=cross_check)
    work = begin(prime=prime)
    if equations_of_source:
        with_source_equations(work, method, max_degree, chosen=chosen is not None)
    elif method != "interpolation" and prime < _FEW_POINTS:
        methods.by_kernel(work, max_degree, alone=True)
        work.lacks(f"agreement with interpolation: F_{prime} has too few points to tell polynomials apart")
    elif method == "kernel":
        methods.by_kernel(work, max_degree)
    else:
        methods.by_interpolation(work, max_degree)
        if work.unlucky and chosen is None:  # once more with another prime, for a user who has chosen none
            work = begin(prime=primes_below(prime - 1, count=1, numbers=image.numbers)[0])
            methods.by_interpolation(work, max_degree)
        if cross_check or (method == "auto" and _kernel_may_settle(work)):
            methods.compare_with_kernel(work, None if cross_check else PATIENCE)
    done: str = method
    if method == "auto":
        done = "interpolation+kernel" if work.kernel_used else "interpolation"
        done = "kernel" if work.components is not None else done
    over = "QQ" if field == "QQ" else f"F_{work.prime}"
    options = {"method": method, "max_degree": max_degree, "field": over, "cross_check": cross_check}
    result = work.result(method=done, equations=equations, options=options)
    if equations_of_source:
        return result
    found, p = work.equations(), result.characteristic
    certificate = closure_certificates(model, found, p, work.degree_bound, seed=ask.seed)
    names = () if result.homogenized else named_generators(model, found, work.counts, work.prime, ask.seed)
    return replace(result, names=names, certificate=certificate)


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


def _kernel_may_settle(work: Work) -> bool:
    """Whether completeness is still open and the kernel may be in reach."""
    open_ = not work.complete and work.limit is None
    return open_ and work.span.dim <= _KERNEL_SPAN and not work.image.homogenized


# -- what is known so far, and the answer ----------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Work:
    """The state of one computation.

    `cone_dim`, `codim` and `degree` are those of the image made a cone; `polynomials` are in the coordinates of the span, over
    F_p; `lifted` and `lifted_forms` (the linear ones, in all coordinates) are over QQ. `drops`: over F_p the rank at a random
    point is smaller than over QQ; `unlucky`: the prime should be another one. `thorough`: count the degree on the
    parametrization even where a formula gives it.
    """

    ask: Asking
    model: Model
    image: Image
    prime: int
    rational: bool = False
    thorough: bool = False

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
    degree_bound: int = 1
    complete: bool = False
    proved: bool = False
    limit: str | None = None
    kernel_used: bool = False
    components: tuple[ImageComponent, ...] | None = None
    seen_part_only: bool = False
    unlucky: bool = False
    drops: bool = False

    def say(self, quantity: str, value: Any, witness: str, method: str, **more: Any) -> None:
        """Add a witness's word over the prime of the computation, unless said otherwise, about the field of that prime.

        A number over F_p and the same over QQ are different quantities.
        """
        own = {"prime": self.prime, **more}
        own.setdefault("field", f"F_{own['prime']}" if own["prime"] else "QQ")
        self.evidence.append(said(quantity, value, witness, method, **own))

    def say_counts(self, witness: str, method: str, counts: Mapping[int, int], p: int | None) -> None:
        """Add how many minimal generators of which degree a witness found."""
        self.say("generators", {str(k): v for k, v in sorted(counts.items())}, witness, method, prime=p)

    def shows(self, sentence: str) -> None:
        self.shown.append(sentence)

    def lacks(self, sentence: str) -> None:
        self.not_shown.append(sentence)

    def other_primes(self, count: int) -> list[int]:
        """Large primes that divide nothing that was given, other than the one of the computation."""
        large, numbers = self.image.large_prime, self.image.numbers
        return primes_below(large, count=count, without=self.prime, numbers=numbers)

    def interpolation(self, p: int) -> Interpolation:
        """Nothing but the span yet, over one prime."""
        return Interpolation(self.image, prime=p, seed=self.ask.seed, clock=self.ask.clock)

    @property
    def known_degree(self) -> int | None:
        """The degree that was counted without equations, when the counts agree."""
        independent = ("formula", "parametrization")
        counted = {e.value for e in self.evidence if e.quantity == "degree" and e.witness in independent}
        return int(counted.pop()) if len(counted) == 1 else None

    @property
    def dense(self) -> bool:
        """Whether the image is dense in the whole space, which ranks modulo p show over QQ."""
        return self.codim == 0 and not self.span.linear_forms and not self.image.constrained

    # -- the answer -------------------------------------------------------------------------------------------

    def result(self, *, method: str, equations: bool, options: dict[str, Any]) -> Closure:
        """The answer; without `equations` it carries only a single short one."""
        completeness: Completeness = (
            "seen-part" if self.seen_part_only
            else "complete" if self.complete
            else "partial" if self.limit
            else "up-to-degree"
        )  # fmt: skip
        lifted = self.dense or (self.rational and self.lifted is not None)
        found = self.equations()
        curved = [f for f in found if f.degree > 1]
        kept = equations or (len(curved) == 1 and len(curved[0].text()) <= _SHORT_EQUATION)
        components = self.components
        if components is not None and not equations:
            components = tuple(replace(c, equations=None) for c in components)
        return self.ask.answer(
            Closure, model=self.model.spec, options=options,
            certainty=Certainty.PROVED if self.proved and lifted and self.complete else Certainty.PROBABLE,
            evidence=self.evidence, limit=self.limit,
            ambient_dim=self.model.ambient_dim, coordinate_count=self.model.coordinate_count,
            span_dim=self.span.dim - self.image.homogenized, linear_forms=len(self.span.linear_forms),
            image_dim=self.cone_dim - self.image.homogenized, codim=self.codim, degree=self.degree,
            generator_counts=dict(sorted(self.counts.items())), hilbert_function=self.hilbert_function,
            completeness=completeness, degree_bound=self.degree_bound, method=method,
            field="QQ" if lifted else f"F_{self.prime}", homogenized=self.image.homogenized,
            shown=tuple(self.shown), not_shown=tuple(self.not_shown), equations=found if kept else None, components=components,
            variables=tuple(self.image.source.coordinate_names)[: self.model.coordinate_count] if kept else None,
        )  # fmt: skip

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
