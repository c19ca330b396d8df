"""Ranks of real matrices: numerical in float64, or "undecided"; and proofs of full rank in balls.

The numerical rank: rows, then columns, to unit norm; QR; SVD of the triangular factor; NumPy's default tolerance; and the answer
is accepted only when the singular values show a gap of at least 10^4 there. Without a gap there is no answer: the largest gap is
never searched for, because that rule counts too many. Where a row or column is zero but for rounding errors, these are scaled to
unit norm too, and count: :attr:`Ball.has_lines_around_zero` tells.

Balls have float64 midpoints and radii. A product of matrices costs three BLAS products: one for the midpoints and two for the
radii, as in S. M. Rump, *Fast and parallel interval arithmetic*, BIT 39 (1999). The error of a float64 sum of n products is at
most gamma_n = n u / (1 - n u) times the sum of absolute values, in whatever order BLAS adds and with or without fused operations
(N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2bridge.errors import InputError
from m2bridge.linear.residues import FloatArray

LEAST_GAP = 1e4


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericRank:
    """A numerical rank, None when the singular values do not decide it, with what it rests on.

    `gap` is s_r / s_(r+1) at the candidate rank, ``inf`` at full rank or when the next singular value is zero; `candidate` is the
    rank that the tolerance alone would give.
    """

    rank: int | None
    gap: float
    candidate: int


def numeric_rank(matrix: FloatArray) -> NumericRank:
    """Numerical rank of a float64 matrix, accepted only with a visible gap.

    A full-rank answer has no singular value below it to compare with; it is accepted when the smallest singular value is
    `LEAST_GAP` times above the tolerance.

    >>> numeric_rank(np.outer([1.0, 2.0], [3.0, 4.0])).rank
    1
    """
    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim != 2:
        raise InputError(f"a matrix has two axes, this array has {array.ndim}")
    if not np.isfinite(array).all():
        return NumericRank(rank=None, gap=0.0, candidate=0)
    for axis in (1, 0):  # rows, then columns, to unit norm; zero ones are left out
        norms = np.linalg.norm(array, axis=axis, keepdims=True)
        array = np.compress(norms.ravel() > 0, array / np.where(norms > 0, norms, 1.0), axis=1 - axis)
    if 0 in array.shape:
        return NumericRank(rank=0, gap=float("inf"), candidate=0)
    tall = array if array.shape[0] >= array.shape[1] else array.T
    values = np.linalg.svd(np.linalg.qr(tall, mode="r"), compute_uv=False)
    tolerance = values[0] * max(array.shape) * np.finfo(np.float64).eps
    candidate = int((values > tolerance).sum())
    if candidate == len(values):
        gap, decided = float("inf"), bool(values[-1] >= LEAST_GAP * tolerance)
    else:
        below = max(float(values[candidate]), float(np.finfo(np.float64).tiny))
        gap = float(values[candidate - 1]) / below
        decided = gap >= LEAST_GAP
    return NumericRank(rank=candidate if decided else None, gap=gap, candidate=candidate)


# -- balls ---------------------------------------------------------------------------------------------

UNIT = 2.0**-53
TINY = 1e-290
"""More than what underflow can add to any sum that fits in memory."""
_LARGEST_QR = 1500
_WIDEST = 1e-4
"""Balls wider than this, in a matrix with rows and columns of norm 1, are not worth an inverse."""


def gamma(n: int) -> float:
    """An upper bound of n u / (1 - n u), rounding of the bound itself included; n < 2^40."""
    return (n + 2) * UNIT * (1 + 2.0**-10)


def outward(bound: Any, n: int) -> Any:
    """A float64 evaluation of a sum of n products of non-negative numbers, enlarged to an upper bound of it."""
    return bound * (1 + 4 * gamma(n + 8)) + TINY


@dataclass(frozen=True, slots=True)
class Ball:
    """An array of balls [mid - rad, mid + rad]."""

    mid: FloatArray
    rad: FloatArray

    @classmethod
    def exact(cls, array: FloatArray) -> Ball:
        return cls(array, np.zeros_like(array))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.mid.shape

    def reshape(self, *shape: Any) -> Ball:
        return Ball(self.mid.reshape(*shape), self.rad.reshape(*shape))

    def transpose(self, *axes: int) -> Ball:
        return Ball(self.mid.transpose(*axes), self.rad.transpose(*axes))

    def __getitem__(self, key: Any) -> Ball:
        return Ball(self.mid[key], self.rad[key])

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    @property
    def has_lines_around_zero(self) -> bool:
        """Whether a row or column of a matrix, with midpoints that are not all zero, may be zero."""
        sizes = [(np.linalg.norm(self.mid, axis=k), np.linalg.norm(self.rad, axis=k)) for k in (0, 1)]
        return any(bool(((mid > 0) & (mid <= rad)).any()) for mid, rad in sizes)


def ball_of_arb(array: NDArray[np.object_]) -> Ball:
    """Float64 balls that contain those of an object array of `arb`."""
    flat = array.reshape(-1)
    mid = np.array([float(value.mid()) for value in flat]).reshape(array.shape)
    rad = np.array([float(value.rad()) for value in flat]).reshape(array.shape)
    # both conversions to float64 may round: by less than 2 u of the midpoint, and of the radius itself
    return Ball(mid, outward(rad * (1 + 2.0**-20) + 2 * UNIT * np.abs(mid), 8))


def full_rank_residual(matrix: Ball) -> float:
    """A proved bound of the largest row sum of |I - C T| for every T in `matrix`; below 1 it proves full column rank.

    C is a float64 approximate left inverse: when C T is that close to the identity it is invertible.
    """
    mid, rad = _scaled(matrix)
    rows, columns = mid.shape
    if rows < columns or not np.isfinite(rad).all() or rad.max(initial=0.0) > _WIDEST:
        return float("inf")
    inverse = _left_inverse(mid)
    product = inverse @ mid
    product[np.arange(columns), np.arange(columns)] -= 1.0
    np.abs(product, out=product)
    sums = product.sum(axis=1) * (1 + 4 * gamma(columns)) + 4 * np.finfo(float).eps
    # error of the product and of the enclosure: |C| (gamma |T| + rad) e
    weight = outward((gamma(rows) * np.abs(mid) + rad).sum(axis=1), columns + 4)
    sums = sums + outward(np.abs(inverse) @ weight, rows + 4)
    worst = float(sums.max(initial=0.0) * (1 + 2.0**-40))
    return worst if np.isfinite(worst) else float("inf")


def _left_inverse(mid: FloatArray) -> FloatArray:
    rows, columns = mid.shape
    if rows == columns:
        return np.asarray(np.linalg.inv(mid))
    if columns <= _LARGEST_QR:
        q, r = np.linalg.qr(mid)
        return np.asarray(np.linalg.solve(r, q.T))
    # normal equations of a well scaled matrix, then one Newton step: two products are cheaper than a QR
    guess = np.linalg.inv(mid.T @ mid) @ mid.T
    return np.asarray(guess + (np.eye(columns) - guess @ mid) @ guess)


def _scaled(matrix: Ball) -> tuple[FloatArray, FloatArray]:
    """Rows and columns scaled by powers of two, which is exact."""
    mid, rad = matrix.mid.copy(), matrix.rad.copy()
    for axis in (1, 0):
        norms = np.linalg.norm(mid, axis=axis, keepdims=True)
        factor = 2.0 ** -np.round(np.log2(np.where(norms > 0, norms, 1.0)))
        mid *= factor
        rad *= factor
    return mid, rad
