"""Recorded functions compute what NumPy computes, and their programs are as short as they can be written."""

from __future__ import annotations

import copy
import doctest
import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import sympy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.polynomial.chebyshev import chebval
from numpy.polynomial.polynomial import polyval

import m2bridge
from m2bridge.errors import DisagreementError, InputError, NotPolynomialError
from m2bridge.frontends import recording
from m2bridge.frontends.recording import record, record_call
from m2bridge.programs import parse_program
from tests.unit.programs_interpreter import values

SHAPES = {"u": (3,), "v": (3,), "w": (4,), "A": (2, 3), "B": (3, 4), "C": (3, 3), "T": (2, 3, 4), "s": ()}


def point(shapes: dict[str, tuple[int, ...]], seed: int = 1) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {
        name: np.array(
            [
                Fraction(int(k))
                for k in generator.choice([-7, -5, -3, -2, 2, 3, 4, 6, 9], int(np.prod(shape)))
            ],
            dtype=object,
        ).reshape(shape)
        for name, shape in shapes.items()
    }


def compare(function: Callable[..., Any], shapes: dict[str, tuple[int, ...]]) -> Any:
    """Record the function, read its text back, and compare exactly with NumPy at a point."""
    program = record(function, shapes).program
    assert parse_program(program.text) == program
    at = point(shapes)
    expected = function(**at)
    found = values(program, **at)
    if isinstance(expected, (list, tuple)) and isinstance(expected[0], np.ndarray):
        assert len(found) == len(expected)
        parts = list(zip(found.values(), expected, strict=True))
    else:
        parts = [(found["y"], np.array(expected, dtype=object))]
    for mine, its in parts:
        assert mine.shape == np.shape(its)
        assert (mine == its).all()
    return program


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda A, B, C, T, u, v, w, s: A + u,
    "array of sums": lambda u, v, C, **_: np.array([u @ C @ v, (u * v).sum(), u.sum(), np.trace(C)]),
    "methods": lambda A, u, **_: A.repeat(2, 1)[:, ::2].take([1, 0], 0) + A.cumsum(1) * u.cumprod(),
    "subtract": lambda A, u, **_: u - A + 3 - (2 - u),
    "multiply": lambda A, u, T, **_: A * u * T[:, :, 1] * 2,
    "broadcast": lambda u, w, **_: u[:, None] * w + w,
    "negative": lambda A, **_: -A + (+A) * 3,
    "divide": lambda A, **_: A / 3 + A / Fraction(2, 7) + A / np.array([Fraction(1), 2, -5]),
    "divide by numpy": lambda A, **_: A * Fraction(1, 3) + A / Fraction(np.int64(4).item()),
    "power": lambda A, **_: A**0 + A**1 + A**2 * A**3 + (A**2) ** 3,
    "power of many": lambda u, **_: u[:, None] ** np.arange(4),
    "square": lambda A, **_: A * A + np.square(A) + np.power(A, 3),
    "matmul": lambda A, B, **_: A @ B,
    "matmul vectors": lambda A, u, v, C, **_: (A @ u).sum() + u @ v + (u @ C) @ v,
    "matmul stacks": lambda T, w, **_: T @ w + T[:, :, ::-1] @ T[0].T @ np.array([1, 2, 3]),
    "matmul stack by stack": lambda T, **_: T @ T.swapaxes(1, 2),
    "matmul repeated": lambda T, C, **_: C @ T + C[None] @ T + T[:1] * 2,
    "matmul constant left": lambda B, **_: np.arange(6).reshape(2, 3) @ B,
    "matmul vector by stack": lambda T, u, **_: u @ T,
    "transpose": lambda A, T, **_: A.T @ A + (A.T.T.T @ A),
    "transpose axes": lambda T, **_: T.transpose(2, 0, 1) + np.transpose(T, (2, 0, 1)) + T.T.transpose(0, 2, 1),
    "swapaxes": lambda T, **_: np.swapaxes(T, 0, 2) + T.swapaxes(0, -1),
    "moveaxis": lambda T, **_: np.moveaxis(T, 0, -1) + np.moveaxis(T, [0, 1], [2, 0]).transpose(0, 1, 2) * 0,
    "moveaxis many": lambda T, **_: np.moveaxis(T, [0, 2], [1, 0]),
    "index": lambda T, **_: T[1, 2, 3] + T[0][1][2] + T[-1, :, 0][1],
    "slices": lambda T, **_: T[::-1, 1:, ::2] * T[:, 0:2, -1:0:-2],
    "ellipsis": lambda T, **_: T[..., 1] + T[0, ..., 1][None],
    "newaxis": lambda u, **_: u[:, None] + u[np.newaxis, :] + u[..., None, None][0],
    "integer arrays": lambda T, u, **_: T[[0, 1, 1], [2, 0, 1]][:, :3] + u[np.array([2, 2, 0])],
    "mixed indices": lambda T, **_: T[:, [0, 2]] + T[:, [True, False, True], :],
    "masks": lambda C, **_: C[np.tril_indices(3)] + C[np.eye(3, dtype=bool)].sum(),
    "iteration": lambda A, **_: sum(row * (k + 1) for k, row in enumerate(A)),
    "python sum": lambda u, **_: sum(u) + sum([x * x for x in u], 5),
    "sum": lambda T, **_: T.sum(0) + np.sum(T, axis=0) + T.sum() + T.sum((0, 2))[:, None],
    "sum keepdims": lambda A, **_: A.sum(1, keepdims=True) * A + np.sum(A, axis=0, keepdims=True),
    "mean": lambda A, **_: A.mean(0) + np.mean(A, axis=-1).sum() + A.mean(),
    "prod": lambda A, **_: A.prod() + np.prod(A, axis=1).sum() + A.prod(0),
    "reshape": lambda A, **_: A.reshape(3, 2) + A.reshape((6,)).reshape(-1, 2) + np.reshape(A, (3, -1)),
    "ravel": lambda A, **_: A.ravel() + A.flatten() + np.ravel(A),
    "trace": lambda C, T, **_: np.trace(C) + C.trace() + np.trace(T, axis1=1, axis2=2).sum() + np.trace(C, 1),
    "diagonal": lambda C, T, **_: C.diagonal() + np.diagonal(T, 0, 1, 2)[0] + np.diag(C),
    "dot": lambda A, B, u, v, **_: np.dot(A, B).sum() + np.dot(u, v) + A.dot(u).sum() + np.dot(u, 2).sum(),
    "dot stacks": lambda T, B, **_: np.dot(B.T, T),
    "inner": lambda A, u, s, **_: np.inner(A, u) + np.inner(s, A).sum() + np.inner(u, u),
    "outer": lambda u, w, **_: np.outer(u, w) + np.outer(np.arange(3), w),
    "vdot": lambda C, u, **_: np.vdot(C, C) + np.vdot(u, u),
    "tensordot": lambda T, A, **_: np.tensordot(A, T, axes=([0, 1], [0, 1])) + np.tensordot(A, T).sum(),
    "tensordot outer": lambda u, A, **_: np.tensordot(u, A, 0),
    "kron": lambda A, C, u, **_: np.kron(A, C) + np.kron(A, u[None, :] * u[:, None]),
    "kron vectors": lambda u, w, A, **_: np.kron(u, w).sum() + np.kron(A, u).sum(),
    "matrix power": lambda C, **_: np.linalg.matrix_power(C, 3) + np.linalg.matrix_power(C, 0),
    "multi dot": lambda A, C, B, **_: np.linalg.multi_dot([A, C, B]),
    "einsum": lambda A, B, C, **_: np.einsum("ij,jk,kl->il", A, C, B),
    "einsum implicit": lambda A, B, **_: np.einsum("ji,jk", A.T, B),
    "einsum diagonal": lambda C, T, **_: np.einsum("ii->i", C) + np.einsum("ijj->i", T[:, :, :3]).sum(),
    "einsum ellipsis": lambda T, B, **_: np.einsum("...ij,kj->...ki", T, B[:, :]),
    "einsum lists": lambda A, B, **_: np.einsum(A, [0, 1], B, [1, 2], [2, 0]),
    "einsum cp": lambda A, **_: np.einsum("ir,jr,kr->ijk", A, A, A),
    "einsum far ends": lambda A, B, C, **_: np.einsum("ij,kl,jk->il", A, B, C),
    "einsum constant": lambda A, **_: np.einsum("ij,kij->k", A, np.arange(12).reshape(2, 2, 3)),
    "einsum unused": lambda A, u, **_: np.einsum("ij,k->k", A, u),
    "stack": lambda u, v, **_: np.stack([u, v, np.arange(3)], axis=1) + np.stack([u, v, u]).T,
    "vstack": lambda u, v, A, **_: np.vstack([u, A, v]),
    "hstack": lambda u, A, **_: np.hstack([A, A]).sum() + np.hstack([u, [1, 2]]),
    "dstack": lambda A, **_: np.dstack([A, A]),
    "column_stack": lambda u, v, **_: np.column_stack([u, v]),
    "concatenate": lambda A, **_: np.concatenate([A, np.ones((2, 1), dtype=int), A], axis=1),
    "concatenate flat": lambda A, u, **_: np.concatenate([A, u], axis=None),
    "block": lambda A, C, **_: np.block([[C, A.T], [A, np.zeros((2, 2), dtype=int)]]),
    "squeeze": lambda A, **_: np.squeeze(A[:, :1]) + A[:, None, :1].squeeze((1, 2)),
    "expand_dims": lambda A, **_: np.expand_dims(A, 1) + np.expand_dims(A, (0, 2))[0],
    "broadcast_to": lambda u, s, **_: np.broadcast_to(u, (2, 3)) + np.broadcast_to(s, (2, 3)),
    "where": lambda A, **_: np.where(np.tri(2, 3, dtype=bool), A, 7) + np.where([True, False, True], A, 2 * A),
    "triu": lambda C, T, **_: np.triu(C) + np.tril(C, -1) * 2 + np.triu(T[:, :, :3], 1).sum(),
    "diag": lambda u, **_: np.diag(u) @ np.diag(u, 0),
    "diag off": lambda u, **_: np.diag(u, 1) + np.diag(u, -1),
    "roll": lambda A, u, **_: np.roll(A, 1, axis=1) + np.roll(A, 2) + np.roll(u, -1),
    "flip": lambda A, **_: np.flip(A) + np.flip(A, 1) + np.fliplr(A) + np.flipud(A),
    "repeat": lambda A, u, **_: np.repeat(A, 2, axis=0).sum() + np.repeat(u, [1, 0, 2]),
    "tile": lambda u, **_: np.tile(u, (2, 2)),
    "take": lambda A, **_: np.take(A, [2, 0], axis=1),
    "split": lambda w, **_: np.split(w, 2)[0] * np.split(w, [2])[1],
    "hsplit": lambda B, **_: np.hsplit(B, 2)[0] @ np.vsplit(B.T, 2)[1],
    "cumsum": lambda A, u, **_: np.cumsum(A, axis=1) + np.cumsum(u),
    "cumprod": lambda A, u, **_: np.cumprod(A, axis=1) + np.cumprod(u),
    "diff": lambda A, **_: np.diff(A),
    "append": lambda A, u, **_: np.append(u, 1).sum() + np.append(A, A, axis=1) + np.append(A, [5])[0],
    "pad": lambda A, u, **_: np.pad(A, ((1, 0), (0, 2))).sum() + np.pad(u, 1) + np.pad(u, (2, 0))[0],
    "convolve": lambda u, w, **_: np.convolve(u, w),
    "convolve same": lambda u, w, **_: np.convolve(w, u, "same") + np.convolve(u, w, mode="same"),
    "convolve valid": lambda u, w, **_: np.convolve(w, u, "valid"),
    "correlate": lambda u, w, **_: np.correlate(w, u, "valid").sum() + np.correlate(w, u, "full"),
    "windows": lambda w, u, **_: sliding_window_view(w, 3) @ u,
    "polyval": lambda u, w, **_: np.polyval(u, w),
    "atleast": lambda u, s, **_: np.atleast_2d(u) + np.atleast_1d(s),
    "like": lambda A, **_: np.zeros_like(A) + np.ones_like(A) * A + np.full_like(A, 3),
    "like of a shape": lambda A, u, **_: (
        np.zeros_like(A, shape=(4, 3)) + np.ones_like(A, shape=(4, 1)) * u + np.full_like(A, 3, shape=(4, 3))
    ),
    "full of integers": lambda A, **_: A * np.full_like(A, fill_value=2.5, dtype=int),
    "array of numbers": lambda u, **_: np.array([[u[0], u[1], 1], [u[1], u[2], 0]]) @ u,
    "array of arrays": lambda u, v, **_: np.array([u, v]) @ u,
    "object zeros": lambda u, **_: _filled_in(u) * u,
    "asarray": lambda A, u, **_: np.asarray(A) @ u,
    "nested list": lambda u, s, **_: [[u[0] * u[1], 1], [s, u[2]]],
    "many outputs": lambda A, u, **_: (A @ u, A),
    "ufunc methods": lambda A, u, w, **_: np.add.reduce(A) + np.multiply.outer(u, w).sum() + np.add.outer(u, u),
    "accumulate": lambda A, **_: np.add.accumulate(A, 1) + np.subtract.outer(A[:, 0], A[0])[:, 0, None],
    "reduce": lambda u, **_: reduce(lambda a, b: a * b, u) + len(u) + u.ndim + u.size,
    "constant": lambda u, **_: u * 0 + np.array([1, 2, 3]),
    "variance": lambda A, **_: np.var(A) + A.var(0) + np.var(A, axis=1, keepdims=True) + A.var(axis=0, ddof=1),
    "columns first": lambda A, **_: A.reshape((3, 2), order="F") @ A.flatten("F").reshape(2, 3) + A.ravel("F")[0],
    "never changed": lambda A, u, **_: copy.deepcopy(A) @ u + sum(A.flat) * A.real[:, 0] + A.view()[:, 1] * A.item(1, 2),
    "entry by entry": lambda A, u, w, **_: np.insert(np.compress([True, False, True], A, 1) @ np.ediff1d(u), 1, w[:2]),
    "of several arrays": lambda u, C, **_: np.meshgrid(u, u)[0] * np.choose([2, 0, 1], C) + np.select([u.size > 1], [u], 4),
    "other arguments": lambda u, **_: np.sum(u, initial=5) + np.average(u, weights=[1, 2, Fraction(3)]) + np.diff(u, prepend=0),
    "a function for each row": lambda C, u, **_: np.apply_along_axis(lambda row: row @ row, 1, C) + np.add.reduceat(u, [0, 1, 0]),
    "no entries": lambda u, C, **_: np.array([u[:t] @ C[t, :t] for t in range(3)]) + u[:0].sum() + C[:0].sum(0),
    "grown from nothing": lambda A, u, **_: reduce(lambda rows, row: np.vstack([rows, row * u]), A, np.empty((0, 3))),
    "appended to nothing": lambda u, **_: np.append(np.append([], u), u[:1] * u[3:]),
    "polynomial series": lambda u, C, w, **_: C[0, 0] + polyval(w, u) * chebval(w, u),
}  # fmt: skip


def _filled_in(u: Any) -> Any:
    out = np.zeros((2, 3), dtype=object)
    out[0] = u
    out[1, 1] = u[0] * 3
    out += u
    return out


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_recorded_as_numpy_computes_it(name: str) -> None:
    compare(FUNCTIONS[name], SHAPES)


@pytest.mark.parametrize(
    "function",
    [
        lambda u, C: C @ u if isinstance(u, np.ndarray) else C,
        lambda u, C: 1 * polyval(u, C),  # one polynomial per column, for arrays of the class np.ndarray only
        lambda u, C: C @ u + np.random.default_rng().normal(),
        lambda u, C: C @ u + 1e-3 * (type(u) is np.ndarray),
    ],
)
def test_a_program_that_differs_from_its_function_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(DisagreementError, match="function"):
        record(function, {"u": (3,), "C": (3, 3)})


def lines(function: Callable[..., Any], **shapes: tuple[int, ...]) -> list[str]:
    """The instructions of a program after its declarations."""
    text = record(function, shapes).program.text.splitlines()[1 + len(shapes) : -1]
    return [line.partition(" = ")[2] for line in text]


def test_matrix_products_stay_in_the_order_written_and_take_transposes_in() -> None:
    found = lines(lambda V, A, X: V @ X @ X.T @ A @ X, V=(2, 3), A=(3, 3), X=(3, 4))
    assert found == [
        "einsum ab,bc->ac %0 %2",
        "einsum ab,cb->ac %3 %2",
        "einsum ab,bc->ac %4 %1",
        "einsum ab,bc->ac %5 %2",
    ]
    assert lines(lambda X, A: X.T @ A, X=(3, 4), A=(3, 2)) == ["einsum ab,ac->bc %0 %1"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 1, lambda x: 0 + x, lambda x: x - 0, lambda x: x**1, lambda x: x.T.T, lambda x: x / 1,
        lambda x: x.reshape(6).reshape(2, 3), lambda x: x[:], lambda x: x[..., :3], lambda x: x[::-1][::-1],
        lambda x: -1 * (-x), lambda x: 2 * x / 2, lambda x: np.array([[e for e in row] for row in x]),
        lambda x: np.concatenate([x]), lambda x: np.moveaxis(np.moveaxis(x, 0, 1), 0, 1), lambda x: np.array(x)[:],
        lambda x: np.stack([x, x])[1], lambda x: x[None][0], lambda x: np.array([[e for e in row] for row in x.T]).T,
        lambda x: x + np.zeros((2, 3)), lambda x: x * np.ones(3), lambda x: x.swapaxes(0, 1).transpose(), lambda x: +x,
    ],
)  # fmt: skip
def test_operations_without_effect_are_not_recorded(function: Callable[..., Any]) -> None:
    assert lines(function, x=(2, 3)) == []


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: 2 * (3 * x), ["scale 6 %0"]),
        (lambda x: x / 2 * Fraction(2, 3), ["scale 1/3 %0"]),
        (lambda x: x * x * x, ["power 3 %0"]),
        (lambda x: (x**2) ** 2, ["power 4 %0"]),
        (lambda x: x + x, ["scale 2 %0"]),
        (lambda x: x[1][2], ["gather [] 5 %0"]),
        (lambda x: x[:, 1:][:, ::-1], ["slice 0:2:1,2:2:-1 %0"]),
        (lambda x: x.sum(0).sum(), ["einsum ab-> %0"]),
        (lambda x: x.T.sum(0), ["einsum ab->a %0"]),
        (lambda x: np.array([x[0, 1], x[1, 0]]), ["gather [2] 1,3 %0"]),
        (lambda x: x + x[:, :1] @ np.zeros((1, 3)), []),
        (lambda x: (x @ x.T) + (x @ x.T), ["einsum ab,cb->ac %0 %0", "scale 2 %1"]),
        (lambda x: x + (Fraction(1, 2) + np.arange(3)) * 2, ["constant [3] 1 3 5", "add %0 %1"]),
    ],
)
def test_simplified_instructions(function: Callable[..., Any], expected: list[str]) -> None:
    assert lines(function, x=(2, 3)) == expected


def normalised(array: Any) -> Any:
    return array / array.sum(0, keepdims=True)


SOFTMAX: dict[str, Callable[..., Any]] = {
    "keepdims": lambda S, e: e(S) / e(S).sum(1, keepdims=True),
    "columns": lambda S, e: e(S) / e(S).sum(axis=0),
    "newaxis": lambda S, e: e(S) / e(S).sum(-1)[:, None],
    "transposed": lambda S, e: (e(S).T / e(S).sum(1)).T,
    "numpy": lambda S, e: np.divide(np.exp(S), np.sum(np.exp(S), axis=0, keepdims=True)),
    "maximum": lambda S, e: e(S - S.max(1, keepdims=True)) / e(S - S.max(1, keepdims=True)).sum(1, keepdims=True),
    "maximum of all": lambda S, e: normalised(e((S - np.max(S)) / 2)),
    "maximum of columns": lambda S, e: normalised(e(2 * (S - np.amax(S, axis=0)))),
}  # fmt: skip


@pytest.mark.parametrize("name", SOFTMAX)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (1, 3), (3, 1)])
def test_softmax_written_by_hand_is_one_instruction(name: str, shape: tuple[int, int]) -> None:
    program = record(lambda S: SOFTMAX[name](S, np.exp), {"S": shape}).program
    operations = {item.operation for item in program.instructions}
    assert "softmax" in operations
    assert not operations & {"exp", "reciprocal"}
    at = np.random.default_rng(2).normal(size=shape)
    assert np.allclose(values(program, S=at)["y"].astype(float), SOFTMAX[name](at, np.exp))


ALMOST_SOFTMAX: dict[str, Callable[..., Any]] = {
    "wrong sums": lambda S: np.exp(S) / np.exp(S).sum(1),  # rows are divided by the sums of other rows
    "sum of all": lambda S: np.exp(S) / np.exp(S).sum(),
    "other scores": lambda S: np.exp(S) / np.exp(2 * S).sum(1, keepdims=True),
    "sigmoid": lambda S: 1 / (1 + np.exp(-S)),
    "tanh": lambda S: np.tanh(2 * S),
    "mask": lambda S: normalised(np.exp(S) * np.triu(np.ones((3, 3)))),
    "mask and maximum": lambda S: normalised(np.exp(S - S.max(0)) * np.triu(np.ones((3, 3)))),
    "normalised": lambda S: (S**2) / (S**2).sum(0) + S**-2,
    "reciprocal of reciprocal": lambda S: 1 / (1 / S) + np.reciprocal(S),
}


@pytest.mark.parametrize("name", ALMOST_SOFTMAX)
def test_other_quotients_are_recorded_with_reciprocals(name: str) -> None:
    program = record(ALMOST_SOFTMAX[name], {"S": (3, 3)}).program
    operations = {item.operation for item in program.instructions}
    assert "reciprocal" in operations
    assert "softmax" not in operations
    at = np.random.default_rng(2).normal(size=(3, 3))
    assert np.allclose(values(program, S=at)["y"].astype(float), ALMOST_SOFTMAX[name](at))


@pytest.mark.parametrize(
    ("constant", "value"),
    [
        (3, 3), (Fraction(1, 3), Fraction(1, 3)), (np.int8(-2), -2), (np.uint64(2**63), 2**63), (0.5, Fraction(1, 2)),
        (True, 1), (np.float32(0.1), Fraction(13421773, 134217728)), (sympy.Rational(2, 7), Fraction(2, 7)),
        (sympy.Integer(5), 5), (np.array([1, 2]), [1, 2]), (2**100, 2**100), ([Fraction(1, 3), 0.25], [Fraction(1, 3), 0.25]),
        (np.array([Fraction(1, 3), 2], dtype=object), [Fraction(1, 3), 2]), ([2**70, 0.5], [2**70, 0.5]),
    ],
)  # fmt: skip
def test_constants_are_exact_on_either_side(constant: Any, value: Any) -> None:
    at = np.array([Fraction(3), Fraction(5)])
    expected = at * np.array(value, dtype=object)
    for function in (lambda w: w * constant, lambda w: constant * w):
        found = values(record(function, {"w": (2,)}).program, w=at)["y"]
        assert (found == expected).all()


def test_inexact_decimal_floats_give_one_note() -> None:
    assert record(lambda w: 0.5 * w + 3.0 + np.eye(2) @ w, {"w": (2,)}).notes == ()
    (note,) = record(lambda w: 0.1 * w + np.array([0.2, 0.3]) * w, {"w": (2,)}).notes
    assert re.search(r"^3 .*\b0\.1 is 3602879701896397/360287970", note)
    assert "test_programs_recording.py, line" in note


def test_the_example_in_the_documentation_runs() -> None:
    assert doctest.testmod(recording).failed == 0
    assert doctest.testmod(recording).attempted == 2


def test_outputs_have_names() -> None:
    def shapes(function: Callable[..., Any], **options: Any) -> dict[str, tuple[int, ...]]:
        return record(function, {"w": (2, 3)}, **options).program.output_shapes

    assert shapes(lambda w: w.T) == {"y": (3, 2)}
    assert shapes(lambda w: w[0, 0], name="z") == {"z": ()}
    assert shapes(lambda w: (w, w.sum())) == {"y1": (2, 3), "y2": ()}
    assert shapes(lambda w: {"a": w, "b": [w[0, 0], 1]}) == {"a": (2, 3), "b": (2,)}
    assert shapes(lambda w: [[w[0, 0], w[1, 1]], [1, 2]]) == {"y": (2, 2)}
    assert shapes(lambda w: np.array([w[0, 0], 2])) == {"y": (2,)}


def test_dictionaries_of_weights_and_inputs() -> None:
    recorded = record_call(lambda w, x: w["A"] @ x["x"], {"A": (2, 2)}, {"x": (2,)})
    assert recorded.program.text.endswith("output y %2\n")
    assert recorded.program.output_shapes == {"y": (2,)}


def test_the_determinant_is_a_polynomial() -> None:
    """Leibniz' sum over permutations, on a stack of matrices."""
    shape, at = {"T": (2, 4, 4)}, point({"T": (2, 4, 4)})["T"]
    found = values(record(lambda T: 1 * np.linalg.det(T), shape).program, T=at)["y"]
    for matrix, value in zip(at, found, strict=True):
        signs = [(np.linalg.det(np.eye(4)[list(p)]), p) for p in permutations(range(4))]
        assert value == sum(round(sign) * math.prod(matrix[range(4), p]) for sign, p in signs)
    with pytest.raises(InputError, match="square"):
        record(lambda T: np.linalg.det(T[0, :3]), shape)


def test_functions_of_newer_numpy() -> None:
    if hasattr(np, "matrix_transpose"):
        assert lines(lambda x: 1 * np.matrix_transpose(x), x=(2, 3)) == ["einsum ab->ba %0"]
        assert lines(lambda x: 1 * np.linalg.trace(x), x=(2, 2)) == ["gather [2] 0,3 %0", "einsum a-> %1"]
        assert lines(lambda x: np.linalg.matmul(x, x), x=(2, 2)) == ["einsum ab,bc->ac %0 %0"]
    assert lines(lambda x: np.vander(x, 3), x=(2,)) == lines(lambda x: x[:, None] ** [2, 1, 0], x=(2,))


def test_an_integer_dtype_of_a_ufunc_is_not_ignored() -> None:
    with pytest.raises(NotPolynomialError):
        record(lambda x: np.add(x, 1, dtype=int), {"x": (2,)})
    assert lines(lambda x: np.add(x, 1, dtype=np.float32), x=(2,)) == lines(lambda x: x + 1, x=(2,))


def test_a_vandermonde_matrix_without_columns_is_not_a_square_one() -> None:
    with pytest.raises(InputError, match="empty"):
        record(lambda x: np.vander(x, 0), {"x": (2,)})


LARGE = {
    "shape": lambda A, x: A.reshape(np.shape(A)) @ x,
    "ones_like": lambda A, x: (A + np.ones_like(A)) @ x,
    "hstack": lambda A, x: np.hstack([A, A]) @ np.hstack([x, x]),
    "vstack": lambda A, x: np.vstack([A, A]) @ x,
    "dstack": lambda A, x: np.dstack([A, A]).sum(axis=2) @ x,
    "column_stack": lambda A, x: np.column_stack([A, A[:, 0]])[:, :60] @ x,
    "block": lambda A, x: np.block([[A], [2 * A]]) @ x,
    "append": lambda A, x: np.append(A, A, axis=0) @ x,
    "cumsum": lambda A, x: np.cumsum(A, axis=0) @ x,
    "convolve": lambda A, x: np.convolve(A[0], x),
    "average": lambda A, x: np.average(A, axis=0) * x,
}


@pytest.mark.parametrize("name", LARGE)
def test_arrays_of_thousands_of_entries_are_recorded_as_a_whole(name: str) -> None:
    """Recorded one entry after the other they would be refused; values are compared when the function is recorded."""
    model = m2bridge.from_callable(LARGE[name], {"A": (80, 60)}, inputs={"x": (60,)})
    assert len(model.program.instructions) < 12


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (4, 4), (1, 6)])
def test_convolutions_have_the_entries_of_numpy(mode: str, m: int, n: int) -> None:
    model = m2bridge.from_callable(
        lambda a, x: np.convolve(a, x, mode), {"a": (m,)}, inputs={"x": (n,)}
    )  # compared with NumPy at a random point
    assert model.output_shape == np.convolve(np.ones(m), np.ones(n), mode).shape
