"""Exact rank over QQ of an integer matrix, by FLINT's fraction-free elimination."""

from __future__ import annotations

from typing import Any

import flint

from m2bridge.linear.residues import integer_matrix


def rank_over_q(matrix: Any) -> int:
    """Rank over QQ of a matrix of integers of any size, exact.

    Examples
    --------
    >>> rank_over_q([[1, 2], [3, 6 + 10007]]), rank_over_q([[2, 4], [3, 6]])
    (2, 1)
    """
    array = integer_matrix(matrix)
    if 0 in array.shape:
        return 0
    return int(flint.fmpz_mat(*array.shape, array.ravel().tolist()).rank())
