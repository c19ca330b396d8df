"""What cannot be recorded is refused at its line, with what to write instead."""

# ruff: noqa: PLW0108 (a lambda has the line that the refusal should name)

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2bridge.errors import InputError, M2BridgeError, NotPolynomialError
from m2bridge.frontends.recording import record


def into_zeros(W: Any) -> Any:
    out = np.zeros((2, 2))
    out[0, 0] = W[0, 0]  # here
    return out


def row_into_zeros(W: Any) -> Any:
    out = np.zeros((2, 2))
    out[0] = W[0]  # here
    return out


def into_recorded(W: Any) -> Any:
    W[0, 0] = 1  # here
    return W


def in_place(W: Any) -> Any:
    out = np.zeros((2, 2))
    out += W  # here
    return out


def branch(W: Any) -> Any:
    if W[0, 0] > 0:  # here
        return W
    return -W


def truth(W: Any) -> Any:
    return W if W.sum() else -W  # here


def equality(W: Any) -> Any:
    return W * (W == W.T)  # here


def membership(W: Any) -> Any:
    return 3 in W[0]  # here


def relu(W: Any) -> Any:
    hidden = W @ W
    return np.maximum(hidden, 0)  # here


def maximum(W: Any) -> Any:
    largest = W.max(0)  # here
    return W * largest


def shifted_only(W: Any) -> Any:
    shifted = W - W.max(0, keepdims=True)  # here
    return np.exp(shifted)


def wrong_axis(W: Any) -> Any:
    e = np.exp(W - W.max(1, keepdims=True))  # here
    return e / e.sum(0, keepdims=True)


def helper(x: Any) -> Any:
    return np.cbrt(x)  # here


def through_helper(W: Any) -> Any:
    return helper(W) + 1


CASES: dict[Callable[..., Any], str] = {
    into_zeros: "dtype=object", row_into_zeros: "dtype=object", into_recorded: "np.where", in_place: "a = a \\+ b",
    branch: "constant mask", truth: "constant mask", equality: "constant mask", membership: "constant mask",
    relu: "x\\*\\*2", maximum: "softmax", shifted_only: "softmax", wrong_axis: "softmax", through_helper: "np.sqrt",
}  # fmt: skip


@pytest.mark.parametrize(
    ("function", "advice"), CASES.items(), ids=lambda case: getattr(case, "__name__", "")
)
def test_an_error_names_the_line_and_an_alternative(function: Callable[..., Any], advice: str) -> None:
    with pytest.raises(NotPolynomialError, match=advice) as caught:
        record(function, {"W": (2, 2)})
    code = (helper if function is through_helper else function).__code__
    source = Path(code.co_filename).read_text(encoding="utf-8").splitlines()
    marked = [n for n, text in enumerate(source, 1) if text.endswith("# here") and n > code.co_firstlineno]
    first, *_ = caught.value.message.splitlines()
    assert first == f"{code.co_filename}, line {marked[0]}: {source[marked[0] - 1].strip()}"
    assert pickle.loads(pickle.dumps(caught.value)).message == caught.value.message


NOT_POLYNOMIAL: list[Callable[..., Any]] = [
    lambda W: float(W[0, 0]) * W,
    lambda W: int(W[0, 0]),
    lambda W: abs(W),
    lambda W: np.abs(W),
    lambda W: W // 2,
    lambda W: W % 2,
    lambda W: 2**W,
    lambda W: W**W,
    lambda W: W**0.25,
    lambda W: W ** Fraction(1, 3),
    lambda W: np.sqrt(W**2),
    lambda W: round(W[0, 0]),
    lambda W: math.exp(W[0, 0]),
    lambda W: np.linalg.inv(W),
    lambda W: np.linalg.slogdet(W),
    lambda W: np.linalg.norm(W, 1),
    lambda W: np.sort(W),
    lambda W: np.sinh(W),
    lambda W: np.sin(W),
    lambda W: np.log(W),
    lambda W: np.minimum(W, 1),
    lambda W: np.clip(W, 0, 1),
    lambda W: np.argmax(W),
    lambda W: max(W[0]),
    lambda W: sorted(W[0]),
    lambda W: W.max() > 0,
    lambda W: np.where(W > 0, W, 0),
    lambda W: W[W],
    lambda W: np.where(W, W, 0),
    lambda W: np.array(W, dtype=float),
    lambda W: [0, 1][W[0, 0]],
    lambda W: np.allclose(W, 0),
    lambda W: np.linalg.matrix_power(W, -1),
    lambda W: W * "a",
    lambda W: np.heaviside(W, 1),
    lambda W: W + None,
    lambda W: np.maximum(W, -np.inf),
    lambda W: np.minimum.reduce(W),
    lambda W: np.add.at(W, 0, 1),
    lambda W: np.fill_diagonal(W, 0),
    lambda W: np.copyto(W, 0),
    lambda W: W.resize(4),
    lambda W: W.put(0, 1),
    lambda W: np.unique(W),
    lambda W: np.gradient(W),
    lambda W: np.apply_along_axis(lambda r: np.cbrt(r), 0, W),
    lambda W: np.diagflat(np.tile(W, (65, 16))),
    lambda W: np.eye(2).view(np.matrix) @ W,
    lambda W: W * np.ma.array([1, 2], mask=[True, False]) @ W,
]


@pytest.mark.parametrize("number", range(len(NOT_POLYNOMIAL)))
def test_not_polynomial(number: int) -> None:
    with pytest.raises((NotPolynomialError, InputError)) as caught:
        record(NOT_POLYNOMIAL[number], {"W": (2, 2)})
    line = NOT_POLYNOMIAL[number].__code__.co_firstlineno
    assert f"{__file__}, line {line}: lambda W:" in caught.value.message


def test_a_method_is_refused_as_the_function_is() -> None:
    with pytest.raises(
        NotPolynomialError,
        match=r"np.clip cannot be recorded; relu is not a polynomial",
    ):
        record(lambda W: W.clip(0, 1), {"W": (2, 2)})


WRONG: list[tuple[Callable[..., Any], str]] = [
    (lambda W: W + np.ones(3), "do not fit together"),
    (lambda W: W @ np.ones(3), "do not fit together"),
    (lambda W: W @ 2, r"write \*"),
    (lambda W: W[2], "index 2"),
    (lambda W: W[0, 0, 0], "2-dimensional"),
    (lambda W: W[:0], "is empty"),
    (lambda W: W[[5]], "IndexError"),
    (lambda W: W.reshape(3), "cannot be reshaped"),
    (lambda W: W.sum(2), "axis 2"),
    (lambda W: W / 0, "division by zero"),
    (lambda W: W * np.inf, "zeros and ones"),
    (lambda W: np.where([[True], [False]], W, -np.inf), "zeros and ones"),
    (lambda W: W * 1j, "complex"),
    (lambda W: np.einsum("ij,jk->il", W, W), "does not fit"),
    (lambda W: np.einsum("ijk", W), "2 axes"),
    (lambda W: W.inverse(), "no 'inverse'"),
    (lambda W: np.concatenate([W, W[0]]), "other axes"),
    (lambda W: [W[0, 0], [1, 2]], "different lengths"),
    (lambda W: 1 / 0, "ZeroDivisionError"),
    (lambda W: np.broadcast_to(W, (3, 3)), "."),
    (lambda W: W[{"a": 1}], "indexed by"),
    (lambda W: np.array([W, 1], dtype=object) @ W, "different shapes"),
    (lambda W: {W: 1}, "unhashable"),
    (lambda W: W[W[0, 0]], "."),
    (lambda W: np.tensordot(W, W, 3), "axis"),
    (lambda W: W.transpose(0, 0), "transpose"),
    (lambda W: W**10**9, "exponent"),
    (lambda W: len(W[0, 0]), "no length"),
    (lambda W: np.split(W, 3), "equal division"),
    (lambda W: W.sum(dtype=int), "dtype"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_shapes_and_values(number: int) -> None:
    function, message = WRONG[number]
    with pytest.raises(M2BridgeError) as caught:
        record(function, {"W": (2, 2)})
    line, _, reason = caught.value.message.partition(
        "\n"
    )  # the first line quotes the source, and so `message`
    assert __file__ in line
    assert re.search(message, reason)
    assert caught.value.exit_code == 2


def no_result(W: Any) -> Any:
    W @ W


def a_set(W: Any) -> Any:
    return {1, 2}


def nothing_in_it(W: Any) -> Any:
    return W[:0]


@pytest.mark.parametrize("function", [no_result, a_set, nothing_in_it])
def test_a_wrong_return_value_is_an_error_at_the_function(function: Callable[..., Any]) -> None:
    with pytest.raises(M2BridgeError) as caught:
        record(function, {"W": (2, 2)})
    line = function.__code__.co_firstlineno
    assert f"{__file__}, line {line}: def {function.__name__}(W: Any)" in caught.value.message


def test_wrong_results_and_arguments() -> None:
    with pytest.raises(InputError, match="return"):
        record(lambda W: None, {"W": (2,)})
    with pytest.raises(InputError, match="'V'"):
        record(lambda W: W, {"W": (2,), "V": (2,)})
    with pytest.raises(InputError, match="name"):
        record(lambda W: {"a b": W}, {"W": (2,)})
    with pytest.raises(InputError, match="name"):
        record(lambda **w: w["a b"], {"a b": (2,)})
    with pytest.raises(InputError, match="recording"):
        record(lambda W: record(lambda V: V + W, {"V": (2,)}), {"W": (2,)})
