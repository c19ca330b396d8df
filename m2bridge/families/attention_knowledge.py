"""Knowledge about networks of self-attention: dimensions, degrees, symmetries and a gauge slice.

A network of l layers X -> V_k X w(X^T A_k X), A_k = K_k^T Q_k, is not changed by GL(a_k) acting on (Q_k, K_k), by GL(d_k) acting
between layers, and in the lightning case by l scalings (Henry, Marchetti and Kohn, arXiv:2408.17221, section 3.3). These groups
move a dense set of weights onto the slice of :func:`gauge_slice`.
"""

from __future__ import annotations

from math import ceil, comb, prod
from typing import TYPE_CHECKING, Literal

import numpy as np

from m2bridge.families.knowledge import Formula, Knowledge, cited
from m2bridge.families.symmetries import Label, Symmetry
from m2bridge.programs.points import NOTHING_HELD, Held

if TYPE_CHECKING:
    from m2bridge.families.attention import AttentionNetwork
    from m2bridge.families.self_attention import Attention

PAPER = "Henry, Marchetti, Kohn, arXiv:2408.17221"
HOMOGENEOUS_SCORES = "homogeneity of the scores"
LARGEST_DEGREE_WIDTH = 64
"""Widths up to which the degree of a closure is evaluated: beyond, it has thousands of digits and equations are infeasible."""
MOST_GAUGE_WEIGHTS = 10**8
"""Weights up to which a slice is computed, one integer per weight; the rank for more weights does not fit into memory."""
LAYERS = "sum over layers of sum_h A_h (x) V_h in its variety, up to changes of basis"


def attention_knowledge(network: Attention) -> Knowledge:
    """Collect the knowledge about a network that consists of attention layers only."""
    plain = network.is_plain
    deep = plain and network.numbered and not network.softmax
    small = network.parameter_count <= MOST_GAUGE_WEIGHTS
    gauge = gauge_slice(network) if plain and small else NOTHING_HELD
    return Knowledge(
        formula=dimension_formula(network) if plain else causal_formula(network),
        closure_degree=None
        if network.numbered or max(network.widths) > LARGEST_DEGREE_WIDTH
        else layer_degree(network),
        dimension_bound=layers_bound(network) if deep else None,
        symmetries=attention_symmetries(network),
        gauge=gauge,
        samples=samples_of_low_rank(network, gauge) if deep else None,
        homogeneous=not (network.softmax or network.skip or network.positions),
        attention=network if plain else None,
    )


def samples_of_low_rank(network: Attention, gauge: Held) -> int | None:
    """Estimate how many inputs show the generic rank of a lightning network by (Q, K, V) whose ranks a are below t.

    With ranks a < t in at least two layers, later layers depend on X_0 only through X_0^T K_1^T and Q_1 X_0. Each input then
    gives 2 a t - a^2 equations for the `free` unknown weights and some rows of the last V, of which a^2 involve the later
    layers; these have all unknowns but the `first` ones.
    """
    d, t = network.widths, network.t
    rank = min(*network.ranks, *d[:-1])
    special = network.skip or network.multi_head or network.by_weights is not network
    if special or network.layers < 2 or rank >= t:
        return None
    free = network.parameter_count - gauge.count - d[-1] * d[-2]
    unknowns = free + min(*d[-2:], t) * d[-2]
    first = sum(len(gauge.free(name, shape)) for name, shape in network.layer_weights(1).items())
    return ceil(1.24 * max(unknowns / (2 * rank * t - rank**2), (free - first) / rank**2)) + 2


# -- dimensions ------------------------------------------------------------------------------------------


def attention_dim(a: int, d: int, *, symmetric: bool = False) -> int:
    """Return the dimension of the variety of d x d matrices of rank <= a, or of their symmetric parts if that is less.

    >>> attention_dim(2, 3), attention_dim(2, 3, symmetric=True)
    (8, 6)
    """
    rank = min(a, d)
    full, s = rank * (2 * d - rank), min(2 * rank, d)
    return min(full, s * d - s * (s - 1) // 2) if symmetric else full


def dimension_formula(network: AttentionNetwork) -> Formula | None:
    """State the dimension of the image of a plain network; None with several heads or skip connections.

    Lightning: Equation 7 for one layer, Equation 14 for more (it leaves delta undetermined for one layer). Softmax: Theorem 3.9
    for one layer; for more Equation 16, which docs/conjecture-3.10.md proves for t >= 2.
    """
    if network.skip or network.multi_head:
        return None
    d, a, t = network.widths, network.ranks, network.t
    tokens = ("t >= 2", t >= 2)
    if network.layers == 1:
        value = attention_dim(a[0], d[0]) + d[0] * d[1]
        if network.softmax:
            return cited(value, f"{PAPER}, Theorem 3.9", tokens)
        return _one_layer(value - 1, f"{PAPER}, Corollary 3.3, Equation 7", network)
    if network.softmax:
        citation = f"{PAPER}, Equation 16; Conjecture 3.10 is proved for t >= 2 in docs/conjecture-3.10.md"
        return cited(_bottleneck_dim(d, a), citation, tokens, *_bottleneck_hypotheses(d))
    return cited(
        _bottleneck_dim(d, a) - network.layers,
        f"{PAPER}, Corollary 3.8, Equation 14",
        ("t >= 3", t >= 3),
        ("every a_i >= 2", min(a) >= 2),
        *_bottleneck_hypotheses(d),
        ("delta >= 2", d[1] >= 2),
    )


def causal_formula(network: AttentionNetwork) -> Formula | None:
    """State the dimension of one causal layer with one head, which is that of the layer without a mask; None for others."""
    options = (network.tied, network.positions, network.skip, network.power > 1, network.multi_head)
    if any(options) or network.layers > 1 or not network.causal:
        return None
    (d, dp), (a,) = network.widths, network.ranks
    value = attention_dim(a, d) + d * dp
    if network.softmax:
        return cited(
            value,
            "token 1 determines V, and token 2 determines x_2^T A (x_2 - x_1)",
            ("t >= 2", network.t >= 2),
        )
    citation = f"{PAPER}, Corollary 3.3: its coordinates are the coefficients of V x_1 x_1^T A x_2 in the output of token 2"
    return _one_layer(value - 1, citation, network)


def _one_layer(value: int, citation: str, network: AttentionNetwork) -> Formula:
    """State a dimension under the hypotheses of Corollary 3.3, after which the scaling is the only symmetry of (A, V)."""
    (d, dp), (a,) = network.widths, network.ranks
    sizes = ("d, d' >= 2 or d, a >= 2", d >= 2 and (dp >= 2 or a >= 2))
    return cited(value, citation, ("t >= 2", network.t >= 2), sizes)


def _bottleneck_dim(d: tuple[int, ...], a: tuple[int, ...]) -> int:
    """Return the dimension of the space of virtual weights of a bottleneck architecture (Equation 16), l >= 2."""
    delta = d[1]
    inner = sum(attention_dim(rank, delta) for rank in a[1:])
    return attention_dim(a[0], d[0]) + delta * (d[0] + d[-1]) - delta**2 + inner


def _bottleneck_hypotheses(d: tuple[int, ...]) -> tuple[tuple[str, bool], ...]:
    """Return the hypotheses of Lemma 3.5: hidden widths all equal delta, d_0 and d_l not smaller."""
    delta = d[1]
    return (
        ("all hidden widths equal delta", all(width == delta for width in d[1:-1])),
        ("d_0, d_l >= delta", d[0] >= delta and d[-1] >= delta),
    )


# -- an upper bound, layer by layer ----------------------------------------------------------------------


def coordinates_each(d: int, t: int) -> int:
    """Return the number of coordinates of an output of a layer: that of Sym^2 (x) C^d, or of Sym^3 for one token."""
    return comb(d + 2, 3) if t == 1 else d * comb(d + 1, 2)


def layer_dim(d: int, dp: int, a: int, heads: int, t: int) -> int:
    """Return an upper bound of the dimension of the functions of a layer of lightning attention with several heads.

    A layer is determined by sum_h A_h (x) V_h, with one token by the symmetric parts of the A_h. That is H pairs up to scaling,
    (dim D_a + d d' - 1) each; a matrix with d d' columns and rank at most H; and it is seen only through its coordinates. With
    one output row (d' = 1) these are forms in the ideal of the H rows V_h, which defines a linear space of codimension
    n = min(H, d).
    """
    matrices = comb(d + 1, 2) if t == 1 else d * d
    h, n = min(heads, matrices, d * dp), min(heads, d)
    pairs = heads * (attention_dim(a, d, symmetric=t == 1) + d * dp - 1)
    bounds = [pairs, h * (matrices + d * dp - h), dp * coordinates_each(d, t)]
    if dp == 1:
        outside = comb(d - n + 2, 3) if t == 1 else d * comb(d - n + 1, 2)
        bounds.append(n * (d - n) + coordinates_each(d, t) - outside)
    return min(bounds)


def layers_bound(network: AttentionNetwork) -> Formula:
    """Return the sum over the layers of a bound for each layer, minus the changes of basis between layers.

    The outputs of a layer are linear combinations of the H d rows of X X^T A_h X, with :func:`coordinates_each` coordinates
    each. They span a space of dimension at most e <= d', and without skip connections a network with these widths has the
    same functions. GL(e) between two layers acts on the functions of both layers and trivially on their composition. At
    least min(e, d min(H, d)) outputs of some layer are independent (A_h = u_h^T u_h for unit vectors u_h), hence also those
    of a generic layer: the orbits of GL(e) have dimension at least e times that number. After one head with one row of Q the
    outputs have rank one, and the following layers act on them as on one token.
    """
    total, d, t = 0, network.widths[0], network.t
    for i, (_, dp, a, heads) in zip(network.layer_numbers, network.layer_sizes, strict=True):
        inside = i < network.layers and not network.skip
        e = min(dp, heads * d, coordinates_each(d, t)) if inside else dp
        total += layer_dim(d, e, a, heads, t)
        total -= e * min(e, d * min(heads, d)) if inside else 0
        if inside and heads == min(a, d) == 1:  # tokens are multiples of one, here and after
            t = 1
        d = e
    citation = "symmetries and coordinates of each layer, changes of basis between them"
    return cited(total, citation, argument=LAYERS)


# -- degrees ---------------------------------------------------------------------------------------------


def determinantal_degree(rows: int, columns: int, rank: int) -> int:
    """Return the degree of the variety of matrices of rank at most `rank` (Harris, Algebraic Geometry, Example 19.10).

    >>> determinantal_degree(3, 3, 2), determinantal_degree(3, 4, 1), determinantal_degree(2, 2, 2)
    (3, 10, 1)
    """
    least = range(columns - min(rank, columns))
    numerator = prod(comb(rows + i, rank) for i in least)
    return numerator // prod(comb(rank + i, rank) for i in least)


def layer_degree(network: AttentionNetwork) -> Formula:
    """Return the degree of the closure of the image of one layer of lightning attention, in closed form.

    The image is that of PD_a x P^(dd'-1), PD_a the projective variety of d x d matrices of rank <= a, under the map given by
    the bilinear products alpha_m nu_n. It has no base points (a product of non-zero linear forms is not zero), so it is
    finite and pulls O(1) back to O(1,1): degree of the map times degree of the image = (h + k)^n = C(n, dd'-1) deg D_a with
    n = dim PD_a + dd' - 1. The map is birational by unique factorization, but for a = d' = 1, d >= 2, where the two linear
    forms can be exchanged and it has degree 2. Holds for t >= 2, where the Segre coordinates determine the function.
    """
    (d, dp), (rows,) = network.widths, network.ranks
    a = min(rows, d)
    n = a * (2 * d - a) - 1 + d * dp - 1
    total = determinantal_degree(d, d, a) * comb(n, d * dp - 1)
    value = total // 2 if a == 1 and dp == 1 and d >= 2 else total
    return cited(value, "intersection number of O(1,1) on PD_a x P^(dd'-1)", ("t >= 2", network.t >= 2))


# -- symmetries ------------------------------------------------------------------------------------------


def attention_symmetries(network: AttentionNetwork) -> tuple[Symmetry, ...]:
    """Return the scalings, GL(a_i) inside and GL(d_i) between layers, as far as heads and skip connections allow.

    Softmax has no scalings: the function determines the attention matrices themselves, not only up to a factor.
    """
    if network.parametrization == "virtual":
        return tuple(_virtual_scaling(network, i) for i in network.layer_numbers)
    scalings = _scaling_citation(network)
    inside = [symmetry for i in network.layer_numbers for symmetry in layer_symmetries(network, i, scalings)]
    return (*inside, *(_between(network, i) for i in range(1, network.layers) if not network.skip))


def _virtual_scaling(network: AttentionNetwork, i: int) -> Symmetry:
    return Symmetry(
        name=f"rescaling of M_{i} and L",
        citation=f"{PAPER}, Equation 13",
        kind="scaling",
        size=1,
        axes={f"M{i}": (1,), "L": (-(3 ** (network.layers - i)),)},
        shapes=network.parameters,
    )


def layer_symmetries(network: AttentionNetwork, i: int, scalings: str) -> list[Symmetry]:
    """Return groups that act on the attention weights of layer i only; `scalings` is the citation for those of the scores."""
    d, _, a, heads = network.layer_sizes[i - 1]
    symmetries: list[Symmetry] = []
    if network.letters == "QKV":
        symmetries.append(_key_basis(network, i, a, heads))
    elif network.letters == "AV" and not network.softmax and heads > 1 and a >= d:
        return [_head_mixing(network, i, heads)]
    if not network.softmax:
        symmetries.append(_score_scaling(network, i, heads, scalings))
    return symmetries


def _key_basis(network: AttentionNetwork, i: int, a: int, heads: int) -> Symmetry:
    """Return GL(a) acting on the rows of Q and K, in each head."""
    Q, K = (network.weight_name(letter, i) for letter in "QK")
    copies: tuple[Label, ...] = ("*",) if heads > 1 else ()
    return Symmetry(
        name=f"(C^-T {Q}, C {K})",
        citation=f"{PAPER}, Lemma 3.1",
        kind="gl",
        size=a,
        axes={Q: (*copies, -1, 0), K: (*copies, 1, 0)},
        shapes=network.parameters,
    )


def _head_mixing(network: AttentionNetwork, i: int, heads: int) -> Symmetry:
    A, V = (network.weight_name(letter, i) for letter in "AV")
    return Symmetry(
        name=f"mixing of the heads of layer {i}",
        citation="the layer depends on the sum of A_h (x) V_h over the heads only",
        kind="gl",
        size=heads,
        axes={A: (1, 0, 0), V: (-1, 0, 0)},
        shapes=network.parameters,
    )


def _score_scaling(network: AttentionNetwork, i: int, heads: int, citation: str) -> Symmetry:
    """Return the scalings of the scores against V, one in each head."""
    A, K, V, scaled = (network.weight_name(letter, i) for letter in ("A", "K", "V", network.letters[0]))
    power = 2 * network.power if network.tied else network.power
    name = f"(s {K if network.tied else A}, {V} / s{f'^{power}' if power > 1 else ''})"
    kind: Literal["torus", "scaling"] = "torus" if heads > 1 else "scaling"
    labels = (0, 0) if heads > 1 else ()
    return Symmetry(
        name=name + (" in each head" if heads > 1 else ""),
        citation=citation,
        kind=kind,
        size=heads,
        axes={scaled: (1, *labels), V: (-power, *labels)},
        shapes=network.parameters,
    )


def _scaling_citation(network: AttentionNetwork) -> str:
    if not network.numbered:
        return f"{PAPER}, Theorem 3.2"
    return f"{PAPER}, Equation 13" if network.is_plain else HOMOGENEOUS_SCORES


def _between(network: AttentionNetwork, i: int) -> Symmetry:
    """Return the symmetry X -> C X after layer i, inverted in layer i + 1 (Equation 9)."""

    def behind_heads(layer: int, *labels: Label) -> tuple[Label, ...]:
        return (0, *labels) if network.head_count(layer) > 1 else labels

    axes = {network.weight_name("V", i): behind_heads(i, 1, 0)}
    for letter in "V" + network.letters[:-1]:
        axes[network.weight_name(letter, i + 1)] = behind_heads(i + 1, -1 if letter == "A" else 0, -1)
    return Symmetry(
        name=f"change of basis between layers {i} and {i + 1}",
        citation=f"{PAPER}, Equation 9",
        kind="gl",
        size=network.widths[i],
        axes=axes,
        shapes=network.parameters,
    )


def gauge_slice(network: AttentionNetwork) -> Held:
    """Return the entries of Q_k, K_k, V_k that are held on the slice, for one head in each layer and no skip connections.

    * K_k = [I | *]: a generic K_k has an invertible first block. Where a_k > d_(k-1), the last rows of K_k and Q_k are zero,
      which leaves the set of products K_k^T Q_k unchanged.
    * For lightning one entry of each Q_k is 1: the scalings do that.
    * V_1 = [I | *] and V_2, ..., V_(l-1) = I, when l >= 2, all hidden widths are equal and d_0 is not below them.

    >>> from m2bridge.families import DeepLightning
    >>> gauge_slice(DeepLightning(d=(3, 3, 3), a=(2, 2))).count
    19
    """
    if network.parametrization != "weights" or network.skip or network.multi_head:
        return NOTHING_HELD
    hidden = network.widths[1:-1]
    bottleneck = len(set(hidden)) == 1 and network.widths[0] >= hidden[0]
    slice_of = {name: np.full(shape, np.nan) for name, shape in network.parameters.items()}
    for k in network.layer_numbers:
        Q, K, V = (slice_of[network.weight_name(letter, k)] for letter in "QKV")
        rank = min(K.shape)
        Q[rank:] = K[rank:] = 0
        K[:, :rank] = np.eye(len(K), rank)
        if not network.softmax:
            Q[0, 0] = 1
        if bottleneck and k < network.layers:
            V[:, : len(V)] = np.eye(len(V))
    masks = {name: ~np.isnan(array) for name, array in slice_of.items() if not np.isnan(array).all()}
    return Held(masks, {name: np.nan_to_num(slice_of[name]).astype(np.int64) for name in masks})
