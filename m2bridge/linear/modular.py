"""Exact ranks, pivots, echelon forms and kernels over F_p, and ranks over QQ, of matrices of integers.

For p < 2^23 the matrix is stored in float64 as balanced residues (:mod:`m2bridge.linear.residues`) and eliminated in blocks of
rows (:mod:`m2bridge.linear.row_space`), where almost all work is BLAS multiplication. Small matrices and larger primes are passed
to FLINT. The rank over F_p of a matrix of integers is at most its rank over QQ, so each rank over F_p is a proved lower bound of
the rank over QQ.
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
from m2bridge.linear.row_space import RowSpace

_SMALL_MATRIX = 120
"""Up to this many rows or columns FLINT computes a rank faster than the elimination in blocks."""

Interruption = Callable[[], None]
"""A function that the elimination calls regularly; it may raise an exception to stop the computation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elimination:
    """The rank r of a matrix, and the rows and columns of an invertible r x r submatrix, in increasing order."""

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
    return row_space(*_residues(array, p)).rank


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
        space = row_space(*_residues(array, p))
        rows, columns = tuple(sorted(space.pivot_rows)), tuple(sorted(space.pivot_columns))
        return Elimination(rank=space.rank, pivot_rows=rows, pivot_columns=columns, p=p)
    # The pivot columns are read off the echelon form; the pivot rows are the pivot columns of the transposed submatrix.
    _, columns = _flint_echelon(array, p)
    _, rows = _flint_echelon(array[:, columns].T, p)
    return Elimination(rank=len(columns), pivot_rows=rows, pivot_columns=columns, p=p)


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
    """Return the pivot columns and the non-zero rows of the reduced row echelon form of a float64 array of balanced residues."""
    return row_space(residues, field, check).echelon()


def row_space(residues: FloatArray, field: Field, check: Interruption | None = None) -> RowSpace:
    """Return the row space of a float64 array of balanced residues."""
    space = RowSpace(field, residues.shape[1])
    for start in range(0, len(residues), space.block_rows):
        if check is not None:
            check()
        space.add(residues[start : start + space.block_rows])
    return space


# -- FLINT -----------------------------------------------------------------------------------------------


def _flint(array: NDArray[Any], p: int) -> Any:
    return flint.nmod_mat(*array.shape, (array % p).ravel().tolist(), p)


def _flint_echelon(array: NDArray[Any], p: int) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    if 0 in array.shape:
        return np.zeros((0, array.shape[1]), dtype=np.int64), ()
    reduced, rank = _flint(array, p).rref()
    entries = np.array([int(x) for x in reduced.entries()], dtype=np.int64).reshape(array.shape)[:rank]
    return entries, tuple((entries != 0).argmax(axis=1).tolist())
