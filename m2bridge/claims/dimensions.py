"""What the claims about dimensions share: a proved dimension beside a printed number."""

from __future__ import annotations

from typing import Any

from m2bridge.claims.base import Context, Verdict, fails, holds, out_of_reach
from m2bridge.models import Model
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.results import Certainty

ABOUT = ("image_dim",)
WITNESSES = {
    "program": ("exact rank of the forward pass's Jacobian (lower bound)", "float64 singular values"),
    "construction": ("rank of proved symmetries, or a gauge slice (upper bound)",),
}
ONE_LAYER_WITNESSES = {**WITNESSES, "template": ("Macaulay2's rank of the Jacobian, up to 60 weights",)}


def compared(model: Model, printed: int | None, context: Context) -> Verdict:
    """The computed dimension against a printed one; None is a statement that says nothing here.

    Macaulay2 is asked where that is cheap: one layer of at most 60 weights.
    """
    return verdict_on(context.once(dimension, model), printed)


def verdict_on(result: Dimension, printed: int | None) -> Verdict:
    """Whether a printed dimension is the computed one, as sure as the computed one is."""
    computed: dict[str, Any] = {
        "image_dim": result.image_dim,
        "lower_bound": result.lower_bound,
        "upper_bound": result.upper_bound,
        "printed": printed,
    }
    if printed is None:
        return out_of_reach("the statement says nothing at this size")
    if printed == result.image_dim:
        ground = (
            "by the theorem of docs/conjecture-3.10.md" if "rests on a theorem" in result.statement else ""
        )
        return holds(result.certainty, f"dimension {printed}" + (f", {ground}" if ground else ""), **computed)
    if result.lower_bound <= printed <= result.upper_bound:
        return out_of_reach(
            f"computed {result.image_dim}, but only proved to lie in an interval that contains {printed}"
        )
    witness = {"image_dim": result.image_dim, "printed": printed, "statement": result.statement}
    reason = f"computed {result.image_dim}, printed {printed}"
    return fails(Certainty.PROVED, witness, reason, **computed)
