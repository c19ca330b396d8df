"""Record a network written as a Python function, and compare it with the built-in family that it belongs to.

Run with ``python examples/traced_network.py``. The function below does not use m2bridge: it is plain
array code. Recording it gives exact values and Jacobians over F_p, the polynomial coordinates, and a
definition for Macaulay2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import nmod_mat

from m2bridge.errors import NotPolynomialError
from m2bridge.families import Lightning, Mod, UserNetwork, from_callable, jacobian
from m2bridge.questions.dimension import dimension

PRIME = 8388593


def attention(X: Any, W_query: Any, W_key: Any, W_value: Any) -> Any:
    """Return linear attention; the columns of X are tokens."""
    queries, keys, values = W_query @ X, W_key @ X, W_value @ X
    return values @ (keys.T @ queries)


def softmax_attention(X: Any, W_query: Any, W_key: Any, W_value: Any) -> Any:
    """Return attention with a softmax, which is analytic and not polynomial."""
    scores = np.exp((W_key @ X).T @ (W_query @ X))
    return W_value @ X @ (scores / scores.sum(axis=0))


def relu_attention(X: Any, W_query: Any, W_key: Any, W_value: Any) -> Any:
    """Return attention with a ReLU, which is neither polynomial nor analytic."""
    return W_value @ X @ np.maximum((W_key @ X).T @ (W_query @ X), 0)


def image_dim(model: UserNetwork) -> int:
    """Return the rank of the Jacobian at a random point over F_p, a lower bound of the dimension."""
    _, matrix = jacobian(model, model.draw_weights(np.random.default_rng(0), PRIME), p=PRIME)
    return int(nmod_mat(*matrix.shape, matrix.reshape(-1).tolist(), PRIME).rank())


def main() -> None:
    shapes = {"W_query": (2, 3), "W_key": (2, 3), "W_value": (1, 3)}
    model = from_callable(attention, shapes, inputs={"X": (3, 2)})
    print(model.title)
    print("coordinates:", model.coordinate_count, "such as", model.coordinate_names[1])
    rank = image_dim(model)
    formula = Lightning(d=3, dp=1, a=2).knowledge.formula
    print("image dimension:", rank, "; Equation 7 of arXiv:2408.17221:", formula.value)
    assert rank == formula.value

    rng = np.random.default_rng(1)
    weights = {name: Mod(value, PRIME) for name, value in model.draw_weights(rng, PRIME).items()}
    inputs = Mod(rng.integers(0, PRIME, (1000, 3, 2)), PRIME)
    print("values at 1000 inputs modulo p:", model.forward(weights, inputs).shape)

    analytic = dimension(from_callable(softmax_attention, shapes, inputs={"X": (3, 2)}), engine=False)
    print("image dimension with a softmax:", analytic.image_dim, f"({analytic.certainty.value})")

    try:
        from_callable(relu_attention, shapes, inputs={"X": (3, 2)})
    except NotPolynomialError as error:
        print("rejected:", error)


if __name__ == "__main__":
    main()
