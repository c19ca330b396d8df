"""The row space over F_p of a matrix whose rows arrive in blocks: its rank, pivots, solutions and reduced echelon form.

A block B is reduced by the blocks before it, one after the other,

    B <- B - X Y,    X = B[:, pivots] Y[:, pivots]^-1,

where Y are the independent rows of an earlier block after its own reduction. All Y, all X and the inverses are stored: with L the
matrix of the X, and ones on its diagonal, and U that of the Y, the independent rows are L U. So equations of the pivot submatrix
are solved by substitution, without another elimination. Residues are at most 2^22 + 4, which float32 represents exactly.

Almost all work is in matrix products, 2/3 n^3 operations for a square matrix of n rows, as for an LU factorization. The
elimination can stop after each block: the rank that was reached is the rank of the rows so far.

The pivot of a row is its first non-zero entry after the rows before it are subtracted. Within a block, rows with pivots in its
first columns come first, in any order of the rows: the others are zero there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from m2bridge.linear.residues import Field, FloatArray

_ROWS_OF_A_BLOCK = 512  # rows that are eliminated at once
_FEW_ROWS = 16
"""Blocks of at most this many rows are eliminated row by row."""
_MORE_COLUMNS = 64
"""The pivots of a block are sought in this many columns more than it has rows first."""

Indices = NDArray[np.int64]
Stored = NDArray[np.float32]
_Pivots = tuple[Indices, Indices, FloatArray]
"""Independent rows, their pivots, and the inverse of the submatrix at both."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The independent rows of one block after their reduction.

    rows: their numbers, counted through all blocks.
    pivots, columns: the pivots of the rows, and the other columns without earlier pivots, in increasing order.
    at_pivots, at_columns: where these are among the columns without earlier pivots; a slice if they are consecutive.
    inverse: of the submatrix at the pivots.
    rest: the rows at `columns`.
    factors: the X of all earlier parts, side by side.
    """

    rows: Indices
    pivots: Indices
    columns: Indices
    at_pivots: Indices
    at_columns: Any
    inverse: FloatArray
    rest: Stored
    factors: Stored


class RowSpace:
    """The span of the rows that were added, all of length `width`.

    >>> field = Field(7)
    >>> space = RowSpace(field, 3)
    >>> space.add(field.residues([[1, 2, 3], [2, 4, 6]])), space.add(field.residues([[3, 6, 1], [1, 2, 3]]))
    (1, 1)
    >>> space.rank, space.pivot_rows, space.pivot_columns
    (2, (0, 2), (0, 2))
    >>> space.solve(field.residues([[4], [4]])).tolist()  # x + 3 y = 4, 3 x + y = 4
    [[1.0], [1.0]]
    """

    def __init__(self, field: Field, width: int) -> None:
        self.field = field
        self.width = width
        self.added = 0
        self.rank = 0
        self._parts: list[_Part] = []

    @property
    def block_rows(self) -> int:
        """Return how many rows at once are eliminated fastest: a sum of as many products needs no reduction."""
        return min(self.field.terms, _ROWS_OF_A_BLOCK)

    @property
    def pivot_rows(self) -> tuple[int, ...]:
        """Return the rows that were independent of those before them, counted through all blocks."""
        return tuple(row for part in self._parts for row in part.rows.tolist())

    @property
    def pivot_columns(self) -> tuple[int, ...]:
        """Return the pivots of these rows; all leading minors of the submatrix of pivot rows and pivot columns are non-zero."""
        return tuple(self._pivots.tolist())

    @property
    def _pivots(self) -> Indices:
        return np.concatenate([np.zeros(0, dtype=np.int64), *(part.pivots for part in self._parts)])

    @property
    def _columns(self) -> Indices:
        """Return the columns without pivots."""
        return self._parts[-1].columns if self._parts else np.arange(self.width)

    def add(self, block: FloatArray) -> int:
        """Add rows, given as balanced residues; return by how much the rank grew. An exception leaves the space as it was."""
        reduced, factors = self._reduced(block)
        rows, at_pivots, inverse = _pivots_of(reduced, self.field)
        start, self.added = self.added, self.added + len(block)
        if not len(rows):
            return 0
        others = np.delete(np.arange(reduced.shape[1]), at_pivots)
        at_columns = _slice_of(others)
        part = _Part(
            rows=start + rows,
            pivots=self._columns[at_pivots],
            columns=self._columns[others],
            at_pivots=at_pivots,
            at_columns=at_columns,
            inverse=inverse,
            rest=reduced[:, at_columns].astype(np.float32)[rows],
            factors=factors[rows],
        )
        self._parts.append(part)
        self.rank += len(rows)
        return len(rows)

    def _reduced(self, block: FloatArray) -> tuple[FloatArray, Stored]:
        """Return the rows minus combinations of earlier ones, at the columns without pivots, and the coefficients of these."""
        reduced = block.copy()
        factors = np.empty((len(block), self.rank), dtype=np.float32)
        end = 0
        for part in self._parts:
            factor = self.field.matmul(reduced[:, part.at_pivots], part.inverse)
            reduced = reduced[:, part.at_columns]
            self.field.subtract_product(reduced, factor, part.rest.astype(np.float64))
            start, end = end, end + len(part.rows)
            factors[:, start:end] = factor
        return reduced, factors

    def solve(self, sides: FloatArray) -> FloatArray:
        """Solve A X = B modulo p, A the pivot rows at the pivot columns, in their orders; one column per side in B."""
        field = self.field
        right: list[FloatArray] = []
        before = np.zeros((0, sides.shape[1]))
        for part in self._parts:
            side = sides[len(before) : len(before) + len(part.rows)]
            right.append(field.reduce(side - field.matmul(part.factors.astype(np.float64), before)))
            before = np.concatenate([before, right[-1]])
        return self._substituted(right)

    def echelon(self) -> tuple[list[int], FloatArray]:
        """Return the pivot columns in increasing order, and the reduced row echelon form without zero rows."""
        free, pivots = self._columns, self._pivots
        right = [part.rest[:, np.searchsorted(part.columns, free)].astype(np.float64) for part in self._parts]
        order = np.argsort(pivots)
        form = np.zeros((self.rank, self.width))
        if self.rank:
            form[:, free] = self._substituted(right)[order]
        form[np.arange(self.rank), pivots[order]] = 1.0
        return pivots[order].tolist(), form

    def _substituted(self, right: list[FloatArray]) -> FloatArray:
        """Solve U X = B, U the rows at the pivots: from the last part to the first."""
        field = self.field
        below = np.zeros((0, right[-1].shape[1]))
        pivots = np.zeros(0, dtype=np.int64)
        for part, side in zip(reversed(self._parts), reversed(right), strict=True):
            later = part.rest[:, np.searchsorted(part.columns, pivots)].astype(np.float64)
            difference = field.reduce(side - field.matmul(later, below))
            below = np.concatenate([field.matmul(part.inverse, difference), below])
            pivots = np.concatenate([part.pivots, pivots])
        return below


def _slice_of(indices: Indices) -> Any:
    """Return increasing indices as a slice if they are consecutive: then an array is not copied."""
    if len(indices) and indices[-1] - indices[0] == len(indices) - 1:
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


def _pivots_of(block: FloatArray, field: Field) -> _Pivots:
    """Return independent rows of a block, their pivots, and the inverse of the submatrix at both.

    Those in the first columns, or else in the upper half of the rows, are found first. The other rows are reduced by them.
    """
    nonzero = block.any(axis=0)
    if not nonzero.any():
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros((0, 0))
    height, width = block.shape
    start = int(nonzero.argmax())
    window = slice(start, start + height + _MORE_COLUMNS)
    if window.stop - start < width:
        rows, pivots, inverse = _pivots_of(block[:, window], field)
        others = np.delete(np.arange(height), rows)
        return _with_others(block, (rows, start + pivots, inverse), others, field)
    if height <= _FEW_ROWS:
        return _pivots_of_few(block, field)
    return _with_others(block, _pivots_of(block[: height // 2], field), np.arange(height // 2, height), field)


def _with_others(block: FloatArray, first: _Pivots, others: Indices, field: Field) -> _Pivots:
    """Add the pivots of other rows. With S the Schur complement of the first submatrix A,

    [A B; C D]^-1 = [A^-1 + A^-1 B S^-1 C A^-1, -A^-1 B S^-1; -S^-1 C A^-1, S^-1].
    """
    rows, pivots, inverse = first
    if not len(others):
        return first
    rest = block[others]
    factor = field.matmul(rest[:, pivots], inverse)
    field.subtract_product(rest, factor, block[rows])
    rest_rows, rest_pivots, rest_inverse = _pivots_of(rest, field)
    if not len(rest_rows):
        return first
    right = field.matmul(field.matmul(inverse, block[np.ix_(rows, rest_pivots)]), rest_inverse)
    left = factor[rest_rows]
    upper = np.concatenate([field.reduce(inverse + field.matmul(right, left)), -right], axis=1)
    lower = np.concatenate([-field.matmul(rest_inverse, left), rest_inverse], axis=1)
    return (
        np.concatenate([rows, others[rest_rows]]),
        np.concatenate([pivots, rest_pivots]),
        np.concatenate([upper, lower]),
    )


def _pivots_of_few(block: FloatArray, field: Field) -> _Pivots:
    """Do :func:`_pivots_of` row by row, beside the identity, which becomes the inverse."""
    width = block.shape[1]
    matrix = np.concatenate([block, np.eye(len(block))], axis=1)
    rows, pivots = [], []
    for row, entries in enumerate(matrix):
        pivot = int((entries[:width] != 0).argmax())
        if not entries[pivot]:
            continue
        field.reduce(np.multiply(entries, field.inverse(entries[pivot]), out=entries))
        factors = matrix[:, pivot].copy()
        factors[row] = 0.0
        matrix -= factors[:, None] * entries
        field.reduce(matrix)
        rows.append(row)
        pivots.append(pivot)
    chosen = np.array(rows, dtype=np.int64)
    inverse = matrix[:, width:][np.ix_(chosen, chosen)]
    return chosen, np.array(pivots, dtype=np.int64), inverse
