"""What every way to compute a fiber answers with, and the second witness of what it finds.

The ways are :mod:`computing`, :mod:`structured` and :mod:`lifting`: each takes a point and gives components with what Macaulay2
says of them, evidence, and notes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from m2bridge.models import Mod
from m2bridge.questions.fiber.differential import draw_inputs, kernel_dim, outputs_at, symmetry_rank_mod
from m2bridge.questions.fiber.points import Point
from m2bridge.questions.fiber.result import FiberComponent, Method
from m2bridge.questions.testimony import proves, says
from m2bridge.results import Evidence

_MOST_CONJUGATES = 64
"""More conjugate components than this stay one entry."""
_SHOWN = 8
"""Outputs that are kept in evidence."""


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
        word = says if p else proves
        self.evidence.append(word(quantity, value, "macaulay2", method, seconds=seconds, **here(p)))

    def compare(self, quantity: str, p: int, *, macaulay2: Any, modular: Any, method: str) -> None:
        """One quantity from the script's network and from the forward pass."""
        self.say(quantity, "the script's network", macaulay2, p)
        self.evidence.append(says(quantity, modular, "modular", method, **here(p)))

    def forget(self) -> None:
        """Leave out all that was said about the fiber as a whole."""
        self.fiber_dim = self.dim_at_point = self.least_dim = self.degree = self.components = None
        self.component_count = self.orbits_full = self.orbits = None

    def retract(self, *quantities: str) -> None:
        """Take back what was said about these quantities."""
        self.evidence = [e for e in self.evidence if e.quantity not in quantities]


def field_of(p: int) -> str:
    return f"F_{p}" if p else "QQ"


def here(p: int) -> dict[str, Any]:
    """That something is said about the fiber at the point, over F_p or, for p = 0, over QQ."""
    return {"prime": p or None, "scope": "at-point", "field": field_of(p)}


def compare_dims(found: ComputedFiber, point: Point, p: int, seed: int) -> None:
    """The fiber's dimension at the point over F_p: components through it, kernel of the differential, orbit inside."""
    quantity, weights = "dim_at_point", point.mod(p)
    kernel = kernel_dim(point.model, weights, p, np.random.default_rng([seed, 107]))
    orbit = symmetry_rank_mod(point.model, weights, p)
    found.say(quantity, "components that contain the point", found.dim_at_point, p)
    how = "kernel of the differential at the point"
    found.evidence += [
        says(quantity, kernel, "modular", how, relation="<=", **here(p)),
        proves(quantity, orbit, "symmetry", "rank of the symmetries' action", relation=">=", **here(p)),
    ]


def compare_outputs(
    found: ComputedFiber, point: Point, there: tuple[int, ...], p: int, seed: int, i: int
) -> dict[str, Mod]:
    """The weights of a point that Macaulay2 found on a component; outputs there are compared with those of the asked point."""
    model = point.model
    weights = {name: Mod(w, p) for name, w in model.unflatten(np.array(there, dtype=np.int64)).items()}
    fresh = Mod(draw_inputs(model, np.random.default_rng([seed, 102]), 12, p), p)
    ours, asked = (outputs_at(model, w, fresh).values.ravel() for w in (weights, point.mod(p)))
    start = int(np.argmax(ours != asked))  # the first difference, or 0
    theirs, mine = (values[start : start + _SHOWN].tolist() for values in (asked, ours))
    how = "the forward pass at a point of it, 12 fresh inputs"
    found.compare(f"outputs at a point of component {i + 1}", p, macaulay2=theirs, modular=mine, method=how)
    return weights


def over_the_closure(one: FiberComponent) -> list[FiberComponent]:
    """The components over the algebraic closure that a prime over the field stands for; itself when too many or not counted."""
    n = one.conjugates
    if n is None or n == 1 or n > _MOST_CONJUGATES:
        return [one]
    degree = None if one.degree is None else one.degree // n
    return [replace(one, degree=degree, absolute=True, conjugates=1, point=None)] * n
