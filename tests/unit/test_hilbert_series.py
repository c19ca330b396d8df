"""Hilbert series without Macaulay2: counting at points, expanding fractions, what people read."""

from __future__ import annotations

import numpy as np
import pytest

from m2bridge.errors import InputError
from m2bridge.questions.hilbert_series import expanded, hilbert_function_at, hilbert_series, polynomial_text

P = 32003


def test_points_of_the_segre_variety_count_as_its_series() -> None:
    # rank one 2x2 matrices, a quadric cone in 4 variables: (1 + T)/(1 - T)^3 has the coefficients (s + 1)^2
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, P, (2, 60, 2))
    points = np.einsum("ni,nj->nij", x, y).reshape(60, 4)
    assert hilbert_function_at(points, 3, P) == (1, 4, 9, 16) == expanded([1, 1], 3, 3)


def test_coordinates_that_depend_linearly_are_counted_once() -> None:
    points = np.array([[s, 2 * s, 1] for s in range(10)])  # a line: 1/(1 - T)
    assert hilbert_function_at(points, 3, P) == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("numerator", "dim", "text"),
    [([1, 1, 1], 0, (1, 1, 1, 0)), ([1], 2, (1, 2, 3, 4)), ([1, -1], 2, (1, 1, 1, 1))],
)
def test_a_fraction_is_expanded(numerator: list[int], dim: int, text: tuple[int, ...]) -> None:
    assert expanded(numerator, dim, 3) == text


def test_polynomials_are_written_as_people_write_them() -> None:
    assert polynomial_text([-1, 1, 0, -3]) == "-1 + T - 3*T^3"
    assert polynomial_text([]) == "0"


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("map:x,y->x;y|x*y", {}, "satisfy equations"),
        ("lightning(d=2,dp=1)", {"prime": 101}, "too small"),
        ("lightning(d=2,dp=1)", {"prime": 0}, "a prime number from 1009"),
        ("map:s->s/32003;s^2", {"prime": 32003}, "divides the number"),
    ],
)
def test_what_cannot_be_answered_is_refused(spec: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        hilbert_series(spec, **options)
