"""The methods that run inside Macaulay2: the kernel of the ring map, its graded parts, and the kernels of a source's components.

Their second witnesses are interpolation and, for a source with equations, what the map's own polynomials say at points of every
component over extensions of F_p: ranks of the differential, and whether the equations vanish there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.linear.primes import primes_below
from m2bridge.models.base import Model
from m2bridge.models.custom import PolynomialMap
from m2bridge.models.lightning import Lightning
from m2bridge.models.polynomials import Polynomial
from m2bridge.protocol import Values
from m2bridge.questions import source as sources
from m2bridge.questions.asking import Asking
from m2bridge.questions.closure import accounting
from m2bridge.questions.closure.image import Image, Matrix, Span
from m2bridge.questions.closure.lifting import lift_forms, reduce_polynomial, substitute
from m2bridge.questions.closure.result import ImageComponent
from m2bridge.questions.closure.work import Work
from m2bridge.questions.source import PointField, Source
from m2bridge.results import Certainty, Evidence, said

_HILBERT_DEGREES = 6
"""How far the Hilbert function is computed unless the caller knows better."""
_TRIED_PRIMES = 6
_MOST_CHECKED = 40
_COMPARED_SECONDS = 15.0
"""For the kernels over QQ when the answer is over F_p: they are a comparison then."""


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
    asking: Asking, model: Model, *, p: int, hilbert_degrees: int | None = None, seconds: float | None = None
) -> tuple[Kernel | None, str | None]:
    """The ideal of the closure as the kernel of the ring map, over F_p or (p = 0) QQ; None and the reason at a limit."""
    request = {"p": p, "hilbertDegrees": hilbert_degrees or _HILBERT_DEGREES}
    values, limit = asking.ask("closure_kernel", request, best_source(model), seconds=seconds)
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
    asking: Asking, image: Image, span: Span, grading: Matrix, max_degree: int, *, p: int, seconds: float | None = None
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
    request = {"p": p, "chosen": list(span.basis), "grading": grading.tolist(), "maxDegree": max_degree}
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


# -- the kernel as the answer, or beside it --------------------------------------------------------------------------


def by_kernel(work: Work, max_degree: int | None) -> None:
    """The kernel of the ring map; interpolation up to the highest generator's degree is the second witness."""
    work.measure(work.image.span(np.random.default_rng(work.seed), work.prime))
    p = 0 if work.rational else work.prime
    work.tell("kernel")
    found, work.limit = kernel(work.asking, work.model, p=p, hilbert_degrees=max_degree)
    work.kernel_used = True
    if found is None:
        work.lacks("anything about equations: the kernel was not finished")
        return
    work.span = replace(work.span, basis=found.basis)
    work.counts = found.counts
    work.degree_bound = max([max_degree or 1, *found.counts])
    work.degree, work.complete = found.degree, True
    work.hilbert_function = found.hilbert_function or ()
    work.shows(f"the ideal is the kernel of the ring map over {'QQ' if work.rational else f'F_{work.prime}'}")
    work.polynomials = list(found.polynomials)
    if work.rational:
        work.polynomials = [reduce_polynomial(f, work.prime) for f in found.polynomials]
        work.lifted_forms = lift_forms(work)
        work.lifted = None if work.lifted_forms is None else list(found.polynomials)
        if work.lifted is None:
            work.lacks("the linear forms over QQ: six primes did not determine them")
        exact = substitute(work)
        work.proved = bool(exact) or (exact is None and work.lifted is not None and not work.lifted_forms)
    if found.codim is None or found.degree is None:
        work.lacks("codimension and degree: Macaulay2 reached a limit")
    work.say("vanishing", True, "kernel", "kernel of the ring map")
    work.count_degree()
    _witness_kernel(work, found, p)
    _witness_interpolation(work)


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
    method, over = "kernel of the ring map" + ("" if p else " over QQ"), p or None
    counts = {k: v for k, v in found.counts.items() if k <= work.degree_bound or work.complete}
    work.say_counts("macaulay2", method, counts, over)
    if found.hilbert_function is not None:
        ranks = list(found.hilbert_function[: len(work.hilbert_function)])
        work.say("hilbert_function", ranks, "macaulay2", method, prime=over, seconds=found.seconds)
    if found.degree is not None:
        work.say("degree", found.degree, "macaulay2", method, prime=over)
    if found.codim is not None:
        dim = len(found.basis) - found.codim - work.image.homogenized
        work.say("image_dim", dim, "macaulay2", method, prime=over)


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
    work.say_counts("modular", f"interpolation up to degree {top}", other.counts, work.prime)
    ranks = other.hilbert_function[: len(work.hilbert_function)]
    if ranks != tuple(work.hilbert_function[: len(ranks)]):
        work.say("hilbert_function", list(ranks), "modular", accounting.MONOMIAL_RANKS)


def by_graded_kernel(work: Work, max_degree: int) -> None:
    """Macaulay2's MultigradedImplicitization up to a degree, with our grading; interpolation is the second witness."""
    own = work.interpolation(work.prime)
    work.measure(own.span)
    work.tell("components of the kernel")
    found, work.limit = graded_kernel(
        work.asking, work.image, work.span, own.grading, max_degree, p=work.prime
    )
    if found is None:
        work.lacks("anything about equations: the components of the kernel were not finished")
        return
    work.polynomials, work.counts, work.degree_bound = found.polynomials, found.counts, max_degree
    work.say_counts("macaulay2", "componentsOfKernel", found.counts, work.prime)
    if own.reach(max_degree):
        work.say_counts("modular", "interpolation", own.counts, work.prime)
    work.hilbert_function = own.hilbert_function
    work.count_degree()
    accounting.conclude(work, work.account())


# -- a source with equations: the union over its components ----------------------------------------------------------


def by_components(work: Work, max_degree: int | None, *, seconds: float | None, chosen: bool) -> bool:
    """Answer by components; False, with the reason among what is not shown, when that is out of reach.

    Parameters
    ----------
    seconds: for each question to Macaulay2; None for as long as the limits allow.
    chosen: whether the user chose the prime: then another one is not taken in its place.
    """
    model = work.image.source
    assert isinstance(model, PolynomialMap)
    work.tell("components of the source")
    over_q = sources.decomposed(model, work.asking, characteristic=0, seconds=seconds)
    if work.rational and over_q is None:
        work.rational = False
        work.lacks("anything over QQ: the source could not be decomposed over QQ in time")
    work.tell("kernels")
    if work.rational and over_q is not None:
        source, (values, work.limit) = over_q, _kernels(work, over_q, max_degree, seconds)
    else:
        found = _modulo_p(work, model, over_q, max_degree, seconds=seconds, chosen=chosen)
        if found is None:
            work.lacks("the components of the source: Macaulay2 did not find them in time")
            return False
        source, values, work.limit = found
    if "generators" not in values or "hilbert_function" not in values:
        work.lacks("the kernels of the source's components: Macaulay2 did not finish them in time")
        return False
    source = sources.with_points(
        model, source, work.asking, prime=work.prime, seed=work.seed, seconds=seconds
    )
    work.kernel_used = True
    _take(work, values, source.characteristic)
    _witness_components(work, model, source, values)
    return True


def _kernels(
    work: Work, source: Source, max_degree: int | None, seconds: float | None
) -> tuple[Values, str | None]:
    request = {
        "p": source.characteristic, "componentTerms": source.terms, "imageIsCone": not work.image.homogenized,
        "hilbertDegrees": max_degree or _HILBERT_DEGREES, **work.image.source.m2_parameters,
    }  # fmt: skip
    return work.asking.ask("closure_union", request, seconds=seconds)


def _invariants(values: Values) -> tuple[Any, ...] | None:
    """What must be the same over QQ and over a prime that is not unlucky; None when a limit came first."""
    if "hilbert_function" not in values:
        return None
    return values["span_dim"], values["codim"], values["degree"], values["hilbert_function"]


def _modulo_p(
    work: Work, model: PolynomialMap, over_q: Source | None, max_degree: int | None, *, seconds: float | None, chosen: bool
) -> tuple[Source, Values, str | None] | None:  # fmt: skip
    """Components and kernels over F_p, at a prime where source and image are as large as over QQ, if that is known."""
    expected: tuple[Any, ...] | None = None
    if over_q is not None:
        patience = _COMPARED_SECONDS if seconds is None else min(_COMPARED_SECONDS, seconds)
        expected = _invariants(_kernels(work, over_q, max_degree, patience)[0])
    others = primes_below(work.prime, count=_TRIED_PRIMES, numbers=work.image.numbers)
    for p in [work.prime] if chosen else others:
        tried = sources.decomposed(model, work.asking, characteristic=p, seconds=seconds)
        if tried is None:
            return None
        found, work.prime = tried, p
        values, limit = _kernels(work, found, max_degree, seconds)
        same_source = over_q is None or found.degrees == over_q.degrees
        same_image = expected is None or _invariants(values) in (None, expected)
        if same_source and same_image:
            break
    if over_q is None:
        work.lacks(f"the source over QQ: it was decomposed over F_{p} only")
    elif not same_source:
        work.lacks(f"that F_{p} is like QQ: {over_q.sentence}, and {found.sentence}; use another prime")
    elif not same_image:
        work.lacks(f"that F_{p} is like QQ: there the image has another Hilbert function; use another prime")
    elif expected is not None:
        work.shows("over QQ the span, the codimension, the degree and the Hilbert function are the same")
    else:
        work.lacks("that these numbers are the same over QQ: the kernels over QQ took too long")
    return found, values, limit


def _take(work: Work, values: Values, p: int) -> None:
    """The values of the template as the answer."""
    basis, ambient = values.integers("span"), values.integer("ambient_dim")
    forms = values.polynomials(values["linear_forms"], ambient, p)
    places = tuple({m.index(1): c for m, c in f.items()} for f in forms)
    work.span = Span(basis=basis, linear_forms=places, ambient=ambient)
    polynomials = values.polynomials(values["generators"], len(basis), p)
    work.codim, work.degree = values.integer("codim"), values.integer("degree")
    work.cone_dim = len(basis) - work.codim
    work.counts = dict(sorted(Counter(values.integers("generator_degrees")).items()))
    work.degree_bound = max([1, *work.counts])
    work.hilbert_function = values.integers("hilbert_function")
    if p:
        work.polynomials = polynomials
    else:
        work.lifted, work.lifted_forms = polynomials, work.span.polynomials
    work.components = tuple(
        ImageComponent(
            dim=dim - work.image.homogenized, degree=degree, source_component=number,
            equations=work.written(values.polynomials(generators, len(basis), p), p),
        )
        for number, (dim, degree, inside, generators) in enumerate(values["images"], start=1)
        if not inside
    )  # fmt: skip


def _witness_components(work: Work, model: PolynomialMap, source: Source, values: Values) -> None:
    p, over = source.characteristic, source.field
    covered = bool(values["covered"]) and bool(values["inside"]) and source.covered is not False
    work.shows(source.sentence)
    if covered:
        work.shows(
            "removing these components from the source leaves nothing (saturation): they are all of it"
        )
        work.shows(f"the ideal is the intersection of the kernels of the components over {over}")
    else:
        work.evidence += sources.lost_component(over, p)
    work.say(
        "image_dim", work.cone_dim - work.image.homogenized, "macaulay2", f"dimension of the intersected kernels over {over}",
        prime=p or None, certainty=Certainty.PROBABLE if p else Certainty.PROVED, seconds=work.asking.last_seconds,
    )  # fmt: skip
    ranks = [sources.rank_at(model, source, point) for point in source.points]
    work.evidence += sources.rank_evidence(source, ranks, over)
    unseen = sorted(set(range(len(source.components))) - {r.component for r in ranks if r.rank is not None})
    if unseen:
        work.lacks(
            f"a second witness for the components {', '.join(str(i + 1) for i in unseen)}: no smooth point of them was found"
        )
    vanishing = _vanishing(work, model, source)
    work.evidence += vanishing
    work.complete = covered
    work.proved = covered and not p and not unseen and all(e.value for e in vanishing)


def _vanishing(work: Work, model: PolynomialMap, source: Source) -> list[Evidence]:
    """Whether the equations vanish at the images of points of every component, computed from the map's own polynomials."""
    if not source.points:
        return []
    prime, constant = source.points[0].prime, len(model.polynomials)
    equations: Sequence[Polynomial] = work.polynomials
    if work.lifted is not None:
        integral = [f for f in work.lifted if all(Fraction(c).denominator % prime for c in f.values())]
        equations = [reduce_polynomial(f, prime) for f in integral]
    verdicts = []
    for point in source.points:
        here = PointField(point)
        image = [here.value(dict(f)) for f in model.polynomials] + [here.context(1)]
        chosen = [image[min(i, constant)] for i in work.span.basis]
        verdicts.append(all(here.value(f, chosen) == 0 for f in equations[:_MOST_CHECKED]))
    method = f"equations at {len(verdicts)} points of the components, over extensions of F_p"
    item = said("vanishing", all(verdicts), "modular", method, prime=prime)
    if item.value:
        return [item]
    return [said("vanishing", True, "kernel", "intersection of kernels", prime=prime), item]
