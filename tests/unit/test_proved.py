"""An answer is called proved exactly if ``m2bridge check`` verifies its record: all questions that need no Macaulay2.

``tests/with_m2/test_proved.py`` asks the others. Of rational maps, and of Python functions as the argument of `identifiable`, the
checker verifies the program alone (exit code 9).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import m2bridge
from m2bridge.checker import verify
from m2bridge.families import Model
from m2bridge.records import dumps, to_document
from m2bridge.results import Result

SPECS = (
    "lightning(d=2,dp=1)",
    "lightning(d=3,dp=2,a=1,t=2,parametrization=attention)",
    "deep-lightning(d=[2,2,2],a=[1,1],t=2)",
    "deep-lightning(d=[2,2,2],a=[1,1],t=2,parametrization=attention)",
    "deep-lightning(d=[2,2,2],a=[1,1],t=2,parametrization=virtual)",
    "multi-head(d=2,dp=2,a=2,heads=2,t=2)",
    "skip-lightning(d=[2,2,2],a=[2,2],t=2)",
    "softmax(d=[2,2],a=[1],t=2)",
    "softmax(d=[3,3],a=[1],t=2,parametrization=attention)",
    "attention(d=[2,2],a=2,t=2,causal=true,softmax=true,positions=true)",
    "transformer(d=2,a=1,t=2,hidden=2,r=2,layers=1,causal=true)",
    "mlp(widths=[2,2,1],r=2)",
    "mlp(widths=[2,3,2],r=2)",
    "mlp(widths=[2,2,1],r=3,bias=true)",
    "mlp(widths=[2,2],r=2,bias=true)",
    "linear(widths=[3,2,3])",
    "convolution(filters=[2,2],r=2)",
    "cp(sizes=[2,3,3],rank=2)",
    "map:s,t->s^3;s^2*t;s*t^2;t^3",
    "map:x,y,z->1/2*x*y;(x*y)^2-3;0",
)
FUNCTIONS: dict[str, tuple[Any, dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]] = {
    "squares": (lambda x, W, V: V @ (W @ x) ** 2, {"W": (2, 2), "V": (1, 2)}, {"x": (2,)}),
    "unused weights": (lambda x, W, U: (W @ x) ** 2, {"W": (2, 2), "U": (3,)}, {"x": (2,)}),
    "no inputs": (lambda A: A @ A.T, {"A": (2, 2)}, {}),
    "tanh": (lambda x, W, V: V @ np.tanh(W @ x), {"W": (2, 2), "V": (1, 2)}, {"x": (2,)}),
    "tanh, unused": (lambda x, W, U: np.tanh(W @ x), {"W": (2, 2), "U": (2,)}, {"x": (2,)}),
    "norm": (lambda x, g, W: g * (W @ x) / np.sqrt(((W @ x) ** 2).sum() + 1), {"g": (2,), "W": (2, 2)}, {"x": (2,)}),
    "sigmoid": (lambda x, a, b: b / (1 + np.exp(-(a * x))), {"a": (2,), "b": (2,)}, {"x": (2,)}),
}  # fmt: skip
MODELS = (*SPECS, *FUNCTIONS)


def model_of(name: str) -> Model:
    if name not in FUNCTIONS:
        return m2bridge.parse_spec(name)
    function, weights, inputs = FUNCTIONS[name]
    return m2bridge.from_callable(function, weights, inputs=inputs or None)


def assert_proved_exactly_if_verified(answer: Result) -> None:
    code, lines = verify(dumps(to_document(answer)))
    assert (answer.sure == "proved") == (code == 0), (answer, lines)
    assert answer.sure == answer.certainty.value
    assert code in (0, 8, 9), lines


@pytest.mark.parametrize("name", MODELS)
def test_dimensions_and_symmetries(name: str) -> None:
    model = model_of(name)
    for question in (m2bridge.dimension, m2bridge.symmetries):
        assert_proved_exactly_if_verified(question(model, engine=False))


@pytest.mark.parametrize("name", MODELS)
def test_functions_of_the_weights(name: str) -> None:
    """Some functions have broadcast products or large powers, which the checker does not read."""
    model = model_of(name)
    names = "xyz" if name.startswith("map:x") else "st" if name.startswith("map:") else model.free.parameters
    for weight in names:
        shape = () if name.startswith("map:") else model.free.parameters[weight]
        texts = [weight, f"{weight}**2 - 3*{weight}", f"{weight}**1000"]
        texts += [f"{weight}[0]", f"{weight}[0] * {weight}"] if shape else []
        texts += [f"{weight}.T @ {weight}"] if len(shape) == 2 else []
        for text in texts:
            assert_proved_exactly_if_verified(m2bridge.identifiable(model, function=text))
    assert_proved_exactly_if_verified(m2bridge.identifiable(model))


@pytest.mark.parametrize("name", [name for name in MODELS if "parametrization" not in name])
def test_equal_and_different_weights(name: str) -> None:
    model, rng = model_of(name), np.random.default_rng(1)
    drawn = [{k: rng.integers(1, 5, size=shape) for k, shape in model.parameters.items()} for _ in range(2)]
    first, other = ({key: value.tolist() for key, value in weights.items()} for weights in drawn)
    negative = {key: (-value).tolist() for key, value in drawn[0].items()}
    for second in (first, other, negative):
        assert_proved_exactly_if_verified(m2bridge.same(model, first, second, engine=False))
    for tolerance in (1e-9, 0.5):
        assert_proved_exactly_if_verified(
            m2bridge.same(model, first, other, tolerance=tolerance, engine=False)
        )
