"""Self-attention with the options that people use: causal masks, Q = K, powers of the scores, positions, softmax.

``attention(d=[3,3,3],a=[2,2],t=3,causal=true)``. Without any of these options it is the family ``deep-lightning`` or ``softmax``,
of which more is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import NotPolynomialError, SpecError
from m2bridge.models.attention_known import PAPER, attention_dim
from m2bridge.models.base import Formula, Model, Shape, Symmetry, known
from m2bridge.models.lightning import DeepLightning, check_layers
from m2bridge.models.network import NetworkModel
from m2bridge.models.softmax import Softmax
from m2bridge.models.spec import WRITTEN, Arguments, check_sizes, per_layer, written

HIGHEST_DEGREE = 10_000


def attended(scores: Any, values: Any, *, causal: bool, r: int = 1, softmax: bool = False) -> Any:
    """The values mixed by scores[j, i], what token i takes of token j; by softmax token i asks with row i, as in Equation 15.

    Causal: token i sees the tokens up to itself.
    """
    t = scores.shape[-1]
    if not softmax:
        mixing = scores**r
        return values @ (mixing * np.triu(np.ones((t, t), dtype=np.int64)) if causal else mixing)
    kernel = np.exp(scores)
    kernel = kernel * np.tril(np.ones((t, t), dtype=np.int64)) if causal else kernel
    return values @ (kernel / kernel.sum(axis=-1, keepdims=True)).mT


def degree_sums(degrees: Iterable[int], n: int) -> set[int]:
    """The degrees of products of n functions with the given degrees.

    >>> sorted(degree_sums({0, 1}, 3)), sorted(degree_sums({1, 3}, 3))
    ([0, 1, 2, 3], [3, 5, 7, 9])
    """
    steps, found = set(degrees), {0}
    for _ in range(n):
        found = {a + b for a in found for b in steps}
    if max(found) > HIGHEST_DEGREE:
        raise SpecError(f"functions of degree {max(found)} are of too high a degree")
    return found


def head_symmetries(
    model: Model, layer: int, *, size: int, heads: int, r: int, softmax: bool
) -> list[Symmetry]:
    """GL(a) on Q and K of each head, and for polynomial scores the scaling of A = K^T Q against V."""
    shapes, mark = model.parameters, str(layer)
    Q, K, V = (letter + mark for letter in "QKV")
    tied, several = Q not in shapes, heads > 1
    copies = ("*",) if several else ()
    found = []
    if not tied:
        found.append(
            Symmetry(
                name=f"(C^-T {Q}, C {K})",
                citation=f"{PAPER}, Lemma 3.1",
                kind="gl",
                size=size,
                axes={Q: (*copies, -1, 0), K: (*copies, 1, 0)},
                shapes=shapes,
            )
        )
    if not softmax:
        power = -2 * r if tied else -r
        found.append(
            Symmetry(
                name=f"(s {K if tied else Q}, {V} / s^{-power})" + (" in each head" if several else ""),
                citation="homogeneity of the scores",
                kind="torus" if several else "scaling",
                size=heads,
                axes={K if tied else Q: (1, 0, 0), V: (power, 0, 0)}
                if several
                else {K if tied else Q: (1,), V: (power,)},
                shapes=shapes,
            )
        )
    return found


@dataclass(frozen=True, kw_only=True)
class AttentionVariant(NetworkModel):
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
    >>> model.spec, model.parameter_count, model.formula.value
    ('attention(d=[3,2],a=[2],t=2,causal=true)', 18, 13)
    """

    family: ClassVar[str] = "attention"
    summary: ClassVar[str] = (
        "self-attention with options: causal=, tied= (Q = K), r= (scores^r), positions=, softmax=, heads=, skip="
    )
    example: ClassVar[str] = "attention(d=[3,3],a=2,t=3,causal=true)"

    d: tuple[int, ...]
    a: tuple[int, ...] = None  # type: ignore[assignment]
    t: int = 3
    heads: tuple[int, ...] = None  # type: ignore[assignment]
    skip: bool = False
    causal: bool = False
    tied: bool = False
    r: int = 1
    positions: bool = False
    softmax: bool = False

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Model:  # type: ignore[override]
        """The family that knows most about these arguments."""
        found = arguments.built(cls)
        plain = cls(
            d=found.d, a=found.a, t=found.t, heads=found.heads, skip=found.skip, softmax=found.softmax
        )
        if found != plain or (found.softmax and (found.skip or set(found.heads) != {1})):
            return found
        if found.softmax:
            return Softmax(d=found.d, a=found.a, t=found.t)
        return DeepLightning(d=found.d, a=found.a, t=found.t, heads=found.heads, skip=found.skip)

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", tuple(self.d))
        object.__setattr__(self, "a", per_layer(self.a, self.layers, self.d[:-1]))
        object.__setattr__(self, "heads", per_layer(self.heads, self.layers, (1,) * self.layers))
        check_layers(self, heads=self.heads)  # type: ignore[arg-type]
        check_sizes(self.family, r=self.r)
        if self.skip and len(set(self.d)) > 1:
            raise SpecError(
                f"attention: skip connections need equal widths, not {list(self.d)}", argument="d"
            )
        if self.softmax and self.r > 1:
            raise SpecError("attention: softmax scores have no power; leave r out", argument="r")
        _ = self.softmax or self.degrees

    @property
    def layers(self) -> int:
        return len(self.d) - 1

    @property
    def widths(self) -> tuple[int, ...]:
        return self.d

    @property
    def ranks(self) -> tuple[int, ...]:
        return self.a

    @property
    def polynomial(self) -> bool:  # type: ignore[override]
        return not self.softmax

    @property
    def spec(self) -> str:
        heads = None if set(self.heads) == {1} else self.heads
        words = ("skip", "causal", "tied", "positions", "softmax")
        options = {word: True for word in words if getattr(self, word)}
        powers = None if self.r == 1 else self.r
        return written(self.family, d=self.d, a=self.a, t=self.t, heads=heads, r=powers, **options)

    @property
    def title(self) -> str:
        words = {"causal": "causal ", "softmax": "softmax "}
        kind = "".join(text for word, text in words.items() if getattr(self, word))
        more = {
            f" of degree {2 * self.r + 1}": self.r > 1,
            " with Q = K": self.tied,
            " with positions": self.positions,
            " with skip connections": self.skip,
        }
        options = ",".join(text for text, there in more.items() if there)
        return f"{kind}self-attention{options}, d={list(self.d)}, a={list(self.a)}, t={self.t}, heads={list(self.heads)}"

    @property
    def parameters(self) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {"P": (self.d[0], self.t)} if self.positions else {}
        for i in range(1, self.layers + 1):
            lead = (self.heads[i - 1],) if self.heads[i - 1] > 1 else ()
            for letter in "KV" if self.tied else "QKV":
                rows = self.d[i] if letter == "V" else self.a[i - 1]
                shapes[f"{letter}{i}"] = (*lead, rows, self.d[i - 1])
        return shapes

    @property
    def input_shape(self) -> Shape:
        return (self.d[0], self.t)

    @property
    def output_shape(self) -> Shape:
        return (self.d[-1], self.t)

    @property
    def degrees(self) -> tuple[int, ...]:
        if self.softmax:
            raise NotPolynomialError(f"{self.spec} has no polynomial coordinates")
        found = {0, 1} if self.positions else {1}
        for _ in range(self.layers):
            found = degree_sums(found, 2 * self.r + 1) | (found if self.skip else set())
        return tuple(sorted(found))

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        X = inputs + weights["P"] if self.positions else inputs
        for i in range(1, self.layers + 1):
            K, V = weights[f"K{i}"], weights[f"V{i}"]
            Q = K if self.tied else weights[f"Q{i}"]
            scores = (K @ X).mT @ (Q @ X)
            output = attended(scores, V @ X, causal=self.causal, r=self.r, softmax=self.softmax)
            output = output.sum(axis=0) if self.heads[i - 1] > 1 else output
            X = X + output if self.skip else output
        return X

    @property
    def m2_partial(self) -> str:
        return super().m2_partial if self.softmax else "_attention"

    @property
    def m2_parameters(self) -> dict[str, object]:
        if self.softmax:
            return super().m2_parameters
        sizes = {"widths": self.d, "ranks": self.a, "t": self.t, "heads": self.heads, "skip": self.skip}
        options = {"causal": self.causal, "tied": self.tied, "r": self.r, "withPositions": self.positions}
        return sizes | options | {"degreesThatOccur": self.degrees}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        found = []
        for i, (size, heads) in enumerate(zip(self.a, self.heads, strict=True), start=1):
            found += head_symmetries(self, i, size=size, heads=heads, r=self.r, softmax=self.softmax)
        return (*found, *(self._between(i) for i in range(1, self.layers) if not self.skip))

    def _between(self, i: int) -> Symmetry:
        """X -> C X after layer i, undone in layer i + 1."""
        axes: dict[str, tuple[Any, ...]] = {f"V{i}": (*(0,) * (self.heads[i - 1] > 1), 1, 0)}
        lead = (0,) * (self.heads[i] > 1)
        axes |= {f"{letter}{i + 1}": (*lead, 0, -1) for letter in ("KV" if self.tied else "QKV")}
        return Symmetry(
            name=f"change of basis between layers {i} and {i + 1}",
            citation=f"{PAPER}, Equation 9",
            kind="gl",
            size=self.d[i],
            axes=axes,
            shapes=self.parameters,
        )

    @property
    def formula(self) -> Formula | None:
        """One causal layer with one head has the dimension of the layer without a mask; nothing else is known."""
        others = (self.tied, self.positions, self.skip, self.r > 1, self.layers > 1, self.heads[0] > 1)
        if any(others) or not self.causal:
            return None
        d, dp, a = self.d[0], self.d[1], self.a[0]
        value, tokens = attention_dim(a, d) + d * dp, ("t >= 2", self.t >= 2)
        if self.softmax:
            return known(value, "token 1 shows V, and token 2 shows x_2^T A (x_2 - x_1)", tokens)
        return known(
            value - 1,
            f"{PAPER}, Corollary 3.3: token 2 has its coordinates, the terms of V x_1 x_1^T A x_2",
            tokens,
            ("d, d' >= 2 or d, a >= 2", d >= 2 and (dp >= 2 or a >= 2)),
        )


NEW = ("causal", "tied", "r", "positions")


def with_options(arguments: Arguments, family: type[Softmax] | type[DeepLightning]) -> Model:
    """A deep attention network; one of :class:`AttentionVariant` if the spec has options that only it knows."""
    known_options = [WRITTEN.get(item.name, item.name) for item in fields(family)]
    if not any(key in arguments.values for key in NEW):
        if not arguments.values:  # asked for the names of all arguments
            arguments.only(*known_options, *NEW)
        return family.from_arguments(arguments)
    if family is Softmax:
        arguments = replace(arguments, values=arguments.values | {"softmax": True})
    return AttentionVariant.from_arguments(arguments)
