"""Theorem 3.4 of Henry, Marchetti, Kohn, compared with computed verdicts. Its statement is a prediction, never a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from m2bridge.models import Lightning
from m2bridge.questions.singular_locus.result import Stratum
from m2bridge.results import TheoremCheck

NAME = "Theorem 3.4 (singular points)"
STATEMENT = (
    "for t >= 2 and (d, d' >= 2 or d, a >= 2), the point of (A, V) is singular exactly when rk A * rk V <= 1"
)


def applies(model: Lightning) -> bool:
    """Whether the hypotheses of Theorem 3.4 and Corollary A.6 hold."""
    return model.t >= 2 and model.d >= 2 and (model.dp >= 2 or model.a >= 2)


def compare(model: Lightning, image_dim: int, strata: Sequence[Stratum]) -> TheoremCheck:
    """Whether each decided verdict is the one that the theorem predicts."""
    decided = [s for s in strata if s.verdict != "undecided"]
    failures = [s for s in decided if (s.verdict == "singular") != predicts_singular(s)]
    agrees = None
    if applies(model) and (failures or len(decided) == len(strata)):
        agrees = not failures
    witness = _witness(failures[0], image_dim) if agrees is False else None
    return TheoremCheck(
        name=NAME, statement=STATEMENT, applies=applies(model), agrees=agrees, witness=witness
    )


def predicts_singular(stratum: Stratum) -> bool:
    """What the printed statement says about a stratum."""
    return stratum.rank_a * stratum.rank_v <= 1


def _witness(stratum: Stratum, image_dim: int) -> dict[str, Any]:
    singular = stratum.verdict == "singular"
    reason = (
        f"curves in the image through this point span {stratum.tangent_lower} > {image_dim} dimensions"
        if singular
        else f"equations leave a tangent space of {stratum.tangent_upper} = {image_dim} dimensions"
    )
    copied = ("rank_a", "rank_v", "meet", "tangent_lower", "tangent_upper")
    return {
        **{name: getattr(stratum, name) for name in copied},
        **{name: [list(row) for row in rows] for name, rows in stratum.representative.items()},
        "image_dim": image_dim, "printed": "singular" if predicts_singular(stratum) else "smooth",
        "computed": stratum.verdict, "certainty": stratum.certainty.value, "reason": reason,
    }  # fmt: skip
