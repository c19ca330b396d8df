"""Which weights compute the same function? The fiber through a point, its components, and a verdict on identifiability.

Dimensions of generic fibers and of the tangent space at the point come from ranks of the differential, always. For some families
an argument counts all orbits in the fiber through the point (:mod:`arguments`). Where Macaulay2 can say more, it computes the
fiber's ideal; every number it gives is compared with what the forward pass says. The verdict is what was shown of this fiber:
equal dimensions show an open orbit and nothing more.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from m2bridge.errors import NotPolynomialError, OutOfReachError
from m2bridge.models import MLP, DeepLightning, Lightning, Model, OwnNetwork
from m2bridge.questions.fiber import computing, factored, lifting, partners, real, structured, theorem
from m2bridge.questions.fiber.arguments import Orbits, all_orbits, all_orbits_mod
from m2bridge.questions.fiber.computing import Outcome, field_of
from m2bridge.questions.fiber.dimensions import dimensions_of
from m2bridge.questions.fiber.gauge import apply_gauges, attention_gauge, layer_gauges, torus_gauge
from m2bridge.questions.fiber.points import Point, given_point, random_point, read_weights
from m2bridge.questions.fiber.primes import DEFAULT_PRIME, good_prime
from m2bridge.questions.fiber.question import (
    MOST_TERMS,
    MOST_TERMS_EACH,
    MOST_WEIGHTS,
    equation_span,
    estimated_terms,
    family_parameters,
)
from m2bridge.questions.fiber.resolve import AtOption, StratumOption, one_of, resolve, stratum_point
from m2bridge.questions.fiber.result import Fiber, FiberComponent, RealPoint
from m2bridge.questions.fiber.skew import counterexample, same_function
from m2bridge.questions.fiber.slices import slice_of
from m2bridge.questions.fiber.verdict import judged
from m2bridge.questions.kernel import Asking, ForceOption, question
from m2bridge.results import Certainty, Evidence

__all__ = [
    "Fiber",
    "FiberComponent",
    "Point",
    "RealPoint",
    "apply_gauges",
    "attention_gauge",
    "counterexample",
    "fiber",
    "given_point",
    "layer_gauges",
    "random_point",
    "read_weights",
    "same_function",
    "stratum_point",
    "torus_gauge",
]

_PLAIN_LIGHTNING_WEIGHTS = 20
_PLAIN_WEIGHTS_BEFORE_SLICE = 12
_MULTI_HEAD_WEIGHTS = 12


@question(
    asks="Which weights compute the same function: the fiber through a point, and whether symmetries explain it.",
    templates=("fiber", "fiber_deep"),
    quantities={
        "fiber_dim": "the dimension of the fiber through the point",
        "dim_at_point": "the dimension of the fiber at the point",
        "orbits": "how many orbits of the known symmetries the fiber has",
        "image_dim": "the dimension of the image",
    },
    example="m2bridge fiber 'lightning(d=2,dp=1,parametrization=attention)' --stratum rank_a=1,rank_v=1",
)
def fiber(
    ask: Asking,
    model: Model,
    *,
    at: AtOption = None,
    stratum: StratumOption = None,
    force: ForceOption = False,
) -> Fiber:
    """The fiber of the parametrization through a point: all weights with the same function.

    Dimensions of generic fibers always; components where Macaulay2 can compute them. `at` is None or ``"random"`` for random
    integer weights; a mapping from names to matrices of integers or fractions; the path of a ``weights.json``; or the text of a
    stratum, ``"rank_a=1,rank_v=1,meet=1"`` or ``"m1=skew"``. The prime is exchanged, with a note, when the point does not
    survive it.
    """
    prime = DEFAULT_PRIME if ask.prime is None else ask.prime
    asked, model = model, _by_coordinates(model)
    point = resolve(model, one_of(at, stratum), ask.seed)
    p, note = good_prime(point, prime)
    ask.require_engine()
    ask.announce("symmetries")
    dims = dimensions_of(point, ask.seed)
    argument = all_orbits(point)
    outcome = (
        _compute(ask, point, p, ask.seed, force=force) if model.polynomial else Outcome(method="jacobian")
    )
    ask.announce("real points")
    free = model.polynomial and not getattr(model, "constraints", ())
    found = real.real_points(point, ask.seed) if free else ()
    ask.evidence += [*dims.evidence, *outcome.evidence, *_from_argument(point, argument, outcome)]
    verdict = judged(point, outcome, argument, dims)
    ask.evidence += _from_real_points(verdict.orbits, found)
    counter = partners.counterexample(point)
    return ask.answer(
        Fiber,
        model=asked.spec,
        options={"prime": prime, "at": point.kind, "weights": _digest(point)},
        at=point.document(p if model.polynomial else None),
        fiber_dim=_first(argument.fiber_dim if argument else None, outcome.fiber_dim),
        degree=outcome.degree,
        components=outcome.components,
        component_count=outcome.component_count,
        dim_at_point=dims.orbit_dim if dims.tangent_upper == dims.orbit_dim else outcome.dim_at_point,
        known_symmetry_dim=dims.orbit_dim,
        orbits=verdict.orbits,
        generic_fiber_dim=dims.generic_fiber_dim,
        image_dim=dims.image_dim,
        verdict=verdict.word,
        explanation=verdict.reason,
        probability=verdict.probability,
        method=outcome.method,
        inputs=outcome.inputs,
        real_points=found,
        theorem=theorem.compare(point, outcome.components, outcome.orbits, counter),
        counterexample=counter,
        notes=tuple(([note] if note else []) + outcome.notes),
        certainty=verdict.certainty,
        limit=outcome.limit,
    )


def _by_coordinates(model: Model) -> Model:
    """A user's own polynomial network by its coordinates, which have the same fibers; as it is where these are out of reach."""
    if isinstance(model, OwnNetwork) and model.polynomial:
        with suppress(OutOfReachError):
            return model.as_map
    return model


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _from_argument(point: Point, argument: Orbits | None, outcome: Outcome) -> list[Evidence]:
    """What the argument says over QQ and, where it holds over every field, over the field that Macaulay2 computed in."""
    fields: list[tuple[str, int | None, Orbits]] = []
    if argument is not None:
        fields.append(("QQ" if point.model.polynomial else "RR", None, argument))
    for p in sorted({e.prime for e in outcome.evidence if e.prime is not None and e.witness == "macaulay2"}):
        reduced = all_orbits_mod(point, p)
        if reduced is not None:
            fields.append((field_of(p), p, reduced))
    return [
        Evidence(
            quantity=quantity,
            witness="argument",
            method=found.reason,
            value=value,
            certainty=Certainty.PROVED,
            prime=p,
            scope="at-point",
            field=field,
            ancestry="formula",
        )
        for field, p, found in fields
        for quantity, value in (("orbits", found.count), ("fiber_dim", found.fiber_dim))
        if value is not None
    ]


def _from_real_points(orbits: int | None, found: tuple[RealPoint, ...]) -> list[Evidence]:
    """Real weights of other orbits that were found cannot be more than there are orbits."""
    others = sum(1 for item in found if item.same_orbit is False)
    if orbits is None or not others:
        return []
    return [
        Evidence(
            quantity="orbits",
            witness="numpy",
            method="real weights found and evaluated again",
            value=1 + others,
            relation=">=",
            certainty=Certainty.NUMERIC,
            scope="at-point",
            field="QQ",
        )
    ]


def _digest(point: Point) -> Any:
    return None if point.generic else point.document(None)["weights"]


# -- which way to compute --------------------------------------------------------------------------------------------------------


def _wants_factors(model: Model) -> bool:
    """Virtual weights for which one Groebner basis is slow and factoring is not."""
    if not (
        isinstance(model, DeepLightning) and model.parametrization == "virtual" and structured.applies(model)
    ):
        return False
    return (model.d[0] >= 3 or model.layers >= 3) and structured.monomial_count(
        model
    ) <= structured.MOST_MONOMIALS


def in_reach(model: Model, p: int, seed: int) -> bool:
    """Whether one Groebner basis of all equations is worth trying."""
    terms = estimated_terms(model)
    most = _MULTI_HEAD_WEIGHTS if isinstance(model, DeepLightning) and model.multi_head else MOST_WEIGHTS
    if model.parameter_count > most or terms > MOST_TERMS_EACH:
        return False
    span, _ = equation_span(model, p, seed)
    return terms * span <= MOST_TERMS


def _compute(ask: Asking, point: Point, p: int, seed: int, *, force: bool) -> Outcome:
    model = point.model
    step = lifting.coarser(point)
    if step is not None and (
        isinstance(model, DeepLightning) or model.parameter_count > _PLAIN_LIGHTNING_WEIGHTS
    ):
        below, added, lemmas = step
        nonzero = any(x for x in below.weights[list(below.weights)[-1]].ravel())
        if nonzero:
            found = _compute(ask, below, p, seed, force=force)
            return lifting.lifted(found, added, lemmas, orbits_only=not isinstance(model, Lightning))
    notes: list[str] = []
    if _wants_factors(model):
        outcome = factored.factored(ask, point, p, seed)
        if outcome.components is not None or outcome.limit is not None:
            return _unconstrained(point, outcome)
        notes = outcome.notes
    try:
        family_parameters(model)
    except NotPolynomialError as error:
        return Outcome(method="jacobian", notes=[*notes, str(error)])
    if not force and not in_reach(model, p, seed):
        reason = f"a Groebner basis in {model.parameter_count} weights is out of reach here: dimensions only (--force tries it)"
        return Outcome(method="jacobian", notes=[*notes, reason])
    deep_perceptron = isinstance(model, MLP) and model.layers > 2
    cut = deep_perceptron or model.parameter_count > _PLAIN_WEIGHTS_BEFORE_SLICE
    cut = cut and not isinstance(model, Lightning)
    cut = cut and slice_of(model, seed) is not None and _nonzero(point)
    outcome = computing.plain(ask, point, p, seed, cut=cut)
    outcome.notes = notes + outcome.notes
    return outcome


def _nonzero(point: Point) -> bool:
    """Whether every block that a slice cuts is non-zero at the point."""
    return all(any(x for x in array.ravel()) for array in point.weights.values())


def _unconstrained(point: Point, outcome: Outcome) -> Outcome:
    """Virtual weights through narrow layers satisfy equations that were not imposed: only a single orbit is surely the fiber."""
    model = point.model
    if (
        isinstance(model, DeepLightning)
        and model.constrained
        and not (outcome.orbits == 1 and all(c.orbit for c in outcome.components or ()))
    ):
        outcome.notes.append(
            "the virtual weights satisfy equations that were not imposed: the fiber may be smaller"
        )
        outcome.forget()
        outcome.evidence = [
            e for e in outcome.evidence if e.quantity not in ("fiber_dim", "orbits", "dim_at_point")
        ]
    return outcome
