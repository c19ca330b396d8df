"""Normalised (softmax) self-attention, analytic but not polynomial.

Reference: Henry, Marchetti, Kohn, arXiv:2408.17221, Equation 15: token i attends to token j with weight
S(x_i^T A x_j) / sum_k S(x_i^T A x_k), S(x) = e^(x / temperature). The pairing is the other way round than in
the lightning layer (Equation 1: x_j^T A x_i); we follow each equation as it is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.models.attention import AttentionSizes, attention_gauge, softmax_point, softmax_precisions
from m2bridge.models.base import Formula, Model, Shape, Symmetry
from m2bridge.models.deep import DeepLightning
from m2bridge.models.deep_known import attention_dim, bottleneck_hypotheses, bottleneck_value, deep_symmetries
from m2bridge.models.lightning import PAPER, PARAMETRIZATIONS
from m2bridge.models.spec import Arguments, check_choice, written
from m2bridge.programs.points import NOTHING_HELD, Held
from m2bridge.programs.proofs import DyadicPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(Model):
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
    polynomial: ClassVar[bool] = False

    d: tuple[int, ...]
    a: tuple[int, ...] = None  # type: ignore[assignment]
    t: int = 3
    temperature: Fraction = Fraction(1)
    parametrization: str = "weights"

    def __post_init__(self) -> None:
        check_choice(self.family, "parametrization", self.parametrization, PARAMETRIZATIONS)
        object.__setattr__(self, "d", tuple(self.d))
        try:
            twin = DeepLightning(d=self.d, a=self.a, t=self.t)
        except SpecError as error:
            message = error.message.replace(DeepLightning.family, self.family)
            raise SpecError(message, **error.fields) from None
        object.__setattr__(self, "a", twin.a)
        object.__setattr__(self, "temperature", Fraction(self.temperature))
        if self.temperature <= 0:
            raise SpecError(
                f"softmax: temperature should be positive, not {self.temperature}", argument="temperature"
            )

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Softmax:
        arguments.only("d", "a", "t", "temperature", "parametrization")
        widths = arguments.integers("d")
        return cls(
            d=widths,
            a=arguments.per_layer("a", len(widths) - 1, widths[:-1]),
            t=arguments.integer("t", 3),
            temperature=arguments.fraction("temperature", Fraction(1)),
            parametrization=arguments.word("parametrization", PARAMETRIZATIONS) or "weights",
        )

    @property
    def lightning(self) -> DeepLightning:
        """The network with the same weights and no normalisation."""
        return DeepLightning(d=self.d, a=self.a, t=self.t, parametrization=self.parametrization)

    @property
    def layers(self) -> int:
        return len(self.d) - 1

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
        by = "(Q, K, V)" if self.parametrization == "weights" else "(A, V)"
        sizes = f"d={list(self.d)}, a={list(self.a)}, t={self.t}"
        return f"softmax self-attention by {by}, {sizes}, temperature {self.temperature}"

    @property
    def parameters(self) -> dict[str, Shape]:
        return self.lightning.parameters

    @property
    def parameter_dim(self) -> int:
        return self.lightning.parameter_dim

    @property
    def free(self) -> Softmax:
        return replace(self, parametrization="weights") if self.lightning.constrained else self

    def draw_weights(self, rng: np.random.Generator, p: int) -> dict[str, np.ndarray]:
        return self.lightning.draw_weights(rng, p)

    def draw_real_weights(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return self.lightning.draw_real_weights(rng)

    @property
    def input_shape(self) -> Shape:
        return (self.d[0], self.t)

    @property
    def output_shape(self) -> Shape:
        return (self.d[-1], self.t)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        X, twin = inputs, self.lightning
        for i in range(1, self.layers + 1):
            scores = twin.scores(weights, i, X) / self.temperature
            kernel = np.exp(scores)
            attention = kernel / kernel.sum(axis=1, keepdims=True)
            X = weights[f"V{i}"] @ (X @ attention.T)
        return X

    @property
    def gauge(self) -> Held:
        return (
            attention_gauge(self.d, self.a, scalings=False)
            if self.parametrization == "weights"
            else NOTHING_HELD
        )

    @property
    def attention_sizes(self) -> AttentionSizes:
        return AttentionSizes(self.d, self.a, self.t)

    @property
    def precisions(self) -> tuple[int, ...]:  # type: ignore[override]
        return softmax_precisions(self.layers)

    def samples_needed(self) -> int | None:
        return (
            self.attention_sizes.samples_needed(self.gauge, analytic=True)
            if self.parametrization == "weights"
            else None
        )

    def dyadic_point(self, samples: int, seed: int) -> DyadicPoint:
        if self.parametrization != "weights":
            return Model.dyadic_point(self, samples, seed)
        return softmax_point(self.attention_sizes, self.gauge, samples, seed, float(self.temperature))

    def real_point(self, samples: int, seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        floats = self.dyadic_point(samples, seed).floats()
        return {name: floats[name].array for name in self.parameters}, {"X": floats["X"].array}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Those of the lightning network but the scalings, which normalisation breaks."""
        return deep_symmetries(self.lightning, scalings=False)

    @property
    def formula(self) -> Formula:
        """Theorem 3.9 for one layer; for more layers Equation 16, which docs/conjecture-3.10.md proves for t >= 2."""
        hypotheses: tuple[tuple[str, bool], ...] = (("t >= 2", self.t >= 2),)
        if self.layers == 1:
            value = attention_dim(self.a[0], self.d[0]) + self.d[0] * self.d[1]
            citation = f"{PAPER}, Theorem 3.9"
        else:
            value = bottleneck_value(self.d, self.a)
            hypotheses += bottleneck_hypotheses(self.d)
            citation = (
                f"{PAPER}, Equation 16; Conjecture 3.10 is proved for t >= 2 in docs/conjecture-3.10.md"
            )
        holds = all(truth for _, truth in hypotheses)
        return Formula(value=value if holds else None, citation=citation, hypotheses=hypotheses)
