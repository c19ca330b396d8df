"""What is known about self-attention networks: symmetries, gradings, formulas and bounds.

Reference: Henry, Marchetti, Kohn, arXiv:2408.17221, section 3.3.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from m2bridge.models.base import Formula, Symmetry, known
from m2bridge.models.network import coefficient_rows, output_rows, parameter_rows
from m2bridge.models.segre import segre_grading
from m2bridge.models.symmetries import Label

if TYPE_CHECKING:
    from m2bridge.models.attention import Attention
    from m2bridge.models.lightning import LightningNetwork

PAPER = "Henry, Marchetti, Kohn, arXiv:2408.17221"


def attention_dim(a: int, d: int) -> int:
    """Dimension of the variety of d x d matrices of rank <= a."""
    rank = min(a, d)
    return rank * (2 * d - rank)


# -- symmetries ----------------------------------------------------------------------------------------


def attention_symmetries(model: Attention) -> tuple[Symmetry, ...]:
    """Scalings, GL(a_i) inside and GL(d_i) between layers, as far as heads and skip connections leave them.

    Softmax has no scalings: it depends on the attention matrices, not up to multiples.
    """
    if model.parametrization == "virtual":
        return tuple(
            Symmetry(
                name=f"rescaling of M_{i} and L",
                citation=f"{PAPER}, Equation 13",
                kind="scaling",
                size=1,
                axes={f"M{i}": (1,), "L": (-(3 ** (model.layers - i)),)},
                shapes=model.parameters,
            )
            for i in model.layer_numbers
        )
    found = [symmetry for i in model.layer_numbers for symmetry in _layer_symmetries(model, i)]
    return (*found, *(_between(model, i) for i in range(1, model.layers) if not model.skip))


def _layer_symmetries(model: Attention, i: int) -> list[Symmetry]:
    heads, shapes = model.head_count(i), model.parameters
    several, by_weights = heads > 1, model.parametrization == "weights"
    Q, K, V = (model.weight_name(letter, i) for letter in "QKV")
    scaled = Q if by_weights else model.weight_name("A", i)
    found: list[Symmetry] = []
    if by_weights:
        copies: tuple[Label, ...] = ("*",) if several else ()
        change = Symmetry(
            name=f"(C^-T {Q}, C {K})",
            citation=f"{PAPER}, Lemma 3.1",
            kind="gl",
            size=model.ranks[i - 1],
            axes={Q: (*copies, -1, 0), K: (*copies, 1, 0)},
            shapes=shapes,
        )
        found.append(change)
    elif model.polynomial and several and model.ranks[i - 1] >= model.widths[i - 1]:
        mixing = Symmetry(
            name=f"mixing of the heads of layer {i}",
            citation="the layer depends on the sum of A_h (x) V_h over the heads only",
            kind="gl",
            size=heads,
            axes={scaled: (1, 0, 0), V: (-1, 0, 0)},
            shapes=shapes,
        )
        return [mixing]
    if model.polynomial:
        scaling = Symmetry(
            name=f"(s {model.weight_name('A', i)}, {V} / s)" + (" in each head" if several else ""),
            citation=f"{PAPER}, {'Equation 13' if model.numbered else 'Theorem 3.2'}",
            kind="torus" if several else "scaling",
            size=heads,
            axes={scaled: (1, 0, 0), V: (-1, 0, 0)} if several else {scaled: (1,), V: (-1,)},
            shapes=shapes,
        )
        found.append(scaling)
    return found


def _between(model: Attention, i: int) -> Symmetry:
    """X -> C X after layer i, undone in layer i + 1 (Equation 9)."""

    def behind_heads(layer: int, *labels: Label) -> tuple[Label, ...]:
        return (0, *labels) if model.head_count(layer) > 1 else labels

    axes = {
        model.weight_name("V", i): behind_heads(i, 1, 0),
        model.weight_name("V", i + 1): behind_heads(i + 1, 0, -1),
    }
    if model.parametrization == "attention":
        axes[model.weight_name("A", i + 1)] = behind_heads(i + 1, -1, -1)
    else:
        axes |= {model.weight_name(letter, i + 1): behind_heads(i + 1, 0, -1) for letter in "QK"}
    return Symmetry(
        name=f"change of basis between layers {i} and {i + 1}",
        citation=f"{PAPER}, Equation 9",
        kind="gl",
        size=model.widths[i],
        axes=axes,
        shapes=model.parameters,
    )


# -- gradings ------------------------------------------------------------------------------------------


def target_grading(model: LightningNetwork) -> np.ndarray:
    """Torus weights of the coordinates.

    Segre coordinates: A -> g A h, V -> k V g^T for diagonal g, h, k (rows: g, h, k). All coefficients: scalings g of input rows
    and k of output rows (rows: g, k); with skip connections, conjugation by scalings of the rows.
    """
    d = model.widths
    if model.coordinate_system == "segre":
        return segre_grading(d[0], d[-1])
    inputs = coefficient_rows(model.monomials, model.input_shape, d[-1], model.t)
    outputs = output_rows(model.monomials, d[-1], model.t)
    return inputs - outputs if model.skip else np.concatenate([inputs, outputs])


def source_grading(model: LightningNetwork) -> np.ndarray:
    """Torus weights of the parameters, row by row as in :func:`target_grading`."""
    d0, dl = model.widths[0], model.widths[-1]
    none, units = np.zeros(d0, dtype=np.int64), np.eye(d0, dtype=np.int64)
    segre, virtual = model.coordinate_system == "segre", model.parametrization == "virtual"
    seen = model.layer_numbers if model.skip or virtual else range(1, 2)
    first, last = ("L", "L") if virtual else (model.weight_name("V", 1), model.weight_name("V", model.layers))

    def characters(key: np.ndarray, query: np.ndarray) -> dict[str, np.ndarray]:
        """Characters of A -> diag(key) A diag(query) in the layers that see it, on A itself or on Q and K."""
        if model.parametrization != "weights":
            letter = "M" if virtual else "A"
            return {model.weight_name(letter, i): key[:, None] + query[None, :] for i in seen}
        both = (("Q", query), ("K", key))
        return {model.weight_name(letter, i): part[None, :] for i in seen for letter, part in both}

    rows: list[dict[str, np.ndarray]] = []
    for e in units:
        row = characters(e, none if segre else e)
        if model.skip:
            row |= {model.weight_name("V", i): e[None, :] - e[:, None] for i in seen}
        else:
            row[first] = e[None, :]
        rows.append(row)
    if segre:
        rows += [characters(none, e) for e in units]
    if not model.skip:
        rows += [{last: e[:, None]} for e in np.eye(dl, dtype=np.int64)]
    return parameter_rows(model.parameters, rows)


# -- dimensions ----------------------------------------------------------------------------------------


def lightning_formula(model: Attention) -> Formula | None:
    """Equation 7 for one layer, Equation 14 for more; None with several heads or skip connections.

    Equation 14 leaves delta undetermined for one layer, so it is not used there.
    """
    if model.skip or model.multi_head:
        return None
    d, a, t = model.widths, model.ranks, model.t
    if model.layers == 1:
        return known(
            attention_dim(a[0], d[0]) + d[0] * d[1] - 1,
            f"{PAPER}, Corollary 3.3, Equation 7",
            ("t >= 2", t >= 2),
            ("d, d' >= 2 or d, a >= 2", d[0] >= 2 and (d[1] >= 2 or a[0] >= 2)),
        )
    return known(
        _bottleneck_value(d, a) - model.layers,
        f"{PAPER}, Corollary 3.8, Equation 14",
        ("t >= 3", t >= 3),
        ("every a_i >= 2", min(a) >= 2),
        *_bottleneck_hypotheses(d),
        ("delta >= 2", d[1] >= 2),
    )


def softmax_formula(model: Attention) -> Formula:
    """Theorem 3.9 for one layer; for more layers Equation 16, which docs/conjecture-3.10.md proves for t >= 2."""
    d, a, tokens = model.widths, model.ranks, ("t >= 2", model.t >= 2)
    if model.layers == 1:
        return known(attention_dim(a[0], d[0]) + d[0] * d[1], f"{PAPER}, Theorem 3.9", tokens)
    citation = f"{PAPER}, Equation 16; Conjecture 3.10 is proved for t >= 2 in docs/conjecture-3.10.md"
    return known(_bottleneck_value(d, a), citation, tokens, *_bottleneck_hypotheses(d))


def _bottleneck_value(d: tuple[int, ...], a: tuple[int, ...]) -> int:
    """Dimension of the space of virtual weights of a bottleneck architecture (Equation 16), l >= 2."""
    delta = d[1]
    inner = sum(attention_dim(rank, delta) for rank in a[1:])
    return attention_dim(a[0], d[0]) + delta * (d[0] + d[-1]) - delta**2 + inner


def _bottleneck_hypotheses(d: tuple[int, ...]) -> tuple[tuple[str, bool], ...]:
    """The shape that Lemma 3.5 asks for: hidden widths all equal delta, d_0 and d_l not smaller."""
    delta = d[1]
    return (
        ("all hidden widths equal delta", all(width == delta for width in d[1:-1])),
        ("d_0, d_l >= delta", d[0] >= delta and d[-1] >= delta),
    )


def layers_formula(model: Attention) -> Formula:
    """The sum over layers of upper bounds of the dimension of a layer's functions.

    A layer is a sum over H heads of A_h (x) V_h, seen in d d' C(d+1, 2) coordinates: its functions have dimension at most
    H (dim D_a + d d' - 1), by the scaling in each head; at most h (d^2 + d d') - h^2 with h = min(H, d^2, d d'), the
    dimension of matrices of rank <= h of size d^2 x d d'; and at most the number of coordinates.
    """
    total = 0
    for i in model.layer_numbers:
        before, after, heads = model.widths[i - 1], model.widths[i], model.head_count(i)
        rank = min(heads, before * before, before * after)
        total += min(
            heads * (attention_dim(model.ranks[i - 1], before) + before * after - 1),
            rank * (before * before + before * after) - rank * rank,
            before * after * comb(before + 1, 2),
        )
    return known(total, "symmetries and coordinates of each layer")
