"""Exact ranks over F_p compared with FLINT, and cases in which float64 would round or integers would overflow."""

from __future__ import annotations

import flint
import numpy as np
import pytest

from m2bridge.errors import InputError
from m2bridge.linear.modular import echelon_residues, eliminate, kernel_mod, rank_mod, rank_over_q
from m2bridge.linear.primes import LARGE_PRIME, is_prime
from m2bridge.linear.residues import Field
from m2bridge.linear.row_space import RowSpace


def low_rank(rng: np.random.Generator, rows: int, columns: int, rank: int, p: int) -> np.ndarray:
    left = rng.integers(0, p, (rows, rank)).astype(object)
    right = rng.integers(0, p, (rank, columns)).astype(object)
    return np.asarray((left @ right) % p, dtype=np.int64)


def flint_rank(matrix: np.ndarray, p: int) -> int:
    return flint.nmod_mat(*matrix.shape, [int(x) % p for x in matrix.flat], p).rank()


@pytest.mark.parametrize("p", [2, 3, 5, 101, 32003, LARGE_PRIME, 2**31 - 1])
@pytest.mark.parametrize(
    ("rows", "columns", "rank"), [(1, 1, 1), (7, 5, 3), (150, 131, 140), (131, 170, 60), (200, 200, 0)]
)
def test_rank_and_pivots_agree_with_flint(p: int, rows: int, columns: int, rank: int) -> None:
    rng = np.random.default_rng(7)
    matrix = low_rank(rng, rows, columns, rank, p)
    if columns > 4:
        matrix[:, 2] = 0
        matrix[:, 4] = matrix[:, 1]
    expected = flint_rank(matrix, p)
    elimination = eliminate(matrix, p)
    assert rank_mod(matrix, p) == elimination.rank == expected
    submatrix = matrix[np.ix_(elimination.pivot_rows, elimination.pivot_columns)]
    assert flint_rank(submatrix, p) == expected if expected else submatrix.size == 0


@pytest.mark.parametrize("p", [3, LARGE_PRIME, 2**61 - 1])
def test_nullspace_is_the_kernel(p: int) -> None:
    rng = np.random.default_rng(1)
    matrix = low_rank(rng, 140, 170, 125, min(p, 2**31))
    kernel = kernel_mod(matrix, p)[0]
    assert kernel.shape == (170 - flint_rank(matrix, p), 170)
    assert not ((matrix.astype(object) @ kernel.T.astype(object)) % p).any()
    assert rank_mod(kernel, p) == kernel.shape[0]


def test_long_sums_are_split_before_they_round() -> None:
    """The sum of 600 squares of (p-1)/2 exceeds 2^53, so an unreduced float64 sum would be wrong."""
    p = LARGE_PRIME
    field = Field(p)
    assert 600 * ((p - 1) // 2) ** 2 > 2**53 > field.terms * field.bound**2 + field.bound
    half = np.full((1, 600), (p - 1) // 2, dtype=np.int64)
    exact = 600 * ((p - 1) // 2) ** 2 % p
    product = field.matmul(field.residues(half), field.residues(half.T))
    assert field.canonical(product).item() == exact
    offset = field.residues(half - np.arange(600))
    exact = sum((int(a) * int(b)) for a, b in zip(half[0], half[0] - np.arange(600), strict=True)) % p
    assert field.canonical(field.matmul(field.residues(half), offset.T.copy())).item() == exact


def test_a_matrix_whose_elimination_would_overflow() -> None:
    """The entries are extreme residues and the rank is 300 of 700, so unreduced sums of products exceed 2^53."""
    p = LARGE_PRIME
    rng = np.random.default_rng(0)
    left = flint.nmod_mat(
        700, 300, rng.choice([(p - 1) // 2, (p + 1) // 2, p - 1, 1], size=700 * 300).tolist(), p
    )
    right = flint.nmod_mat(300, 700, rng.choice([1, p - 1, (p + 1) // 2], size=300 * 700).tolist(), p)
    matrix = np.array([int(x) for x in (left * right).entries()], dtype=np.int64).reshape(700, 700)
    assert rank_mod(matrix, p) == flint_rank(matrix, p) == 300
    assert rank_mod(matrix.astype(object) + p * 10**30, p) == 300


def test_integers_beyond_int64_are_exact() -> None:
    big = np.array([[10**40, 2 * 10**40], [1, 2 + 32003]], dtype=object)
    assert rank_mod(big, 32003) == 1
    assert rank_over_q(big) == 2
    assert rank_mod(np.array([[2**64 - 1]], dtype=np.uint64), 2) == 1


def test_bad_primes_and_entries_are_rejected() -> None:
    with pytest.raises(InputError, match="prime"):
        rank_mod([[1]], 8388593 * 3)
    with pytest.raises(InputError, match="large"):
        rank_mod([[1]], 2**64 + 13)
    with pytest.raises(InputError, match="integer"):
        rank_mod([[0.5]], 7)
    with pytest.raises(InputError, match="below 2\\^23"):
        Field(8388617)
    with pytest.raises(InputError, match="axes"):
        rank_mod([1, 2], 7)


def test_primality() -> None:
    sieve = [n for n in range(2000) if n > 1 and all(n % q for q in range(2, int(n**0.5) + 1))]
    assert [n for n in range(2000) if is_prime(n)] == sieve
    assert not is_prime(
        3215031751
    )  # strong pseudoprime to the bases 2, 3, 5, 7 (Pomerance, Selfridge, Wagstaff 1980)
    assert is_prime(2**61 - 1)


@pytest.mark.parametrize("shape", [(3, 16), (16, 3), (40, 16), (5, 5), (40, 30)])
def test_blocked_echelon_form_with_row_exchanges(shape: tuple[int, int]) -> None:
    p = 101
    matrix = np.random.default_rng(3).integers(0, p, size=shape)
    matrix[0, 0] = 0  # the first pivot is in another row
    field = Field(p)
    pivots, floats = echelon_residues(field.residues(matrix), field)
    expected, rank = flint.nmod_mat(*shape, matrix.ravel().tolist(), p).rref()
    assert len(pivots) == rank
    assert field.canonical(floats).tolist() == [
        [int(expected[i, j]) for j in range(shape[1])] for i in range(rank)
    ]


@pytest.mark.parametrize("block", [1, 5, 40, 97])
@pytest.mark.parametrize("p", [2, 101, LARGE_PRIME])
def test_rows_in_blocks_have_the_echelon_form_of_the_matrix(p: int, block: int) -> None:
    """Zero columns, equal rows and rows that begin with many zeros: pivots are not where they are sought first."""
    rng = np.random.default_rng(5)
    matrix = low_rank(rng, 97, 150, 60, p)
    matrix[:, 3:90] *= rng.integers(0, 2, size=(97, 1))
    matrix[10:14] = matrix[9]
    matrix[:, :20] = 0
    field = Field(p)
    space = RowSpace(field, 150)
    grown = [space.add(field.residues(matrix[k : k + block])) for k in range(0, 97, block)]
    expected, rank = flint.nmod_mat(97, 150, (matrix % p).ravel().tolist(), p).rref()
    pivots, form = space.echelon()
    assert sum(grown) == space.rank == rank == len(pivots)
    assert field.canonical(form).tolist() == [[int(expected[i, j]) for j in range(150)] for i in range(rank)]
    minor = matrix[np.ix_(space.pivot_rows, space.pivot_columns)]
    assert all(flint_rank(minor[:k, :k], p) == k for k in range(1, rank + 1))
    sides = rng.integers(0, p, size=(rank, 3))
    solutions = field.canonical(space.solve(field.residues(sides)))
    assert ((minor.astype(object) @ solutions.astype(object) - sides) % p == 0).all()
