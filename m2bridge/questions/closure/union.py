"""The closure of the image of a source with equations, as the union over the source's components.

Macaulay2 computes one kernel for each component and intersects them. The second witness is what the map's own polynomials say at
points of every component, over extensions of F_p: ranks of the differential, and whether the equations vanish there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from m2bridge.errors import OutputError
from m2bridge.linear.primes import primes_below
from m2bridge.models.custom import PolynomialMap
from m2bridge.models.polynomials import Polynomial
from m2bridge.protocol import Values
from m2bridge.questions.closure.image import Span
from m2bridge.questions.closure.inside import HILBERT_DEGREES, UNION_TEMPLATE
from m2bridge.questions.closure.lifting import reduce_polynomial
from m2bridge.questions.closure.result import ImageComponent
from m2bridge.questions.closure.work import Work, as_polynomials
from m2bridge.questions.source import (
    PointField,
    Source,
    component_terms,
    decomposed,
    lost_component,
    rank_at,
    rank_evidence,
    with_points,
)
from m2bridge.results import Certainty, Evidence, said

_TRIED_PRIMES = 6
_MOST_CHECKED = 40
_COMPARED_SECONDS = 15.0
"""For the kernels over QQ when the answer is over F_p: they are a comparison then."""


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
    over_q = decomposed(model, work.asking, characteristic=0, seconds=seconds)
    if work.rational and over_q is None:
        work.rational = False
        work.lacks("anything over QQ: the source could not be decomposed over QQ in time")
    work.tell("kernels")
    if work.rational and over_q is not None:
        source, (values, work.limit) = over_q, _kernels(work, model, over_q, max_degree, seconds)
    else:
        found = _modulo_p(work, model, over_q, max_degree, seconds=seconds, chosen=chosen)
        if found is None:
            work.lacks("the components of the source: Macaulay2 did not find them in time")
            return False
        source, values, work.limit = found
    if "generators" not in values or "hilbert_function" not in values:
        work.lacks("the kernels of the source's components: Macaulay2 did not finish them in time")
        return False
    source = with_points(model, source, work.asking, prime=work.prime, seed=work.seed, seconds=seconds)
    work.kernel_used = True
    _take(work, values, source.characteristic)
    _witness(work, model, source, values)
    return True


def _kernels(
    work: Work, model: PolynomialMap, source: Source, max_degree: int | None, seconds: float | None
) -> tuple[Values, str | None]:
    request = {
        "p": source.characteristic, "componentTerms": component_terms(source), "imageIsCone": not work.image.homogenized,
        "hilbertDegrees": max_degree or HILBERT_DEGREES, **model.m2_parameters,
    }  # fmt: skip
    return work.asking.ask(UNION_TEMPLATE, request, seconds=seconds)


def invariants(values: Values) -> tuple[Any, ...] | None:
    """What must be the same over QQ and over a prime that is not unlucky; None when a limit came first."""
    if "hilbert_function" not in values:
        return None
    return values["span_dim"], values["codim"], values["degree"], values["hilbert_function"]


def _modulo_p(
    work: Work,
    model: PolynomialMap,
    over_q: Source | None,
    max_degree: int | None,
    *,
    seconds: float | None,
    chosen: bool,
) -> tuple[Source, Values, str | None] | None:
    """Components and kernels over F_p, at a prime where source and image are as large as over QQ, if that is known."""
    expected: tuple[Any, ...] | None = None
    if over_q is not None:
        patience = _COMPARED_SECONDS if seconds is None else min(_COMPARED_SECONDS, seconds)
        expected = invariants(_kernels(work, model, over_q, max_degree, patience)[0])
    for p in (
        [work.prime] if chosen else primes_below(work.prime, count=_TRIED_PRIMES, numbers=work.image.numbers)
    ):
        tried = decomposed(model, work.asking, characteristic=p, seconds=seconds)
        if tried is None:
            return None
        found, work.prime = tried, p
        values, limit = _kernels(work, model, found, max_degree, seconds)
        same_source = over_q is None or found.degrees == over_q.degrees
        same_image = expected is None or invariants(values) in (None, expected)
        if same_source and same_image:
            break
    if over_q is None:
        work.lacks(f"the source over QQ: it was decomposed over F_{work.prime} only")
    elif not same_source:
        work.lacks(
            f"that F_{work.prime} is like QQ: {over_q.sentence}, and {found.sentence}; use another prime"
        )
    elif not same_image:
        work.lacks(
            f"that F_{work.prime} is like QQ: there the image has another Hilbert function; use another prime"
        )
    elif expected is not None:
        work.shows("over QQ the span, the codimension, the degree and the Hilbert function are the same")
    else:
        work.lacks("that these numbers are the same over QQ: the kernels over QQ took too long")
    return found, values, limit


def _take(work: Work, values: Values, p: int) -> None:
    """The values of the template as the answer."""
    basis = values.integers("span")
    ambient = values.integer("ambient_dim")
    work.span = Span(basis=basis, linear_forms=tuple(_forms(values, p)), ambient=ambient)
    polynomials = values.polynomials(values["generators"], len(basis), p)
    work.codim, work.degree = values.integer("codim"), values.integer("degree")
    work.cone_dim = len(basis) - work.codim
    work.counts = dict(sorted(Counter(values.integers("generator_degrees")).items()))
    work.degree_bound = max([1, *work.counts])
    work.hilbert_function = values.integers("hilbert_function")
    if p:
        work.polynomials = polynomials
    else:
        work.lifted, work.lifted_forms = polynomials, as_polynomials(work.span)
    work.components = tuple(
        ImageComponent(
            dim=dim - work.image.homogenized, degree=degree, source_component=number,
            equations=work.written(values.polynomials(gens, len(basis), p), p),
        )
        for number, (dim, degree, inside, gens) in enumerate(values["images"], start=1)
        if not inside
    )  # fmt: skip


def _forms(values: Values, p: int) -> list[dict[int, Any]]:
    try:
        return [
            {int(i): int(c) % p if p else Fraction(c) for c, i in zip(coefficients, places, strict=True)}
            for coefficients, places in values["linear_forms"]
        ]
    except (TypeError, ValueError) as error:
        raise OutputError(f"linear_forms holds no linear forms: {error}", run=values.run) from None


# -- the second witness --------------------------------------------------------------------------------------------------------


def _witness(work: Work, model: PolynomialMap, source: Source, values: Values) -> None:
    p = source.characteristic
    over = source.field
    covered = bool(values["covered"]) and bool(values["inside"]) and source.covered is not False
    work.shows(source.sentence)
    if covered:
        work.shows(
            "removing these components from the source leaves nothing (saturation): they are all of it"
        )
        work.shows(f"the ideal is the intersection of the kernels of the components over {over}")
    else:
        work.evidence += lost_component(over, p)
    work.say(
        "image_dim", work.cone_dim - work.image.homogenized, "macaulay2", f"dimension of the intersected kernels over {over}",
        prime=p or None, certainty=Certainty.PROBABLE if p else Certainty.PROVED, seconds=work.asking.last_seconds,
    )  # fmt: skip
    ranks = [rank_at(model, source, point) for point in source.points]
    work.evidence += rank_evidence(source, ranks, over)
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
    prime = source.points[0].prime
    equations: Sequence[Polynomial] = work.lifted if work.lifted is not None else work.polynomials
    if work.lifted is not None:
        equations = [reduce_polynomial(f, prime) for f in work.lifted if _reduces(f, prime)]
    constant = len(model.polynomials)
    verdicts = []
    for point in source.points:
        here = PointField(point)
        image = [here.value(dict(f)) for f in model.polynomials] + [here.context(1)]
        chosen = [image[i if i < constant else constant] for i in work.span.basis]
        verdicts.append(all(here.value(f, chosen) == 0 for f in equations[:_MOST_CHECKED]))
    method = f"equations at {len(verdicts)} points of the components, over extensions of F_p"
    item = said("vanishing", all(verdicts), "modular", method, prime=prime)
    if item.value:
        return [item]
    return [said("vanishing", True, "kernel", "intersection of kernels", prime=prime), item]


def _reduces(f: Polynomial, p: int) -> bool:
    return all(Fraction(c).denominator % p for c in f.values())
