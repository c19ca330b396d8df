"""A fiber by one Groebner basis, of the whole or of a slice, with the second witness of everything that Macaulay2 finds.

Every way to compute a fiber takes a point and answers with a :class:`ComputedFiber`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.families import Lightning, Mod
from m2bridge.protocol import Values
from m2bridge.questions.fiber.arguments import Coarser
from m2bridge.questions.fiber.known import TorusSlice, slice_of, symmetry_rank_mod
from m2bridge.questions.fiber.ranks import draw_inputs, kernel_dim, outputs_at
from m2bridge.questions.fiber.request import equation_span, script_values
from m2bridge.questions.fiber.result import FiberComponent, Method
from m2bridge.questions.kernel import Context
from m2bridge.questions.point import Point, other_primes, rank_bounds

TEMPLATE = "fiber"
_HOW = "Groebner basis of the fiber's equations"
_SHARE = 0.5
"""Of the time left, for the first of two Groebner bases."""
_MOST_CONJUGATES = 64
"""More conjugate components than this stay one entry."""
_SHOWN = 8
"""Outputs that are kept in evidence."""
_RATIONAL_WEIGHTS = 18
"""One layer with at most this many weights is computed over QQ too."""


@dataclass(kw_only=True)
class ComputedFiber:
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

    @property
    def one_orbit(self) -> bool:
        """Whether the fiber was shown to be the orbit of the point."""
        return self.orbits == 1 and all(c.orbit for c in self.components or ())

    def say(self, quantity: str, method: str, value: Any, p: int, seconds: float = 0.0) -> None:
        """What Macaulay2 says about the fiber at the point: exact over its field."""
        certainty = Certainty.PROBABLE if p else Certainty.PROVED
        self.evidence.append(
            Evidence(quantity, value, "macaulay2", method, certainty=certainty, seconds=seconds, **here(p))
        )

    def compare(self, quantity: str, p: int, *, macaulay2: Any, modular: Any, method: str) -> None:
        """One quantity from the script's network and from the forward pass."""
        self.say(quantity, "the script's network", macaulay2, p)
        self.evidence.append(Evidence(quantity, modular, "modular", method, **here(p)))

    def forget(self, *quantities: str) -> None:
        """Leave out all that was said about the fiber as a whole, and take back what was said about these quantities."""
        self.fiber_dim = self.dim_at_point = self.least_dim = self.degree = self.components = None
        self.component_count = self.orbits_full = self.orbits = None
        self.retract(*quantities)

    def retract(self, *quantities: str) -> None:
        """Take back what was said about these quantities."""
        self.evidence = [e for e in self.evidence if e.quantity not in quantities]


def _field(p: int) -> str:
    return f"F_{p}" if p else "QQ"


def here(p: int) -> dict[str, Any]:
    """That something is said about the fiber at the point, over F_p or, for p = 0, over QQ."""
    return {"prime": p or None, "scope": "at-point", "field": _field(p)}


def compare_dims(found: ComputedFiber, point: Point, p: int, seed: int) -> None:
    """The fiber's dimension at the point over F_p: components through it, kernel of the differential, orbit inside."""
    quantity, weights = "dim_at_point", point.mod(p)
    kernel = kernel_dim(point.model, weights, p, np.random.default_rng([seed, 107]))
    orbit = symmetry_rank_mod(point.model, weights, p)
    found.say(quantity, "components that contain the point", found.dim_at_point, p)
    how = "kernel of the differential at the point"
    found.evidence += [
        Evidence(quantity, kernel, "modular", how, relation="<=", **here(p)),
        Evidence(
            quantity,
            orbit,
            "symmetry",
            "rank of the symmetries' action",
            certainty=Certainty.PROVED,
            relation=">=",
            **here(p),
        ),
    ]


def examined(
    found: ComputedFiber, point: Point, p: int, seed: int, one: FiberComponent, i: int
) -> FiberComponent:
    """A component with what the forward pass and the symmetries say at the point that Macaulay2 found on it.

    Outputs there are compared with those of the asked point.
    """
    model = point.model
    weights = {name: Mod(w, p) for name, w in model.unflatten(np.array(one.point, dtype=np.int64)).items()}
    fresh = Mod(draw_inputs(model, np.random.default_rng([seed, 102]), 12, p), p)
    ours, asked = (outputs_at(model, w, fresh).values.ravel() for w in (weights, point.mod(p)))
    start = int(np.argmax(ours != asked))  # the first difference, or 0
    theirs, mine = (values[start : start + _SHOWN].tolist() for values in (asked, ours))
    how = "the forward pass at a point of it, 12 fresh inputs"
    found.compare(f"outputs at a point of component {i + 1}", p, macaulay2=theirs, modular=mine, method=how)
    tangent = kernel_dim(model, weights, p, np.random.default_rng([seed, 101, i]))
    return replace(one, tangent_dim=tangent, orbit_dim=symmetry_rank_mod(model, weights, p))


def over_the_closure(one: FiberComponent) -> list[FiberComponent]:
    """The components over the algebraic closure that a prime over the field stands for; itself when too many or not counted."""
    n = one.conjugates
    if n is None or n == 1 or n > _MOST_CONJUGATES:
        return [one]
    degree = None if one.degree is None else one.degree // n
    return [replace(one, degree=degree, absolute=True, conjugates=1, point=None)] * n


# -- one Groebner basis ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked: a point, the field, the seed, how many inputs to begin with, and the slice, if any."""

    point: Point
    p: int
    seed: int
    first_inputs: int
    sliced: TorusSlice | None = None

    @property
    def torus(self) -> int:
        """Dimension of the scalings that the slice cuts away."""
        return self.sliced.dim if self.sliced else 0


def plain(
    context: Context, point: Point, p: int, seed: int, *, cut: bool = False, avoided: int | None = None
) -> ComputedFiber:
    """One Groebner basis of all equations, and again over a second field; or of those on a slice of the scalings.

    Where the two fibers differ, one of the primes has bad reduction: two others are tried, and this one is `avoided`.
    """
    context.report_progress("how many inputs")
    span, first = equation_span(point.model, p, seed)
    asked = _Asked(point, p, seed, first, slice_of(point.model, seed) if cut else None)
    sent = script_values(point, p, seed, first, asked.sliced)
    values, limit = context.run_template(TEMPLATE, sent, point.model, share=_SHARE)
    found = ComputedFiber(method="sliced" if cut else "plain", limit=limit)
    if "outputs_at_point" in values:
        theirs = values["outputs_at_point"]
        both = theirs, np.asarray(sent["outputs"], dtype=object)[: len(theirs)].tolist()
        theirs, ours = ([[int(x) % p for x in row] for row in rows] for rows in both)
        how = "the forward pass at the same inputs"
        found.compare("outputs at the point", p, macaulay2=theirs, modular=ours, method=how)
    if "fiber_dim" not in values:
        return found
    found.inputs = values.integer("inputs_used")
    if not all(values["contains_known"]):
        how = "normal forms at the point"
        found.compare("the point is in its fiber", p, macaulay2=False, modular=True, method=how)
    found.fiber_dim = found.least_dim = values.integer("fiber_dim") + asked.torus
    how = _HOW + (" on a slice, plus the scalings" if cut else "")
    found.say("fiber_dim", how, found.fiber_dim, p, context.last_seconds)
    if not cut:
        found.degree = values.integer("degree")
        found.say("degree", how, found.degree, p, context.last_seconds)
    _compare_equations(found, asked, values.integer("equation_rank"), span)
    found.components = _components(found, values, asked, sent["orbitDim"])
    if found.components is not None:
        pairs = zip(values["component_dims"], values["component_contains"], strict=True)
        found.dim_at_point = max((dim + asked.torus for dim, known in pairs if known[0]), default=None)
        compare_dims(found, point, p, seed)
    _count(found, values, asked)
    if limit is not None or cut or _again(context, found, asked, values, avoided) or avoided is not None:
        return found
    other = next(iter(other_primes(point, p, 1)), None)
    second = None if other is None else plain(context, point, other, seed, avoided=p)
    if second is None or second.fiber_dim is None:
        return found
    second.notes.append(
        f"computed over F_{other}: F_{p} has bad reduction here, the fiber over it is another one"
    )
    return second


def _compare_equations(found: ComputedFiber, asked: _Asked, rank: int, span: int) -> None:
    p, model, quantity = asked.p, asked.point.model, "independent equations"
    found.say(quantity, "the script's network on symbolic weights", rank, p)
    bound = bool(rank_bounds(model))
    how = "rank of differences of random networks"
    found.evidence.append(
        Evidence(quantity, span, "modular", how, relation=">=" if bound else "=", **here(p))
    )


def _components(
    found: ComputedFiber, values: Values, asked: _Asked, orbit_dim: int
) -> tuple[FiberComponent, ...] | None:
    """Components with the second witness at a point of each: same outputs there, and the kernel of the differential."""
    if "component_dims" not in values:
        return None
    dims, torus = values.integers("component_dims"), asked.torus
    tags = ("reduced", "points", "conjugates", "equations")
    more = [
        values.get(tag) or [None] * len(dims) for tag in (*(f"component_{t}" for t in tags), "multiplicities")
    ]
    table = zip(dims, values.integers("component_degrees"), values["component_contains"], *more, strict=True)
    listed: list[FiberComponent] = []
    for i, (dim, degree, contains, reduced, point, conjugates, equations, multiplicity) in enumerate(table):
        orbit = any(contains) and dim + torus == orbit_dim
        if orbit:  # an irreducible set of the same dimension as the orbit in it, which is irreducible over the closure
            conjugates = 1  # noqa: PLW2901
        one = FiberComponent(
            dim=dim + torus, degree=None if torus else degree, reduced=reduced, multiplicity=multiplicity,
            absolute=conjugates == 1, conjugates=conjugates, orbit=orbit, orbit_dim=None, tangent_dim=None,
            point=None if point is None else tuple(int(x) % asked.p for x in point),
            equations=None if equations is None else tuple(equations),
        )  # fmt: skip
        if one.point is not None:
            one = examined(found, asked.point, asked.p, asked.seed, one, i)
            how, same = (
                "kernel of the differential at a point of it has its dimension",
                one.tangent_dim == one.dim,
            )
            if reduced is not None:
                quantity = f"component {i + 1} is reduced"
                found.compare(quantity, asked.p, macaulay2=bool(reduced), modular=same, method=how)
        listed += over_the_closure(one)
    return tuple(listed)


def _count(found: ComputedFiber, values: Values, asked: _Asked) -> None:
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
            found.say("orbits", how, found.orbits, asked.p)
    elif asked.sliced is not None:
        found.notes.append(
            "the slice does not see points of the fiber at which a scaled block of weights vanishes, and it was not shown that "
            "there are none: its components may not be all"
        )
        found.fiber_dim = found.components = found.component_count = None
        found.retract("fiber_dim")
    if found.components and found.component_count is None:
        found.notes.append(
            f"components are primes over F_{asked.p}: over the algebraic closure there may be more of them"
        )


def _again(
    context: Context, found: ComputedFiber, asked: _Asked, values: Values, avoided: int | None
) -> bool:
    """The same over QQ where that is quick, else over a second prime; False where the two fibers are different."""
    point, model, p = asked.point, asked.point.model, asked.p
    layer = isinstance(model, Lightning) and model.parametrization == "attention"
    rational = layer and model.parameter_count <= _RATIONAL_WEIGHTS
    others = [0] if rational else [q for q in other_primes(point, p, 2) if q != avoided]
    if not others:
        return True
    other = others[0]
    context.report_progress(f"the same over {_field(other)}")
    sent = script_values(point, other, asked.seed, asked.first_inputs, ask_orbits=False)
    second, limit = context.run_template(TEMPLATE, sent, model)
    if limit is not None:
        found.notes.append(f"the second computation ({_field(other)}) was cut off")
    if "degree" not in second:
        return True
    for quantity in ("fiber_dim", "degree"):
        found.say(quantity, _HOW, second.integer(quantity), other, context.last_seconds)
    shapes = [_shapes(v) for v in (values, second)]
    if None not in shapes:
        how = "components over the closure: dimension, degree, multiplicity"
        found.say("components", how, shapes[0], p)
        found.say("components", how, shapes[1], other, context.last_seconds)
        complete = isinstance(model, Lightning) and second.integer("equation_rank") == model.coordinate_count
        if not complete:  # more inputs might give more equations
            found.evidence[-1] = replace(found.evidence[-1], certainty=Certainty.PROBABLE)
    same_shape = None in shapes or shapes[0] == shapes[1]
    if same_shape and all(values[tag] == second[tag] for tag in ("fiber_dim", "degree")):
        return True
    found.notes.append(
        f"the fibers over {_field(p)} and {_field(other)} are different: neither is reported as that over QQ"
    )
    found.forget()
    return False


def _shapes(values: Values) -> list[list[int]] | None:
    """Dimension, degree and multiplicity of the components over the algebraic closure, sorted; None when not all are known."""
    counts = values.get("component_conjugates")
    if "multiplicities" not in values or counts is None or None in counts:
        return None
    columns = (values[tag] for tag in ("component_dims", "component_degrees", "multiplicities"))
    rows = zip(*columns, counts, strict=True)
    return sorted([dim, degree // n, multiplicity] for dim, degree, multiplicity, n in rows for _ in range(n))


# -- from coarser weights to finer ones ------------------------------------------------------------------------------------------


def lifted(found: ComputedFiber, coarse: Coarser, *, orbits_only: bool) -> ComputedFiber:
    """The fiber in finer weights from that in the coarsest ones.

    Over an orbit of scalings the hypotheses of the lemmas hold as they do at the point, so that each orbit lifts to one orbit.
    When `orbits_only`, a fiber that was not shown to be that one orbit is not lifted: the hypotheses may fail elsewhere in it.
    """
    how, added = f"lifted by {' and '.join(coarse.lemmas)}", coarse.added
    notes = [*found.notes, f"computed in coarser weights and {how}, which adds {added} dimensions"]
    result = replace(found, method="lifted", degree=None, dim_at_point=None, notes=notes)
    # these are others in finer weights; the number of orbits is the same
    result.retract("fiber_dim", "dim_at_point", "degree", "components")
    if found.components is None or (orbits_only and not found.one_orbit):
        result.forget()
        if found.components is not None:
            notes.append("the fiber in coarser weights was not shown to be one orbit: it was not lifted")
        return result
    unknown: Any = dict.fromkeys(("degree", "orbit_dim", "tangent_dim", "point", "equations"))
    result.components = tuple(replace(c, dim=c.dim + added, **unknown) for c in found.components)
    result.fiber_dim = result.least_dim = None if found.fiber_dim is None else found.fiber_dim + added
    result.dim_at_point = max((c.dim for c in result.components if c.orbit), default=None)
    p = next((e.prime for e in found.evidence if e.prime), None) or 0
    result.say("fiber_dim", f"in coarser weights, {how}", result.fiber_dim, p)
    return result
