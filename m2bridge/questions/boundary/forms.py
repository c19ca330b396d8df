"""Segre coordinates of a point as a table of quadrics, and products of quadrics with linear forms, exactly over QQ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import gcd
from typing import Any

import numpy as np

from m2bridge.models import Lightning
from m2bridge.programs.arithmetics import object_array
from m2bridge.questions import over_q

Table = np.ndarray
"""Fractions with axes (n, m, ij): the quadric alpha_m * nu_n by its coefficients of x_i x_j, i <= j."""


def table_of(model: Lightning, coordinates: Sequence[Fraction]) -> Table:
    """The coordinates of a point as quadrics z[n, m]."""
    pairs = model.d * (model.d + 1) // 2
    return object_array([Fraction(c) for c in coordinates], (model.dp, model.d, pairs))


def quadric_matrix(quadric: Iterable[Any], d: int) -> np.ndarray:
    """The symmetric matrix S of a quadric x^T S x given by its coefficients; off the diagonal S_ij = c_ij / 2."""
    S = np.empty((d, d), dtype=object)
    for c, i, j in zip(quadric, *np.triu_indices(d), strict=True):
        S[i, j] = S[j, i] = Fraction(c) / (1 if i == j else 2)
    return S


def e2(S: np.ndarray) -> Fraction:
    """The second elementary symmetric function of the eigenvalues: the sum of the principal 2-minors."""
    pairs = zip(*np.triu_indices(len(S), 1), strict=True)
    return sum((S[i, i] * S[j, j] - S[i, j] ** 2 for i, j in pairs), Fraction(0))


def primitive(vector: Sequence[Any]) -> np.ndarray:
    """The primitive integer vector on the line of a vector that is not zero, its first non-zero entry positive."""
    whole = over_q.integral(vector)
    content = gcd(*whole.tolist()) * (1 if next(c for c in whole if c) > 0 else -1)
    return np.array([c // content for c in whole], dtype=object)


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
    return list(combinations_with_replacement(range(d), degree))
