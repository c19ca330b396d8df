"""Compute the singular locus of the closure of a model's image from strata, equations and the singular scheme.

The model provides strata (:mod:`m2bridge.families.strata`). At a point of each, curves bound the tangent space from below and
show singularity; equations, or a finite map, bound it from above and show smoothness. Exhaustive strata determine the singular
locus. If the equations of the closure are complete, Macaulay2 computes the components of the singular scheme; these and the
verdicts at strata can contradict each other. Without equations, curves alone show singular points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.errors import NotPolynomialError, OutOfReachError
from m2bridge.evidence import Evidence, settle
from m2bridge.families import Model
from m2bridge.families.rational_cone import is_rational_map
from m2bridge.families.strata import Strata, strata_of
from m2bridge.limits import limit_advice
from m2bridge.linear.primes import (
    LARGEST_MACAULAY2_PRIME,
    MACAULAY2_PRIME,
    check_prime,
    given_numbers,
    prime_for,
)
from m2bridge.questions.closure import closure
from m2bridge.questions.closure.image import image_of
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.kernel import Context, ForceOption, question
from m2bridge.questions.singular_locus.components import (
    add_size_evidence,
    compare_with_components,
    maximal_singular,
    stratum_components,
)
from m2bridge.questions.singular_locus.equations import (
    VanishingEquations,
    closure_for_strata,
    vanishing_equations,
)
from m2bridge.questions.singular_locus.result import Component, SingularLocus, Stratum
from m2bridge.questions.singular_locus.scheme import InSpan, Scheme, in_span, singular_scheme
from m2bridge.questions.singular_locus.strata import CurvesAt, curves_at_strata, verdicts, with_certificates

__all__ = ["Component", "SingularLocus", "Stratum", "singular_locus"]

_MOST_STRATA_COORDINATES = 2500  # rows of the matrices of tangent directions


@question(
    asks="Singular locus of the closure of the image: components, equations, and strata of the weights or orbits.",
    templates=("singular_strata", "fiber_length", *closure.templates),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "singular_dim": "the dimension of the singular locus",
        "singular_degree": "the degree of the singular locus",
        "codim": "the codimension of the closure in its span",
        "degree": "the degree of the closure",
    },
    primes=(101, LARGEST_MACAULAY2_PRIME),
    example="m2bridge singular-locus --d 2 --dp 1",
    warm=True,
)
def singular_locus(context: Context, model: Model, *, force: ForceOption = False) -> SingularLocus:
    """Compute the singular points of the closure of the image of a polynomial model.

    For one layer of lightning attention with t >= 2 every orbit of its group is decided; parametrization and coordinates do not
    matter then.
    """
    strata = checked_strata(model, context.seed, force=force)
    subject = strata.model
    chosen = None if context.prime is None else check_prime(context.prime)
    prime = prime_for(given_numbers(subject), chosen=chosen, default=MACAULAY2_PRIME)
    context.require_engine()
    context.report_progress("dimension")
    size = context.ask_question(dimension, subject, engine=False, certify=strata.exhaustive)
    context.add_evidence(*(e for e in size.evidence if e.quantity == "image_dim" and e.value is not None))
    # Curves of weights require a polynomial map.
    curves = curves_at_strata(context, strata, size) if subject.polynomial else []
    image_closure = closure_for_strata(context, strata, prime, force=force)
    span = None if image_closure is None else in_span(image_closure)
    equations = vanishing_equations(context, strata, [at.point for at in curves], image_closure, prime)
    scheme = singular_scheme(context, strata, span, prime)
    decided = verdicts(context, strata, size, curves, equations, prime)
    if scheme.components is not None and image_closure is not None:
        decided = compare_with_components(context, curves, decided, image_closure, scheme.components)
    components = _components(context, strata, scheme, curves, decided, prime)
    certificates, strata_verdicts = with_certificates(context, strata, size, curves, decided, equations)
    singular_dim, singular_degree = _sizes(components)
    undecided = _undecided(strata, span, equations, components, strata_verdicts, context.limit)
    if strata.exhaustive and undecided:
        context.note_limit(f"not decided: {undecided[0]}")
    return context.build_result(
        SingularLocus, model=subject.spec, options={"prime": prime}, image_dim=size.image_dim,
        ambient_dim=subject.ambient_dim, **_closure_fields(context, strata, span, prime),
        singular_dim=singular_dim, singular_degree=singular_degree, singular_equations=scheme.radical, components=components,
        embedded=scheme.embedded, strata=strata_verdicts, exhaustive=strata.exhaustive, undecided=undecided,
        certainty=_certainty(context, strata, size, scheme, components, strata_verdicts),
        certificate=certificates,
    )  # fmt: skip


def checked_strata(model: Model, seed: int, *, force: bool = False) -> Strata:
    """Return the strata of a model that this question can examine, or refuse it."""
    strata = strata_of(model, seed)
    if (
        strata.exhaustive
        and not force
        and (count := strata.model.coordinate_count) > _MOST_STRATA_COORDINATES
    ):
        raise OutOfReachError(
            f"{strata.model} has {count} coordinates; beyond {_MOST_STRATA_COORDINATES} the exact ranks take hours; "
            "--force attempts it",
            estimate=count,
        )
    if not (model.polynomial or is_rational_map(model)):
        raise NotPolynomialError(
            f"{model} is neither polynomial nor rational, which `singular-locus` requires; use `dimension`, "
            "or the polynomial (lightning) network of the same sizes"
        )
    return strata


def _components(
    context: Context, strata: Strata, scheme: Scheme, curves: Sequence[CurvesAt], decided: Sequence[Stratum], prime: int
) -> tuple[Component, ...] | None:  # fmt: skip
    """Return the components of the singular scheme, or the closures of the maximal singular strata; None if unknown."""
    maximal = maximal_singular(strata, curves, decided)
    if maximal is not None:
        add_size_evidence(context, strata, maximal, decided)
    if scheme.components is not None or maximal is None:
        return scheme.components
    return stratum_components(context, strata, maximal, prime)


def _sizes(components: Sequence[Component] | None) -> tuple[int | None, int | None]:
    """Return dimension and degree of the union of the components: -1 and 0 when there are none, None if unknown."""
    if components is None:
        return None, None
    dim = max((c.dim for c in components), default=-1)
    degrees = [c.degree for c in components if c.dim == dim]
    return dim, None if None in degrees else sum(degree or 0 for degree in degrees)


def _closure_fields(context: Context, strata: Strata, span: InSpan | None, prime: int) -> dict[str, Any]:
    """Return the fields of the answer about the closure; without it, the span where it is the whole space."""
    if span is not None:
        _add_closure_evidence(context, strata, span)
        closed = span.closure
        fields = {name: getattr(closed, name) for name in ("span_dim", "codim", "degree", "completeness")}
        counts = {str(k): n for k, n in closed.generator_counts.items()}
        return {**fields, "generators": counts, "equations": tuple(f.text() for f in span.equations)}
    unknown: dict[str, Any] = dict.fromkeys(("span_dim", "codim", "degree", "completeness", "generators"))
    if strata.exhaustive:
        count = strata.model.coordinate_count
        with context.keep_partial("linear span"):
            context.clock.check()
            spanned = image_of(strata.model).span(np.random.default_rng(context.seed), prime).dim
            unknown["span_dim"] = count if spanned == count else None
    return {**unknown, "equations": ()}


def _add_closure_evidence(context: Context, strata: Strata, span: InSpan) -> None:
    """Add the degree of the closure by its equations and, of exhaustive strata, as that of the dense one."""
    closed = span.closure
    if not strata.exhaustive or closed.degree is None or closed.completeness != "complete":
        return
    by_equations: dict[str, Any] = {"certainty": closed.certainty, "prime": closed.characteristic or None}
    context.add_evidence(
        Evidence("degree", closed.degree, "macaulay2", "equations of the closure", **by_equations)
    )
    degree = strata.degree(strata.strata()[-1])
    if degree is not None:
        by_strata: dict[str, Any] = {"certainty": Certainty.THEOREM, "detail": {"theorem": degree.argument}}
        context.add_evidence(
            Evidence("degree", degree.value, "orbits", "degree of the dense stratum's closure", **by_strata)
        )


def _certainty(
    context: Context, strata: Strata, size: Dimension, scheme: Scheme, components: Sequence[Component] | None,
    strata_verdicts: Sequence[Stratum],
) -> Certainty:  # fmt: skip
    """Return the certainty of the answer as a whole: that of the weakest statement it needs."""
    if components is None:
        # without components the answer as a whole is not proved, even where each singular stratum is
        return Certainty.PROBABLE
    if not strata.exhaustive:
        return Certainty.weakest([size.certainty, scheme.certainty])
    settled = settle(context.evidence)
    reported = ("image_dim", "degree", "singular_dim", "singular_degree")
    quantities = [settled[name].certainty for name in reported if name in settled]
    return Certainty.weakest([*(s.certainty for s in strata_verdicts), *quantities])


def _undecided(
    strata: Strata, span: InSpan | None, equations: VanishingEquations | None, components: Sequence[Component] | None,
    strata_verdicts: Sequence[Stratum], limit: str | None,
) -> tuple[str, ...]:  # fmt: skip
    """State what is undecided and what would decide it, in sentences; `limit` is the limit that was reached, or None."""
    extent = "no equations" if equations is None else f"equations {equations.extent}"
    sentences = [
        f"{s.name}: undecided, because the bounds of the tangent dimension differ ({extent})"
        for s in strata_verdicts
        if s.verdict == "undecided"
    ]
    if strata.exhaustive:
        if count := len(strata.strata()) - len(strata_verdicts):
            sentences.insert(0, f"{count} of {len(strata.strata())} strata: not examined")
        if not sentences and any(c.degree is None for c in components or ()):
            sentences.append(
                "the degree of the singular locus: the equations of a stratum's closure were not found"
            )
        return tuple(sentences)
    outside = "all points outside the listed strata"
    if span is None:
        count = strata.model.coordinate_count
        advice = limit_advice(limit, "`singular-point` takes given weights")
        if count > strata.closure_coordinates:
            advice = "--force tries to find them, `singular-point` takes given weights"
        sentences.insert(0, f"{outside}: no equations of the closure in {count} coordinates; {advice}")
    elif not span.complete:
        advice = limit_advice(limit, "`closure --max-degree` searches in higher degrees")
        sentences.insert(0, f"{outside}: the equations are {span.closure.completeness}; {advice}")
    elif components is None:
        advice = limit_advice(limit, "`ideal` takes the equations of `closure --format m2`")
        sentences.insert(0, f"the components of the singular locus were not computed; {advice}")
    return tuple(sentences)
