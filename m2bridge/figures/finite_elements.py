"""The numerical method of the paper's Figure 3, for comparison: never a witness, it is drawn as it comes.

N random inputs and the weights from a normal distribution, the Jacobian of all outputs, and the rank with the default tolerance,
largest * size * epsilon (Henry, Marchetti, Kohn, Section 4; their code computes in float32).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.models import Model
from m2bridge.programs.arithmetics import Floats
from m2bridge.programs.jacobians import jacobian_block
from m2bridge.programs.run import Lettered

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
    arithmetic = Floats(kind)
    given = {name: Lettered("", value) for name, value in weights.items()}
    given[next(iter(model.program.inputs))] = Lettered("N", samples)
    every = {name: np.arange(value.size) for name, value in weights.items()}
    return int(np.linalg.matrix_rank(jacobian_block(model.program, arithmetic, given, every)))
