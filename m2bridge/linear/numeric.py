"""Numerical ranks of float64 matrices, and proofs of full rank in ball arithmetic.

The numerical rank is computed in these steps: scale the rows, then the columns, to unit norm; compute a QR decomposition; compute
the singular values of the triangular factor; count those above NumPy's default tolerance. The rank is accepted only if these
values have a gap of at least 10^4 at that index; otherwise it is undecided. The position of the largest gap is not used, because
that rule gives ranks that are too large. A row or column that consists of rounding errors is scaled to unit norm as well and
increases the rank; :attr:`Ball.has_lines_around_zero` detects this.

Balls have float64 midpoints and radii. A product of matrices costs three BLAS products: one for the midpoints and two for the
radii, as in S. M. Rump, *Fast and parallel interval arithmetic*, BIT 39 (1999). The error of a float64 sum of n products is at
most gamma_n = n u / (1 - n u) times the sum of the absolute values of the products, where u = 2^-53. This holds for any order of
the summation, with or without fused operations (N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


# -- balls ---------------------------------------------------------------------------------------------

UNIT = 2.0**-53
"""The unit roundoff u of float64."""
TINY = 1e-290
"""An upper bound of the total error by underflow in any sum that fits in memory."""
_LARGEST_QR = 1500
"""Up to this many columns the left inverse is computed by a QR decomposition."""
_LARGEST_RADIUS = 1e-4
"""With larger radii, in a matrix scaled to rows and columns of norm 1, no proof is attempted."""


def gamma(n: int) -> float:
    """Return an upper bound of n u / (1 - n u) for n < 2^40; the bound includes the rounding of its own evaluation."""
    return (n + 2) * UNIT * (1 + 2.0**-10)


def outward(bound: Any, n: int) -> Any:
    """Return an upper bound of a sum of n products of non-negative numbers, of which `bound` is the float64 value."""
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
        """True if a row or column whose midpoints are not all zero may contain the zero vector."""
        norms = [(np.linalg.norm(self.mid, axis=k), np.linalg.norm(self.rad, axis=k)) for k in (0, 1)]
        return any(bool(((mid > 0) & (mid <= rad)).any()) for mid, rad in norms)


def ball_of_arb(array: NDArray[np.object_]) -> Ball:
    """Convert an object array of `arb` to float64 balls that contain them."""
    flat = array.reshape(-1)
    mid = np.array([float(value.mid()) for value in flat]).reshape(array.shape)
    rad = np.array([float(value.rad()) for value in flat]).reshape(array.shape)
    # Both conversions to float64 may round: the midpoint by less than 2 u |mid|, the radius by a relative error below 2^-20.
    return Ball(mid, outward(rad * (1 + 2.0**-20) + 2 * UNIT * np.abs(mid), 8))


def full_rank_residual(matrix: Ball) -> float:
    """Return a proved upper bound of max over rows of the row sum of |I - C T|, valid for every T in `matrix`.

    C is an approximate left inverse in float64. If the bound is below 1, then C T is invertible for every T in `matrix`
    (Neumann series), and every T has full column rank. ``inf`` means that no bound was obtained.
    """
    mid, rad = _scaled(matrix)
    rows, columns = mid.shape
    if rows < columns or not np.isfinite(rad).all() or rad.max(initial=0.0) > _LARGEST_RADIUS:
        return float("inf")
    inverse = _left_inverse(mid)
    product = inverse @ mid
    product[np.arange(columns), np.arange(columns)] -= 1.0
    np.abs(product, out=product)
    sums = product.sum(axis=1) * (1 + 4 * gamma(columns)) + 4 * np.finfo(float).eps
    # The row sums of |C| (gamma |mid| + rad) bound the rounding error of the product and the effect of the radii.
    weight = outward((gamma(rows) * np.abs(mid) + rad).sum(axis=1), columns + 4)
    sums = sums + outward(np.abs(inverse) @ weight, rows + 4)
    worst = float(sums.max(initial=0.0) * (1 + 2.0**-40))
    return worst if np.isfinite(worst) else float("inf")


def _left_inverse(mid: FloatArray) -> FloatArray:
    """Return an approximate left inverse of a matrix of full column rank."""
    rows, columns = mid.shape
    if rows == columns:
        return np.asarray(np.linalg.inv(mid))
    if columns <= _LARGEST_QR:
        q, r = np.linalg.qr(mid)
        return np.asarray(np.linalg.solve(r, q.T))
    # The normal equations of the scaled matrix and one Newton step: two products cost less than a QR decomposition.
    guess = np.linalg.inv(mid.T @ mid) @ mid.T
    return np.asarray(guess + (np.eye(columns) - guess @ mid) @ guess)


def _scaled(matrix: Ball) -> tuple[FloatArray, FloatArray]:
    """Scale rows and columns to norm about 1 by powers of two, which is exact."""
    mid, rad = matrix.mid.copy(), matrix.rad.copy()
    for axis in (1, 0):
        norms = np.linalg.norm(mid, axis=axis, keepdims=True)
        factor = 2.0 ** -np.round(np.log2(np.where(norms > 0, norms, 1.0)))
        mid *= factor
        rad *= factor
    return mid, rad
