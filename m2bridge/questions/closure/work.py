"""One computation of a closure, step by step, with the evidence it gathers; :meth:`Work.result` turns it into the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.linear.primes import primes_below
from m2bridge.models.base import Model
from m2bridge.models.polynomials import Polynomial
from m2bridge.questions.asking import Asking
from m2bridge.questions.closure import accounting
from m2bridge.questions.closure.accounting import Account
from m2bridge.questions.closure.image import Image, Span
from m2bridge.questions.closure.interpolation import Interpolation
from m2bridge.questions.closure.result import Closure, Completeness, Equation, ImageComponent, equation
from m2bridge.results import Certainty, Evidence, said

_DEGREE_CAP = 12
_DEGREE_CAP_UNKNOWN = 6
_LARGE_SPACE = 250
_SMALLEST_SECTION_PRIME = 1000
SHORT_EQUATION = 160
"""A single equation that is not longer is part of every answer."""


@dataclass(slots=True, kw_only=True)
class Work:
    """The state of one computation.

    `cone_dim`, `codim` and `degree` are those of the image made a cone; `polynomials` are in the coordinates of the span, over
    F_p; `lifted` and `lifted_forms` (the linear ones, in all coordinates) are over QQ. `drops`: over F_p the rank at a random
    point is smaller than over QQ; `unlucky`: the prime should be another one. `thorough`: count the degree on the
    parametrization even where a formula gives it.
    """

    model: Model
    image: Image
    asking: Asking
    prime: int
    rational: bool
    patience: float = 20.0
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
    counts: dict[int, int] = field(default_factory=dict)
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

    @property
    def seed(self) -> int:
        return self.asking.seed

    def tell(self, step: str) -> None:
        self.asking.announce(step)

    def say(self, quantity: str, value: Any, witness: str, method: str, **more: Any) -> None:
        """Add a witness's word, over the prime of the computation unless said otherwise."""
        self.evidence.append(said(quantity, value, witness, method, **{"prime": self.prime, **more}))

    def say_counts(self, witness: str, method: str, counts: Mapping[int, int], p: int | None) -> None:
        """Add how many minimal generators of which degree a witness found."""
        self.say("generators", {str(k): v for k, v in sorted(counts.items())}, witness, method, prime=p)

    def evidence_of(self, quantity: str) -> list[Evidence]:
        return [e for e in self.evidence if e.quantity == quantity]

    def shows(self, sentence: str) -> None:
        self.shown.append(sentence)

    def lacks(self, sentence: str) -> None:
        self.not_shown.append(sentence)

    def other_primes(self, count: int) -> list[int]:
        """Large primes that divide nothing that was given, other than the one of the computation."""
        large, numbers = self.image.large_prime, self.image.numbers
        return primes_below(large, count=count, without=self.prime, numbers=numbers)

    # -- what is known of the image without equations ---------------------------------------------------------

    def measure(self, span: Span) -> None:
        """The dimension of the image: ranks at random points bound it from below; the literature may have a formula.

        Raises
        ------
        InputError
            The prime is unlucky: modulo p the span is smaller than the image over QQ.
        """
        primes = (self.image.large_prime, self.image.second_prime, self.prime)
        ranks = {p: self.image.dim(np.random.default_rng([self.seed, 1]), p) for p in primes}
        best = max(primes, key=lambda p: ranks[p])  # each rank is a lower bound over QQ
        self.span, self.cone_dim = span, ranks[best]
        self.drops = ranks[self.prime] < self.cone_dim
        method = "rank of the parametrization's Jacobian at a random point"
        sure = Certainty.PROBABLE if self.image.constrained else Certainty.PROVED
        for p, over in ((best, "QQ"), (self.prime, f"F_{self.prime}")):
            dim = ranks[p] - self.image.homogenized
            self.say("image_dim", dim, "modular", method, relation=">=", certainty=sure, prime=p, field=over)
        formula = self.model.formula
        if formula is not None and formula.applies and formula.value is not None:
            self.say("image_dim", formula.value, "formula", formula.citation, prime=None, field="QQ")
        if span.dim < self.cone_dim:
            raise InputError(
                f"modulo {self.prime} the image spans {span.dim} dimensions, over QQ it has {self.cone_dim}: use another prime"
            )
        self.codim = span.dim - self.cone_dim

    @property
    def section(self) -> accounting.LinearSection:
        """A random linear space of the dimension `codim`: it should meet the closure in 0 only."""
        return accounting.random_section(self.span.dim, self.codim or 0, self.prime, self.seed)

    @property
    def dense(self) -> bool:
        """Whether the image is dense in the whole space, which ranks modulo p show over QQ."""
        return self.codim == 0 and not self.span.linear_forms and not self.image.constrained

    def count_degree(self) -> None:
        """The degree, counted without equations: by a formula where one is proved, else on the parametrization.

        Not where nothing is to be counted (the span itself, a point), nor over a small field, where a random section is often
        special.
        """
        if not self.codim or self.cone_dim == 0:
            return
        formula = accounting.formula_degree(self.model)
        if formula is not None:
            self.evidence.append(formula)
        if formula is None or self.thorough:
            self._count_on_parametrization(alone=formula is None)
        self.degree = self.known_degree

    def _count_on_parametrization(self, *, alone: bool) -> None:
        if self.prime < _SMALLEST_SECTION_PRIME:
            self.lacks(f"an independent count of the degree: {self.prime} is too small for random sections")
            return
        self.tell("degree of the parametrization")
        counted = accounting.section_degree(
            self.asking, self.image, self.span, self.section, self.prime, self.seed, self.patience, apart=self.rational
        )  # fmt: skip
        if counted is not None:
            self.evidence.append(counted)
        elif alone:
            self.lacks(
                "an independent count of the degree: no formula, and no section of the parametrization in time"
            )

    @property
    def known_degree(self) -> int | None:
        """The degree that was counted without equations, when the counts agree."""
        counted = {e.value for e in self.evidence_of("degree") if e.witness in ("formula", "parametrization")}
        return int(counted.pop()) if len(counted) == 1 else None

    # -- interpolation ----------------------------------------------------------------------------------------

    def interpolation(self, p: int) -> Interpolation:
        """Nothing but the span yet, over one prime."""
        return Interpolation(self.image, prime=p, seed=self.seed, clock=self.asking.clock)

    def by_interpolation(self, max_degree: int | None) -> Interpolation:
        """Interpolate degree by degree until the account is settled."""
        with self.image.watched(self.asking.clock.check):  # nothing is known before the span is
            found = self.interpolation(self.prime)
        self.measure(found.span)
        self.count_degree()
        account_ = self._advance(found, max_degree)
        self._take(found)
        if account_ is None and self.limit is None:
            account_ = self.account()
        accounting.conclude(self, account_)
        if self.drops:  # what holds over F_p then says nothing about QQ, and gradings over QQ are not all there are over F_p
            self.lacks(
                f"anything over F_{self.prime}: the image may have a smaller dimension there than over QQ"
            )
            self.complete = self.proved = False
            self.unlucky = True
        return found

    def _advance(self, found: Interpolation, max_degree: int | None) -> Account | None:
        """Go on to `max_degree`, or until a degree brings nothing new and dimension and degree are those of the image.

        Macaulay2 is asked only when the equations already define the image near a general point, and not before a degree
        without new generators, unless the next degree is large.
        """
        known, p = self.known_degree, self.prime
        bound = max_degree or (min(known + 1, _DEGREE_CAP) if known is not None else _DEGREE_CAP_UNKNOWN)
        points = self.image.points(np.random.default_rng([self.seed, 2]), 1, p)[:, self.span.basis]
        asked = -1
        while found.degree_reached < bound and self.codim:
            self.tell(f"equations of degree {found.degree_reached + 1}")
            if not found.advance():
                self.limit = found.limit
                return None
            if max_degree is not None:
                continue
            self._take(found)
            fresh = bool(found.generators[found.degree_reached])
            if fresh and found.largest <= _LARGE_SPACE and found.degree_reached < bound:
                continue
            if asked == len(self.polynomials):
                continue
            if not accounting.smooth_at_image(self.polynomials, points, self.codim, p):
                continue
            asked = len(self.polynomials)
            account_ = self.account()
            right_degree = account_.degree == known if known is not None else not fresh
            if account_.limit is not None or (account_.codim == self.codim and right_degree):
                return account_
        return None

    def _take(self, found: Interpolation) -> None:
        self.polynomials, self.counts = found.polynomials, found.counts
        self.hilbert_function, self.degree_bound = found.hilbert_function, found.degree_reached

    def account(self) -> Account:
        self.tell("accounting")
        return accounting.account(
            self.asking, self.image, self.span, self.section, self.polynomials, p=self.prime, seed=self.seed,
            hilbert_degrees=self.degree_bound + 1,
        )  # fmt: skip

    # -- the answer -------------------------------------------------------------------------------------------

    def result(self, *, method: str, equations: bool, options: dict[str, Any]) -> Closure:
        """The answer; without `equations` it carries only a single short one."""
        completeness: Completeness = (
            "complete" if self.complete else "partial" if self.limit else "up-to-degree"
        )
        if self.seen_part_only:
            completeness = "seen-part"
        lifted = self.dense or (self.rational and self.lifted is not None)
        found = self.equations()
        curved = [f for f in found if f.degree > 1]
        kept = equations or (len(curved) == 1 and len(curved[0].text()) <= SHORT_EQUATION)
        components = self.components
        if components is not None and not equations:
            components = tuple(replace(c, equations=None) for c in components)
        return self.asking.answer(
            Closure, model=self.model.spec, options=options,
            certainty=Certainty.PROVED if self.proved and lifted and self.complete else Certainty.PROBABLE,
            evidence=_with_fields(self.evidence, self.prime), limit=self.limit,
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


def _with_fields(evidence: Sequence[Evidence], prime: int) -> list[Evidence]:
    """Each piece of evidence with the field that it is about: a number over F_p and the same over QQ are different quantities.

    What was computed modulo p is about F_p, unless it says otherwise. The formula for the degree holds over every field.
    """
    found: list[Evidence] = []
    for item in evidence:
        own = [item.field or (f"F_{item.prime}" if item.prime else "QQ")]
        if item.field is None and item.witness == "formula":
            own = ["QQ", f"F_{prime}"]
        found += [replace(item, field=over) for over in own]
    return found
