"""Self-attention networks of all kinds: one forward pass, one source, their symmetries, and a gauge slice.

A layer is X -> V_k X w(X^T A_k X) with A_k = K_k^T Q_k; w is the identity for lightning attention and a normalised exponential
for softmax. A network of l layers is not changed by GL(a_k) acting on (Q_k, K_k), by GL(d_k) acting between layers, and in the
lightning case by l scalings (Henry, Marchetti and Kohn, arXiv:2408.17221, section 3.3). These groups move a dense set of
weights onto the slice of :attr:`Attention.gauge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from math import ceil, comb, sqrt
from typing import Any, ClassVar, Literal, Self

import numpy as np

from m2bridge.families.base import Formula, NetworkModel, Shape, Symmetry, Weights, known
from m2bridge.families.symmetries import Label
from m2bridge.families.virtual import equation_11, virtual_dim, virtual_weights
from m2bridge.linear.residues import Mod
from m2bridge.programs.points import NOTHING_HELD, Held

PAPER = "Henry, Marchetti, Kohn, arXiv:2408.17221"


def attention_dim(a: int, d: int, *, symmetric: bool = False) -> int:
    """Dimension of the variety of d x d matrices of rank <= a, or of their symmetric parts if that is less.

    >>> attention_dim(2, 3), attention_dim(2, 3, symmetric=True)
    (8, 6)
    """
    rank = min(a, d)
    full, s = rank * (2 * d - rank), min(2 * rank, d)
    return min(full, s * d - s * (s - 1) // 2) if symmetric else full


def coordinates_each(d: int, t: int) -> int:
    """How many coordinates an output of a layer has: those of Sym^2 (x) C^d, and with one token those of Sym^3."""
    return comb(d + 2, 3) if t == 1 else d * comb(d + 1, 2)


def layer_dim(d: int, dp: int, a: int, heads: int, t: int) -> int:
    """An upper bound of the dimension of the functions of a layer of lightning attention with several heads.

    A layer is determined by sum_h A_h (x) V_h, with one token by the symmetric parts of the A_h. That is H pairs up to scaling,
    (dim D_a + d d' - 1) each; a matrix with d d' columns and rank at most H; and it is seen only through its coordinates. With
    one output row (d' = 1) these are forms in the ideal of the H rows V_h, a linear space of codimension n = min(H, d).
    """
    matrices = comb(d + 1, 2) if t == 1 else d * d
    h, n = min(heads, matrices, d * dp), min(heads, d)
    pairs = heads * (attention_dim(a, d, symmetric=t == 1) + d * dp - 1)
    found = [pairs, h * (matrices + d * dp - h), dp * coordinates_each(d, t)]
    if dp == 1:
        outside = comb(d - n + 2, 3) if t == 1 else d * comb(d - n + 1, 2)
        found.append(n * (d - n) + coordinates_each(d, t) - outside)
    return min(found)


class Attention(NetworkModel):
    """A network of self-attention layers. A family says which of these are its fields, and what is known about it.

    Weights of a layer with several heads have a leading axis over them. Layers are numbered from 1.
    """

    m2_names: ClassVar[Mapping[str, str]] = {
        "d": "widths",
        "a": "ranks",
        "coordinate_system": "coordinateSystem",
        "positions": "withPositions",
        "softmax": "",
    }
    unwritten: ClassVar[tuple[str, ...]] = (
        "heads",
        "r",
        "parametrization",
        "coordinate_system",
    )
    numbered: ClassVar[bool] = True
    """Whether names of weights end with the number of their layer."""
    scaling: ClassVar[str] = f"{PAPER}, Equation 13"
    """Where the scalings of A_i against V_i are stated."""
    sliced: ClassVar[bool] = True
    """Whether :attr:`gauge` is a slice of this family when it has one head in each layer and no skip connections."""

    d: Any
    a: Any
    heads: Any = 1
    t: int
    """Number of tokens."""
    parametrization: str = "weights"
    """``weights`` (Q_i, K_i, V_i), ``attention`` (A_i, V_i), or ``virtual`` (M_i, L) of Equation 8."""
    skip: bool = False
    """Whether each layer adds its input to its output."""
    causal: bool = False
    """Whether token i sees the tokens up to itself only."""
    tied: bool = False
    """Whether Q = K."""
    positions: bool = False
    """Whether a matrix P of weights is added to the input."""
    softmax: bool = False
    """Whether the scores are normalised exponentials."""
    power: int = 1
    """The power to which each score is raised."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Rows d_0, ..., d_l of the inputs and of the output of each layer."""
        return tuple(self.d)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Rows a_1, ..., a_l of Q_i and K_i."""
        return tuple(self.a)

    @property
    def layers(self) -> int:
        return len(self.widths) - 1

    @property
    def layer_numbers(self) -> range:
        return range(1, self.layers + 1)

    def head_count(self, layer: int) -> int:
        """Number of heads of a layer, whose outputs are added."""
        return int(self.heads[layer - 1] if isinstance(self.heads, tuple) else self.heads)

    @property
    def multi_head(self) -> bool:
        return any(self.head_count(i) > 1 for i in self.layer_numbers)

    @property
    def layer_sizes(self) -> list[tuple[int, int, int, int]]:
        """Rows of the input, of the output, and of Q, and the number of heads, for each layer."""
        heads = map(self.head_count, self.layer_numbers)
        return list(zip(self.widths, self.widths[1:], self.ranks, heads, strict=False))

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {"a": self.d[:-1], "heads": (1,) * self.layers}

    def check(self) -> None:
        self.need(self.layers >= 1, "d", "d lists the widths of at least one layer, such as [3,3]")
        for name, values in (("a", self.ranks), ("heads", self.heads)):
            count = len(values) if isinstance(values, tuple) else self.layers
            self.need(count == self.layers, name, f"{name} has {count} entries for {self.layers} layers")
        equal = len(set(self.widths)) == 1 or not self.skip
        self.need(equal, "d", f"skip connections need equal widths, not {list(self.widths)}")

    @property
    def by(self) -> str:
        """What the parametrization is called in titles."""
        names = {"weights": "(Q, K, V)", "attention": "(A, V)", "virtual": "virtual weights (M, L)"}
        return names[self.parametrization]

    def weight_name(self, letter: str, layer: int) -> str:
        return f"{letter}{layer}" if self.numbered else letter

    @property
    def letters(self) -> str:
        """The weights of a layer."""
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
        """Names and shapes of the weights of a layer."""
        d, dp, a, heads = self.layer_sizes[layer - 1]
        rows = {"A": d, "Q": a, "K": a, "V": dp}
        stack = (heads,) if heads > 1 else ()
        return {self.weight_name(letter, layer): (*stack, rows[letter], d) for letter in self.letters}

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
        if self.parametrization == "virtual":
            return virtual_dim(self)
        return sum(heads * (attention_dim(a, d) + d * dp) for d, dp, a, heads in self.layer_sizes)

    @property
    def parameter_dim_proved(self) -> bool:
        return not (self.constrained and self.parametrization == "virtual")

    def from_weights(self, weights: Weights) -> dict[str, Any]:
        """The weights of this parametrization from (Q_i, K_i, V_i)."""
        V = [weights[self.weight_name("V", i)] for i in self.layer_numbers]
        A = [self.by_weights.attention(weights, i) for i in self.layer_numbers]
        if self.parametrization == "virtual":
            M, L = virtual_weights(A, V)
            return {f"M{i}": matrix for i, matrix in enumerate(M, start=1)} | {"L": L}
        pairs = [(i, letter, part) for i in self.layer_numbers for letter, part in (("A", A), ("V", V))]
        return {self.weight_name(letter, i): part[i - 1] for i, letter, part in pairs}

    def draw_weights(self, rng: np.random.Generator, p: int, *batch: int) -> dict[str, np.ndarray]:
        if self.free is self:
            return super().draw_weights(rng, p, *batch)
        drawn = {name: Mod(value, p) for name, value in self.free.draw_weights(rng, p, *batch).items()}
        return {name: value.values for name, value in self.from_weights(drawn).items()}

    def draw_real_weights(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        if self.free is self:
            return super().draw_real_weights(rng)
        return self.from_weights(self.free.draw_real_weights(rng))

    # -- the network --------------------------------------------------------------------------------

    @property
    def input_shape(self) -> Shape:
        return (self.widths[0], self.t)

    def attention(self, weights: Mapping[str, Any], layer: int = 1) -> Any:
        """The attention matrix A = K^T Q (or matrices, one for each head) of a layer (Equation 3)."""
        if self.parametrization == "attention":
            return weights[self.weight_name("A", layer)]
        return weights[self.weight_name("K", layer)].mT @ weights[self.weight_name("Q", layer)]

    def scores(self, weights: Mapping[str, Any], layer: int, X: Any) -> Any:
        """The matrix X^T A X of a layer; by (Q, K) as (K X)^T (Q X)."""
        if self.parametrization == "attention":
            return X.T @ (weights[self.weight_name("A", layer)] @ X)
        K = weights[self.weight_name("K", layer)]
        Q = K if self.tied else weights[self.weight_name("Q", layer)]
        return (K @ X).mT @ (Q @ X)

    def mixing(self, scores: Any) -> Any:
        """The matrix that tokens are multiplied with, from the scores: what token i takes of token j stands at [j, i].

        By softmax token i asks with row i of the scores, as in Equation 15.
        """
        seen = np.tril(np.ones((self.t, self.t), dtype=np.int64)) if self.causal else None
        if not self.softmax:
            return scores**self.power * (1 if seen is None else seen.T)
        kernel = np.exp(scores) * (1 if seen is None else seen)
        return (kernel / kernel.sum(axis=-1, keepdims=True)).mT

    def layer(self, weights: Mapping[str, Any], i: int, X: Any) -> Any:
        """What layer i makes of the tokens X."""
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

    # -- what is known ------------------------------------------------------------------------------

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Scalings, GL(a_i) inside and GL(d_i) between layers, as far as heads and skip connections leave them.

        Softmax has no scalings: it depends on the attention matrices, not up to multiples.
        """
        if self.parametrization == "virtual":
            scalings = {i: {f"M{i}": (1,), "L": (-(3 ** (self.layers - i)),)} for i in self.layer_numbers}
            where = f"{PAPER}, Equation 13"
            return tuple(
                self.symmetry("scaling", 1, axes, f"rescaling of M_{i} and L", where)
                for i, axes in scalings.items()
            )
        found = [symmetry for i in self.layer_numbers for symmetry in self.layer_symmetries(i)]
        return (*found, *(self._between(i) for i in range(1, self.layers) if not self.skip))

    def layer_symmetries(self, i: int) -> list[Symmetry]:
        """Groups that act on the weights of layer i alone."""
        d, _, a, heads = self.layer_sizes[i - 1]
        A, K, V, scaled = (self.weight_name(letter, i) for letter in ("A", "K", "V", self.letters[0]))
        found: list[Symmetry] = []
        if self.letters == "QKV":
            copies: tuple[Label, ...] = ("*",) if heads > 1 else ()
            axes = {scaled: (*copies, -1, 0), K: (*copies, 1, 0)}
            found.append(self.symmetry("gl", a, axes, f"(C^-T {scaled}, C {K})", f"{PAPER}, Lemma 3.1"))
        elif self.letters == "AV" and not self.softmax and heads > 1 and a >= d:
            citation = "the layer depends on the sum of A_h (x) V_h over the heads only"
            axes = {scaled: (1, 0, 0), V: (-1, 0, 0)}
            return [self.symmetry("gl", heads, axes, f"mixing of the heads of layer {i}", citation)]
        if not self.softmax:
            power = 2 * self.power if self.tied else self.power
            name = f"(s {K if self.tied else A}, {V} / s{f'^{power}' if power > 1 else ''})"
            kind: Literal["torus", "scaling"] = "torus" if heads > 1 else "scaling"
            labels = (0, 0) if heads > 1 else ()
            each = " in each head" if heads > 1 else ""
            axes = {scaled: (1, *labels), V: (-power, *labels)}
            found.append(self.symmetry(kind, heads, axes, name + each, self.scaling))
        return found

    def _between(self, i: int) -> Symmetry:
        """X -> C X after layer i, undone in layer i + 1 (Equation 9)."""

        def behind_heads(layer: int, *labels: Label) -> tuple[Label, ...]:
            return (0, *labels) if self.head_count(layer) > 1 else labels

        axes = {self.weight_name("V", i): behind_heads(i, 1, 0)}
        for letter in "V" + self.letters[:-1]:
            axes[self.weight_name(letter, i + 1)] = behind_heads(i + 1, -1 if letter == "A" else 0, -1)
        name = f"change of basis between layers {i} and {i + 1}"
        return self.symmetry("gl", self.widths[i], axes, name, f"{PAPER}, Equation 9")

    @property
    def attention_sizes(self) -> Self | None:
        """The network by (Q, K, V) with the same image, for the networks of the paper: one head, no skip connections."""
        return self.by_weights if self.sliced and not (self.skip or self.multi_head) else None

    @cached_property
    def gauge(self) -> Held:
        """The entries of Q_k, K_k, V_k that are held on the slice; for (Q, K, V), one head in each layer and no skip connections.

        * K_k = [I | *]: a generic K_k has an invertible first block. Where a_k > d_(k-1), the last rows of K_k and Q_k are zero,
          which leaves the set of products K_k^T Q_k unchanged.
        * For lightning one entry of each Q_k is 1: the scalings do that.
        * V_1 = [I | *] and V_2, ..., V_(l-1) = I, when l >= 2, all hidden widths are equal and d_0 is not below them.

        >>> from m2bridge.families import DeepLightning
        >>> DeepLightning(d=(3, 3, 3), a=(2, 2)).gauge.count
        19
        """
        if self.attention_sizes is not self:
            return NOTHING_HELD
        hidden = self.widths[1:-1]
        bottleneck = len(set(hidden)) == 1 and self.widths[0] >= hidden[0]
        slice_of = {name: np.full(shape, np.nan) for name, shape in self.parameters.items()}
        for k in self.layer_numbers:
            Q, K, V = (slice_of[self.weight_name(letter, k)] for letter in "QKV")
            rank = min(K.shape)
            Q[rank:] = K[rank:] = 0
            K[:, :rank] = np.eye(len(K), rank)
            if not self.softmax:
                Q[0, 0] = 1
            if bottleneck and k < self.layers:
                V[:, : len(V)] = np.eye(len(V))
        masks = {name: ~np.isnan(array) for name, array in slice_of.items() if not np.isnan(array).all()}
        return Held(masks, {name: np.nan_to_num(slice_of[name]).astype(np.int64) for name in masks})

    def samples_needed(self) -> int | None:
        """A guess of how many inputs show the generic rank; a wrong one costs time, never the answer.

        With ranks a < t in two lightning layers or more, all that later layers see of X_0 is X_0^T K_1^T and Q_1 X_0, so that an
        input shows 2 a t - a^2 numbers of `free` unknown weights and of some rows of the last V, and a^2 to the later layers,
        which have all but the `first` unknowns.
        """
        d, t, held = self.widths, self.t, self.gauge
        rank = min(*self.ranks, *d[:-1])
        if self.attention_sizes is not self or self.softmax or self.layers < 2 or rank >= t:
            return None
        free = self.parameter_count - held.count - d[-1] * d[-2]
        unknowns = free + min(*d[-2:], t) * d[-2]
        first = sum(len(held.free(name, shape)) for name, shape in self.layer_weights(1).items())
        return ceil(1.24 * max(unknowns / (2 * rank * t - rank**2), (free - first) / rank**2)) + 2


def one_layer(value: int, citation: str, d: int, dp: int, a: int, *more: tuple[str, bool]) -> Formula:
    """A dimension under the hypotheses of Corollary 3.3, after which the scaling is the only symmetry of (A, V)."""
    return known(value, citation, *more, ("d, d' >= 2 or d, a >= 2", d >= 2 and (dp >= 2 or a >= 2)))


def normal_matrix(shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Normal numbers, scaled so that products with unit vectors are of order one."""
    return np.asarray(rng.normal(size=shape) / sqrt(shape[-1]))


def bottleneck_value(d: tuple[int, ...], a: tuple[int, ...]) -> int:
    """Dimension of the space of virtual weights of a bottleneck architecture (Equation 16), l >= 2."""
    delta = d[1]
    inner = sum(attention_dim(rank, delta) for rank in a[1:])
    return attention_dim(a[0], d[0]) + delta * (d[0] + d[-1]) - delta**2 + inner


def bottleneck_hypotheses(d: tuple[int, ...]) -> tuple[tuple[str, bool], ...]:
    """The shape that Lemma 3.5 asks for: hidden widths all equal delta, d_0 and d_l not smaller."""
    delta = d[1]
    return (
        ("all hidden widths equal delta", all(width == delta for width in d[1:-1])),
        ("d_0, d_l >= delta", d[0] >= delta and d[-1] >= delta),
    )
