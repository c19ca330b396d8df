"""Results of the question `dimension`, and the rank of the differential at given weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.errors import InputError, NotPolynomialError, OutOfReachError
from m2bridge.evidence import Evidence, Value
from m2bridge.families import Model
from m2bridge.questions.kernel import Context
from m2bridge.results import Result, register_result
from m2bridge.views import View, value_text

QUANTITY = "rank_at_point"
SINGULAR_VALUES = "singular_values_at_point"
_NUMERIC_THRESHOLD = 1e-7
"""Of the largest singular value: smaller ones count as zero in the numerical rank at trained weights."""
_MOST_SINGULAR_VALUES = 2_000  # weights up to which singular values at given weights are computed
MOST_EXACT_ENTRIES = 60_000
"""Entries of the coordinates' Jacobian up to which its rank at a point is computed over QQ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaCheck:
    """A closed formula of the literature, compared with the computed dimension. It is never used as evidence.

    `value` and `agrees` are None when a hypothesis fails, so that the formula is not applicable.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRank:
    """The rank of the differential at some weights, exact ones.

    `loss` is how much less it is than the generic rank, with its certainty; the weights are critical if it is positive.
    """

    at: Mapping[str, Value]
    rank: int | None
    loss: int | None
    certainty: Certainty

    @property
    def sentence(self) -> str:
        if self.loss is None or self.rank is None:
            return "Undecided whether these weights are critical: their rank in float64 is uncertain."
        certainty = "" if self.certainty.exact else f" ({self.certainty.value})"
        if not self.loss:
            return f"These weights are regular: the differential has the generic rank {self.rank} there{certainty}."
        rank_text = f"rank {self.rank} of {self.rank + self.loss}"
        return f"These weights are critical: the rank of the differential drops by {self.loss}, {rank_text}{certainty}."


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension(Result):
    """The dimension of the image of a parametrization, affine.

    Attributes
    ----------
    parameters: dimension of the space of weights.
    image_dim: the dimension; the lower bound when the bounds do not meet.
    generic_fiber_dim: `parameters` - `image_dim`.
    lower_bound, upper_bound: exact bounds. They meet where `certainty` is proved, theorem or computed.
    symmetry_dim: dimension of a generic orbit of the proved symmetries.
    span_dim: number of coordinates, an upper bound of the dimension of the linear span of the image; None when the functions
        do not lie in a finite-dimensional space, or when there are too many coordinates.
    expected_dim: min(parameters - symmetry_dim, span_dim).
    defect: expected_dim - image_dim. None (unknown) if the literature does not list the symmetries of the network and the
        computed symmetries are smaller than the fiber.
    formula: the formula of the literature, or None.
    numeric_rank: the float64 rank, None when undecided or not computed; details in `numeric`.
    statement: what is proved and what is not, in a sentence.
    certificate: the document that `m2bridge check` verifies, or None.
    at_point: the rank of the differential at the weights of the option `at`, or None.
    """

    ANALYSIS: ClassVar[str] = "dimension"
    VERSION: ClassVar[int] = 2
    HEADLINE: ClassVar[tuple[str, ...]] = ("image_dim",)

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

    def certified(self) -> frozenset[str]:
        return frozenset({"image_dim"} if self.certificate else ())

    def view(self) -> View:
        met = self.lower_bound == self.upper_bound
        bounds = "" if met else f" ({self.lower_bound} to {self.upper_bound})"
        span = "" if self.span_dim is None else f"; {self.span_dim} coordinates"
        facts = [
            ("parameters", str(self.parameters)),
            ("generic fiber", self._fiber_text()),
            ("expected", f"{self.expected_dim}, defect {value_text(self.defect)}{span}"),
            ("formula", self._formula_text()),
        ]
        if self.numeric is not None:
            gap = "" if self.numeric.gap is None else f", gap {self.numeric.gap:.1e}"
            facts.append(
                ("float64", f"{'undecided' if self.numeric.rank is None else self.numeric.rank}{gap}")
            )
        facts += [
            ("at the weights", _spectrum_text(e)) for e in self.evidence if e.quantity == SINGULAR_VALUES
        ]
        notes = (self.statement,) if self.at_point is None else (self.at_point.sentence, self.statement)
        certified = (self.certificate or {}).get("statement", {}).get("dimension", self.image_dim)
        if certified != self.image_dim:
            warning = (
                "The record is inconsistent: its dimension is not that of its certificate. Do not use it."
            )
            notes = (warning,)
        analytic = self.span_dim is None  # then there are no equations, and symmetries are not searched
        equations = "" if analytic else ", or equations (m2bridge closure)"
        to_prove = f"an upper bound is missing: more symmetries{equations}"
        if self.upper_bound == self.image_dim:
            to_prove = "a lower bound is missing: a point at which the rank is certain"
        answer = f"dimension {self.image_dim}{bounds}, affine"
        return View(answer=answer, facts=tuple(facts), notes=notes, to_prove=to_prove)

    def _fiber_text(self) -> str:
        known = f", of which known symmetries {self.symmetry_dim}" if self.symmetry_dim else ""
        return f"dimension {self.generic_fiber_dim}{known}"

    def _formula_text(self) -> str:
        if self.formula is None:
            return "none"
        if self.formula.value is None:
            failing = ", ".join(name for name, holds in self.formula.hypotheses if not holds)
            return f"not applicable (requires {failing}) [{self.formula.citation}]"
        verdict = "agrees" if self.formula.agrees else "does not agree"
        return f"{self.formula.value}, {verdict}: {self.formula.citation}"


# -- at given weights ---------------------------------------------------------------------------


def rank_at(
    context: Context, model: Model, at: Any, rationalize: int | None, *, image_dim: int, met: bool
) -> PointRank:
    """Return the rank at the weights `at`: exact over QQ if feasible, otherwise a lower bound over F_p."""
    from m2bridge.questions.point import one_of, resolve  # which needs the dimension itself

    if model.free is not model:
        raise InputError(f"{model}: its weights satisfy equations; --at takes models with free weights")
    context.report_progress("rank at the weights")
    point = resolve(model, one_of(at, None, rationalize), context.seed)
    rank, exact = _rank(context, point)
    if model.parameter_count <= _MOST_SINGULAR_VALUES:
        with context.keep_partial("singular values at the weights"):
            context.clock.check()
            context.add_evidence(*_singular_values(point, context.seed))
    # The rank at a point is a lower bound of the dimension, so that no loss is negative.
    loss = None if rank is None else max(0, image_dim - rank)
    decided = met and (exact or loss == 0)
    certainty = (
        Certainty.COMPUTED if decided else Certainty.PROBABLE if model.polynomial else Certainty.NUMERIC
    )
    return PointRank(at=point.document(None), rank=rank, loss=loss, certainty=certainty)


def _rank(context: Context, point: Any) -> tuple[int | None, bool]:
    from m2bridge.questions.fiber.ranks import generic_numeric_rank, kernel_dim
    from m2bridge.questions.point import rank_prime

    model = point.model
    at_weights = partial(Evidence, QUANTITY, scope="at-point")
    proved = partial(at_weights, certainty=Certainty.PROVED, field="QQ")
    rng = np.random.default_rng([context.seed, 105])
    if not model.polynomial:
        try:
            numeric = generic_numeric_rank(model, point.floats(), rng)
        except OverflowError:
            raise InputError("--at: a weight is outside of the range of float64", argument="at") from None
        method = "singular values of the differential at the weights"
        context.add_evidence(
            at_weights(numeric.rank, "numpy", method, certainty=Certainty.NUMERIC, field="RR")
        )
        return numeric.rank, False
    p = rank_prime(model, point)
    lower_bound = model.parameter_count - kernel_dim(model, point.mod(p), p, rng)
    method = "rank of the differential at the weights"
    context.add_evidence(proved(lower_bound, "modular", method, relation=">=", prime=p))
    exact = _exact_rank(point)
    if exact is None:
        return lower_bound, False
    context.add_evidence(proved(exact, "exact", f"{method} over QQ, by all coordinates"))
    return exact, True


def _singular_values(point: Any, seed: int) -> list[Evidence]:
    """Return the singular values in float64 of the outputs' Jacobian at the weights, for normally distributed inputs.

    The numerical rank counts those above `_NUMERIC_THRESHOLD` times the largest. It is another quantity than the exact rank:
    trained weights may be close to weights of smaller rank. No evidence if a number leaves the range of float64.
    """
    from m2bridge.questions.fiber.ranks import jacobian, sample_count

    model, rng = point.model, np.random.default_rng([seed, 106])
    shape = model.input_shape
    inputs = None if shape is None else rng.standard_normal((2 * sample_count(model), *shape))
    try:
        with np.errstate(all="raise", under="ignore"):
            matrix = np.asarray(jacobian(model, point.floats(), inputs), dtype=np.float64)
            values = np.linalg.svd(matrix / np.sqrt(len(matrix)), compute_uv=False)
    except (FloatingPointError, OverflowError, np.linalg.LinAlgError):
        return []
    numeric = int((values > _NUMERIC_THRESHOLD * values[:1].max(initial=0.0)).sum())
    return [
        Evidence(
            SINGULAR_VALUES,
            numeric,
            "numpy",
            f"singular values above {_NUMERIC_THRESHOLD:.0e} of the largest, inputs normally distributed",
            certainty=Certainty.NUMERIC,
            scope="at-point",
            field="RR",
            detail={
                "singular_values": [float(f"{value:.6g}") for value in values],
                "inputs": 0 if inputs is None else len(inputs),
            },
        )
    ]


def _spectrum_text(item: Evidence) -> str:
    """Return the numerical rank and the singular values on both sides of it."""
    values, rank = list(item.detail["singular_values"]), int(str(item.value))
    counted, dropped = values[:rank], values[rank:]
    text = f"numerical rank {rank}"
    if counted:
        at = f" at {item.detail['inputs']} inputs" if item.detail["inputs"] else ""
        text += f"; singular values {counted[0]:.1e} to {counted[-1]:.1e}{at}"
    if dropped:
        text += f", the next is {dropped[0]:.1e}"
    return text


def _exact_rank(point: Any) -> int | None:
    """Return the rank over QQ of the differential of all coordinates; None if this is infeasible."""
    from m2bridge.questions import over_q

    try:
        if point.model.coordinate_count * point.model.parameter_count > MOST_EXACT_ENTRIES:
            return None
        return over_q.rank(point.model.coordinate_jacobian(dict(point.weights)))
    except (OutOfReachError, NotPolynomialError):
        return None
