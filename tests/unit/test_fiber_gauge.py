"""Lemmas 3.1 and 3.5: changes of basis recovered exactly, and refused where the hypotheses fail."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2bridge.claims.lightning_attention import virtual as gauge
from m2bridge.errors import InputError
from m2bridge.models.virtual import virtual_weights
from m2bridge.questions import over_q

entries = st.integers(-9, 9)


def matrices(rows: int, columns: int) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(st.lists(entries, min_size=columns, max_size=columns), min_size=rows, max_size=rows)


def invertible(n: int) -> st.SearchStrategy[list[list[int]]]:
    return matrices(n, n).filter(lambda m: over_q.rank(m) == n)


def moved(A, V, C):
    """(A', V') of Equation 9 from invertible C_1, ..., C_(l-1)."""
    change = [gauge.rational(c) for c in C]
    undo = [gauge.inverse(c) for c in change]
    other_A = [A[0], *(u.T @ gauge.rational(a) @ u for a, u in zip(A[1:], undo, strict=True))]
    other_V = [gauge.rational(v) for v in V]
    for i, (c, u) in enumerate(zip(change, undo, strict=True)):
        other_V[i], other_V[i + 1] = c @ other_V[i], other_V[i + 1] @ u
    return other_A, other_V


@settings(max_examples=40, deadline=None)
@given(matrices(2, 3), matrices(2, 3), invertible(2))
def test_lemma_31_recovers_the_change_of_basis(Q, K, C):
    change, keys, queries = gauge.rational(C), gauge.rational(K), gauge.rational(Q)
    other_K, other_Q = change @ keys, gauge.inverse(change).T @ queries
    if over_q.rank(keys.T @ queries) == 2:
        assert np.array_equal(gauge.attention_gauge(Q, K, other_Q, other_K), change)
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
    other_A, other_V = moved(A, V, C)
    _, L = virtual_weights([gauge.rational(a) for a in A], [gauge.rational(v) for v in V])
    if over_q.rank(L) == 2:
        assert np.array_equal(gauge.layer_gauges(A, V, other_A, other_V), [gauge.rational(c) for c in C])
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


@pytest.mark.parametrize("entry", [0.5, True, "x", "1/0", None])
def test_inexact_entries_are_refused(entry):
    with pytest.raises(InputError):
        gauge.rational([[entry]])


def test_numpy_integers_are_exact():
    assert gauge.rational(np.array([[1, 2]])).tolist() == [[Fraction(1), Fraction(2)]]
