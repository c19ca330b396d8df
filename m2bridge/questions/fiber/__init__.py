"""Which weights compute the same function? The fiber through a point, its components, and a verdict on identifiability.

Dimensions of generic fibers and of the tangent space at the point come from ranks of the differential, always. For some families
an argument counts all orbits in the fiber through the point (:mod:`arguments`). Where Macaulay2 can say more, it computes the
fiber's ideal; every number it gives is compared with what the forward pass says. The verdict is what was shown of this fiber:
equal dimensions show an open orbit and nothing more, because its complement may hold infinitely many smaller orbits.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from m2bridge.certainty import Certainty
from m2bridge.errors import OutOfReachError
from m2bridge.evidence import Evidence
from m2bridge.families import Model
from m2bridge.families.polynomial_map import with_symmetries
from m2bridge.families.user_network import map_of_coordinates
from m2bridge.linear.primes import MACAULAY2_PRIME
from m2bridge.questions.fiber.arguments import Orbits, all_orbits
from m2bridge.questions.fiber.coarser import coarsest, lifted
from m2bridge.questions.fiber.computed import ComputedFiber, here, plain
from m2bridge.questions.fiber.equivalent_weights import counterexample
from m2bridge.questions.fiber.model_symmetries import found_symmetries, search_of, slice_of, why_so_many
from m2bridge.questions.fiber.ranks import Dimensions, dimensions_of
from m2bridge.questions.fiber.request import equation_span, estimated_terms
from m2bridge.questions.fiber.result import Fiber, FiberComponent, Identifiability
from m2bridge.questions.kernel import Context, ForceOption, question
from m2bridge.questions.point import (
    PRIMES,
    AtOption,
    Point,
    RationalizeOption,
    StratumOption,
    good_prime,
    one_of,
    resolve,
)

__all__ = ["Fiber", "FiberComponent", "fiber"]

_MOST_EQUATION_TERMS = 400_000
"""Terms of all equations together up to which one Groebner basis is tried."""
_MOST_TERMS_OF_AN_EQUATION = 8_000
"""Terms of one equation up to which equations are formed at all."""
_MOST_FIBER_WEIGHTS = 40  # variables of one Groebner basis
_PLAIN_LIGHTNING_WEIGHTS = 20  # beyond, the fiber is computed in coarser weights first
_PLAIN_WEIGHTS_BEFORE_SLICE = 12  # beyond, scalings are cut away first
_MULTI_HEAD_WEIGHTS = 12  # variables of one Groebner basis for several heads

_BY_ARGUMENT: dict[str, Any] = {
    "ancestry": "formula", "certainty": Certainty.THEOREM,
    "detail": {"theorem": "orbits in fibers of products and of attention (m2bridge.questions.fiber.arguments)"},
}  # fmt: skip
"""What all evidence has that rests on an argument for a family."""


@question(
    asks="The fiber through a point (all weights with the same function), and whether symmetries explain it.",
    templates=("fiber",),
    quantities={
        "verdict": "whether the known symmetries explain the fiber",
        "fiber_dim": "the dimension of the fiber through the point",
        "dim_at_point": "the dimension of the fiber at the point",
        "orbits": "how many orbits of the known symmetries the fiber has",
        "image_dim": "the dimension of the image",
    },
    primes=PRIMES,
    uses_msolve=True,
    example="m2bridge fiber 'lightning(d=2,dp=1,parametrization=attention)' --stratum rank_a=1,rank_v=1",
)
def fiber(
    context: Context,
    model: Model,
    *,
    at: AtOption = None,
    stratum: StratumOption = None,
    rationalize: RationalizeOption = None,
    force: ForceOption = False,
) -> Fiber:
    """Compute the fiber of the parametrization through a point: all weights with the same function.

    Dimensions of generic fibers always; components where Macaulay2 can compute them. `at` is None or ``"random"`` for random
    integer weights; a mapping from names to matrices of integers or fractions; the path of a ``weights.json``; or the text of a
    stratum, ``"rank_a=1,rank_v=1,meet=1"`` or ``"m1=skew"``. The prime is exchanged, with a note, when the point does not
    survive it.
    """
    prime = MACAULAY2_PRIME if context.prime is None else context.prime
    asked, model = model, _by_coordinates(model)
    if model.knowledge.searched is not None and model.polynomial:
        model = with_symmetries(model, found_symmetries(context, model, asked.program))
    point = resolve(model, one_of(at, stratum, rationalize), context.seed)
    p, note = good_prime(point, prime)
    context.require_engine()
    context.report_progress("dimensions")
    dims = dimensions_of(point, context.seed)
    argument = all_orbits(point)
    computed = ComputedFiber(method="jacobian")
    if model.polynomial:
        computed = _compute(context, point, p, force=force)
    context.add_evidence(*dims.evidence, *computed.evidence, *_argued(point, argument, computed))
    verdict = judged(model, computed, argument, dims)
    if model.knowledge.searched is not None and verdict.word == "not-identifiable":
        verdict = _up_to_linear_symmetries(context, model, verdict, dims.generic_orbit_dim)
    _say_verdict(context, model, verdict, computed, argument, dims)
    at_weights = point.document(p if model.polynomial else None)
    by_argument = argument.fiber_dim if argument else None
    options = {"prime": prime, "at": point.kind, "weights": None if point.generic else at_weights["weights"]}
    return context.build_result(
        Fiber, model=asked.spec, options=options, at=at_weights,
        fiber_dim=computed.fiber_dim if by_argument is None else by_argument,
        degree=computed.degree, components=computed.components, component_count=_component_count(model, computed, argument),
        dim_at_point=computed.dim_at_point if dims.dim_at_point is None else dims.dim_at_point,
        known_symmetry_dim=dims.orbit_dim, orbits=verdict.orbits,
        generic_fiber_dim=dims.generic_fiber_dim, image_dim=dims.image_dim,
        verdict=verdict.word, explanation=verdict.reason, probability=verdict.probability, certainty=verdict.certainty,
        method=computed.method, inputs=computed.inputs, counterexample=counterexample(point),
        notes=((note,) if note else ()) + computed.notes, limit=computed.limit,
    )  # fmt: skip


def _by_coordinates(model: Model) -> Model:
    """Replace a user's network, which has no partial, by its coordinates, with the same fibers, unless these are too many."""
    if model.polynomial and model.user.is_program:
        with suppress(OutOfReachError):
            return map_of_coordinates(model)
    return model


def _up_to_linear_symmetries(context: Context, model: Model, verdict: Judgement, orbit_dim: int) -> Judgement:
    """Add to the verdict "not identifiable" that only linear symmetries were considered."""
    searched = model.knowledge.searched
    if not (model.polynomial and searched is not None and searched.complete):
        missing = "was not finished" if model.polynomial else "is for polynomial networks"
        reason = f"{verdict.reason}; but the search for symmetries {missing}"
        return replace(verdict, word="undecided", reason=reason)
    context.report_progress("symmetries that are not linear")
    search = search_of(context, model)
    with context.keep_partial("symmetries that are not linear"):
        context.clock.check()
        search.run(2)
    rank = search.rank
    if rank <= orbit_dim:
        return verdict
    reason = (
        f"{verdict.reason}; this is up to linear symmetries only: with affine and quadratic vector fields, which m2bridge "
        f"symmetries lists, generic orbits have dimension {rank}"
    )
    return replace(verdict, reason=reason)


def _argued(point: Point, argument: Orbits | None, computed: ComputedFiber) -> list[Evidence]:
    """Return what the argument shows over QQ and, where it holds over every field, over the field that Macaulay2 computed in."""
    primes = sorted({e.prime for e in computed.evidence if e.prime is not None and e.witness == "macaulay2"})
    evidence = []
    for p, orbits in [(0, argument), *((p, all_orbits(point, p)) for p in primes)]:
        over = here(p) if point.model.polynomial else {"scope": "at-point", "field": "RR"}
        counted = {"orbits": orbits.count, "fiber_dim": orbits.fiber_dim} if orbits else {}
        evidence += [
            Evidence(quantity, value, "argument", orbits.reason, **_BY_ARGUMENT, **over)
            for quantity, value in counted.items()
            if orbits is not None and value is not None
        ]
    return evidence


def _component_count(model: Model, computed: ComputedFiber, argument: Orbits | None) -> int | None:
    """Return the number of components over the algebraic closure; an orbit of a connected group is irreducible."""
    if computed.component_count is None and model.polynomial and argument is not None and argument.count == 1:
        return 1
    return computed.component_count


_FINITE = ("identifiable-up-to-symmetry", "finite-up-to-symmetry")


def _say_verdict(
    context: Context, model: Model, verdict: Judgement, computed: ComputedFiber, argument: Orbits | None, dims: Dimensions
) -> None:  # fmt: skip
    """Add the verdict and a second one that is the same or contradicts it.

    Beside an argument the second is that of the computed components; beside the components, which Macaulay2 found, it is that of
    ranks, which stand on the program. Ranks alone never show that a fiber has finitely many orbits: such a verdict without an
    argument has one definition only.
    """
    if verdict.word == "undecided":
        return
    components, ranks = (judged(model, f, None, dims) for f in (computed, ComputedFiber(method="jacobian")))
    of_components: dict[str, Any] = {"ancestry": "program" if components == ranks else "template"}
    of_ranks: dict[str, Any] = {"ancestry": "program"}

    def add(judgement: Judgement, witness: str, **stands_on: Any) -> None:
        stands_on.setdefault("certainty", judgement.certainty)
        evidence = Evidence(
            "verdict", judgement.word, witness, judgement.reason, scope="at-point", **stands_on
        )
        context.add_evidence(evidence)

    if argument is not None:
        add(verdict, "argument", **_BY_ARGUMENT)
        other, witness, stands_on = components, "components", of_components
    elif components == ranks:
        add(verdict, "ranks", **of_ranks)
        return
    else:
        add(verdict, "components", **of_components)
        other, witness, stands_on = ranks, "ranks", of_ranks
    opposite = "not-identifiable" in (other.word, verdict.word) and {other.word, verdict.word} & set(_FINITE)
    if other.word == verdict.word or opposite:
        add(other, witness, **stands_on)


# -- which way to compute --------------------------------------------------------------------------------------------------------


def in_reach(model: Model, p: int, seed: int) -> bool:
    """Return whether one Groebner basis of all equations is worth trying."""
    network = model.knowledge.attention
    most = _MULTI_HEAD_WEIGHTS if network is not None and network.multi_head else _MOST_FIBER_WEIGHTS
    if model.parameter_count > most or (terms := estimated_terms(model)) > _MOST_TERMS_OF_AN_EQUATION:
        return False
    span, _ = equation_span(model, p, seed)
    return terms * span <= _MOST_EQUATION_TERMS


def _compute(context: Context, point: Point, p: int, *, force: bool) -> ComputedFiber:
    """Compute the fiber from coarser weights or by a Groebner basis; only dimensions if infeasible or decided already."""
    model, coarse = point.model, coarsest(point)
    network = model.knowledge.attention
    deep = network is not None and network.layers > 1
    large = deep or model.parameter_count > _PLAIN_LIGHTNING_WEIGHTS
    if coarse is not None and coarse.lemmas and large and list(coarse.point.weights.values())[-1].any():
        coarse_fiber = _compute(context, coarse.point, p, force=force)
        if coarse_fiber.method == "argument":
            return coarse_fiber
        return lifted(coarse_fiber, coarse, orbits_only=model.knowledge.layer is None)
    argument = all_orbits(point)
    if not force and _groebner_basis_is_slow(model) and argument is not None and argument.count is not None:
        note = (
            "all orbits are counted by an argument, so no Groebner basis was computed (--force computes one)"
        )
        return ComputedFiber(method="argument", notes=(note,))
    reason = None
    if not model.constraints.has_equations:
        reason = f"{model}: virtual weights through narrow layers have no simple equations"
    elif model.user.is_program and model.input_shape is not None:
        reason = "it has too many coordinates to expand: only dimensions are computed"
    elif not force and not in_reach(model, p, context.seed):
        reason = (
            f"a Groebner basis in {model.parameter_count} weights is infeasible: "
            "only dimensions are computed (--force attempts it)"
        )
    if reason is not None:
        return ComputedFiber(method="jacobian", notes=(reason,))
    on_slice = _wants_slice(point, context.seed)
    return plain(context, point, p, context.seed, on_slice=on_slice)


def _groebner_basis_is_slow(model: Model) -> bool:
    """Return whether one Groebner basis takes minutes or more: deep attention beyond two layers of width 2."""
    network = model.knowledge.attention
    if network is None or not network.numbered:
        return False
    return network.widths[0] >= 3 or network.layers >= 3


def _wants_slice(point: Point, seed: int) -> bool:
    """Return whether to use a slice of the scalings: there are many weights, and all blocks of the slice are non-zero."""
    model = point.model
    perceptron = model.knowledge.perceptron
    deep = perceptron is not None and perceptron.layers > 2
    many = deep or model.parameter_count > _PLAIN_WEIGHTS_BEFORE_SLICE
    if model.knowledge.layer is not None or not many:
        return False
    return slice_of(model, seed) is not None and all(array.any() for array in point.weights.values())


# -- the verdict, in one word: the strongest that was shown, with its reason and how sure it is --------------------------------

_UNDECIDED = "undecided: the components of the fiber were not computed, and the dimensions at this point do not suffice"
_NOT_BY_COMPONENTS = "undecided: smaller orbits in the fiber were not counted"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict with its reason and certainty; `orbits` when all of them are counted."""

    word: Identifiability
    reason: str
    certainty: Certainty
    orbits: int | None = None
    probability: float | None = None


def judged(model: Model, computed: ComputedFiber, argument: Orbits | None, dims: Dimensions) -> Judgement:
    """Return the strongest verdict shown by an argument, components, the differential at the point, or generic ranks."""
    return (
        (_from_argument(argument, dims) if argument is not None else None)
        or _from_size(computed, dims)
        or _from_orbits(model, computed, dims)
        or _from_the_differential(computed, dims)
        or _from_generic_ranks(dims)
        or Judgement(
            "undecided", _NOT_BY_COMPONENTS if computed.components else _UNDECIDED, Certainty.PROBABLE
        )
    )


def _from_argument(argument: Orbits, dims: Dimensions) -> Judgement:
    word: Identifiability
    if not argument.finite and dims.orbit_dim in (dims.tangent_upper, argument.fiber_dim):
        word = "open-orbit"
        words = "the orbit is open in the fiber, which contains infinitely many other orbits"
    elif not argument.finite:
        word, words = "not-identifiable", "the fiber is an infinite union of orbits of the known symmetries"
    elif argument.count == 1:
        word, words = "identifiable-up-to-symmetry", "the fiber is one orbit of the known symmetries"
    else:
        count = "finitely many" if argument.count is None else str(argument.count)
        word, words = "finite-up-to-symmetry", f"the fiber is {count} orbits of the known symmetries"
    return Judgement(word, f"{words}: {argument.reason}", Certainty.THEOREM, argument.count)


def _from_size(computed: ComputedFiber, dims: Dimensions) -> Judgement | None:
    """Decide that a component is larger than the orbit through one of its points, or than all orbits."""
    largest = dims.generic_orbit_dim
    for component in computed.components or ():
        orbit = largest if component.orbit_dim is None else component.orbit_dim
        if component.dim > orbit:
            reason = f"the fiber has a component of dimension {component.dim}, and the orbits in it have dimension {orbit}"
            return Judgement("not-identifiable", reason, Certainty.PROBABLE)  # over F_p
    if computed.least_dim is not None and computed.least_dim > largest:
        reason = (
            f"the fiber has dimension {computed.least_dim} or more, and the orbits of the known symmetries"
            f" have dimension {largest}"
        )
        return Judgement("not-identifiable", reason, Certainty.PROBABLE)
    return None


def _from_orbits(model: Model, computed: ComputedFiber, dims: Dimensions) -> Judgement | None:
    """Count orbits as components, if all orbits have the dimension of the fiber."""
    if not computed.orbits_full:
        return None
    count, components = computed.orbits, computed.components or ()
    each = f"of dimension {dims.orbit_dim}"
    word: Identifiability = "identifiable-up-to-symmetry"
    if count is None or not components or not all(c.orbit for c in components):
        word, number = "finite-up-to-symmetry", "finitely many" if count is None else str(count)
        reason = f"the fiber is {number} orbits {each}, not all of them explained by the known symmetries"
    elif count > 1:
        reason = f"the fiber is {count} orbits {each}{why_so_many(model, count)}"
    else:
        reason = f"the fiber is one orbit of the known symmetries, {each}"
        if any(c.reduced is False for c in components):
            reason += "; its equations define it with multiplicity greater than one"
    return Judgement(word, reason, Certainty.PROBABLE, count)


def _from_the_differential(computed: ComputedFiber, dims: Dimensions) -> Judgement | None:
    if dims.orbit_dim not in (dims.tangent_upper, computed.dim_at_point):
        return None
    reason = (
        f"the orbit of the known symmetries is open in the fiber, both of dimension {dims.orbit_dim} at the point; "
        "other components of the fiber were not computed"
    )
    sure = Certainty.PROVED if dims.tangent_upper == dims.orbit_dim else Certainty.PROBABLE
    return Judgement("open-orbit", reason, sure)


def _from_generic_ranks(dims: Dimensions) -> Judgement | None:
    """Compare with generic dimensions: no fiber of an irreducible source is smaller than generic ones, no orbit larger."""
    generic, orbit = dims.generic_fiber_dim, dims.generic_orbit_dim
    if generic is None or generic <= orbit:
        return None
    reason = (
        f"every fiber has at least the dimension {generic} of generic fibers, and orbits of the known symmetries"
        f" have dimension at most {orbit}"
    )
    sure = Certainty.NUMERIC if dims.probability is None else Certainty.PROBABLE
    return Judgement("not-identifiable", reason, sure, probability=dims.probability)
