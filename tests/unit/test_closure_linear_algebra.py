"""Echelon forms over F_p, weight spaces, lifting: against python-flint and brute force."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest

from m2bridge.errors import InputError
from m2bridge.limits import Clock, LimitReached
from m2bridge.linear.modular import echelon_mod, kernel_mod
from m2bridge.linear.primes import check_prime, primes_below
from m2bridge.linear.residues import Mod, rational, reduce_polynomial
from m2bridge.questions.closure.interpolation import monomials_of_degree, split_degree
from m2bridge.questions.closure.lifting import combine, lift_polynomials, vanishes_exactly
from m2bridge.questions.hilbert import generated_rank


@pytest.mark.parametrize("p", [2, 7, 32003, 8388593])
@pytest.mark.parametrize("shape", [(1, 1), (5, 9), (90, 70), (130, 200), (3, 16), (600, 12)])
def test_echelon_is_flints(p: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[0])
    low = rng.integers(0, p, size=(shape[0], max(1, shape[1] // 2)))
    matrix = (Mod(low, p) @ Mod(rng.integers(0, p, size=(low.shape[1], shape[1])), p)).values
    reduced, pivots = echelon_mod(matrix, p)
    theirs, their_rank = flint.nmod_mat(*shape, matrix.ravel().tolist(), p).rref()
    assert len(pivots) == their_rank
    assert reduced.tolist() == [[int(theirs[i, j]) for j in range(shape[1])] for i in range(their_rank)]


def test_kernel_is_a_unit_matrix_in_the_free_columns() -> None:
    p = 101
    matrix = np.random.default_rng(1).integers(0, p, size=(6, 10))
    basis, pivots, free = kernel_mod(matrix, p)
    assert not (matrix @ basis.T % p).any()
    assert len(pivots) + len(free) == 10
    assert basis[:, list(free)].tolist() == np.eye(len(free), dtype=int).tolist()


def test_a_clock_stops_an_elimination() -> None:
    matrix = np.random.default_rng(0).integers(0, 32003, size=(300, 300))
    with pytest.raises(LimitReached, match="limit"):
        echelon_mod(matrix, 32003, Clock(seconds=0.0).check)
    with pytest.raises(LimitReached, match="MB"):
        Clock(memory_bytes=10).reserve(1000, "a matrix")


@pytest.mark.parametrize("p", [1, 4, 32004, 2**23 + 9])
def test_a_modulus_that_is_no_prime_in_range_is_refused(p: int) -> None:
    with pytest.raises(InputError):
        check_prime(p)


def test_monomials_of_a_degree() -> None:
    assert monomials_of_degree(3, 2).tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
    assert monomials_of_degree(3, 0).shape == (1, 0)


def test_weight_spaces_partition_a_degree_and_carriers_carry() -> None:
    grading = np.array([[1, 1, 1, 1], [2, 1, 1, 0]])
    swap = np.array([0, 2, 1, 3])
    turn = np.array([3, 1, 2, 0])
    part = split_degree(grading, [swap, turn], 3)
    sizes = [len(part.space(i)) for i in range(len(part.weights))]
    assert sum(sizes) == 20
    assert part.orbit_sizes.sum() == len(part.weights)
    for index in range(len(part.weights)):
        representative = part.space(int(part.representative[index]))
        moved = {tuple(sorted(row)) for row in part.carrier[index][representative].tolist()}
        assert moved == {tuple(row) for row in part.space(index).tolist()}


def test_rational_reconstruction() -> None:
    p = 8388593
    for value in (Fraction(3, 7), Fraction(-5, 2), Fraction(0), Fraction(1000)):
        assert rational(value.numerator * pow(value.denominator, -1, p) % p, p) == value
    assert combine([1, 2, 3], [5, 7, 11])[0] % 7 == 2


def test_polynomials_lift_from_two_primes_and_a_wrong_one_does_not() -> None:
    f = {(2, 0): Fraction(1), (1, 1): Fraction(-7, 3)}
    primes = [8388593, 32003]
    systems = [[reduce_polynomial(f, p)] for p in primes]
    assert lift_polynomials(systems, primes) == [f]
    systems[1][0] = {**systems[1][0], (1, 1): 5}
    assert lift_polynomials(systems, primes) is None


def test_exact_substitution_detects_a_changed_sign() -> None:
    context = flint.fmpz_mpoly_ctx.get(["s", "t"], "degrevlex")
    s, t = context.gens()
    coordinates = [s**2, s * t, t**2]
    conic = {(1, 0, 1): Fraction(1), (0, 2, 0): Fraction(-1)}
    assert vanishes_exactly(conic, coordinates)
    assert not vanishes_exactly({**conic, (0, 2, 0): Fraction(1)}, coordinates)


def test_generated_rank_counts_a_syzygy_once() -> None:
    # x*y and x*z in degree 3: 6 products with one relation z*(xy) = y*(xz)
    assert generated_rank([{(1, 1, 0): Fraction(1)}, {(1, 0, 1): Fraction(1)}], 3, 3) == 5


def test_primes_below() -> None:
    assert primes_below(8388593, count=2, without=8388593)[0] == 8388587
