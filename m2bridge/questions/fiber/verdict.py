"""The verdict on identifiability, in one word: the strongest that was shown, with its reason and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

from m2bridge.models import Model
from m2bridge.questions.fiber.arguments import Orbits
from m2bridge.questions.fiber.computed import ComputedFiber
from m2bridge.questions.fiber.known import why_so_many
from m2bridge.questions.fiber.ranks import Dimensions
from m2bridge.questions.fiber.result import Identifiability
from m2bridge.results import Certainty

_UNDECIDED = "the components of the fiber were not computed, and dimensions at this point do not decide"
_NOT_BY_COMPONENTS = (
    "components of the fiber and dimensions at this point do not decide: smaller orbits were not counted"
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict with its reason and certainty; `orbits` when all of them are counted."""

    word: Identifiability
    reason: str
    certainty: Certainty
    orbits: int | None = None
    probability: float | None = None


def judged(model: Model, found: ComputedFiber, argument: Orbits | None, dims: Dimensions) -> Judgement:
    """The strongest verdict that was shown: by an argument, by components, by the differential at the point, by generic ranks."""
    return (
        (_from_argument(argument, dims) if argument is not None else None)
        or _from_size(found, dims)
        or _from_orbits(model, found, dims)
        or _from_the_differential(found, dims)
        or _from_generic_ranks(dims)
        or Judgement("undecided", _NOT_BY_COMPONENTS if found.components else _UNDECIDED, Certainty.PROBABLE)
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
    return Judgement(word, f"{words}: {argument.reason}", Certainty.PROVED, argument.count)


def _from_size(found: ComputedFiber, dims: Dimensions) -> Judgement | None:
    """A component is larger than the orbit through a point of it, or than all orbits."""
    largest = dims.generic_orbit_dim
    for component in found.components or ():
        orbit = largest if component.orbit_dim is None else component.orbit_dim
        if component.dim > orbit:
            reason = f"the fiber has a component of dimension {component.dim}, the orbits in it {orbit}"
            return Judgement("not-identifiable", reason, Certainty.PROBABLE)  # over F_p
    if found.least_dim is not None and found.least_dim > largest:
        reason = (
            f"the fiber has dimension {found.least_dim} or more, the orbits of the known symmetries {largest}"
        )
        return Judgement("not-identifiable", reason, Certainty.PROBABLE)
    return None


def _from_orbits(model: Model, found: ComputedFiber, dims: Dimensions) -> Judgement | None:
    """All orbits have the fiber's dimension, and are its components."""
    if not found.orbits_full:
        return None
    count, components = found.orbits, found.components or ()
    each = f"of dimension {dims.orbit_dim}, as every orbit in it has"
    word: Identifiability = "identifiable-up-to-symmetry"
    if count is None or not components or not all(c.orbit for c in components):
        word, number = "finite-up-to-symmetry", "finitely many" if count is None else str(count)
        reason = f"the fiber is {number} orbits {each}, not all of them explained by the known symmetries"
    elif count > 1:
        reason = f"the fiber is {count} orbits {each}{why_so_many(model, count)}"
    else:
        reason = f"the fiber is one orbit of the known symmetries, {each}"
        if any(c.reduced is False for c in components):
            reason += "; its equations count it more than once"
    return Judgement(word, reason, Certainty.PROBABLE, count)


def _from_the_differential(found: ComputedFiber, dims: Dimensions) -> Judgement | None:
    if dims.orbit_dim not in (dims.tangent_upper, found.dim_at_point):
        return None
    reason = (
        f"the orbit of the known symmetries is open in the fiber, both of dimension {dims.orbit_dim} at the point; what else is "
        "in the fiber was not shown"
    )
    sure = Certainty.PROVED if dims.tangent_upper == dims.orbit_dim else Certainty.PROBABLE
    return Judgement("open-orbit", reason, sure)


def _from_generic_ranks(dims: Dimensions) -> Judgement | None:
    """No fiber of an irreducible source is smaller than the generic ones, and no orbit is larger than the generic ones."""
    generic, orbit = dims.generic_fiber_dim, dims.generic_orbit_dim
    if generic is None or generic <= orbit or not dims.irreducible_source:
        return None
    reason = f"every fiber has dimension {generic} or more, as generic ones have, orbits of the known symmetries at most {orbit}"
    sure = Certainty.NUMERIC if dims.probability is None else Certainty.PROBABLE
    return Judgement("not-identifiable", reason, sure, probability=dims.probability)
