"""einsum and its kin in a traced network: the same numbers as NumPy's, and the same Jacobians as with @."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from m2bridge.errors import InputError, NotPolynomialError
from m2bridge.families import Mod, from_callable, jacobian
from m2bridge.frontends.polynomial_programs import polynomial_program
from m2bridge.programs.evaluation import run
from m2bridge.questions.dimension import dimension

Program = Callable[..., Any]
SHAPES = {"A": (2, 3), "B": (3, 3), "c": (3,), "T": (2, 3, 2)}
P = 10007

PROGRAMS: dict[str, Program] = {
    "product": lambda X, A, B, c, T: np.einsum("ij,jk,kl->il", A, B, X),
    "implicit": lambda X, A, B, c, T: np.einsum("ba,cb", A @ B, X),
    "transposed": lambda X, A, B, c, T: np.einsum("ijk->kij", T) * np.einsum("jk->", X),
    "diagonal": lambda X, A, B, c, T: np.einsum("ii->i", B) * X[:, 0] + np.einsum("ii,i", B, c),
    "constants": lambda X, A, B, c, T: np.einsum("i,ij,j->", [1, -2], A @ X, np.array([3, 4])) * c,
    "all letters": lambda X, A, B, c, T: np.einsum("i j, k l -> l k j i", A, X, optimize=True),
    "dot": lambda X, A, B, c, T: np.dot(A, X) + np.dot(c, c) + np.dot(2, np.dot(A, c)[0]),
    "dot of three axes": lambda X, A, B, c, T: np.dot(A, T) * X[0, 0] + np.dot(T, np.array([1, 2]))[0, 0],
    "inner": lambda X, A, B, c, T: np.inner(A, B) + np.inner(X[:, 0], c),
    "outer": lambda X, A, B, c, T: np.outer(A, X),
    "tensordot": lambda X, A, B, c, T: np.tensordot(T, B, axes=(1, 0)) * np.tensordot(A, X.T),
    "tensordot of pairs": lambda X, A, B, c, T: np.tensordot(T, X, axes=([1, 2], [0, 1])),
    "tensordot of none": lambda X, A, B, c, T: np.tensordot(c, X, axes=0),
    "trace": lambda X, A, B, c, T: X * np.trace(B @ B),
    "trace of another diagonal": lambda X, A, B, c, T: X * np.trace(B @ B, offset=1),
    "dots": lambda X, A, B, c, T: np.einsum("...i,i", T[:, :, 0], c) * X[0, 1],
    "lists of axes": lambda X, A, B, c, T: np.einsum(A, [0, 1], X, [1, 2]),
    "kron": lambda X, A, B, c, T: np.kron(A, X),
}  # fmt: skip


def model_of(program: Program) -> Any:
    return from_callable(program, SHAPES, inputs={"X": (3, 2)}, name="program")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_those_of_numpy(name: str) -> None:
    program = PROGRAMS[name]
    model = model_of(program)
    rng = np.random.default_rng(3)
    weights = model.draw_weights(rng, P)
    inputs = rng.integers(0, P, (4, 3, 2))
    found = model.forward({key: Mod(value, P) for key, value in weights.items()}, Mod(inputs, P))
    small = {key: np.asarray(value) % 50 for key, value in weights.items()}  # no overflow in int64
    again = model.forward({key: Mod(value, P) for key, value in small.items()}, Mod(inputs % 50, P))
    assert found.shape == again.shape == (4, *model.output_shape)
    assert again.values.tolist() == [(program(X=x % 50, **small) % P).tolist() for x in inputs]
    real = model.draw_real_weights(rng)
    points = rng.standard_normal((3, 3, 2))
    assert np.allclose(model.forward(real, points), [program(X=x, **real) for x in points])


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_coordinates_times_monomials(name: str) -> None:
    """The symbolic expansion, the values over F_p and their Jacobians are one function."""
    model = model_of(PROGRAMS[name])
    rng = np.random.default_rng(4)
    weights = {key: Mod(value, P) for key, value in model.draw_weights(rng, P).items()}
    points = rng.integers(0, P, (2, 3, 2))
    values, matrix = jacobian(model, weights, points, P)
    size = int(np.prod(model.output_shape))
    basis = polynomial_program([{tuple(map(int, m)): 1} for m in model.monomials], {"x": (6,)})
    monomials = run(basis, {"x": Mod(points.swapaxes(1, 2).reshape(2, 6), P)})
    coefficients = model.coordinates(weights).reshape(size, -1)
    assert ((coefficients @ monomials.mT).values.T.reshape(-1) == values).all()
    derivative = Mod(jacobian(model, weights, p=P)[1].reshape(size, len(model.monomials), -1), P)
    for i in range(2):
        expected = (monomials[i : i + 1] @ derivative).values[:, 0]
        assert (expected == matrix[size * i : size * (i + 1)]).all()


def test_a_network_by_einsum_has_the_dimension_of_the_same_network() -> None:
    shapes, inputs = {"A": (2, 2), "V": (1, 2)}, {"X": (2, 2)}
    by_einsum = from_callable(
        lambda X, A, V: np.einsum("ij,jk,lk,lm,mn->in", V, X, X, A, X), shapes, inputs=inputs, name="einsum"
    )
    by_matmul = from_callable(lambda X, A, V: V @ X @ X.T @ A @ X, shapes, inputs=inputs, name="matmul")
    found = [dimension(model, engine=False) for model in (by_einsum, by_matmul)]
    assert found[0].image_dim == found[1].image_dim == 5  # Corollary 3.3: d=2, d'=1, a=2
    assert found[0].agreement is None  # both bounds come from one program, and no symmetry was given


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (lambda X, A, B, c, T: np.einsum("ij,jk", A, A), "lengths 3 and 2"),
        (lambda X, A, B, c, T: np.einsum("ii", A), "lengths 2 and 3"),
        (lambda X, A, B, c, T: np.einsum("ijk", A), "ijk"),
        (lambda X, A, B, c, T: np.einsum("ij,j->k", A, c), "ij,j"),
        (lambda X, A, B, c, T: np.einsum("ij", A, c), "2 arrays"),
        (lambda X, A, B, c, T: np.einsum("i-j", A), "'i-j'"),
        (lambda X, A, B, c, T: np.dot(A, A), "(2, 3) and (2, 3)"),
        (lambda X, A, B, c, T: np.tensordot(B, B, axes=([0, 0], [0, 1])), "repetition"),
    ],
)
def test_inconsistent_arguments_are_bad_input(program: Program, says: str) -> None:
    with pytest.raises(InputError) as caught:
        model_of(program)
    assert (
        says in caught.value.message.rpartition("\n")[2]
    )  # the line before quotes the source, and so `says`


def test_an_unsupported_function_is_named_with_what_to_use_instead() -> None:
    with pytest.raises(NotPolynomialError) as caught:
        model_of(lambda X, A, B, c, T: np.linalg.cond(B) * X)
    line, _, message = str(caught.value).partition("\n")
    assert "test_models_einsum.py, line " in line
    assert re.search(r"np\.linalg\.cond .*\+ - \* / @", message)
    assert "polynomial" not in message
