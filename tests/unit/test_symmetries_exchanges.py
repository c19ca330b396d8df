"""Exchanges of slices that are found by trying, and those that are not there."""

from __future__ import annotations

import numpy as np
import pytest

from m2bridge.families import from_callable, parse_spec
from m2bridge.symmetry.exchanges import exchanges
from m2bridge.symmetry.finite import permutations


def test_symmetries_of_the_program_are_not_searched_again() -> None:
    program = parse_spec("mlp(widths=[2,3,2],r=2)").program
    assert exchanges(program, permutations(program)) == ()


def test_a_translation_of_a_group_convolution_is_found() -> None:
    def over_two_elements(w, v, x):  # type: ignore[no-untyped-def]
        table = np.array([[0, 1], [1, 0]])
        return (x[table] @ w) ** 2 @ v

    (found,) = exchanges(from_callable(over_two_elements, {"w": (2,), "v": (2,)}, inputs={"x": (2,)}).program)
    assert found.acts_on == ("w axis 0", "v axis 0")


def test_three_parts_answer_to_a_swap_and_to_a_turn() -> None:
    def sums(a, b):  # type: ignore[no-untyped-def]
        return np.array([a[0] + a[1] + a[2] + b, a[0] * a[1] * a[2], b * b + b])

    (found,) = exchanges(from_callable(sums, {"a": (3,), "b": ()}).program)
    assert (found.group, found.order, found.acts_on) == ("S_3", 6, ("a axis 0",))


@pytest.mark.parametrize("last", [2, 3])
def test_no_exchange_where_the_parts_differ(last: int) -> None:
    def mixture(w, a):  # type: ignore[no-untyped-def]
        return np.array([w * a[0] + (1 - w) * a[1], w * a[0] ** 2 + (1 - w) * a[1] ** last])

    listed = exchanges(from_callable(mixture, {"w": (), "a": (2,)}).program)
    assert [item.acts_on for item in listed] == ([("a axis 0", "w -> 1 - w")] if last == 2 else [])


def acts_on(function, shapes, inputs=None):  # type: ignore[no-untyped-def]
    program = from_callable(function, shapes, inputs=inputs).program
    return [(item.group, item.acts_on) for item in exchanges(program, permutations(program))]


@pytest.mark.parametrize("width", [2, 40])
def test_two_equal_branches_change_places(width: int) -> None:
    """The neurons of each branch are permuted too, which the program shows; the large one is proved without expansion."""

    def branches(A, W1, B, W2, x):  # type: ignore[no-untyped-def]
        return A @ (W1 @ x) ** 2 + B @ (W2 @ x) ** 2

    shapes = {"A": (1, width), "W1": (width, 3), "B": (1, width), "W2": (width, 3)}
    assert acts_on(branches, shapes, {"x": (3,)}) == [("S_2", ("A <-> B", "W1 <-> W2"))]


def test_three_equal_branches_are_one_group() -> None:
    def branches(a, u, b, v, c, w, x):  # type: ignore[no-untyped-def]
        return a * (u @ x) ** 3 + (b * (v @ x) ** 3 + c * (w @ x) ** 3)

    shapes = {name: () if name in "abc" else (2,) for name in "aubvcw"}
    assert acts_on(branches, shapes, {"x": (2,)}) == [("S_3", ("a <-> b <-> c", "u <-> v <-> w"))]


def test_heads_in_separate_arrays() -> None:
    def heads(Q1, K1, V1, Q2, K2, V2, X):  # type: ignore[no-untyped-def]
        return V1 @ X @ (K1 @ X).T @ (Q1 @ X) + V2 @ X @ (K2 @ X).T @ (Q2 @ X)

    found = acts_on(heads, {name: (3, 3) for name in ("Q1", "K1", "V1", "Q2", "K2", "V2")}, {"X": (3, 2)})
    assert found == [("S_2", ("Q1 <-> Q2", "K1 <-> K2", "V1 <-> V2"))]


@pytest.mark.parametrize("last", [3, 2])
def test_a_mixture_in_separate_arrays(last: int) -> None:
    """Pearson's mixture of two normal distributions; with a third moment that is wrong for one of them nothing is found."""

    def moments(w, m, n, s, t):  # type: ignore[no-untyped-def]
        first, second = [m, m**2 + s, m**3 + 3 * m * s], [n, n**2 + t, n**3 + last * n * t]
        return np.array([w * a + (1 - w) * b for a, b in zip(first, second, strict=True)])

    found = acts_on(moments, {name: () for name in "wmnst"})
    assert found == ([("S_2", ("m <-> n", "s <-> t", "w -> 1 - w"))] if last == 3 else [])


def test_branches_that_differ_do_not_change_places() -> None:
    def branches(a, u, b, v, x):  # type: ignore[no-untyped-def]
        return a * (u @ x) ** 2 + 2 * b * (v @ x) ** 2

    assert acts_on(branches, {"a": (), "u": (2,), "b": (), "v": (2,)}, {"x": (2,)}) == []


def test_products_of_exchanges_are_not_listed_again() -> None:
    def mixtures(w, m, n, v, a, b):  # type: ignore[no-untyped-def]
        parts = [w * m + (1 - w) * n, w * m**2 + (1 - w) * n**2, w * m**3 + (1 - w) * n**3]
        return np.array([*parts, v * a + (1 - v) * b, v * a**2 + (1 - v) * b**2, v * a**3 + (1 - v) * b**3])

    found = acts_on(mixtures, {name: () for name in "wmnvab"})
    assert found == [("S_2", ("m <-> n", "w -> 1 - w")), ("S_2", ("a <-> b", "v -> 1 - v"))]


def test_coordinates_with_too_many_terms_give_no_exchange() -> None:
    """The expansion of a network with few weights and a high degree may be out of reach; that is no error."""

    def power(a, b, x):  # type: ignore[no-untyped-def]
        return (a @ x + b @ x**2) ** 2**12

    program = from_callable(power, {"a": (6,), "b": (6,)}, inputs={"x": (6,)}).program
    assert exchanges(program) == ()
