"""Lightning self-attention, X -> V X X^T A X with A = K^T Q: one layer, and deep networks with heads and skip connections.

Reference: Henry, Marchetti, Kohn, *Geometry of Lightning Self-Attention*, arXiv:2408.17221, Definitions 1 and 2. The printed
sizes of Q_i and K_i in Definition 2 (and with them the exponent in Equation 5) are misprints: Q_i and K_i are a_i x d_{i-1}, so
that there are sum d_{i-1} (2 a_i + d_i) weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import InputError, SpecError
from m2bridge.models.attention import Attention
from m2bridge.models.attention_known import layers_formula, lightning_formula, source_grading, target_grading
from m2bridge.models.attention_points import lightning_point
from m2bridge.models.base import Formula
from m2bridge.models.network import NetworkModel
from m2bridge.models.segre import segre_count, segre_names, segre_program
from m2bridge.models.spec import check_choice, check_sizes, per_layer, written
from m2bridge.programs.program import Program


class LightningNetwork(Attention, NetworkModel):
    """What one layer and several have in common: coordinates of polynomial functions, and what is known of them."""

    coordinate_system: str
    parametrizations: ClassVar[tuple[str, ...]] = ("weights", "attention", "virtual")

    def _check_options(self) -> None:
        """Complete the options, and refuse those that are not known or do not fit."""
        default = self._default_system
        if self.coordinate_system is None:
            object.__setattr__(self, "coordinate_system", default)
        check_choice(self.family, "parametrization", self.parametrization, self.parametrizations)
        check_choice(self.family, "coordinates", self.coordinate_system, ("segre", "full"))
        if self.coordinate_system == "segre" and default != "segre":
            raise SpecError(
                f"{self.family}: Segre coordinates compare two tokens of one layer: they need t >= 2, one layer and no skip "
                "connections; use coordinates=full",
                argument="coordinates",
            )

    @property
    def _default_system(self) -> str:
        return "segre" if self.layers == 1 and not self.skip and self.t > 1 else "full"

    def _spec(self, **sizes: object) -> str:
        return written(
            self.family,
            **sizes,
            parametrization=None if self.parametrization == "weights" else self.parametrization,
            coordinates=None if self.coordinate_system == self._default_system else self.coordinate_system,
        )

    # -- target -------------------------------------------------------------------------------------

    @property
    def degrees(self) -> tuple[int, ...]:
        top = 3**self.layers
        return tuple(range(1, top + 1, 2)) if self.skip else (top,)

    @property
    def coordinate_count(self) -> int:
        return segre_count(*self.widths[:2]) if self.coordinate_system == "segre" else self.ambient_dim

    @property
    def coordinate_program(self) -> Program | None:
        """The Segre coordinates (:mod:`m2bridge.models.segre`); None for all coefficients."""
        return segre_program(self) if self.coordinate_system == "segre" else None

    def tensor_factors(self, weights: Mapping[str, Any]) -> tuple[Any, Any]:
        """A and V of one layer, on which Segre coordinates depend."""
        if self.parametrization == "virtual":
            return weights["M1"], weights["L"]
        return self.attention(weights), weights[self.weight_name("V", 1)]

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        return (
            segre_names(*self.widths[:2]) if self.coordinate_system == "segre" else super().coordinate_names
        )

    # -- what is known ------------------------------------------------------------------------------

    def real_point(self, samples: int, seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        if self.attention_sizes is not self:
            return super().real_point(samples, seed)
        weights, inputs = lightning_point(self, samples, seed)
        return weights, {"X": inputs}

    @property
    def grading(self) -> np.ndarray:
        return target_grading(self)

    @property
    def parameter_grading(self) -> np.ndarray:
        return source_grading(self)

    @property
    def formula(self) -> Formula | None:
        return lightning_formula(self)


@dataclass(frozen=True, kw_only=True)
class Lightning(LightningNetwork):
    """One layer of lightning self-attention.

    Attributes
    ----------
    d, dp: rows of the inputs and of the outputs (dp is the paper's d').
    a: rows of Q and K, so that rk A <= a; d unless given.
    t: number of tokens.
    parametrization: ``weights`` for (Q, K, V), ``attention`` for (A, V) with rk A <= a.
    coordinate_system: ``segre`` for the coordinates of Proposition A.5 (argument ``coordinates`` of the spec), ``full`` for
        all coefficients of all outputs; segre unless t = 1, where it does not determine the function.

    Examples
    --------
    >>> model = Lightning(d=2, dp=1)
    >>> model.spec, model.parameter_count, model.coordinate_count, model.formula.value
    ('lightning(d=2,dp=1,a=2,t=2)', 10, 6, 5)
    """

    family: ClassVar[str] = "lightning"
    m2_partial = "_lightning"
    summary: ClassVar[str] = "one layer of lightning self-attention, V X X^T A X"
    example: ClassVar[str] = "lightning(d=2,dp=1,a=2,t=2)"
    numbered: ClassVar[bool] = False
    parametrizations: ClassVar[tuple[str, ...]] = ("weights", "attention")

    d: int
    dp: int
    a: int = None  # type: ignore[assignment]
    t: int = 2
    parametrization: str = "weights"
    coordinate_system: str = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", self.d if self.a is None else self.a)
        check_sizes(self.family, d=self.d, dp=self.dp, a=self.a, t=self.t)
        self._check_options()

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.d, self.dp)

    @property
    def ranks(self) -> tuple[int, ...]:
        return (self.a,)

    @property
    def attention_rank(self) -> int:
        """The rank of a generic attention matrix, min(a, d)."""
        return min(self.a, self.d)

    @property
    def spec(self) -> str:
        return self._spec(d=self.d, dp=self.dp, a=self.a, t=self.t)

    @property
    def title(self) -> str:
        by = "(Q, K, V)" if self.parametrization == "weights" else "(A, V)"
        return f"lightning self-attention by {by}, d={self.d}, d'={self.dp}, a={self.a}, t={self.t}"

    @property
    def m2_parameters(self) -> dict[str, object]:
        sizes = {"d": self.d, "dp": self.dp, "a": self.a, "t": self.t}
        return sizes | {"parametrization": self.parametrization, "coordinateSystem": self.coordinate_system}


@dataclass(frozen=True, kw_only=True)
class DeepLightning(LightningNetwork):
    """A composition of lightning attention layers.

    Attributes
    ----------
    d: widths d_0, ..., d_l.
    a: rows of Q_i and K_i in each layer; d_{i-1} unless given.
    t: number of tokens.
    heads: number of heads in each layer, whose outputs are added; 1 unless given.
    skip: whether each layer adds its input to its output; needs equal widths.
    parametrization: ``weights`` (Q_i, K_i, V_i), ``attention`` (A_i, V_i), or ``virtual`` (M_i, L) of Equation 8.
    coordinate_system: ``segre`` (one layer without skip connections) or ``full``.

    Weights of a layer with several heads have a leading axis over them.

    Examples
    --------
    >>> model = DeepLightning(d=(3, 3, 3), a=(2, 2))
    >>> model.spec, model.parameter_count, model.formula.value
    ('deep-lightning(d=[3,3,3],a=[2,2],t=3)', 42, 23)
    """

    family: ClassVar[str] = "deep-lightning"
    m2_partial = "_deep_lightning"
    summary: ClassVar[str] = "layers of lightning self-attention; heads=, skip=, parametrization="
    example: ClassVar[str] = "deep-lightning(d=[3,3,3],a=[2,2],t=3)"

    d: tuple[int, ...]
    a: tuple[int, ...] = None  # type: ignore[assignment]
    t: int = 3
    heads: tuple[int, ...] = None  # type: ignore[assignment]
    skip: bool = False
    parametrization: str = "weights"
    coordinate_system: str = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", tuple(self.d))
        object.__setattr__(self, "a", per_layer(self.a, self.layers, self.d[:-1]))
        object.__setattr__(self, "heads", per_layer(self.heads, self.layers, (1,) * self.layers))
        check_layers(self, heads=self.heads)
        if self.skip and len(set(self.d)) > 1:
            raise SpecError(
                f"{self.family}: skip connections need equal widths, not {list(self.d)}", argument="d"
            )
        if self.parametrization == "virtual" and (self.skip or self.multi_head):
            raise SpecError(
                f"{self.family}: virtual weights exist for one head in each layer and no skip connections only",
                argument="parametrization",
            )
        self._check_options()

    @property
    def widths(self) -> tuple[int, ...]:
        return self.d

    @property
    def ranks(self) -> tuple[int, ...]:
        return self.a

    def head_count(self, layer: int) -> int:
        return self.heads[layer - 1]

    @property
    def spec(self) -> str:
        heads = None if not self.multi_head else self.heads[0] if len(set(self.heads)) == 1 else self.heads
        return self._spec(d=self.d, a=self.a, t=self.t, heads=heads, skip=True if self.skip else None)

    @property
    def title(self) -> str:
        by = {"weights": "(Q, K, V)", "attention": "(A, V)", "virtual": "virtual weights (M, L)"}
        heads = f", heads={list(self.heads)}" if self.multi_head else ""
        sizes = f"d={list(self.d)}, a={list(self.a)}, t={self.t}{heads}"
        skip = " with skip connections" if self.skip else ""
        return f"deep lightning self-attention by {by[self.parametrization]}, {sizes}{skip}"

    @property
    def m2_parameters(self) -> dict[str, object]:
        if self.parametrization == "virtual" and self.constrained:
            raise InputError(
                f"{self.spec}: virtual weights through narrow layers have no simple equations;"
                " use parametrization=weights, which has the same image"
            )
        options = {"parametrization": self.parametrization, "coordinateSystem": self.coordinate_system}
        sizes = {"widths": self.d, "ranks": self.a, "t": self.t, "heads": self.heads, "skip": self.skip}
        return sizes | options

    @property
    def dimension_bound(self) -> Formula:
        return layers_formula(self)


def check_layers(model: Attention, **more: tuple[int, ...]) -> None:
    """Refuse sizes that make no network; field `argument` of the error names the culprit."""
    family, layers = model.family, model.layers
    if layers < 1:
        raise SpecError(f"{family}: d lists the widths of at least one layer, such as [3,3]", argument="d")
    check_sizes(family, d=model.widths, a=model.ranks, t=model.t, **more)
    for name, values in {"a": model.ranks, **more}.items():
        if len(values) != layers:
            raise SpecError(f"{family}: {name} has {len(values)} entries for {layers} layers", argument=name)
