"""Analyses stage, closure: one computation of a closure, step by step, with the evidence it gathers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.analyses.closure import accounting, degrees, kernels
from m2bridge.analyses.closure.accounting import Account
from m2bridge.analyses.closure.asking import Asking
from m2bridge.analyses.closure.echelon import LimitReached
from m2bridge.analyses.closure.equations import Equation, equation
from m2bridge.analyses.closure.image import LARGE_PRIME, Image, Span
from m2bridge.analyses.closure.interpolation import Interpolation, Interpolator, Polynomial
from m2bridge.analyses.closure.lifting import lift_polynomials, reduce_polynomial, vanishes_exactly
from m2bridge.analyses.closure.primes import primes_below
from m2bridge.analyses.closure.result import Closure, Completeness
from m2bridge.models.base import Model
from m2bridge.results import Certainty, Evidence

Rational = Mapping[tuple[int, ...], Fraction]
_DEGREE_CAP = 12
_DEGREE_CAP_UNKNOWN = 6
_SMALL_SPAN = 14
_KERNEL_SPAN = 20
_LARGE_SPACE = 250


@dataclass(slots=True, kw_only=True)
class Work:
    """The state of one computation; :meth:`result` turns it into the answer."""

    model: Model
    image: Image
    asking: Asking
    prime: int
    rational: bool
    seed: int
    progress: Callable[[str], None] | None = None
    patience: float = 20.0

    evidence: list[Evidence] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    not_shown: list[str] = field(default_factory=list)
    polynomials: Sequence[Polynomial] = ()
    lifted: Sequence[Rational] | None = None
    lifted_forms: Sequence[Rational] | None = None
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

    def tell(self, step: str) -> None:
        if self.progress is not None:
            self.progress(step)

    # -- what is known of the image without equations ---------------------------------------------------------

    def measure(self) -> None:
        """Dimension of the image: a rank over F_p at a random point, a lower bound over QQ; and the literature's formula."""
        rng = np.random.default_rng([self.seed, 1])
        self.cone_dim = self.image.dim(rng, LARGE_PRIME)
        affine = self.cone_dim - self.image.homogenized
        self.evidence.append(Evidence(
            quantity="image_dim", witness="modular", method="rank of the parametrization's Jacobian at a random point",
            value=affine, relation=">=", certainty=Certainty.PROVED, prime=LARGE_PRIME,
        ))  # fmt: skip
        formula = self.model.formula
        if formula is not None and formula.applies and formula.value is not None:
            self.evidence.append(Evidence(
                quantity="image_dim", witness="formula", method=formula.citation, value=formula.value,
                certainty=Certainty.PROBABLE,
            ))  # fmt: skip

    def count_degree(self) -> None:
        """The degree, counted without equations: by a formula where one is proved, and on the parametrization."""
        formula = degrees.formula_degree(self.model)
        if formula is not None:
            self.evidence.append(formula)
        self.tell("degree of the parametrization")
        counted = degrees.section_degree(
            self.asking, self.image, self.span, self.prime, self.seed, self.patience
        )
        if counted is not None:
            self.evidence.append(counted)
        elif formula is None:
            self.not_shown.append(
                "an independent count of the degree: no formula, and no section of the parametrization in time"
            )

        self.degree = self.known_degree

    @property
    def known_degree(self) -> int | None:
        """The independently counted degree, when the counts agree."""
        values = {
            e.value
            for e in self.evidence
            if e.quantity == "degree" and e.witness in ("formula", "parametrization")
        }
        return int(values.pop()) if len(values) == 1 else None

    # -- interpolation ----------------------------------------------------------------------------------------

    def by_interpolation(self, max_degree: int | None) -> None:
        """Interpolate degree by degree until the account is settled, then lift when equations over QQ are wanted."""
        self.measure()
        interpolator = Interpolator(self.image, prime=self.prime, seed=self.seed, clock=self.asking.clock)
        self.span = interpolator.span
        self.codim = self.span.dim - self.cone_dim
        self.count_degree()
        account_ = self._advance(interpolator, max_degree)
        found = interpolator.snapshot()
        self._take(found)
        if account_ is None and self.limit is None:
            account_ = self._account()
        self._conclude(account_)
        self._compare_primes(found)

    def _advance(self, interpolator: Interpolator, max_degree: int | None) -> Account | None:
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
            self._take(interpolator.snapshot())
            fresh = bool(interpolator.generators[interpolator.degree_reached])
            large = interpolator.weight_spaces[interpolator.degree_reached][2] > _LARGE_SPACE
            if (fresh and not large and interpolator.degree_reached < bound) or asked == len(
                self.polynomials
            ):
                continue
            if not accounting.smooth_at_image(self.polynomials, points, self.codim, self.prime):
                continue
            asked = len(self.polynomials)
            account_ = self._account()
            settled = account_.codim == self.codim and (
                account_.degree == known or (known is None and not fresh)
            )
            if account_.limit is not None or settled:
                return account_
        return None

    def _take(self, found: Interpolation) -> None:
        self.polynomials = tuple(f for degree in sorted(found.generators) for f in found.generators[degree])
        self.counts = found.counts
        self.hilbert_function = found.hilbert_function
        self.degree_bound = found.degree_reached

    def _account(self) -> Account:
        self.tell("accounting")
        return accounting.account(
            self.asking, self.image, self.span, self.polynomials, p=self.prime, seed=self.seed, image_dim=self.cone_dim,
            hilbert_degrees=self.degree_bound + 1,
        )  # fmt: skip

    def _conclude(self, account_: Account | None) -> None:
        """Weigh Macaulay2's account: what is shown, what is not."""
        self.evidence.append(
            accounting.vanish_at_fresh_points(self.polynomials, self.image, self.span, self.prime, self.seed)
        )
        self.shown.append(
            f"every equation of degree at most {self.degree_bound} over F_{self.prime} is generated by these"
        )
        if account_ is None:
            self.not_shown.append("codimension and degree of the equations' ideal: a limit came first")
            return
        self.evidence += account_.evidence
        self.evidence += accounting.hilbert_evidence(account_, self.hilbert_function, self.prime)
        if account_.codim is None or account_.degree is None:
            self.limit = self.limit or account_.limit
            self.not_shown.append("codimension and degree of the equations' ideal: Macaulay2 reached a limit")
            return
        dims = account_.codim == self.codim
        known = self.known_degree
        if dims:
            self.shown.append("the equations' ideal has the dimension of the image")
            if known is None or account_.degree == known:
                self.degree = account_.degree
        else:
            self.not_shown.append(
                f"the equations found so far define a larger set, of codimension {account_.codim}: more exist in higher degree"
            )
        if known is not None:
            self.degree = known
        same_degree = dims and known is not None and account_.degree == known
        if same_degree:
            self.shown.append("the equations' ideal has the degree of the image, counted independently")
        elif dims and known is not None:
            self.not_shown.append(f"the equations' ideal has degree {account_.degree}, the image {known}")
        if not self._settle_hypersurface():
            self._settle_unmixedness(account_, same_degree)
        item = accounting.degree_evidence(
            account_, self.cone_dim, self.span, self.prime, complete=self.complete
        )
        self.evidence += [item] if item is not None else []

    def _settle_hypersurface(self) -> bool:
        """A prime ideal of codimension one is generated by its element of lowest degree, whatever the degree of the image."""
        if self.codim != 1 or sum(self.counts.values()) != 1:
            return False
        self.shown.append(
            "the closure is a hypersurface, and its ideal is generated by its equation of lowest degree"
        )
        self.complete = self.proved = True
        self.degree = next(iter(self.counts))
        return True

    def _settle_unmixedness(self, account_: Account, same_degree: bool) -> None:
        if not same_degree:
            return
        if account_.cohen_macaulay:
            self.shown.append(
                "its coordinate ring is Cohen-Macaulay, so the ideal is unmixed and equals the prime ideal of the closure"
            )
            self.complete = True
            self.proved = any(
                e.quantity == "degree" and e.certainty is Certainty.PROVED for e in self.evidence
            )
            return
        verdict = None
        if self.span.dim <= _SMALL_SPAN:
            self.tell("unmixedness")
            verdict = accounting.unmixed(self.asking, self.span, self.polynomials, self.prime, self.patience)
        if verdict:
            self.shown.append(
                "the ideal is unmixed (topComponents), so it equals the prime ideal of the closure"
            )
            self.complete = True
        elif verdict is False:
            self.not_shown.append(
                "the ideal has embedded or smaller components: equations of higher degree exist"
            )
        else:
            self.not_shown.append(
                "that the ideal is unmixed (not Cohen-Macaulay; the general test was not tried or took too long)"
            )

    # -- other primes and QQ ----------------------------------------------------------------------------------

    def _compare_primes(self, found: Interpolation) -> None:
        """Compare with other primes; an unlucky one shows by smaller ranks. Lift, and check the lift exactly, for QQ."""
        if self.limit is not None:
            self.not_shown.append("agreement with a second prime: a limit came first")
            return
        systems: list[tuple[Polynomial, ...]] = []
        primes: list[int] = []
        forms: list[Sequence[Polynomial]] = []
        for p in primes_below(LARGE_PRIME, count=6, without=self.prime):
            self.tell(f"the same modulo {p}")
            other = Interpolator(self.image, prime=p, seed=self.seed, clock=self.asking.clock)
            while other.degree_reached < found.degree_reached and other.limit is None:
                other.advance()
            if other.limit is not None:
                self.limit = self.limit or other.limit
                self.not_shown.append("agreement with a second prime: a limit came first")
                return
            self.evidence.append(Evidence(
                quantity="hilbert_function", witness="modular", method="evaluation ranks over another prime",
                value=list(other.hilbert_function), prime=p,
            ))  # fmt: skip
            self.evidence.append(_counts("modular", f"interpolation over F_{p}", other.snapshot().counts, p))
            if not primes:
                self.evidence.append(
                    _counts("modular", f"interpolation over F_{self.prime}", self.counts, self.prime)
                )
            if other.snapshot().counts != self.counts or other.span.basis != self.span.basis:
                self.not_shown.append(
                    f"F_{self.prime} and F_{p} disagree: one of the primes is unlucky, use a larger one"
                )
                return
            systems.append(tuple(f for k in sorted(other.generators) for f in other.generators[k]))
            forms.append(_as_polynomials(other.span))
            primes.append(p)
            if self._lift(systems, forms, primes):
                break
        if self.lifted is None:
            self.not_shown.append("the equations could not be lifted to QQ from six primes")
            return
        self._check_lift()

    def _lift(
        self, systems: list[tuple[Polynomial, ...]], forms: list[Sequence[Polynomial]], primes: list[int]
    ) -> bool:
        order = [*primes, self.prime]
        self.lifted = lift_polynomials([*systems, self.polynomials], order)
        self.lifted_forms = lift_polynomials([*forms, _as_polynomials(self.span)], order)
        if self.lifted is None or self.lifted_forms is None:
            self.lifted = None
        return self.lifted is not None

    def _check_lift(self) -> None:
        """Fresh points over a second prime; for QQ exact substitution into the coordinates as integer polynomials."""
        assert self.lifted is not None
        p = primes_below(LARGE_PRIME, count=9, without=self.prime)[-1]
        residues = [reduce_polynomial(f, p) for f in self.lifted]
        check = accounting.vanish_at_fresh_points(residues, self.image, self.span, p, self.seed)
        self.evidence.append(check)
        self.shown.append(f"lifted to QQ, the equations vanish at fresh points over F_{p}")
        if not self.rational:
            self.proved = False
            return
        self.tell("exact substitution")
        exact = self._substitute()
        if exact is None:
            self.not_shown.append(
                "that the lifted equations vanish identically: no exact substitution (too many terms, or constraints)"
            )
            self.proved = False
            return
        self.evidence.append(Evidence(
            quantity="vanishing", witness="substitution", method="exact substitution of the coordinates over ZZ",
            value=exact, certainty=Certainty.PROVED,
        ))  # fmt: skip
        self.proved = self.proved and exact
        if exact:
            self.shown.append(
                "over QQ every equation vanishes identically on the parametrization (exact substitution)"
            )

    def _substitute(self) -> bool | None:
        coordinates = self.image.polynomials
        if coordinates is None or self.lifted is None or self.lifted_forms is None:
            return None
        chosen = [coordinates[i] for i in self.span.basis]
        try:
            return all(vanishes_exactly(f, chosen, self.asking.clock) for f in self.lifted) and all(
                vanishes_exactly(f, coordinates, self.asking.clock) for f in self.lifted_forms
            )
        except LimitReached as reached:
            self.limit = self.limit or reached.reason
            return None

    # -- the methods inside Macaulay2 -------------------------------------------------------------------------

    @property
    def kernel_may_settle(self) -> bool:
        """Whether completeness is still open and the kernel may be in reach."""
        return (
            not self.complete
            and self.limit is None
            and self.span.dim <= _KERNEL_SPAN
            and not self.image.homogenized
        )

    def compare_with_kernel(self, seconds: float | None) -> None:
        """Compute the kernel too: the same generators and Hilbert function make the interpolated ideal complete."""
        self.tell("kernel")
        p = 0 if self.rational and self.span.dim <= 6 else self.prime
        found, _ = kernels.kernel(
            self.asking, self.model, p=p, hilbert_degrees=self.degree_bound, seconds=seconds
        )
        if found is None or found.hilbert_function is None:
            self.not_shown.append("the kernel of the ring map: Macaulay2 did not finish it in time")
            return
        self.kernel_used = True
        self._witness_kernel(found, p)
        if found.counts == self.counts and found.hilbert_function == self.hilbert_function:
            self.complete = True
            self.shown.append(
                "the kernel of the ring map has as many generators in each degree: the ideals are equal"
            )

    def _witness_kernel(self, found: kernels.Kernel, p: int) -> None:
        method = "kernel of the ring map" + ("" if p else " over QQ")
        inside = {k: v for k, v in found.counts.items() if k <= self.degree_bound or self.complete}
        self.evidence.append(_counts("macaulay2", method, inside, p or None))
        if found.hilbert_function is not None:
            self.evidence.append(Evidence(
                quantity="hilbert_function", witness="macaulay2", method=method,
                value=list(found.hilbert_function[: len(self.hilbert_function)]), prime=p or None, seconds=found.seconds,
            ))  # fmt: skip
        if found.degree is not None:
            self.evidence.append(
                Evidence(
                    quantity="degree", witness="macaulay2", method=method, value=found.degree, prime=p or None
                )
            )
        if found.codim is not None:
            value = len(found.basis) - found.codim - self.image.homogenized
            self.evidence.append(
                Evidence(
                    quantity="image_dim", witness="macaulay2", method=method, value=value, prime=p or None
                )
            )

    def by_kernel(self, max_degree: int | None) -> None:
        """The kernel of the ring map; interpolation up to the highest generator's degree is the second witness."""
        self.measure()
        rng = np.random.default_rng(self.seed)
        self.span = self.image.span(rng, self.prime)
        self.codim = self.span.dim - self.cone_dim
        p = 0 if self.rational else self.prime
        self.tell("kernel")
        found, self.limit = kernels.kernel(self.asking, self.model, p=p, hilbert_degrees=max_degree or 6)
        self.kernel_used = True
        if found is None:
            self.not_shown.append("anything about equations: the kernel was not finished")
            return
        self.span = Span(basis=found.basis, linear_forms=self.span.linear_forms, ambient=self.span.ambient)
        self.counts = found.counts
        self.degree_bound = max([max_degree or 1, *found.counts])
        self.degree, self.complete = found.degree, True
        self.hilbert_function = found.hilbert_function or ()
        self.shown.append(
            f"the ideal is the kernel of the ring map over {'QQ' if self.rational else f'F_{self.prime}'}"
        )
        if self.rational:
            self.lifted = list(found.polynomials)
            self.polynomials = [reduce_polynomial(f, self.prime) for f in found.polynomials]
            self.proved = True
        else:
            self.polynomials = list(found.polynomials)
        if found.codim is None or found.degree is None:
            self.not_shown.append("codimension and degree: Macaulay2 reached a limit")
        self.count_degree()
        self._witness_kernel(found, p)
        self._witness_interpolation()

    def _witness_interpolation(self) -> None:
        """Fresh points, and interpolation up to the degrees of the generators at hand."""
        self.evidence.append(
            accounting.vanish_at_fresh_points(self.polynomials, self.image, self.span, self.prime, self.seed)
        )
        other = Interpolator(self.image, prime=self.prime, seed=self.seed, clock=self.asking.clock)
        top = max(self.counts, default=1)
        while other.degree_reached < top and other.limit is None:
            other.advance()
        if other.limit is not None:
            self.not_shown.append("agreement with interpolation: a limit came first")
            return
        counts = {k: v for k, v in other.snapshot().counts.items() if k <= top}
        self.evidence.append(_counts("modular", f"interpolation up to degree {top}", counts, self.prime))
        ranks = other.hilbert_function[: len(self.hilbert_function)]
        if ranks == list(self.hilbert_function[: len(ranks)]) or not self.hilbert_function:
            self.hilbert_function = self.hilbert_function or tuple(ranks)
        else:
            self.evidence.append(Evidence(
                quantity="hilbert_function", witness="modular", method="ranks of all monomials at random image points",
                value=ranks, prime=self.prime,
            ))  # fmt: skip

    def by_graded_kernel(self, max_degree: int) -> None:
        """Macaulay2's MultigradedImplicitization up to a degree, with our grading; interpolation is the second witness."""
        self.measure()
        interpolator = Interpolator(self.image, prime=self.prime, seed=self.seed, clock=self.asking.clock)
        self.span = interpolator.span
        self.codim = self.span.dim - self.cone_dim
        self.tell("components of the kernel")
        found, self.limit = kernels.graded_kernel(
            self.asking, self.image, self.span, interpolator.snapshot().grading, max_degree, p=self.prime
        )
        if found is None:
            self.not_shown.append("anything about equations: the components of the kernel were not finished")
            return
        self.polynomials, self.counts, self.degree_bound = found.polynomials, found.counts, max_degree
        self.evidence.append(_counts("macaulay2", "componentsOfKernel", found.counts, self.prime))
        while interpolator.degree_reached < max_degree and interpolator.limit is None:
            interpolator.advance()
        self.hilbert_function = tuple(interpolator.hilbert_function)
        if interpolator.limit is None:
            self.evidence.append(
                _counts("modular", "interpolation", interpolator.snapshot().counts, self.prime)
            )
        self.count_degree()
        self._conclude(self._account())

    # -- the answer -------------------------------------------------------------------------------------------

    def result(
        self,
        *,
        method: str,
        agreement: bool | None,
        equations: bool,
        seconds: float,
        parameters: dict[str, Any],
    ) -> Closure:
        """The answer as a record."""
        lifted = self.rational and self.lifted is not None
        over = "QQ" if lifted else f"F_{self.prime}"
        completeness: Completeness = (
            "complete" if self.complete else "partial" if self.limit else "up-to-degree"
        )
        proved = self.proved and self.rational and lifted and self.complete
        names = self.image.names
        return Closure(
            model=self.model.spec, parameters=parameters, certainty=Certainty.PROVED if proved else Certainty.PROBABLE,
            agreement=agreement, evidence=tuple(self.evidence), engine=self.asking.engine_use,
            scripts=tuple(self.asking.scripts), seed=self.seed, seconds=seconds,
            peak_memory_bytes=self.asking.peak_memory_bytes, limit=self.limit,
            ambient_dim=self.model.ambient_dim, coordinate_count=self.model.coordinate_count,
            span_dim=self.span.dim - self.image.homogenized, linear_forms=len(self.span.linear_forms),
            image_dim=self.cone_dim - self.image.homogenized, codim=self.codim, degree=self.degree,
            generators=dict(sorted(self.counts.items())), hilbert_function=self.hilbert_function,
            completeness=completeness, degree_bound=self.degree_bound, method=method, field=over,
            homogenized=self.image.homogenized, shown=tuple(self.shown), not_shown=tuple(self.not_shown),
            equations=self._equations(lifted) if equations else None,
            variables=tuple(names[: self.model.coordinate_count]) if equations else None,
        )  # fmt: skip

    def _equations(self, lifted: bool) -> tuple[Equation, ...]:
        p = 0 if lifted else self.prime
        everything = range(self.span.ambient)
        constant = self.span.ambient - 1 if self.image.homogenized else None
        forms: Sequence[Mapping[tuple[int, ...], Any]] = _as_polynomials(self.span)
        if lifted and self.lifted_forms is not None:
            forms = self.lifted_forms
        polynomials: Sequence[Mapping[tuple[int, ...], Any]] = self.polynomials
        if lifted and self.lifted is not None:
            polynomials = self.lifted
        return (
            *(equation(f, everything, p=p, constant=constant) for f in forms),
            *(equation(f, self.span.basis, p=p, constant=constant) for f in polynomials),
        )


def _as_polynomials(span: Span) -> list[dict[tuple[int, ...], int]]:
    """The linear forms with exponents in all coordinates."""
    unit = np.eye(span.ambient, dtype=int)
    return [{tuple(unit[i].tolist()): c for i, c in form.items()} for form in span.linear_forms]


def _counts(witness: str, method: str, counts: Mapping[int, int], p: int | None) -> Evidence:
    return Evidence(
        quantity="generators",
        witness=witness,
        method=method,
        value={str(k): v for k, v in sorted(counts.items())},
        prime=p,
    )
