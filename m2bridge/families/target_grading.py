"""Torus weights of the target coordinates of a model."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from m2bridge.families.base import Model
from m2bridge.programs.gradings import gradings
from m2bridge.programs.instructions import split_flat


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
    for entries in split_flat(weights.inputs, program.input_shapes).values():
        by_column = entries.transpose(
            0, *range(entries.ndim - 1, 0, -1)
        )  # the variables of a matrix go column by column
        blocks.append(by_column.reshape(len(entries), prod(entries.shape[1:])))
    variables = np.concatenate(blocks, axis=1) @ model.monomials.T
    target = weights.outputs[:, :, None] - variables[:, None, :]
    return np.asarray(target.reshape(len(target), model.coordinate_count))
