"""Figures stage: the numerical method of the paper's Figure 3, for comparison: never a witness, it is drawn as it comes.

N random inputs and the weights from a normal distribution, the Jacobian of all outputs, and the rank with the default tolerance,
largest * size * epsilon (Henry, Marchetti, Kohn, Section 4; their code computes in float32).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.models import Jet, Model, Softmax
from m2bridge.models.arrays import mT
from m2bridge.models.jets import seeded

PRECISIONS = ("float32", "float64")
INPUTS = 250


def measured_rank(model: Model, *, seed: int, precision: str = "float32", inputs: int = INPUTS) -> int:
    """Rank of the Jacobian at random inputs and weights, as the paper measures it."""
    if precision not in PRECISIONS:
        raise InputError(f"the paper's method runs in {' or '.join(PRECISIONS)}, not {precision!r}")
    rng = np.random.default_rng([seed, 31])
    kind: Any = np.dtype(precision)
    weights = {name: rng.standard_normal(shape).astype(kind) for name, shape in model.parameters.items()}
    shape = model.input_shape
    if shape is None:
        raise InputError(f"{model.spec} has no inputs")
    samples = rng.standard_normal((inputs, *shape)).astype(kind)
    jets = seeded(weights, model.parameters)
    jet = _normalised(model, jets, samples) if isinstance(model, Softmax) else model.forward(jets, samples)
    jacobian = np.asarray(jet.tangents).reshape(model.parameter_count, -1).astype(kind)
    return int(np.linalg.matrix_rank(jacobian))


def _normalised(model: Softmax, weights: dict[str, Any], inputs: Any) -> Any:
    """The softmax network with its tangents; the largest score is subtracted first, so that nothing overflows."""
    X = inputs
    for layer in range(1, model.layers + 1):
        scores = model.lightning.scores(weights, layer, X)
        temperature = float(model.temperature)
        kernel = np.exp((scores.value - scores.value.max(axis=-1, keepdims=True)) / temperature)
        attention = kernel / kernel.sum(axis=-1, keepdims=True)
        moved = scores.tangents / temperature
        tangents = attention * (moved - (attention * moved).sum(axis=-1, keepdims=True))
        X = weights[f"V{layer}"] @ X @ mT(Jet(attention, tangents))
    return X
