"""Transformer blocks: attention and perceptrons with skip connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any, ClassVar

from m2bridge.errors import SpecError
from m2bridge.families.attention import HIGHEST_DEGREE, AttentionNetwork
from m2bridge.families.attention_knowledge import (
    HOMOGENEOUS_SCORES,
    attention_dim,
    layer_dim,
    layer_symmetries,
)
from m2bridge.families.base import Shape
from m2bridge.families.knowledge import Formula, Knowledge, cited
from m2bridge.families.symmetries import Symmetry


@dataclass(frozen=True, kw_only=True)
class Transformer(AttentionNetwork):
    """Blocks of attention and of a perceptron, each with a skip connection, without normalisation layers.

    X -> Y = X + sum over heads of V X w((K X)^T Q X), then Y + U s(W Y), s(y) = y^r, token by token.

    Attributes
    ----------
    d: rows of a token. a: rows of Q and K; d unless given. t: number of tokens. heads: heads of each block.
    hidden: neurons of each perceptron; d unless given. r: exponent of its activation. layers: number of blocks.
    causal, positions, softmax: as for ``attention``.

    Examples
    --------
    >>> model = Transformer(d=2, a=1, t=2)
    >>> model.spec, model.parameter_count, model.degrees
    ('transformer(d=2,a=1,t=2,hidden=2,r=2,layers=1)', 16, (1, 2, 3, 4, 6))
    """

    family = "transformer"
    summary = (
        "blocks of attention, skip, perceptron x^r, skip; layers=, heads=, causal=, positions=, softmax="
    )
    example = "transformer(d=2,a=1,t=2,hidden=2,r=2,layers=1,causal=true)"
    m2_names: ClassVar[Mapping[str, str]] = {"positions": "withPositions", "softmax": ""}
    unwritten: ClassVar[tuple[str, ...]] = ("heads",)
    skip = True

    d: int
    a: int = None  # type: ignore[assignment]
    t: int = 2
    heads: int = 1
    hidden: int = None  # type: ignore[assignment]
    r: int = 2
    layers: int = 1
    causal: bool = False
    positions: bool = False
    softmax: bool = False

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {"a": self.d, "hidden": self.d}

    def check(self) -> None:
        super().check()
        degree = (3 * self.r) ** self.layers
        if not self.softmax and degree > HIGHEST_DEGREE:
            raise SpecError(f"the degree {degree} of the functions is too large (at most {HIGHEST_DEGREE})")

    @property
    def m2_parameters(self) -> dict[str, object]:
        return super().m2_parameters | {"degreesThatOccur": self.degrees}

    @property
    def is_plain(self) -> bool:
        return False

    @property
    def widths(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.d,) * (self.layers + 1)

    @property
    def ranks(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.a,) * self.layers

    @property
    def title(self) -> str:
        kind = "".join(f"{word} " for word in ("causal", "softmax") if getattr(self, word))
        sizes = f"d={self.d}, a={self.a}, t={self.t}, heads={self.heads}, hidden={self.hidden}, x^{self.r}"
        return f"{kind}transformer, {self.layers} blocks, {sizes}"

    def layer_weights(self, layer: int) -> dict[str, Shape]:
        perceptron: dict[str, Shape] = {
            f"W{layer}": (self.hidden, self.d),
            f"U{layer}": (self.d, self.hidden),
        }
        return super().layer_weights(layer) | perceptron

    def layer(self, weights: Mapping[str, Any], i: int, X: Any) -> Any:
        Y = super().layer(weights, i, X)
        return Y + weights[f"U{i}"] @ (weights[f"W{i}"] @ Y) ** self.r

    @cached_property
    def knowledge(self) -> Knowledge:
        return Knowledge(symmetries=self._symmetries(), dimension_bound=self._dimension_bound())

    def _symmetries(self) -> tuple[Symmetry, ...]:
        """Return the symmetries of the attention of each block, and the scalings of its neurons."""
        blocks = (
            (*layer_symmetries(self, i, HOMOGENEOUS_SCORES), self._neurons(i)) for i in self.layer_numbers
        )
        return tuple(symmetry for block in blocks for symmetry in block)

    def _neurons(self, i: int) -> Symmetry:
        return Symmetry(
            name=f"scaling of the neurons of block {i}",
            citation="homogeneity of the activation",
            kind="gl" if self.r == 1 else "torus",
            size=self.hidden,
            axes={f"W{i}": (1, 0), f"U{i}": (0, -self.r)},
            shapes=self.parameters,
        )

    def _dimension_bound(self) -> Formula:
        """Return the sum over blocks of bounds for attention and perceptron; a perceptron is d forms of degree r."""
        d, r = self.d, self.r
        attention = layer_dim(d, d, self.a, self.heads, self.t)
        if self.softmax:  # with one token it is the sum of the V_h
            attention = d * d if self.t == 1 else self.heads * (attention_dim(self.a, d) + d * d)
        perceptrons = self.layers * min(2 * d * self.hidden - self.hidden, d * comb(d + r - 1, r))
        if r == 1:
            # X -> X + U W X commutes with attention after a change of its weights: together X plus a matrix of bounded rank
            perceptrons = min(perceptrons, attention_dim(self.layers * self.hidden, d))
        positions = d * self.t if self.positions else 0
        return cited(positions + self.layers * attention + perceptrons, "sum of upper bounds for the layers")
