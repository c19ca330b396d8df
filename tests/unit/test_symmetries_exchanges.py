"""Exchanges of slices that are found by trying, and those that are not there."""

from __future__ import annotations

import numpy as np
import pytest

from m2bridge.models import from_callable, parse_spec
from m2bridge.symmetry.exchanges import exchanges
from m2bridge.symmetry.finite import permutations


def test_what_the_program_shows_is_not_searched_again() -> None:
    program = parse_spec("mlp(widths=[2,3,2],r=2)").program
    assert exchanges(program, permutations(program)) == ()


def test_a_translation_of_a_group_convolution_is_found() -> None:
    (found,) = exchanges(parse_spec("group-convolution(group=C2,layers=2,r=2)").program)
    assert found.acts_on == ("w1 axis 0", "w2 axis 0")


def test_three_parts_answer_to_a_swap_and_to_a_turn() -> None:
    def sums(a, b):  # type: ignore[no-untyped-def]
        return np.array([a[0] + a[1] + a[2] + b, a[0] * a[1] * a[2], b * b + b])

    (found,) = exchanges(from_callable(sums, {"a": (3,), "b": ()}).program)
    assert (found.group, found.order, found.acts_on) == ("S_3", 6, ("a axis 0",))


@pytest.mark.parametrize("last", [2, 3])
def test_no_exchange_where_the_parts_differ(last: int) -> None:
    def mixture(w, a):  # type: ignore[no-untyped-def]
        return np.array([w * a[0] + (1 - w) * a[1], w * a[0] ** 2 + (1 - w) * a[1] ** last])

    found = exchanges(from_callable(mixture, {"w": (), "a": (2,)}).program)
    assert [item.acts_on for item in found] == ([("a axis 0", "w -> 1 - w")] if last == 2 else [])
