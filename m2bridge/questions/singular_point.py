"""Decide whether one point of a model's image is singular in its closure, for any polynomial model and exact weights.

The bounds are those of `singular-locus`: curves through the point from below, over QQ; equations of the closure from above. The
weights are those of the user, random, or random with prescribed ranks. The answer also states whether they are critical.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.errors import InputError, LimitError, NotPolynomialError
from m2bridge.evidence import Evidence, Value
from m2bridge.families import Model
from m2bridge.families.rational_cone import is_rational_map
from m2bridge.limits import limit_advice
from m2bridge.questions import over_q
from m2bridge.questions.closure import Closure, closure
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.kernel import Context, Option, question
from m2bridge.questions.point import AtOption, Point, RationalizeOption, StratumOption, one_of, resolve
from m2bridge.questions.singular_locus.equations import (
    TangentBounds,
    VanishingEquations,
    equations_of,
    refuse_outside,
)
from m2bridge.questions.singular_locus.result import Singularity
from m2bridge.questions.singular_locus.strata import point_certificate
from m2bridge.questions.singular_locus.tangents import (
    Line,
    first_order_images,
    flat_neighbours,
    spanning_lines,
)
from m2bridge.results import Result, register_result
from m2bridge.views import View, value_text

_MOST_POINT_COORDINATES = 200  # coordinates for which equations are interpolated
_SHARE_FOR_SECOND_PROOF = 0.5
"""Of the time left, for equations where curves alone have settled the verdict: they are a second witness then."""

_ORIGINS = {"weights": "given by --at"}
"""How the origin of the weights is printed; other origins are printed as they are."""


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class SingularPoint(Result):
    """Whether the image of some weights is a singular point of the image's closure. Dimensions are affine.

    Attributes
    ----------
    at: the weights, exact.
    image_dim: dimension of the image.
    jacobian_rank: rank over QQ of the parametrization's differential at these weights.
    critical: whether that rank is below the dimension of the image.
    tangent_lower, tangent_upper: bounds of the Zariski tangent space at the image point, from curves and from equations; upper is
        None without equations, and the dimension itself where they are complete.
    verdict: singular (lower > dimension), smooth (upper = dimension) or undecided.
    completeness: of the equations that give the upper bound; None without equations.
    certificate: documents that `m2bridge check` verifies, for the verdict and for the dimension.
    """

    ANALYSIS: ClassVar[str] = "singular-point"
    VERSION: ClassVar[int] = 2
    HEADLINE: ClassVar[tuple[str, ...]] = ("verdict",)

    at: Mapping[str, Any]
    image_dim: int
    jacobian_rank: int
    critical: bool
    tangent_lower: int
    tangent_upper: int | None
    verdict: Singularity
    completeness: str | None
    certificate: tuple[Mapping[str, Value], ...] = ()

    def certified(self) -> frozenset[str]:
        kinds = {document["statement"]["kind"] for document in self.certificate}
        names = {"dimension": "image_dim", "singular": "verdict", "smooth": "verdict"}
        return frozenset(names[kind] for kind in kinds if kind in names)

    def view(self) -> View:
        critical = "critical" if self.critical else "not critical"
        weights = f"{critical}: the differential has rank {self.jacobian_rank}"
        if self.critical:
            weights += f", {self.image_dim - self.jacobian_rank} below the generic rank"
        tangent = f"at least {self.tangent_lower}, at most {value_text(self.tangent_upper)}"
        if self.completeness == "complete" and self.tangent_upper is not None:
            tangent = f"dimension {self.tangent_upper}"
        return View(
            answer=f"{self.verdict} at the image of these weights",
            decided=self.verdict != "undecided",
            facts=(
                ("dimension", f"{self.image_dim} (affine)"),
                ("weights", f"{_ORIGINS.get(self.at['kind'], self.at['kind'])}; {weights}"),
                ("tangent space", tangent),
                ("equations", value_text(self.completeness)),
            ),
            to_prove=self._to_prove(),
        )

    def _to_prove(self) -> str:
        complete = "equations of the closure that are complete over QQ"
        advice = limit_advice(self.limit, "" if self.completeness == "complete" else "increase --max-degree")
        return f"{complete}: {advice}" if advice else complete


@question(
    asks="Whether the function of given weights is a singular point of the closure, for any polynomial model.",
    templates=(*dimension.templates, *closure.templates),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "tangent": "the dimension of the Zariski tangent space at the point",
        "jacobian_rank": "the rank of the differential at the weights",
        "verdict": "whether the point is singular or smooth",
    },
    example="m2bridge singular-point 'linear(widths=[2,1,2])'",
    takes_prime=False,
    warm=True,
)
def singular_point(
    context: Context,
    model: Model,
    *,
    at: AtOption = None,
    stratum: StratumOption = None,
    rationalize: RationalizeOption = None,
    max_degree: Annotated[
        int | None, Option("Largest degree of equations (default: until they are complete).", least=1)
    ] = None,
) -> SingularPoint:
    """Decide whether the function of some weights is a singular point of the closure of all functions of the model.

    The weights are given by `at` or drawn; see :func:`~m2bridge.questions.point.resolve`. The verdict is ``undecided``
    when the bounds do not decide: equations up to a degree never make a point singular.
    """
    if not (model.polynomial or is_rational_map(model)):
        raise NotPolynomialError(
            f"{model} is not polynomial: its image has no Zariski tangent spaces; `dimension --at` gives the rank there"
        )
    if model.coordinate_count > _MOST_POINT_COORDINATES:
        raise InputError(
            f"{model} has {model.coordinate_count} coordinates; singular-point takes at most {_MOST_POINT_COORDINATES}; "
            "`dimension --at` computes the rank there at any size"
        )
    point = resolve(model, one_of(at, stratum, rationalize), context.seed)
    context.report_progress("dimension")
    size = context.ask_question(dimension, model, engine=False)
    context.report_progress("curves")
    rank, lines = _rank_and_curves(_free_point(point), size, context.seed)
    lower = over_q.rank([vector for _, _, vector in lines]) if lines else rank
    share = _SHARE_FOR_SECOND_PROOF if lower > size.upper_bound else None
    image_closure: Closure | None = None
    with suppress(LimitError):  # the context notes it; the curves remain
        image_closure = context.ask_question(
            closure, model, field="QQ", max_degree=max_degree, equations=True, share=share
        )
    equations = None if image_closure is None else equations_of(image_closure)
    if equations is not None:
        refuse_outside(equations, point)
    bounds = TangentBounds.at(point, lower, equations)
    _add_point_evidence(context, size, rank, bounds)
    if image_closure is not None:
        _add_equation_evidence(context, size, bounds, image_closure)
    verdict, certainty = bounds.verdict(size)
    return context.build_result(
        SingularPoint, model=model.spec, options={"max_degree": max_degree, "at": point.kind}, at=point.document(None),
        image_dim=size.image_dim, jacobian_rank=rank,
        critical=rank < size.image_dim,
        tangent_lower=lower, tangent_upper=bounds.upper, verdict=verdict, certainty=certainty,
        completeness=None if image_closure is None else image_closure.completeness,
        certificate=_certificates(point, size, lines, equations, verdict, context.seed),
    )  # fmt: skip


def _certificates(
    point: Point,
    size: Dimension,
    lines: list[Line],
    equations: VanishingEquations | None,
    verdict: Singularity,
    seed: int,
) -> tuple[Mapping[str, Value], ...]:
    """Return the certificates of the verdict and of the dimension, if the weights are free and the format can express the
    proof.
    """
    model, certificate = point.model, None
    if model.free is not model:
        return ()
    if model.polynomial:  # the format expresses points of polynomial maps only
        certificate = point_certificate(model, point, lines, size, verdict, equations, seed)
    return tuple(document for document in (certificate, size.certificate) if document is not None)


def _add_point_evidence(context: Context, size: Dimension, rank: int, bounds: TangentBounds) -> None:
    """Add the dimension over QQ, the rank at the weights, and the bound of the tangent space by curves."""
    exact = [e for e in size.evidence if e.quantity == "image_dim" and e.field in (None, "QQ")]
    context.add_evidence(*(replace(item, field=None) for item in exact))
    at_point: dict[str, Any] = {"scope": "at-point", "field": "QQ"}
    proved: dict[str, Any] = {"certainty": Certainty.PROVED}
    method = "rank over QQ of the differential at the weights"
    context.add_evidence(
        Evidence("jacobian_rank", rank, "exact", method, **proved, **at_point),
        Evidence("image_dim", rank, "weights", method, relation=">=", **proved),
    )
    method = "span over QQ of curves through the point"
    context.add_evidence(
        Evidence("tangent", bounds.lower, "curves", method, relation=">=", **proved, **at_point)
    )
    if bounds.lower > size.upper_bound:
        method = "more tangent vectors of curves than dimensions"
        context.add_evidence(Evidence("verdict", "singular", "curves", method, **proved, **at_point))


def _add_equation_evidence(
    context: Context, size: Dimension, bounds: TangentBounds, image_closure: Closure
) -> None:
    """Add the bound of the tangent space and the verdict by equations of the closure."""
    method = f"coordinates minus rank of the {image_closure.completeness} equations' Jacobian over {image_closure.field}"
    fields: dict[str, Any] = {
        "scope": "at-point",
        "field": image_closure.field,
        "certainty": bounds.sure,
        "relation": "<=",
    }
    if bounds.upper is not None and bounds.complete is not None:
        fields |= {"certainty": bounds.complete, "relation": "="}
    context.add_evidence(Evidence("tangent", bounds.upper, "equations", method, **fields))
    verdict, certainty = replace(bounds, lower=0).verdict(size)
    if verdict != "undecided" and image_closure.characteristic == 0:
        method = "tangent space of the equations"
        fields = {"certainty": certainty, "ancestry": "template", "scope": "at-point", "field": "QQ"}
        context.add_evidence(Evidence("verdict", verdict, "equations", method, **fields))


def _free_point(point: Point) -> Point:
    """Return the point in the model's unconstrained parametrization."""
    model = point.model
    if model.free is model:
        return point
    layer = model.knowledge.layer
    if layer is None:
        raise InputError(f"{model} has constrained weights; give the weights of {model.free.spec}")
    Q, K = over_q.factors(point.weights["A"], layer.a)
    return replace(point, model=model.free, weights={"Q": Q, "K": K, "V": point.weights["V"]})


def _rank_and_curves(point: Point, size: Dimension, seed: int) -> tuple[int, list[Line]]:
    """Return the rank over QQ of the differential, and curves through the point with independent tangent vectors.

    If curves through critical weights do not decide, curves through other weights with the same function are added.
    """
    model = point.model
    if not model.polynomial:  # curves are those of a polynomial map
        return over_q.rank(model.coordinate_jacobian(dict(point.weights))), []
    images = first_order_images(model, point.weights)
    rank, rng = over_q.rank(images), np.random.default_rng([seed, 6])
    lines = spanning_lines(model, [point.weights], rng)
    if rank < size.image_dim and len(lines) <= size.upper_bound:
        neighbours = flat_neighbours(model, point.weights, np.array(images, dtype=object))
        lines = spanning_lines(model, [point.weights, *neighbours], rng, enough=size.upper_bound)
    return rank, lines
