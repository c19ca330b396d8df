"""Numerical rank in float64, or "undecided". A matrix enters, a :class:`NumericRank` leaves.

The recipe: rows, then columns, to unit norm; QR; SVD of the triangular factor; NumPy's default tolerance;
and the answer is accepted only when the singular values show a gap of at least 10^4 there. Without a gap
there is no answer: the largest gap is never searched for, because that rule counts too many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from m2bridge.errors import InputError

LEAST_GAP = 1e4


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericRank:
    """A numerical rank with what it rests on.

    Attributes
    ----------
    rank: the rank, or None when the singular values do not decide it.
    gap: s_r / s_(r+1) at the candidate rank; ``inf`` at full rank, or when the next singular value is zero.
    candidate: the rank that the tolerance alone would give.
    """

    rank: int | None
    gap: float
    candidate: int


def numeric_rank(matrix: NDArray[np.float64], *, least_gap: float = LEAST_GAP) -> NumericRank:
    """Numerical rank of a float64 matrix, accepted only with a visible gap.

    A full-rank answer has no singular value below it to compare with; it is accepted when the smallest
    singular value is `least_gap` times above the tolerance.

    Examples
    --------
    >>> numeric_rank(np.outer([1.0, 2.0], [3.0, 4.0])).rank
    1
    """
    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim != 2:
        raise InputError(f"a matrix has two axes, this array has {array.ndim}")
    if not np.isfinite(array).all():
        return NumericRank(rank=None, gap=0.0, candidate=0)
    array = equilibrate(array)
    if 0 in array.shape:
        return NumericRank(rank=0, gap=float("inf"), candidate=0)
    tall = array if array.shape[0] >= array.shape[1] else array.T
    values = np.linalg.svd(np.linalg.qr(tall, mode="r"), compute_uv=False)
    tolerance = values[0] * max(array.shape) * np.finfo(np.float64).eps
    candidate = int((values > tolerance).sum())
    if candidate == len(values):
        gap = float("inf")
        decided = bool(values[-1] >= least_gap * tolerance)
    else:
        below = max(float(values[candidate]), float(np.finfo(np.float64).tiny))
        gap = float(values[candidate - 1]) / below
        decided = gap >= least_gap
    return NumericRank(rank=candidate if decided else None, gap=gap, candidate=candidate)


def equilibrate(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows, then columns, scaled to unit norm; zero rows and columns are left out."""
    rows = np.linalg.norm(matrix, axis=1)
    matrix = matrix[rows > 0] / rows[rows > 0, None]
    columns = np.linalg.norm(matrix, axis=0)
    scaled: NDArray[np.float64] = matrix[:, columns > 0] / columns[columns > 0]
    return scaled
