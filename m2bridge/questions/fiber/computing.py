"""Analyses stage, fiber: a fiber by one Groebner basis, of the whole or of a slice.

Every way to compute a fiber (also :mod:`factored` and :mod:`lifting` beside this one) takes a point and answers with an
:class:`Outcome`: components with what Macaulay2 says of them, evidence, and notes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.models import Lightning, Mod
from m2bridge.protocol import Values
from m2bridge.questions.fiber.differential import draw_inputs, kernel_dim, outputs_at, symmetry_rank_mod
from m2bridge.questions.fiber.points import Point, bound_weights
from m2bridge.questions.fiber.primes import second_prime
from m2bridge.questions.fiber.question import TEMPLATE, Question, equation_span
from m2bridge.questions.fiber.result import FiberComponent, Method
from m2bridge.questions.kernel import Asking
from m2bridge.results import Certainty, Evidence, Relation

_MOST_CONJUGATES = 64
"""More conjugate components than this stay one entry."""
_SHOWN = 8
"""Outputs that are kept in evidence."""
_RATIONAL_WEIGHTS = 18
"""One layer with at most this many weights is computed over QQ too."""


@dataclass(kw_only=True)
class Outcome:
    """What one way of computing found.

    Attributes
    ----------
    fiber_dim, degree, components: of the whole fiber; None where only a part of it was seen.
    dim_at_point: dimension of the largest component through the point.
    least_dim: dimension of a part of the fiber that was seen, a lower bound.
    component_count: number of components over the algebraic closure.
    orbits_full: whether every orbit in the fiber has the fiber's dimension; then orbits are components and the other way round.
    orbits: number of all orbits over the algebraic closure.
    """

    method: Method
    fiber_dim: int | None = None
    dim_at_point: int | None = None
    least_dim: int | None = None
    degree: int | None = None
    components: tuple[FiberComponent, ...] | None = None
    component_count: int | None = None
    orbits_full: bool | None = None
    orbits: int | None = None
    inputs: int | None = None
    evidence: list[Evidence] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    limit: str | None = None

    def forget(self) -> None:
        """Leave out all that was said about the fiber as a whole."""
        self.fiber_dim = self.dim_at_point = self.least_dim = self.degree = self.components = None
        self.component_count = self.orbits_full = self.orbits = None


def plain(
    bench: Asking, point: Point, p: int, seed: int, *, cut: bool = False, again: bool = True
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
    outcome.evidence += _network_evidence(values, question)
    if "fiber_dim" not in values:
        return outcome
    outcome.inputs = values.integer("inputs_used")
    if not all(values["contains_known"]):
        outcome.evidence += pair(
            "the point is in its fiber", p, macaulay2=False, modular=True, method="normal forms at the point"
        )
    outcome.fiber_dim = outcome.least_dim = values.integer("fiber_dim") + torus
    outcome.degree = None if torus else values.integer("degree")
    how = "Groebner basis of the fiber's equations" + (" on a slice, plus the scalings" if torus else "")
    outcome.evidence.append(said("fiber_dim", how, outcome.fiber_dim, p, seconds))
    if not torus:
        outcome.evidence.append(said("degree", how, outcome.degree, p, seconds))
    outcome.evidence += _equation_evidence(question, values.integer("equation_rank"), span)
    outcome.components = _components(outcome, values, question, torus)
    if "component_dims" in values:
        through = [
            dim + torus
            for dim, known in zip(values["component_dims"], values["component_contains"], strict=True)
            if known[0]
        ]
        outcome.dim_at_point = max(through, default=None)
        outcome.evidence += dim_evidence(point, p, seed, outcome.dim_at_point)
    _count(outcome, values, question)
    if again and limit is None and not cut:
        _again(bench, outcome, question, values)
    return outcome


def _ask(bench: Asking, question: Question) -> tuple[Values, str | None]:
    """The question to Macaulay2; its template names no model."""
    return bench.ask(TEMPLATE, question.parameters())


def dim_evidence(point: Point, p: int, seed: int, dim: int | None) -> list[Evidence]:
    """The fiber's dimension at the point over F_p: components through it, kernel of the differential, orbit inside."""
    model, weights = point.model, point.mod(p)
    kernel = kernel_dim(model, weights, p, np.random.default_rng([seed, 107]))
    orbit = Evidence(
        quantity="dim_at_point",
        witness="symmetry",
        method="rank of the symmetries' action",
        value=symmetry_rank_mod(model, weights, p),
        relation=">=",
        certainty=Certainty.PROVED,
        prime=p,
        scope="at-point",
        field=field_of(p),
    )
    return [
        said("dim_at_point", "components that contain the point", dim, p),
        ours("dim_at_point", "kernel of the differential at the point", kernel, p, relation="<="),
        orbit,
    ]


def _equation_evidence(question: Question, rank: int, span: int) -> list[Evidence]:
    p = question.prime
    return [
        said("independent equations", "the script's network on symbolic weights", rank, p),
        ours(
            "independent equations",
            "rank of differences of random networks",
            span,
            p,
            relation=">=" if bound_weights(question.point.model) else "=",
        ),
    ]


def _count(outcome: Outcome, values: Values, question: Question) -> None:
    """Components and orbits over the algebraic closure, as far as the run shows all of them.

    When every orbit has the fiber's dimension, each is open in the fiber; so are the others together, and each is closed too:
    the orbits are the connected components, and, orbits of a connected group being irreducible, the components.
    """
    counts = [c.conjugates for c in outcome.components or ()]
    if outcome.components is not None and None not in counts:
        outcome.component_count = sum(n for n in counts if n is not None)
    outcome.orbits_full = values.get("orbits_full")
    if not values["stable"]:
        outcome.notes.append(
            f"fresh inputs still changed the ideal after {outcome.inputs}: the fiber may be smaller"
        )
        outcome.component_count = outcome.orbits_full = None
    if outcome.orbits_full:
        outcome.orbits = outcome.component_count
        if outcome.orbits is not None:
            how = "components over the closure, every orbit having the fiber's dimension"
            outcome.evidence.append(said("orbits", how, outcome.orbits, question.prime))
    elif question.sliced is not None:
        outcome.notes.append(
            "the slice does not see points of the fiber at which a scaled block of weights vanishes, and it was not shown that "
            "there are none: its components may not be all"
        )
        outcome.fiber_dim = outcome.components = outcome.component_count = None
        outcome.evidence = [e for e in outcome.evidence if e.quantity != "fiber_dim"]
    if outcome.components and outcome.component_count is None:
        outcome.notes.append(
            f"components are primes over F_{question.prime}: over the algebraic closure there may be more of them"
        )


def said(quantity: str, method: str, value: Any, p: int, seconds: float = 0.0) -> Evidence:
    """What Macaulay2 says about the fiber at the point: exact over its field."""
    certainty = Certainty.PROBABLE if p else Certainty.PROVED
    return Evidence(
        quantity=quantity,
        witness="macaulay2",
        method=method,
        value=value,
        prime=p or None,
        seconds=seconds,
        certainty=certainty,
        scope="at-point",
        field=field_of(p),
    )


def field_of(p: int) -> str:
    return f"F_{p}" if p else "QQ"


def ours(quantity: str, method: str, value: Any, p: int, relation: Relation = "=") -> Evidence:
    """What the forward pass says about the fiber at the point, over the same field."""
    return Evidence(
        quantity=quantity,
        witness="modular",
        method=method,
        value=value,
        prime=p or None,
        relation=relation,
        scope="at-point",
        field=field_of(p),
    )


def pair(quantity: str, p: int, *, macaulay2: Any, modular: Any, method: str) -> list[Evidence]:
    """One quantity from the script's network and from the forward pass."""
    return [said(quantity, "the script's network", macaulay2, p), ours(quantity, method, modular, p)]


def _network_evidence(values: Values, question: Question) -> list[Evidence]:
    """Outputs at the known weights: by Macaulay2's network, and by the forward pass that gave the equations."""
    if "outputs_at_point" not in values:
        return []
    p = question.prime
    theirs = [[_residue(x, p) for x in row] for row in values["outputs_at_point"]]
    sent = np.asarray(question.parameters()["outputs"], dtype=object)[: len(theirs)]
    mine = [[_residue(x, p) for x in row] for row in sent.tolist()]
    return pair(
        "outputs at the point",
        p,
        macaulay2=theirs,
        modular=mine,
        method="the forward pass at the same inputs",
    )


def _residue(value: Any, p: int) -> Any:
    return int(value) % p if p else str(Fraction(value))


def _components(
    outcome: Outcome, values: Values, question: Question, torus: int
) -> tuple[FiberComponent, ...] | None:
    """Components with the second witness at a point of each: same outputs there, and the kernel of the differential."""
    if "component_dims" not in values:
        return None
    dims = values.integers("component_dims")
    unknown = [None] * len(dims)
    table = zip(
        dims,
        values.integers("component_degrees"),
        values["component_contains"],
        values.get("component_reduced") or unknown,
        values.get("multiplicities") or unknown,
        values.get("component_points") or unknown,
        values.get("component_conjugates") or unknown,
        values.get("component_equations") or unknown,
        strict=True,
    )
    found: list[FiberComponent] = []
    for i, (dim, degree, contains, reduced, multiplicity, point, conjugates, equations) in enumerate(table):
        one = FiberComponent(
            dim=dim + torus,
            degree=None if torus else degree,
            reduced=reduced,
            multiplicity=multiplicity,
            absolute=conjugates == 1,
            conjugates=conjugates,
            orbit=any(contains) and dim + torus == question.orbit_dim,
            orbit_dim=None,
            tangent_dim=None,
            point=None if point is None else tuple(int(x) % question.prime for x in point),
            equations=None if equations is None else tuple(equations),
        )
        if one.orbit:  # an irreducible set of the same dimension as the orbit in it, which is irreducible over the closure
            one = replace(one, absolute=True, conjugates=1)
        found += over_the_closure(_examined(outcome, question, one, i))
    return tuple(found)


def _examined(outcome: Outcome, question: Question, one: FiberComponent, i: int) -> FiberComponent:
    """The component with what the forward pass and the symmetries say at the point that was found on it."""
    if one.point is None:
        return one
    model, p = question.point.model, question.prime
    vector = np.array(one.point, dtype=np.int64)
    weights = {name: Mod(w, p) for name, w in model.unflatten(vector).items()}
    outcome.evidence += point_evidence(question, weights, i)
    tangent = kernel_dim(model, weights, p, np.random.default_rng([question.seed, 101, i]))
    if one.reduced is not None:
        outcome.evidence += pair(
            f"component {i + 1} is reduced",
            p,
            macaulay2=bool(one.reduced),
            modular=tangent == one.dim,
            method="kernel of the differential at a point of it has its dimension",
        )
    return replace(one, tangent_dim=tangent, orbit_dim=symmetry_rank_mod(model, weights, p))


def over_the_closure(one: FiberComponent) -> list[FiberComponent]:
    """The components over the algebraic closure that a prime over the field stands for; itself when too many or not counted."""
    n = one.conjugates
    if n is None or n == 1 or n > _MOST_CONJUGATES:
        return [one]
    degree = None if one.degree is None else one.degree // n
    each = replace(one, degree=degree, absolute=True, conjugates=1, point=None)
    return [each] * n


def point_evidence(question: Question, weights: dict[str, Mod], i: int) -> list[Evidence]:
    """A point on a component that Macaulay2 found: outputs there by the forward pass, and those of the point asked about."""
    model, p = question.point.model, question.prime
    fresh = Mod(draw_inputs(model, np.random.default_rng([question.seed, 102]), 12, p), p)
    there = outputs_at(model, weights, fresh).values.ravel()
    asked = outputs_at(model, question.point.mod(p), fresh).values.ravel()
    start = int(np.argmax(there != asked))  # the first difference, or 0
    shown = slice(start, start + _SHOWN)
    return pair(
        f"outputs at a point of component {i + 1}",
        p,
        macaulay2=asked[shown].tolist(),
        modular=there[shown].tolist(),
        method="the forward pass at a point of it, 12 fresh inputs",
    )


def _again(bench: Asking, outcome: Outcome, question: Question, values: Values) -> None:
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
    twin = replace(question, prime=other, moves=[])
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
    first = (values.integer("fiber_dim"), values.integer("degree"), shapes[0])
    if None not in shapes:
        how = "components over the closure: dimension, degree, multiplicity"
        outcome.evidence.append(said("components", how, shapes[0], question.prime))
        again = said("components", how, shapes[1], other, seconds)
        complete = isinstance(model, Lightning) and second.integer("equation_rank") == model.coordinate_count
        if not complete:  # more inputs might give more equations
            again = replace(again, certainty=Certainty.PROBABLE)
        outcome.evidence.append(again)
    else:
        first, shapes = (*first[:2], None), [None, None]
    if first != (second.integer("fiber_dim"), second.integer("degree"), shapes[1]):
        outcome.notes.append(
            f"the fibers over {field_of(question.prime)} and {field_of(other)} are different: neither is reported as that over QQ"
        )
        outcome.forget()


def _shapes(values: Values) -> list[list[int]] | None:
    """Dimension, degree and multiplicity of the components over the algebraic closure, sorted; None when not all are known."""
    counts = values.get("component_conjugates")
    if "multiplicities" not in values or counts is None or None in counts:
        return None
    rows = zip(
        values["component_dims"], values["component_degrees"], values["multiplicities"], counts, strict=True
    )
    return sorted([dim, degree // n, multiplicity] for dim, degree, multiplicity, n in rows for _ in range(n))
