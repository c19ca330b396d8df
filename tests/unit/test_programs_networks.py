"""The networks that people bring are recorded, and their programs compute what the functions compute."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from m2bridge.frontends.recording import record
from m2bridge.programs import parse_program
from tests.networks import ANALYTIC_NETWORKS, NETWORKS, Shapes
from tests.unit.programs_interpreter import values

CASES = [pytest.param(*network[1:], id=network[0]) for network in NETWORKS]


def rational_point(shapes: Shapes, seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    point = {}
    for name, shape in shapes.items():
        array = np.empty(shape, dtype=object)
        for place in np.ndindex(shape):
            array[place] = Fraction(int(generator.integers(-5, 6)), int(generator.integers(1, 4)))
        point[name] = array
    return point


@pytest.mark.parametrize(("function", "weights", "inputs"), CASES)
def test_network_computes_what_its_function_computes(
    function: Callable[..., Any], weights: Shapes, inputs: Shapes
) -> None:
    recording = record(function, weights, inputs)
    program = recording.program
    assert program.polynomial
    assert not recording.notes
    assert program.parameters == weights
    assert program.input_shapes == inputs
    assert parse_program(program.text) == program
    for seed in range(3):
        point = rational_point({**weights, **inputs}, seed)
        expected, found = function(**point), values(program, **point)
        for name, value in (expected if isinstance(expected, dict) else {"y": expected}).items():
            assert found[name].shape == np.shape(value)
            assert (found[name] == np.array(value, dtype=object)).all()


def test_there_are_twenty_and_two_names() -> None:
    assert len({name for name, *_ in NETWORKS}) == len(NETWORKS) == 22


@pytest.mark.parametrize(
    ("function", "weights", "inputs"), [pytest.param(*n[1:], id=n[0]) for n in ANALYTIC_NETWORKS]
)
def test_analytic_network_computes_what_its_function_computes(
    function: Callable[..., Any], weights: Shapes, inputs: Shapes
) -> None:
    program = record(function, weights, inputs).program
    assert not program.polynomial
    generator = np.random.default_rng(1)
    point = {name: generator.normal(size=shape) for name, shape in {**weights, **inputs}.items()}
    assert np.allclose(values(program, **point)["y"].astype(float), function(**point))


def test_a_transformer_with_thousands_of_weights_is_short() -> None:
    def network(**arrays: Any) -> Any:
        X = arrays["X"]
        for layer in (1, 2):
            Q, K, V, U, W1, W2 = (arrays[f"{name}{layer}"] for name in ("Q", "K", "V", "U", "W1_", "W2_"))
            S = (K @ X).mT @ (Q @ X) * np.triu(np.ones((8, 8)))
            e = np.exp(S / 4)
            heads = (V @ X) @ (e / e.sum(axis=-2, keepdims=True))
            X = X + U @ heads.reshape(32, 8)
            X = X + W2 @ (W1 @ X) ** 2
        return X

    shapes: Shapes = {}
    for layer in (1, 2):
        shapes |= {f"{name}{layer}": (4, 8, 32) for name in "QKV"}
        shapes |= {f"U{layer}": (32, 32), f"W1_{layer}": (64, 32), f"W2_{layer}": (32, 64)}
    program = record(network, shapes, {"X": (32, 8)}).program
    assert program.parameter_count == 16384
    assert len(program.instructions) < 60
    assert [item.operation for item in program.instructions].count("softmax") == 2
