"""What is known about deep lightning attention: symmetries, gradings, formulas and bounds.

Reference: Henry, Marchetti, Kohn, arXiv:2408.17221, section 3.3.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from m2bridge.models.base import Formula, Symmetry
from m2bridge.models.gradings import attention_characters, coefficient_rows, output_rows, parameter_rows
from m2bridge.models.lightning import PAPER
from m2bridge.models.segre import segre_grading
from m2bridge.models.symmetries import Label

if TYPE_CHECKING:
    from m2bridge.models.deep import DeepLightning


def attention_dim(a: int, d: int) -> int:
    """Dimension of the variety of d x d matrices of rank <= a."""
    rank = min(a, d)
    return rank * (2 * d - rank)


def deep_symmetries(model: DeepLightning, *, scalings: bool = True) -> tuple[Symmetry, ...]:
    """Scalings, GL(a_i) inside and GL(d_i) between layers, as far as heads and skip connections leave them.

    Without `scalings`, those that softmax keeps: it depends on the attention matrices, not up to multiples.
    """
    if model.parametrization == "virtual":
        return tuple(_virtual_scaling(model, i) for i in range(1, model.layers + 1))
    found: list[Symmetry] = []
    for i in range(1, model.layers + 1):
        found += _layer_symmetries(model, i, scalings)
    if not model.skip:
        found += [_between(model, i) for i in range(1, model.layers)]
    return tuple(found)


def _layer_symmetries(model: DeepLightning, i: int, scalings: bool) -> list[Symmetry]:
    heads, shapes = model.heads[i - 1], model.parameters
    several = heads > 1
    scaled = f"A{i}" if model.parametrization == "attention" else f"Q{i}"
    found: list[Symmetry] = []
    if model.parametrization == "weights":
        copies: tuple[Label, ...] = ("*",) if several else ()
        found.append(
            Symmetry(
                name=f"(C^-T Q{i}, C K{i})",
                citation=f"{PAPER}, Lemma 3.1",
                kind="gl",
                size=model.a[i - 1],
                axes={f"Q{i}": (*copies, -1, 0), f"K{i}": (*copies, 1, 0)},
                shapes=shapes,
            )
        )
    elif scalings and several and model.a[i - 1] >= model.d[i - 1]:
        mixing = Symmetry(
            name=f"mixing of the heads of layer {i}",
            citation="the layer depends on the sum of A_h (x) V_h over the heads only",
            kind="gl",
            size=heads,
            axes={scaled: (1, 0, 0), f"V{i}": (-1, 0, 0)},
            shapes=shapes,
        )
        return [mixing]
    if scalings:
        found.append(
            Symmetry(
                name=f"(s A{i}, V{i} / s)" + (" in each head" if several else ""),
                citation=f"{PAPER}, Equation 13",
                kind="torus" if several else "scaling",
                size=heads,
                axes={scaled: (1, 0, 0) if several else (1,), f"V{i}": (-1, 0, 0) if several else (-1,)},
                shapes=shapes,
            )
        )
    return found


def _between(model: DeepLightning, i: int) -> Symmetry:
    """X -> C X after layer i, undone in layer i + 1 (Equation 9)."""

    def behind_heads(layer: int, *labels: Label) -> tuple[Label, ...]:
        return (0, *labels) if model.heads[layer - 1] > 1 else labels

    axes = {f"V{i}": behind_heads(i, 1, 0), f"V{i + 1}": behind_heads(i + 1, 0, -1)}
    if model.parametrization == "attention":
        axes[f"A{i + 1}"] = behind_heads(i + 1, -1, -1)
    else:
        axes |= {f"{letter}{i + 1}": behind_heads(i + 1, 0, -1) for letter in "QK"}
    return Symmetry(
        name=f"change of basis between layers {i} and {i + 1}",
        citation=f"{PAPER}, Equation 9",
        kind="gl",
        size=model.d[i],
        axes=axes,
        shapes=model.parameters,
    )


def _virtual_scaling(model: DeepLightning, i: int) -> Symmetry:
    return Symmetry(
        name=f"rescaling of M_{i} and L",
        citation=f"{PAPER}, Equation 13",
        kind="scaling",
        size=1,
        axes={f"M{i}": (1,), "L": (-(3 ** (model.layers - i)),)},
        shapes=model.parameters,
    )


def deep_gradings(model: DeepLightning) -> tuple[np.ndarray, np.ndarray]:
    """Torus weights of the coordinates and of the parameters, row by row.

    Without skip connections: scalings of input rows, (for Segre coordinates: of columns of A,) and of output
    rows. With skip connections: conjugation by scalings of the rows.
    """
    d0, dl, t = model.d[0], model.d[-1], model.t
    none = np.zeros(d0, dtype=np.int64)
    units, outputs = np.eye(d0, dtype=np.int64), np.eye(dl, dtype=np.int64)
    segre = model.coordinate_system == "segre"
    if model.parametrization == "virtual":
        sources = [{"A": f"M{i}"} for i in range(1, model.layers + 1)]
        first, last = "L", "L"
    else:
        letters = "A" if model.parametrization == "attention" else "QK"
        sources = [{letter: f"{letter}{i}" for letter in letters} for i in range(1, model.layers + 1)]
        first, last = "V1", f"V{model.layers}"
        if not model.skip:
            sources = sources[:1]
    rows: list[dict[str, np.ndarray]] = []
    for e in units:
        row: dict[str, np.ndarray] = {}
        for names in sources:
            row |= attention_characters(names, e, none if segre else e)
        if model.skip:
            row |= {f"V{i}": e[None, :] - e[:, None] for i in range(1, model.layers + 1)}
        else:
            row[first] = e[None, :]
        rows.append(row)
    if segre:
        rows += [attention_characters(sources[0], none, e) for e in units]
    if not model.skip:
        rows += [{last: e[:, None]} for e in outputs]
    if segre:
        return segre_grading(d0, dl), parameter_rows(model.parameters, rows)
    inputs = coefficient_rows(model.monomials, model.input_shape, dl, t)
    scaled = output_rows(model.monomials, dl, t)
    target = inputs - scaled if model.skip else np.concatenate([inputs, scaled])
    return target, parameter_rows(model.parameters, rows)


def deep_formula(model: DeepLightning) -> Formula | None:
    """Equation 7 for one layer, Equation 14 for more; None with several heads or skip connections.

    Equation 14 leaves delta undetermined for one layer, so it is not used there.
    """
    if model.skip or model.multi_head:
        return None
    d, a = model.d, model.a
    hypotheses: tuple[tuple[str, bool], ...]
    if model.layers == 1:
        value = attention_dim(a[0], d[0]) + d[0] * d[1] - 1
        hypotheses = (
            ("t >= 2", model.t >= 2),
            ("d, d' >= 2 or d, a >= 2", d[0] >= 2 and (d[1] >= 2 or a[0] >= 2)),
        )
        citation = f"{PAPER}, Corollary 3.3, Equation 7"
    else:
        value = bottleneck_value(d, a) - model.layers
        hypotheses = (
            ("t >= 3", model.t >= 3),
            ("every a_i >= 2", min(a) >= 2),
            *bottleneck_hypotheses(d),
            ("delta >= 2", d[1] >= 2),
        )
        citation = f"{PAPER}, Corollary 3.8, Equation 14"
    holds = all(truth for _, truth in hypotheses)
    return Formula(value=value if holds else None, citation=citation, hypotheses=hypotheses)


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


def deep_bound(model: DeepLightning) -> Formula:
    """The sum over layers of upper bounds of the dimension of a layer's functions.

    A layer is a sum over H heads of A_h (x) V_h, seen in d d' C(d+1, 2) coordinates: its functions have
    dimension at most H (dim D_a + d d' - 1), by the scaling in each head; at most h (d^2 + d d') - h^2 with
    h = min(H, d^2, d d'), the dimension of matrices of rank <= h of size d^2 x d d'; and at most the number
    of coordinates.
    """
    total = 0
    for i, heads in enumerate(model.heads):
        before, after = model.d[i], model.d[i + 1]
        rank = min(heads, before * before, before * after)
        total += min(
            heads * (attention_dim(model.a[i], before) + before * after - 1),
            rank * (before * before + before * after) - rank * rank,
            before * after * comb(before + 1, 2),
        )
    return Formula(value=total, citation="symmetries and coordinates of each layer", hypotheses=())
