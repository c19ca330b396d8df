"""Every dimension of a user-defined network that is called proved has a certificate that the checker verifies."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from m2bridge import checker, dimension, from_callable


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _softmax(scores: Any) -> Any:
    share = np.exp(scores)
    return share / share.sum(axis=1, keepdims=True)


def attention(X: Any, Q: Any, K: Any, V: Any) -> Any:
    return V @ X @ _softmax((K @ X).T @ (Q @ X)).T


def block(X: Any, Q: Any, K: Any, V: Any, W: Any, U: Any) -> Any:
    """Causal softmax attention and squares, each with a skip."""
    share = np.exp((K @ X).T @ (Q @ X)) * np.tril(np.ones((3, 3), dtype=int))
    Y = X + V @ X @ (share / share.sum(axis=1, keepdims=True)).T
    return Y + U @ (W @ Y) ** 2


HEADS = {"Q": (2, 3), "K": (2, 3), "V": (3, 3)}
NETWORKS: dict[str, tuple[Any, dict[str, tuple[int, ...]], dict[str, tuple[int, ...]] | None]] = {
    "quotients": (lambda w: np.stack([w[0] / w[1], w[1] / w[2], w[2] / w[0]]), {"w": (3,)}, None),
    "a quotient of sums": (lambda w, x: (w[0] * x[0] + w[1]) / (w[2] * x[0] + w[3]), {"w": (4,)}, {"x": (1,)}),
    "rational neurons": (lambda W, U, x: U @ (1 / (W @ x)), {"W": (2, 2), "U": (1, 2)}, {"x": (2,)}),
    "squares with biases": (lambda W, b, U, x: U @ (W @ x + b) ** 2, {"W": (3, 2), "b": (3,), "U": (2, 3)}, {"x": (2,)}),
    "a bias before a linear map": (lambda W, b, U, x: U @ (W @ x + b), {"W": (2, 3), "b": (2,), "U": (2, 2)}, {"x": (3,)}),
    "sigmoids": (lambda W, b, U, x: U @ _sigmoid(W @ x + b), {"W": (3, 2), "b": (3,), "U": (2, 3)}, {"x": (2,)}),
    "a gate": (lambda W, V, U, x: U @ ((W @ x) * _sigmoid(V @ x)), {"W": (3, 2), "V": (3, 2), "U": (2, 3)}, {"x": (2,)}),
    "softmax attention": (attention, HEADS, {"X": (3, 3)}),
    "a block": (block, HEADS | {"W": (2, 3), "U": (3, 2)}, {"X": (3, 3)}),
    "one row of many": (lambda W, v, x: np.concatenate([((W @ x) ** 2)[:1], v[None] @ (W @ x) ** 2]),
                        {"W": (3, 2), "v": (3,)}, {"x": (2,)}),
    "an input that is not used": (lambda V, W, x: (V @ x[1:]) * (W @ x[1:]), {"V": (1, 1), "W": (1, 1)}, {"x": (2,)}),
    "a mean that is divided by": (lambda W, U, x: U @ ((W @ x) / (W @ x).sum()), {"W": (3, 2), "U": (2, 3)}, {"x": (2,)}),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_proved_is_verified(name: str) -> None:
    function, weights, inputs = NETWORKS[name]
    answer = dimension(from_callable(function, weights, inputs=inputs), engine=False)
    assert answer.agreement is not False
    if answer.certainty.value == "proved":
        code, lines = checker.verify(json.dumps(answer.certificate))
        assert code == 0, lines
        assert lines[0] == f"Verified: the dimension is {answer.image_dim}."
    else:
        assert answer.certificate is None or answer.lower_bound < answer.upper_bound
