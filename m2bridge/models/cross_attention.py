"""Lightning cross-attention: tokens X ask, tokens Y answer, Y -> V Y (K Y)^T (Q X).

The network is linear in X and quadratic in Y; its terms are those of one layer of self-attention with two different tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from m2bridge.models.attention_known import PAPER, attention_dim
from m2bridge.models.base import Formula, Shape, Symmetry, known
from m2bridge.models.network import NetworkModel
from m2bridge.models.spec import check_sizes, written


@dataclass(frozen=True, kw_only=True)
class CrossAttention(NetworkModel):
    """(X, Y) -> V Y (K Y)^T Q X.

    Attributes
    ----------
    d, t: rows and number of the tokens X, which give the queries.
    e, s: those of the tokens Y, which give keys and values; d and t unless given.
    dp: rows of the outputs. a: rows of Q and K; d unless given.

    An input is one vector: the tokens of X, then those of Y, one after the other.

    Examples
    --------
    >>> model = CrossAttention(d=2, e=2, dp=2, t=1, s=1)
    >>> model.spec, model.input_shape, model.formula.value
    ('cross-attention(d=2,e=2,dp=2,a=2,t=1,s=1)', (4,), 7)
    """

    family: ClassVar[str] = "cross-attention"
    m2_partial = "_cross_attention"
    summary: ClassVar[str] = "tokens X attend to tokens Y: V Y Y^T K^T Q X"
    example: ClassVar[str] = "cross-attention(d=2,e=3,dp=2,a=2,t=1,s=2)"

    d: int
    dp: int
    e: int = None  # type: ignore[assignment]
    a: int = None  # type: ignore[assignment]
    t: int = 2
    s: int = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name, default in (("e", self.d), ("a", self.d), ("s", self.t)):
            object.__setattr__(self, name, default if getattr(self, name) is None else getattr(self, name))
        check_sizes(self.family, d=self.d, e=self.e, dp=self.dp, a=self.a, t=self.t, s=self.s)

    @property
    def spec(self) -> str:
        return written(self.family, d=self.d, e=self.e, dp=self.dp, a=self.a, t=self.t, s=self.s)

    @property
    def title(self) -> str:
        return f"lightning cross-attention, X {self.d} x {self.t}, Y {self.e} x {self.s}, d'={self.dp}, a={self.a}"

    @property
    def parameters(self) -> dict[str, Shape]:
        return {"Q": (self.a, self.d), "K": (self.a, self.e), "V": (self.dp, self.e)}

    @property
    def input_shape(self) -> Shape:
        return (self.d * self.t + self.e * self.s,)

    @property
    def output_shape(self) -> Shape:
        return (self.dp, self.t)

    @property
    def degrees(self) -> tuple[int, ...]:
        return (3,)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        asking = self.d * self.t
        X = inputs[:asking].reshape(self.t, self.d).T
        Y = inputs[asking:].reshape(self.s, self.e).T
        return weights["V"] @ Y @ ((weights["K"] @ Y).T @ (weights["Q"] @ X))

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {"d": self.d, "e": self.e, "dp": self.dp, "a": self.a, "t": self.t, "s": self.s}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        gl, scaling = {"Q": (-1, 0), "K": (1, 0)}, {"Q": (1,), "V": (-1,)}
        return (
            Symmetry(
                name="(C^-T Q, C K)",
                citation=f"{PAPER}, Lemma 3.1",
                kind="gl",
                size=self.a,
                axes=gl,
                shapes=self.parameters,
            ),
            Symmetry(
                name="(s Q, V / s)",
                citation=f"{PAPER}, Theorem 3.2",
                kind="scaling",
                size=1,
                axes=scaling,
                shapes=self.parameters,
            ),
        )

    @property
    def formula(self) -> Formula:
        """That of one layer of self-attention: the coefficients of y_i y_j x_m are its Segre coordinates."""
        return known(
            attention_dim(self.a, self.d) + self.e * self.dp - 1,
            f"{PAPER}, Corollary 3.3, whose coordinates (Proposition A.5) are those of y_i y_j x_m here",
            ("d = e", self.d == self.e),
            ("d, d' >= 2 or d, a >= 2", self.d >= 2 and (self.dp >= 2 or self.a >= 2)),
        )
