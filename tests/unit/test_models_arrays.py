"""Arithmetics: residues are exact for every prime, jets and tapes are derivatives."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from flint import nmod_mat
from m2bridge.models.arrays import Mod, lift, power, zeros
from m2bridge.models.forms import Forms, generic_input, monomials
from m2bridge.models.jets import Jet, seeded
from m2bridge.models.pullbacks import cotangents
from m2bridge.models.tape import Node

from m2bridge.errors import InputError, NotPolynomialError
from m2bridge.models.symbolic import ball_array

PRIMES = (2, 3, 101, 32003, 8388593, 8388617, 67108859, 67108879, 2147483647)


def exact_product(left: np.ndarray, right: np.ndarray, p: int) -> np.ndarray:
    product = nmod_mat(*left.shape, left.reshape(-1).tolist(), p) * nmod_mat(
        *right.shape, right.reshape(-1).tolist(), p
    )
    return np.array([[int(product[i, j]) for j in range(right.shape[1])] for i in range(left.shape[0])])


@pytest.mark.parametrize("p", PRIMES)
def test_products_are_exact(p: int) -> None:
    rng = np.random.default_rng(p)
    left, right = rng.integers(0, p, (5, 700)), rng.integers(0, p, (700, 4))
    assert (Mod(left, p) @ Mod(right, p)).values.tolist() == exact_product(left, right, p).tolist()


@pytest.mark.parametrize("p", PRIMES)
def test_the_largest_residues_do_not_overflow(p: int) -> None:
    # all entries p - 1 = -1: the product of k terms is k; unreduced the sum is k (p-1)^2, above 2^63 for the
    # last prime
    inner = 3000
    ones = np.full((2, inner), p - 1)
    assert inner * (2147483647 - 1) ** 2 > 2**63
    assert (Mod(ones, p) @ Mod(ones.T, p)).values.tolist() == [[inner % p] * 2] * 2
    assert (Mod(ones, p).sum(axis=-1)).values.tolist() == [-inner % p] * 2
    assert (Mod(ones, p) * Mod(ones, p)).values.tolist() == np.ones((2, inner), dtype=int).tolist()


def test_batches_and_reflected_operations_agree_with_plain_integers() -> None:
    rng = np.random.default_rng(1)
    p = 10007
    a, b, v = rng.integers(0, p, (3, 4, 5)), rng.integers(0, p, (5, 2)), rng.integers(0, p, 5)
    x = Mod(a, p)
    assert ((x @ Mod(b, p)).values == a @ b % p).all()
    assert ((b.T @ x.mT).values == b.T @ a.swapaxes(1, 2) % p).all()
    assert ((x @ v).values == a @ v % p).all()
    assert ((3 - x).values == (3 - a) % p).all()
    assert ((a - x).values == 0).all()
    assert ((-x + 1).values == (1 - a) % p).all()
    assert (np.concatenate([x, x], axis=-1).values == np.concatenate([a, a], axis=-1)).all()
    assert ((x**3).values == a**3 % p).all()
    assert x.T.shape == (3, 5, 4)


def test_integers_of_any_size_and_sign_are_reduced() -> None:
    assert Mod([-1, 10**30], 7).values.tolist() == [6, 10**30 % 7]
    assert Mod(np.array([2**64 - 1], dtype=np.uint64), 101).values.tolist() == [(2**64 - 1) % 101]


@pytest.mark.parametrize("p", [1, 4, 0, -7, 2**31, 2**61 - 1])
def test_bad_moduli_are_refused(p: int) -> None:
    with pytest.raises(InputError, match=str(p)):
        Mod([1], p)


def test_floats_other_primes_and_divisions_are_refused() -> None:
    with pytest.raises(InputError, match="float64"):
        Mod([0.5], 7)
    with pytest.raises(InputError, match="modulo 7 and modulo 5"):
        Mod([1], 7) + Mod([1], 5)
    with pytest.raises(NotPolynomialError):
        Mod([1], 7) / Mod([1], 7)
    assert pickle.loads(pickle.dumps(Mod([3], 7))) == Mod([3], 7)


def network(W: object, X: object) -> object:
    """Uses every operation that families use."""
    Y = W @ X  # type: ignore[operator]
    return (Y[..., None, :, :] * Y[..., None, :, :]).sum(axis=-3) - power(Y, 3) + 2 * (Y @ (Y.mT @ Y))


@pytest.mark.parametrize("p", [101, 2147483647])
def test_jets_and_tapes_give_the_same_derivatives(p: int) -> None:
    rng = np.random.default_rng(2)
    weights, inputs = Mod(rng.integers(0, p, (3, 2)), p), Mod(rng.integers(0, p, (4, 2, 5)), p)
    jet = network(seeded({"W": weights}, {"W": (3, 2)})["W"], inputs)
    leaf = Node(weights)
    result = network(leaf, Node(inputs, batched=True))
    seed = lift(np.eye(15, dtype=np.int64).reshape(15, 1, 3, 5), weights)
    (pulled,) = cotangents(result, [leaf], seed)  # type: ignore[arg-type]
    assert jet.value == result.value  # type: ignore[attr-defined]
    forward = jet.tangents.values.reshape(6, 4, 15)  # type: ignore[attr-defined]
    assert (pulled.values.reshape(15, 4, 6) == forward.transpose(2, 1, 0)).all()


def test_jets_follow_division_and_exponential() -> None:
    rng = np.random.default_rng(3)
    x, direction = rng.standard_normal((2, 3)), rng.standard_normal((2, 3))

    def function(y: object) -> object:
        kernel = y.exp() if isinstance(y, Jet) else np.exp(y)  # type: ignore[call-overload]
        return kernel / kernel.sum(axis=-1)[..., None]

    jet = function(Jet(x, direction[None]))
    step = 1e-6
    difference = (function(x + step * direction) - function(x - step * direction)) / (2 * step)  # type: ignore[operator]
    assert np.allclose(jet.tangents[0], difference, atol=1e-8)  # type: ignore[attr-defined]


def test_forms_multiply_like_polynomials() -> None:
    x = generic_input((2,), Mod([0], 101))
    square = (x[0] + x[1]) * (x[0] + x[1]) + 5
    assert isinstance(square, Forms)
    table = square.gather(np.concatenate([monomials(2, 0), monomials(2, 2)]))
    assert table.values.tolist() == [5, 1, 2, 1]


def test_zeros_and_balls() -> None:
    balls = ball_array([[0.5, 2]])
    assert (balls @ balls.T)[0, 0] == 4.25
    assert zeros((2,), balls).tolist() == [0, 0]
