"""Lemmas 3.1 and 3.5: changes of basis between factorizations, found exactly."""

from __future__ import annotations

import numpy as np

from m2bridge.claims.base import Claim, Context, Size, Verdict, disagreement, fails, holds, sizes
from m2bridge.claims.lightning_attention.changes_of_basis import (
    NoChangeOfBasisError,
    attention_gauge,
    echelon,
    inverse,
    layer_gauges,
    times,
    transpose,
    virtual,
)
from m2bridge.questions.fiber.partners import Matrix, exact
from m2bridge.results import Certainty

_TRIALS = 5


def _integers(rng: np.random.Generator, rows: int, columns: int) -> list[list[int]]:
    return [[int(x) for x in row] for row in rng.integers(-5, 6, size=(rows, columns))]


def row_factorization(A: Matrix) -> tuple[Matrix, Matrix]:
    """(Q', K') with K'^T Q' = A from the echelon form: Q' its non-zero rows, K' the pivot columns of A, transposed."""
    pivots, reduced = echelon(A)
    Q = tuple(reduced[: len(pivots)])
    K = tuple(tuple(row[j] for row in A) for j in pivots)
    return Q, K


def check_attention(size: Size, context: Context) -> Verdict:
    """A second factorization of A comes from its echelon form; C is then solved for, and both equations are verified."""
    rng = np.random.default_rng([context.seed, 31])
    done = 0
    while done < _TRIALS:
        Q, K = exact(_integers(rng, size["a"], size["d"])), exact(_integers(rng, size["a"], size["d"]))
        other_q, other_k = row_factorization(times(transpose(K), Q))
        if len(other_k) != size["a"]:
            continue  # rk A < a: the lemma's hypothesis fails, draw again
        try:
            attention_gauge(Q, K, other_q, other_k)
        except NoChangeOfBasisError as error:
            return fails(Certainty.PROVED, {"Q": _text(Q), "K": _text(K)}, str(error))
        done += 1
    reason = f"C was found and is unique in {_TRIALS} random instances over QQ"
    return holds(Certainty.PROBABLE, reason, instances=_TRIALS)


def check_layers(size: Size, context: Context) -> Verdict:
    """A second network with the same virtual weights is built from L alone: hidden layers become the identity where they can."""
    rng = np.random.default_rng([context.seed, 35])
    d = size["d"]
    layers = len(d) - 1
    done = 0
    while done < _TRIALS:
        A = [exact(_integers(rng, d[i], d[i])) for i in range(layers)]
        V = [exact(_integers(rng, d[i + 1], d[i])) for i in range(layers)]
        other = second_network(A, V)
        if other is None:
            continue  # rk L below the hidden width: the lemma's hypothesis fails, draw again
        if virtual(*other) != virtual(A, V):
            return disagreement(["the network that was built from (M, L) has other virtual weights"])
        try:
            layer_gauges(A, V, *other)
        except NoChangeOfBasisError as error:
            return fails(
                Certainty.PROVED, {"A": [_text(a) for a in A], "V": [_text(v) for v in V]}, str(error)
            )
        done += 1
    return holds(
        Certainty.PROBABLE, f"all C_i were found in {_TRIALS} random instances over QQ", instances=_TRIALS
    )


def second_network(A: list[Matrix], V: list[Matrix]) -> tuple[list[Matrix], list[Matrix]] | None:
    """Another network with the same (M, L): V'_1 the echelon rows of L, the middle layers identities, A' solved from M."""
    M, L = virtual(A, V)
    delta = len(V[0])
    pivots, reduced = echelon(L)
    if len(pivots) != delta:
        return None
    first = tuple(reduced[:delta])
    last = tuple(tuple(row[j] for j in pivots) for row in L)  # L = last * first
    unit = tuple(tuple(type(L[0][0])(int(i == j)) for j in range(delta)) for i in range(delta))
    new_V = [first, *([unit] * (len(V) - 2)), last]
    gram = inverse(times(first, transpose(first)))
    right = times(transpose(first), gram)  # first * right = 1
    return [A[0], *(times(times(transpose(right), m), right) for m in M[1:])], new_V


def _text(matrix: Matrix) -> list[list[str]]:
    return [[str(x) for x in row] for row in matrix]


_ATTENTION = sizes("d a", (1, 1), (2, 1), (2, 2), (3, 2), (4, 3), (6, 2))
_LAYERS = sizes("d", ((2, 2, 2),), ((3, 2, 2),), ((4, 3, 3, 5),), ((3, 2, 2, 2, 4),))

CLAIMS = (
    Claim(
        id="lemma-3.1",
        number="Lemma 3.1",
        statement="Two factorizations K^T Q = K'^T Q' of one matrix of rank a are related by a unique C in GL_a.",
        checked="C solved for over QQ, and K' = C K, Q' = C^-T Q verified, for a second factorization that was made without any C",
        witnesses={
            "construction": ("a second factorization, by echelon form",),
            "formula": ("C solved for over QQ",),
        },
        sizes=_ATTENTION,
        quick=_ATTENTION[:3],
        run=check_attention,
    ),
    Claim(
        id="lemma-3.5",
        number="Lemma 3.5",
        statement=(
            "With hidden widths delta <= d_0, d_l and rk L = delta, two networks with the same virtual weights are related by unique "
            "changes of basis C_i between the layers."
        ),
        checked="C_i solved for over QQ, and Equation 9 verified, for a second network that was built from (M, L) alone",
        witnesses={
            "construction": ("a second network built from (M, L), by echelon form",),
            "formula": ("C_i solved for over QQ",),
        },
        sizes=_LAYERS,
        quick=_LAYERS[:2],
        run=check_layers,
    ),
)
