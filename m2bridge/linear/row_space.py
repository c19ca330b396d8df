"""The row space over F_p of a matrix whose rows arrive in blocks: its rank, pivots and reduced echelon form.

After r independent rows the reduced echelon form is [I | R], up to the order of the columns: the r pivot columns, then the
others. Only R is stored, which has at most a quarter of the entries of a square matrix. A block [X | Y] is reduced by

    Y <- Y - X R,

the rows of Y have a reduced echelon form [I | T] of their own, and with R1 the columns of R at the new pivots, R2 the others,

    R <- [R2 - R1 T; T].

The form [I | T] is computed in the same way from the two halves of the rows, recursively. Almost all work is in matrix products,
2/3 n^3 operations for a square matrix of n rows, as for an LU factorization. The elimination can stop after each block: the
rank that was reached is the rank of the rows so far.

The pivot of a row is its first non-zero entry after the rows before it are subtracted. A later row is subtracted from an earlier
one only right of the earlier pivot, so that pivots stay first non-zero entries, and [I | R] is the reduced row echelon form.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from m2bridge.linear.residues import Field, FloatArray

_ROWS_OF_A_BLOCK = 512  # rows that are eliminated at once
_FEW_ROWS = 16
"""Blocks of at most this many rows are eliminated row by row."""
_FEW_COLUMNS = 64
"""The pivots of a few rows are sought in this many columns first."""
_MOST_RUNS = 64  # runs of consecutive columns that are copied one by one

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Echelon:
    """Independent rows, their pivot columns in the same order, the other columns, and R."""

    rows: Indices
    pivots: Indices
    others: Indices
    rest: FloatArray


class RowSpace:
    """The span of the rows that were added, all of length `width`.

    >>> field = Field(7)
    >>> space = RowSpace(field, 3)
    >>> space.add(field.residues([[1, 2, 3], [2, 4, 6]])), space.add(field.residues([[3, 6, 1], [1, 2, 3]]))
    (1, 1)
    >>> space.rank, space.pivot_rows, space.pivot_columns
    (2, (0, 2), (0, 2))
    """

    def __init__(self, field: Field, width: int) -> None:
        self.field = field
        self.width = width
        self.added = 0
        none = np.zeros(0, dtype=np.int64)
        self._echelon = _Echelon(none, none, np.arange(width), np.zeros((0, width)))

    @property
    def block_rows(self) -> int:
        """Return how many rows at once are eliminated fastest: a sum of as many products needs no reduction."""
        return min(self.field.terms, _ROWS_OF_A_BLOCK)

    @property
    def rank(self) -> int:
        return len(self._echelon.rows)

    @property
    def pivot_rows(self) -> tuple[int, ...]:
        """Return the rows that were independent of those before them, counted through all blocks."""
        return tuple(self._echelon.rows.tolist())

    @property
    def pivot_columns(self) -> tuple[int, ...]:
        """Return the pivots of these rows; all leading minors of the submatrix of pivot rows and pivot columns are non-zero."""
        return tuple(self._echelon.pivots.tolist())

    def add(self, block: FloatArray) -> int:
        """Add rows, given as balanced residues; return by how much the rank grew. An exception leaves the space as it was."""
        before = self._echelon
        start, self.added = self.added, self.added + len(block)
        reduced = np.empty((len(block), len(before.others)))
        _copy_columns(block, before.others, reduced)
        self.field.subtract_product(reduced, np.take(block, before.pivots, axis=1), before.rest)
        rows, columns, echelon = _reduced_rows(reduced, self.field)
        if len(rows):
            self._echelon = self._joined(start + rows, columns, echelon)
        return len(rows)

    def _joined(self, rows: Indices, columns: Indices, echelon: FloatArray) -> _Echelon:
        """Return the reduced form with more rows, whose pivots are `columns` of R."""
        before, old = self._echelon, self.rank
        kept = np.setdiff1d(np.arange(len(before.others)), columns)
        rest = np.empty((old + len(rows), len(kept)))
        _copy_columns(before.rest, kept, rest[:old])
        _copy_columns(echelon, kept, rest[old:])
        self.field.subtract_product(rest[:old], np.take(before.rest, columns, axis=1), rest[old:])
        return _Echelon(
            np.concatenate([before.rows, rows]),
            np.concatenate([before.pivots, before.others[columns]]),
            before.others[kept],
            rest,
        )

    def echelon(self) -> tuple[list[int], FloatArray]:
        """Return the pivot columns in increasing order, and the reduced row echelon form without zero rows."""
        order = np.argsort(self._echelon.pivots)
        form = np.zeros((self.rank, self.width))
        form[:, self._echelon.others] = self._echelon.rest[order]
        pivots = self._echelon.pivots[order]
        form[np.arange(self.rank), pivots] = 1.0
        return pivots.tolist(), form

    def last_columns(self, count: int) -> FloatArray:
        """Return the last columns of the reduced form, which have no pivot, with the rows in the order of their pivots."""
        return self._echelon.rest[np.argsort(self._echelon.pivots), -count:]


def _copy_columns(source: FloatArray, columns: Indices, target: FloatArray) -> None:
    """Copy some columns of an array. Few runs of consecutive columns are copied run by run, which is faster."""
    starts = np.flatnonzero(np.diff(columns, prepend=-2) != 1)
    if len(starts) > _MOST_RUNS:
        np.take(source, columns, axis=1, out=target, mode="clip")  # any other mode copies `out`
        return
    for start, stop in pairwise([*starts.tolist(), len(columns)]):
        target[:, start:stop] = source[:, columns[start] : columns[start] + stop - start]


def _reduced_rows(block: FloatArray, field: Field) -> tuple[Indices, Indices, FloatArray]:
    """Return independent rows of a block, their pivots, and the reduced echelon form. The block is overwritten."""
    if len(block) <= _FEW_ROWS:
        return _few_reduced_rows(block, field)
    half = len(block) // 2
    upper_rows, upper_pivots, upper = _reduced_rows(block[:half], field)
    lower = block[half:]
    field.subtract_product(lower, lower[:, upper_pivots], upper)
    rows, pivots, echelon = _reduced_rows(lower, field)
    field.subtract_product(upper, upper[:, pivots], echelon)
    return (
        np.concatenate([upper_rows, half + rows]),
        np.concatenate([upper_pivots, pivots]),
        np.concatenate([upper, echelon]),
    )


def _few_reduced_rows(block: FloatArray, field: Field) -> tuple[Indices, Indices, FloatArray]:
    """Do :func:`_reduced_rows` row by row, in a few columns beside the identity, which becomes the factor of all columns."""
    nonzero = np.flatnonzero(block.any(axis=1))
    block = block[nonzero]
    if not len(block):
        return nonzero, nonzero, block
    first = int(block.any(axis=0).argmax())
    window = block[:, first : first + _FEW_COLUMNS]
    beside = np.concatenate([window, np.eye(len(block))], axis=1)
    rows, pivots = _eliminate_rows(beside, window.shape[1], field)
    if len(rows) == len(block):
        return nonzero, first + pivots, field.matmul(beside[:, window.shape[1] :], block)
    rows, pivots = _eliminate_rows(block, block.shape[1], field)
    return nonzero[rows], pivots, block[rows]


def _eliminate_rows(matrix: FloatArray, width: int, field: Field) -> tuple[Indices, Indices]:
    """Reduce a matrix of few rows in place; return the rows with a pivot in the first `width` columns, and these pivots."""
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
    return np.array(rows, dtype=np.int64), np.array(pivots, dtype=np.int64)
