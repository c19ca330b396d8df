"""What can one layer of attention reach? The real image, its boundary, and what only the closure adds.

Every point is decided three times: exactly over QQ (:mod:`exact`), by Macaulay2 from the number of complex and real points of
its fiber, and by a numerical search over real weights. Dimensions come from orbits, Macaulay2's ideals and differentials mod p.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np

from m2bridge.models import Lightning, Model
from m2bridge.programs.arithmetics import elementwise
from m2bridge.protocol import Values
from m2bridge.questions.boundary import parts as parts_of
from m2bridge.questions.boundary.exact import Decision, Where, as_surds, decide
from m2bridge.questions.boundary.points import Coordinates, as_point, draw_examples
from m2bridge.questions.boundary.result import Boundary, Matrix, OrbitPlace, PlacedPoint, Region
from m2bridge.questions.boundary.search import search
from m2bridge.questions.kernel import Asking, ForceOption, Option, question
from m2bridge.questions.orbits import exchanged
from m2bridge.questions.singular_locus.layer import ask_dimension, layer_of
from m2bridge.questions.testimony import compared, proves
from m2bridge.results import Certainty, labelled, settle

__all__ = ["Boundary", "Decision", "OrbitPlace", "PlacedPoint", "Region", "boundary", "decide"]

TEMPLATE = "boundary"
_MOST_COORDINATES = 400
_IDEAL_COORDINATES = 60
_KERNEL_COORDINATES = 12
_LONG_SEARCH = 200
_REPORTED = ("image_dim", "boundary_dim", "closure_only_dim")


def check_model(model: Model, *, force: bool = False) -> Lightning:
    """The one-layer model in the coordinates this question uses, or a clear refusal."""
    return layer_of(model, "boundary", _MOST_COORDINATES, "the fibers take Macaulay2 hours", force=force)


def parameters(model: Lightning, points: Sequence[Coordinates], seed: int) -> dict[str, object]:
    """Values for the template."""
    return {
        "p": 0,
        "points": [list(point) for point in points],
        "scale": np.random.default_rng([seed, 14]).integers(1, 100, model.dp * model.d),
        "wantsIdeals": model.d >= 2 and model.coordinate_count <= _IDEAL_COORDINATES,
        "wantsKernel": model.coordinate_count <= _KERNEL_COORDINATES,
    }


@question(
    asks="What one layer of attention can reach: image, boundary, what only the closure adds; and where a point lies.",
    templates=("boundary",),
    quantities={
        "image_dim": "the dimension of the image, affine",
        "boundary_dim": "the dimension of its relative boundary",
        "closure_only_dim": "the dimension of the closure without the image",
    },
    example="m2bridge boundary --d 2 --dp 1 --point 1,0,1,0,0,0",
    takes_prime=False,
)
def boundary(
    ask: Asking,
    model: Model,
    *,
    point: Annotated[
        Any,
        Option(
            "A point to place: a JSON file, coordinates such as 1,0,-1/2,0,0,0, or weights such as "
            '\'{"A": [[1,0],[0,1]], "V": [[1,2]]}\'.'
        ),
    ] = None,
    force: ForceOption = False,
) -> Boundary:
    """The real image of one layer of lightning attention, its relative boundary, and the rest of its Zariski closure.

    The model is a :class:`~m2bridge.models.Lightning` with t >= 2; its parametrization and coordinates do not matter. `point` is
    given by exact coordinates (Segre, or all coefficients) or a mapping with weights A and V. Numbers are integers, Fractions or
    texts such as "1/3"; floats are refused.
    """
    checked = check_model(model, force=force)
    given = None if point is None else as_point(checked, point)
    ask.require_engine()
    examples = draw_examples(checked, ask.seed)
    image_dim, _ = ask_dimension(ask, checked)
    asked = {example.name: example.coordinates for example in examples}
    if given is not None:
        asked["point"] = given
    values, limit = ask.ask(TEMPLATE, parameters(checked, list(asked.values()), ask.seed), checked)
    ask.announce("witnesses")
    dims, more = parts_of.dimensions(checked, values, ask.seed)
    ask.evidence += more
    _witness_sets(ask, values)
    for example in examples:
        ask.evidence.append(
            proves(f"where: {example.name}", example.where, "construction", "how the example was built")
        )
    decided = [
        _place(ask, checked, name, coordinates, values, index)
        for index, (name, coordinates) in enumerate(asked.items())
    ]
    settled = settle(ask.evidence)
    return ask.answer(
        Boundary, model=checked.spec, options={} if given is None else {"point": [str(c) for c in given]},
        image_dim=image_dim, **dims, point=decided[-1] if given is not None else None,
        parts=parts_of.regions(checked, image_dim, dims, values), examples=tuple(decided[: len(examples)]),
        orbits=parts_of.orbit_places(checked),
        certainty=Certainty.weakest(settled[name].certainty for name in _REPORTED if name in settled),
        evidence=labelled(ask.evidence, ("where", "real weights")), limit=limit,
    )  # fmt: skip


def place_of_fiber(fiber: Sequence[int]) -> Where | Literal["impossible"]:
    """Where a point that is not zero lies, from its fiber up to scaling: degree, complex points, real points."""
    degree, complex_points, real_points = fiber
    if not 0 <= real_points <= complex_points <= degree:
        return "impossible"  # contradicts every other witness
    if degree == 0:
        return "outside"
    if real_points == 0:
        return "closure-only"
    return "boundary" if degree > complex_points == 1 else "image"


def _place(
    ask: Asking, model: Lightning, name: str, coordinates: Coordinates, values: Values, index: int
) -> PlacedPoint:
    """A point decided by every witness."""
    begun = time.perf_counter()
    decision = decide(model, coordinates)
    middle = time.perf_counter()
    in_image = decision.where in ("image", "boundary")
    sought = search(model, coordinates, np.random.default_rng([ask.seed, 15, index]))
    if in_image and sought.reached is False:  # this contradicts explicit weights only after a long search
        sought = search(model, coordinates, np.random.default_rng([ask.seed, 16, index]), starts=_LONG_SEARCH)
    where, real = f"where: {name}", f"real weights: {name}"
    method = "linear algebra over QQ and the sign of e2"
    ask.evidence.append(proves(where, decision.where, "exact", method, seconds=middle - begun))
    method = "explicit weights, evaluated back" if in_image else "no real factors"
    ask.evidence.append(proves(real, in_image, "exact", method))
    ask.say(
        real, sought.reached, "numpy", f"least squares over real weights from {sought.starts} starts",
        certainty=Certainty.NUMERIC, seconds=time.perf_counter() - middle, detail={"distance": sought.distance},
    )  # fmt: skip
    fiber = values["fibers"][index] if "fibers" in values else None
    if fiber is not None:
        method, place = (
            "degree, complex and real points of the fiber over QQ, up to scaling",
            place_of_fiber(fiber),
        )
        took = {"seconds": ask.last_seconds}
        ask.evidence += [
            proves(where, place, "macaulay2", method, detail={"fiber": list(fiber)}, **took),
            proves(real, place in ("image", "boundary"), "macaulay2", method, **took),
        ]
    inside = decision.where != "outside"
    rank_one = inside and decision.rank_a * decision.rank_v <= 1
    for tag, what, method, ours in (
        ("on_variety", "in the closure", "complex weights exist", inside),
        ("on_rank_one", "rk A * rk V <= 1", "ranks of flattenings", rank_one),
        ("on_boundary", "rank-one quadric", "place and ranks", decision.where == "boundary"),
    ):
        if tag in values:
            theirs = ("macaulay2", "equations over QQ at the point", values[tag][index])
            more = {"certainty": Certainty.PROVED}
            ask.evidence += compared(f"{what}: {name}", theirs, ("exact", method, ours), **more)
    return _placed(name, coordinates, decision, sought.distance)


def _witness_sets(ask: Asking, values: Values) -> None:
    """Whether both ideals contain the closure's equations, as they must: the points are products of complex forms."""
    quantity = "boundary and closure-only part lie in the closure"
    if "sets_in_closure" in values:
        found, method = values["sets_in_closure"], "the kernel reduces to zero modulo both ideals, over QQ"
        ask.evidence.append(proves(quantity, found, "macaulay2", method))
        if not found:
            method = "they are products of complex forms"
            ask.evidence.append(proves(quantity, True, "construction", method))


def _placed(name: str, coordinates: Coordinates, decision: Decision, distance: float) -> PlacedPoint:
    weights = conjugate = None
    if decision.A is not None:
        weights = {"A": _written(decision.A), "V": _written(decision.V)}
        if decision.rank_s == 2:
            conjugate = dict(zip("AV", map(_written, _exchanged(decision)), strict=True))
    return PlacedPoint(
        name=name, coordinates=tuple(coordinates), where=decision.where, weights=weights, conjugate=conjugate,
        rank_a=decision.rank_a, rank_v=decision.rank_v, rank_s=decision.rank_s, e2=decision.e2, distance=distance,
        reason=decision.reason,
    )  # fmt: skip


def _exchanged(decision: Decision) -> tuple[np.ndarray, np.ndarray]:
    """The other weights of a point with two factors: k and v exchanged; that is √D -> -√D when D is no square."""
    A: Any = as_surds(decision.A)
    V: Any = as_surds(decision.V)
    if any(entry.surd for entry in A.flat):
        return elementwise(lambda c: c.conjugate(), A), elementwise(lambda c: c.conjugate(), V)
    found = exchanged(*(elementwise(lambda c: c.rational, matrix) for matrix in (A, V)))
    assert found is not None
    return found


def _written(matrix: np.ndarray | None) -> Matrix:
    return tuple(tuple(map(str, row)) for row in as_surds(matrix))
