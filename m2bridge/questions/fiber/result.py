"""What the question "which weights compute the same function?" answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from m2bridge.families.polynomial_map import by_variable
from m2bridge.results import Result, TheoremCheck, register_result
from m2bridge.views import Rows, View, shorten, value_text

Identifiability = Literal[
    "identifiable-up-to-symmetry", "finite-up-to-symmetry", "open-orbit", "not-identifiable", "undecided"
]
Method = Literal["plain", "sliced", "lifted", "argument", "jacobian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberComponent:
    """A component of the fiber, irreducible over the algebraic closure of the field of computation when `absolute`.

    Attributes
    ----------
    dim, degree: affine, in the space of the weights; degree is None where only a slice of it was computed.
    absolute: True when it is irreducible over the algebraic closure; otherwise it stands for a prime over the field itself, and
        for `conjugates` components over the closure (None: not known).
    reduced: whether the scheme of the equations is generically reduced along it; `multiplicity` how often it counts.
    orbit: whether it is the closure of the orbit of the known symmetries, permutations included, through the point; the closure
        may contain other orbits.
    orbit_dim: dimension of the orbit through a point of it found by Macaulay2; None when no such point was found.
    tangent_dim: dimension of the kernel of the forward pass's Jacobian at a point of it found by Macaulay2.
    point: those weights over F_p, flattened; None when no point with coordinates in the field was found.
    equations: as text, variables w0, w1, ... in flattened order, when they are short.
    """

    dim: int
    degree: int | None
    reduced: bool | None
    multiplicity: int | None
    absolute: bool
    conjugates: int | None
    orbit: bool | None
    orbit_dim: int | None
    tangent_dim: int | None
    point: tuple[int, ...] | None
    equations: tuple[str, ...] | None


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class Fiber(Result):
    """The fiber of a parametrization through one point. All dimensions are affine, in the space of the weights.

    Attributes
    ----------
    at: which point: ``kind`` (random, weights, stratum), ``weights`` (exact, as strings), ``prime`` it was reduced by.
    fiber_dim, degree, components: of the whole fiber through that point; None where they were not computed.
    component_count: number of components over the algebraic closure; None where it is not known.
    dim_at_point: dimension of the fiber at the point, that is of the largest component through it; None where it is not known.
    known_symmetry_dim: dimension of the orbit of the known symmetries through the point.
    orbits: number of orbits of the known connected symmetries in the fiber, over the algebraic closure; None unless all of them,
        small ones included, are counted.
    generic_fiber_dim: dimension of the fiber through almost every point; `image_dim` that of the image. They do not describe
        the fiber at this point but that it is at least as large.
    verdict: ``identifiable-up-to-symmetry`` when the fiber is one orbit of the known symmetries (scalings, changes of basis,
        permutations of neurons or heads); ``finite-up-to-symmetry`` when it is a finite union of orbits and not known to be
        one; ``open-orbit`` when the orbit through the point is open in the fiber and not more is known in its favour: its closure
        is a component, and other points of the fiber may lie in infinitely many other orbits; ``not-identifiable`` when a
        component of the fiber is larger than the orbits in it, or the fiber is an infinite union of orbits and the one through
        the point is not open; ``undecided``.
    explanation: the verdict's reason in a sentence.
    probability: for a verdict that rests on ranks at random points over F_p, a lower bound of the probability that these are
        the generic ranks over F_p; None otherwise.
    method: plain (one Groebner basis), sliced (scalings cut), lifted (virtual weights and Lemmas 3.1 and
        3.5), argument (all orbits counted, no Groebner basis), jacobian (dimensions only).
    inputs: number of random inputs behind the equations, the fresh ones that changed nothing included.
    counterexample: exact weights of another orbit with the same function.
    theorem: what a paper prints about this fiber, and whether it is so (:mod:`m2bridge.questions.comments`).
    notes: what a reader should know, such as a prime that was exchanged.
    """

    ANALYSIS: ClassVar[str] = "fiber"
    VERSION: ClassVar[int] = 3
    COMMENT_FIELDS: ClassVar[tuple[str, ...]] = ("theorem", "counterexample")
    HEADLINE: ClassVar[tuple[str, ...]] = ("verdict",)

    at: Mapping[str, Any]
    fiber_dim: int | None
    degree: int | None
    components: tuple[FiberComponent, ...] | None
    component_count: int | None
    dim_at_point: int | None
    known_symmetry_dim: int
    orbits: int | None
    generic_fiber_dim: int | None
    image_dim: int | None
    verdict: Identifiability
    explanation: str
    probability: float | None
    method: Method
    inputs: int | None
    counterexample: Mapping[str, Any] | None
    notes: tuple[str, ...]
    theorem: TheoremCheck | None = None

    def view(self) -> View:
        kinds = {"random": "random integers", "weights": "given weights", "stratum": "stratum"}
        kind = " ".join([kinds[self.at["kind"]], *filter(None, [self.at["detail"]])])
        degree = "" if self.degree is None else f", degree {self.degree}"
        orbit = "the orbit of the known symmetries"
        facts = [
            ("point", f"{kind}: {_weights(by_variable(self.model, self.at['weights']))}"),
            ("why", self.explanation),
            ("fiber", f"dimension {value_text(self.fiber_dim)}{degree} ({self.method})"),
            ("at the point", f"dimension {value_text(self.dim_at_point)}; {orbit} {self.known_symmetry_dim}"),
            ("components", f"{value_text(self.component_count)} over the algebraic closure"),
            ("orbits", f"{value_text(self.orbits)} over the algebraic closure"),
            (
                "generic fibers",
                f"dimension {value_text(self.generic_fiber_dim)}; image {value_text(self.image_dim)}",
            ),
        ]
        if self.probability not in (None, 1.0):
            facts.append(("probability", f"at least {self.probability:.6f}"))
        notes = [f"Note: {note}." for note in self.notes]
        if self.verdict == "not-identifiable":
            notes.append(
                "This refers to the declared symmetries of the model or, for a user-defined model, "
                "to the linear symmetries that were found; `m2bridge symmetries` searches for others."
            )
        if self.counterexample is not None:
            counter = self.counterexample
            sure = "" if counter["verified"] else " (NOT verified)"
            notes.append(f"M_1 is skew: these are the same function{sure}:")
            notes += [f"  {_weights(counter[key])}" for key in ("weights", "other")]
            notes.append(f"  checked: {counter['method']}.")
            if "repair" in counter:
                notes.append(f"  {counter['statement']}; repair: {counter['repair']}.")
        if self.theorem is not None:
            notes.append(self.theorem.sentence())
        return View(
            answer=self.verdict, decided=self.verdict != "undecided", facts=tuple(facts), notes=tuple(notes),
            tables=(self._component_rows(),) if self.components else (),
            to_prove="an argument that counts all orbits in the fiber "
            "(available for random weights of the networks of the paper)",
        )  # fmt: skip

    def _component_rows(self) -> Rows:
        words = {True: "yes", False: "no", None: "?"}
        columns = (
            "dim",
            "degree",
            "multiplicity",
            "tangent dim",
            "reduced",
            "closure of the point's orbit",
            "over the closure",
        )
        cells = tuple(
            (
                str(c.dim),
                value_text(c.degree),
                value_text(c.multiplicity),
                value_text(c.tangent_dim),
                words[c.reduced],
                words[c.orbit],
                "one" if c.absolute else value_text(c.conjugates),
            )
            for c in self.components or ()
        )
        return Rows(title="Components", columns=columns, cells=cells)


def _weights(weights: Mapping[str, Any]) -> str:
    texts = (f"{name} = {str(value).replace(chr(39), '')}" for name, value in weights.items())
    return shorten(", ".join(texts), 160)
