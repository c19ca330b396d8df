"""Deep lightning self-attention, with several heads and skip connections.

Reference: Henry, Marchetti, Kohn, arXiv:2408.17221, Definition 2. Its printed sizes of Q_i and K_i (and with
them the exponent in Equation 5) are misprints: Q_i and K_i are a_i x d_{i-1}, so that there are sum d_{i-1}
(2 a_i + d_i) weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import InputError, SpecError
from m2bridge.linear.mod import Mod
from m2bridge.models.attention import AttentionSizes, attention_gauge, lightning_point
from m2bridge.models.base import Formula, Shape, Symmetry, Weights
from m2bridge.models.deep_checks import PARAMETRIZATIONS, check_deep
from m2bridge.models.deep_known import (
    attention_dim,
    deep_bound,
    deep_formula,
    deep_gradings,
    deep_symmetries,
)
from m2bridge.models.network import NetworkModel
from m2bridge.models.segre import segre_count, segre_names, segre_program
from m2bridge.models.spec import Arguments, check_choice, written
from m2bridge.models.virtual import equation_11, from_queries, virtual_dim
from m2bridge.programs.points import NOTHING_HELD, Held
from m2bridge.programs.program import Program

COORDINATE_SYSTEMS = ("segre", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepLightning(NetworkModel):
    """A composition of lightning attention layers.

    Attributes
    ----------
    d: widths d_0, ..., d_l.
    a: rows of Q_i and K_i in each layer; d_{i-1} unless given.
    t: number of tokens.
    heads: number of heads in each layer, whose outputs are added; 1 unless given.
    skip: whether each layer adds its input to its output; needs equal widths.
    parametrization: ``weights`` (Q_i, K_i, V_i), ``attention`` (A_i, V_i), or ``virtual`` (M_i, L) of
    Equation 8. coordinate_system: ``segre`` (one layer without skip connections) or ``full``.

    Weights of a layer with several heads have a leading axis over them.

    Examples
    --------
    >>> model = DeepLightning(d=(3, 3, 3), a=(2, 2))
    >>> model.spec, model.parameter_count, model.formula.value
    ('deep-lightning(d=[3,3,3],a=[2,2],t=3)', 42, 23)
    """

    family: ClassVar[str] = "deep-lightning"

    d: tuple[int, ...]
    a: tuple[int, ...] = None  # type: ignore[assignment]
    t: int = 3
    heads: tuple[int, ...] = None  # type: ignore[assignment]
    skip: bool = False
    parametrization: str = "weights"
    coordinate_system: str = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", tuple(self.d))
        object.__setattr__(self, "a", tuple(self.d[:-1] if self.a is None else self.a))
        object.__setattr__(self, "heads", tuple((1,) * self.layers if self.heads is None else self.heads))
        check_deep(self)
        if self.coordinate_system is None:
            object.__setattr__(self, "coordinate_system", self._default_system)
        check_choice(self.family, "coordinates", self.coordinate_system, COORDINATE_SYSTEMS)
        if self.coordinate_system == "segre" and self._default_system != "segre":
            raise SpecError(
                "deep-lightning: Segre coordinates need one layer, no skip connections and t >= 2;"
                " use coordinates=full",
                argument="coordinates",
            )

    @property
    def _default_system(self) -> str:
        return "segre" if self.layers == 1 and not self.skip and self.t > 1 else "full"

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> DeepLightning:
        arguments.only("d", "a", "t", "heads", "skip", "parametrization", "coordinates")
        widths = arguments.integers("d")
        return cls(
            d=widths,
            a=arguments.per_layer("a", len(widths) - 1, widths[:-1]),
            t=arguments.integer("t", 3),
            heads=arguments.per_layer("heads", len(widths) - 1, (1,) * (len(widths) - 1)),
            skip=arguments.flag("skip"),
            parametrization=arguments.word("parametrization", PARAMETRIZATIONS) or "weights",
            coordinate_system=arguments.word("coordinates", COORDINATE_SYSTEMS),  # type: ignore[arg-type]
        )

    @property
    def layers(self) -> int:
        return len(self.d) - 1

    @property
    def multi_head(self) -> bool:
        return max(self.heads) > 1

    @property
    def spec(self) -> str:
        return written(
            self.family,
            d=self.d,
            a=self.a,
            t=self.t,
            heads=None if not self.multi_head else self.heads[0] if len(set(self.heads)) == 1 else self.heads,
            skip=True if self.skip else None,
            parametrization=None if self.parametrization == "weights" else self.parametrization,
            coordinates=None if self.coordinate_system == self._default_system else self.coordinate_system,
        )

    @property
    def title(self) -> str:
        by = {"weights": "(Q, K, V)", "attention": "(A, V)", "virtual": "virtual weights (M, L)"}
        heads = f", heads={list(self.heads)}" if self.multi_head else ""
        sizes = f"d={list(self.d)}, a={list(self.a)}, t={self.t}{heads}"
        skip = " with skip connections" if self.skip else ""
        return f"deep lightning self-attention by {by[self.parametrization]}, {sizes}{skip}"

    # -- source -------------------------------------------------------------------------------------

    def head_axis(self, layer: int) -> Shape:
        """The leading axis of the weights of a layer (from 1): empty for a single head."""
        return (self.heads[layer - 1],) if self.heads[layer - 1] > 1 else ()

    @property
    def parameters(self) -> dict[str, Shape]:
        if self.parametrization == "virtual":
            square: Shape = (self.d[0], self.d[0])
            return {f"M{i}": square for i in range(1, self.layers + 1)} | {"L": (self.d[-1], self.d[0])}
        shapes: dict[str, Shape] = {}
        for i in range(1, self.layers + 1):
            before, after, heads = self.d[i - 1], self.d[i], self.head_axis(i)
            if self.parametrization == "attention":
                shapes[f"A{i}"] = (*heads, before, before)
            else:
                shapes[f"Q{i}"] = shapes[f"K{i}"] = (*heads, self.a[i - 1], before)
            shapes[f"V{i}"] = (*heads, after, before)
        return shapes

    @property
    def constrained(self) -> bool:
        """Whether the weights satisfy equations: ranks of A_i, or M_i and L factoring through narrow
        layers.
        """
        if self.parametrization == "virtual":
            return any(n < self.d[0] for n in (*self.d[1:-1], *self.a))
        return self.parametrization == "attention" and any(
            rank < width for rank, width in zip(self.a, self.d[:-1], strict=True)
        )

    @property
    def free(self) -> DeepLightning:
        return replace(self, parametrization="weights") if self.constrained else self

    @property
    def parameter_dim(self) -> int:
        """Dimension of the parameter space.

        For virtual weights through narrow layers it is the rank of (A, V) -> (M, L) at a random point over
        F_p.
        """
        if not self.constrained:
            return self.parameter_count
        if self.parametrization == "virtual":
            return virtual_dim(replace(self, parametrization="weights"))
        return sum(
            self.heads[i] * (attention_dim(self.a[i], self.d[i]) + self.d[i] * self.d[i + 1])
            for i in range(self.layers)
        )

    @property
    def parameter_dim_proved(self) -> bool:
        return not (self.constrained and self.parametrization == "virtual")

    def draw_weights(self, rng: np.random.Generator, p: int) -> dict[str, np.ndarray]:
        if self.free is self:
            return NetworkModel.draw_weights(self, rng, p)
        drawn = {name: Mod(value, p) for name, value in self.free.draw_weights(rng, p).items()}
        return {name: value.values for name, value in self._from_free(drawn).items()}

    def draw_real_weights(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        if self.free is self:
            return NetworkModel.draw_real_weights(self, rng)
        return self._from_free(self.free.draw_real_weights(rng))

    def _from_free(self, weights: Weights) -> dict[str, Any]:
        """The weights of this parametrization from (Q, K, V)."""
        return from_queries(weights, self.layers, virtual=self.parametrization == "virtual")

    # -- target -------------------------------------------------------------------------------------

    @property
    def input_shape(self) -> Shape:
        return (self.d[0], self.t)

    @property
    def output_shape(self) -> Shape:
        return (self.d[-1], self.t)

    @property
    def degrees(self) -> tuple[int, ...]:
        top = 3**self.layers
        return tuple(range(1, top + 1, 2)) if self.skip else (top,)

    def attention(self, weights: Mapping[str, Any], layer: int = 1) -> Any:
        """The attention matrix (or matrices, one a head) of a layer, from 1."""
        if self.parametrization == "attention":
            return weights[f"A{layer}"]
        return weights[f"K{layer}"].mT @ weights[f"Q{layer}"]

    def scores(self, weights: Mapping[str, Any], layer: int, X: Any) -> Any:
        """The matrix X^T A X of a layer, from 1; by (Q, K) as (K X)^T (Q X)."""
        if self.parametrization == "attention":
            return X.T @ (weights[f"A{layer}"] @ X)
        return (weights[f"K{layer}"] @ X).mT @ (weights[f"Q{layer}"] @ X)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        if self.parametrization == "virtual":
            return equation_11([weights[f"M{i + 1}"] for i in range(self.layers)], weights["L"], inputs)
        X = inputs
        for i, heads in enumerate(self.heads, start=1):
            output = weights[f"V{i}"] @ (X @ self.scores(weights, i, X))
            output = output.sum(axis=0) if heads > 1 else output
            X = X + output if self.skip else output
        return X

    @property
    def coordinate_count(self) -> int:
        return segre_count(*self.d[:2]) if self.coordinate_system == "segre" else self.ambient_dim

    @property
    def coordinate_program(self) -> Program | None:
        if self.coordinate_system == "full":
            return None
        return segre_program(self, self._first_attention, "L" if self.parametrization == "virtual" else "V1")

    def _first_attention(self, weights: Mapping[str, Any]) -> Any:
        return weights["M1"] if self.parametrization == "virtual" else self.attention(weights)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        if self.coordinate_system == "segre":
            return segre_names(self.d[0], self.d[1])
        return NetworkModel.coordinate_names.fget(self)  # type: ignore[attr-defined,no-any-return]

    # -- the Macaulay2 twin -------------------------------------------------------------------------

    @property
    def m2_partial(self) -> str:
        return "_deep_lightning"

    @property
    def m2_parameters(self) -> dict[str, object]:
        if self.parametrization == "virtual" and self.constrained:
            raise InputError(
                f"{self.spec}: virtual weights through narrow layers have no simple equations;"
                " use parametrization=weights, which has the same image"
            )
        return {
            "widths": self.d,
            "ranks": self.a,
            "t": self.t,
            "heads": self.heads,
            "skip": self.skip,
            "parametrization": self.parametrization,
            "coordinateSystem": self.coordinate_system,
        }

    # -- what is known ------------------------------------------------------------------------------

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return deep_symmetries(self)

    @property
    def gauge(self) -> Held:
        """The slice of :mod:`m2bridge.models.attention`, for one head a layer and no skip connections."""
        if self.parametrization != "weights" or self.skip or self.multi_head:
            return NOTHING_HELD
        return attention_gauge(self.d, self.a)

    @property
    def attention_sizes(self) -> AttentionSizes | None:
        """Sizes of the network by (Q, K, V) with the same image; None with several heads or skip connections."""
        return None if self.skip or self.multi_head else AttentionSizes(self.d, self.a, self.t)

    def samples_needed(self) -> int | None:
        sizes = self.attention_sizes
        return (
            sizes.samples_needed(self.gauge, analytic=False)
            if sizes and self.parametrization == "weights"
            else None
        )

    def real_point(self, samples: int, seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        sizes = self.attention_sizes
        if sizes is None or self.parametrization != "weights":
            return NetworkModel.real_point(self, samples, seed)
        weights, inputs = lightning_point(sizes, self.gauge, samples, seed)
        return weights, {"X": inputs}

    @property
    def grading(self) -> np.ndarray:
        return deep_gradings(self)[0]

    @property
    def parameter_grading(self) -> np.ndarray:
        return deep_gradings(self)[1]

    @property
    def formula(self) -> Formula | None:
        return deep_formula(self)

    @property
    def dimension_bound(self) -> Formula:
        return deep_bound(self)
