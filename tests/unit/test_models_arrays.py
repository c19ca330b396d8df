"""Residues are exact for every prime; programs over them have the derivatives that every other rule gives."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, nmod_mat

from m2bridge.errors import InputError
from m2bridge.families import Mod, from_callable, jacobian, parse_spec
from m2bridge.frontends import record
from m2bridge.linear.residues import field_of
from m2bridge.programs.arithmetics import PrimeFieldArithmetic
from m2bridge.programs.coefficients import coefficient_table, monomials, output_form
from m2bridge.programs.evaluation import unit_directions
from m2bridge.programs.run import Lettered, aligned, evaluate, tangents

PRIMES = (2, 3, 101, 32003, 8388593)


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
    # all entries p - 1 = -1: the product of k terms is k; unreduced the sum is k (p-1)^2, above 2^53 for the last prime
    inner = 3000
    ones = np.full((2, inner), p - 1)
    assert inner * (PRIMES[-1] - 1) ** 2 > 2**53
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
    assert ((x * x * x).values == a**3 % p).all()
    assert x.T.shape == (3, 5, 4)


def test_integers_of_any_size_and_sign_are_reduced() -> None:
    assert Mod([-1, 10**30], 7).values.tolist() == [6, 10**30 % 7]
    assert Mod(np.array([2**64 - 1], dtype=np.uint64), 101).values.tolist() == [(2**64 - 1) % 101]


@pytest.mark.parametrize("p", [1, 4, 0, -7, 8388617, 2**31, 2**61 - 1])
def test_bad_moduli_are_refused(p: int) -> None:
    with pytest.raises(InputError, match=str(p)):
        Mod([1], p)


def test_floats_other_primes_and_divisions_are_refused() -> None:
    with pytest.raises(InputError, match="float64"):
        Mod([0.5], 7)
    with pytest.raises(InputError, match=r"7 .*5"):
        Mod([1], 7) + Mod([1], 5)
    with pytest.raises(TypeError):
        Mod([1], 7) / Mod([1], 7)  # type: ignore[operator]
    assert pickle.loads(pickle.dumps(Mod([3], 7))) == Mod([3], 7)


def network(W: Any, X: Any) -> Any:
    """Stacks, sums, powers, products and transposes in one."""
    Y = W @ X
    return (Y[None, :, :] * Y[None, :, :]).sum(axis=-3) - Y**3 + 2 * (Y @ (Y.T @ Y))


@pytest.mark.parametrize("p", [101, 8388593])
def test_forward_and_reverse_rules_give_the_derivatives_by_hand(p: int) -> None:
    model = from_callable(network, {"W": (3, 2)}, inputs={"X": (2, 5)})
    rng = np.random.default_rng(2)
    W, X = rng.integers(0, p, (3, 2)), rng.integers(0, p, (4, 2, 5))
    values, matrix = jacobian(model, {"W": W}, X, p)
    arithmetic = PrimeFieldArithmetic(field_of(p))
    given = {"W": Lettered("", arithmetic.integers(W)), "X": Lettered("N", arithmetic.integers(X))}
    known = evaluate(model.program, arithmetic, given)
    moved = tangents(model.program, arithmetic, known, unit_directions(model.program, arithmetic))
    forward = moved[model.program.outputs[0][1]]
    assert forward is not None
    table = arithmetic.field.canonical(aligned(forward, "NT", 2)).reshape(4, 6, 15)
    assert (matrix.reshape(4, 15, 6) == table.swapaxes(1, 2)).all()
    for k, x in enumerate(X.astype(object)):
        assert values[15 * k :][:15].tolist() == (network(W.astype(object), x) % p).reshape(-1).tolist()
        for column in range(6):
            unit = np.zeros(6, dtype=object)
            unit[column] = 1
            by_hand = _derivative(W.astype(object), unit.reshape(3, 2), x) % p
            assert table[k, column].tolist() == by_hand.reshape(-1).tolist()


def _derivative(W: Any, dW: Any, X: Any) -> Any:
    """The derivative of `network`, by hand."""
    Y, dY = W @ X, dW @ X
    return 2 * Y * dY - 3 * Y**2 * dY + 2 * (dY @ (Y.T @ Y) + Y @ (dY.T @ Y + Y.T @ dY))


def test_division_and_exponential_have_their_derivatives() -> None:
    def function(y: Any) -> Any:
        kernel = np.exp(y)
        return kernel / kernel.sum(axis=-1)[..., None]

    model = from_callable(lambda y, x: function(y) * x, {"y": (2, 3)}, inputs={"x": (1,)})
    rng = np.random.default_rng(3)
    y, direction = rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
    values, matrix = jacobian(model, {"y": y}, np.ones((1, 1)))
    step = 1e-6
    difference = (function(y + step * direction) - function(y - step * direction)) / (2 * step)
    assert np.allclose(values, function(y).reshape(-1))
    assert np.allclose(matrix @ direction.reshape(-1), difference.reshape(-1), atol=1e-8)


def test_coefficients_are_those_of_the_polynomial() -> None:
    program = record(lambda c, x: (x[0] + x[1]) * (x[0] + x[1]) + c, {"c": ()}, {"x": (2,)}).program
    arithmetic = PrimeFieldArithmetic(field_of(101))
    form = output_form(program, arithmetic, {"c": Lettered("", arithmetic.integers(5))}, {})
    wanted = np.concatenate([monomials(2, 0), monomials(2, 2)])
    table = coefficient_table(arithmetic, form, wanted)
    assert arithmetic.field.canonical(table).tolist() == [5, 1, 2, 1]


def test_balls_of_exact_numbers_multiply_exactly() -> None:
    balls = np.array([[arb(0.5), arb(2)]], dtype=object)
    assert (balls @ balls.T)[0, 0] == 4.25
    model = from_callable(lambda x: x @ x.T, {"x": (1, 2)})
    assert model.coordinates({"x": balls})[0] == 4.25


def test_halves_at_integer_weights_are_halves() -> None:
    model = parse_spec("map:s,t->1/2*s;s*t+1/3;s")
    found = model.coordinates({"x": np.array([3, 5])})
    assert found.tolist() == [Fraction(3, 2), Fraction(46, 3), 3]
    assert model.coordinates({"x": np.array([3, 5])})[0] != model.coordinates({"x": np.array([2, 5])})[0]
    assert model.coordinate_jacobian({"x": np.array([3, 5])}).tolist()[0] == [Fraction(1, 2), 0]


def test_integers_at_integer_weights_are_machine_integers() -> None:
    assert parse_spec("map:s->2*s;s^2").coordinates({"x": np.array([3])}).dtype == np.int64


def test_a_network_with_halves_at_integers_has_halves() -> None:
    half = from_callable(lambda x, w: w * x / 2, {"w": (1,)}, inputs={"x": (1,)})
    assert half.forward({"w": np.array([3])}, np.array([1])).tolist() == [Fraction(3, 2)]
    assert half.forward({"w": np.array([3])}, np.array([2])).dtype == np.int64
