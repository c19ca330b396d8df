"""Transformer blocks without normalisation layers: attention with a skip, then a polynomial perceptron with a skip.

X -> Y = X + sum over heads of V X w((K X)^T Q X), then Y + U s(W Y), s(y) = y^r, token by token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

from m2bridge.errors import NotPolynomialError
from m2bridge.models.attention_known import attention_dim
from m2bridge.models.attention_variants import attended, degree_sums, head_symmetries
from m2bridge.models.base import Formula, Shape, Symmetry, known
from m2bridge.models.network import NetworkModel
from m2bridge.models.spec import check_sizes, written


@dataclass(frozen=True, kw_only=True)
class Transformer(NetworkModel):
    """Blocks of attention and of a perceptron, each with a skip connection.

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

    family: ClassVar[str] = "transformer"
    summary: ClassVar[str] = (
        "blocks of attention, skip, perceptron x^r, skip; layers=, heads=, causal=, positions=, softmax="
    )
    example: ClassVar[str] = "transformer(d=2,a=1,t=2,hidden=2,r=2,layers=1,causal=true)"

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

    def __post_init__(self) -> None:
        for name in ("a", "hidden"):
            object.__setattr__(self, name, self.d if getattr(self, name) is None else getattr(self, name))
        names = ("d", "a", "t", "heads", "hidden", "r", "layers")
        check_sizes(self.family, **{name: getattr(self, name) for name in names})
        _ = self.softmax or self.degrees

    @property
    def polynomial(self) -> bool:  # type: ignore[override]
        return not self.softmax

    @property
    def spec(self) -> str:
        options = {word: True for word in ("causal", "positions", "softmax") if getattr(self, word)}
        sizes = {"hidden": self.hidden, "r": self.r, "layers": self.layers}
        heads = None if self.heads == 1 else self.heads
        return written(self.family, d=self.d, a=self.a, t=self.t, heads=heads, **sizes, **options)

    @property
    def title(self) -> str:
        kind = "".join(f"{word} " for word in ("causal", "softmax") if getattr(self, word))
        sizes = f"d={self.d}, a={self.a}, t={self.t}, heads={self.heads}, hidden={self.hidden}, x^{self.r}"
        return f"{kind}transformer, {self.layers} blocks, {sizes}"

    @property
    def parameters(self) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {"P": (self.d, self.t)} if self.positions else {}
        lead = (self.heads,) if self.heads > 1 else ()
        for i in range(1, self.layers + 1):
            for letter, rows in (("Q", self.a), ("K", self.a), ("V", self.d)):
                shapes[f"{letter}{i}"] = (*lead, rows, self.d)
            shapes |= {f"W{i}": (self.hidden, self.d), f"U{i}": (self.d, self.hidden)}
        return shapes

    @property
    def input_shape(self) -> Shape:
        return (self.d, self.t)

    @property
    def output_shape(self) -> Shape:
        return (self.d, self.t)

    @property
    def degrees(self) -> tuple[int, ...]:
        if self.softmax:
            raise NotPolynomialError(f"{self.spec} has no polynomial coordinates")
        found = {0, 1} if self.positions else {1}
        for _ in range(self.layers):
            found |= degree_sums(found, 3)
            found |= degree_sums(found, self.r)
        return tuple(sorted(found))

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        X = inputs + weights["P"] if self.positions else inputs
        for i in range(1, self.layers + 1):
            Q, K, V, W, U = (weights[f"{letter}{i}"] for letter in "QKVWU")
            output = attended((K @ X).mT @ (Q @ X), V @ X, causal=self.causal, softmax=self.softmax)
            X = X + (output.sum(axis=0) if self.heads > 1 else output)
            X = X + U @ (W @ X) ** self.r
        return X

    @property
    def m2_partial(self) -> str:
        return super().m2_partial if self.softmax else "_transformer"

    @property
    def m2_parameters(self) -> dict[str, object]:
        if self.softmax:
            return super().m2_parameters
        names = ("d", "a", "t", "heads", "hidden", "r", "layers", "causal")
        sizes = {name: getattr(self, name) for name in names}
        return sizes | {"withPositions": self.positions, "degreesThatOccur": self.degrees}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        found = []
        for i in range(1, self.layers + 1):
            found += head_symmetries(self, i, size=self.a, heads=self.heads, r=1, softmax=self.softmax)
            found.append(
                Symmetry(
                    name=f"scaling of the neurons of block {i}",
                    citation="homogeneity of the activation",
                    kind="gl" if self.r == 1 else "torus",
                    size=self.hidden,
                    axes={f"W{i}": (1, 0), f"U{i}": (0, -self.r)},
                    shapes=self.parameters,
                )
            )
        return tuple(found)

    @property
    def dimension_bound(self) -> Formula:
        """The sum over blocks of what attention and perceptron can depend on.

        A perceptron is d forms of degree r in d variables. Lightning attention is the sum over the heads of V_h (x) A_h,
        symmetric in the two places of x_j.
        """
        d, r = self.d, self.r
        attention = self.heads * (attention_dim(self.a, d) + d * d - (not self.softmax))
        attention = attention if self.softmax else min(attention, d * d * comb(d + 1, 2))
        perceptron = min(2 * d * self.hidden - self.hidden, d * comb(d + r - 1, r))
        positions = d * self.t if self.positions else 0
        return known(
            positions + self.layers * (attention + perceptron), "what each layer's function can depend on"
        )
