"""Changes of basis that carry one factorization into another, found exactly over QQ (Lemmas 3.1 and 3.5).

Reference: Henry, Marchetti, Kohn, arXiv:2408.17221. Matrices are lists of rows of integers, Fractions or fraction strings;
answers are tuples of tuples of Fractions. Nothing here rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.models.virtual import virtual_weights
from m2bridge.questions import over_q
from m2bridge.questions.fiber.partners import Matrix, exact


class NoChangeOfBasisError(InputError):
    """The hypotheses hold and no change of basis exists: the conclusion of a lemma fails. Everything else is another error."""


def transpose(a: Matrix) -> Matrix:
    return tuple(zip(*a, strict=True))


def times(a: Matrix, b: Matrix) -> Matrix:
    """The product, with a clear refusal when the shapes do not match."""
    if a and len(a[0]) != len(b):
        raise InputError(f"a matrix with {len(a[0])} columns cannot be multiplied by one with {len(b)} rows")
    columns = transpose(b)
    return tuple(tuple(sum(map(mul, row, column), Fraction(0)) for column in columns) for row in a)


def echelon(matrix: Matrix) -> tuple[list[int], Matrix]:
    """Pivot columns and reduced row echelon form, exactly."""
    pivots, reduced = over_q.echelon(matrix)
    return pivots, tuple(map(tuple, reduced))


def rank(matrix: Matrix) -> int:
    """Rank over QQ."""
    return over_q.rank(matrix)


def inverse(matrix: Matrix) -> Matrix:
    """The inverse of a square matrix."""
    found = over_q.solve(matrix, np.eye(len(matrix), dtype=int))
    if found is None:
        raise InputError("the matrix is not invertible")
    return tuple(map(tuple, found))


def _change(first: Matrix, second: Matrix) -> Matrix:
    """The C with ``second = C first`` for `first` of full row rank, from as many independent columns."""
    pivots, _ = echelon(first)
    left, right = (tuple(tuple(row[j] for j in pivots) for row in matrix) for matrix in (second, first))
    return times(left, inverse(right))


def attention_gauge(Q: Any, K: Any, other_Q: Any, other_K: Any) -> Matrix:
    """The unique C in GL_a with K' = C K and Q' = C^-T Q, given K^T Q = K'^T Q' of rank a (Lemma 3.1).

    Raises
    ------
    InputError
        A hypothesis of the lemma fails: the products differ, or their rank is below a.

    Examples
    --------
    >>> C = attention_gauge([[1, 0]], [[2, 3]], [["1/5", 0]], [[10, 15]])
    >>> [[str(x) for x in row] for row in C]
    [['5']]
    """
    q, k, q2, k2 = exact(Q, "Q"), exact(K, "K"), exact(other_Q, "Q'"), exact(other_K, "K'")
    if times(transpose(k), q) != times(transpose(k2), q2):
        raise InputError(
            "K^T Q and K'^T Q' are different: these are not two factorizations of one attention matrix"
        )
    found = rank(times(transpose(k), q))
    if found != len(k) or found != len(k2):
        raise InputError(
            f"Lemma 3.1 needs rk A = a; here rk A = {found} and a = {len(k)}, so that C is not unique"
        )
    C = _change(k, k2)
    if times(C, k) != k2 or times(transpose(C), q2) != q:
        raise NoChangeOfBasisError("no C carries one factorization into the other")
    return C


def virtual(A: Sequence[Matrix], V: Sequence[Matrix]) -> tuple[list[Matrix], Matrix]:
    """Virtual weights (M_1, ..., M_l) and L of Equation 8, exactly."""
    M, L = virtual_weights(*([np.array(matrix, dtype=object) for matrix in part] for part in (A, V)))
    return [tuple(map(tuple, matrix)) for matrix in M], tuple(map(tuple, L))


def layer_gauges(
    A: Sequence[Any], V: Sequence[Any], other_A: Sequence[Any], other_V: Sequence[Any]
) -> tuple[Matrix, ...]:
    """The unique C_1, ..., C_(l-1) that carry (A, V) into (A', V') by Equation 9 (Lemma 3.5).

    V'_i = C_i V_i C_(i-1)^-1 and A'_(i+1) = C_i^-T A_(i+1) C_i^-1, with C_0 and C_l the identity.

    Raises
    ------
    InputError
        A hypothesis fails: different virtual weights, unequal hidden widths, or rk L below them.
    """
    named = (("A", A), ("V", V), ("A'", other_A), ("V'", other_V))
    read = ([exact(m, f"{name}{i}") for i, m in enumerate(part, start=1)] for name, part in named)
    first_A, first_V, second_A, second_V = read
    M, L = virtual(first_A, first_V)
    if virtual(second_A, second_V) != (M, L):
        raise InputError(
            "the two networks have different virtual weights, so that Lemma 3.5 says nothing about them"
        )
    widths = {len(v) for v in first_V[:-1]} | {len(v) for v in second_V[:-1]}
    if len(widths) > 1:
        raise InputError(f"Lemma 3.5 needs equal hidden widths, not {sorted(widths)}")
    delta = next(iter(widths), 0)
    if widths and rank(L) != delta:
        raise InputError(f"Lemma 3.5 needs rk L = {delta}, the hidden width; here rk L = {rank(L)}")
    gauges: list[Matrix] = []
    before, other = None, None
    for value, value2 in zip(first_V[:-1], second_V[:-1], strict=True):
        before = value if before is None else times(value, before)
        other = value2 if other is None else times(value2, other)
        gauges.append(_change(before, other))
    _check_layers(first_A, first_V, second_A, second_V, gauges)
    return tuple(gauges)


def _check_layers(
    A: list[Matrix], V: list[Matrix], A2: list[Matrix], V2: list[Matrix], C: list[Matrix]
) -> None:
    """Equation 9, verified on every layer."""
    layers = len(V)
    for i in range(layers):
        left = V[i] if i == layers - 1 else times(C[i], V[i])
        right = V2[i] if i == 0 else times(V2[i], C[i - 1])
        if left != right:
            raise NoChangeOfBasisError(f"no changes of basis carry V_{i + 1} into V'_{i + 1}")
        if i and times(times(transpose(C[i - 1]), A2[i]), C[i - 1]) != A[i]:
            raise NoChangeOfBasisError(f"no changes of basis carry A_{i + 1} into A'_{i + 1}")
