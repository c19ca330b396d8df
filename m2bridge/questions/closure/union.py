"""The closure of the image of a source with equations: the union of the closures over the source's components.

The second witness is what the map's own polynomials say at points of every component over extensions of F_p: ranks of the
differential, and whether the equations vanish there.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from m2bridge.errors import LimitError
from m2bridge.linear.primes import primes_below
from m2bridge.models.custom import PolynomialMap
from m2bridge.models.polynomials import Polynomial
from m2bridge.protocol import Values
from m2bridge.questions import source as sources
from m2bridge.questions.closure.accounting import Account
from m2bridge.questions.closure.image import Span
from m2bridge.questions.closure.lifting import reduce_polynomial
from m2bridge.questions.closure.methods import (
    HILBERT_DEGREES,
    by_interpolation,
    generator_counts,
)
from m2bridge.questions.closure.result import ImageComponent
from m2bridge.questions.source import PointField, Source
from m2bridge.results import Certainty

if TYPE_CHECKING:
    from m2bridge.questions.closure import Work

_TRIED_PRIMES = 6
_MOST_CHECKED = 40
_UNION_SECONDS = 60.0
"""For each question about a source with equations when points can answer a part of it instead."""
_COMPARED_SECONDS = 15.0
"""For the kernels over QQ when the answer is over F_p: they are a comparison then."""


def with_source_equations(work: Work, method: str, max_degree: int | None, *, chosen: bool) -> None:
    """Answer by components, and by points only where those are out of reach; `chosen`: the user chose the prime."""
    patience = None
    if method == "auto":
        remaining = work.ask.clock.remaining
        patience = _UNION_SECONDS if remaining is None else min(_UNION_SECONDS, remaining / 4)
    if method in ("auto", "kernel"):
        missing = _by_components(work, max_degree, seconds=patience, chosen=chosen)
        if missing is None:
            return
        work.lacks(missing)
        if method == "kernel":
            raise LimitError(
                f"not found: {'; '.join(work.not_shown)}. Allow more time, or use --method interpolation, which sees only a part "
                "of the source",
                run=work.ask.last_run,
            )
    # refuses equations whose differentials are dependent: points say nothing then
    _ = work.image.source.parameter_dim
    by_interpolation(work, max_degree)
    _only_seen(work)


def _only_seen(work: Work) -> None:
    """Take back what would need all of the source: the points lie on components that solving in turn met."""
    work.complete = work.proved = False
    work.seen_part_only = True
    work.degree = None
    work.evidence = [
        e for e in work.evidence
        if e.quantity not in ("degree", "image_dim") or (e.relation == ">=" and e.quantity == "image_dim")
    ]  # fmt: skip
    work.shown = [
        "the equations vanish at the points of the source that were found by solving its equations in turn"
    ]
    work.lacks(
        "that these points lie on every component of the source: the equations are not known to hold on all of it, "
        "dimension and degree are not known either, and the image may be larger; use --method kernel"
    )


def _by_components(work: Work, max_degree: int | None, *, seconds: float | None, chosen: bool) -> str | None:
    """Answer by components, each question to Macaulay2 within some seconds; what is missing when that is out of reach."""
    model = work.image.source
    assert isinstance(model, PolynomialMap)
    work.ask.announce("components of the source")
    over_q = sources.decomposed(model, work.ask, characteristic=0, seconds=seconds)
    if work.rational and over_q is None:
        work.rational = False
        work.lacks("anything over QQ: the source could not be decomposed over QQ in time")
    work.ask.announce("kernels")
    if work.rational and over_q is not None:
        source, (values, work.limit) = over_q, _kernels(work, over_q, max_degree, seconds)
    else:
        found = _modulo_p(work, model, over_q, max_degree, seconds=seconds, chosen=chosen)
        if found is None:
            return "the components of the source: Macaulay2 did not find them in time"
        source, values, work.limit = found
    if "hilbert_function" not in values:
        return "the kernels of the source's components: Macaulay2 did not finish them in time"
    source = sources.with_points(model, source, work.ask, prime=work.prime, seconds=seconds)
    work.kernel_used = True
    _take(work, values, source.characteristic)
    _witness_components(work, model, source, values)
    return None


def _kernels(work: Work, source: Source, max_degree: int | None, seconds: float | None) -> Account:
    request = {
        "p": source.characteristic, "componentTerms": source.terms, "imageIsCone": not work.image.homogenized,
        "hilbertDegrees": max_degree or HILBERT_DEGREES, **work.image.source.m2_parameters,
    }  # fmt: skip
    return work.ask.ask("closure_union", request, seconds=seconds)


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
        tried = sources.decomposed(model, work.ask, characteristic=p, seconds=seconds)
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
    work.counts = generator_counts(values)
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
        prime=p or None, certainty=Certainty.PROBABLE if p else Certainty.PROVED, seconds=work.ask.last_seconds,
    )  # fmt: skip
    ranks = sources.ranks_at_points(model, source)
    work.evidence += sources.rank_evidence(ranks, over)
    seen = {point.component for point, rank, _ in ranks if rank is not None}
    unseen = sorted(set(range(len(source.components))) - seen)
    if unseen:
        work.lacks(
            f"a second witness for the components {', '.join(str(i + 1) for i in unseen)}: no smooth point of them was found"
        )
    vanish = _vanish_at_points(work, model, source)
    work.complete = covered
    work.proved = covered and not p and not unseen and vanish


def _vanish_at_points(work: Work, model: PolynomialMap, source: Source) -> bool:
    """Whether the equations vanish at the images of points of every component, computed from the map's own polynomials."""
    if not source.points:
        return True
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
    if not all(verdicts):
        work.say("vanishing", True, "kernel", "intersection of kernels", prime=prime)
    method = f"equations at {len(verdicts)} points of the components, over extensions of F_p"
    work.say("vanishing", all(verdicts), "modular", method, prime=prime)
    return all(verdicts)
