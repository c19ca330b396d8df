"""Shifts of weights inside exponentials that scalings undo: v exp(A x + b) has b -> b + t, v -> exp(-t) v."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from m2bridge import checker, dimension, from_callable, same, symmetries
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.symmetry.structure import structural_rank, structure


def layer(v, A, b, x):
    return v @ np.exp(A @ x + b)


def shared_bias(v, u, A, B, b, x):
    return v @ np.exp(A @ x + b) + u @ np.exp(B @ x + b)


def one_bias(v, A, b, x):
    return v @ np.exp(A @ x + b)


def factor(V, A, b, T, x):
    return np.exp(T) * (V @ np.exp(A @ x + b))


def temperature(a, W, v, x):
    return v @ np.exp(np.exp(a) * (W @ x))


def two_layers(W1, b1, W2, b2, W3, x):
    return W3 @ np.exp(W2 @ np.exp(W1 @ x + b1) + b2)


def multiples(c, a, b, d, x):
    return c * np.exp(2 * a + b * x[0]) + d * np.exp(a - b * x[1])


def bias_used_elsewhere(v, A, b, x):
    return v @ np.exp(A @ x + b) + b @ x


def one_plus_the_sum(v, A, b, x):
    e = np.exp(A @ x + b)
    return v @ e / (1 + e.sum())


def logistic(v, A, b, x):
    return v @ (1 / (1 + np.exp(-(A @ x + b))))


def squared(v, A, b, x):
    return v @ np.exp((A @ x + b) ** 2)


LAYER = {"v": (3,), "A": (3, 2), "b": (3,)}
NETWORKS = {
    "layer": (layer, LAYER, 3),  # one for each neuron
    "shared bias": (shared_bias, LAYER | {"u": (3,), "B": (3, 2)}, 3),
    "one bias": (one_bias, LAYER | {"b": ()}, 1),
    "factor": (factor, {"V": (2, 3), "A": (3, 2), "b": (3,), "T": ()}, 3 + 1),  # T with V, or with b
    "temperature": (temperature, {"a": (), "W": (3, 2), "v": (3,)}, 1),  # W -> W / s, a -> a + log s
    "two layers": (two_layers, {"W1": (3, 2), "b1": (3,), "W2": (2, 3), "b2": (2,), "W3": (2, 2)}, 3 + 2),
    "multiples": (multiples, dict.fromkeys("cabd", ()), 1),  # c by exp(-2 t), d by exp(-t)
}
WITHOUT = {
    "used elsewhere": (bias_used_elsewhere, LAYER | {"v": (2,), "A": (2, 2), "b": (2,)}),
    "one plus the sum": (one_plus_the_sum, LAYER),
    "logistic": (logistic, LAYER),
    "squared": (squared, LAYER),
}


def recorded(function, shapes):
    return from_callable(function, shapes, inputs={"x": (2,)})


@pytest.mark.parametrize(("function", "shapes", "orbits"), NETWORKS.values(), ids=NETWORKS)
def test_shifts_in_exponents_prove_the_dimension(function, shapes, orbits) -> None:
    model = recorded(function, shapes)
    answer = dimension(model, engine=False)
    assert answer.certainty.value == "proved"
    assert answer.image_dim == answer.numeric_rank == model.parameter_count - orbits
    assert checker.verify(json.dumps(answer.certificate))[0] == 0


@pytest.mark.parametrize(("function", "shapes"), WITHOUT.values(), ids=WITHOUT)
def test_no_shift_where_the_function_changes(function, shapes) -> None:
    model = recorded(function, shapes)
    assert structure(model.program).exponent_shifts == ()
    answer = dimension(model, engine=False)
    assert answer.image_dim == answer.numeric_rank == model.parameter_count


def test_linear_attention_with_exponential_features() -> None:
    """Each feature is shifted in queries and keys, and all queries together: the denominator scales too.

    One vector can be added to all rows of Q, too, but not to those of K: its factor depends on the token.
    """

    def network(Q, K, V, q, k, x):
        queries, keys = np.exp(Q @ x + q[:, None]), np.exp(K @ x + k[:, None])
        return (V @ x) @ keys.T @ queries / (keys.sum(axis=1) @ queries)

    shapes = {"Q": (3, 2), "K": (3, 2), "V": (2, 2), "q": (3,), "k": (3,)}
    model = from_callable(network, shapes, inputs={"x": (2, 3)})
    assert structural_rank(model.program, p=LARGE_PRIME, seed=0) == 3 + 1 + 2
    assert dimension(model, engine=False).certainty.value == "proved"


def weighted_sum(A, V, x):
    e = np.exp(A @ x)
    return V @ e / e.sum()


def with_powers(A, V, x):
    e = np.exp(A @ x)
    return V @ e**2 / e.sum() ** 2


def of_two_kinds(A, V, x):
    e = np.exp(A @ x)
    return V @ e / (e * e).sum()


def with_another_term(A, V, x):
    e = np.exp(A @ x)
    return V @ e / (e.sum() + x[0])


@pytest.mark.parametrize(
    ("network", "orbits"), [(weighted_sum, 2), (with_powers, 2), (of_two_kinds, 0), (with_another_term, 0)]
)
def test_quotients_in_which_all_exponentials_have_one_factor(network, orbits) -> None:
    """A -> A + 1 u' multiplies all exponentials by e^(u x), for each of two inputs, at any width."""
    model = from_callable(network, {"A": (60, 2), "V": (2, 60)}, inputs={"x": (2,)})
    assert structural_rank(model.program, p=LARGE_PRIME, seed=0) == orbits
    small = from_callable(network, {"A": (3, 2), "V": (2, 3)}, inputs={"x": (2,)})
    answer = dimension(small, engine=False)
    assert answer.image_dim == answer.numeric_rank == 12 - orbits


def test_symmetries_lists_the_shift_and_has_a_certificate(tmp_path: Path) -> None:
    answer = symmetries(recorded(layer, LAYER))
    assert [(group.dim, group.acts_on) for group in answer.groups] == [(3, ("b", "v"))]
    assert (answer.symmetry_dim, answer.explains_fiber) == (3, True)
    assert checker.verify(answer.save(tmp_path).read_bytes())[0] == 0


def test_width_is_no_limit() -> None:
    model = recorded(layer, {"v": (500,), "A": (500, 2), "b": (500,)})
    assert structural_rank(model.program, p=LARGE_PRIME, seed=0) == 500


def test_the_shift_between_two_checkpoints_is_named() -> None:
    rng = np.random.default_rng(0)
    first = {name: rng.normal(size=shape) for name, shape in LAYER.items()}
    t = rng.normal(size=3)
    second = first | {"b": first["b"] + t, "v": first["v"] * np.exp(-t)}
    answer = same(recorded(layer, LAYER), at=first, other=second, tolerance=1e-9)
    assert answer.verdict == "same"
    assert any("shifts in exponents" in move for move in answer.relation)
