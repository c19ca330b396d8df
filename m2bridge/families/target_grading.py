"""Torus weights of the target coordinates of a model."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from m2bridge.families.base import Model
from m2bridge.programs.gradings import gradings
from m2bridge.programs.instructions import flat_parts


@lru_cache(maxsize=32)
def target_grading(model: Model) -> np.ndarray | None:
    """Return the torus weights as an integer matrix with one row per grading and one column per coordinate.

    The image is stable under the torus with these weights. They are computed from the program; None if it is too large.
    """
    program = model.coordinate_program or model.program
    weights = gradings(program) if program.polynomial else None
    if weights is None or not program.inputs:
        return None if weights is None else weights.outputs
    blocks = []
    for _, shape, block in flat_parts(program.input_shapes):  # variables of a matrix go column by column
        entries = weights.inputs[:, block].reshape(len(weights.inputs), *shape)
        blocks.append(entries.transpose(0, *range(len(shape), 0, -1)).reshape(len(entries), prod(shape)))
    variables = np.concatenate(blocks, axis=1) @ model.monomials.T
    target = weights.outputs[:, :, None] - variables[:, None, :]
    return np.asarray(target.reshape(len(target), model.coordinate_count))
