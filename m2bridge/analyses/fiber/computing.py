"""Analyses stage, fiber: a fiber by one Groebner basis, of the whole or of a slice.

Every way to compute a fiber (also :mod:`factored` and :mod:`lifting` beside this one) takes a point and answers with an
:class:`Outcome`: components with what Macaulay2 says of them, evidence, and notes.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from m2bridge.analyses.fiber.differential import draw_inputs, kernel_dim, outputs_at, symmetry_dim
from m2bridge.analyses.fiber.points import Point, bound_weights
from m2bridge.analyses.fiber.primes import second_prime
from m2bridge.analyses.fiber.question import TEMPLATE, Question, equation_span
from m2bridge.analyses.fiber.result import FiberComponent, Method
from m2bridge.analyses.workbench import Workbench
from m2bridge.errors import LimitError
from m2bridge.models import Lightning, Mod
from m2bridge.protocol import Values
from m2bridge.results import Certainty, Evidence

_RATIONAL_WEIGHTS = 18
"""One layer with at most this many weights is computed over QQ too."""


@dataclass(kw_only=True)
class Outcome:
    """What one way of computing found. `orbits` counts orbits over the closure when the components are finitely many of them."""

    method: Method
    fiber_dim: int | None = None
    degree: int | None = None
    components: tuple[FiberComponent, ...] | None = None
    orbits: int | None = None
    inputs: int | None = None
    evidence: list[Evidence] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    limit: LimitError | None = None
    certainty: Certainty = Certainty.PROBABLE


def plain(
    bench: Workbench, point: Point, p: int, seed: int, *, cut: bool = False, again: bool = True
) -> Outcome:
    """One Groebner basis of all equations, or of those on a slice of the scalings; `again` over a second field."""
    bench.announce("how many inputs")
    span, first = equation_span(point.model, p, seed)
    question = Question.ask(point, p, seed, first, cut=cut)
    asked = time.perf_counter()
    values, limit = _ask(bench, question)
    seconds = time.perf_counter() - asked
    outcome = Outcome(method="sliced" if cut else "plain", limit=limit)
    torus = question.sliced.dim if question.sliced else 0
    _network_evidence(outcome, values, p)
    if "fiber_dim" not in values:
        return outcome
    outcome.inputs = values.integer("inputs_used")
    if not values["stable"]:
        outcome.notes.append(
            f"fresh inputs still changed the ideal after {outcome.inputs}: the fiber may be smaller"
        )
    if not all(values["contains_known"]):
        outcome.evidence += pair(
            "the point is in its fiber", p, macaulay2=False, modular=True, method="normal forms at the point"
        )
    outcome.fiber_dim = values.integer("fiber_dim") + torus
    outcome.degree = None if torus else values.integer("degree")
    how = "Groebner basis of the fiber's equations" + (" on a slice, plus the scalings" if torus else "")
    outcome.evidence.append(said("fiber_dim", how, outcome.fiber_dim, p, seconds))
    if not torus:
        outcome.evidence.append(said("degree", how, outcome.degree, p, seconds))
    rank = values.integer("equation_rank")
    outcome.evidence += [
        said("independent equations", "the script's network on symbolic weights", rank, p),
        Evidence(
            quantity="independent equations",
            witness="modular",
            method="rank of differences of random networks",
            value=span,
            relation=">=" if bound_weights(point.model) else "=",
            prime=p,
        ),
    ]
    outcome.components = _components(outcome, values, question, torus, symmetry_dim(point))
    if again and limit is None and not cut:
        _again(bench, outcome, question, values)
    return outcome


def _ask(bench: Workbench, question: Question) -> tuple[Values, LimitError | None]:
    """The question to Macaulay2; its template names no model."""
    return bench.ask_within_limits(TEMPLATE, question.parameters())


def said(quantity: str, method: str, value: Any, p: int, seconds: float = 0.0) -> Evidence:
    certainty = Certainty.PROBABLE if p else Certainty.PROVED
    return Evidence(
        quantity=quantity,
        witness="macaulay2",
        method=method,
        value=value,
        prime=p or None,
        seconds=seconds,
        certainty=certainty,
    )


def pair(quantity: str, p: int, *, macaulay2: Any, modular: Any, method: str) -> list[Evidence]:
    return [
        Evidence(
            quantity=quantity,
            witness="macaulay2",
            method="the script's network",
            value=macaulay2,
            prime=p or None,
        ),
        Evidence(quantity=quantity, witness="modular", method=method, value=modular, prime=p or None),
    ]


def _network_evidence(outcome: Outcome, values: Values, p: int) -> None:
    """Macaulay2's network at the known weights gives the outputs that the forward pass gave."""
    if "at_point" in values:
        outcome.evidence += pair(
            "same outputs at the point",
            p,
            macaulay2=values["at_point"],
            modular=True,
            method="the forward pass at the same inputs",
        )


def _components(
    outcome: Outcome, values: Values, question: Question, torus: int, orbit_dim: int
) -> tuple[FiberComponent, ...] | None:
    """Components with the second witness at a point of each: same outputs there, and the kernel of the differential."""
    if "component_dims" not in values:
        return None
    model, p = question.point.model, question.prime
    dims, degrees = values.integers("component_dims"), values.integers("component_degrees")
    contains = values["component_contains"]
    count = len(dims)
    reduced = values.get("component_reduced") or [None] * count
    multiplicities = values.get("multiplicities") or [None] * count
    equations = values.get("component_equations") or [None] * count
    points = values.get("component_points") or [None] * count
    rng = np.random.default_rng([question.seed, 101])
    found = []
    for i in range(count):
        vector = None if points[i] is None else tuple(int(x) % p for x in points[i])
        tangent = None
        if vector is not None:
            weights = {
                name: Mod(w, p) for name, w in model.unflatten(np.array(vector, dtype=np.int64)).items()
            }
            outcome.evidence += point_evidence(question, weights, i)
            tangent = kernel_dim(model, weights, p, rng)
            if reduced[i] is not None:
                outcome.evidence += pair(
                    f"component {i + 1} is reduced",
                    p,
                    macaulay2=bool(reduced[i]),
                    modular=tangent == dims[i] + torus,
                    method="kernel of the differential at a point of it has its dimension",
                )
        found.append(
            FiberComponent(
                dim=dims[i] + torus,
                degree=None if torus else degrees[i],
                reduced=reduced[i],
                multiplicity=multiplicities[i],
                orbit=any(contains[i]) and dims[i] + torus == orbit_dim,
                tangent_dim=tangent,
                point=vector,
                equations=None if equations[i] is None else tuple(equations[i]),
            )
        )
    if all(d == 0 for d in dims):
        outcome.orbits = sum(degrees)
    return tuple(found)


def point_evidence(question: Question, weights: dict[str, Mod], i: int) -> list[Evidence]:
    model, p = question.point.model, question.prime
    fresh = Mod(draw_inputs(model, np.random.default_rng([question.seed, 102]), 12, p), p)
    same = outputs_at(model, weights, fresh) == outputs_at(model, question.point.mod(p), fresh)
    return pair(
        f"component {i + 1} computes the function",
        p,
        macaulay2=True,
        modular=bool(same),
        method="the forward pass at a point of it, 12 fresh inputs",
    )


def _again(bench: Workbench, outcome: Outcome, question: Question, values: Values) -> None:
    """The same over QQ where that is quick, else over a second prime."""
    model = question.point.model
    rational = (
        isinstance(model, Lightning)
        and model.parametrization == "attention"
        and model.parameter_count <= _RATIONAL_WEIGHTS
    )
    other = 0 if rational else second_prime(question.point, question.prime)
    if other is None:
        return
    bench.announce("the same over QQ" if rational else f"the same over F_{other}")
    twin = replace(question, prime=other)
    start = time.perf_counter()
    second, limit = _ask(bench, twin)
    seconds = time.perf_counter() - start
    if limit is not None:
        outcome.notes.append(f"the second computation ({'QQ' if rational else f'F_{other}'}) was cut off")
    if "degree" not in second:
        return
    outcome.evidence.append(
        said(
            "fiber_dim",
            "Groebner basis of the fiber's equations",
            second.integer("fiber_dim"),
            other,
            seconds,
        )
    )
    outcome.evidence.append(
        said("degree", "Groebner basis of the fiber's equations", second.integer("degree"), other, seconds)
    )
    shapes = [_shapes(v) for v in (values, second)]
    if shapes[0] != shapes[1] and _by_dimension(shapes[0]) == _by_dimension(shapes[1]):
        outcome.notes.append(
            f"components split differently over F_{question.prime} and {'QQ' if rational else f'F_{other}'}: "
            "over the algebraic closure there may be more of them"
        )
    elif None not in shapes:
        outcome.evidence.append(
            said("components", "minimal primes: dimension, degree, multiplicity", shapes[0], question.prime)
        )
        outcome.evidence.append(
            said("components", "minimal primes: dimension, degree, multiplicity", shapes[1], other, seconds)
        )
        complete = isinstance(model, Lightning) and second.integer("equation_rank") == model.coordinate_count
        if rational and complete and shapes[0] == shapes[1]:
            outcome.certainty = Certainty.PROVED


def _by_dimension(shapes: list[list[int]] | None) -> Counter[int] | None:
    """Degree of all components of each dimension, with multiplicity: it does not depend on how they split."""
    if shapes is None:
        return None
    total: Counter[int] = Counter()
    for dim, degree, multiplicity in shapes:
        total[dim] += degree * multiplicity
    return total


def _shapes(values: Values) -> list[list[int]] | None:
    """Dimension, degree and multiplicity of the components, sorted; None unless each has a point with coordinates in the field.

    A component with such a point, smooth on it, is irreducible over the closure too: its shape does not depend on the field.
    """
    if "multiplicities" not in values or "component_points" not in values:
        return None
    known = [any(row) for row in values["component_contains"]]
    if not all(k or q is not None for k, q in zip(known, values["component_points"], strict=True)):
        return None
    rows = zip(values["component_dims"], values["component_degrees"], values["multiplicities"], strict=True)
    return sorted([list(row) for row in rows])
