"""Analyses stage, fiber: what components and dimensions say about identifiability."""

from __future__ import annotations

from math import factorial, prod

from m2bridge.analyses.fiber.computing import Outcome
from m2bridge.analyses.fiber.differential import BIG_PRIME, known_points
from m2bridge.analyses.fiber.dimensions import jacobian_degree
from m2bridge.analyses.fiber.points import Point
from m2bridge.analyses.fiber.result import Verdict
from m2bridge.models import MLP
from m2bridge.results import Certainty


class Judgement:
    """The verdict with its reason, certainty and probability."""

    def __init__(
        self,
        word: Verdict,
        reason: str,
        certainty: Certainty,
        *,
        fiber_dim: int | None,
        orbits: int | None = None,
        probability: float | None = None,
    ) -> None:
        self.word, self.reason, self.certainty = word, reason, certainty
        self.fiber_dim, self.orbits, self.probability = fiber_dim, orbits, probability

    @classmethod
    def of(cls, point: Point, outcome: Outcome, orbit_dim: int, generic_dim: int | None) -> Judgement:
        if outcome.components:
            return cls._from_components(point, outcome, orbit_dim)
        return cls._from_dimensions(point, outcome, orbit_dim, generic_dim)

    @classmethod
    def _from_components(cls, point: Point, outcome: Outcome, orbit_dim: int) -> Judgement:
        components = outcome.components or ()
        largest = max(c.dim for c in components)
        sure = outcome.certainty
        if largest > orbit_dim:
            reason = f"the fiber has dimension {largest}, the orbit of the known symmetries {orbit_dim}"
            return cls("not-identifiable", reason, sure, fiber_dim=outcome.fiber_dim)
        orbits = outcome.orbits if outcome.orbits is not None else len(components)
        if all(c.orbit for c in components) and orbits == len(components):
            reason = f"the fiber is one orbit of the known symmetries, of dimension {orbit_dim}"
            if orbits > 1:
                reason = f"the fiber is {orbits} orbits of dimension {orbit_dim}{_count(point, orbits)}"
            elif any(c.reduced is False for c in components):
                reason += "; its equations count it more than once"
            return cls(
                "identifiable-up-to-symmetry", reason, sure, fiber_dim=outcome.fiber_dim, orbits=orbits
            )
        reason = f"the fiber is {orbits} orbits of dimension {orbit_dim}, not all of them explained by the known symmetries"
        return cls("finite-up-to-symmetry", reason, sure, fiber_dim=outcome.fiber_dim, orbits=orbits)

    @classmethod
    def _from_dimensions(
        cls, point: Point, outcome: Outcome, orbit_dim: int, generic_dim: int | None
    ) -> Judgement:
        known = outcome.fiber_dim
        if known is not None and known > orbit_dim:
            reason = (
                f"the fiber has dimension {known}, the orbit {orbit_dim}; its components were not computed"
            )
            return cls("not-identifiable", reason, outcome.certainty, fiber_dim=known)
        if not point.generic or generic_dim is None:
            reason = (
                "the components of the fiber were not computed, and dimensions at one point do not decide"
            )
            return cls("undecided", reason, Certainty.PROBABLE, fiber_dim=known)
        numeric = not point.model.polynomial
        if generic_dim == orbit_dim:
            reason = f"generic fibers have dimension {generic_dim}, as the orbits have; the number of orbits was not computed"
            certainty = Certainty.NUMERIC if numeric else Certainty.PROVED
            return cls(
                "finite-up-to-symmetry",
                reason,
                certainty,
                fiber_dim=generic_dim,
                probability=None if numeric else 1.0,
            )
        reason = f"generic fibers have dimension {generic_dim}, the orbits of the known symmetries only {orbit_dim}"
        failure = (
            None
            if numeric
            else 1 - (point.model.parameter_dim - generic_dim) * jacobian_degree(point.model) / BIG_PRIME
        )
        certainty = Certainty.NUMERIC if numeric else Certainty.PROBABLE
        return cls("not-identifiable", reason, certainty, fiber_dim=generic_dim, probability=failure)


def _count(point: Point, orbits: int) -> str:
    """Why there are that many orbits, when permutations explain them."""
    _, words = known_points(point)
    if words is None:
        return ""
    model = point.model
    if isinstance(model, MLP) and orbits == prod(factorial(n) for n in model.widths[1:-1]):
        total = " * ".join(f"{n}!" for n in model.widths[1:-1])
        return f": {orbits} = {total} {words}, each with its scalings"
    return f", related by {words}"
