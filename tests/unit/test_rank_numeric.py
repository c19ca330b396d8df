"""Numerical ranks: correct if the singular values have a gap, undecided if not."""

from __future__ import annotations

import numpy as np

from m2bridge.linear.numeric import Ball, numeric_rank


def test_rank_with_a_gap_and_bad_scaling() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(60, 12)) @ rng.normal(size=(12, 40))
    matrix *= 10.0 ** rng.integers(-6, 6, size=(60, 1))
    result = numeric_rank(matrix)
    assert result.rank == result.candidate == 12
    assert result.gap > 1e4


def test_no_gap_is_undecided() -> None:
    rng = np.random.default_rng(0)
    left, _ = np.linalg.qr(rng.normal(size=(40, 40)))
    right, _ = np.linalg.qr(rng.normal(size=(40, 40)))
    smooth = left @ np.diag(10.0 ** -np.linspace(0, 18, 40)) @ right
    assert numeric_rank(smooth).rank is None


def test_balls_detect_a_column_of_rounding_errors() -> None:
    """x - x/3 - x/3 - x/3 is a column of rounding errors, which numeric_rank scales to unit norm and counts."""
    column, error = np.random.default_rng(0).normal(size=30), np.full(30, 1e-15)
    noise = column - column / 3 - column / 3 - column / 3
    matrix = np.column_stack([column, column**2, noise])
    assert numeric_rank(matrix).rank == 3
    assert Ball(matrix, np.column_stack([0 * error, error, error])).has_lines_around_zero
    assert Ball(matrix.T, np.vstack([0 * error, error, error])).has_lines_around_zero
    assert not Ball(matrix * [1, 1, 0], np.column_stack([error] * 3)).has_lines_around_zero


def test_degenerate_shapes() -> None:
    assert numeric_rank(np.zeros((3, 4))).rank == 0
    assert numeric_rank(np.zeros((0, 4))).rank == 0
    assert numeric_rank(np.eye(5)).rank == 5
    assert numeric_rank(np.array([[np.inf, 1.0]])).rank is None
