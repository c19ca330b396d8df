"""The answer to "what is the dimension?"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from m2bridge.questions.dimension.at_point import PointRank
from m2bridge.results import Result, Value, register_result
from m2bridge.views import View, known


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaCheck:
    """A closed formula of the literature beside the computed dimension. It is never used as evidence.

    `value` is None when a hypothesis fails: then the formula says nothing, and `agrees` is None too.
    """

    value: int | None
    citation: str
    hypotheses: tuple[tuple[str, bool], ...]
    agrees: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericWitness:
    """The float64 rank: None when the singular values do not decide, with the gap they show."""

    rank: int | None
    gap: float | None
    rows: int
    columns: int


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension(Result):
    """The dimension of the image of a parametrization, affine.

    Attributes
    ----------
    parameters: dimension of the space of weights.
    image_dim: the dimension; the lower bound when the bounds do not meet.
    generic_fiber_dim: `parameters` - `image_dim`.
    lower_bound, upper_bound: proved bounds. They meet when `certainty` is proved.
    symmetry_dim: dimension of a generic orbit of the proved symmetries.
    span_dim: dimension of the linear span of the image where it was computed, else of the ambient space; None when
        the functions do not lie in a finite-dimensional space.
    expected_dim: min(parameters - symmetry_dim, span_dim).
    defect: expected_dim - image_dim. None, unknown, where the network is not one of those whose symmetries are in the literature,
        and the symmetries that were found do not explain the whole fiber.
    formula: what the literature says, or None.
    numeric_rank: the float64 rank, None when undecided or not computed; details in `numeric`.
    statement: what is proved and what is not, in a sentence.
    certificate: what `m2bridge check` verifies, or None.
    at_point: the rank of the differential at given weights, where some were given.
    """

    ANALYSIS: ClassVar[str] = "dimension"
    VERSION: ClassVar[int] = 2

    parameters: int
    image_dim: int
    generic_fiber_dim: int
    lower_bound: int
    upper_bound: int
    symmetry_dim: int
    span_dim: int | None
    expected_dim: int
    defect: int | None
    formula: FormulaCheck | None
    numeric_rank: int | None
    numeric: NumericWitness | None
    statement: str
    certificate: Mapping[str, Value] | None
    at_point: PointRank | None = None

    def view(self) -> View:
        bounds = (
            "" if self.lower_bound == self.upper_bound else f" ({self.lower_bound} to {self.upper_bound})"
        )
        span = "" if self.span_dim is None else f"; ambient space {self.span_dim}"
        facts = [
            ("parameters", str(self.parameters)),
            ("generic fiber", self._fiber_text()),
            ("expected", f"{self.expected_dim}, defect {known(self.defect)}{span}"),
            ("formula", self._formula_text()),
        ]
        if self.numeric is not None:
            gap = "" if self.numeric.gap is None else f", gap {self.numeric.gap:.1e}"
            facts.append(
                ("float64", f"{'undecided' if self.numeric.rank is None else self.numeric.rank}{gap}")
            )
        altered = (self.certificate or {}).get("statement", {}).get(
            "dimension", self.image_dim
        ) != self.image_dim
        warning = (
            "The record says another dimension than its own certificate: it was altered. Trust nothing in it."
        )
        return View(
            answer=f"dimension {self.image_dim}{bounds}, affine",
            facts=tuple(facts),
            notes=(warning,) if altered else self._notes(),
            to_prove=self._to_prove(),
        )

    def _to_prove(self) -> str:
        if self.upper_bound == self.image_dim:
            return "a lower bound is missing: a point of the source, or a source without equations"
        return "an upper bound is missing: more symmetries, or equations (m2bridge closure)"

    def _notes(self) -> tuple[str, ...]:
        return (self.statement,) if self.at_point is None else (self.at_point.sentence, self.statement)

    def _fiber_text(self) -> str:
        known = f"dimension {self.generic_fiber_dim}, of which known symmetries {self.symmetry_dim}"
        return (
            known
            if self.symmetry_dim >= self.generic_fiber_dim
            else f"{known} (m2bridge symmetries searches for more)"
        )

    def _formula_text(self) -> str:
        if self.formula is None:
            return "none known"
        if self.formula.value is None:
            failing = ", ".join(name for name, holds in self.formula.hypotheses if not holds)
            return f"does not apply ({failing}): {self.formula.citation}"
        verdict = "agrees" if self.formula.agrees else "does not agree"
        return f"{self.formula.value}, {verdict}: {self.formula.citation}"
