"""Indexing, broadcasting, products and einsum of recorded arrays agree with NumPy for arbitrary shapes."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2bridge.errors import InputError
from m2bridge.frontends.recording import record
from m2bridge.programs import parse_program
from tests.unit.programs_interpreter import values

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)


def numbers(shape: tuple[int, ...], start: int = 2) -> Any:
    return (np.arange(start, start + int(np.prod(shape))) ** 2 % 17 - 5).astype(object).reshape(shape)


def same(function: Any, **arrays: Any) -> None:
    """The recorded function and NumPy's have the same values; where NumPy's are empty, recording refuses."""
    expected = np.asarray(function(**arrays), dtype=object)
    shapes = {name: array.shape for name, array in arrays.items()}
    if not expected.size:
        with pytest.raises(InputError, match="empty"):
            record(function, shapes)
        return
    program = record(function, shapes).program
    assert parse_program(program.text) == program
    found = values(program, **arrays)["y"]
    assert found.shape == expected.shape
    assert (found == expected).all()


def indices(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    basic = hnp.basic_indices(shape, allow_newaxis=True)
    masks = hnp.arrays(bool, shape)
    lists = hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3))
    first = hnp.arrays(np.int64, st.integers(1, 3), elements=st.integers(-shape[0], shape[0] - 1))
    return st.one_of(basic, masks, lists, first)


@given(st.data())
def test_indexing(data: st.DataObject) -> None:
    array = numbers(data.draw(SHAPES))
    key = data.draw(indices(array.shape))
    same(lambda x: x[key], x=array)


REARRANGEMENTS = {
    "transpose": lambda x: x.T,
    "flat": lambda x: x.reshape(-1),
    "joined": lambda x: np.concatenate([x, x[::-1]]),
    "joined elsewhere": lambda x: np.concatenate([x * 3, x], axis=-1),
    "stacked": lambda x: np.stack([x, x * 2], axis=-1),
    "gathered": lambda x: x[np.arange(len(x))[::-1]],
}


@given(st.sampled_from(sorted(REARRANGEMENTS)), st.data())
def test_indexing_of_what_was_rearranged(name: str, data: st.DataObject) -> None:
    array = numbers(data.draw(SHAPES))
    rule = REARRANGEMENTS[name]
    key = data.draw(indices(rule(array).shape))
    same(lambda x: rule(x)[key], x=array)


@given(st.data())
def test_slices_of_slices(data: st.DataObject) -> None:
    array = numbers(data.draw(SHAPES))
    first = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True))
    if not np.size(array[first]) or not np.ndim(array[first]):
        return
    second = data.draw(indices(array[first].shape))
    same(lambda x: x[first][second], x=array)


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=1))
def test_broadcasting(shapes: Any) -> None:
    a, b = (numbers(shape, k + 2) for k, shape in enumerate(shapes.input_shapes))
    same(lambda a, b: (a + b) * (a - 2 * b) + np.asarray(numbers(b.shape)) * a, a=a, b=b)


@given(hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2, max_side=3, min_side=1))
def test_matrix_products(shapes: Any) -> None:
    a, b = (numbers(shape, k + 2) for k, shape in enumerate(shapes.input_shapes))
    same(lambda a, b: a @ b, a=a, b=b)


@st.composite
def contractions(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]]]:
    """Subscripts with repeated letters, and shapes that fit."""
    lengths = {letter: draw(st.integers(1, 3)) for letter in "ijkl"}
    terms = draw(st.lists(st.text("ijkl", max_size=3), min_size=1, max_size=4))
    used = sorted(set("".join(terms)))
    result = draw(st.lists(st.sampled_from(used), unique=True)) if used else []
    arrow = draw(st.booleans())
    text = ",".join(terms) + ("->" + "".join(result) if arrow else "")
    return text, [tuple(lengths[letter] for letter in term) for term in terms]


@settings(max_examples=200)
@given(contractions())
def test_einsum(case: tuple[str, list[tuple[int, ...]]]) -> None:
    text, shapes = case
    arrays = {f"a{k}": numbers(shape, k + 2) for k, shape in enumerate(shapes)}
    same(lambda **a: np.einsum(text, *a.values()), **arrays)


@given(hnp.array_shapes(min_dims=1, max_dims=4, max_side=3), st.data())
def test_sums_and_transposes(shape: tuple[int, ...], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    keepdims = data.draw(st.booleans())
    same(lambda x: np.transpose(x.transpose(order).sum(axis, keepdims=keepdims)), x=numbers(shape))
    same(lambda x: np.mean(x, axis=axis) * np.ones(1, dtype=int), x=numbers(shape) * 36)
