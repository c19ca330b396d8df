"""One computation of a closure: what is known so far, and the evidence for it; :meth:`Work.result` turns it into the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from m2bridge.linear.primes import primes_below
from m2bridge.models.base import Model
from m2bridge.models.polynomials import Polynomial
from m2bridge.questions.asking import Asking
from m2bridge.questions.closure.image import Image, Span
from m2bridge.questions.closure.interpolation import Interpolation
from m2bridge.questions.closure.result import Closure, Completeness, Equation, ImageComponent, equation
from m2bridge.results import Certainty, Evidence, said

PATIENCE = 20.0
"""Seconds for what Macaulay2 may leave out: a second count of the degree, unmixedness, a kernel beside interpolation."""
_SHORT_EQUATION = 160
"""A single equation that is not longer is part of every answer."""


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

    evidence: list[Evidence] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    not_shown: list[str] = field(default_factory=list)
    polynomials: Sequence[Polynomial] = ()
    lifted: Sequence[Polynomial] | None = None
    lifted_forms: Sequence[Polynomial] | None = None
    span: Span = field(init=False)
    cone_dim: int = field(init=False)
    codim: int | None = None
    degree: int | None = None
    counts: Mapping[int, int] = field(default_factory=dict)
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
