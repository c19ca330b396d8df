"""Rank stage: the block of an attention Jacobian that decides its rank. Weights and inputs over any ring enter, one matrix
leaves.

Rows are the first output rows at all tokens of all samples, (i, n, s); columns are the entries V[i, :] of the last V for these
rows, then the chosen free weights. When the last V is [I; 0], every further output row i adds d_(l-1) independent columns
V[i, :] (as many as Z has rank) that no other row sees. So the rank of the network is at least the rank of this block plus
(number of other output rows) * rank(Z).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2bridge.rank.backward import backward, forward
from m2bridge.rank.rings import Ring
from m2bridge.rank.slices import AttentionSlice

Triples = list[tuple[Any, Any, Any]]


def block_parts(
    shape: AttentionSlice, ring: Ring, layers: Triples, inputs: Any, forms: Any
) -> tuple[list[Any], Any]:
    """Derivatives by the free weights, block by block, and the last tokens Z."""
    passed = forward(ring, layers, inputs, softmax=shape.softmax)
    return backward(ring, layers, passed, forms, shape), passed[-1].tokens


def output_forms(shape: AttentionSlice, rows: NDArray[Any], outputs: int, samples: int) -> NDArray[Any]:
    """Output coordinates as linear forms of Z, (samples, outputs * t, d_(l-1), t): row i of `rows` in column s."""
    before, tokens = shape.widths[-2], shape.tokens
    forms = np.zeros((outputs, tokens, before, tokens), dtype=rows.dtype)
    for s in range(tokens):
        forms[:, s, :, s] = rows
    return np.broadcast_to(forms.reshape(-1, before, tokens), (samples, outputs * tokens, before, tokens))


def lay_out(
    shape: AttentionSlice, blocks: list[NDArray[Any]], z: NDArray[Any], outputs: int, columns: Any
) -> NDArray[Any]:
    """The matrix of the module's docstring, from plain arrays of any type."""
    before, tokens, count = shape.widths[-2], shape.tokens, z.shape[0]
    width = outputs * before
    pick = np.asarray(columns, dtype=np.int64)
    matrix = np.zeros((outputs, count * tokens, width + len(pick)), dtype=z.dtype)
    if len(pick):
        inner = np.concatenate(blocks, axis=-1)[..., pick]
        inner = inner.reshape(count, outputs, tokens, -1).swapaxes(0, 1)
        matrix[..., width:] = inner.reshape(outputs, count * tokens, -1)
    for i in range(outputs):
        matrix[i, :, i * before : (i + 1) * before] = np.swapaxes(z, -1, -2).reshape(-1, before)
    return matrix.reshape(-1, width + len(pick))


def assemble(
    shape: AttentionSlice,
    ring: Ring,
    number: Callable[[NDArray[np.int64]], Any],
    weights: Any,
    inputs: NDArray[np.int64],
    outputs: int,
    one: int,
) -> tuple[list[Any], Any]:
    """:func:`block_parts` at weights and inputs given as integers; `number` puts them into the ring."""
    before = shape.widths[-2]
    layers: Triples = [(number(q), number(k), number(v)) for q, k, v in weights]
    last = weights[-1][2][:outputs]
    rows = last if shape.widths[-1] < before else one * np.eye(outputs, before, dtype=np.int64)
    forms = output_forms(shape, rows, outputs, len(inputs))
    return block_parts(shape, ring, layers, number(inputs), number(forms))
