"""Small networks as people write them the first time: each is recorded with the right dimension, or refused at its line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from m2bridge.errors import M2BridgeError
from m2bridge.families import from_callable
from m2bridge.frontends.recording import record
from m2bridge.questions.dimension import dimension
from tests.unit.programs_interpreter import values

MIX = np.array([[1, 2], [0, 1]])
Shapes = dict[str, tuple[int, ...]]
W: Shapes = {"W": (2, 2)}
X: Shapes = {"x": (2,)}


def einsum_with_constants(W: Any, x: Any) -> Any:
    return np.einsum("ij,jk,k->i", MIX, W, x)


def python_sum(w: Any, x: Any) -> Any:
    return sum(w[i] * x[i] ** (i + 1) for i in range(3))


def masked_tokens(W: Any, X: Any) -> Any:
    return W @ np.where(np.tril(np.ones((2, 2))) > 0, X, 0)


def stacked_numbers(w: Any, x: Any) -> Any:
    return np.stack([w[0] * x[0], w[1] * x[1] ** 2, w[0] * w[1]])


def circulant(w: Any, x: Any) -> Any:
    return sum(np.roll(w, k) * x[k] for k in range(3))


def two_inputs_two_outputs(A: Any, B: Any, x: Any, z: Any) -> Any:
    return A @ x, (B @ z) ** 2


def cumulative(w: Any, x: Any) -> Any:
    return np.cumsum(w * x)


def product_of_forms(w: Any, x: Any) -> Any:
    return np.prod(w * x + 1)


def averages(W: Any, X: Any) -> Any:
    return np.mean(W @ X, axis=1) + np.average(X)


def flat_products(W: Any, x: Any) -> Any:
    return (W * W.T).reshape(-1) * x[0]


def broadcast_bias(b: Any, X: Any) -> Any:
    return X + b


def nested_lists(W: Any, x: Any) -> Any:
    return [[row @ x for row in W], [row @ row for row in W]]


def rotation(a: Any, x: Any) -> Any:
    return np.array([[a[0], a[1]], [-a[1], a[0]]]) @ x


def default_arguments(W: Any, x: Any, power: int = 3, scale: int = 2) -> Any:
    return scale * (W @ x) ** power


def nested_tuples(w: Any, x: Any) -> Any:
    (a, b), c = (w[0], w[1]), w[2]
    return a * x[0] ** 2 + b * x[0] + c


def boolean_mask(W: Any, x: Any) -> Any:
    return W[np.array([True, False, True])] @ x


def ellipses(T: Any, x: Any) -> Any:
    return T[..., 0] @ x + T[0, ..., 1] * x


def in_place(W: Any, x: Any) -> Any:
    y = W @ x
    y += x
    y *= 2
    return y


def triangle_of_outer(W: Any, x: Any) -> Any:
    return np.outer(W @ x, x)[np.triu_indices(2)]


def cross_product(W: Any, x: Any) -> Any:
    return np.cross(W[0], x) + np.cross(x, W[1])


def squared_matrix(W: Any, x: Any) -> Any:
    return np.linalg.matrix_power(W, 2) @ x


def as_lists(W: Any, x: Any) -> Any:
    return [(W @ x).tolist(), (W[:1] @ x).item() * np.real(x), W[0] * np.sum(x, dtype=object)][0]


def multiplied_by_outer(W: Any, x: Any) -> Any:
    return np.tensordot(W, np.multiply.outer(x, x), axes=2)


def centred_tokens(W: Any, b: Any, X: Any) -> Any:
    Z = W @ X + b[:, None]
    return (Z - Z.mean(axis=1, keepdims=True)) ** 2


WORKING: list[tuple[Callable[..., Any], Shapes, Shapes, int]] = [
    (einsum_with_constants, W, X, 4),  # MIX is invertible: all matrices
    (python_sum, {"w": (3,)}, {"x": (3,)}, 3),  # three independent monomials
    (masked_tokens, W, {"X": (2, 2)}, 4),
    (stacked_numbers, {"w": (2,)}, X, 2),
    (circulant, {"w": (3,)}, {"x": (3,)}, 3),
    (
        two_inputs_two_outputs,
        {"A": (2, 2), "B": (1, 2)},
        {"x": (2,), "z": (2,)},
        6,
    ),  # squares of forms: finite fibers
    (cumulative, {"w": (3,)}, {"x": (3,)}, 3),
    (product_of_forms, {"w": (2,)}, X, 2),
    (averages, W, {"X": (2, 3)}, 4),
    (flat_products, W, X, 3),  # a^2, bc, d^2
    (broadcast_bias, {"b": (2, 1)}, {"X": (2, 3)}, 2),
    (nested_lists, W, X, 4),
    (rotation, {"a": (2,)}, X, 2),
    (default_arguments, W, X, 4),
    (lambda W, x: W[::-1] @ x[..., ::-1], W, X, 4),
    (nested_tuples, {"w": (3,)}, {"x": (1,)}, 3),
    (boolean_mask, {"W": (3, 2)}, X, 4),  # the second row is not used
    (ellipses, {"T": (2, 2, 2)}, X, 4),  # the second term is a diagonal matrix more
    (in_place, W, X, 4),
    (triangle_of_outer, W, X, 4),
    (cross_product, {"W": (2, 3)}, {"x": (3,)}, 3),  # only the difference of the rows counts
    (squared_matrix, W, X, 4),  # squaring is dominant on matrices
    (as_lists, W, X, 4),
    (multiplied_by_outer, W, X, 3),  # the symmetric part
    (
        centred_tokens,
        {"W": (2, 2), "b": (2,)},
        {"X": (2, 3)},
        4,
    ),  # b cancels, in float64 but for rounding errors
]


@pytest.mark.parametrize(
    ("function", "weights", "inputs", "dim"), WORKING, ids=[case[0].__name__ for case in WORKING]
)
def test_it_is_recorded(function: Callable[..., Any], weights: Shapes, inputs: Shapes, dim: int) -> None:
    model = from_callable(function, weights, inputs=inputs)
    found_dim = dimension(model, engine=False, certify=False)
    assert found_dim.image_dim == dim
    assert found_dim.agreement is not False, [str(conflict) for conflict in found_dim.conflicts]
    rng = np.random.default_rng(1)
    point: dict[str, Any] = {}
    for name, shape in {**weights, **inputs}.items():
        numbers = [Fraction(int(a), int(b)) for a, b in rng.integers(1, 6, size=(math.prod(shape), 2))]
        point[name] = np.array(numbers, dtype=object).reshape(shape)
    found = values(model.program, **point)
    expected = function(**point)
    several = isinstance(expected, tuple)
    for name, value in zip(found, expected if several else [expected], strict=True):
        assert (found[name] == np.array(value, dtype=object)).all()


def test_a_float_is_converted_exactly_with_one_note() -> None:
    recording = record(lambda W, x: 0.1 * (W @ x) ** 2 + 0.5 * x, W, X)
    (note,) = recording.notes
    assert "0.1 is 3602879701896397/36028797018963968" in note


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (lambda W, x: np.linalg.inv(W) @ x, "inverse"),
    (lambda W, x: np.linalg.solve(W, 2 * x), "inverse"),
    (lambda W, x: np.linalg.svd(W)[1] * x, "factors"),
    (lambda W, x: np.linalg.norm(W @ x, 1), "Euclidean"),
    (lambda W, x: np.clip(W @ x, 0, 1), "relu"),
    (lambda W, x: np.fft.fft(W @ x), "np.fft.fft .*complex"),
    (lambda W, x: np.polymul(W[0], x), "np.convolve"),
    (lambda W, x: np.sum(W, axis=0, where=[True, False]), "np.sum: .*'where'.* a, axis"),
    (lambda W, x: np.ptp(W @ x), "comparison"),
    (lambda W, x: (W @ x).astype(int), "rounding"),
    (lambda W, x: abs(W @ x), "square"),
    (lambda W, x: math.exp(x[0]) * W, "NumPy"),
    (lambda W, x: np.cbrt(np.array([W[0] @ x, W[1] @ x])), "np.cbrt"),
    (lambda W, x: np.array([W[0] @ x, W[1] @ x]).max(), "max .*np.block"),
    (lambda W, x: np.linalg.det(np.array([[W[0, 0], 1], [2, W[1, 1]]])) * x, "np.block"),
    (lambda W, x: np.einsum("ij,j", W, x, out=np.zeros(2)), " arguments, optimize$"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "advice"), REFUSED)
def test_it_is_refused_at_its_line(function: Callable[..., Any], advice: str) -> None:
    with pytest.raises(M2BridgeError) as caught:
        record(function, W, X)
    line, _, message = caught.value.message.partition(
        "\n"
    )  # the first line quotes the source, and so `advice`
    assert f"{__file__}, line {function.__code__.co_firstlineno}:" in line
    assert re.search(advice, message)


@pytest.mark.parametrize("function", [np.exp, np.tanh], ids=["exp", "tanh"])
def test_single_numbers_in_an_array_are_taken_as_the_whole_array_is(function: Callable[..., Any]) -> None:
    joined, whole = (
        record(network, W, X).program
        for network in (
            lambda W, x: function(np.array([W[0] @ x, W[1] @ x])),
            lambda W, x: function(W @ x),
        )
    )
    at = {"W": np.array([[0.5, -1.0], [2.0, 0.25]]), "x": np.array([1.0, 0.5])}
    for program in (joined, whole):
        np.testing.assert_allclose(values(program, **at)["y"].astype(float), function(at["W"] @ at["x"]))


def test_coordinates_at_weights_where_a_layer_vanishes() -> None:
    """Windows of a padded array that is zero keep its constant monomial, which no coordinate has."""

    def two_convolutions(k: Any, m: Any, x: Any) -> Any:
        return np.correlate(np.correlate(x, k) ** 2, m)

    model = from_callable(two_convolutions, {"k": (2,), "m": (2,)}, inputs={"x": (4,)})
    at = {"k": np.array([0, 0], dtype=object), "m": np.array([1, 2], dtype=object)}
    assert not np.asarray(model.coordinates(at)).any()
    assert not np.asarray(model.coordinate_jacobian(at)).any()


def test_an_assignment_is_refused_at_its_line() -> None:
    def into_the_array(W: Any, x: Any) -> Any:
        y = W @ x
        y[0] = 0
        return y

    def into_zeros(W: Any, x: Any) -> Any:
        y = np.zeros(2)
        y[0] = W[0] @ x
        return y

    for function, advice in ((into_the_array, "np.concatenate or np.where"), (into_zeros, "dtype=object")):
        with pytest.raises(M2BridgeError, match=advice) as caught:
            record(function, W, X)
        assert f", line {function.__code__.co_firstlineno + 2}: y[0] = " in caught.value.message
