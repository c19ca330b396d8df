"""What was shown about the orbits in a fiber, in one word.

Equal dimensions of fiber and orbit show that the orbit is open in the fiber, and nothing more: its complement may hold
infinitely many smaller orbits. "One orbit" and "finitely many" are said only where all orbits are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, prod

from m2bridge.models import MLP
from m2bridge.questions.fiber.arguments import Orbits
from m2bridge.questions.fiber.computed import ComputedFiber
from m2bridge.questions.fiber.dimensions import Dimensions
from m2bridge.questions.fiber.partners import known_points
from m2bridge.questions.fiber.points import Point
from m2bridge.questions.fiber.result import FiberComponent, Identifiability
from m2bridge.results import Certainty

_UNDECIDED = "the components of the fiber were not computed, and dimensions at this point do not decide"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict with its reason and certainty; `orbits` when all of them are counted."""

    word: Identifiability
    reason: str
    certainty: Certainty
    orbits: int | None = None
    probability: float | None = None


def judged(point: Point, found: ComputedFiber, argument: Orbits | None, dims: Dimensions) -> Judgement:
    """The strongest verdict that was shown: by an argument, by components, by the differential at the point, by generic ranks."""
    return (
        _from_argument(argument, dims)
        or _from_components(point, found, dims)
        or _from_the_differential(found, dims)
        or _from_generic_ranks(dims)
        or Judgement(word="undecided", reason=_UNDECIDED, certainty=Certainty.PROBABLE)
    )


def _from_argument(argument: Orbits | None, dims: Dimensions) -> Judgement | None:
    if argument is None:
        return None
    word: Identifiability
    if not argument.finite and dims.orbit_dim in (dims.tangent_upper, argument.fiber_dim):
        word, words = (
            "open-orbit",
            "the orbit is open in the fiber, which contains infinitely many other orbits",
        )
    elif not argument.finite:
        word, words = "not-identifiable", "the fiber is an infinite union of orbits of the known symmetries"
    elif argument.count == 1:
        word, words = "identifiable-up-to-symmetry", "the fiber is one orbit of the known symmetries"
    else:
        count = "finitely many" if argument.count is None else str(argument.count)
        word, words = "finite-up-to-symmetry", f"the fiber is {count} orbits of the known symmetries"
    reason = f"{words}: {argument.reason}"
    return Judgement(word=word, reason=reason, certainty=Certainty.PROVED, orbits=argument.count)


def _from_components(point: Point, found: ComputedFiber, dims: Dimensions) -> Judgement | None:
    components, sure = found.components or (), Certainty.PROBABLE  # over F_p
    large = next((c for c in components if infinite(c, dims.generic_orbit_dim)), None)
    if large is not None:
        orbit = dims.generic_orbit_dim if large.orbit_dim is None else large.orbit_dim
        reason = f"the fiber has a component of dimension {large.dim}, the orbits in it {orbit}"
        return Judgement(word="not-identifiable", reason=reason, certainty=sure)
    least = found.least_dim
    if least is not None and dims.generic_orbit_dim is not None and least > dims.generic_orbit_dim:
        reason = f"the fiber has dimension {least} or more, the orbits of the known symmetries {dims.generic_orbit_dim}"
        return Judgement(word="not-identifiable", reason=reason, certainty=sure)
    if not found.orbits_full:
        return None
    count = found.orbits
    each = f"of dimension {dims.orbit_dim}, as every orbit in it has"
    if count is not None and components and all(c.orbit for c in components):
        reason = f"the fiber is one orbit of the known symmetries, {each}"
        if count > 1:
            reason = f"the fiber is {count} orbits {each}{_explained(point, count)}"
        elif any(c.reduced is False for c in components):
            reason += "; its equations count it more than once"
        return Judgement(word="identifiable-up-to-symmetry", reason=reason, certainty=sure, orbits=count)
    number = "finitely many" if count is None else str(count)
    reason = f"the fiber is {number} orbits {each}, not all of them explained by the known symmetries"
    return Judgement(word="finite-up-to-symmetry", reason=reason, certainty=sure, orbits=count)


def infinite(component: FiberComponent, generic_orbit_dim: int | None) -> bool:
    """Whether a component is larger than the orbits in it: at a point of it, or anywhere."""
    if component.orbit_dim is not None:
        return component.dim > component.orbit_dim
    return generic_orbit_dim is not None and component.dim > generic_orbit_dim


def _from_the_differential(found: ComputedFiber, dims: Dimensions) -> Judgement | None:
    open_orbit = f"the orbit of the known symmetries is open in the fiber, both of dimension {dims.orbit_dim} at the point"
    rest = "; what else is in the fiber was not shown"
    if dims.tangent_upper == dims.orbit_dim:
        return Judgement(word="open-orbit", reason=open_orbit + rest, certainty=Certainty.PROVED)
    if found.dim_at_point == dims.orbit_dim:
        return Judgement(word="open-orbit", reason=open_orbit + rest, certainty=Certainty.PROBABLE)
    return None


def _from_generic_ranks(dims: Dimensions) -> Judgement | None:
    """No fiber of an irreducible source is smaller than the generic ones, and no orbit is larger than the generic ones."""
    generic, orbit = dims.generic_fiber_dim, dims.generic_orbit_dim
    if generic is None or orbit is None or generic <= orbit or not dims.irreducible_source:
        return None
    reason = f"every fiber has dimension {generic} or more, as generic ones have, orbits of the known symmetries at most {orbit}"
    return Judgement(
        word="not-identifiable", reason=reason, certainty=dims.generic_certainty, probability=dims.probability
    )


def _explained(point: Point, orbits: int) -> str:
    """Why there are that many orbits, when permutations explain them."""
    _, words = known_points(point)
    if words is None:
        return ""
    model = point.model
    if isinstance(model, MLP) and orbits == prod(factorial(n) for n in model.widths[1:-1]):
        total = " * ".join(f"{n}!" for n in model.widths[1:-1])
        return f": {orbits} = {total} {words}, each with its scalings"
    return f", related by {words}"
