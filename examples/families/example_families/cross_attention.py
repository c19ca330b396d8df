"""Lightning cross-attention: one input attends to another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from m2bridge.families.base import NetworkModel


@dataclass(frozen=True, kw_only=True)
class CrossAttention(NetworkModel):
    """(X, Y) -> V Y (K Y)^T Q X: tokens X give the queries, tokens Y give keys and values.

    An input is one vector: the tokens of X, then those of Y, one after the other.

    Attributes
    ----------
    d, t: width and number of the tokens X. e, s: those of the tokens Y; d and t unless given.
    dp: width of the outputs. a: rows of Q and K; d unless given.
    """

    family = "cross-attention"
    summary = "tokens X attend to tokens Y: V Y Y^T K^T Q X"
    example = "cross-attention(d=2,e=3,dp=2,a=2,t=1,s=2)"

    d: int
    e: int = None  # type: ignore[assignment]
    dp: int
    a: int = None  # type: ignore[assignment]
    t: int = 2
    s: int = None  # type: ignore[assignment]

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {"e": self.d, "a": self.d, "s": self.t}

    @property
    def title(self) -> str:
        return f"lightning cross-attention, X {self.d} x {self.t}, Y {self.e} x {self.s}, d'={self.dp}, a={self.a}"

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        return {"Q": (self.a, self.d), "K": (self.a, self.e), "V": (self.dp, self.e)}

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.d * self.t + self.e * self.s,)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        first = self.d * self.t
        X = inputs[:first].reshape(self.t, self.d).T
        Y = inputs[first:].reshape(self.s, self.e).T
        return weights["V"] @ Y @ ((weights["K"] @ Y).T @ (weights["Q"] @ X))
