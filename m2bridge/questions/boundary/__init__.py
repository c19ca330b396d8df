"""What can one layer of attention reach? The real image, its boundary, and what only the closure adds.

Every point is placed twice: by the question `membership`, which finds weights or shows that there are none, and by ranks and a
sign (:mod:`criterion`), which alone tell the boundary. Dimensions come from orbits, Macaulay2's ideals and differentials mod p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.errors import InputError, LimitError, OutOfReachError
from m2bridge.evidence import Evidence, settle
from m2bridge.families import Attention, Model
from m2bridge.families.attention_strata import LayerStrata
from m2bridge.limits import LimitReached, limit_advice
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions.boundary import regions
from m2bridge.questions.boundary.criterion import Criterion, Where, decide
from m2bridge.questions.boundary.points import Coordinates, as_point, draw_examples
from m2bridge.questions.boundary.result import Boundary, Matrix, OrbitPlace, PlacedPoint, Region
from m2bridge.questions.closure import closure
from m2bridge.questions.dimension import dimension
from m2bridge.questions.kernel import Context, ForceOption, Option, question
from m2bridge.questions.membership import ImageMembership, KnownFiber, known_fibers, membership
from m2bridge.questions.membership.points import AlgebraicPoint
from m2bridge.questions.orbits import exchanged

__all__ = ["Boundary", "OrbitPlace", "PlacedPoint", "Region", "boundary", "decide"]

TEMPLATE = "boundary"
_MOST_BOUNDARY_COORDINATES = 400  # beyond, fibers take hours in Macaulay2
_IDEAL_COORDINATES = 60  # coordinates up to which ideals of the parts are computed
_MOST_CLOSURE_COORDINATES = 12
"""Up to this many coordinates the equations of the closure take Macaulay2 a moment."""
_SHARE_FOR_FIBERS = 0.25
"""Of the time left, for the fibers of all points at once; those that are not finished are asked again one by one."""
CRITERION: dict[str, Any] = {
    "ancestry": "formula", "certainty": Certainty.THEOREM,
    "detail": {"theorem": "ranks of flattenings and the sign of e2 locate a point (m2bridge.questions.boundary.criterion)"},
}  # fmt: skip
"""What all evidence of the criterion has."""
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
            "Point to locate: a JSON file, coordinates such as 1,0,-1/2,0,0,0, or weights such as "
            '\'{"A": [[1,0],[0,1]], "V": [[1,2]]}\'.'
        ),
    ] = None,
    force: ForceOption = False,
) -> Boundary:
    """Compute the real image of one layer of lightning attention, its relative boundary, and the rest of its Zariski closure.

    The model is a :class:`~m2bridge.families.Attention` with t >= 2; its parametrization and coordinates do not matter. `point`
    is given by exact coordinates (Segre, or all coefficients) or a mapping with weights A and V. Numbers are integers, Fractions
    or texts such as "1/3"; floats are refused.
    """
    checked = check_model(model, force=force)
    given = None if point is None else as_point(checked, point)
    context.require_engine()
    examples = draw_examples(checked, context.seed)
    context.report_progress("dimension")
    size = context.ask_question(dimension, checked, engine=False, certify=False)
    context.add_evidence(*(e for e in size.evidence if e.quantity == "image_dim" and e.value is not None))
    image_dim = size.lower_bound
    asked = {example.name: example.coordinates for example in examples}
    if given is not None:
        asked["point"] = given
    values: Mapping[str, Any] = {}
    limit = None
    if checked.d >= 2 and checked.coordinate_count <= _IDEAL_COORDINATES:
        send = {"d": checked.d, "dp": checked.dp, "points": [list(z) for z in asked.values()]}
        values, limit = context.run_template(TEMPLATE, send)
    if checked.coordinate_count <= _MOST_CLOSURE_COORDINATES:
        values = {**values, **_closure_values(context, checked, list(asked.values()))}
    context.report_progress("witnesses")
    dims, more = regions.dimensions(checked, values, context.seed)
    context.add_evidence(*more)
    for example in examples:
        context.add_evidence(
            Evidence(
                f"where: {example.name}",
                _coarse(example.where),
                "construction",
                "how the example was built",
                certainty=Certainty.PROVED,
            )
        )
    # one script for all fibers, among networks with any A: rk A is the rank of a flattening
    any_rank = checked.with_rank(checked.d)
    known = known_fibers(context, any_rank, list(asked.values()), share=_SHARE_FOR_FIBERS)
    orbits = regions.orbit_places(checked)
    placed: dict[str, PlacedPoint] = {}
    try:
        # what was asked about comes first
        for i, name in sorted(enumerate(asked), key=lambda item: item[1] != "point"):
            context.clock.check()
            share = 1 / (len(asked) - len(placed))
            placed[name] = _placed(context, checked, name, values, i, known[i], share)
    except (LimitReached, LimitError) as reached:
        limit = limit or str(reached)
    settled = settle(context.evidence)
    return context.build_result(
        Boundary, model=checked.spec, options={} if given is None else {"point": [str(c) for c in given]},
        image_dim=image_dim, **dims, point=placed.pop("point", None),
        parts=regions.regions(checked, image_dim, dims, values), examples=tuple(placed.values()),
        orbits=orbits,
        certainty=Certainty.weakest(settled[name].certainty for name in _REPORTED if name in settled),
        limit=limit,
    )  # fmt: skip


def _closure_values(context: Context, model: Attention, points: Sequence[Coordinates]) -> dict[str, Any]:
    """Return the equations of the closure and, if they are complete, which of the points satisfy them."""
    found = context.ask_question(closure, model, method="kernel", field="QQ", equations=True)
    equations = found.equations or ()
    values: dict[str, Any] = {"equations": [f.text() for f in equations]}
    if found.completeness == "complete":
        values["in_closure"] = [all(f.at(z) == 0 for f in equations) for z in points]
    return values


def _placed(
    context: Context, model: Attention, name: str, values: Mapping[str, Any], index: int, known: KnownFiber, share: float
) -> PlacedPoint:  # fmt: skip
    """Locate a point by the criterion, and by `membership` among networks with arbitrary A."""
    coordinates: Coordinates = known.point
    ours = decide(model, coordinates)
    context.report_progress(f"weights of {name}")
    answer = context.ask_question(membership, model.with_rank(model.d), point=known, share=share)
    theirs, method = place_of(answer), "ranks of flattenings and the sign of e2"
    if ours.rank_a <= model.attention_rank:
        word: dict[str, Any] = {"ancestry": "template", "certainty": answer.certainty}
        how = "weights, or that there are none: `membership`"
        context.add_evidence(Evidence(f"where: {name}", theirs, "membership", how, **word))
        if ours.where == "undecided" and theirs is not None:
            quantity, real = f"real weights where there are complex ones: {name}", theirs != "closure-only"
            context.add_evidence(Evidence(quantity, real, "membership", how, **word))
            context.add_evidence(Evidence(quantity, True, "criterion", ours.reason, **CRITERION))
    if ours.where != "undecided":
        context.add_evidence(
            Evidence(f"where: {name}", _coarse(ours.where), "criterion", method, **CRITERION)
        )
    where: Where = (theirs or "undecided") if ours.where == "undecided" else ours.where
    rank_one = ours.where in ("image", "boundary", "closure-only")
    for tag, what, found in (
        ("in_closure", "in the closure", None if where == "undecided" else where != "outside"),
        ("on_rank_one", "rk A * rk V <= 1", rank_one),
        ("on_boundary", "rank-one quadric", ours.where == "boundary"),
    ):
        if tag in values:
            quantity, by_ideal = f"{what}: {name}", "equations over QQ at the point"
            context.add_evidence(
                Evidence(quantity, values[tag][index], "macaulay2", by_ideal, certainty=Certainty.PROVED),
                Evidence(quantity, found, "exact", method, certainty=Certainty.PROVED),
            )
    reason = ours.reason
    if ours.where == "undecided" and where != "image":
        undecided = "`membership` did not decide: " + limit_advice(
            answer.limit, "neither weights nor a proof that there are none"
        )
        reason = answer.reasons[0] if answer.reasons else undecided
    weights, conjugate = (None, None) if where == "outside" else _both_weights(model, answer, ours)
    details = [e.detail for e in answer.evidence if e.witness == "numpy" and e.detail]
    return PlacedPoint(
        name=name, coordinates=tuple(coordinates), where=where, weights=weights, conjugate=conjugate,
        rank_a=ours.rank_a, rank_v=ours.rank_v, rank_s=ours.rank_s, e2=ours.e2,
        distance=details[0]["distance"] if details else None, reason=reason,
    )  # fmt: skip


def _coarse(where: Where) -> Where:
    """Return the location, with the boundary counted as image, because weights do not distinguish them."""
    return "image" if where == "boundary" else where


def place_of(answer: ImageMembership) -> Where | None:
    """Where a point lies, as far as weights tell; None where that was not decided. The complex image is closed."""
    if answer.complex_image is False:
        return "outside"
    places: dict[bool, Where] = {True: "image", False: "closure-only"}
    return None if answer.real_image is None else places[answer.real_image]


# -- weights as texts ------------------------------------------------------------------------------------------------------------


def _both_weights(
    model: Attention, answer: ImageMembership, ours: Criterion
) -> tuple[dict[str, Matrix] | None, dict[str, Matrix] | None]:
    """Return A and V that membership found, and the second pair if S has two factors: exchange them, √D becomes -√D."""
    d = model.d

    def pair(flat: Sequence[str]) -> dict[str, Matrix]:
        rows = np.array(flat, dtype=object).reshape(-1, d).tolist()
        return {"A": tuple(map(tuple, rows[:d])), "V": tuple(map(tuple, rows[d:]))}

    if answer.algebraic is not None:
        found = quadratic_texts(answer.algebraic)
        return (None, None) if found is None else (pair(found[0]), pair(found[1]))
    if answer.weights is None:
        return None, None
    weights = pair([*answer.weights["A"], *answer.weights["V"]])
    other = exchanged(*(elementwise(Fraction, np.array(weights[name], dtype=object)) for name in "AV"))
    if ours.rank_s != 2 or other is None:
        return weights, None
    return weights, pair([str(c) for matrix in other for c in matrix.flat])


def quadratic_texts(place: AlgebraicPoint) -> tuple[list[str], list[str]] | None:
    """Return the numbers of a point over QQ(√D) as texts such as ``1/2+3*sqrt(5)``, and their conjugates; None over other fields.

    >>> quadratic_texts(AlgebraicPoint(modulus=("2", "-2", "1"), variables=(("1", "0"), ("0", "1/2"))))
    (['1', '1/2+1/2*sqrt(-1)'], ['1', '1/2-1/2*sqrt(-1)'])
    """
    if len(place.modulus) != 3:
        return None
    c, b = (Fraction(text) for text in place.modulus[:2])  # u = -b/2 + √(b^2/4 - c)
    square = b * b / 4 - c
    radicand, factor = square.numerator * square.denominator, Fraction(1, square.denominator)
    for divisor in range(2, 1000):
        while radicand % divisor**2 == 0:
            radicand, factor = radicand // divisor**2, factor * divisor
    numbers = [(Fraction(x) - Fraction(y) * b / 2, Fraction(y) * factor) for x, y in place.variables]
    sign = next((1 if surd > 0 else -1 for _, surd in numbers if surd), 1)

    def text(rational: Fraction, surd: Fraction) -> str:
        if not surd:
            return str(rational)
        root = f"{'' if abs(surd) == 1 else f'{abs(surd)}*'}sqrt({radicand})"
        return f"{rational or ''}{'-' if surd < 0 else '+' if rational else ''}{root}"

    return [text(r, sign * s) for r, s in numbers], [text(r, -sign * s) for r, s in numbers]
