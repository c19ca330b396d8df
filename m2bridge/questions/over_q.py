"""Exact linear algebra over QQ on arrays of integers and Fractions, and real roots of polynomials over QQ, by FLINT."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm
from typing import Any

import flint
import numpy as np

from m2bridge.errors import InputError
from m2bridge.linear.modular import rank_over_q
from m2bridge.programs.arithmetics import elementwise, object_array


def integral(matrix: Any) -> np.ndarray:
    """Return a positive multiple of a rational array with integer entries: the same rank and the same kernel."""
    array = np.asarray(matrix, dtype=object)
    scale = lcm(*(Fraction(c).denominator for c in array.flat))
    return elementwise(lambda c: int(c * scale), array)


def primitive(vector: Any) -> np.ndarray:
    """Return the primitive integer vector on the line of a vector that is not zero, its first non-zero entry positive.

    >>> primitive([Fraction(-1, 2), 3]).tolist()
    [1, -6]
    """
    multiple = integral(vector)
    content = gcd(*multiple.tolist()) * (1 if next(c for c in multiple if c) > 0 else -1)
    return elementwise(lambda c: c // content, multiple)


def rank(matrix: Any) -> int:
    """Return the rank over QQ.

    >>> rank([[Fraction(1, 2), 1], [1, 2]])
    1
    """
    array = integral(matrix)
    return rank_over_q(array) if array.size else 0


def rank_of_product(left: Any, right: Any) -> int:
    """Return the rank over QQ of the product of two matrices; by FLINT, because NumPy's products of objects take seconds.

    >>> rank_of_product([[1, Fraction(1, 2)]], [[1], [-2]])
    0
    """
    first, second = _flint_integers(left), _flint_integers(right)
    return int((first * second).rank())


def _flint_integers(matrix: Any) -> Any:
    """Return a positive multiple of a rational matrix as a FLINT matrix of integers."""
    array = integral(matrix)
    return flint.fmpz_mat(*array.shape, array.ravel().tolist())


def kernel(matrix: Any) -> np.ndarray:
    """Return an integer basis of the kernel, one vector per row.

    >>> kernel([[1, 1]]).shape
    (1, 2)
    """
    integers = _flint_integers(matrix)
    columns = integers.ncols()
    basis, nullity = integers.nullspace()
    entries = [int(basis[i, j]) for j in range(nullity) for i in range(columns)]
    return object_array(entries, (nullity, columns))


def echelon(matrix: Any) -> tuple[list[int], np.ndarray]:
    """Return the pivot columns and the reduced row echelon form, as Fractions."""
    array = np.asarray(matrix, dtype=object)
    flat = [fmpq(c) for c in array.flat]
    reduced, rank = flint.fmpq_mat(*array.shape, flat).rref()
    entries = [fraction(c) for c in reduced.entries()]
    table = object_array(entries, array.shape)
    return [int(np.flatnonzero(row)[0]) for row in table[:rank]], table


def solve(matrix: Any, right: Any) -> np.ndarray | None:
    """Solve matrix @ X = right for a matrix of full column rank; None if there is no solution.

    >>> solve([[2], [4]], [[1], [2]])[0, 0], solve([[2], [4]], [[1], [1]])
    (Fraction(1, 2), None)
    """
    columns = np.shape(matrix)[1]
    pivots, reduced = echelon(np.concatenate([np.asarray(matrix, object), np.asarray(right, object)], axis=1))
    return reduced[:columns, columns:] if pivots == list(range(columns)) else None


def inverse(matrix: Any) -> np.ndarray:
    """Return the inverse of a square matrix; an InputError if it is singular."""
    solution = solve(matrix, np.eye(len(matrix), dtype=int))
    if solution is None:
        raise InputError("the matrix is not invertible")
    return solution


def is_skew(matrix: np.ndarray) -> bool:
    """Return whether M^T = -M and M is not zero."""
    return bool(matrix.any()) and bool(np.all(matrix == -matrix.T))


def factors(A: np.ndarray, a: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (Q, K) of `a` rows with K^T Q = A: the echelon form of A, its pivot columns, and rows of zeros.

    >>> Q, K = factors(np.array([[1, 2], [2, 4]]), 2)
    >>> (K.T @ Q).tolist() == [[1, 2], [2, 4]]
    True
    """
    pivots, reduced = echelon(A)
    Q, K = (object_array([Fraction(0)] * (a * len(A)), (a, len(A))) for _ in range(2))
    Q[: len(pivots)], K[: len(pivots)] = reduced[: len(pivots)], np.asarray(A, dtype=object).T[pivots]
    return Q, K


# -- numbers and real roots ------------------------------------------------------------------------------------------------------


def fmpq(value: Any) -> Any:
    """Convert an integer, a Fraction or a text such as "1/3" to FLINT's rational number."""
    exact = Fraction(value)
    return flint.fmpq(exact.numerator, exact.denominator)


def fraction(number: Any) -> Fraction:
    """Convert FLINT's rational number to a Fraction."""
    return Fraction(int(number.p), int(number.q))


def real_roots(polynomial: flint.fmpq_poly) -> list[Any]:
    """Return the real roots of a squarefree polynomial, in proved balls at the present precision."""
    if polynomial.degree() < 1:
        return []
    return [root.real for root, _ in polynomial.numer().complex_roots() if root.imag == 0]


def sturm_count(polynomial: flint.fmpq_poly) -> int:
    """Return the number of real roots by Sturm's theorem: sign changes of the sequence at minus and plus infinity.

    >>> sturm_count(flint.fmpq_poly([-2, 0, 1])), sturm_count(flint.fmpq_poly([2, 0, 1]))
    (2, 0)
    """
    sequence = [polynomial, polynomial.derivative()]
    while sequence[-1]:
        sequence.append(-(sequence[-2] % sequence[-1]))
    leading = [(bool(f[f.degree()] > 0), f.degree() % 2 == 1) for f in sequence[:-1]]
    right = [sign for sign, _ in leading]
    left = [sign != odd for sign, odd in leading]
    return sum(int(a != b) for a, b in pairwise(left)) - sum(int(a != b) for a, b in pairwise(right))
