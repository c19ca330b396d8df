"""Closure: one computation of a closure, step by step, with the evidence it gathers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.linear.primes import primes_below
from m2bridge.models.base import Model
from m2bridge.models.polynomials import Polynomial
from m2bridge.questions.closure import accounting, degrees
from m2bridge.questions.closure.accounting import Account
from m2bridge.questions.closure.equations import Equation, equation
from m2bridge.questions.closure.image import Image, Span
from m2bridge.questions.closure.interpolation import Interpolation
from m2bridge.questions.closure.result import Closure, Completeness, ImageComponent, with_fields
from m2bridge.questions.kernel import Asking
from m2bridge.results import Certainty, Evidence, said

_DEGREE_CAP = 12
SHORT_EQUATION = 160
"""A single equation that is not longer is part of every answer."""
_DEGREE_CAP_UNKNOWN = 6
_LARGE_SPACE = 250
_SMALLEST_SECTION_PRIME = 1000
_COUNTED = ("formula", "parametrization")
"""Witnesses that count the degree without equations."""


@dataclass(slots=True, kw_only=True)
class Work:
    """The state of one computation; :meth:`result` turns it into the answer."""

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

    def shows(self, sentence: str) -> None:
        """Add to what is shown."""
        self.shown.append(sentence)

    def lacks(self, sentence: str) -> None:
        """Add to what is not shown."""
        self.not_shown.append(sentence)

    @property
    def constant(self) -> int | None:
        """The coordinate that is constantly 1, where the image was no cone."""
        return self.span.ambient - 1 if self.image.homogenized else None

    def other_primes(self, count: int) -> list[int]:
        """Large primes that divide nothing that was given, other than the one of the computation."""
        return primes_below(
            self.image.large_prime, count=count, without=self.prime, numbers=self.image.numbers
        )

    # -- what is known of the image without equations ---------------------------------------------------------

    def measure(self) -> None:
        """Dimension of the image: ranks at random points, a lower bound over QQ and one over F_p; the literature's formula."""
        primes = (self.image.large_prime, self.image.second_prime, self.prime)
        ranks = {p: self.image.dim(np.random.default_rng([self.seed, 1]), p) for p in primes}
        best = max(primes, key=lambda p: ranks[p])  # each rank is a lower bound over QQ
        self.cone_dim = ranks[best]
        method = "rank of the parametrization's Jacobian at a random point"
        sure = Certainty.PROBABLE if self.image.constrained else Certainty.PROVED
        for rank, p, over in (
            (self.cone_dim, best, "QQ"),
            (ranks[self.prime], self.prime, f"F_{self.prime}"),
        ):
            dim = rank - self.image.homogenized
            self.say("image_dim", dim, "modular", method, relation=">=", certainty=sure, prime=p, field=over)
        formula = self.model.formula
        if formula is not None and formula.applies and formula.value is not None:
            self.say("image_dim", formula.value, "formula", formula.citation, prime=None, field="QQ")

    def codim_in(self, span: Span) -> int:
        """Codimension of the image in its linear span; over an unlucky prime the span is smaller than the image.

        Raises
        ------
        InputError
            The prime is unlucky.
        """
        if span.dim < self.cone_dim:
            raise InputError(
                f"modulo {self.prime} the image spans {span.dim} dimensions, over QQ it has {self.cone_dim}: use another prime"
            )
        return span.dim - self.cone_dim

    def count_degree(self) -> None:
        """The degree, counted without equations: by a formula where one is proved, else on the parametrization.

        With `thorough` both. Not where nothing is to be counted (the span itself, a point), nor over a small field, where a
        random section is often special.
        """
        if not self.codim or self.cone_dim == 0:
            return
        formula = degrees.formula_degree(self.model)
        if formula is not None:
            self.evidence.append(formula)
        self.degree = self.known_degree
        if formula is not None and not self.thorough:
            return
        if self.prime < _SMALLEST_SECTION_PRIME:
            self.lacks(f"an independent count of the degree: {self.prime} is too small for random sections")
            return
        self.tell("degree of the parametrization")
        counted = degrees.section_degree(
            self.asking, self.image, self.span, self.prime, self.seed, self.patience
        )
        if counted is not None:
            self.evidence.append(counted)
        elif formula is None:
            self.lacks(
                "an independent count of the degree: no formula, and no section of the parametrization in time"
            )
        self.degree = self.known_degree

    @property
    def known_degree(self) -> int | None:
        """The independently counted degree, when the counts agree."""
        counted = [e for e in self.evidence if e.quantity == "degree" and e.witness in _COUNTED]
        values = {e.value for e in counted}
        return int(values.pop()) if len(values) == 1 else None

    # -- interpolation ----------------------------------------------------------------------------------------

    def interpolation(self, p: int) -> Interpolation:
        """Nothing but the span yet, over one prime."""
        return Interpolation(self.image, prime=p, seed=self.seed, clock=self.asking.clock)

    def by_interpolation(self, max_degree: int | None) -> Interpolation:
        """Interpolate degree by degree until the account is settled, then lift when equations over QQ are wanted."""
        self.measure()
        found = self.interpolation(self.prime)
        self.span = found.span
        self.codim = self.codim_in(self.span)
        self.count_degree()
        account_ = self._advance(found, max_degree)
        self._take(found)
        if account_ is None and self.limit is None:
            account_ = self.account()
        accounting.conclude(self, account_)
        return found

    def _advance(self, interpolator: Interpolation, max_degree: int | None) -> Account | None:
        """Go on to `max_degree`, or until a degree brings nothing new and dimension and degree are those of the image.

        Macaulay2 is asked only when the equations already define the image near a general point, and not before a degree
        without new generators, unless the next degree is large.
        """
        known = self.known_degree
        bound = max_degree or (min(known + 1, _DEGREE_CAP) if known is not None else _DEGREE_CAP_UNKNOWN)
        points = self.image.points(np.random.default_rng([self.seed, 2]), 1, self.prime)[
            :, list(self.span.basis)
        ]
        asked = -1
        while interpolator.degree_reached < bound and self.codim:
            self.tell(f"equations of degree {interpolator.degree_reached + 1}")
            if not interpolator.advance():
                self.limit = interpolator.limit
                return None
            if max_degree is not None:
                continue
            self._take(interpolator)
            fresh = bool(interpolator.generators[interpolator.degree_reached])
            large = interpolator.weight_spaces[interpolator.degree_reached][2] > _LARGE_SPACE
            if (fresh and not large and interpolator.degree_reached < bound) or asked == len(
                self.polynomials
            ):
                continue
            if not accounting.smooth_at_image(self.polynomials, points, self.codim, self.prime):
                continue
            asked = len(self.polynomials)
            account_ = self.account()
            settled = account_.codim == self.codim and (
                account_.degree == known or (known is None and not fresh)
            )
            if account_.limit is not None or settled:
                return account_
        return None

    def _take(self, found: Interpolation) -> None:
        self.polynomials, self.counts = found.polynomials, found.counts
        self.hilbert_function, self.degree_bound = found.hilbert_function, found.degree_reached

    def account(self) -> Account:
        self.tell("accounting")
        return accounting.account(
            self.asking, self.image, self.span, self.polynomials, p=self.prime, seed=self.seed, image_dim=self.cone_dim,
            hilbert_degrees=self.degree_bound + 1,
        )  # fmt: skip

    # -- the answer -------------------------------------------------------------------------------------------

    def result(self, *, method: str, equations: bool, options: dict[str, Any]) -> Closure:
        """The answer; without `equations` it carries only a single short one."""
        lifted = self.rational and self.lifted is not None
        over = "QQ" if lifted else f"F_{self.prime}"
        completeness: Completeness = (
            "complete" if self.complete else "partial" if self.limit else "up-to-degree"
        )
        if self.seen_part_only:
            completeness = "seen-part"
        proved = self.proved and self.rational and lifted and self.complete
        found = self._equations(lifted)
        curved = [f for f in found if f.degree > 1]
        kept = equations or (len(curved) == 1 and len(curved[0].text()) <= SHORT_EQUATION)
        return self.asking.answer(
            Closure, model=self.model.spec, options=options, certainty=Certainty.PROVED if proved else Certainty.PROBABLE,
            evidence=with_fields(self.evidence, self.prime), limit=self.limit,
            ambient_dim=self.model.ambient_dim, coordinate_count=self.model.coordinate_count,
            span_dim=self.span.dim - self.image.homogenized, linear_forms=len(self.span.linear_forms),
            image_dim=self.cone_dim - self.image.homogenized, codim=self.codim, degree=self.degree,
            generator_counts=dict(sorted(self.counts.items())), hilbert_function=self.hilbert_function,
            completeness=completeness, degree_bound=self.degree_bound, method=method, field=over,
            homogenized=self.image.homogenized, shown=tuple(self.shown), not_shown=tuple(self.not_shown),
            equations=found if kept else None, components=self._components(keep=equations),
            variables=tuple(self.image.names[: self.model.coordinate_count]) if kept else None,
        )  # fmt: skip

    def _components(self, *, keep: bool) -> tuple[ImageComponent, ...] | None:
        if self.components is None or keep:
            return self.components
        return tuple(replace(c, equations=None) for c in self.components)

    def _equations(self, lifted: bool) -> tuple[Equation, ...]:
        p = 0 if lifted else self.prime
        forms: Sequence[Polynomial] = (self.lifted_forms if lifted else None) or as_polynomials(self.span)
        linear = (equation(f, range(self.span.ambient), p=p, constant=self.constant) for f in forms)
        return *linear, *self.written((self.lifted or ()) if lifted else self.polynomials, p)

    def written(self, polynomials: Sequence[Polynomial], p: int) -> tuple[Equation, ...]:
        """Polynomials in the coordinates of the span as equations in all coordinates; over QQ for p = 0."""
        return tuple(equation(f, self.span.basis, p=p, constant=self.constant) for f in polynomials)


def as_polynomials(span: Span) -> list[dict[tuple[int, ...], int]]:
    """The linear forms with exponents in all coordinates."""
    unit = np.eye(span.ambient, dtype=int)
    return [{tuple(unit[i].tolist()): c for i, c in form.items()} for form in span.linear_forms]
