"""What can one layer of attention reach? The real image, its boundary, and what only the closure adds.

Every point is decided three times: exactly over QQ (:mod:`decide`), by Macaulay2 from the number of complex and real points of
its fiber, and by a numerical search over real weights. Dimensions come from orbits, Macaulay2's ideals and differentials mod p.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np

from m2bridge.errors import InputError, OutOfReachError
from m2bridge.models import Lightning, Model
from m2bridge.protocol import Values
from m2bridge.questions.boundary import parts as parts_of
from m2bridge.questions.boundary import statements
from m2bridge.questions.boundary.closedness import experiment
from m2bridge.questions.boundary.decide import Decision, Where, as_surds, decide
from m2bridge.questions.boundary.examples import Example, draw_examples
from m2bridge.questions.boundary.points import Coordinates, as_point
from m2bridge.questions.boundary.result import Boundary, Experiment, Matrix, OrbitPlace, Part, Point
from m2bridge.questions.boundary.search import search
from m2bridge.questions.boundary.surds import Surd
from m2bridge.questions.kernel import Asking, ForceOption, Option, question
from m2bridge.questions.singular_locus import witnesses
from m2bridge.results import Certainty, Evidence, labelled, settle

__all__ = ["Boundary", "Decision", "Experiment", "OrbitPlace", "Part", "Point", "boundary", "decide"]

TEMPLATE = "boundary"
_MOST_COORDINATES = 400
_IDEAL_COORDINATES = 60
_KERNEL_COORDINATES = 12
_LONG_SEARCH = 200
_REPORTED = ("image_dim", "boundary_dim", "closure_only_dim")


def check_model(model: Model, *, force: bool = False) -> Lightning:
    """The one-layer model in the coordinates this analysis uses, or a clear refusal."""
    if not isinstance(model, Lightning):
        raise InputError(f"boundary is about one layer of lightning attention; {model.spec} is not")
    if model.t < 2:
        raise InputError(
            "boundary needs t >= 2: with one token the Segre coordinates do not determine the network"
        )
    model = replace(model, parametrization="attention", coordinate_system="segre")
    if model.coordinate_count > _MOST_COORDINATES and not force:
        raise OutOfReachError(
            f"{model.spec} has {model.coordinate_count} coordinates; beyond {_MOST_COORDINATES} the fibers take "
            "Macaulay2 hours; --force tries anyway",
            estimate=model.coordinate_count,
        )
    return model


def parameters(model: Lightning, points: Sequence[Coordinates], seed: int) -> dict[str, object]:
    """Values for the template."""
    scale = np.random.default_rng([seed, 14]).integers(1, 100, model.dp * model.d)
    return {
        "p": 0,
        "points": [list(point) for point in points],
        "scale": scale,
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
            '\'{"A": [[1,0],[0,1]], "V": [[1,2]]}\'.',
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
    seed = ask.seed
    examples = list(draw_examples(checked, seed))
    ask.announce("dimension")
    image_dim, evidence = witnesses.image_dim(checked, seed)
    asked = [example.coordinates for example in examples] + ([] if given is None else [given])
    values, limit = ask.ask(TEMPLATE, parameters(checked, asked, seed), checked)
    seconds = ask.last_seconds
    ask.announce("witnesses")
    dims, more = parts_of.dimensions(checked, values, seed)
    evidence += more + _of_the_closure(values)
    decided: list[Point] = []
    for index, coordinates in enumerate(asked):
        example = examples[index] if index < len(examples) else None
        fiber = values["fibers"][index] if "fibers" in values else None
        place, more = _place(checked, coordinates, example, fiber, values, index, seed, seconds)
        decided.append(place)
        evidence += more
    places = statements.orbit_places(checked)
    ask.announce("closedness")
    settled = settle(evidence)
    return ask.answer(
        Boundary,
        model=checked.spec,
        options={} if given is None else {"point": [str(c) for c in given]},
        image_dim=image_dim.lower,
        boundary_dim=dims["boundary_dim"],
        closure_only_dim=dims["closure_only_dim"],
        point=decided[-1] if given is not None else None,
        parts=parts_of.parts(checked, image_dim.lower, dims, values),
        examples=tuple(decided[: len(examples)]),
        orbits=places,
        theorem=statements.theorem(checked, places),
        corollary=statements.corollary(checked, places),
        closedness=experiment(checked, seed),
        certainty=Certainty.weakest(settled[name].certainty for name in _REPORTED if name in settled),
        evidence=labelled(evidence, ("where", "real weights")),
        limit=limit,
    )


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
    model: Lightning,
    coordinates: Coordinates,
    example: Example | None,
    fiber: Sequence[int] | None,
    values: Values,
    index: int,
    seed: int,
    seconds: float,
) -> tuple[Point, list[Evidence]]:
    """A point decided by every witness."""
    name = "point" if example is None else example.name
    begun = time.perf_counter()
    decision = decide(model, coordinates)
    middle = time.perf_counter()
    sought = search(model, coordinates, np.random.default_rng([seed, 15, index]))
    in_image = decision.where in ("image", "boundary")
    if in_image and sought.reached is False:
        # not having found weights contradicts explicit ones only after a long search; finding them would be a proof
        sought = search(model, coordinates, np.random.default_rng([seed, 16, index]), starts=_LONG_SEARCH)
    done = time.perf_counter()
    where, real = f"where: {name}", f"real weights: {name}"
    evidence = [
        Evidence(
            quantity=where,
            witness="exact",
            method="linear algebra over QQ and the sign of e2",
            value=decision.where,
            certainty=Certainty.PROVED,
            seconds=middle - begun,
        ),
        Evidence(
            quantity=real,
            witness="exact",
            method="explicit weights, evaluated back" if in_image else "no real factors",
            value=in_image,
            certainty=Certainty.PROVED,
        ),
        Evidence(
            quantity=real,
            witness="numpy",
            method=f"least squares over real weights from {sought.starts} starts",
            value=sought.reached,
            certainty=Certainty.NUMERIC,
            seconds=done - middle,
            detail={"distance": sought.distance},
        ),
    ]
    if example is not None:
        evidence.append(
            Evidence(
                quantity=where,
                witness="construction",
                method="how the example was built",
                value=example.where,
                certainty=Certainty.PROVED,
            )
        )
    if fiber is not None:
        method = "degree, complex and real points of the fiber over QQ, up to scaling"
        said = dict(witness="macaulay2", method=method, certainty=Certainty.PROVED, seconds=seconds)
        place = place_of_fiber(fiber)
        evidence += [
            Evidence(quantity=where, value=place, detail={"fiber": list(fiber)}, **said),  # type: ignore[arg-type]
            Evidence(quantity=real, value=place in ("image", "boundary"), **said),  # type: ignore[arg-type]
        ]
    for tag, what, method, ours in (
        ("on_variety", "in the closure", "complex weights exist", decision.where != "outside"),
        (
            "on_rank_one",
            "rk A * rk V <= 1",
            "ranks of flattenings",
            decision.where != "outside" and decision.rank_a * decision.rank_v <= 1,
        ),
        ("on_boundary", "rank-one quadric", "place and ranks", decision.where == "boundary"),
    ):
        if tag not in values:
            continue
        for witness, how, value in (
            ("macaulay2", "equations over QQ at the point", values[tag][index]),
            ("exact", method, ours),
        ):
            evidence.append(
                Evidence(
                    quantity=f"{what}: {name}",
                    witness=witness,
                    method=how,
                    value=value,
                    certainty=Certainty.PROVED,
                )
            )
    return _point(name, coordinates, decision, sought.distance), evidence


def _of_the_closure(values: Values) -> list[Evidence]:
    """Whether both ideals contain the closure's equations, as they must: the points are products of complex forms."""
    if "sets_in_closure" not in values:
        return []
    said = Evidence(
        quantity="boundary and closure-only part lie in the closure",
        witness="macaulay2",
        method="the kernel reduces to zero modulo both ideals, over QQ",
        value=values["sets_in_closure"],
        certainty=Certainty.PROVED,
    )
    if said.value:
        return [said]
    method = "they are products of complex forms"
    return [said, replace(said, witness="construction", method=method, value=True)]


def _point(name: str, coordinates: Coordinates, decision: Decision, distance: float) -> Point:
    weights = conjugate = None
    if decision.A is not None:
        weights = {"A": _written(decision.A), "V": _written(decision.V)}
        if decision.rank_s == 2:
            other = _exchanged(decision)
            conjugate = {"A": _written(other[0]), "V": _written(other[1])}
    return Point(
        name=name,
        coordinates=tuple(coordinates),
        where=decision.where,
        weights=weights,
        conjugate=conjugate,
        rank_a=decision.rank_a,
        rank_v=decision.rank_v,
        rank_s=decision.rank_s,
        e2=decision.e2,
        distance=distance,
        reason=decision.reason,
    )


def _exchanged(decision: Decision) -> tuple[np.ndarray, np.ndarray]:
    """The other weights of a point with two factors: k and v exchanged; that is √D -> -√D when D is no square."""
    A, V = as_surds(decision.A), as_surds(decision.V)
    if any(entry.surd for entry in A.flat):
        return _conjugated(A), _conjugated(V)
    # rational factors: A = k q^T and V = h v^T, so exchange k and v through a non-zero column of A and row of V
    column = next(m for m in range(A.shape[1]) if any(entry != 0 for entry in A[:, m]))
    row = next(n for n in range(V.shape[0]) if any(entry != 0 for entry in V[n]))
    k, v = A[:, column], V[row]
    i, j = (next(i for i, entry in enumerate(vector) if entry != 0) for vector in (k, v))
    q = [entry.rational / k[i].rational for entry in A[i]]
    h = [entry.rational / v[j].rational for entry in V[:, j]]
    return np.outer(v, np.array(q, dtype=object)), np.outer(np.array(h, dtype=object), k)


def _conjugated(matrix: np.ndarray) -> np.ndarray:
    result = np.empty(matrix.shape, dtype=object)
    for index in np.ndindex(matrix.shape):
        result[index] = matrix[index].conjugate()
    return result


def _written(matrix: np.ndarray | None) -> Matrix:
    return tuple(
        tuple(str(entry if isinstance(entry, Surd) else Surd(entry)) for entry in row)
        for row in np.asarray(matrix, dtype=object)
    )
