"""Analyses stage, closure: reduced row echelon forms over F_p that can be interrupted.

A matrix with entries in [0, p) enters, its reduced row echelon form and pivot columns leave. All the work is products of
float64 matrices, exact because every partial sum stays below 2^53; between blocks a :class:`Clock` is asked whether to go on, so
a limit holds inside the linear algebra of a single degree.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from m2bridge.errors import InputError

Matrix = npt.NDArray[np.int64]
LARGEST_PRIME = 2**23
_BLOCK = 64


class LimitReached(Exception):  # noqa: N818 - an outcome, not a mistake
    """Time or memory ran out inside a computation of ours; `reason` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class Clock:
    """A deadline and a memory budget that long computations ask about."""

    seconds: float | None = None
    memory_bytes: int | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def remaining(self) -> float | None:
        return None if self.seconds is None else self.seconds - self.elapsed

    def check(self) -> None:
        """Raise :class:`LimitReached` when the time is over."""
        if self.seconds is not None and self.elapsed > self.seconds:
            raise LimitReached(f"the time limit of {self.seconds:g} s was reached")

    def reserve(self, count: int, what: str) -> None:
        """Raise :class:`LimitReached` when `count` bytes are more than the budget."""
        if self.memory_bytes is not None and count > self.memory_bytes:
            raise LimitReached(
                f"{what} needs {count / 2**20:.0f} MB, the limit is {self.memory_bytes / 2**20:.0f} MB"
            )


def check_prime(p: int) -> None:
    """Refuse a modulus that is not a prime in the range where float64 products are exact."""
    if not 2 <= p < LARGEST_PRIME or any(p % q == 0 for q in range(2, int(p**0.5) + 1)):
        raise InputError(f"--prime {p}: a prime below {LARGEST_PRIME} is needed here")


def product_mod(left: Matrix, right: Matrix, p: int) -> Matrix:
    """The matrix product mod p, exact: the inner dimension is cut so that sums stay below 2^53."""
    chunk = max(1, (2**53 - 1) // (p - 1) ** 2)
    inner = left.shape[1]
    total = np.zeros((left.shape[0], right.shape[1]), dtype=np.int64)
    for start in range(0, inner, chunk):
        part = left[:, start : start + chunk].astype(np.float64) @ right[start : start + chunk].astype(
            np.float64
        )
        total += part.astype(np.int64) % p
        total %= p
    return total


def _panel_pivots(panel: Matrix, p: int) -> tuple[list[int], list[int]]:
    """Rows and columns of pivots of a narrow matrix, by plain elimination on a copy."""
    work = panel.copy()
    free = np.ones(len(work), dtype=bool)
    rows: list[int] = []
    columns: list[int] = []
    for column in range(work.shape[1]):
        candidates = np.flatnonzero(free & (work[:, column] != 0))
        if not len(candidates):
            continue
        row = int(candidates[0])
        free[row] = False
        rows.append(row)
        columns.append(column)
        inverse = pow(int(work[row, column]), -1, p)
        others = candidates[1:]
        factors = work[others, column] * inverse % p
        work[others] = (work[others] - factors[:, None] * work[row]) % p
    return rows, columns


def inverse_mod(matrix: Matrix, p: int) -> Matrix:
    """The inverse of a square matrix over F_p."""
    size = len(matrix)
    work = np.concatenate([matrix % p, np.eye(size, dtype=np.int64)], axis=1)
    for column in range(size):
        row = column + int(np.flatnonzero(work[column:, column])[0])
        if row != column:
            work[[row, column]] = work[[column, row]]
        work[column] = work[column] * pow(int(work[column, column]), -1, p) % p
        factors = work[:, column].copy()
        factors[column] = 0
        work = (work - factors[:, None] * work[column]) % p
    return work[:, size:]


def _small_echelon(work: Matrix, p: int) -> tuple[Matrix, tuple[int, ...]]:
    """Gauss-Jordan elimination in place, for narrow matrices."""
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


def echelon(matrix: Matrix, p: int, clock: Clock | None = None) -> tuple[Matrix, tuple[int, ...]]:
    """The reduced row echelon form of a matrix over F_p, zero rows left out, and its pivot columns.

    >>> rows, pivots = echelon(np.array([[2, 4, 1], [1, 2, 0]]), 7)
    >>> rows.tolist(), pivots
    ([[1, 2, 0], [0, 0, 1]], (0, 2))
    """
    work = np.array(matrix, dtype=np.int64) % p
    height, width = work.shape
    if width <= _BLOCK:
        return _small_echelon(work, p)
    taken = np.zeros(height, dtype=bool)
    order: list[int] = []
    pivots: list[int] = []
    for start in range(0, width, _BLOCK):
        if clock is not None:
            clock.check()
        free = np.flatnonzero(~taken)
        if not len(free):
            break
        rows, columns = _panel_pivots(work[free, start : start + _BLOCK], p)
        if not rows:
            continue
        picked = free[rows]
        found = np.array([start + c for c in columns], dtype=np.int64)
        inverse = inverse_mod(work[np.ix_(picked, found)], p)
        pivot_rows = product_mod(inverse, work[picked, start:], p)
        apart = np.ones(height, dtype=bool)
        apart[picked] = False
        others = np.flatnonzero(apart)
        factors = work[np.ix_(others, found)]
        work[others, start:] = (work[others, start:] - product_mod(factors, pivot_rows, p)) % p
        work[picked, start:] = pivot_rows
        taken[picked] = True
        order += picked.tolist()
        pivots += found.tolist()
    return work[order], tuple(pivots)


def rank(matrix: Matrix, p: int, clock: Clock | None = None) -> int:
    """The rank of a matrix over F_p."""
    return len(echelon(matrix, p, clock)[1])


def kernel(
    matrix: Matrix, p: int, clock: Clock | None = None
) -> tuple[Matrix, tuple[int, ...], tuple[int, ...]]:
    """The canonical basis of {v : matrix v = 0} over F_p, with the pivot and the free columns.

    Row k of the basis is 1 in the k-th free column, 0 in the other free ones; its remaining entries are in pivot
    columns to the left. So a vector of the kernel is determined by its entries in the free columns.
    """
    reduced, pivots = echelon(matrix, p, clock)
    width = matrix.shape[1]
    free = tuple(sorted(set(range(width)) - set(pivots)))
    basis = np.zeros((len(free), width), dtype=np.int64)
    basis[np.arange(len(free)), list(free)] = 1
    if pivots and free:
        basis[:, list(pivots)] = (-reduced[:, list(free)].T) % p
    return basis, pivots, free
