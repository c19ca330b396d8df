"""Compare proved dimensions with printed numbers, for all claims about dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from m2bridge.certainty import Certainty
from m2bridge.papers.base import CheckContext, Claim, Size, Verdict
from m2bridge.questions.dimension import Dimension, dimension

ABOUT = ("image_dim",)
WITNESSES = {
    "program": ("exact rank of the forward pass's Jacobian (lower bound)", "float64 singular values"),
    "construction": ("rank of proved symmetries, or a gauge slice (upper bound)",),
}
ONE_LAYER_WITNESSES = {**WITNESSES, "template": ("Macaulay2's rank of the Jacobian, up to 60 weights",)}


def dimension_claim(
    family: Callable[..., Any], printed: Callable[[Any], int], *, engine: bool = True, **fields: Any
) -> Claim:
    """Return the claim that the model of a size has the printed dimension; `fields` are the other fields of the claim.

    If `engine` is false, Macaulay2 is not used; otherwise it is used if that is cheap, for one layer of at most 60 weights.
    """

    def run(size: Size, context: CheckContext) -> Verdict:
        model = family(**size)
        options = {} if engine else {"engine": False}
        return verdict_on(context.once(dimension, model, **options), printed(model))

    usual = {
        "checked": "the printed number against a dimension proved from both sides",
        "witnesses": WITNESSES,
    }
    return Claim(run=run, about=ABOUT, **{**usual, **fields})


def verdict_on(result: Dimension, printed: int) -> Verdict:
    """Return the verdict whether a printed dimension is the computed one, with the certainty of the computed one."""
    bounds = {name: getattr(result, name) for name in ("image_dim", "lower_bound", "upper_bound")}
    computed: dict[str, Any] = {**bounds, "printed": printed}
    if printed == result.image_dim:
        by_theorem = "uses a theorem" in result.statement
        ground = ", by the theorem of docs/conjecture-3.10.md" if by_theorem else ""
        return Verdict.holds(result.certainty, f"dimension {printed}{ground}", **computed)
    if result.lower_bound <= printed <= result.upper_bound:
        return Verdict.out_of_reach(
            f"computed {result.image_dim}, but only proved to lie in an interval that contains {printed}"
        )
    witness = {"image_dim": result.image_dim, "printed": printed, "statement": result.statement}
    return Verdict.fails(
        Certainty.PROVED, witness, f"computed {result.image_dim}, printed {printed}", **computed
    )
