"""Numerical ranks of float64 matrices.

The numerical rank is computed in these steps: scale the rows, then the columns, to unit norm; compute a QR decomposition; compute
the singular values of the triangular factor; count those above NumPy's default tolerance. The rank is accepted only if these
values have a gap of at least 10^4 at that index; otherwise it is undecided. The position of the largest gap is not used, because
that rule gives ranks that are too large. A row or column that consists of rounding errors is scaled to unit norm as well and
increases the rank; a comparison with float32 detects this (``rounding_noise`` in ``questions/dimension/checks.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from m2bridge.errors import InputError
from m2bridge.linear.residues import FloatArray

LEAST_GAP = 1e4
"""The least quotient of consecutive singular values at which a numerical rank is accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericRank:
    """A numerical rank; `rank` is None if the singular values do not decide it.

    `candidate` is the number r of singular values above the tolerance. `gap` is s_r / s_(r+1), and ``inf`` at full rank.
    """

    rank: int | None
    gap: float
    candidate: int


def numeric_rank(matrix: FloatArray) -> NumericRank:
    """Return the numerical rank of a float64 matrix, undecided without a gap of at least `LEAST_GAP`.

    At full rank there is no smaller singular value to compare with; full rank is accepted if the smallest singular value is
    at least `LEAST_GAP` times the tolerance.

    >>> numeric_rank(np.outer([1.0, 2.0], [3.0, 4.0])).rank
    1
    """
    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim != 2:
        raise InputError(f"expected a matrix (two axes), not an array with {array.ndim} axes")
    if not np.isfinite(array).all():
        return NumericRank(rank=None, gap=0.0, candidate=0)
    for axis in (1, 0):  # scale the rows, then the columns, to unit norm; remove those that are zero
        norms = np.linalg.norm(array, axis=axis, keepdims=True)
        array = np.compress(norms.ravel() > 0, array / np.where(norms > 0, norms, 1.0), axis=1 - axis)
    if 0 in array.shape:
        return NumericRank(rank=0, gap=float("inf"), candidate=0)
    tall = array if array.shape[0] >= array.shape[1] else array.T
    values = np.linalg.svd(np.linalg.qr(tall, mode="r"), compute_uv=False)
    tolerance = values[0] * max(array.shape) * np.finfo(np.float64).eps
    candidate = int((values > tolerance).sum())
    if candidate == len(values):
        gap = float("inf")
        decided = bool(values[-1] >= LEAST_GAP * tolerance)
    else:
        next_value = max(float(values[candidate]), float(np.finfo(np.float64).tiny))
        gap = float(values[candidate - 1]) / next_value
        decided = gap >= LEAST_GAP
    return NumericRank(rank=candidate if decided else None, gap=gap, candidate=candidate)
