"""Rank stage: forward and backward pass of a deep attention network over any ring. Weights and inputs enter, token
matrices and rows of the Jacobian leave.

The network is Definition 2 of Henry, Marchetti and Kohn, layer by layer:

    S = X^T K^T Q X,   W = S (lightning) or the softmax of the columns of S,   Z = X W,   next X = V Z.

Rows of the Jacobian are adjoints: for an output coordinate H the backward pass gives its derivative by every weight,
so that memory is that of the rows asked for, never that of the whole Jacobian. The last V is left out: its columns are
known (they are the tokens Z), and the caller eliminates them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from m2bridge.rank.rings import Ring
from m2bridge.rank.slices import AttentionSlice


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What the backward pass needs of one layer."""

    inputs: Any
    queries: Any
    keys: Any
    weights: Any
    tokens: Any


def forward(ring: Ring, layers: list[tuple[Any, Any, Any]], inputs: Any, *, softmax: bool) -> list[Layer]:
    """All layers of the network at `inputs` of shape (N, d_0, t); the last tokens are Z, before the last V."""
    passed: list[Layer] = []
    x = inputs
    for k, (query, key, _) in enumerate(layers):
        queries, keys = ring.matmul(query, x), ring.matmul(key, x)
        scores = ring.matmul(ring.transpose(keys), queries)
        weights = ring.softmax(scores) if softmax else scores
        tokens = ring.matmul(x, weights)
        passed.append(Layer(inputs=x, queries=queries, keys=keys, weights=weights, tokens=tokens))
        if k < len(layers) - 1:
            x = ring.matmul(layers[k][2], tokens)
    return passed


def backward(
    ring: Ring, layers: list[tuple[Any, Any, Any]], passed: list[Layer], adjoint: Any, shape: AttentionSlice
) -> list[Any]:
    """Derivatives of output coordinates by the free weights.

    `adjoint` has shape (N, O, d_(l-1), t): O output coordinates of each sample as linear forms of the last tokens Z.
    The answer is a list of arrays (N, O, columns), in the order Q_1, K_1, V_1, Q_2, ..., Q_l, K_l, free entries only.
    """
    blocks: list[list[Any]] = []
    for k in reversed(range(shape.depth)):
        query, key, _ = layers[k]
        layer = passed[k]
        x = layer.inputs[:, None]
        grads: list[Any] = []
        mixed = ring.matmul(ring.transpose(x), adjoint)
        if shape.softmax:
            mixed = ring.softmax_adjoint(layer.weights[:, None], mixed)
        flipped = ring.transpose(mixed)
        x_t = ring.transpose(x)
        by_query = ring.matmul(ring.matmul(layer.keys[:, None], mixed), x_t)
        by_key = ring.matmul(ring.matmul(layer.queries[:, None], flipped), x_t)
        grads += [_free(by_query, shape.masks[k][0]), _free(by_key, shape.masks[k][1])]
        if k > 0:
            by_x = ring.matmul(adjoint, ring.transpose(layer.weights[:, None]))
            by_x = ring.add(
                by_x, ring.matmul(ring.transpose(key), ring.matmul(layer.queries[:, None], flipped))
            )
            by_x = ring.add(by_x, ring.matmul(ring.transpose(query), ring.matmul(layer.keys[:, None], mixed)))
            value = layers[k - 1][2]
            mask = shape.masks[k - 1][2]
            by_value = []
            if mask.any():
                product = ring.matmul(by_x, ring.transpose(passed[k - 1].tokens[:, None]))
                by_value = [_free(product, mask)]
            adjoint = ring.matmul(ring.transpose(value), by_x)
            blocks.append(grads)
            blocks.append(by_value)
        else:
            blocks.append(grads)
    return [block for group in reversed(blocks) for block in group if block.shape[-1]]


def _free(array: Any, mask: Any) -> Any:
    flat = array.reshape(*array.shape[:-2], mask.size)
    return flat if mask.all() else flat[..., mask.ravel().nonzero()[0]]
