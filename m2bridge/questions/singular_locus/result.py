"""Results of the question `singular-locus`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import ClassVar, Literal

from m2bridge.certainty import Certainty
from m2bridge.evidence import Value
from m2bridge.limits import limit_advice
from m2bridge.results import Result, TheoremCheck, register_result
from m2bridge.views import Rows, View, value_text

Singularity = Literal["singular", "smooth", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """A set of weights, examined at one point: an orbit of a group, matrices of one rank, or special weights.

    Attributes
    ----------
    name: of the stratum. ranks: the ranks that define it (A, V and meet, the dimension of col A ∩ row V, for one layer of
        attention); empty where it is defined otherwise.
    image_dim: affine dimension of the stratum's image. critical: whether the differential of the whole model loses rank at the
        point.
    tangent_lower: from curves in the image, over QQ: their span at this point or, by semicontinuity, at a stratum whose closure
        contains it.
    tangent_upper: from equations or a finite map; None without.
    verdict: singular (tangent_lower > image_dim of the model), smooth (tangent_upper = image_dim of the model) or undecided.
    certainty: of the verdict.
    representative: the point: exact weights, each array row by row.
    closure_contains: indices in the list of strata of those in this one's closure, itself left out.
    components: the numbers, from 1, of the components of the singular scheme that contain the point; None when not computed.
    """

    name: str
    ranks: Mapping[str, int]
    image_dim: int
    critical: bool | None
    tangent_lower: int
    tangent_upper: int | None
    verdict: Singularity
    certainty: Certainty
    representative: Mapping[str, tuple[str, ...]]
    closure_contains: tuple[int, ...]
    components: tuple[int, ...] | None

    @property
    def in_words(self) -> str:
        """Return the ranks that define the stratum, or its name."""
        ranks = [f"meet {n}" if name == "meet" else f"rk {name} = {n}" for name, n in self.ranks.items()]
        return ", ".join(ranks) or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A component of the singular locus: affine dimension, degree, equations (over QQ, or F_p where that was not reached).

    `stratum` is the name of the stratum whose closure the component is, where that is known; degree and equations are None when
    they were not computed. `tangent_dim` is that of the Zariski tangent space at a generic point of it; `multiplicity` that of
    the closure at a random point of it over F_p; `milnor_number` that of an isolated singular point of a hypersurface there, and
    `delta_invariant` that of a singular point of a curve, the length of the normalization modulo the ring.
    """

    dim: int
    degree: int | None
    equations: tuple[str, ...] | None
    stratum: str | None = None
    tangent_dim: int | None = None
    multiplicity: int | None = None
    milnor_number: int | None = None
    delta_invariant: int | None = None


_LONGEST_SHOWN_EQUATION, _MOST_SHOWN_EQUATIONS = 160, 6
"""Equations are shown when they are not longer, and not more."""


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class SingularLocus(Result):
    """The singular locus of a neuromanifold. All dimensions are affine.

    Attributes
    ----------
    image_dim: dimension of the neuromanifold.
    ambient_dim: of the space of all functions of this kind (Sym3); span_dim: of the linear span of the
        neuromanifold, None if no equations were computed.
    codim, degree, generators: of the closure's ideal within the span; generators maps degree to count; equations as text.
        None if no complete ideal was computed.
    singular_dim, singular_degree: of the singular locus as a reduced set, -1 and 0 when it is empty; degree is None when not
        computed.
    singular_equations, embedded: of the singular scheme, when it was computed. components: of its radical, or closures of the
        maximal singular strata.
    strata: each with its tangent bounds and verdict. exhaustive: whether they cover the closure, and a verdict holds on all of a
        stratum.
    theorem: a paper's statement about these orbits, and whether it holds (:mod:`m2bridge.questions.comments`).
    completeness: of the equations of the closure; None if they were not computed.
    undecided: sentences that state what was not decided.
    certificate: documents that `m2bridge check` verifies: the dimension, and proved verdicts at representatives of strata.
    """

    ANALYSIS: ClassVar[str] = "singular-locus"
    FINAL_TEMPLATE: ClassVar[str] = "singular_strata"
    VERSION: ClassVar[int] = 4
    COMMENT_FIELDS: ClassVar[tuple[str, ...]] = ("theorem",)
    HEADLINE: ClassVar[tuple[str, ...]] = ("singular_dim", "singular_degree")
    AT_POINT: ClassVar[tuple[str, ...]] = ("tangent", "singular at", "rank at", "one reduced point")

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
    exhaustive: bool
    theorem: TheoremCheck | None = None
    completeness: str | None = None
    undecided: tuple[str, ...] = ()
    certificate: tuple[Mapping[str, Value], ...] = ()

    @property
    def headline(self) -> tuple[str, ...]:
        """Return the name of the dimension, and that of the degree if it was computed."""
        return (
            self.HEADLINE
            if self.singular_degree is not None and self.singular_dim != -1
            else self.HEADLINE[:1]
        )

    def certified(self) -> frozenset[str]:
        """Return the dimension of the image, if it is certified; each verdict in `strata` has its own certainty."""
        kinds = {document["statement"]["kind"] for document in self.certificate}
        return frozenset({"image_dim"} if "dimension" in kinds else ())

    def _facts(self) -> list[tuple[str, str]]:
        """List what was computed about the closure and its singular scheme."""
        spans = (
            f"affine dimension {self.ambient_dim}; the functions span dimension {value_text(self.span_dim)}"
        )
        facts = [("ambient space", spans), ("neuromanifold", f"affine dimension {self.image_dim}")]
        if self.codim is not None:
            facts.append(
                ("closure", f"codimension {self.codim} in its span, degree {value_text(self.degree)}")
            )
        if self.generators is not None:
            counts = ", ".join(f"{n} of degree {k}" for k, n in self.generators.items()) or "none"
            facts.append(("equations", counts))
            if self.completeness is not None:
                facts.append(("completeness", self.completeness))
            if len(self.equations) <= _MOST_SHOWN_EQUATIONS:
                facts += [
                    ("", f"{text} = 0") for text in self.equations if len(text) <= _LONGEST_SHOWN_EQUATION
                ]
        elif self.codim is None:
            partial = "not computed completely at this size; the known equations give upper bounds"
            facts.append(("closure", partial if self.exhaustive else "no equations"))
        for name, components in (("components", self.components), ("embedded", self.embedded)):
            if components is not None:
                facts.append((name, "; ".join(map(_component, components)) or "none"))
        return facts

    def _answer(self) -> str:
        """State the singular locus as a whole or, if it is not known, the strata that are singular."""
        degree = "" if self.singular_degree is None else f", degree {self.singular_degree}"
        locus = f"singular locus of affine dimension {value_text(self.singular_dim)}{degree}"
        if self.singular_dim is not None and self.singular_dim < 0:
            return "smooth: no singular points"
        if self.singular_dim is None and (singular := [s for s in self.strata if s.verdict == "singular"]):
            exact = sum(s.certainty.exact for s in singular)
            return f"not determined; singular at the images of {len(singular)} strata of the weights, {exact} of them exactly"
        return locus

    def view(self) -> View:
        notes = [] if self.theorem is None else [self.theorem.sentence()]
        if self.theorem is not None and self.theorem.witness is not None:
            notes.append(f"The theorem as printed fails: {self.theorem.witness['reason']}.")
        notes += [f"- undecided: {sentence}" for sentence in self.undecided]
        to_prove = "equations that are proved complete over QQ (m2bridge closure --field QQ), and the components over QQ"
        if self.undecided or any(s.verdict == "undecided" for s in self.strata):
            to_prove = limit_advice(self.limit, "more equations or curves at the undecided strata")
        return View(
            answer=self._answer(), facts=tuple(self._facts()), tables=(self._rows(),), notes=tuple(notes),
            details=tuple(map(self._reason, self.strata)),
            to_prove=to_prove,
        )  # fmt: skip

    def _reason(self, s: Stratum) -> str:
        """Return why a stratum is singular or smooth, and at which point."""
        if s.verdict == "undecided" or "A" not in s.representative or not self.exhaustive:
            return ""
        lower_bound = f"at least {s.tangent_lower} > {self.image_dim}"
        why = lower_bound if s.verdict == "singular" else f"at most {s.tangent_upper} = {self.image_dim}"
        width = isqrt(len(s.representative["A"]))  # orbits are represented by (A, V), and A is square
        rows = {
            name: [entries[k : k + width] for k in range(0, len(entries), width)]
            for name, entries in s.representative.items()
        }
        texts = {name: ", ".join(f"[{', '.join(row)}]" for row in matrix) for name, matrix in rows.items()}
        point = ", ".join(f"{name} = [{text}]" for name, text in texts.items())
        return f"{s.in_words}: {s.verdict} ({s.certainty.value}), because the tangent space has {why} dimensions, at {point}"

    def _rows(self) -> Rows:
        if self.strata and self.strata[0].ranks:
            return self._rows_by_ranks(list(self.strata[0].ranks))
        numbered = any(s.components is not None for s in self.strata)
        columns = ("weights", "image dim", "critical", "tangent ≥", "tangent ≤", "verdict", "certainty",
                   *(("components",) if numbered else ()))  # fmt: skip
        critical_text = {True: "yes", False: "no", None: "?"}
        cells = []
        for s in self.strata:
            inside = (", ".join(map(str, s.components or ())),) if numbered else ()
            cells.append(
                (s.name, str(s.image_dim), critical_text[s.critical], *_bounds_and_verdict(s), *inside)
            )
        return Rows(title="Strata of the weights", columns=columns, cells=tuple(cells))

    def _rows_by_ranks(self, names: Sequence[str]) -> Rows:
        """Return a table of strata that are given by ranks; it fits into 80 columns."""
        ranks = [name if name == "meet" else f"rk {name}" for name in names]
        columns = (*ranks, "dim", "tangent ≥", "tangent ≤", "verdict", "certainty")
        cells = [
            (*map(str, s.ranks.values()), str(s.image_dim), *_bounds_and_verdict(s)) for s in self.strata
        ]
        return Rows(title="Strata", columns=columns, cells=tuple(cells))


def _bounds_and_verdict(stratum: Stratum) -> tuple[str, str, str, str]:
    certainty = stratum.certainty.value if stratum.verdict != "undecided" else ""
    return str(stratum.tangent_lower), value_text(stratum.tangent_upper), stratum.verdict, certainty


def _component(component: Component) -> str:
    text = f"affine dimension {component.dim}, degree {value_text(component.degree)}"
    for name, value in (("tangent space", component.tangent_dim), ("multiplicity", component.multiplicity),
                        ("Milnor number", component.milnor_number), ("delta", component.delta_invariant)):  # fmt: skip
        text += "" if value is None else f", {name} {value}"
    if component.stratum is not None:
        text += f", closure of the stratum {component.stratum}"
    equations = ", ".join(component.equations or ())
    return f"{text}: {equations}" if equations and len(equations) <= _LONGEST_SHOWN_EQUATION else text
