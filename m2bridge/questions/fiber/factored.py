"""Analyses stage, fiber: the fiber of a deep network in virtual weights, by unique factorization."""

from __future__ import annotations

import time

import numpy as np

from m2bridge.models import DeepLightning, Mod
from m2bridge.questions.fiber import structured
from m2bridge.questions.fiber.computing import (
    Outcome,
    dim_evidence,
    over_the_closure,
    pair,
    point_evidence,
    said,
)
from m2bridge.questions.fiber.differential import kernel_dim, symmetry_rank_mod
from m2bridge.questions.fiber.points import Point
from m2bridge.questions.fiber.primes import other_primes
from m2bridge.questions.fiber.question import Question
from m2bridge.questions.fiber.result import FiberComponent
from m2bridge.questions.kernel import Asking

_MORE_PRIMES, _CANDIDATES = 5, 60
"""A factor that is irreducible over F_p but not over its closure splits over every second prime or so."""


def factored(bench: Asking, point: Point, p: int, seed: int) -> Outcome:
    """The fiber in virtual weights by unique factorization; no components when several primes do not decide."""
    model = point.model
    assert isinstance(model, DeepLightning)
    outcome = Outcome(method="structured")
    for prime in structured.promising([p, *other_primes(point, p, _CANDIDATES)], point)[: 1 + _MORE_PRIMES]:
        sent = structured.parameters(point, prime, seed)
        start = time.perf_counter()
        values, outcome.limit = bench.ask(structured.TEMPLATE, sent)
        seconds = time.perf_counter() - start
        found = structured.read(values, prime)
        if found.obstacle is None or outcome.limit is not None:
            break
        outcome.notes.append(f"unique factorization does not decide over F_{prime}: {found.obstacle}")
        if found.final:
            break
    if found.obstacle is not None:
        return outcome
    if prime != p:
        outcome.notes.append(f"computed over F_{prime}")
    outcome.inputs = structured.inputs_used(sent)
    rng = np.random.default_rng([seed, 103])
    components = [_solution(outcome, point, prime, s, rng, seed, i) for i, s in enumerate(found.solutions)]
    own = [component for component in components if component.orbit]
    if not own and all(s.point is not None and s.count == 1 for s in found.solutions):
        outcome.evidence += pair(
            "the point is in its fiber", prime, macaulay2=False, modular=True, method="the point itself"
        )
    outcome.dim_at_point = own[0].dim if own else None
    outcome.evidence += dim_evidence(point, prime, seed, outcome.dim_at_point)
    outcome.components = tuple(c for component in components for c in over_the_closure(component))
    outcome.fiber_dim = outcome.least_dim = max((c.dim for c in components), default=None)
    how = "unique factorization, then a Groebner basis of the skew parts"
    outcome.evidence.append(said("fiber_dim", how, outcome.fiber_dim, prime, seconds))
    # Each solution is one orbit: f != 0 makes every M_i and L non-zero on the whole fiber, so that the torus acts with finite
    # stabilizers, and each q_i is normalized exactly. Different ways give q_i that are not proportional.
    if components and all(s.dim == 0 for s in found.solutions):
        outcome.orbits_full = True
        outcome.orbits = outcome.component_count = sum(s.count for s in found.solutions)
        outcome.evidence.append(said("orbits", how, outcome.orbits, prime))
    return outcome


def _solution(
    outcome: Outcome,
    point: Point,
    p: int,
    solution: structured.Solution,
    rng: np.random.Generator,
    seed: int,
    i: int,
) -> FiberComponent:
    model = point.model
    assert isinstance(model, DeepLightning)
    dim, tangent, orbit, orbit_dim = solution.dim + model.layers, None, None, None
    if solution.point is not None:
        weights = {
            name: Mod(w, p) for name, w in model.unflatten(np.array(solution.point, dtype=np.int64)).items()
        }
        question = Question(point=point, prime=p, seed=seed, first_inputs=1)
        outcome.evidence += point_evidence(question, weights, i)
        tangent = kernel_dim(model, weights, p, rng)
        orbit_dim = symmetry_rank_mod(model, weights, p)
        orbit = (
            solution.dim == 0
            and solution.count == 1
            and structured.same_orbit(model, weights, point.mod(p), p)
        )
    reduced = True if tangent == dim else None
    return FiberComponent(
        dim=dim,
        degree=None,
        reduced=reduced,
        multiplicity=1 if reduced else None,
        absolute=solution.dim == 0 and solution.count == 1,
        conjugates=solution.count if solution.dim == 0 else None,
        orbit=orbit,
        orbit_dim=orbit_dim,
        tangent_dim=tangent,
        point=solution.point,
        equations=None,
    )
