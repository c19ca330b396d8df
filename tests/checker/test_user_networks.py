"""Every dimension of a user-defined network that is called proved has a certificate that the checker verifies."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from m2bridge import checker, dimension, from_callable, records, symmetries


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

DIMENSIONS = {
    "quotients": 2,  # one common factor
    "a quotient of sums": 3,  # one common factor
    "rational neurons": 6 - 2,  # one scaling for each neuron
    "squares with biases": 15 - 3,  # one scaling for each neuron
    "a bias before a linear map": 6 + 2,  # a 2 x 3 matrix of rank two and a vector
    "sigmoids": 15,
    "a gate": 18 - 3,  # one scaling for each neuron
    "softmax attention": 21 - 4,  # GL(2) on queries and keys
    "a block": 33 - 4 - 2,  # and two scalings of squared neurons
    "one row of many": 2 + 3,  # the first row, and a quadratic form
    "an input that is not used": 1,
    "a mean that is divided by": 6 - 1,  # U W and the sum of rows of W, up to a common factor
}
WITHOUT_UPPER_BOUND = {"one row of many"}


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_proved_is_verified(name: str) -> None:
    function, weights, inputs = NETWORKS[name]
    answer = dimension(from_callable(function, weights, inputs=inputs), engine=False)
    assert answer.agreement is not False
    assert answer.lower_bound == DIMENSIONS[name]
    if name in WITHOUT_UPPER_BOUND:
        assert answer.upper_bound > answer.lower_bound
        assert answer.certainty.value == "probable"
        return
    assert answer.certainty.value == "proved"
    code, lines = checker.verify(json.dumps(answer.certificate))
    assert code == 0, lines
    assert lines[0] == f"Verified: the dimension is {DIMENSIONS[name]}."


def test_e_is_a_constant() -> None:
    """Whether e and e^e are independent is an open problem, so that a (e^e - 15) has no certificate."""
    network = from_callable(lambda a: a * (np.exp(np.exp(0 * a + 1)) - 15), {"a": (1,)})
    answer = dimension(network, engine=False)
    assert (answer.image_dim, answer.certainty.value) != (1, "proved")


def test_a_certificate_does_not_cover_fields_outside_of_the_answer() -> None:
    answer = records.to_document(dimension("mlp(widths=[2,2,1],r=2)", engine=False))
    assert checker.verify(json.dumps({"job": {}, "result": answer}))[0] == 0
    code, lines = checker.verify(json.dumps({"job": {}, "result": answer, "image_dim": 77}))
    assert code == 7
    assert "image_dim" in lines[0]


def test_a_smaller_symmetry_is_not_the_dimension_of_all() -> None:
    found = records.to_document(symmetries("mlp(widths=[2,3,1],r=2)"))
    found["certificate"] = [c for c in found["certificate"] if c["statement"]["kind"] == "symmetry"]
    found["symmetry_dim"] -= 1
    assert checker.verify(json.dumps(found))[0] == 7


def document(program: str, statement: dict[str, Any], **arguments: Any) -> str:
    text = f"m2bridge program 1\n{program}\n"
    head = {"format": "m2bridge certificate", "version": 2, "spec": None}
    return json.dumps({**head, "statement": statement, "program": text, **arguments})


def test_arcs_of_different_orders_are_compared() -> None:
    """w = t and w = t^2 have the same tangent direction: the line is smooth."""
    line = document(
        "%0 = weight w []\n%1 = scale 1 %0\noutput y %1",
        {"kind": "singular", "weights": [0]},
        argument={"prime": 101, "upper": {"kind": "parameters"}, "arcs": [[[0, 1]], [[0, 0, 1]]]},
    )
    assert checker.verify(line)[0] == 7


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("%0 = weight w []\n%1 = input x [20]\n%2 = power 5000 %1\n%3 = multiply %0 %2\noutput y %3", "at most ..."),
        ("%0 = weight w []\n%1 = scale -1 %0\n%2 = add %0 %1\n%3 = reciprocal %2\noutput y %3", "a denominator is zero"),
    ],
)  # fmt: skip
def test_nothing_is_shown_without_rows_of_a_minor(program: str, reason: str) -> None:
    """A huge bound is no error of the checker; a function that is defined nowhere has no dimension."""
    inputs = {"seed": 0, "stream": 0, "fixed": []} if "input" in program else {"entries": []}
    lower: dict[str, Any] = {"kind": "minor", "prime": 101, "weights": {"entries": [1]}, "samples": 1}
    lower |= {"inputs": inputs, "rows": [], "columns": []}
    statement = {"kind": "dimension", "dimension": 0}
    code, lines = checker.verify(document(program, statement, lower=lower, upper={"kind": "coordinates"}))
    assert code == 7, lines
    assert reason in lines[0]
