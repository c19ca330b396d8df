"""Normalised (softmax) self-attention, analytic but not polynomial.

Reference: Henry, Marchetti, Kohn, arXiv:2408.17221, Equation 15: token i attends to token j with weight
S(x_i^T A x_j) / sum_k S(x_i^T A x_k), S(x) = e^(x / temperature). The pairing is the other way round than in
the lightning layer (Equation 1: x_j^T A x_i); we follow each equation as it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.models.attention import DeepAttention, check_layers
from m2bridge.models.attention_known import softmax_formula
from m2bridge.models.attention_points import softmax_point, softmax_precisions
from m2bridge.models.base import Formula
from m2bridge.models.lightning import DeepLightning
from m2bridge.models.spec import check_choice, written
from m2bridge.programs.proofs import DyadicPoint


@dataclass(frozen=True, kw_only=True)
class Softmax(DeepAttention):
    """A deep network of normalised attention layers.

    Attributes
    ----------
    d, a, t: as for deep lightning attention.
    temperature: a positive rational number.
    parametrization: ``weights`` or ``attention``.

    The program runs over floats and balls. There are no coordinates and no ideal: the
    functions do not lie in a finite-dimensional space of polynomials.

    Examples
    --------
    >>> model = Softmax(d=(3, 3, 3), a=(2, 2))
    >>> model.spec, model.formula.value
    ('softmax(d=[3,3,3],a=[2,2],t=3)', 25)
    """

    family: ClassVar[str] = "softmax"
    summary: ClassVar[str] = "normalised self-attention; analytic, so it has a dimension but no ideal"
    example: ClassVar[str] = "softmax(d=[3,3,3],a=[2,2],t=3)"
    polynomial: ClassVar[bool] = False

    d: tuple[int, ...]
    a: tuple[int, ...] = None  # type: ignore[assignment]
    t: int = 3
    temperature: Fraction = Fraction(1)
    parametrization: str = "weights"

    def __post_init__(self) -> None:
        self._complete_sizes()
        object.__setattr__(self, "temperature", Fraction(self.temperature))
        check_layers(self)
        check_choice(self.family, "parametrization", self.parametrization, ("weights", "attention"))
        if self.temperature <= 0:
            raise SpecError(
                f"softmax: temperature should be positive, not {self.temperature}", argument="temperature"
            )

    @property
    def lightning(self) -> DeepLightning:
        """The network with the same weights and no normalisation."""
        return DeepLightning(d=self.d, a=self.a, t=self.t, parametrization=self.parametrization)

    @property
    def spec(self) -> str:
        return written(
            self.family,
            d=self.d,
            a=self.a,
            t=self.t,
            temperature=None if self.temperature == 1 else self.temperature,
            parametrization=None if self.parametrization == "weights" else self.parametrization,
        )

    @property
    def title(self) -> str:
        sizes = f"d={list(self.d)}, a={list(self.a)}, t={self.t}"
        return f"softmax self-attention by {self.by}, {sizes}, temperature {self.temperature}"

    def mixing(self, scores: Any) -> Any:
        kernel = np.exp(scores / self.temperature)
        return (kernel / kernel.sum(axis=1, keepdims=True)).T

    @property
    def precisions(self) -> tuple[int, ...]:  # type: ignore[override]
        return softmax_precisions(self.layers)

    def dyadic_point(self, samples: int, seed: int) -> DyadicPoint:
        if self.parametrization != "weights":
            return super().dyadic_point(samples, seed)
        return softmax_point(self, samples, seed)

    def real_point(self, samples: int, seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        floats = self.dyadic_point(samples, seed).floats()
        return {name: floats[name].array for name in self.parameters}, {"X": floats["X"].array}

    @property
    def formula(self) -> Formula:
        return softmax_formula(self)
