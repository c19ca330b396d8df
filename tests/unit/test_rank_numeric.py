"""Numerical ranks: correct if the singular values have a gap, undecided if not."""

from __future__ import annotations

import numpy as np

from m2bridge import from_callable
from m2bridge.linear.numeric import numeric_rank
from m2bridge.programs.arithmetics import FloatArithmetic
from m2bridge.programs.jacobians import jacobian_block
from m2bridge.programs.run import Lettered
from m2bridge.questions.dimension.checks import rounding_noise


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


def test_a_column_of_rounding_errors_is_noticed() -> None:
    """x - x/3 - x/3 - x/3 is zero; in float64 it is a column of rounding errors, which is scaled to unit norm and counted."""
    model = from_callable(
        lambda x, w: w[0] * x + w[1] * x**2 + w[2] * (x - x / 3 - x / 3 - x / 3),
        {"w": (3,)},
        inputs={"x": ()},
    )
    program, columns = model.program, np.arange(3)
    given = {
        "w": Lettered("", np.array([0.3, 0.5, 0.7])),
        "x": Lettered("N", np.random.default_rng(0).normal(size=30)),
    }
    matrix = jacobian_block(program, FloatArithmetic(), given, columns)
    assert numeric_rank(matrix).rank == 3
    assert rounding_noise(program, given, columns, matrix)
    assert not rounding_noise(program, given, columns[:2], matrix[:, :2])


def test_degenerate_shapes() -> None:
    assert numeric_rank(np.zeros((3, 4))).rank == 0
    assert numeric_rank(np.zeros((0, 4))).rank == 0
    assert numeric_rank(np.eye(5)).rank == 5
    assert numeric_rank(np.array([[np.inf, 1.0]])).rank is None
