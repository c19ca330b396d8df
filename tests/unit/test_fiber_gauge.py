"""Lemmas 3.1 and 3.5 and Equation 13: changes of basis recovered exactly, and refused where the hypotheses fail."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2bridge.errors import InputError
from m2bridge.questions.fiber import gauge

entries = st.integers(-9, 9)


def matrices(rows: int, columns: int) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(st.lists(entries, min_size=columns, max_size=columns), min_size=rows, max_size=rows)


def invertible(n: int) -> st.SearchStrategy[list[list[int]]]:
    return matrices(n, n).filter(lambda m: gauge.rank(gauge.exact(m)) == n)


@settings(max_examples=40, deadline=None)
@given(matrices(2, 3), matrices(2, 3), invertible(2))
def test_lemma_31_recovers_the_change_of_basis(Q, K, C):
    A = gauge.times(gauge.transpose(gauge.exact(K)), gauge.exact(Q))
    change = gauge.exact(C)
    other_K = gauge.times(change, gauge.exact(K))
    other_Q = gauge.times(gauge.transpose(gauge.inverse(change)), gauge.exact(Q))
    if gauge.rank(A) == 2:
        assert gauge.attention_gauge(Q, K, other_Q, other_K) == change
    else:
        with pytest.raises(InputError, match="rk A = a"):
            gauge.attention_gauge(Q, K, other_Q, other_K)


def test_lemma_31_refuses_factorizations_of_different_matrices():
    with pytest.raises(InputError, match="different"):
        gauge.attention_gauge([[1, 0]], [[1, 0]], [[1, 1]], [[1, 0]])


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_lemma_35_recovers_every_change_of_basis(data):
    """d = (3, 2, 2, 3): widths delta = 2 inside, wider outside."""
    V = [data.draw(matrices(2, 3)), data.draw(invertible(2)), data.draw(matrices(3, 2))]
    A = [data.draw(matrices(3, 3)), data.draw(matrices(2, 2)), data.draw(matrices(2, 2))]
    C = [data.draw(invertible(2)), data.draw(invertible(2))]
    other_A, other_V = gauge.apply_gauges(A, V, C)
    _, L = gauge.virtual([gauge.exact(a) for a in A], [gauge.exact(v) for v in V])
    if gauge.rank(L) == 2:
        assert gauge.layer_gauges(A, V, other_A, other_V) == tuple(gauge.exact(c) for c in C)
    else:
        with pytest.raises(InputError, match="rk L = 2"):
            gauge.layer_gauges(A, V, other_A, other_V)


def test_lemma_35_refuses_a_transposed_attention_matrix():
    A, V = [[[1, 2], [3, 4]], [[5, 6], [7, 9]]], [[[1, 1], [0, 1]], [[2, 0], [1, 1]]]
    wrong = [A[0], [[5, 7], [6, 9]]]
    with pytest.raises(InputError, match="different virtual weights"):
        gauge.layer_gauges(A, V, wrong, V)


def test_lemma_35_refuses_exchanged_layers():
    A, V = [[[1, 2], [3, 4]], [[5, 6], [7, 9]]], [[[1, 1], [0, 1]], [[2, 0], [1, 1]]]
    with pytest.raises(InputError, match="different virtual weights"):
        gauge.layer_gauges(A, V, A[::-1], V[::-1])


def test_equation_13_for_two_layers():
    """lambda_1^3 lambda_2 rho = 1: with lambda = (2, 5) rho is 1/40."""
    M, L = [[[1, 2], [3, 4]], [[0, 1], [1, 1]]], [[7, 1]]
    other = [[[2, 4], [6, 8]], [[0, 5], [5, 5]]]
    scaled = [[Fraction(7, 40), Fraction(1, 40)]]
    assert gauge.torus_gauge(M, L, other, scaled) == ((2, 5), Fraction(1, 40))
    with pytest.raises(InputError, match="Equation 13"):
        gauge.torus_gauge(M, L, other, [[Fraction(7, 10), Fraction(1, 10)]])
    with pytest.raises(InputError, match="not proportional"):
        gauge.torus_gauge(M, L, [M[1], M[0]], L)


@pytest.mark.parametrize("entry", [0.5, True, "x", "1/0", None])
def test_inexact_entries_are_refused(entry):
    with pytest.raises(InputError):
        gauge.exact([[entry]])


def test_numpy_integers_are_exact():
    assert gauge.exact(np.array([[1, 2]])) == ((Fraction(1), Fraction(2)),)
