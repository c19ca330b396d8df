"""Self-attention networks, lightning and softmax: one forward pass, one source, one gauge slice.

A layer is X -> V_k X w(X^T A_k X) with A_k = K_k^T Q_k; w is the identity for lightning attention and a normalised exponential
for softmax. A network of l layers is not changed by GL(a_k) acting on (Q_k, K_k), by GL(d_k) acting between layers, and in the
lightning case by l scalings (Henry, Marchetti and Kohn, arXiv:2408.17221, section 3.3). These groups move a dense set of
weights onto the slice of :func:`attention_gauge`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.linear.residues import Mod
from m2bridge.models.attention_known import attention_dim, attention_symmetries
from m2bridge.models.base import Model, Shape, Symmetry, Weights
from m2bridge.models.spec import check_sizes, per_layer
from m2bridge.models.virtual import equation_11, virtual_dim, virtual_weights
from m2bridge.programs.points import NOTHING_HELD, Held


class Attention(Model):
    """A network of self-attention layers. A family says what its sizes are called, and what is done with the scores.

    Weights of a layer with several heads have a leading axis over them.
    """

    t: int
    """Number of tokens."""
    parametrization: str
    """``weights`` (Q_i, K_i, V_i), ``attention`` (A_i, V_i), or ``virtual`` (M_i, L) of Equation 8."""
    skip: bool = False
    """Whether each layer adds its input to its output."""
    numbered: ClassVar[bool] = True
    """Whether names of weights end with the number of their layer."""

    @property
    @abstractmethod
    def widths(self) -> tuple[int, ...]:
        """Rows d_0, ..., d_l of the inputs and of the output of each layer."""

    @property
    @abstractmethod
    def ranks(self) -> tuple[int, ...]:
        """Rows a_1, ..., a_l of Q_i and K_i."""

    @property
    def by(self) -> str:
        """What the parametrization is called in titles."""
        names = {"weights": "(Q, K, V)", "attention": "(A, V)", "virtual": "virtual weights (M, L)"}
        return names[self.parametrization]

    def head_count(self, layer: int) -> int:
        """Number of heads of a layer (from 1), whose outputs are added."""
        return 1

    @property
    def multi_head(self) -> bool:
        return any(self.head_count(i) > 1 for i in self.layer_numbers)

    @property
    def layers(self) -> int:
        return len(self.widths) - 1

    @property
    def layer_numbers(self) -> range:
        return range(1, self.layers + 1)

    def weight_name(self, letter: str, layer: int) -> str:
        """The name of a weight of a layer, from 1."""
        return f"{letter}{layer}" if self.numbered else letter

    # -- source -------------------------------------------------------------------------------------

    @cached_property
    def parameters(self) -> dict[str, Shape]:
        d = self.widths
        if self.parametrization == "virtual":
            square: Shape = (d[0], d[0])
            return {f"M{i}": square for i in self.layer_numbers} | {"L": (d[-1], d[0])}
        shapes: dict[str, Shape] = {}
        for i in self.layer_numbers:
            heads = (self.head_count(i),) if self.head_count(i) > 1 else ()
            rows = (
                {"A": d[i - 1]}
                if self.parametrization == "attention"
                else dict.fromkeys("QK", self.ranks[i - 1])
            )
            for letter, count in (rows | {"V": d[i]}).items():
                shapes[self.weight_name(letter, i)] = (*heads, count, d[i - 1])
        return shapes

    @property
    def constrained(self) -> bool:
        """Whether the weights satisfy equations: ranks of A_i, or M_i and L factoring through narrow layers."""
        d = self.widths
        if self.parametrization == "virtual":
            return any(n < d[0] for n in (*d[1:-1], *self.ranks))
        return self.parametrization == "attention" and any(a < n for a, n in zip(self.ranks, d, strict=False))

    @property
    def by_weights(self) -> Self:
        """The network by (Q, K, V) with the same image."""
        return self if self.parametrization == "weights" else replace(self, parametrization="weights")  # type: ignore[type-var]

    @property
    def free(self) -> Self:
        return self.by_weights if self.constrained else self

    @property
    def parameter_dim(self) -> int:
        """Dimension of the parameter space.

        For virtual weights through narrow layers it is the rank of (A, V) -> (M, L) at a random point over F_p.
        """
        if not self.constrained:
            return self.parameter_count
        d = self.widths
        if self.parametrization == "virtual":
            return virtual_dim(self)
        return sum(
            self.head_count(i) * (attention_dim(self.ranks[i - 1], d[i - 1]) + d[i - 1] * d[i])
            for i in self.layer_numbers
        )

    @property
    def parameter_dim_proved(self) -> bool:
        return not (self.constrained and self.parametrization == "virtual")

    def from_weights(self, weights: Weights) -> dict[str, Any]:
        """The weights of this parametrization from (Q_i, K_i, V_i)."""
        A = [
            weights[self.weight_name("K", i)].mT @ weights[self.weight_name("Q", i)]
            for i in self.layer_numbers
        ]
        V = [weights[self.weight_name("V", i)] for i in self.layer_numbers]
        if self.parametrization == "virtual":
            M, L = virtual_weights(A, V)
            return {f"M{i}": M[i - 1] for i in self.layer_numbers} | {"L": L}
        return {
            self.weight_name(letter, i): part[i - 1]
            for i in self.layer_numbers
            for letter, part in (("A", A), ("V", V))
        }

    def draw_weights(self, rng: np.random.Generator, p: int) -> dict[str, np.ndarray]:
        if self.free is self:
            return super().draw_weights(rng, p)
        drawn = {name: Mod(value, p) for name, value in self.free.draw_weights(rng, p).items()}
        return {name: value.values for name, value in self.from_weights(drawn).items()}

    def draw_real_weights(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        drawn = self.free
        return (
            super().draw_real_weights(rng)
            if drawn is self
            else self.from_weights(drawn.draw_real_weights(rng))
        )

    # -- the network --------------------------------------------------------------------------------

    @property
    def input_shape(self) -> Shape:
        return (self.widths[0], self.t)

    @property
    def output_shape(self) -> Shape:
        return (self.widths[-1], self.t)

    def attention(self, weights: Mapping[str, Any], layer: int = 1) -> Any:
        """The attention matrix A = K^T Q (or matrices, one for each head) of a layer, from 1 (Equation 3)."""
        if self.parametrization == "attention":
            return weights[self.weight_name("A", layer)]
        return weights[self.weight_name("K", layer)].mT @ weights[self.weight_name("Q", layer)]

    def scores(self, weights: Mapping[str, Any], layer: int, X: Any) -> Any:
        """The matrix X^T A X of a layer, from 1; by (Q, K) as (K X)^T (Q X)."""
        if self.parametrization == "attention":
            return X.T @ (weights[self.weight_name("A", layer)] @ X)
        return (weights[self.weight_name("K", layer)] @ X).mT @ (weights[self.weight_name("Q", layer)] @ X)

    def mixing(self, scores: Any) -> Any:
        """The matrix that tokens are multiplied with, from the scores; the scores themselves for lightning."""
        return scores

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        if self.parametrization == "virtual":
            return equation_11([weights[f"M{i}"] for i in self.layer_numbers], weights["L"], inputs)
        X = inputs
        for i in self.layer_numbers:
            output = weights[self.weight_name("V", i)] @ (X @ self.mixing(self.scores(weights, i, X)))
            output = output.sum(axis=0) if self.head_count(i) > 1 else output
            X = X + output if self.skip else output
        return X

    # -- what is known ------------------------------------------------------------------------------

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return attention_symmetries(self)

    @property
    def attention_sizes(self) -> Self | None:
        """The network by (Q, K, V) with the same image; None with several heads or skip connections."""
        return None if self.skip or self.multi_head else self.by_weights

    @property
    def _has_slice(self) -> bool:
        return self.attention_sizes is self

    @property
    def gauge(self) -> Held:
        """The slice of :func:`attention_gauge`, for (Q, K, V), one head in each layer and no skip connections."""
        return attention_gauge(self) if self._has_slice else NOTHING_HELD

    def samples_needed(self) -> int | None:
        """A guess of how many inputs show the generic rank; a wrong one costs time, never the answer.

        An input shows at most `rows` * t numbers of `free` unknown weights and of `rows` rows of the last V. With ranks a < t in
        two lightning layers or more, all that later layers see of X_0 is X_0^T K_1^T and Q_1 X_0, so that an input shows
        2 a t - a^2 numbers, and a^2 to the later layers, which have all but the `first` unknowns.
        """
        if not self._has_slice:
            return None
        d, t, held = self.widths, self.t, self.gauge
        rows = min(d[-2:])
        rows = rows if t == 1 else min(rows, max(1, t if self.polynomial else t - 1))
        free = self.parameter_count - held.count - d[-1] * d[-2]
        unknowns = free + rows * d[-2]
        least = unknowns / (rows * t)
        rank = min(*self.ranks, *d[:-1], t)
        if self.polynomial and self.layers >= 2 and rank < t:
            first = sum(
                len(held.free(self.weight_name(k, 1), self.parameters[self.weight_name(k, 1)])) for k in "QKV"
            )
            least = 1.2 * max(unknowns / (2 * rank * t - rank**2), (free - first) / rank**2)
        return max(2, ceil(1.03 * least) + 2)


class DeepAttention(Attention):
    """A network whose widths `d` and ranks `a` are lists."""

    d: tuple[int, ...]
    a: tuple[int, ...]

    def _complete_sizes(self) -> None:
        """Lists for single integers, and a_i = d_{i-1} unless given."""
        object.__setattr__(self, "d", tuple(self.d))
        object.__setattr__(self, "a", per_layer(self.a, self.layers, self.d[:-1]))

    @property
    def widths(self) -> tuple[int, ...]:
        return self.d

    @property
    def ranks(self) -> tuple[int, ...]:
        return self.a


def check_layers(model: Attention, **more: tuple[int, ...]) -> None:
    """Refuse sizes that make no network; field `argument` of the error names the culprit."""
    family, layers = model.family, model.layers
    if layers < 1:
        raise SpecError(f"{family}: d lists the widths of at least one layer, such as [3,3]", argument="d")
    check_sizes(family, d=model.widths, a=model.ranks, t=model.t, **more)
    for name, values in {"a": model.ranks, **more}.items():
        if len(values) != layers:
            raise SpecError(f"{family}: {name} has {len(values)} entries for {layers} layers", argument=name)


@lru_cache(maxsize=4)
def attention_gauge(model: Attention) -> Held:
    """The entries of Q_k, K_k, V_k that are held on the slice, and their values.

    * K_k = [I | *]: a generic K_k has an invertible first block. Where a_k > d_(k-1), the last rows of K_k and Q_k are zero,
      which leaves the set of products K_k^T Q_k unchanged.
    * For lightning one entry of each Q_k is 1: the scalings do that.
    * V_1 = [I | *] and V_2, ..., V_(l-1) = I, when l >= 2, all hidden widths are equal and d_0 is not below them.

    >>> from m2bridge.models import DeepLightning
    >>> attention_gauge(DeepLightning(d=(3, 3, 3), a=(2, 2))).count
    19
    """
    shapes, hidden = model.parameters, model.widths[1:-1]
    bottleneck = len(set(hidden)) == 1 and model.widths[0] >= hidden[0]
    masks: dict[str, np.ndarray] = {}
    values: dict[str, np.ndarray] = {}

    def hold(name: str) -> np.ndarray:
        masks[name] = np.zeros(shapes[name], dtype=bool)
        values[name] = np.zeros(shapes[name], dtype=np.int64)
        return masks[name]

    for k in model.layer_numbers:
        Q, K, V = (model.weight_name(letter, k) for letter in "QKV")
        rank = min(shapes[K])
        hold(Q)[rank:] = True
        if model.polynomial:
            masks[Q][0, 0], values[Q][0, 0] = True, 1
        hold(K)[rank:] = True
        masks[K][:, :rank] = True
        values[K][:rank, :rank] = np.eye(rank, dtype=np.int64)
        if bottleneck and k < model.layers:
            hold(V)[:, : len(masks[V])] = True
            values[V][:] = np.eye(*shapes[V], dtype=np.int64)
    held = [name for name, mask in masks.items() if mask.any()]
    return Held({name: masks[name] for name in held}, {name: values[name] for name in held})
