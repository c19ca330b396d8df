"""Compute the image of one layer of attention over the real numbers, its boundary, and the rest of its closure.

Every point is located twice: by the question `membership`, which finds weights or shows that there are none, and by ranks and
a sign (:mod:`criterion`), which alone distinguish the boundary. Dimensions are computed from orbits, from Macaulay2's ideals and
from differentials modulo p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from m2bridge.alarm import suspended_alarm
from m2bridge.certainty import Certainty
from m2bridge.errors import InputError, LimitError, OutOfReachError
from m2bridge.evidence import Evidence, settle
from m2bridge.families import Attention, Model
from m2bridge.families.attention_strata import LayerStrata
from m2bridge.limits import LimitReached, limit_advice
from m2bridge.questions.boundary import regions
from m2bridge.questions.boundary.criterion import Where, decide
from m2bridge.questions.boundary.points import Coordinates, draw_examples
from m2bridge.questions.boundary.result import Boundary, LocatedPoint, OrbitLocation, Region
from m2bridge.questions.closure import closure
from m2bridge.questions.dimension import dimension
from m2bridge.questions.kernel import Context, ForceOption, Option, question
from m2bridge.questions.membership import ImageMembership, membership
from m2bridge.questions.membership.points import target_of

__all__ = ["Boundary", "LocatedPoint", "OrbitLocation", "Region", "boundary", "decide"]

TEMPLATE = "boundary"
_MOST_BOUNDARY_COORDINATES = 400  # beyond, fibers take hours in Macaulay2
_IDEAL_COORDINATES = 60  # coordinates up to which ideals of the regions are computed
_MOST_CLOSURE_COORDINATES = 12
"""Up to this many coordinates Macaulay2 computes the equations of the closure in about a second."""
CRITERION: dict[str, Any] = {
    "ancestry": "formula", "certainty": Certainty.THEOREM,
    "detail": {"theorem": "ranks of flattenings and the sign of e2 locate a point (m2bridge.questions.boundary.criterion)"},
}  # fmt: skip
"""Fields that all evidence of the criterion shares."""
_REPORTED = ("image_dim", "boundary_dim", "closure_only_dim", "where: point")


def check_model(model: Model, *, force: bool = False) -> Attention:
    """Return the one-layer model in the coordinates that this question uses, or refuse it."""
    if model.knowledge.layer is None:
        raise InputError(
            f"boundary requires one layer of lightning attention, not {model}; `m2bridge membership` locates a point of "
            "any polynomial model in the closure, the complex image and the real image"
        )
    layer = LayerStrata(model.knowledge.layer).model
    if layer.coordinate_count > _MOST_BOUNDARY_COORDINATES and not force:
        raise OutOfReachError(
            f"{layer} has {layer.coordinate_count} coordinates; beyond {_MOST_BOUNDARY_COORDINATES} "
            "the fibers take hours in Macaulay2; --force attempts it",
            estimate=layer.coordinate_count,
        )
    return layer


@question(
    asks="Image, relative boundary and Zariski closure of one attention layer; optionally the location of a point.",
    templates=("boundary", *membership.templates),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "boundary_dim": "the dimension of its relative boundary",
        "closure_only_dim": "the dimension of the closure without the image",
    },
    example="m2bridge boundary --d 2 --dp 1 --point 1,0,1,0,0,0",
    takes_prime=False,
    warm=True,
)
def boundary(
    context: Context,
    model: Model,
    *,
    point: Annotated[
        Any,
        Option(
            "Point to locate, as for membership: coordinates such as 1,0,-1/2,0,0,0, a .json file, or weights such as "
            '\'{"weights": {"A": [[1,0],[0,1]], "V": [[1,2]]}}\'.'
        ),
    ] = None,
    force: ForceOption = False,
) -> Boundary:
    """Compute the real image of one layer of lightning attention, its relative boundary, and the rest of its Zariski closure.

    The model is a :class:`~m2bridge.families.Attention` with t >= 2; its parametrization and coordinates do not matter. `point`
    is given by exact Segre coordinates or by weights A and V. `membership` finds weights of a point.
    """
    checked = check_model(model, force=force)
    requested_point = None if point is None else target_of(checked, point).point
    context.require_engine()
    examples = draw_examples(checked, context.seed)
    context.report_progress("dimension")
    size = context.ask_question(dimension, checked, engine=False, certify=False)
    context.add_evidence(*(e for e in size.evidence if e.quantity == "image_dim" and e.value is not None))
    image_dim = size.lower_bound
    points = {example.name: example.coordinates for example in examples}
    if requested_point is not None:
        points["point"] = requested_point
    values = _ideal_values(context, checked, list(points.values()))
    context.report_progress("witnesses")
    with suspended_alarm():  # ranks of small matrices, part of every answer also when the time is over
        dims, dimension_evidence = regions.dimensions(checked, values, context.seed)
        orbit_locations = regions.orbit_locations(checked)
    context.add_evidence(*dimension_evidence)
    for example in examples:
        quantity, method = f"where: {example.name}", "how the example was built"
        location = _coarse(example.where)
        context.add_evidence(Evidence(quantity, location, "construction", method, certainty=Certainty.PROVED))
    located = _located_points(context, checked, points, values)
    settled = settle(context.evidence)
    return context.build_result(
        Boundary, model=checked.spec, options={} if requested_point is None else {"point": [str(c) for c in requested_point]},
        image_dim=image_dim, **dims, point=located.pop("point", None),
        parts=regions.regions(checked, image_dim, dims, values), examples=tuple(located.values()),
        orbits=orbit_locations,
        certainty=Certainty.weakest(settled[name].certainty for name in _REPORTED if name in settled),
    )  # fmt: skip


def _ideal_values(context: Context, model: Attention, points: Sequence[Coordinates]) -> dict[str, Any]:
    """Return the ideals of the regions, the equations of the closure, and which of the points satisfy them."""
    values: dict[str, Any] = {}
    if model.d >= 2 and model.coordinate_count <= _IDEAL_COORDINATES:
        script_input = {"d": model.d, "dp": model.dp, "points": [list(z) for z in points]}
        values |= context.run_template(TEMPLATE, script_input)[0]
    if model.coordinate_count <= _MOST_CLOSURE_COORDINATES:
        image_closure = context.ask_question(closure, model, method="kernel", field="QQ", equations=True)
        equations = image_closure.equations or ()
        values["equations"] = [f.text() for f in equations]
        if image_closure.completeness == "complete":
            values["in_closure"] = [all(f.at(z) == 0 for f in equations) for z in points]
    return values


def _located_points(
    context: Context, model: Attention, points: Mapping[str, Coordinates], values: Mapping[str, Any]
) -> dict[str, LocatedPoint]:
    """Locate the points, that of the user first; if a limit is reached, those before it."""
    located: dict[str, LocatedPoint] = {}
    try:
        for i, name in sorted(enumerate(points), key=lambda item: item[1] != "point"):
            context.clock.check()
            share = 1 / (len(points) - len(located))
            located[name] = _locate(context, model, name, values, i, points[name], share)
    except (LimitReached, LimitError) as reached:
        context.note_limit(str(reached))
    return located


def _locate(
    context: Context, model: Attention, name: str, values: Mapping[str, Any], index: int, coordinates: Coordinates,
    share: float,
) -> LocatedPoint:  # fmt: skip
    """Locate a point by the criterion, and by `membership` among networks with arbitrary A: rk A is that of a flattening."""
    criterion = decide(model, coordinates)
    context.report_progress(f"weights of {name}")
    answer = context.ask_question(membership, model.with_rank(model.d), point=coordinates, share=share)
    by_weights = location_of(answer)
    method = "ranks of flattenings and the sign of e2"
    if criterion.rank_a <= model.attention_rank:
        of_weights: dict[str, Any] = {"ancestry": "template", "certainty": answer.certainty}
        of_weights |= {"witness": "membership", "method": "weights, or that there are none: `membership`"}
        context.add_evidence(Evidence(f"where: {name}", by_weights, **of_weights))
        if criterion.where == "undecided" and by_weights is not None:
            quantity = f"real weights where there are complex ones: {name}"
            context.add_evidence(
                Evidence(quantity, by_weights != "closure-only", **of_weights),
                Evidence(quantity, True, "criterion", criterion.reason, **CRITERION),
            )
    if criterion.where != "undecided":
        location = _coarse(criterion.where)
        context.add_evidence(Evidence(f"where: {name}", location, "criterion", method, **CRITERION))
    where: Where = (by_weights or "undecided") if criterion.where == "undecided" else criterion.where
    rank_one = criterion.where in ("image", "boundary", "closure-only")
    for tag, statement, expected in (
        ("in_closure", "in the closure", None if where == "undecided" else where != "outside"),
        ("on_rank_one", "rk A * rk V <= 1", rank_one),
        ("on_boundary", "rank-one quadric", criterion.where == "boundary"),
    ):
        if tag in values:
            quantity = f"{statement}: {name}"
            ideal_method = "equations over QQ at the point"
            context.add_evidence(
                Evidence(quantity, values[tag][index], "macaulay2", ideal_method, certainty=Certainty.PROVED),
                Evidence(quantity, expected, "exact", method, certainty=Certainty.PROVED),
            )
    reason = criterion.reason
    if criterion.where == "undecided" and where != "image":
        undecided = "`membership` did not decide: " + limit_advice(
            answer.limit, "neither weights nor a proof that there are none"
        )
        reason = answer.reasons[0] if answer.reasons else undecided
    return LocatedPoint(
        name=name, coordinates=tuple(coordinates), where=where, rank_a=criterion.rank_a, rank_v=criterion.rank_v,
        rank_s=criterion.rank_s, e2=criterion.e2, reason=reason,
    )  # fmt: skip


def _coarse(where: Where) -> Where:
    """Return the location, with the boundary counted as image, because weights do not distinguish them."""
    return "image" if where == "boundary" else where


def location_of(answer: ImageMembership) -> Where | None:
    """Return where a point lies according to its weights; None if undecided. The complex image is closed."""
    if answer.complex_image is False:
        return "outside"
    locations: dict[bool, Where] = {True: "image", False: "closure-only"}
    return None if answer.real_image is None else locations[answer.real_image]
