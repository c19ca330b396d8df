"""Properties of ranks: the rank over F_p is at most the rank over QQ; transposes, products and kernels."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from m2bridge.linear.modular import eliminate, kernel_mod, rank_mod, rank_over_q
from m2bridge.linear.residues import Field

primes = st.sampled_from([2, 3, 7, 101, 8388593, 2147483647])
matrices = hnp.arrays(
    np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(-50, 50)
)


@given(matrices, primes)
def test_rank_mod_p_never_exceeds_the_rank_over_q(matrix: np.ndarray, p: int) -> None:
    rank = rank_mod(matrix, p)
    assert rank <= rank_over_q(matrix)
    assert rank == rank_mod(matrix.T, p) == eliminate(matrix, p).rank
    kernel = kernel_mod(matrix, p)[0]
    assert kernel.shape[0] + rank == matrix.shape[1]
    assert not ((matrix.astype(object) @ kernel.T.astype(object)) % p).any()


@given(matrices)
def test_a_large_prime_gives_the_rank_of_small_matrices(matrix: np.ndarray) -> None:
    """9 x 9 minors of entries <= 50 are below 150^9 < 2^66 (Hadamard), so the three primes cannot all divide one."""
    assert max(rank_mod(matrix, p) for p in (2**61 - 1, 2**31 - 1, 8388593)) == rank_over_q(matrix)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 1200),
    st.integers(1, 30),
    st.integers(0, 10**6),
    st.sampled_from([3, 8388593]),
)
def test_products_are_exact(rows: int, inner: int, columns: int, seed: int, p: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, p, (rows, inner)), rng.integers(0, p, (inner, columns))
    field = Field(p)
    product = field.canonical(field.matmul(field.residues(left), field.residues(right)))
    assert (product == (left.astype(object) @ right.astype(object)) % p).all()
