"""Exact ranks over F_p, with pivots, echelon forms and kernels, and over QQ. Integer matrices enter.

For p < 2^23 the matrix is held in float64 as balanced residues (:mod:`m2bridge.linear.residues`) and eliminated by a recursive
PLE factorization, in which almost all work is BLAS multiplication; small matrices and larger primes go to FLINT. The rank over
F_p of an integer matrix is at most its rank over QQ: each rank found here is a proved lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from m2bridge.linear.primes import BLAS_BELOW, LARGE_PRIME, MATRICES_BELOW, check_prime
from m2bridge.linear.residues import Field, FloatArray, integer_matrix

_PANEL = 16
_BASE = 32
_SMALL = 120
"""Below this many rows or columns FLINT finds a rank faster than the blocked elimination."""
_SMALL_ECHELON = 4096
"""Below this many entries plain elimination in int64 is faster."""

Interruption = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elimination:
    """The outcome of an elimination: rank and a non-singular square submatrix of that size.

    `pivot_rows[k]`, `pivot_columns[k]` are in elimination order: all leading minors of the submatrix
    ``matrix[pivot_rows][:, pivot_columns]`` are non-zero. `pivot_columns` increases.
    """

    rank: int
    pivot_rows: tuple[int, ...]
    pivot_columns: tuple[int, ...]
    p: int


def _entered(matrix: Any, p: int) -> tuple[NDArray[Any], int]:
    return integer_matrix(matrix), check_prime(p, "the prime", below=MATRICES_BELOW)


def _residues(array: NDArray[Any], p: int) -> tuple[FloatArray, Field]:
    field = Field(p)
    return field.residues(np.ascontiguousarray(array)), field


def rank_mod(matrix: Any, p: int = LARGE_PRIME) -> int:
    """Rank over F_p of a matrix of integers of any size, exact, for a prime below 2^63.

    >>> rank_mod([[1, 2], [3, 6 + 10007]], 10007)
    1
    """
    array, p = _entered(matrix, p)
    if 0 in array.shape:
        return 0
    if p >= BLAS_BELOW or min(array.shape) <= _SMALL:
        return int(_flint(array, p).rank())
    tall = array if array.shape[0] >= array.shape[1] else array.T
    return eliminate_residues(*_residues(tall, p)).rank


def rank_over_q(matrix: Any) -> int:
    """Rank over QQ of a matrix of integers of any size, exact, by FLINT's fraction-free elimination.

    >>> rank_over_q([[1, 2], [3, 6 + 10007]]), rank_over_q([[2, 4], [3, 6]])
    (2, 1)
    """
    array = integer_matrix(matrix)
    return int(flint.fmpz_mat(*array.shape, array.ravel().tolist()).rank()) if array.size else 0


def eliminate(matrix: Any, p: int = LARGE_PRIME) -> Elimination:
    """Rank over F_p together with pivot rows and columns: what a certificate needs."""
    array, p = _entered(matrix, p)
    if p < BLAS_BELOW:
        return eliminate_residues(*_residues(array, p))
    # columns from one echelon form, rows from that of the chosen columns
    _, columns = _flint_echelon(array, p)
    _, rows = _flint_echelon(array[:, columns].T, p)
    return Elimination(rank=len(columns), pivot_rows=rows, pivot_columns=columns, p=p)


def eliminate_residues(residues: FloatArray, field: Field) -> Elimination:
    """:func:`eliminate` of a float64 array of balanced residues, which is overwritten."""
    work = _Factorization(residues, field)
    rows, columns = work.order[: len(work.columns)].tolist(), tuple(work.columns)
    return Elimination(rank=len(columns), pivot_rows=tuple(rows), pivot_columns=columns, p=field.p)


def echelon_mod(
    matrix: Any, p: int = LARGE_PRIME, check: Interruption | None = None
) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """The reduced row echelon form over F_p, zero rows left out, entries in 0..p-1, and its pivot columns.

    `check` is called now and then, and may raise to stop the work.

    >>> rows, pivots = echelon_mod([[2, 4, 1], [1, 2, 0]], 7)
    >>> rows.tolist(), pivots
    ([[1, 2, 0], [0, 0, 1]], (0, 2))
    """
    array, p = _entered(matrix, p)
    if p >= BLAS_BELOW:
        return _flint_echelon(array, p)
    if array.size <= _SMALL_ECHELON:
        return _small_echelon((array % p).astype(np.int64), p)
    residues, field = _residues(array, p)
    pivots, floats = echelon_residues(residues, field, check)
    return field.canonical(floats), tuple(pivots)


def kernel_mod(
    matrix: Any, p: int = LARGE_PRIME, check: Interruption | None = None
) -> tuple[NDArray[np.int64], tuple[int, ...], tuple[int, ...]]:
    """The canonical basis of {x : matrix x = 0} over F_p, one vector a row, with the pivot and the free columns.

    Row k of the basis is 1 in the k-th free column, 0 in the other free ones; its remaining entries are in pivot
    columns to the left. So a vector of the kernel is determined by its entries in the free columns.

    >>> kernel_mod([[1, 1, 0]], 5)[0].tolist()
    [[4, 1, 0], [0, 0, 1]]
    """
    reduced, pivots = echelon_mod(matrix, p, check)
    width = np.shape(matrix)[1]
    free = tuple(sorted(set(range(width)) - set(pivots)))
    basis = np.zeros((len(free), width), dtype=np.int64)
    basis[np.arange(len(free)), list(free)] = 1
    if pivots and free:
        basis[:, list(pivots)] = (-reduced[:, list(free)].T) % p
    return basis, pivots, free


def echelon_residues(
    residues: FloatArray, field: Field, check: Interruption | None = None
) -> tuple[list[int], FloatArray]:
    """Pivot columns and the non-zero rows of the reduced row echelon form; the argument is overwritten."""
    pivots = _Factorization(residues, field, check).columns
    rank = len(pivots)
    upper = np.triu(residues[:rank, pivots])
    rest = residues[:rank].copy()
    rest[:, pivots] = 0.0  # multipliers of the factorization are stored below the pivots
    for i, column in enumerate(pivots):
        rest[i, :column] = 0.0
    diagonal = field.inverses(np.diagonal(upper))[:, None]
    # U x = y is a lower triangular system when both orders are reversed
    reduced = field.reduce(rest * diagonal)[::-1].copy()
    _solve_unit_lower(field.reduce(upper * diagonal)[::-1, ::-1].copy(), reduced, field)
    reduced = np.ascontiguousarray(reduced[::-1])
    reduced[np.arange(rank), pivots] = 1.0
    return pivots, reduced


def _small_echelon(work: NDArray[np.int64], p: int) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Gauss-Jordan elimination in place; products of residues stay below 2^46."""
    pivots: list[int] = []
    for column in range(work.shape[1]):
        top = len(pivots)
        if top == len(work):
            break
        nonzero = work[top:, column].nonzero()[0]
        if not len(nonzero):
            continue
        row = top + int(nonzero[0])
        if row != top:
            work[[top, row]] = work[[row, top]]
        work[top, column:] = work[top, column:] * pow(int(work[top, column]), -1, p) % p
        factors = work[:, column].copy()
        factors[top] = 0
        rows = factors.nonzero()[0]
        work[rows, column:] = (work[rows, column:] - factors[rows, None] * work[top, column:]) % p
        pivots.append(column)
    return work[: len(pivots)], tuple(pivots)


# -- the blocked factorization ---------------------------------------------------------------------------


class _Factorization:
    """A matrix of residues, factored in place.

    In the new `order` of rows, row i has its pivot in `columns[i]`; the echelon form is on and right of the pivots, and the
    multipliers are below them. `check` is called now and then, and may raise to stop the work.
    """

    def __init__(self, matrix: FloatArray, field: Field, check: Interruption | None = None) -> None:
        self.matrix, self.field, self.check = matrix, field, check
        self.order: NDArray[np.int64] = np.arange(matrix.shape[0])
        self.columns: list[int] = []
        self.eliminate(0, 0, matrix.shape[1])

    def eliminate(self, top: int, left: int, right: int) -> None:
        """Eliminate the columns left..right among the rows from `top` on, halving the columns."""
        matrix = self.matrix
        if top >= matrix.shape[0] or left >= right:
            return
        if right - left <= _PANEL:
            if self.check is not None:
                self.check()
            self.panel(top, left, right)
            return
        middle = (left + right) // 2
        known = len(self.columns)
        self.eliminate(top, left, middle)
        found = self.columns[known:]
        if found:
            bottom = top + len(found)
            together = found[-1] - found[0] + 1 == len(found)  # then a view does
            pivots = matrix[top:, found[0] : found[-1] + 1] if together else matrix[top:, found]
            block = matrix[top:bottom, middle:right]
            _solve_unit_lower(pivots[: len(found)], block, self.field)
            self.field.subtract_product(matrix[bottom:, middle:right], pivots[len(found) :], block)
            top = bottom
        self.eliminate(top, middle, right)

    def panel(self, top: int, left: int, right: int) -> None:
        """Eliminate a narrow panel column by column."""
        matrix, field = self.matrix, self.field
        panel = np.array(matrix[top:, left:right], order="C")  # a copy, also when it is all of the matrix
        local = np.arange(panel.shape[0])
        found: list[int] = []
        for column in range(right - left):
            row = len(found)
            if row == panel.shape[0]:
                break
            pivot = row + int(np.argmax(panel[row:, column] != 0))
            if panel[pivot, column] == 0:
                continue
            if pivot != row:
                panel[[row, pivot]] = panel[[pivot, row]]
                local[[row, pivot]] = local[[pivot, row]]
            below = panel[row + 1 :, column:]
            below[:, 0] = field.reduce(below[:, 0] * field.inverse(panel[row, column]))
            below[:, 1:] = field.reduce(below[:, 1:] - below[:, :1] * panel[row, column + 1 :])
            found.append(left + column)
        moved = np.flatnonzero(local != np.arange(len(local)))
        if moved.size:
            matrix[top + moved] = matrix[top + local[moved]]
            self.order[top + moved] = self.order[top + local[moved]]
        matrix[top:, left:right] = panel
        self.columns.extend(found)


def _solve_unit_lower(lower: FloatArray, right: FloatArray, field: Field) -> None:
    """right <- L^-1 right, where L is the unit lower triangular part of `lower`."""
    size = lower.shape[0]
    if size == 0:
        return
    if size <= _BASE:
        right[:] = field.matmul(_invert_unit_lower(lower, field), right)
        return
    half = size // 2
    _solve_unit_lower(lower[:half, :half], right[:half], field)
    field.subtract_product(right[half:], lower[half:, :half], right[:half])
    _solve_unit_lower(lower[half:, half:], right[half:], field)


def _invert_unit_lower(lower: FloatArray, field: Field) -> FloatArray:
    size = lower.shape[0]
    inverse = np.eye(size)
    for i in range(1, size):
        inverse[i, :i] = field.reduce(-(lower[i, :i] @ inverse[:i, :i]))
    return inverse


# -- FLINT -----------------------------------------------------------------------------------------------


def _flint(array: NDArray[Any], p: int) -> Any:
    return flint.nmod_mat(*array.shape, (array % p).ravel().tolist(), p)


def _flint_echelon(array: NDArray[Any], p: int) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    if 0 in array.shape:
        return np.zeros((0, array.shape[1]), dtype=np.int64), ()
    reduced, rank = _flint(array, p).rref()
    entries = np.array([int(x) for x in reduced.entries()], dtype=np.int64).reshape(array.shape)[:rank]
    return entries, tuple((entries != 0).argmax(axis=1).tolist())
