"""The methods that run inside Macaulay2: the kernel of the ring map, and its graded parts. Interpolation witnesses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from m2bridge.errors import InputError
from m2bridge.models.base import Model
from m2bridge.models.lightning import Lightning
from m2bridge.models.polynomials import Polynomial
from m2bridge.questions.closure import accounting
from m2bridge.questions.closure.comparing import lift_forms, substitute
from m2bridge.questions.closure.image import Image, Span
from m2bridge.questions.closure.lifting import reduce_polynomial
from m2bridge.questions.closure.monomials import Ints
from m2bridge.questions.closure.work import Work
from m2bridge.questions.kernel import Asking

TEMPLATE = "closure_kernel"
UNION_TEMPLATE = "closure_union"
"""For a source with equations: one kernel for each of its components."""
HILBERT_DEGREES = 6
"""How far the Hilbert function is computed unless the caller knows better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Equations found inside Macaulay2, by degree, in coordinates `basis` (indices among all coordinates)."""

    basis: tuple[int, ...]
    polynomials: tuple[Polynomial, ...]
    codim: int | None = None
    degree: int | None = None
    hilbert_function: tuple[int, ...] | None = None
    seconds: float = 0.0

    @property
    def counts(self) -> dict[int, int]:
        return dict(sorted(Counter(sum(next(iter(f))) for f in self.polynomials).items()))


def best_source(model: Model) -> Model:
    """The parametrization that makes `ker` fastest: (A, V), in R/minors(a+1, A) when 1 < a < d; (Q, K, V) for a = 1."""
    if isinstance(model, Lightning):
        return replace(model, parametrization="weights" if model.a == 1 and model.d > 1 else "attention")
    return model


def kernel(
    asking: Asking,
    model: Model,
    *,
    p: int,
    hilbert_degrees: int = HILBERT_DEGREES,
    seconds: float | None = None,
) -> tuple[Kernel | None, str | None]:
    """The ideal of the closure as the kernel of the ring map, over F_p or (p = 0) QQ; None and the reason at a limit."""
    request = {"p": p, "hilbertDegrees": hilbert_degrees}
    values, limit = asking.ask(TEMPLATE, request, best_source(model), seconds=seconds)
    if "generators" not in values:
        return None, limit
    basis = values.integers("span")
    found = Kernel(
        basis=basis, polynomials=tuple(values.polynomials(values["generators"], len(basis), p)),
        codim=values.get("codim"), degree=values.get("degree"),
        hilbert_function=values.integers("hilbert_function") if "hilbert_function" in values else None,
        seconds=asking.last_seconds,
    )  # fmt: skip
    return found, limit


def graded_kernel(
    asking: Asking, image: Image, span: Span, grading: Ints, max_degree: int, *, p: int,
    seconds: float | None = None,
) -> tuple[Kernel | None, str | None]:  # fmt: skip
    """Generators up to a degree by Macaulay2's MultigradedImplicitization; None and the reason at a limit.

    Raises
    ------
    InputError
        The engine lacks the package (Macaulay2 before 1.24.11), or the image is no cone.
    """
    if image.homogenized:
        raise InputError(
            f"{image.model.spec}: the image is no cone; method graded-kernel needs one, use interpolation"
        )
    request = {
        "p": p,
        "chosen": list(span.basis),
        "grading": grading.tolist(),
        "maxDegree": max_degree,
    }
    values, limit = asking.ask("closure_graded", request, image.source, seconds=seconds)
    if values.get("available") is False:
        raise InputError(
            f"Macaulay2 {asking.engine.info.version} has no package MultigradedImplicitization (1.24.11 has it); "
            "use --method interpolation or kernel"
        )
    if "generators" not in values:
        return None, limit
    polynomials = tuple(values.polynomials(values["generators"], span.dim, p))
    return Kernel(basis=span.basis, polynomials=polynomials, seconds=asking.last_seconds), limit


_KERNEL_SPAN = 20


def kernel_may_settle(work: Work) -> bool:
    """Whether completeness is still open and the kernel may be in reach."""
    return (
        not work.complete
        and work.limit is None
        and work.span.dim <= _KERNEL_SPAN
        and not work.image.homogenized
    )


def compare_with_kernel(work: Work, seconds: float | None) -> None:
    """Compute the kernel too: the same generators and Hilbert function make the interpolated ideal complete."""
    work.tell("kernel")
    p = 0 if work.rational and work.span.dim <= 6 else work.prime
    found, _ = kernel(work.asking, work.model, p=p, hilbert_degrees=work.degree_bound, seconds=seconds)
    if found is None or found.hilbert_function is None:
        work.lacks("the kernel of the ring map: Macaulay2 did not finish it in time")
        return
    work.kernel_used = True
    _witness_kernel(work, found, p)
    if found.counts == work.counts and found.hilbert_function == work.hilbert_function:
        work.complete = True
        work.shows("the kernel of the ring map has as many generators in each degree: the ideals are equal")


def _witness_kernel(work: Work, found: Kernel, p: int) -> None:
    method = "kernel of the ring map" + ("" if p else " over QQ")
    inside = {k: v for k, v in found.counts.items() if k <= work.degree_bound or work.complete}
    over = p or None
    work.say_counts("macaulay2", method, inside, over)
    if found.hilbert_function is not None:
        ranks = list(found.hilbert_function[: len(work.hilbert_function)])
        work.say("hilbert_function", ranks, "macaulay2", method, prime=over, seconds=found.seconds)
    if found.degree is not None:
        work.say("degree", found.degree, "macaulay2", method, prime=over)
    if found.codim is not None:
        dim = len(found.basis) - found.codim - work.image.homogenized
        work.say("image_dim", dim, "macaulay2", method, prime=over)


def by_kernel(work: Work, max_degree: int | None) -> None:
    """The kernel of the ring map; interpolation up to the highest generator's degree is the second witness."""
    work.measure()
    rng = np.random.default_rng(work.seed)
    work.span = work.image.span(rng, work.prime)
    work.codim = work.codim_in(work.span)
    p = 0 if work.rational else work.prime
    work.tell("kernel")
    found, work.limit = kernel(work.asking, work.model, p=p, hilbert_degrees=max_degree or HILBERT_DEGREES)
    work.kernel_used = True
    if found is None:
        work.lacks("anything about equations: the kernel was not finished")
        return
    work.span = Span(basis=found.basis, linear_forms=work.span.linear_forms, ambient=work.span.ambient)
    work.counts = found.counts
    work.degree_bound = max([max_degree or 1, *found.counts])
    work.degree, work.complete = found.degree, True
    work.hilbert_function = found.hilbert_function or ()
    work.shows(f"the ideal is the kernel of the ring map over {'QQ' if work.rational else f'F_{work.prime}'}")
    if work.rational:
        work.polynomials = [reduce_polynomial(f, work.prime) for f in found.polynomials]
        work.lifted_forms = lift_forms(work)
        work.lifted = None if work.lifted_forms is None else list(found.polynomials)
        if work.lifted is None:
            work.lacks("the linear forms over QQ: six primes did not determine them")
        exact = substitute(work)
        work.proved = bool(exact) or (exact is None and work.lifted is not None and not work.lifted_forms)
    else:
        work.polynomials = list(found.polynomials)
    if found.codim is None or found.degree is None:
        work.lacks("codimension and degree: Macaulay2 reached a limit")
    work.say("vanishing", True, "kernel", "kernel of the ring map")
    work.count_degree()
    _witness_kernel(work, found, p)
    _witness_interpolation(work)


def _witness_interpolation(work: Work) -> None:
    """Fresh points, and interpolation up to the degrees of the generators at hand."""
    work.evidence.append(
        accounting.vanish_at_fresh_points(work.polynomials, work.image, work.span, work.prime, work.seed)
    )
    other = work.interpolation(work.prime)
    top = max(work.counts, default=1)
    if not other.reach(top):
        work.lacks("agreement with interpolation: a limit came first")
        return
    counts = {k: v for k, v in other.counts.items() if k <= top}
    work.say_counts("modular", f"interpolation up to degree {top}", counts, work.prime)
    ranks = other.hilbert_function[: len(work.hilbert_function)]
    if ranks != tuple(work.hilbert_function[: len(ranks)]):
        work.say("hilbert_function", list(ranks), "modular", accounting.MONOMIAL_RANKS)


def by_graded_kernel(work: Work, max_degree: int) -> None:
    """Macaulay2's MultigradedImplicitization up to a degree, with our grading; interpolation is the second witness."""
    work.measure()
    interpolator = work.interpolation(work.prime)
    work.span = interpolator.span
    work.codim = work.codim_in(work.span)
    work.tell("components of the kernel")
    found, work.limit = graded_kernel(
        work.asking, work.image, work.span, interpolator.grading, max_degree, p=work.prime
    )
    if found is None:
        work.lacks("anything about equations: the components of the kernel were not finished")
        return
    work.polynomials, work.counts, work.degree_bound = found.polynomials, found.counts, max_degree
    work.say_counts("macaulay2", "componentsOfKernel", found.counts, work.prime)
    finished = interpolator.reach(max_degree)
    work.hilbert_function = interpolator.hilbert_function
    if finished:
        work.say_counts("modular", "interpolation", interpolator.counts, work.prime)
    work.count_degree()
    accounting.conclude(work, work.account())
