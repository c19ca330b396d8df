"""Models stage: what is known about deep lightning attention: symmetries, gradings, formulas and bounds.

Reference: Henry, Marchetti, Kohn, arXiv:2408.17221, section 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from m2bridge.models.arrays import mT
from m2bridge.models.base import Formula, Symmetry, Weights
from m2bridge.models.gradings import attention_characters, coefficient_rows, output_rows, parameter_rows
from m2bridge.models.lightning import PAPER
from m2bridge.models.segre import segre_grading
from m2bridge.models.symmetries import Action, gl, gl_each_head, query_key_action, torus

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
        return (_virtual_scaling(model),)
    found: list[Symmetry] = []
    for i in range(1, model.layers + 1):
        found += _layer_symmetries(model, i, scalings)
    if not model.skip:
        found += [
            gl(
                model,
                model.d[i],
                _between(model, i),
                name=f"change of basis between layers {i} and {i + 1}",
                citation=f"{PAPER}, Equation 9",
            )
            for i in range(1, model.layers)
        ]
    return tuple(found)


def _layer_symmetries(model: DeepLightning, i: int, scalings: bool) -> list[Symmetry]:
    heads = model.heads[i - 1]
    found: list[Symmetry] = []
    if model.parametrization == "weights":
        action = query_key_action(f"Q{i}", f"K{i}")
        kind: dict[str, str] = {"name": f"(C^-T Q{i}, C K{i})", "citation": f"{PAPER}, Lemma 3.1"}
        a = model.a[i - 1]
        found.append(
            gl_each_head(model, a, heads, action, **kind) if heads > 1 else gl(model, a, action, **kind)
        )
    elif scalings and heads > 1 and model.a[i - 1] >= model.d[i - 1]:
        citation = "the layer depends on the sum of A_h (x) V_h over the heads only"
        mixing = gl(model, heads, _mixing(i), name=f"mixing of the heads of layer {i}", citation=citation)
        return [mixing]
    if not scalings:
        return found
    scaled = f"A{i}" if model.parametrization == "attention" else f"Q{i}"
    which = np.eye(heads, dtype=np.int64).reshape(heads, *(heads,) * (heads > 1), 1, 1)
    shapes = model.parameters
    characters = {
        scaled: np.broadcast_to(which, (heads, *shapes[scaled])),
        f"V{i}": -np.broadcast_to(which, (heads, *shapes[f"V{i}"])),
    }
    name = f"(s A{i}, V{i} / s)" + (" in each head" if heads > 1 else "")
    found.append(torus(model, characters, name=name, citation=f"{PAPER}, Equation 13"))
    return found


def _mixing(i: int) -> Action:
    def action(E: Any, w: Weights) -> Mapping[str, Any]:
        A, V = w[f"A{i}"], w[f"V{i}"]
        heads, count = A.shape[0], E.shape[0]
        flat_A, flat_V = A.reshape(heads, A.shape[1] * A.shape[2]), V.reshape(heads, V.shape[1] * V.shape[2])
        return {
            f"A{i}": (E @ flat_A).reshape(count, *A.shape),
            f"V{i}": (-(mT(E) @ flat_V)).reshape(count, *V.shape),
        }

    return action


def _between(model: DeepLightning, i: int) -> Action:
    """X -> C X after layer i, undone in layer i + 1 (Equation 9)."""

    def action(E: Any, w: Weights) -> Mapping[str, Any]:
        after = E[:, None] if model.heads[i] > 1 else E
        before = E[:, None] if model.heads[i - 1] > 1 else E
        value, following = f"V{i}", f"V{i + 1}"
        moved = {value: before @ w[value], following: -(w[following] @ after)}
        if model.parametrization == "attention":
            A = w[f"A{i + 1}"]
            return moved | {f"A{i + 1}": -(mT(after) @ A + A @ after)}
        return moved | {f"{letter}{i + 1}": -(w[f"{letter}{i + 1}"] @ after) for letter in "QK"}

    return action


def _virtual_scaling(model: DeepLightning) -> Symmetry:
    layers = model.layers
    characters: dict[str, np.ndarray] = {}
    for name, shape in model.parameters.items():
        table = np.zeros((layers, *shape), dtype=np.int64)
        for i in range(1, layers + 1):
            table[i - 1] = int(name == f"M{i}") - (3 ** (layers - i) if name == "L" else 0)
        characters[name] = table
    return torus(model, characters, name="rescaling of M_i and L", citation=f"{PAPER}, Equation 13")


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
