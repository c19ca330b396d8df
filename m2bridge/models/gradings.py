"""Torus weights of parameters and of coefficients, put together block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from m2bridge.models.base import Shape

Characters = Mapping[str, np.ndarray]
"""Parameter name -> integer characters of its entries, broadcast to its shape; missing names are fixed."""


def parameter_rows(parameters: Mapping[str, Shape], rows: Sequence[Characters]) -> np.ndarray:
    """One row for each one-parameter group, one column for each flattened parameter."""
    zero = np.zeros(1, dtype=np.int64)
    return np.array(
        [
            np.concatenate(
                [
                    np.broadcast_to(row.get(name, zero), shape).reshape(-1)
                    for name, shape in parameters.items()
                ]
            )
            for row in rows
        ],
        dtype=np.int64,
    )


def coefficient_rows(monomials: np.ndarray, input_shape: Shape, outputs: int, columns: int) -> np.ndarray:
    """Characters of coefficients when input rows are scaled: degrees in each input row, summed over tokens.

    One column for each coefficient: output entries (`outputs` rows times `columns`) first, monomials inside.
    """
    rows, tokens = (*input_shape, 1)[:2]
    by_row = monomials.reshape(len(monomials), tokens, rows).sum(axis=1).T
    return np.tile(by_row, (1, outputs * columns))


def output_rows(monomials: np.ndarray, outputs: int, columns: int) -> np.ndarray:
    """Characters of coefficients when output rows are scaled."""
    return np.repeat(np.eye(outputs, dtype=np.int64), columns * len(monomials), axis=1)
