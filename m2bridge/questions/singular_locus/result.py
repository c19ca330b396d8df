"""What the question "where is the neuromanifold singular?" answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from m2bridge.certainty import Certainty
from m2bridge.evidence import Value
from m2bridge.results import Result, TheoremCheck, register_result
from m2bridge.views import Rows, View, known

Singularity = Literal["singular", "smooth", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One orbit of the symmetry group of the variety and what is known of the points of its image.

    Attributes
    ----------
    rank_a, rank_v, meet: rk A, rk V and dim(col A ∩ row V); all zero for the zero function.
    orbit_dim: affine dimension of the image of the orbit, over QQ.
    tangent_lower: from curves in the image, over QQ: their span at this point or, by semicontinuity, at an orbit whose closure
        contains it.
    tangent_upper: coordinates minus the rank of the equations' Jacobian there; None without equations.
    verdict: singular (tangent_lower > image_dim), smooth (tangent_upper = image_dim) or undecided.
    certainty: of the verdict.
    representative: one pair (A, V) of the orbit, row by row.
    closure_contains: indices in the list of strata of those in this one's closure, itself left out.
    """

    rank_a: int
    rank_v: int
    meet: int
    orbit_dim: int
    tangent_lower: int
    tangent_upper: int | None
    verdict: Singularity
    certainty: Certainty
    representative: Mapping[str, tuple[tuple[int, ...], ...]]
    closure_contains: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A component of the singular locus: affine dimension, degree, equations (over QQ, or F_p where that was not reached).

    `orbit` is (rk A, rk V, meet) when the component is known as the closure of that orbit; degree and equations are None when
    they were not computed. `tangent_dim` is that of the Zariski tangent space at a generic point of it; `multiplicity` that of
    the closure at a random point of it over F_p; `milnor_number` that of an isolated singular point of a hypersurface there, and
    `delta_invariant` that of a singular point of a curve, the length of the normalization modulo the ring.
    """

    dim: int
    degree: int | None
    equations: tuple[str, ...] | None
    orbit: tuple[int, int, int] | None = None
    tangent_dim: int | None = None
    multiplicity: int | None = None
    milnor_number: int | None = None
    delta_invariant: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A declared stratum of the weights, asked at one random point of it.

    Attributes
    ----------
    image_dim: dimension of the stratum's image at that point. critical: whether the differential of the whole model loses rank.
    tangent_lower, tangent_upper: bounds of the Zariski tangent space at the image, by curves and by equations.
    components: the numbers, from 1, of the components of the singular locus that contain the image; None when not computed.
    """

    name: str
    verdict: Singularity
    certainty: Certainty
    image_dim: int
    critical: bool
    tangent_lower: int
    tangent_upper: int | None
    components: tuple[int, ...] | None
    weights: Mapping[str, tuple[str, ...]]


_LONGEST, _MOST_SHOWN = 160, 6
"""Equations are shown when they are not longer, and not more."""


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class SingularLocus(Result):
    """The singular locus of a neuromanifold. All dimensions are affine.

    Attributes
    ----------
    image_dim: dimension of the neuromanifold.
    ambient_dim: of the space of all functions of this kind (Sym3); span_dim: of the linear span of the
        neuromanifold, None where no equations were looked for.
    codim, degree, generators: of the closure's ideal within the span; generators maps degree to count; equations as text.
        None where no complete ideal was computed.
    singular_dim, singular_degree: of the singular locus as a reduced set, -1 and 0 when it is empty; degree is None when not
        computed.
    singular_equations, embedded: of the singular scheme, when it was computed. components: of its radical, or closures of the
        maximal singular orbits.
    strata: every orbit with its tangent bounds and verdict.
    theorem: what a paper prints about these orbits, and whether it is so (:mod:`m2bridge.questions.comments`).
    places: declared strata of the weights, for every model but one layer of attention; completeness: of the equations used there.
    undecided: what was not decided, in sentences.
    certificate: what `m2bridge check` verifies: the dimension, and proved verdicts at representatives of strata.
    """

    ANALYSIS: ClassVar[str] = "singular-locus"
    VERSION: ClassVar[int] = 3
    COMMENT_FIELDS: ClassVar[tuple[str, ...]] = ("theorem",)
    HEADLINE: ClassVar[tuple[str, ...]] = ("singular_dim", "singular_degree")

    image_dim: int
    ambient_dim: int
    span_dim: int | None
    codim: int | None
    degree: int | None
    generators: Mapping[str, int] | None
    equations: tuple[str, ...]
    singular_dim: int | None
    singular_degree: int | None
    singular_equations: tuple[str, ...] | None
    components: tuple[Component, ...] | None
    embedded: tuple[Component, ...] | None
    strata: tuple[Stratum, ...]
    theorem: TheoremCheck | None = None
    places: tuple[Place, ...] = ()
    completeness: str | None = None
    undecided: tuple[str, ...] = ()
    certificate: tuple[Mapping[str, Value], ...] = ()

    @property
    def headline(self) -> tuple[str, ...]:
        """The dimension, and the degree where it is known."""
        return (
            self.HEADLINE
            if self.singular_degree is not None and self.singular_dim != -1
            else self.HEADLINE[:1]
        )

    def certified(self) -> frozenset[str]:
        """The dimension of the image; verdicts at representatives have their own words in `strata`."""
        kinds = {document["statement"]["kind"] for document in self.certificate}
        return frozenset({"image_dim"} if "dimension" in kinds else ())

    def view(self) -> View:
        spans = f"affine dimension {self.ambient_dim}; the network spans {known(self.span_dim)} of them"
        facts = [("ambient space", spans), ("neuromanifold", f"affine dimension {self.image_dim}")]
        if self.codim is not None:
            facts.append(("closure", f"codimension {self.codim} in its span, degree {known(self.degree)}"))
        if self.generators is not None:
            counts = ", ".join(f"{n} of degree {k}" for k, n in self.generators.items()) or "none"
            facts.append(("equations", counts))
            if self.completeness is not None:
                facts.append(("completeness", self.completeness))
            if len(self.equations) <= _MOST_SHOWN:
                facts += [("", f"{text} = 0") for text in self.equations if len(text) <= _LONGEST]
        elif self.codim is None:
            partial = "not computed whole at this size; those equations that were found serve as upper bounds"
            facts.append(("closure", partial if self.strata else "no equations"))
        for name, components in (("components", self.components), ("embedded", self.embedded)):
            if components is not None:
                facts.append((name, "; ".join(map(_component, components)) or "none"))
        degree = "" if self.singular_degree is None else f", degree {self.singular_degree}"
        answer = f"singular locus of affine dimension {known(self.singular_dim)}{degree}"
        if self.singular_dim is not None and self.singular_dim < 0:
            answer = "smooth: no singular points"
        if self.singular_dim is None and (shown := [p for p in self.places if p.verdict == "singular"]):
            exact = sum(p.certainty.exact for p in shown)
            answer = f"not known as a whole; singular at the images of {len(shown)} strata of the weights, {exact} exactly"
        notes = [] if self.theorem is None else [self.theorem.sentence()]
        if self.theorem is not None and self.theorem.witness is not None:
            notes.append(f"Theorem as printed fails: {self.theorem.witness['reason']}.")
        notes += [f"- undecided: {sentence}" for sentence in self.undecided]
        to_prove = "equations that are proved complete over QQ (m2bridge closure --field QQ), and the components over QQ"
        if self.undecided or any(s.verdict == "undecided" for s in self.strata):
            to_prove = "undecided strata need more equations or curves; a longer --timeout"
        return View(
            answer=answer, facts=tuple(facts), tables=(self._rows() if self.strata else self._place_rows(),), notes=tuple(notes),
            details=tuple(map(self._reason, self.strata)),
            to_prove=to_prove,
        )  # fmt: skip

    def _reason(self, s: Stratum) -> str:
        """Why an orbit is singular or smooth, and at which point."""
        if s.verdict == "undecided":
            return ""
        above = f"at least {s.tangent_lower} > {self.image_dim}"
        why = above if s.verdict == "singular" else f"at most {s.tangent_upper} = {self.image_dim}"
        point = ", ".join(f"{name} = {list(map(list, rows))}" for name, rows in s.representative.items())
        return (
            f"rk A = {s.rank_a}, rk V = {s.rank_v}, meet {s.meet}: {s.verdict} ({s.certainty.value}), because the tangent space "
            f"has {why} dimensions, at {point}"
        )

    def _rows(self) -> Rows:
        columns = ("rk A", "rk V", "meet", "orbit dim", "tangent ≥", "tangent ≤", "verdict", "certainty")
        cells = []
        for s in self.strata:
            meet = "" if s.rank_a * s.rank_v == 0 else s.meet
            sure = s.certainty.value if s.verdict != "undecided" else ""
            numbers = (s.rank_a, s.rank_v, meet, s.orbit_dim, s.tangent_lower, known(s.tangent_upper))
            cells.append((*map(str, numbers), s.verdict, sure))
        return Rows(title="Strata", columns=columns, cells=tuple(cells))

    def _place_rows(self) -> Rows:
        columns = (
            "weights",
            "image dim",
            "critical",
            "tangent ≥",
            "tangent ≤",
            "verdict",
            "certainty",
            "components",
        )
        cells = []
        for p in self.places:
            sure = p.certainty.value if p.verdict != "undecided" else ""
            parts = "" if p.components is None else ", ".join(map(str, p.components))
            bounds = ("yes" if p.critical else "no", str(p.tangent_lower), known(p.tangent_upper))
            cells.append((p.name, str(p.image_dim), *bounds, p.verdict, sure, parts))
        return Rows(title="Strata of the weights", columns=columns, cells=tuple(cells))


def _component(component: Component) -> str:
    text = f"affine dimension {component.dim}, degree {known(component.degree)}"
    for name, value in (("tangent space", component.tangent_dim), ("multiplicity", component.multiplicity),
                        ("Milnor number", component.milnor_number), ("delta", component.delta_invariant)):  # fmt: skip
        text += "" if value is None else f", {name} {value}"
    if component.orbit is not None:
        text += f", closure of the orbit {component.orbit}"
    equations = ", ".join(component.equations or ())
    return f"{text}: {equations}" if equations and len(equations) <= _LONGEST else text
