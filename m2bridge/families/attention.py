"""Self-attention networks of all kinds: the forward pass and the parametrizations.

A layer is X -> V_k X w(X^T A_k X) with A_k = K_k^T Q_k; w is the identity for lightning attention and a normalised exponential
for softmax.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from m2bridge.families.attention_knowledge import attention_dim
from m2bridge.families.base import Constraints, NetworkModel, Shape, Weights
from m2bridge.families.virtual import equation_11, virtual_dim, virtual_weights

HIGHEST_DEGREE = 10_000  # of a network in its inputs; exponents of monomials stay small integers


class AttentionNetwork(NetworkModel):
    """A network of self-attention layers. A family declares which of these attributes are its fields; see :class:`Attention`.

    Weights of a layer with several heads have a leading axis over them. Layers are numbered from 1.
    """

    widths: tuple[int, ...]
    ranks: tuple[int, ...]
    numbered: bool = True
    heads: Any = 1
    """The number of heads, of each layer or of all."""
    t: int
    parametrization: str = "weights"
    skip: bool = False
    causal: bool = False
    tied: bool = False
    positions: bool = False
    softmax: bool = False
    power: int = 1

    @property
    def layers(self) -> int:
        return len(self.widths) - 1

    @property
    def layer_numbers(self) -> range:
        return range(1, self.layers + 1)

    def head_count(self, layer: int) -> int:
        """Return the number of heads of a layer, whose outputs are added."""
        return int(self.heads[layer - 1] if isinstance(self.heads, tuple) else self.heads or 1)

    @property
    def multi_head(self) -> bool:
        return any(self.head_count(i) > 1 for i in self.layer_numbers)

    @property
    def layer_sizes(self) -> list[tuple[int, int, int, int]]:
        """Return rows of the input, of the output, and of Q, and the number of heads, for each layer."""
        heads = map(self.head_count, self.layer_numbers)
        return list(zip(self.widths, self.widths[1:], self.ranks, heads, strict=False))

    @property
    def is_plain(self) -> bool:
        """Return whether the network is one of Henry, Marchetti and Kohn; lightning perhaps with heads and skip connections."""
        if self.causal or self.tied or self.positions or self.power > 1:
            return False
        return not (self.softmax and (self.skip or self.multi_head))

    def check(self) -> None:
        self.need(self.layers >= 1, "d", "d lists the widths of at least one layer, such as [3,3]")
        for name, values in (("a", self.ranks), ("heads", self.heads)):
            count = len(values) if isinstance(values, tuple) else self.layers
            self.need(count == self.layers, name, f"{name} has {count} entries for {self.layers} layers")
        equal = len(set(self.widths)) == 1 or not self.skip
        self.need(equal, "d", f"skip connections need equal widths, not {list(self.widths)}")

    @property
    def by(self) -> str:
        """Return the name of the parametrization in titles."""
        names = {"weights": "(Q, K, V)", "attention": "(A, V)", "virtual": "virtual weights (M, L)"}
        return names[self.parametrization]

    def weight_name(self, letter: str, layer: int) -> str:
        return f"{letter}{layer}" if self.numbered else letter

    @property
    def letters(self) -> str:
        """Return the weights of a layer."""
        return "AV" if self.parametrization == "attention" else "KV" if self.tied else "QKV"

    # -- source -------------------------------------------------------------------------------------

    @cached_property
    def parameters(self) -> dict[str, Shape]:
        d = self.widths
        if self.parametrization == "virtual":
            square: Shape = (d[0], d[0])
            return {f"M{i}": square for i in self.layer_numbers} | {"L": (d[-1], d[0])}
        shapes: dict[str, Shape] = {"P": (d[0], self.t)} if self.positions else {}
        for i in self.layer_numbers:
            shapes |= self.layer_weights(i)
        return shapes

    def layer_weights(self, layer: int) -> dict[str, Shape]:
        """Return the names and shapes of the weights of a layer."""
        d, dp, a, heads = self.layer_sizes[layer - 1]
        rows = {"A": d, "Q": a, "K": a, "V": dp}
        stack = (heads,) if heads > 1 else ()
        return {self.weight_name(letter, layer): (*stack, rows[letter], d) for letter in self.letters}

    @property
    def constrained(self) -> bool:
        """Return whether the weights satisfy equations: ranks of A_i, or M_i and L factoring through narrow layers."""
        d = self.widths
        if self.parametrization == "virtual":
            return any(n < d[0] for n in (*d[1:-1], *self.ranks))
        return self.parametrization == "attention" and any(a < n for a, n in zip(self.ranks, d, strict=False))

    @property
    def by_weights(self) -> Self:
        """Return the network by (Q, K, V) with the same image."""
        return self if self.parametrization == "weights" else replace(self, parametrization="weights")  # type: ignore[type-var]

    @property
    def by_attention(self) -> Self:
        """Return the network by (A, V) with the same image."""
        return self if self.parametrization == "attention" else replace(self, parametrization="attention")  # type: ignore[type-var]

    @property
    def by_virtual_weights(self) -> Self:
        """Return the network by virtual weights (M, L) with the same image."""
        return self if self.parametrization == "virtual" else replace(self, parametrization="virtual")  # type: ignore[type-var]

    @cached_property
    def constraints(self) -> Constraints:
        if not self.constrained:
            return Constraints(free=self)
        bounds = {}
        if self.parametrization == "attention":
            sizes = zip(self.layer_numbers, self.ranks, self.widths, strict=False)
            bounds = {self.weight_name("A", i): a for i, a, d in sizes if a < d}
        return Constraints(
            free=self.by_weights,
            from_free=self.from_weights,
            rank_bounds=bounds,
            has_equations=self.parametrization != "virtual",
        )

    @property
    def parameter_dim(self) -> int:
        """Return the dimension of the parameter space.

        For virtual weights through narrow layers it is the rank of (A, V) -> (M, L) at a random point over F_p.
        """
        if not self.constrained:
            return self.parameter_count
        if self.parametrization == "virtual":
            return virtual_dim(self)
        return sum(heads * (attention_dim(a, d) + d * dp) for d, dp, a, heads in self.layer_sizes)

    def from_weights(self, weights: Weights) -> dict[str, Any]:
        """Return the weights of this parametrization from (Q_i, K_i, V_i)."""
        V = [weights[self.weight_name("V", i)] for i in self.layer_numbers]
        A = [self.by_weights.attention(weights, i) for i in self.layer_numbers]
        if self.parametrization == "virtual":
            M, L = virtual_weights(A, V)
            return {f"M{i}": matrix for i, matrix in enumerate(M, start=1)} | {"L": L}
        pairs = [
            (i, letter, matrices) for i in self.layer_numbers for letter, matrices in (("A", A), ("V", V))
        ]
        return {self.weight_name(letter, i): matrices[i - 1] for i, letter, matrices in pairs}

    # -- the network --------------------------------------------------------------------------------

    @property
    def input_shape(self) -> Shape:
        return (self.widths[0], self.t)

    def attention(self, weights: Mapping[str, Any], layer: int = 1) -> Any:
        """Return the attention matrix A = K^T Q (or matrices, one for each head) of a layer (Equation 3)."""
        if self.parametrization == "attention":
            return weights[self.weight_name("A", layer)]
        return weights[self.weight_name("K", layer)].mT @ weights[self.weight_name("Q", layer)]

    def scores(self, weights: Mapping[str, Any], layer: int, X: Any) -> Any:
        """Return the matrix X^T A X of a layer; by (Q, K) as (K X)^T (Q X)."""
        if self.parametrization == "attention":
            return X.T @ (weights[self.weight_name("A", layer)] @ X)
        K = weights[self.weight_name("K", layer)]
        Q = K if self.tied else weights[self.weight_name("Q", layer)]
        return (K @ X).mT @ (Q @ X)

    def mixing(self, scores: Any) -> Any:
        """Return the matrix that multiplies the tokens, from the scores: entry [j, i] is the weight of token j for token i.

        With softmax the weights of token i are row i of the normalised scores, as in Equation 15.
        """
        mask = np.tril(np.ones((self.t, self.t), dtype=np.int64)) if self.causal else None
        if not self.softmax:
            return scores**self.power * (1 if mask is None else mask.T)
        kernel = np.exp(scores) * (1 if mask is None else mask)
        return (kernel / kernel.sum(axis=-1, keepdims=True)).mT

    def layer(self, weights: Mapping[str, Any], i: int, X: Any) -> Any:
        """Return the output of layer i for the tokens X."""
        output = weights[self.weight_name("V", i)] @ (X @ self.mixing(self.scores(weights, i, X)))
        output = output.sum(axis=0) if self.head_count(i) > 1 else output
        return X + output if self.skip else output

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        if self.parametrization == "virtual":
            return equation_11([weights[f"M{i}"] for i in self.layer_numbers], weights["L"], inputs)
        X = inputs + weights["P"] if self.positions else inputs
        for i in self.layer_numbers:
            X = self.layer(weights, i, X)
        return X
