"""Analytic networks without inputs, with weights that do not occur, or whose derivative is zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import m2bridge
from m2bridge import checker, records

Shapes = dict[str, tuple[int, ...]]


def _exponential(w: np.ndarray) -> np.ndarray:
    return np.exp(w)


def _constant_exponential(w: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.exp(0 * w)


def _gate(w: np.ndarray) -> np.ndarray:
    return w[2] / (1 + np.exp(-w[0] * w[1]))


def _ratios(w: np.ndarray) -> np.ndarray:
    return np.exp(w) / np.sum(np.exp(w))


def _nothing_learned(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.exp(x) + 0 * w


def _weight_times_input(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.tanh(w[0] * w[1] * x)


CASES: list[tuple[Callable[..., np.ndarray], Shapes, Shapes, int]] = [
    (_exponential, {"w": (2,)}, {}, 2),
    (_exponential, {"w": (3, 2)}, {}, 6),
    (_constant_exponential, {"w": (2,), "v": (3,)}, {}, 0),
    (_gate, {"w": (3,)}, {}, 1),  # one output
    (_ratios, {"w": (4,)}, {}, 3),  # the outputs sum to 1 and are otherwise free
    (_nothing_learned, {"w": (2,)}, {"x": (2,)}, 0),
    (_weight_times_input, {"w": (2,)}, {"x": (2,)}, 1),
]


@pytest.mark.parametrize(("network", "weights", "inputs", "dim"), CASES)
def test_the_dimension_is_found_and_its_certificate_verified(
    network: Callable[..., np.ndarray], weights: Shapes, inputs: Shapes, dim: int
) -> None:
    model = m2bridge.from_callable(network, weights, inputs=inputs)
    answer = m2bridge.dimension(model, engine=False)
    assert answer.image_dim == dim
    code, lines = checker.verify(records.dumps(records.to_document(answer)))
    assert code == (8 if answer.certificate is None else 0), lines
