"""Rank stage: exact rank over F_p. Integer matrices enter, ranks with pivots leave.

For p < 2^23 the matrix is held in float64 as balanced residues (:mod:`m2bridge.rank.residues`) and
eliminated by a recursive PLE factorization, in which almost all work is BLAS multiplication; small matrices
and larger primes go to FLINT.

The rank over F_p of an integer matrix is at most its rank over QQ: each rank found here is a proved lower
bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from m2bridge.rank.residues import (
    DEFAULT_PRIME,
    LARGEST_BLAS_PRIME,
    Field,
    Floats,
    check_prime,
    integer_matrix,
)

_PANEL = 16
_BASE = 32
_SMALL = 120
"""Below this many rows or columns FLINT is faster than the blocked elimination."""


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


def rank_mod(matrix: Any, p: int = DEFAULT_PRIME) -> int:
    """Rank over F_p of an integer matrix, exact.

    Parameters
    ----------
    matrix
        Integers of any size (int64 or Python integers); they are reduced modulo p first.
    p
        A prime below 2^63. Below 2^23 large matrices use BLAS.

    Examples
    --------
    >>> rank_mod([[1, 2], [3, 6 + 10007]], 10007)
    1
    """
    p = check_prime(p)
    array = integer_matrix(matrix)
    if 0 in array.shape:
        return 0
    if p >= LARGEST_BLAS_PRIME or min(array.shape) <= _SMALL:
        return int(_flint(array, p).rank())
    field = Field(p)
    if array.shape[0] < array.shape[1]:
        array = array.T
    return len(_factor(field.residues(np.ascontiguousarray(array)), field)[1])


def eliminate(matrix: Any, p: int = DEFAULT_PRIME) -> Elimination:
    """Rank over F_p together with pivot rows and columns: what a certificate needs."""
    p = check_prime(p)
    array = integer_matrix(matrix)
    if p >= LARGEST_BLAS_PRIME:
        return _eliminate_large(array, p)
    field = Field(p)
    return eliminate_residues(field.residues(np.ascontiguousarray(array)), field)


def eliminate_residues(residues: Floats, field: Field) -> Elimination:
    """:func:`eliminate` of a float64 array of balanced residues, which is overwritten."""
    order, columns = _factor(residues, field)
    rank = len(columns)
    return Elimination(
        rank=rank,
        pivot_rows=tuple(int(i) for i in order[:rank]),
        pivot_columns=tuple(columns),
        p=field.p,
    )


def nullspace_mod(matrix: Any, p: int = DEFAULT_PRIME) -> NDArray[np.int64]:
    """Basis of {x : matrix x = 0} over F_p, one vector a row, in reduced form, entries in 0..p-1.

    Examples
    --------
    >>> nullspace_mod([[1, 1, 0]], 5).tolist()
    [[4, 1, 0], [0, 0, 1]]
    """
    p = check_prime(p)
    array = integer_matrix(matrix)
    columns = array.shape[1]
    if p >= LARGEST_BLAS_PRIME or min(array.shape) <= _SMALL:
        pivots, reduced = _flint_echelon(array, p)
    else:
        field = Field(p)
        pivots, floats = echelon_residues(field.residues(np.ascontiguousarray(array)), field)
        reduced = field.canonical(floats)
    free = np.setdiff1d(np.arange(columns), pivots)
    basis = np.zeros((len(free), columns), dtype=np.int64)
    basis[np.arange(len(free)), free] = 1
    if len(pivots):
        basis[:, pivots] = (-reduced[:, free].T) % p
    return basis


def echelon_residues(residues: Floats, field: Field) -> tuple[list[int], Floats]:
    """Pivot columns and the non-zero rows of the reduced row echelon form; the argument is overwritten."""
    _, pivots = _factor(residues, field)
    rank = len(pivots)
    upper = np.triu(residues[:rank, pivots])
    rest = residues[:rank].copy()
    rest[:, pivots] = 0.0  # multipliers of the factorization are stored below the pivots
    for i, column in enumerate(pivots):
        rest[i, :column] = 0.0
    diagonal = np.array([field.inverse(x) for x in np.diagonal(upper)])[:, None]
    upper = field.reduce(upper * diagonal)
    rest = field.reduce(rest * diagonal)
    # U x = y is a lower triangular system when both orders are reversed
    solved = np.ascontiguousarray(rest[::-1])
    _solve_unit_lower(np.ascontiguousarray(upper[::-1, ::-1]), solved, field)
    reduced = np.ascontiguousarray(solved[::-1])
    reduced[np.arange(rank), pivots] = 1.0
    return pivots, reduced


# -- the blocked factorization ---------------------------------------------------------------------------


def _factor(matrix: Floats, field: Field) -> tuple[NDArray[np.int64], list[int]]:
    """Factor in place; the order of the rows and the pivot columns.

    Afterwards, in the new order of rows, row i has pivot (i, columns[i]); the echelon form is on and right
    of the pivots and the multipliers are below them.
    """
    work = _Work(matrix, np.arange(matrix.shape[0]), [], field)
    work.eliminate(0, 0, matrix.shape[1])
    return work.order, work.columns


@dataclass(frozen=True, slots=True)
class _Work:
    """A factorization under way: `matrix` is overwritten, `order` and `columns` grow into the answer."""

    matrix: Floats
    order: NDArray[np.int64]
    columns: list[int]
    field: Field

    def eliminate(self, top: int, left: int, right: int) -> None:
        """Eliminate the columns left..right among the rows from `top` on, halving the columns."""
        matrix = self.matrix
        if top >= matrix.shape[0] or left >= right:
            return
        if right - left <= _PANEL:
            self.columns.extend(self.panel(top, left, right))
            return
        middle = (left + right) // 2
        known = len(self.columns)
        self.eliminate(top, left, middle)
        found = self.columns[known:]
        if found:
            bottom = top + len(found)
            pivots = _take(matrix[top:], found)
            block = matrix[top:bottom, middle:right]
            _solve_unit_lower(pivots[: len(found)], block, self.field)
            self.field.subtract_product(matrix[bottom:, middle:right], pivots[len(found) :], block)
            top = bottom
        self.eliminate(top, middle, right)

    def panel(self, top: int, left: int, right: int) -> list[int]:
        """Eliminate a narrow panel column by column; the pivot columns."""
        matrix, field = self.matrix, self.field
        panel = np.ascontiguousarray(matrix[top:, left:right])
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
            multipliers = panel[row + 1 :, column] * field.inverse(panel[row, column])
            field.reduce(multipliers)
            panel[row + 1 :, column] = multipliers
            if column + 1 < right - left:
                rest = panel[row + 1 :, column + 1 :]
                rest -= multipliers[:, None] * panel[row, column + 1 :]
                field.reduce(rest)
            found.append(left + column)
        moved = np.flatnonzero(local != np.arange(len(local)))
        if moved.size:
            matrix[top + moved] = matrix[top + local[moved]]
            self.order[top + moved] = self.order[top + local[moved]]
        matrix[top:, left:right] = panel
        return found


def _take(matrix: Floats, columns: list[int]) -> Floats:
    if columns[-1] - columns[0] + 1 == len(columns):
        return matrix[:, columns[0] : columns[-1] + 1]
    return matrix[:, columns]


def _solve_unit_lower(lower: Floats, right: Floats, field: Field) -> None:
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


def _invert_unit_lower(lower: Floats, field: Field) -> Floats:
    size = lower.shape[0]
    inverse = np.eye(size)
    for i in range(1, size):
        inverse[i, :i] = field.reduce(-(lower[i, :i] @ inverse[:i, :i]))
    return inverse


# -- FLINT -----------------------------------------------------------------------------------------------


def _flint(array: NDArray[Any], p: int) -> Any:
    return flint.nmod_mat(*array.shape, (array % p).ravel().tolist(), p)


def _flint_echelon(array: NDArray[Any], p: int) -> tuple[list[int], NDArray[Any]]:
    if 0 in array.shape:
        return [], np.zeros((0, array.shape[1]), dtype=np.int64)
    reduced, rank = _flint(array, p).rref()
    entries = np.array([int(x) for x in reduced.entries()], dtype=object).reshape(array.shape)[:rank]
    pivots = [int(np.flatnonzero(row)[0]) for row in entries]
    return pivots, entries


def _eliminate_large(array: NDArray[Any], p: int) -> Elimination:
    """Pivots for primes beyond BLAS: columns from one echelon form, rows from that of the chosen columns."""
    columns, _ = _flint_echelon(array, p)
    rows, _ = _flint_echelon(array[:, columns].T, p)
    return Elimination(rank=len(columns), pivot_rows=tuple(rows), pivot_columns=tuple(columns), p=p)
