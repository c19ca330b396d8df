"""Is one point of a model's image singular in its closure? For any polynomial model and exact weights.

The same two bounds as for the orbits of one layer: curves through the point from below, over QQ; equations of the closure from
above. The weights are given, random, or random with given ranks; whether they are critical for the parametrization is said too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from m2bridge.certificates.points import singular_point_certificate, smooth_point_certificate
from m2bridge.errors import InputError, NotPolynomialError
from m2bridge.models import Lightning, Model
from m2bridge.models.custom import PolynomialMap
from m2bridge.questions import over_q
from m2bridge.questions.closure import Closure, closure
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.kernel import Asking, Option, question
from m2bridge.questions.point import AtOption, Point, RationalizeOption, StratumOption, one_of, resolve
from m2bridge.questions.singular_locus.result import Singularity
from m2bridge.questions.singular_locus.tangents import (
    Line,
    check_on,
    first_order_images,
    spanning_lines,
    tangent_upper,
)
from m2bridge.results import Certainty, Result, Value, register_result
from m2bridge.views import View, known

_MOST_COORDINATES = 200
_PATIENCE = 20.0
"""Seconds for equations when curves alone have settled the verdict: they are a second witness then, not the answer."""


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class SingularPoint(Result):
    """Whether the image of given weights is a singular point of the image's closure. Dimensions are affine.

    Attributes
    ----------
    at: the weights, exact.
    image_dim: dimension of the image; `local_dim`: of the closure at this point, smaller where only components of smaller
        dimension pass through it; None where that is not known.
    jacobian_rank: rank over QQ of the parametrization's differential at these weights, on the tangent space of the source; None
        where the source is singular there, or not known to be smooth.
    critical: whether that rank is below the local dimension; None where one of them is not known.
    tangent_lower, tangent_upper: bounds of the Zariski tangent space at the image point, from curves and from equations; upper is
        None without equations, and the dimension itself where they are complete.
    verdict: singular (lower > local dimension), smooth (upper = local dimension) or undecided.
    completeness: what is known of the equations behind the upper bound; None without equations.
    certificate: what `m2bridge check` verifies, for the verdict and for the dimension; empty where there is nothing to verify.
    """

    ANALYSIS: ClassVar[str] = "singular-point"
    VERSION: ClassVar[int] = 2

    at: Mapping[str, Any]
    image_dim: int
    local_dim: int | None
    jacobian_rank: int | None
    critical: bool | None
    tangent_lower: int
    tangent_upper: int | None
    verdict: Singularity
    completeness: str | None
    certificate: tuple[Mapping[str, Value], ...] = ()

    def view(self) -> View:
        local = "" if self.local_dim == self.image_dim else f"; at this point {known(self.local_dim)}"
        weights = "the equations of the source have dependent differentials there"
        if self.jacobian_rank is not None:
            word = {True: "critical: ", False: "not critical: ", None: ""}[self.critical]
            weights = f"{word}the differential has rank {self.jacobian_rank}"
            if self.critical and self.local_dim is not None:
                weights += f", it loses {self.local_dim - self.jacobian_rank}"
        tangent = f"at least {self.tangent_lower}, at most {known(self.tangent_upper)}"
        if self.completeness == "complete" and self.tangent_upper is not None:
            tangent = f"dimension {self.tangent_upper}"
        return View(
            answer=f"{self.verdict} at the image of these weights",
            facts=(
                ("dimension", f"{self.image_dim} (affine){local}"),
                ("weights", f"{self.at['kind']}; {weights}"),
                ("tangent space", tangent),
                ("equations", known(self.completeness)),
            ),
            to_prove="equations of the closure that are complete over QQ: a higher --max-degree or a longer --timeout",
        )


@question(
    asks="Whether the function of some weights is a singular point of the closure, for any polynomial model.",
    templates=(*dimension.templates, *closure.templates),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "tangent": "the dimension of the Zariski tangent space at the point",
        "jacobian_rank": "the rank of the differential at the weights",
    },
    example="m2bridge singular-point 'linear(widths=[2,1,2])'",
    takes_prime=False,
    warm=True,
)
def singular_point(
    ask: Asking,
    model: Model,
    *,
    at: AtOption = None,
    stratum: StratumOption = None,
    rationalize: RationalizeOption = None,
    max_degree: Annotated[
        int | None, Option("How far to look for equations (default: until settled).", least=1)
    ] = None,
) -> SingularPoint:
    """Whether the function of some weights is a singular point of the closure of all functions of the model.

    The weights are given by `at` or drawn; see :func:`~m2bridge.questions.point.resolve`. The verdict is ``undecided``
    when the bounds do not decide: equations up to a degree never make a point singular.
    """
    if not model.polynomial:
        raise NotPolynomialError(
            f"{model} is not polynomial: its image has no Zariski tangent spaces; `dimension --at` gives the rank there"
        )
    if model.coordinate_count > _MOST_COORDINATES:
        raise InputError(
            f"{model} has {model.coordinate_count} coordinates; singular-point takes at most {_MOST_COORDINATES}; "
            "`dimension --at` gives the rank there at any size"
        )
    point = resolve(model, one_of(at, stratum, rationalize), ask.seed)
    whole = not model.constraints
    ask.announce("dimension")
    size = ask.also(dimension, model, engine=False if whole else ask.engine)
    ask.announce("curves")
    rank, lines = _rank_and_curves(_free_point(point), ask.seed)
    lower = over_q.rank([vector for _, _, vector in lines]) if lines else rank or 0
    settled = whole and lower > size.upper_bound
    seconds = _PATIENCE if settled else None
    found = ask.also(closure, model, field="QQ", max_degree=max_degree, equations=True, seconds=seconds)
    check_on(found, point)
    upper, sure = tangent_upper(found, point)
    complete = found.completeness == "complete" and upper is not None
    local = size.image_dim if whole else _local_dim(found, point)
    _say(ask, size, found, rank, lower, whole=whole)
    method = f"coordinates minus rank of the {found.completeness} equations' Jacobian over {found.field}"
    certainty, relation = (found.certainty, "=") if complete else (sure, "<=")
    more = {"relation": relation, "certainty": certainty, "scope": "at-point", "field": found.field}
    ask.say("tangent", upper, "equations", method, **more)
    grounds = size.certainty if whole else found.certainty  # of the local dimension
    verdict: Singularity = "undecided"
    certainty = Certainty.PROBABLE
    if settled:
        verdict, certainty = "singular", Certainty.PROVED
    elif local is not None and upper == local and found.completeness != "seen-part":
        verdict, certainty = "smooth", Certainty.weakest([sure, grounds])
    elif local is not None and complete:  # all equations: this is the tangent space, not only a bound of it
        verdict, certainty = "singular", Certainty.weakest([found.certainty, grounds])
    return ask.answer(
        SingularPoint, model=model.spec, options={"max_degree": max_degree, "at": point.kind}, at=point.document(None),
        image_dim=size.image_dim, local_dim=local, jacobian_rank=rank,
        critical=None if rank is None or local is None else rank < local,
        tangent_lower=lower, tangent_upper=upper, verdict=verdict, completeness=found.completeness,
        certainty=certainty, limit=None if settled else found.limit,
        certificate=_certificates(point, size, lines if settled else [], found, verdict, ask.seed),
    )  # fmt: skip


def _certificates(
    point: Point, size: Dimension, lines: list[Line], found: Closure, verdict: Singularity, seed: int
) -> tuple[Mapping[str, Value], ...]:
    """Of the verdict and of the dimension, where the model's own weights are free and the format has words for the proof."""
    model, own, weights = point.model, None, point.vector.tolist()
    if model.free is not model or model.constraints:
        return ()
    if verdict == "singular":
        arcs = [(np.stack([base, direction], axis=1).tolist(), vector) for base, direction, vector in lines]
        own = singular_point_certificate(model, weights, arcs, size.certificate)
    elif verdict == "smooth" and found.characteristic == 0:
        own = smooth_point_certificate(model, weights, point.image(), found.equations or (), seed=seed)
    return tuple(document for document in (own, size.certificate) if document is not None)


def _say(ask: Asking, size: Dimension, found: Closure, rank: int | None, lower: int, *, whole: bool) -> None:
    """What the questions behind this one say about the dimension over QQ, the rank at the weights, and the span of curves."""
    behind = size.evidence if whole else (*size.evidence, *found.evidence)
    exact = [e for e in behind if e.quantity == "image_dim" and e.field in (None, "QQ")]
    ask.evidence += [replace(item, field=None) for item in exact]
    here = {"scope": "at-point", "field": "QQ"}
    if rank is not None:
        method = "rank over QQ of the differential at the weights"
        ask.prove("jacobian_rank", rank, "exact", method, **here)
        method += "" if whole else ", where the source is smooth"
        ask.prove("image_dim", rank, "weights", method, relation=">=")
    method = "span over QQ of curves through the point"
    ask.prove("tangent", lower, "curves", method, relation=">=", **here)


def _local_dim(found: Closure, point: Point) -> int | None:
    """The dimension of the closure at the image point, when it is reducible: the largest of a component that passes through it.

    All components must be known, each by its equations; None when they are not.
    """
    if found.components is None or found.completeness != "complete" or found.characteristic:
        return None
    image = point.image()
    here = [part.dim for part in found.components if all(f.at(image) == 0 for f in part.equations or ())]
    return max(here, default=None)


def _free_point(point: Point) -> Point:
    """The point in the model's unconstrained parametrization."""
    model = point.model
    if model.free is model:
        return point
    if not isinstance(model, Lightning):
        raise InputError(f"{model} has constrained weights; give the weights of {model.free.spec}")
    Q, K = over_q.factors(point.weights["A"], model.a)
    return replace(point, model=model.free, weights={"Q": Q, "K": K, "V": point.weights["V"]})


def _rank_and_curves(point: Point, seed: int) -> tuple[int | None, list[Line]]:
    """The rank over QQ of the differential, and curves through the point with independent tangent vectors.

    Where the weights satisfy equations: the rank on the tangent space of the source, only where the equations have independent
    differentials; elsewhere the source may be singular, and the rank is None. No curves are known then.
    """
    model = point.model
    if not isinstance(model, PolynomialMap) or not model.constraints:
        rank = over_q.rank(first_order_images(model, point.weights))
        return rank, spanning_lines(model, [point.weights], np.random.default_rng([seed, 6]))
    differentials = np.asarray(model.constraint_jacobian(point.weights))
    images = np.asarray(model.coordinate_jacobian(point.weights))
    known = over_q.rank(differentials)
    if known < len(model.constraints):
        return None, []
    return over_q.rank(np.concatenate([images, differentials])) - known, []
