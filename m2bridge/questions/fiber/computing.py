"""A fiber by one Groebner basis, of the whole or of a slice."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.models import Lightning
from m2bridge.protocol import Values
from m2bridge.questions.fiber.computed import (
    ComputedFiber,
    compare_dims,
    compare_outputs,
    field_of,
    here,
    over_the_closure,
)
from m2bridge.questions.fiber.differential import kernel_dim, symmetry_rank_mod
from m2bridge.questions.fiber.points import Point, bound_weights, second_prime
from m2bridge.questions.fiber.request import TEMPLATE, FiberRequest, equation_span
from m2bridge.questions.fiber.result import FiberComponent
from m2bridge.questions.kernel import Asking
from m2bridge.questions.testimony import says
from m2bridge.results import Certainty

_RATIONAL_WEIGHTS = 18
"""One layer with at most this many weights is computed over QQ too."""


def plain(
    ask: Asking, point: Point, p: int, seed: int, *, cut: bool = False, again: bool = True
) -> ComputedFiber:
    """One Groebner basis of all equations, or of those on a slice of the scalings; `again` over a second field."""
    ask.announce("how many inputs")
    span, first = equation_span(point.model, p, seed)
    request = FiberRequest.of(point, p, seed, first, cut=cut)
    asked = time.perf_counter()
    values, limit = ask.ask(TEMPLATE, request.parameters(), point.model)
    seconds = time.perf_counter() - asked
    found = ComputedFiber(method="sliced" if cut else "plain", limit=limit)
    torus = request.sliced.dim if request.sliced else 0
    _compare_networks(found, values, request)
    if "fiber_dim" not in values:
        return found
    found.inputs = values.integer("inputs_used")
    if not all(values["contains_known"]):
        how = "normal forms at the point"
        found.compare("the point is in its fiber", p, macaulay2=False, modular=True, method=how)
    found.fiber_dim = found.least_dim = values.integer("fiber_dim") + torus
    how = "Groebner basis of the fiber's equations" + (" on a slice, plus the scalings" if torus else "")
    found.say("fiber_dim", how, found.fiber_dim, p, seconds)
    if not torus:
        found.degree = values.integer("degree")
        found.say("degree", how, found.degree, p, seconds)
    _compare_equations(found, request, values.integer("equation_rank"), span)
    found.components = _components(found, values, request, torus)
    if "component_dims" in values:
        pairs = zip(values["component_dims"], values["component_contains"], strict=True)
        found.dim_at_point = max((dim + torus for dim, known in pairs if known[0]), default=None)
        compare_dims(found, point, p, seed)
    _count(found, values, request)
    if again and limit is None and not cut:
        _again(ask, found, request, values)
    return found


def _compare_equations(found: ComputedFiber, request: FiberRequest, rank: int, span: int) -> None:
    p, quantity = request.prime, "independent equations"
    found.say(quantity, "the script's network on symbolic weights", rank, p)
    relation = ">=" if bound_weights(request.point.model) else "="
    how = "rank of differences of random networks"
    found.evidence.append(says(quantity, span, "modular", how, relation=relation, **here(p)))


def _count(found: ComputedFiber, values: Values, request: FiberRequest) -> None:
    """Components and orbits over the algebraic closure, as far as the run shows all of them.

    When every orbit has the fiber's dimension, each is open in the fiber; so are the others together, and each is closed too:
    the orbits are the connected components, and, orbits of a connected group being irreducible, the components.
    """
    counts = [c.conjugates for c in found.components or ()]
    if found.components is not None and None not in counts:
        found.component_count = sum(n for n in counts if n is not None)
    found.orbits_full = values.get("orbits_full")
    if not values["stable"]:
        found.notes.append(
            f"fresh inputs still changed the ideal after {found.inputs}: the fiber may be smaller"
        )
        found.component_count = found.orbits_full = None
    if found.orbits_full:
        found.orbits = found.component_count
        if found.orbits is not None:
            how = "components over the closure, every orbit having the fiber's dimension"
            found.say("orbits", how, found.orbits, request.prime)
    elif request.sliced is not None:
        found.notes.append(
            "the slice does not see points of the fiber at which a scaled block of weights vanishes, and it was not shown that "
            "there are none: its components may not be all"
        )
        found.fiber_dim = found.components = found.component_count = None
        found.retract("fiber_dim")
    if found.components and found.component_count is None:
        found.notes.append(
            f"components are primes over F_{request.prime}: over the algebraic closure there may be more of them"
        )


def _compare_networks(found: ComputedFiber, values: Values, request: FiberRequest) -> None:
    """Outputs at the known weights: by Macaulay2's network, and by the forward pass that gave the equations."""
    if "outputs_at_point" in values:
        p, theirs = request.prime, values["outputs_at_point"]
        sent = np.asarray(request.parameters()["outputs"], dtype=object)[: len(theirs)].tolist()
        macaulay2, modular = ([[_residue(x, p) for x in row] for row in rows] for rows in (theirs, sent))
        how = "the forward pass at the same inputs"
        found.compare("outputs at the point", p, macaulay2=macaulay2, modular=modular, method=how)


def _residue(value: Any, p: int) -> Any:
    return int(value) % p if p else str(Fraction(value))


def _components(
    found: ComputedFiber, values: Values, request: FiberRequest, torus: int
) -> tuple[FiberComponent, ...] | None:
    """Components with the second witness at a point of each: same outputs there, and the kernel of the differential."""
    if "component_dims" not in values:
        return None
    tags = (
        "component_reduced",
        "multiplicities",
        "component_points",
        "component_conjugates",
        "component_equations",
    )
    dims = values.integers("component_dims")
    unknown = [None] * len(dims)
    more = [values.get(tag) or unknown for tag in tags]
    table = zip(dims, values.integers("component_degrees"), values["component_contains"], *more, strict=True)
    listed: list[FiberComponent] = []
    for i, (dim, degree, contains, reduced, multiplicity, point, conjugates, equations) in enumerate(table):
        one = FiberComponent(
            dim=dim + torus, degree=None if torus else degree, reduced=reduced, multiplicity=multiplicity,
            absolute=conjugates == 1, conjugates=conjugates, orbit=any(contains) and dim + torus == request.orbit_dim,
            orbit_dim=None, tangent_dim=None,
            point=None if point is None else tuple(int(x) % request.prime for x in point),
            equations=None if equations is None else tuple(equations),
        )  # fmt: skip
        if one.orbit:  # an irreducible set of the same dimension as the orbit in it, which is irreducible over the closure
            one = replace(one, absolute=True, conjugates=1)
        listed += over_the_closure(_examined(found, request, one, i))
    return tuple(listed)


def _examined(found: ComputedFiber, request: FiberRequest, one: FiberComponent, i: int) -> FiberComponent:
    """The component with what the forward pass and the symmetries say at the point that was found on it."""
    if one.point is None:
        return one
    point, p, seed = request.point, request.prime, request.seed
    weights = compare_outputs(found, point, one.point, p, seed, i)
    tangent = kernel_dim(point.model, weights, p, np.random.default_rng([seed, 101, i]))
    if one.reduced is not None:
        how, same = "kernel of the differential at a point of it has its dimension", tangent == one.dim
        quantity = f"component {i + 1} is reduced"
        found.compare(quantity, p, macaulay2=bool(one.reduced), modular=same, method=how)
    return replace(one, tangent_dim=tangent, orbit_dim=symmetry_rank_mod(point.model, weights, p))


def _again(ask: Asking, found: ComputedFiber, request: FiberRequest, values: Values) -> None:
    """The same over QQ where that is quick, else over a second prime."""
    model, p = request.point.model, request.prime
    layer = isinstance(model, Lightning) and model.parametrization == "attention"
    rational = layer and model.parameter_count <= _RATIONAL_WEIGHTS
    other = 0 if rational else second_prime(request.point, p)
    if other is None:
        return
    ask.announce(f"the same over {field_of(other)}")
    start = time.perf_counter()
    second, limit = ask.ask(TEMPLATE, replace(request, prime=other, moves=[]).parameters(), model)
    seconds = time.perf_counter() - start
    if limit is not None:
        found.notes.append(f"the second computation ({field_of(other)}) was cut off")
    if "degree" not in second:
        return
    for quantity in ("fiber_dim", "degree"):
        how = "Groebner basis of the fiber's equations"
        found.say(quantity, how, second.integer(quantity), other, seconds)
    shapes = [_shapes(v) for v in (values, second)]
    if None not in shapes:
        how = "components over the closure: dimension, degree, multiplicity"
        found.say("components", how, shapes[0], p)
        found.say("components", how, shapes[1], other, seconds)
        complete = isinstance(model, Lightning) and second.integer("equation_rank") == model.coordinate_count
        if not complete:  # more inputs might give more equations
            found.evidence[-1] = replace(found.evidence[-1], certainty=Certainty.PROBABLE)
    same_shape = None in shapes or shapes[0] == shapes[1]
    if not same_shape or any(values[tag] != second[tag] for tag in ("fiber_dim", "degree")):
        found.notes.append(
            f"the fibers over {field_of(p)} and {field_of(other)} are different: neither is reported as that over QQ"
        )
        found.forget()


def _shapes(values: Values) -> list[list[int]] | None:
    """Dimension, degree and multiplicity of the components over the algebraic closure, sorted; None when not all are known."""
    counts = values.get("component_conjugates")
    if "multiplicities" not in values or counts is None or None in counts:
        return None
    columns = (values[tag] for tag in ("component_dims", "component_degrees", "multiplicities"))
    rows = zip(*columns, counts, strict=True)
    return sorted([dim, degree // n, multiplicity] for dim, degree, multiplicity, n in rows for _ in range(n))
