"""Equations that the weights of a model satisfy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from m2bridge.programs.evaluation import Weights

if TYPE_CHECKING:
    from m2bridge.families.base import Model


def _unchanged(weights: Weights) -> Weights:
    return weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """The parameter space of a model as a subset of the space of all weights of its shapes.

    Attributes
    ----------
    free: a model with the same image whose weights are arbitrary; the model itself where its weights are.
    from_free: converts weights of `free` to weights of the model.
    rank_bounds: weights whose rank is bounded below their size, and the bounds.
    has_equations: whether the partial contains equations of the parameter space, so that its dimension is certain.
    """

    free: Model
    from_free: Callable[[Weights], Weights] = _unchanged
    rank_bounds: Mapping[str, int] = field(default_factory=dict)
    has_equations: bool = True
