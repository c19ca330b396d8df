"""Dimensions of boundary and closure-only part against values derived by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from m2bridge.families import Lightning
from m2bridge.questions.boundary.criterion import decide
from m2bridge.questions.boundary.regions import dimensions, e2_text


@pytest.mark.parametrize(("d", "dp"), [(2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 3), (5, 2)])
def test_dimensions(d: int, dp: int) -> None:
    """Boundary points are h (x) q (x) k^2: d' + d + d parameters, two scalings: 2d + d' - 2.

    Closure-only points are h (x) q (x) S with S of rank 2, a set of dimension 2d - 1 (rank-2 symmetric d x d matrices:
    d*2 - 1), and two scalings: d' + d + (2d - 1) - 2 = 3d + d' - 3.
    """
    dims, evidence = dimensions(Lightning(d=d, dp=dp, parametrization="attention"), {}, seed=0)
    assert dims == {"boundary_dim": 2 * d + dp - 2, "closure_only_dim": 3 * d + dp - 3}
    assert all(item.value == dims[item.quantity] for item in evidence)


def test_inequality_of_the_closure_only_part() -> None:
    """det of the symmetric matrix of a binary quadric, times 4, for both quadrics: 4 a0 a2 - a1^2 + 4 b0 b2 - b1^2."""
    assert e2_text(Lightning(d=2, dp=1)) == "4*z0*z2-z1^2+4*z3*z5-z4^2"


@pytest.mark.parametrize(
    ("point", "where"),
    [
        # the slice a = (1, 0, z), b = (0, y, x) meets the closure in x^2 + z y^2 = 0 (Whitney's umbrella):
        (
            (1, 0, -4, 0, 1, 2),
            "undecided",
        ),  # x = 2, y = 1, z = -4: membership finds weights (with_m2/test_boundary.py)
        ((1, 0, -4, 0, 1, 1), "undecided"),  # x = 1 is not on it: membership finds none
        ((1, 0, -4, 0, 0, 0), "image"),  # the singular line below the pinch point
        ((1, 0, 0, 0, 0, 0), "boundary"),  # the pinch point
        ((1, 0, 4, 0, 0, 0), "closure-only"),  # the handle
    ],
)
def test_whitney_umbrella(point: tuple[int, ...], where: str) -> None:
    model = Lightning(d=2, dp=1, parametrization="attention")
    assert decide(model, [Fraction(c) for c in point]).where == where
