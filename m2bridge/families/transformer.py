"""Attention as people use it: with masks, Q = K, powers of the scores, positions; in transformer blocks.

``attention(d=[3,3,3],a=[2,2],t=3,causal=true)``. Without any of its options it is the family ``deep-lightning`` or ``softmax``,
of which more is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from math import comb
from typing import Any, ClassVar

from m2bridge.errors import SpecError
from m2bridge.families.attention import AttentionNetwork
from m2bridge.families.attention_knowledge import (
    HOMOGENEOUS_SCORES,
    attention_dim,
    layer_dim,
    layer_symmetries,
)
from m2bridge.families.base import Model, Shape
from m2bridge.families.knowledge import Formula, Knowledge, cited
from m2bridge.families.lightning import DeepLightning
from m2bridge.families.softmax import Softmax
from m2bridge.families.spec import WRITTEN, Arguments
from m2bridge.families.symmetries import Symmetry

HIGHEST_DEGREE = 10_000


class OptionalAttention(AttentionNetwork):
    """Attention with options, about which the paper says little."""

    @property
    def layer_degree(self) -> int:
        """The degree of what a layer of polynomial attention computes."""
        return 2 * self.power + 1

    def check(self) -> None:
        super().check()
        degree = self.layer_degree**self.layers
        if not self.softmax and degree > HIGHEST_DEGREE:
            raise SpecError(f"functions of degree {degree} are of too high a degree")

    @property
    def m2_parameters(self) -> dict[str, object]:
        return super().m2_parameters | {"degreesThatOccur": self.degrees}


@dataclass(frozen=True, kw_only=True)
class AttentionVariant(OptionalAttention):
    """Layers X -> sum over heads of V X w(X^T A X), A = K^T Q, with options.

    Attributes
    ----------
    d, a, t, heads, skip: as for deep lightning attention.
    causal: token i sees tokens 1, ..., i only. tied: Q = K.
    r: each score is raised to this power, so that a layer has degree 2 r + 1.
    positions: a matrix P of weights is added to the input. softmax: scores are normalised exponentials (analytic).

    Examples
    --------
    >>> model = AttentionVariant(d=(3, 2), a=(2,), t=2, causal=True)
    >>> model.spec, model.parameter_count, model.knowledge.formula.value
    ('attention(d=[3,2],a=[2],t=2,causal=true)', 18, 13)
    """

    family = "attention"
    summary = "self-attention with options: causal=, tied= (Q = K), r= (scores^r), positions=, softmax=, heads=, skip="
    example = "attention(d=[3,3],a=2,t=3,causal=true)"

    d: tuple[int, ...]
    a: tuple[int, ...] = None  # type: ignore[assignment]
    t: int = 3
    heads: tuple[int, ...] = None  # type: ignore[assignment]
    r: int = 1
    skip: bool = False
    causal: bool = False
    tied: bool = False
    positions: bool = False
    softmax: bool = False

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Model:  # type: ignore[override]
        """The family that knows most about these arguments."""
        found = arguments.built(cls)
        if found.causal or found.tied or found.positions or found.r > 1:
            return found
        sizes = {"d": found.d, "a": found.a, "t": found.t}
        if not found.softmax:
            return DeepLightning(**sizes, heads=found.heads, skip=found.skip)  # type: ignore[arg-type]
        return found if found.skip or found.multi_head else Softmax(**sizes)  # type: ignore[arg-type]

    def check(self) -> None:
        self.need(self.r == 1 or not self.softmax, "r", "softmax scores have no power; leave r out")
        super().check()

    @property
    def power(self) -> int:  # type: ignore[override]
        return self.r

    @property
    def title(self) -> str:
        kind = "".join(f"{word} " for word in ("causal", "softmax") if getattr(self, word))
        more = {
            f" of degree {2 * self.r + 1}": self.r > 1,
            " with Q = K": self.tied,
            " with positions": self.positions,
            " with skip connections": self.skip,
        }
        options = ",".join(text for text, there in more.items() if there)
        return f"{kind}self-attention{options}, d={list(self.d)}, a={list(self.a)}, t={self.t}, heads={list(self.heads)}"


NEW = ("causal", "tied", "r", "positions")


def with_options(arguments: Arguments, family: type[Softmax] | type[DeepLightning]) -> Model:
    """A deep attention network; one of :class:`AttentionVariant` if the spec has options that only it knows."""
    known_options = [WRITTEN.get(item.name, item.name) for item in fields(family)]
    if not any(key in arguments.values for key in NEW):
        if not arguments.values:  # asked for the names of all arguments
            arguments.only(*known_options, *NEW)
        return family.from_arguments(arguments)
    return AttentionVariant.from_arguments(
        arguments.changed(softmax=True) if family is Softmax else arguments
    )


@dataclass(frozen=True, kw_only=True)
class Transformer(OptionalAttention):
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

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.d,) * (self.layers + 1)

    @property
    def ranks(self) -> tuple[int, ...]:
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

    @property
    def layer_degree(self) -> int:
        return super().layer_degree * self.r

    def layer(self, weights: Mapping[str, Any], i: int, X: Any) -> Any:
        Y = super().layer(weights, i, X)
        return Y + weights[f"U{i}"] @ (weights[f"W{i}"] @ Y) ** self.r

    @cached_property
    def knowledge(self) -> Knowledge:
        return Knowledge(symmetries=self._symmetries(), dimension_bound=self._dimension_bound())

    def _symmetries(self) -> tuple[Symmetry, ...]:
        """Those of the attention of each block, and scalings of its neurons."""
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
        """The sum over blocks of what attention and perceptron can depend on; a perceptron is d forms of degree r."""
        d, r = self.d, self.r
        attention = layer_dim(d, d, self.a, self.heads, self.t)
        if self.softmax:  # with one token it is the sum of the V_h
            attention = d * d if self.t == 1 else self.heads * (attention_dim(self.a, d) + d * d)
        perceptrons = self.layers * min(2 * d * self.hidden - self.hidden, d * comb(d + r - 1, r))
        if r == 1:
            # X -> X + U W X may change places with attention by other weights: together X plus a matrix of bounded rank
            perceptrons = min(perceptrons, attention_dim(self.layers * self.hidden, d))
        positions = d * self.t if self.positions else 0
        return cited(
            positions + self.layers * attention + perceptrons, "what each layer's function can depend on"
        )
