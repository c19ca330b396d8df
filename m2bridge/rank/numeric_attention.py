"""Rank stage: the float64 rank of a deep attention network on its gauge slice. Sizes and a seed enter, a
:class:`~m2bridge.linear.numeric.NumericRank` of the whole network leaves.

The matrix is that of :mod:`m2bridge.rank.ball`, for lightning and softmax: a few output rows, their rows of the last V, and
all other free weights. Tokens are brought back to size one after each lightning layer by scaling V, which any
gauge slice allows.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from m2bridge.linear.numeric import NumericRank, numeric_rank
from m2bridge.linear.residues import Floats
from m2bridge.rank.attention import plan
from m2bridge.rank.ball import draw_dyadic
from m2bridge.rank.block import block_parts, lay_out, output_forms
from m2bridge.rank.rings import FloatRing
from m2bridge.rank.slices import AttentionSlice


def numeric_attention_rank(shape: AttentionSlice, *, seed: int = 0) -> tuple[NumericRank, tuple[int, int]]:
    """Numerical rank of the network's Jacobian, and the size of the matrix it was read from."""
    ring = FloatRing()
    current = plan(shape)
    samples = math.ceil((1.5 if shape.depth <= 2 else 2.0) * current.samples)
    if shape.softmax:
        point = draw_dyadic(shape, samples, seed)
        one = 1 << point.bits
        layers = [(q / one, k / one, v / one) for q, k, v in point.layers]
        inputs = point.inputs / one
    else:
        layers, inputs = _lightning_point(shape, samples, seed)
    before, outputs = shape.widths[-2], current.outputs
    narrow = shape.widths[-1] < before
    rows = layers[-1][2][:outputs] if narrow else np.eye(outputs, before)
    blocks, z = block_parts(shape, ring, layers, inputs, output_forms(shape, rows, outputs, samples))
    matrix = lay_out(shape, blocks, z, outputs, range(shape.inner_count))
    found = numeric_rank(matrix)
    size = (matrix.shape[0], matrix.shape[1])
    rest = (shape.widths[-1] - outputs) * before
    token_rank = numeric_rank(np.swapaxes(z, -1, -2).reshape(-1, before))
    if rest and token_rank.rank != before:
        return replace(found, rank=None), size
    decided = None if found.rank is None else found.rank + rest
    return replace(found, rank=decided, candidate=found.candidate + rest), size


def _lightning_point(
    shape: AttentionSlice, samples: int, seed: int
) -> tuple[list[tuple[Floats, Floats, Floats]], Floats]:
    rng = np.random.default_rng([seed, 7])
    inputs = rng.normal(size=(samples, shape.widths[0], shape.tokens))
    # lightning layers are cubic in their inputs: unit tokens keep all samples at one scale
    inputs /= np.linalg.norm(inputs, axis=(-1, -2), keepdims=True) / math.sqrt(shape.widths[0])
    layers: list[tuple[Floats, Floats, Floats]] = []
    x = inputs
    for k, masks in enumerate(shape.masks):
        query, key, value = (rng.normal(size=mask.shape) / math.sqrt(mask.shape[1]) for mask in masks)
        fixed = shape.place_layer(k, tuple(np.zeros(mask.shape, dtype=np.int64) for mask in masks))
        query, key, value = (
            np.where(mask, drawn, put)
            for mask, drawn, put in zip(masks, (query, key, value), fixed, strict=True)
        )
        if k == shape.depth - 1 and shape.widths[-1] >= shape.widths[-2]:
            value = np.eye(*masks[2].shape)
        tokens = x @ (np.swapaxes(key @ x, -1, -2) @ (query @ x))
        if k < shape.depth - 1:
            value = value / np.sqrt(np.mean((value @ tokens) ** 2))
        layers.append((query, key, value))
        x = value @ tokens
    return layers, inputs
