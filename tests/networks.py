"""Networks of the kind people bring, written as they would write them: NumPy on arrays, one function each.

``NETWORKS`` lists (name, function, shapes of the weights, shapes of the inputs). The functions run on plain arrays as well,
so every test can compare with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

Shapes = dict[str, tuple[int, ...]]


def biases(W1: Any, b1: Any, W2: Any, b2: Any, x: Any) -> Any:
    return W2 @ (W1 @ x + b1) ** 2 + b2


def mixed_degrees(U: Any, V: Any, x: Any) -> Any:
    h = U @ x
    return V @ np.concatenate([h[:1], h[1:2] ** 2, h[2:] ** 3])


def learnable_activation(W: Any, c: Any, v: Any, x: Any) -> Any:
    h = W @ x
    return v @ sum(c[k] * h ** (k + 1) for k in range(len(c)))


def graph_convolution(W1: Any, W2: Any, X: Any) -> Any:
    adjacency = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]])
    degrees = adjacency.sum(axis=1)
    mean = np.array(
        [[Fraction(int(a), int(d)) for a in row] for row, d in zip(adjacency, degrees, strict=True)]
    )
    return mean @ (mean @ X @ W1) ** 2 @ W2


def deep_sets(phi: Any, rho: Any, X: Any) -> Any:
    pooled = sum((phi @ x) ** 2 for x in X)
    return rho @ pooled**2


def gram_matrix(U: Any) -> Any:
    return U @ U.T


def tensor_train(G1: Any, G2: Any, G3: Any) -> Any:
    return np.einsum("ia,ajb,bk->ijk", G1, G2, G3)


def cp_decomposition(A: Any, B: Any, C: Any) -> Any:
    return np.einsum("ir,jr,kr->ijk", A, B, C)


def gaussian_moments(mu: Any, L: Any) -> Any:
    cov = np.tril(L) @ np.tril(L).T
    second = cov + np.outer(mu, mu)
    third = (
        np.einsum("i,j,k->ijk", mu, mu, mu)
        + np.einsum("i,jk->ijk", mu, cov)
        + np.einsum("j,ik->ijk", mu, cov)
        + np.einsum("k,ij->ijk", mu, cov)
    )
    return {"first": mu, "second": second, "third": third}


def causal_mask(A: Any, V: Any, X: Any) -> Any:
    scores = np.triu(X.T @ A @ X)
    return V @ X @ scores


def cross_attention(Q: Any, K: Any, V: Any, X: Any, Z: Any) -> Any:
    return (V @ Z) @ (K @ Z).T @ (Q @ X)


def tied_attention(Q: Any, V: Any, X: Any) -> Any:
    queries = Q @ X
    return V @ X @ (queries.T @ queries)


def positional_encoding(A: Any, V: Any, X: Any) -> Any:
    positions = np.array([[0, 1, 2], [1, 0, -1]])
    Y = X + positions
    return V @ Y @ (Y.T @ A @ Y)


def rope(Q: Any, K: Any, V: Any, X: Any) -> Any:
    """Rotations by the angle of 3/5 + 4/5 i, which are exact."""
    turn = np.array([[Fraction(3, 5), Fraction(-4, 5)], [Fraction(4, 5), Fraction(3, 5)]], dtype=object)
    turns = [np.eye(2, dtype=int).astype(object)]
    for _ in range(X.shape[1] - 1):
        turns.append(turns[-1] @ turn)
    queries = np.stack([turns[k] @ (Q @ X[:, k]) for k in range(X.shape[1])], axis=1)
    keys = np.stack([turns[k] @ (K @ X[:, k]) for k in range(X.shape[1])], axis=1)
    return V @ X @ (keys.T @ queries)


def transformer_block(Q: Any, K: Any, V: Any, W1: Any, b1: Any, W2: Any, X: Any) -> Any:
    attended = X + V @ X @ ((K @ X).T @ (Q @ X)) / 2
    return attended + W2 @ (W1 @ attended + b1[:, None]) ** 2


def cubic_attention(Q: Any, K: Any, V: Any, X: Any) -> Any:
    return V @ X @ ((K @ X).T @ (Q @ X)) ** 3


def hadamard_products(U: Any, V: Any, W: Any, x: Any) -> Any:
    return W @ ((U @ x) * (V @ x))


def kronecker_layers(A: Any, B: Any, C: Any, x: Any) -> Any:
    return np.kron(C, C) @ (np.kron(A, B) @ x) ** 2


def low_rank_adapter(A: Any, B: Any, x: Any) -> Any:
    frozen = np.array([[1, 2, 0], [0, 1, -1], [3, 0, 1]])
    return (frozen + B @ A) @ x


def two_layer_causal_attention(A1: Any, V1: Any, A2: Any, V2: Any, X: Any) -> Any:
    mask = np.triu(np.ones((X.shape[1], X.shape[1]), dtype=int))
    Y = V1 @ X @ (mask * (X.T @ A1 @ X))
    return V2 @ Y @ (mask * (Y.T @ A2 @ Y))


def group_convolution(w: Any, v: Any, x: Any) -> Any:
    """The cyclic group with Python's sum, one entry at a time."""
    n = len(x)
    h = [sum(w[(i - j) % n] * x[j] for j in range(n)) ** 2 for i in range(n)]
    return [sum(v[(i - j) % n] * h[j] for j in range(n)) for i in range(n)]


def group_convolution_einsum(w: Any, v: Any, x: Any) -> Any:
    """The cyclic group with a constant array of integers: c[i,j,k] = 1 where k = i - j."""
    n = x.shape[0]
    c = np.zeros((n, n, n), dtype=int)
    for i in range(n):
        for j in range(n):
            c[i, j, (i - j) % n] = 1
    h = np.einsum("ijk,k,j->i", c, w, x) ** 2
    return np.einsum("ijk,k,j->i", c, v, h)


def softmax_attention(Q: Any, K: Any, V: Any, X: Any) -> Any:
    scores = (K @ X).T @ (Q @ X) / 2
    e = np.exp(scores - scores.max(axis=0, keepdims=True))
    return V @ X @ (e / e.sum(axis=0, keepdims=True))


SQUARE = {"Q": (2, 2), "K": (2, 2), "V": (2, 2)}

NETWORKS: list[tuple[str, Callable[..., Any], Shapes, Shapes]] = [
    ("biases", biases, {"W1": (2, 2), "b1": (2,), "W2": (2, 2), "b2": (2,)}, {"x": (2,)}),
    ("mixed degrees", mixed_degrees, {"U": (3, 2), "V": (2, 3)}, {"x": (2,)}),
    ("learnable activation", learnable_activation, {"W": (2, 2), "c": (3,), "v": (2,)}, {"x": (2,)}),
    ("graph convolution", graph_convolution, {"W1": (2, 2), "W2": (2, 1)}, {"X": (4, 2)}),
    ("deep sets", deep_sets, {"phi": (2, 2), "rho": (1, 2)}, {"X": (3, 2)}),
    ("gram matrix", gram_matrix, {"U": (4, 2)}, {}),
    ("tensor train", tensor_train, {"G1": (3, 2), "G2": (2, 3, 2), "G3": (2, 3)}, {}),
    ("cp decomposition", cp_decomposition, {"A": (3, 2), "B": (3, 2), "C": (3, 2)}, {}),
    ("gaussian moments", gaussian_moments, {"mu": (3,), "L": (3, 3)}, {}),
    ("causal mask", causal_mask, {"A": (2, 2), "V": (2, 2)}, {"X": (2, 3)}),
    ("cross-attention", cross_attention, SQUARE, {"X": (2, 2), "Z": (2, 3)}),
    ("tied attention", tied_attention, {"Q": (1, 3), "V": (2, 3)}, {"X": (3, 2)}),
    ("positional encoding", positional_encoding, {"A": (2, 2), "V": (2, 2)}, {"X": (2, 3)}),
    ("rope", rope, SQUARE, {"X": (2, 3)}),
    (
        "transformer block",
        transformer_block,
        {**SQUARE, "W1": (3, 2), "b1": (3,), "W2": (2, 3)},
        {"X": (2, 2)},
    ),
    ("cubic attention", cubic_attention, {"Q": (1, 2), "K": (1, 2), "V": (2, 2)}, {"X": (2, 2)}),
    ("hadamard products", hadamard_products, {"U": (3, 2), "V": (3, 2), "W": (2, 3)}, {"x": (2,)}),
    ("kronecker layers", kronecker_layers, {"A": (2, 2), "B": (2, 2), "C": (1, 2)}, {"x": (4,)}),
    ("low-rank adapter", low_rank_adapter, {"A": (1, 3), "B": (3, 1)}, {"x": (3,)}),
    (
        "two-layer causal attention",
        two_layer_causal_attention,
        {"A1": (3, 3), "V1": (3, 3), "A2": (3, 3), "V2": (3, 3)},
        {"X": (3, 3)},
    ),
    ("group convolution", group_convolution, {"w": (3,), "v": (3,)}, {"x": (3,)}),
    ("group convolution with einsum", group_convolution_einsum, {"w": (3,), "v": (3,)}, {"x": (3,)}),
]
"""All of these are polynomial."""

ANALYTIC_NETWORKS: list[tuple[str, Callable[..., Any], Shapes, Shapes]] = [
    ("softmax attention", softmax_attention, SQUARE, {"X": (2, 3)}),
]
