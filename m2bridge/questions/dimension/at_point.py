"""The rank of the differential at given weights, beside the generic one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from m2bridge.errors import InputError, NotPolynomialError, OutOfReachError
from m2bridge.models import Model
from m2bridge.questions.kernel import Asking
from m2bridge.results import Certainty, Value

QUANTITY = "rank_at_point"
MOST_EXACT_ENTRIES = 60_000
"""Entries of the coordinates' Jacobian up to which its rank at a point is computed over QQ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRank:
    """The rank of the differential at some weights.

    Attributes
    ----------
    at: the weights, exact. rank: the rank there. certainty: of the loss.
    loss: how much less it is than the generic rank; the weights are critical if it is positive.
    """

    at: Mapping[str, Value]
    rank: int | None
    loss: int | None
    certainty: Certainty

    @property
    def sentence(self) -> str:
        if self.loss is None or self.rank is None:
            return "Whether these weights are critical is undecided: float64 shows no gap."
        sure = "" if self.certainty is Certainty.PROVED else f" ({self.certainty.value})"
        if not self.loss:
            return (
                f"These weights are regular: the differential has the generic rank {self.rank} there{sure}."
            )
        of = f"rank {self.rank} of {self.rank + self.loss}"
        return f"These weights are critical: the differential loses {self.loss}, {of}{sure}."


def rank_at(
    ask: Asking, model: Model, at: Any, rationalize: int | None, *, image_dim: int, proved: bool
) -> PointRank:
    """The rank at the weights that `at` names; exact over QQ where that is in reach, else from below over F_p."""
    from m2bridge.questions.point import one_of, resolve  # which needs the dimension itself

    if model.free is not model:
        raise InputError(f"{model.spec}: its weights satisfy equations; --at takes models with free weights")
    ask.announce("rank at the weights")
    point = resolve(model, one_of(at, None, rationalize), ask.seed)
    rank, exact = _rank(ask, point)
    loss = None if rank is None else image_dim - rank
    if loss is not None and loss < 0:  # a rank at a point is a lower bound of the dimension
        loss = 0
    sure = proved and (exact or loss == 0)
    certainty = Certainty.PROVED if sure else Certainty.PROBABLE if model.polynomial else Certainty.NUMERIC
    return PointRank(at=point.document(None), rank=rank, loss=loss, certainty=certainty)


def _rank(ask: Asking, point: Any) -> tuple[int | None, bool]:
    from m2bridge.questions.fiber.ranks import generic_numeric_rank, kernel_dim
    from m2bridge.questions.point import rank_prime

    model, here = point.model, {"scope": "at-point", "field": "QQ"}
    rng = np.random.default_rng([ask.seed, 105])
    if not model.polynomial:
        found = generic_numeric_rank(model, point.floats(), rng)
        more = {"certainty": Certainty.NUMERIC, "scope": "at-point", "field": "RR"}
        ask.say(QUANTITY, found.rank, "numpy", "singular values of the differential at the weights", **more)
        return found.rank, False
    p = rank_prime(model, point)
    below = model.parameter_count - kernel_dim(model, point.mod(p), p, rng)
    method = "rank of the differential at the weights"
    proved = {"relation": ">=", "certainty": Certainty.PROVED, "prime": p, **here}
    ask.say(QUANTITY, below, "modular", method, **proved)
    exact = _exact_rank(point)
    if exact is None:
        return below, False
    ask.say(
        QUANTITY, exact, "exact", f"{method} over QQ, by all coordinates", certainty=Certainty.PROVED, **here
    )
    return exact, True


def _exact_rank(point: Any) -> int | None:
    """The rank of all coordinates' differential over QQ; None where that is out of reach."""
    from m2bridge.questions import over_q

    try:
        if point.model.coordinate_count * point.model.parameter_count > MOST_EXACT_ENTRIES:
            return None
        return over_q.rank(point.model.coordinate_jacobian(dict(point.weights)))
    except (OutOfReachError, NotPolynomialError):
        return None
