"""Strata of the closure of a model's image: the interface, and the choice of strata for a model.

A stratum is a set of weights. One point represents it. Strata that are `exhaustive` cover the closure, and whether a point is
singular depends on its stratum alone; all others are candidates for singular points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m2bridge.families.base import Model


@dataclass(frozen=True, kw_only=True)
class FiniteMap:
    """A finite map that shows that a point is smooth, without equations (docs/decisions/0018-smooth-by-a-finite-map.md).

    The coordinates of `model` are bilinear in two groups of weights and define a finite map of the product of two projective
    spaces. `weights` is a point near which the closure is the image of a smooth part of the source; the affine cone over that
    part has dimension `dim`.
    """

    model: Model
    weights: Mapping[str, np.ndarray]
    dim: int


@dataclass(frozen=True, kw_only=True)
class ImageDegree:
    """The degree of the closure of a stratum as an intersection number: `value`, and the argument as text."""

    value: int
    argument: str


class Strata(ABC):
    """Strata of the closure of the image of `model`; all statements about them use its coordinates.

    Attributes
    ----------
    exhaustive: whether the strata cover the closure, and all points of one stratum are singular or none is.
    closure_coordinates: the largest number of coordinates for which computing all equations of the closure is feasible.
    """

    model: Model
    exhaustive: bool
    closure_coordinates: int

    @abstractmethod
    def strata(self) -> Sequence[Any]:
        """Return all strata; ``str`` of one is its name. Where they are exhaustive, the last one is dense."""

    @abstractmethod
    def representative(self, stratum: Any) -> Mapping[str, np.ndarray]:
        """Return integer weights of the stratum, as they are shown."""

    @abstractmethod
    def directions(self, stratum: Any) -> np.ndarray:
        """Return tangent vectors of the stratum at the first weights of `fiber`: one row per vector, flat weights."""

    def ranks(self, stratum: Any) -> Mapping[str, int]:
        """Return the ranks that define the stratum; empty if it is defined otherwise."""
        return {}

    def fiber(self, stratum: Any) -> Sequence[Mapping[str, np.ndarray]]:
        """Return weights of ``model.free`` whose image is that of the representative, which comes first."""
        return [self.representative(stratum)]

    def contains(self, larger: Any, smaller: Any) -> bool:
        """Return whether the closure of the image of `larger` is known to contain the image of `smaller`."""
        return False

    def parametrization(self, stratum: Any) -> Model | None:
        """Return a model whose image is dense in that of the stratum; None for a point, or if there is no such model."""
        return None

    def degree(self, stratum: Any) -> ImageDegree | None:
        """Return the degree of the closure of the stratum's image, computed without equations; None if unknown."""
        return None

    def finite_map(self, stratum: Any) -> FiniteMap | None:
        """Return the map that may show smoothness of the stratum; None if the argument does not apply."""
        return None


def strata_of(model: Model, seed: int) -> Strata:
    """Return the strata of a model: orbits of its group, ranks of its matrices, or special weights drawn from `seed`."""
    from m2bridge.families.attention_strata import LayerStrata
    from m2bridge.families.linear_strata import LinearStrata
    from m2bridge.families.perceptron import Linear
    from m2bridge.families.weight_strata import WeightStrata

    if model.knowledge.layer is not None:
        return LayerStrata(model.knowledge.layer)
    if (widths := model.knowledge.matrix_product) is not None:
        return LinearStrata(Linear(widths=widths))
    return WeightStrata(model, seed)
