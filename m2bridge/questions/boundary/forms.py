"""Exact linear algebra over QQ on Segre coordinates: flattenings, kernels, division of quadrics by linear forms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import flint
import numpy as np

from m2bridge.models import Lightning

Table = np.ndarray
"""Fractions with axes (n, m, ij): the quadric alpha_m * nu_n by its coefficients of x_i x_j, i <= j."""


def table_of(model: Lightning, coordinates: Sequence[Fraction]) -> Table:
    """The coordinates of a point as quadrics z[n, m]."""
    pairs = model.d * (model.d + 1) // 2
    table = np.empty(len(coordinates), dtype=object)
    table[:] = [Fraction(c) for c in coordinates]
    return table.reshape(model.dp, model.d, pairs)


def quadric_matrix(quadric: Iterable[Any], d: int) -> np.ndarray:
    """The symmetric matrix S of a quadric x^T S x given by its coefficients; off the diagonal S_ij = c_ij / 2."""
    S = np.empty((d, d), dtype=object)
    for c, i, j in zip(quadric, *np.triu_indices(d), strict=True):
        S[i, j] = S[j, i] = Fraction(c) / (1 if i == j else 2)
    return S


def e2(S: np.ndarray) -> Fraction:
    """The second elementary symmetric function of the eigenvalues: the sum of the principal 2-minors."""
    total = Fraction(0)
    for i, j in zip(*np.triu_indices(len(S), 1), strict=True):
        total += S[i, i] * S[j, j] - S[i, j] ** 2
    return total


def integers(matrix: Any) -> np.ndarray:
    """A positive multiple of a rational array with integer entries."""
    array = np.asarray(matrix, dtype=object)
    scale = lcm(*(Fraction(c).denominator for c in array.flat), 1)
    scaled = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        scaled[index] = int(array[index] * scale)
    return scaled


def rank(matrix: Any) -> int:
    """Rank over QQ."""
    array = integers(matrix)
    return int(flint.fmpz_mat(*array.shape, array.ravel().tolist()).rank()) if array.size else 0


def kernel(matrix: Any) -> list[np.ndarray]:
    """A basis of the kernel over QQ, primitive integer vectors whose first entry that is not zero is positive."""
    array = integers(matrix)
    rows, columns = array.shape
    basis, nullity = flint.fmpz_mat(rows, columns, array.ravel().tolist()).nullspace()
    return [primitive([int(basis[i, j]) for i in range(columns)]) for j in range(nullity)]


def primitive(vector: Sequence[Any]) -> np.ndarray:
    """The primitive integer vector on the line of a vector that is not zero, its first non-zero entry positive."""
    whole = integers(vector)
    content = gcd(*whole.tolist()) * (1 if next(c for c in whole if c) > 0 else -1)
    return np.array([c // content for c in whole], dtype=object)


def solve(matrix: Any, right: Any) -> np.ndarray | None:
    """X with matrix @ X = right for a matrix of full column rank; None when there is none."""
    columns = np.asarray(matrix).shape[1]
    joined = np.concatenate([np.asarray(matrix, dtype=object), np.asarray(right, dtype=object)], axis=1)
    flat = [flint.fmpq(Fraction(c).numerator, Fraction(c).denominator) for c in joined.flat]
    reduced, pivots = flint.fmpq_mat(*joined.shape, flat).rref()
    if pivots != columns or any(reduced[i, i] != 1 for i in range(columns)):
        return None
    width = joined.shape[1] - columns
    solution = np.empty((columns, width), dtype=object)
    for i, j in np.ndindex(columns, width):
        entry = reduced[i, columns + j]
        solution[i, j] = Fraction(int(entry.p), int(entry.q))
    return solution


def multiplication(polynomial: Iterable[Any], degree: int, d: int) -> np.ndarray:
    """The matrix of linear form -> polynomial * linear form, from d coefficients to those of degree + 1.

    `polynomial` is linear (degree 1) or a quadric by its coefficients of x_i x_j, i <= j (degree 2).
    """
    source, target = _monomials(d, degree), _monomials(d, degree + 1)
    place = {monomial: row for row, monomial in enumerate(target)}
    matrix = np.zeros((len(target), d), dtype=object)
    for monomial, coefficient in zip(source, polynomial, strict=True):
        for k in range(d):
            matrix[place[tuple(sorted((*monomial, k)))], k] += coefficient
    return matrix


def _monomials(d: int, degree: int) -> list[tuple[int, ...]]:
    """Indices i <= j <= ... of the monomials, lexicographically: the order of the Segre coordinates in degree 2."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(degree):
        found = [(*m, k) for m in found for k in range(m[-1] if m else 0, d)]
    return found
