"""What the claims about dimensions share: a proved dimension beside a printed number."""

from __future__ import annotations

from typing import Any

from m2bridge.claims.base import Context, Verdict, disagreement, fails, holds, out_of_reach
from m2bridge.models import Model
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.results import Certainty

WITNESSES = (
    "exact rank of the forward pass's Jacobian (lower bound)",
    "rank of proved symmetries, or a gauge slice (upper bound)",
    "float64 singular values",
)
ONE_LAYER_WITNESSES = (*WITNESSES, "Macaulay2's rank of the Jacobian, up to 60 weights")


def compared(model: Model, printed: int | None, context: Context) -> Verdict:
    """The computed dimension against a printed one; None is a statement that says nothing here.

    Macaulay2 is asked where that is cheap: one layer of at most 60 weights.
    """
    result = dimension(model, engine=context.engine, seed=context.seed, limits=context.limits)
    return verdict_on(result, printed)


def verdict_on(result: Dimension, printed: int | None) -> Verdict:
    """Whether a printed dimension is the computed one, as sure as the computed one is."""
    if result.agreement is False:
        return disagreement(result.conflicts)
    computed: dict[str, Any] = {
        "image_dim": result.image_dim,
        "lower_bound": result.lower_bound,
        "upper_bound": result.upper_bound,
        "printed": printed,
    }
    if printed is None:
        return out_of_reach("the statement says nothing at this size")
    if printed == result.image_dim:
        return holds(result.certainty, **computed)
    if result.lower_bound <= printed <= result.upper_bound:
        return out_of_reach(
            f"computed {result.image_dim}, but only proved to lie in an interval that contains {printed}"
        )
    witness = {"image_dim": result.image_dim, "printed": printed, "statement": result.statement}
    reason = f"computed {result.image_dim}, printed {printed}"
    return fails(Certainty.PROVED, witness, reason, **computed)
