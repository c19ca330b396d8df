"""Exact ranks, pivots, echelon forms and kernels over F_p, and ranks over QQ, of matrices of integers.

For p < 2^23 the matrix is stored in float64 as balanced residues (:mod:`m2bridge.linear.residues`) and eliminated by a recursive
PLE factorization, in which almost all work is BLAS multiplication. Small matrices and larger primes are passed to FLINT. The rank
over F_p of a matrix of integers is at most its rank over QQ, so each rank over F_p is a proved lower bound of the rank over QQ.

The PLE factorization writes A = P L E: P is a permutation of the rows, L is unit lower triangular, E is an echelon form. The
columns are halved recursively. After the left half is factored, with pivot block L1 (square) and the rows L2 below it, the
right half [B1; B2] is updated by

    B1 <- L1^-1 B1,    B2 <- B2 - L2 B1,

and the recursion continues with B2. Both updates are matrix products.
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

_PANEL_COLUMNS = 16
"""Panels of at most this many columns are eliminated column by column."""
_BASE = 32
"""Triangular matrices of at most this size are inverted directly."""
_SMALL_MATRIX = 120
"""Up to this many rows or columns FLINT computes a rank faster than the blocked elimination."""
_SMALL_ECHELON = 4096
"""Up to this many entries plain elimination in int64 is faster."""

Interruption = Callable[[], None]
"""A function that the elimination calls regularly; it may raise an exception to stop the computation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elimination:
    """The result of an elimination: the rank r and an invertible r x r submatrix.

    `pivot_rows` and `pivot_columns` are in the order of elimination: all leading minors of the submatrix
    ``matrix[pivot_rows][:, pivot_columns]`` are non-zero. `pivot_columns` is increasing.
    """

    rank: int
    pivot_rows: tuple[int, ...]
    pivot_columns: tuple[int, ...]
    p: int


def _checked_arguments(matrix: Any, p: int) -> tuple[NDArray[Any], int]:
    return integer_matrix(matrix), check_prime(p, "the prime", below=MATRICES_BELOW)


def _residues(array: NDArray[Any], p: int) -> tuple[FloatArray, Field]:
    field = Field(p)
    return field.residues(np.ascontiguousarray(array)), field


def rank_mod(matrix: Any, p: int = LARGE_PRIME) -> int:
    """Return the exact rank over F_p of a matrix of integers, for a prime p < 2^63. The integers may have any size.

    >>> rank_mod([[1, 2], [3, 6 + 10007]], 10007)
    1
    """
    array, p = _checked_arguments(matrix, p)
    if 0 in array.shape:
        return 0
    if p >= BLAS_BELOW or min(array.shape) <= _SMALL_MATRIX:
        return int(_flint(array, p).rank())
    tall = array if array.shape[0] >= array.shape[1] else array.T
    return eliminate_residues(*_residues(tall, p)).rank


def rank_over_q(matrix: Any) -> int:
    """Return the exact rank over QQ of a matrix of integers, by FLINT's fraction-free elimination.

    >>> rank_over_q([[1, 2], [3, 6 + 10007]]), rank_over_q([[2, 4], [3, 6]])
    (2, 1)
    """
    array = integer_matrix(matrix)
    if not array.size:
        return 0
    return int(flint.fmpz_mat(*array.shape, array.ravel().tolist()).rank())


def eliminate(matrix: Any, p: int = LARGE_PRIME) -> Elimination:
    """Compute the rank over F_p with pivot rows and pivot columns, which a certificate of the rank needs."""
    array, p = _checked_arguments(matrix, p)
    if p < BLAS_BELOW:
        return eliminate_residues(*_residues(array, p))
    # The pivot columns are read off the echelon form; the pivot rows are the pivot columns of the transposed submatrix.
    _, columns = _flint_echelon(array, p)
    _, rows = _flint_echelon(array[:, columns].T, p)
    return Elimination(rank=len(columns), pivot_rows=rows, pivot_columns=columns, p=p)


def eliminate_residues(residues: FloatArray, field: Field) -> Elimination:
    """Do :func:`eliminate` for a float64 array of balanced residues. The array is overwritten."""
    factorization = _Factorization(residues, field)
    columns = tuple(factorization.columns)
    rows = tuple(factorization.order[: len(columns)].tolist())
    return Elimination(rank=len(columns), pivot_rows=rows, pivot_columns=columns, p=field.p)


def echelon_mod(
    matrix: Any, p: int = LARGE_PRIME, check: Interruption | None = None
) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Return the reduced row echelon form over F_p without its zero rows, with entries in 0..p-1, and its pivot columns.

    `check` is called regularly; it may raise an exception to stop the computation.

    >>> rows, pivots = echelon_mod([[2, 4, 1], [1, 2, 0]], 7)
    >>> rows.tolist(), pivots
    ([[1, 2, 0], [0, 0, 1]], (0, 2))
    """
    array, p = _checked_arguments(matrix, p)
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
    """Return the canonical basis of {x : matrix x = 0} over F_p, one vector per row, the pivot columns and the free columns.

    Row k of the basis is 1 in the k-th free column and 0 in the other free columns; its other non-zero entries are in
    pivot columns to the left of the k-th free column. A vector of the kernel is determined by its entries in the free columns.

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
    """Return the pivot columns and the non-zero rows of the reduced row echelon form. The argument is overwritten."""
    pivots = _Factorization(residues, field, check).columns
    rank = len(pivots)
    upper = np.triu(residues[:rank, pivots])
    rest = residues[:rank].copy()
    # The factorization stores its multipliers below the pivots; they are not entries of the echelon form.
    rest[:, pivots] = 0.0
    for i, column in enumerate(pivots):
        rest[i, :column] = 0.0
    diagonal = field.inverses(np.diagonal(upper))[:, None]
    # The echelon form is [U | rest] in the order (pivot columns, other columns); the reduced form is [I | U^-1 rest].
    # Reversing the order of rows and columns turns the upper triangular system into a lower triangular one.
    reduced = field.reduce(rest * diagonal)[::-1].copy()
    _solve_unit_lower(field.reduce(upper * diagonal)[::-1, ::-1].copy(), reduced, field)
    reduced = np.ascontiguousarray(reduced[::-1])
    reduced[np.arange(rank), pivots] = 1.0
    return pivots, reduced


def _small_echelon(matrix: NDArray[np.int64], p: int) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Reduce the matrix in place by Gauss-Jordan elimination. Products of residues stay below 2^46."""
    pivots: list[int] = []
    for column in range(matrix.shape[1]):
        top = len(pivots)
        if top == len(matrix):
            break
        nonzero = matrix[top:, column].nonzero()[0]
        if not len(nonzero):
            continue
        row = top + int(nonzero[0])
        if row != top:
            matrix[[top, row]] = matrix[[row, top]]
        inverse = pow(int(matrix[top, column]), -1, p)
        matrix[top, column:] = matrix[top, column:] * inverse % p
        factors = matrix[:, column].copy()
        factors[top] = 0
        rows = factors.nonzero()[0]
        matrix[rows, column:] = (matrix[rows, column:] - factors[rows, None] * matrix[top, column:]) % p
        pivots.append(column)
    return matrix[: len(pivots)], tuple(pivots)


# -- the blocked factorization ---------------------------------------------------------------------------


class _Factorization:
    """The PLE factorization of a matrix of residues, computed in place.

    `order` is the permutation of the rows. After it, the pivot of row i is in column `columns[i]`; the echelon form E is on and
    right of the pivots, and the multipliers, which are the entries of L, are below them. `check` is called once for each panel.
    """

    def __init__(self, matrix: FloatArray, field: Field, check: Interruption | None = None) -> None:
        self.matrix = matrix
        self.field = field
        self.check = check
        self.order: NDArray[np.int64] = np.arange(matrix.shape[0])
        self.columns: list[int] = []
        self.eliminate(0, 0, matrix.shape[1])

    def eliminate(self, top: int, left: int, right: int) -> None:
        """Eliminate the columns left..right-1 in the rows from `top` on, recursively by halves."""
        matrix = self.matrix
        if top >= matrix.shape[0] or left >= right:
            return
        if right - left <= _PANEL_COLUMNS:
            if self.check is not None:
                self.check()
            self.eliminate_panel(top, left, right)
            return
        middle = (left + right) // 2
        pivot_count = len(self.columns)
        self.eliminate(top, left, middle)
        left_pivots = self.columns[pivot_count:]
        rank = len(left_pivots)
        if rank:
            bottom = top + rank
            if left_pivots[-1] - left_pivots[0] + 1 == rank:  # consecutive columns: a view avoids the copy
                multipliers = matrix[top:, left_pivots[0] : left_pivots[-1] + 1]
            else:
                multipliers = matrix[top:, left_pivots]
            block = matrix[top:bottom, middle:right]
            _solve_unit_lower(multipliers[:rank], block, self.field)
            self.field.subtract_product(matrix[bottom:, middle:right], multipliers[rank:], block)
            top = bottom
        self.eliminate(top, middle, right)

    def eliminate_panel(self, top: int, left: int, right: int) -> None:
        """Eliminate a narrow panel column by column, then apply its row exchanges to the whole matrix."""
        matrix, field = self.matrix, self.field
        panel = np.array(matrix[top:, left:right], order="C")  # a copy even if the panel is the whole matrix
        permutation = np.arange(panel.shape[0])
        pivot_columns: list[int] = []
        for column in range(right - left):
            row = len(pivot_columns)
            if row == panel.shape[0]:
                break
            pivot = row + int(np.argmax(panel[row:, column] != 0))
            if panel[pivot, column] == 0:
                continue
            if pivot != row:
                panel[[row, pivot]] = panel[[pivot, row]]
                permutation[[row, pivot]] = permutation[[pivot, row]]
            below = panel[row + 1 :, column:]
            below[:, 0] = field.reduce(below[:, 0] * field.inverse(panel[row, column]))
            below[:, 1:] = field.reduce(below[:, 1:] - below[:, :1] * panel[row, column + 1 :])
            pivot_columns.append(left + column)
        moved = np.flatnonzero(permutation != np.arange(len(permutation)))
        if moved.size:
            matrix[top + moved] = matrix[top + permutation[moved]]
            self.order[top + moved] = self.order[top + permutation[moved]]
        matrix[top:, left:right] = panel
        self.columns.extend(pivot_columns)


def _solve_unit_lower(lower: FloatArray, right: FloatArray, field: Field) -> None:
    """Replace `right` by L^-1 right in place, where L is the unit lower triangular part of `lower`."""
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
    """Return L^-1 by forward substitution: row i of L^-1 is e_i - sum over j < i of L[i, j] times row j of L^-1."""
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
