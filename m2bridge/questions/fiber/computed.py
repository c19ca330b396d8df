"""A fiber by one Groebner basis, of the whole or of a slice, with a second witness for everything that Macaulay2 computes.

Every way to compute a fiber takes a point and returns a :class:`ComputedFiber`. Each stage returns values and the evidence for
them; evidence is stated when the run shows that it is about the whole fiber.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.families import Mod
from m2bridge.protocol import Values
from m2bridge.questions.fiber.model_symmetries import TorusSlice, slice_of, symmetry_rank_mod
from m2bridge.questions.fiber.ranks import draw_inputs, kernel_dim, outputs_at
from m2bridge.questions.fiber.request import equation_span, script_values
from m2bridge.questions.fiber.result import FiberComponent, Method
from m2bridge.questions.fiber.solutions import count_by_msolve
from m2bridge.questions.kernel import Context
from m2bridge.questions.point import Point, other_primes

TEMPLATE = "fiber"
_HOW = "Groebner basis of the fiber's equations"
_SHARE_FOR_FIRST_BASIS = 0.5
"""Of the remaining time, for the first of two Groebner bases."""
_MOST_CONJUGATES = 64
"""More conjugate components than this stay one entry."""
_SHOWN_OUTPUTS = 8
"""Outputs that are kept in evidence."""
_MOST_RATIONAL_WEIGHTS = 18
"""One layer with at most this many weights is computed over QQ too."""


@dataclass(frozen=True, kw_only=True)
class ComputedFiber:
    """The result of one way of computing a fiber.

    Attributes
    ----------
    fiber_dim, degree, components: of the whole fiber; None if only a part of it was computed.
    dim_at_point: dimension of the largest component through the point.
    least_dim: dimension of a part of the fiber, a lower bound.
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
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    limit: str | None = None

    @property
    def one_orbit(self) -> bool:
        """Tell whether the fiber was shown to be the orbit of the point."""
        return self.orbits == 1 and all(c.orbit for c in self.components or ())

    def with_note(self, note: str) -> ComputedFiber:
        return replace(self, notes=(*self.notes, note))

    def without_values(self) -> ComputedFiber:
        """Return this with method, inputs, evidence and notes only: nothing is reported about the fiber as a whole."""
        return ComputedFiber(
            method=self.method, inputs=self.inputs, evidence=self.evidence, notes=self.notes, limit=self.limit
        )


# -- evidence --------------------------------------------------------------------------------------------------------------------


def _field(p: int) -> str:
    return f"F_{p}" if p else "QQ"


def here(p: int) -> dict[str, Any]:
    """Return the fields of evidence about the fiber at the point, over F_p or, for p = 0, over QQ."""
    return {"prime": p or None, "scope": "at-point", "field": _field(p)}


def by_macaulay2(quantity: str, value: Any, method: str, p: int, seconds: float = 0.0) -> Evidence:
    """Make evidence of what Macaulay2 computed for the fiber at the point: exact over its field."""
    certainty = Certainty.PROBABLE if p else Certainty.PROVED
    return Evidence(quantity, value, "macaulay2", method, certainty=certainty, seconds=seconds, **here(p))


def _by_both(quantity: str, p: int, *, macaulay2: Any, modular: Any, method: str) -> list[Evidence]:
    """Make evidence about one quantity from the script's network and from the forward pass."""
    return [
        by_macaulay2(quantity, macaulay2, "the script's network", p),
        Evidence(quantity, modular, "modular", method, **here(p)),
    ]


# -- one Groebner basis ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Request:
    """A point, the field, the seed, the number of inputs to begin with, and the slice, if any."""

    point: Point
    p: int
    seed: int
    first_inputs: int
    sliced: TorusSlice | None = None

    @property
    def torus(self) -> int:
        """Return the dimension of the scalings that the slice cuts away."""
        return self.sliced.dim if self.sliced else 0


def plain(
    context: Context, point: Point, p: int, seed: int, *, on_slice: bool = False, avoided: int | None = None
) -> ComputedFiber:
    """Compute one Groebner basis of all equations, and again over a second field; or of those on a slice of the scalings.

    Where the two fibers differ, one of the primes has bad reduction: two others are tried, and this one is `avoided`.
    """
    context.report_progress("how many inputs")
    span, first = equation_span(point.model, p, seed)
    request = _Request(point, p, seed, first, slice_of(point.model, seed) if on_slice else None)
    parameters = script_values(point, p, seed, first, request.sliced)
    values, limit = context.run_template(TEMPLATE, parameters, point.model, share=_SHARE_FOR_FIRST_BASIS)
    outputs = _outputs(values, parameters["outputs"], p)
    if values.get("fiber_dim", 0) == 0:
        outputs += count_by_msolve(context, point, p, request.sliced, here(p))
    if "fiber_dim" not in values:
        return ComputedFiber(method="sliced" if on_slice else "plain", limit=limit, evidence=tuple(outputs))
    fiber = _computed(request, values, parameters["orbitDim"], span, values.run.seconds)
    fiber = replace(fiber, limit=limit, evidence=(*outputs, *fiber.evidence))
    if limit is not None or on_slice:
        return fiber
    fiber, same = _again(context, fiber, request, values, avoided)
    if same or avoided is not None:
        return fiber
    other = next(iter(other_primes(point, p, 1)), None)
    second = None if other is None else plain(context, point, other, seed, avoided=p)
    if second is None or second.fiber_dim is None:
        return fiber
    return second.with_note(f"computed over F_{other}: the fiber has bad reduction modulo {p}")


def _outputs(values: Values, outputs: Any, p: int) -> list[Evidence]:
    """Compare the outputs at the point by both definitions of the network."""
    if "outputs_at_point" not in values:
        return []
    theirs = values["outputs_at_point"]
    both = theirs, np.asarray(outputs, dtype=object)[: len(theirs)].tolist()
    theirs, ours = ([[int(x) % p for x in row] for row in rows] for rows in both)
    method = "the forward pass at the same inputs"
    return _by_both("outputs at the point", p, macaulay2=theirs, modular=ours, method=method)


def _computed(request: _Request, values: Values, orbit_dim: int, span: int, seconds: float) -> ComputedFiber:
    """Read the fiber from a run that computed its dimension, with evidence from second witnesses."""
    p, sliced = request.p, request.sliced is not None
    fiber_dim = values.integer("fiber_dim") + request.torus
    method = _HOW + (" on a slice, plus the scalings" if sliced else "")
    components, of_components = _components(values, request, orbit_dim)
    dim_at_point, at_point = None, []
    if components is not None:
        pairs = zip(values["component_dims"], values["component_contains"], strict=True)
        dim_at_point = max((dim + request.torus for dim, contains in pairs if contains[0]), default=None)
        at_point = _dims_at_point(dim_at_point, request)
    fiber = ComputedFiber(
        method="sliced" if sliced else "plain", inputs=values.integer("inputs_used"), fiber_dim=fiber_dim,
        least_dim=fiber_dim, degree=None if sliced else values.integer("degree"), components=components,
        dim_at_point=dim_at_point,
    )  # fmt: skip
    fiber = _counted(fiber, values, request)
    evidence = [] if all(values["contains_known"]) else _point_is_missing(p)
    if fiber.fiber_dim is not None:
        evidence.append(by_macaulay2("fiber_dim", fiber.fiber_dim, method, p, seconds))
    if fiber.degree is not None:
        evidence.append(by_macaulay2("degree", fiber.degree, method, p, seconds))
    if sliced and values.integer("fiber_dim") == 0:
        evidence.append(by_macaulay2("degree of the slice", values.integer("degree"), _HOW, p, seconds))
    evidence += [*_equations(request, values.integer("equation_rank"), span), *of_components, *at_point]
    if fiber.orbits is not None:
        how = "components over the closure, every orbit having the fiber's dimension"
        evidence.append(by_macaulay2("orbits", fiber.orbits, how, p))
    return replace(fiber, evidence=tuple(evidence))


def _point_is_missing(p: int) -> list[Evidence]:
    method = "normal forms at the point"
    return _by_both("the point is in its fiber", p, macaulay2=False, modular=True, method=method)


def _dims_at_point(dim_at_point: int | None, request: _Request) -> list[Evidence]:
    """Compare the fiber's dimension at the point over F_p: components through it, kernel of the differential, orbit inside."""
    point, p = request.point, request.p
    quantity, weights = "dim_at_point", point.mod(p)
    kernel = kernel_dim(point.model, weights, p, np.random.default_rng([request.seed, 107]))
    orbit = symmetry_rank_mod(point.model, weights, p)
    of_kernel, of_orbit = "kernel of the differential at the point", "rank of the symmetries' action"
    proved = Certainty.PROVED
    return [
        by_macaulay2(quantity, dim_at_point, "components that contain the point", p),
        Evidence(quantity, kernel, "modular", of_kernel, relation="<=", **here(p)),
        Evidence(quantity, orbit, "symmetry", of_orbit, relation=">=", certainty=proved, **here(p)),
    ]


def _equations(request: _Request, rank: int, span: int) -> list[Evidence]:
    p, quantity = request.p, "independent equations"
    bounded = bool(request.point.model.constraints.rank_bounds)
    method = "rank of differences of random networks"
    return [
        by_macaulay2(quantity, rank, "the script's network on symbolic weights", p),
        Evidence(quantity, span, "modular", method, relation=">=" if bounded else "=", **here(p)),
    ]


# -- components ------------------------------------------------------------------------------------------------------------------


def _components(
    values: Values, request: _Request, orbit_dim: int
) -> tuple[tuple[FiberComponent, ...] | None, list[Evidence]]:
    """Read the components, with evidence at a point of each: the outputs there, and the kernel of the differential."""
    if "component_dims" not in values:
        return None, []
    dims = values.integers("component_dims")
    tags = ("reduced", "points", "conjugates", "equations")
    columns = [
        values.get(tag) or [None] * len(dims) for tag in (*(f"component_{t}" for t in tags), "multiplicities")
    ]
    table = zip(
        dims, values.integers("component_degrees"), values["component_contains"], *columns, strict=True
    )
    listed: list[FiberComponent] = []
    evidence: list[Evidence] = []
    for i, row in enumerate(table):
        one = _component(row, request, orbit_dim)
        if one.point is not None:
            one, at_point = _examined(one, i, request)
            evidence += at_point
        listed += _over_the_closure(one)
    return tuple(listed), evidence


def _component(row: tuple[Any, ...], request: _Request, orbit_dim: int) -> FiberComponent:
    dim, degree, contains, reduced, point, conjugates, equations, multiplicity = row
    torus = request.torus
    # A component that contains an orbit of its dimension is irreducible over the closure, as the orbit is.
    orbit = any(contains) and dim + torus == orbit_dim
    conjugates = 1 if orbit else conjugates
    return FiberComponent(
        dim=dim + torus, degree=None if torus else degree, reduced=reduced, multiplicity=multiplicity,
        absolute=conjugates == 1, conjugates=conjugates, orbit=orbit, orbit_dim=None, tangent_dim=None,
        point=None if point is None else tuple(int(x) % request.p for x in point),
        equations=None if equations is None else tuple(equations),
    )  # fmt: skip


def _examined(one: FiberComponent, i: int, request: _Request) -> tuple[FiberComponent, list[Evidence]]:
    """Add the tangent space and the orbit at the point that Macaulay2 found on a component.

    Outputs there are compared with those of the point whose fiber it is.
    """
    point, p, seed = request.point, request.p, request.seed
    model = point.model
    weights = {name: Mod(w, p) for name, w in model.unflatten(np.array(one.point, dtype=np.int64)).items()}
    fresh = Mod(draw_inputs(model, np.random.default_rng([seed, 102]), 12, p), p)
    ours, asked = (outputs_at(model, w, fresh).values.ravel() for w in (weights, point.mod(p)))
    start = int(np.argmax(ours != asked))  # the first difference, or 0
    theirs, mine = (values[start : start + _SHOWN_OUTPUTS].tolist() for values in (asked, ours))
    quantity = f"outputs at a point of component {i + 1}"
    method = "the forward pass at a point of it, 12 fresh inputs"
    evidence = _by_both(quantity, p, macaulay2=theirs, modular=mine, method=method)
    tangent = kernel_dim(model, weights, p, np.random.default_rng([seed, 101, i]))
    if one.reduced is not None:
        quantity = f"component {i + 1} is reduced"
        method = "kernel of the differential at a point of it has its dimension"
        same = tangent == one.dim
        evidence += _by_both(quantity, p, macaulay2=bool(one.reduced), modular=same, method=method)
    return replace(one, tangent_dim=tangent, orbit_dim=symmetry_rank_mod(model, weights, p)), evidence


def _over_the_closure(one: FiberComponent) -> list[FiberComponent]:
    """Return the components over the algebraic closure of a prime over the field; itself if too many or not counted."""
    n = one.conjugates
    if n is None or n == 1 or n > _MOST_CONJUGATES:
        return [one]
    degree = None if one.degree is None else one.degree // n
    return [replace(one, degree=degree, absolute=True, conjugates=1, point=None)] * n


def _counted(fiber: ComputedFiber, values: Values, request: _Request) -> ComputedFiber:
    """Count components and orbits over the algebraic closure, as far as the run shows all of them.

    When every orbit has the fiber's dimension, each is open in the fiber; so are the others together, and each is closed too:
    the orbits are the connected components, and, orbits of a connected group being irreducible, the components.
    """
    counts = [c.conjugates for c in fiber.components or ()]
    component_count = None
    if fiber.components is not None and None not in counts:
        component_count = sum(n for n in counts if n is not None)
    orbits_full = values.get("orbits_full")
    if not values["stable"]:
        fiber = fiber.with_note(
            f"fresh inputs still changed the ideal after {fiber.inputs}: the fiber may be smaller"
        )
        component_count = orbits_full = None
    fiber = replace(fiber, component_count=component_count, orbits_full=orbits_full)
    if orbits_full:
        fiber = replace(fiber, orbits=component_count)
    elif request.sliced is not None:
        fiber = replace(fiber, fiber_dim=None, components=None, component_count=None).with_note(
            "points of the fiber at which a scaled block of weights vanishes are not on the slice, "
            "and it was not shown that there are none: components may be missing"
        )
    if fiber.components and fiber.component_count is None:
        fiber = fiber.with_note(
            f"components are primes over F_{request.p}: over the algebraic closure there may be more of them"
        )
    return fiber


# -- the same over a second field ------------------------------------------------------------------------------------------------


def _again(
    context: Context, fiber: ComputedFiber, request: _Request, values: Values, avoided: int | None
) -> tuple[ComputedFiber, bool]:
    """Compute the same over QQ where that is quick, else over a second prime; False where the two fibers are different."""
    point, model, p = request.point, request.point.model, request.p
    by_matrices = model.knowledge.layer is not None and "A" in model.parameters
    rational = by_matrices and model.parameter_count <= _MOST_RATIONAL_WEIGHTS
    others = [0] if rational else [q for q in other_primes(point, p, 2) if q != avoided]
    if not others:
        return fiber, True
    other = others[0]
    context.report_progress(f"the same over {_field(other)}")
    parameters = script_values(point, other, request.seed, request.first_inputs, ask_orbits=False)
    second, limit = context.run_template(TEMPLATE, parameters, model)
    if limit is not None:
        fiber = fiber.with_note(f"the second computation ({_field(other)}) was stopped by a limit")
    if "degree" not in second:
        return fiber, True
    complete = second.integer("equation_rank") == model.coordinate_count
    evidence = _second_evidence(values, second, (p, other), complete=complete, seconds=second.run.seconds)
    fiber = replace(fiber, evidence=(*fiber.evidence, *evidence))
    shapes = [_shapes(v) for v in (values, second)]
    same_shape = None in shapes or shapes[0] == shapes[1]
    if same_shape and all(values[tag] == second[tag] for tag in ("fiber_dim", "degree")):
        return fiber, True
    note = f"the fibers over {_field(p)} and {_field(other)} differ: neither is reported as the fiber over QQ"
    return fiber.without_values().with_note(note), False


def _second_evidence(
    first: Values, second: Values, primes: tuple[int, int], *, complete: bool, seconds: float
) -> list[Evidence]:
    """State dimension and degree over the second field, and the components over both.

    Components over QQ are certain only if the equations are `complete`: more inputs might give more equations.
    """
    p, other = primes
    evidence = [
        by_macaulay2(quantity, second.integer(quantity), _HOW, other, seconds)
        for quantity in ("fiber_dim", "degree")
    ]
    shapes = [_shapes(v) for v in (first, second)]
    if None in shapes:
        return evidence
    how = "components over the closure: dimension, degree, multiplicity"
    certainty = Certainty.PROVED if complete and not other else Certainty.PROBABLE
    return [
        *evidence,
        by_macaulay2("components", shapes[0], how, p),
        Evidence(
            "components", shapes[1], "macaulay2", how, certainty=certainty, seconds=seconds, **here(other)
        ),
    ]


def _shapes(values: Values) -> list[list[int]] | None:
    """Return dimension, degree and multiplicity of the components over the closure, sorted; None if not all are known."""
    counts = values.get("component_conjugates")
    if "multiplicities" not in values or counts is None or None in counts:
        return None
    columns = (values[tag] for tag in ("component_dims", "component_degrees", "multiplicities"))
    rows = zip(*columns, counts, strict=True)
    return sorted([dim, degree // n, multiplicity] for dim, degree, multiplicity, n in rows for _ in range(n))
