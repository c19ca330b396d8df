"""Generators that are recognised as minors: textbook ideals, and one that is none."""

from __future__ import annotations

import pytest

from m2bridge.engine import Engine
from m2bridge.questions.closure import closure
from m2bridge.questions.closure.names import flattenings


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        # matrices of rank <= 1 and <= 2: the minors generate (Bruns, Vetter, Determinantal Rings, Theorem 2.10)
        ("linear(widths=[3,1,3])", ("9 of degree 2 = 2-minors of the 3 x 3 matrix of outputs by inputs",)),
        ("linear(widths=[3,2,4])", ("4 of degree 3 = 3-minors of the 4 x 3 matrix of outputs by inputs",)),
        # powers of linear forms: the rational normal quartic, by the 2-minors of a 2 x 4 catalecticant (Harris, Example 1.14)
        ("mlp(widths=[2,1,1],r=4)", ("6 of degree 2 = 2-minors of the 2 x 4 matrix of inputs by monomials of degree 3",)),
        # three quadrics in a plane: the determinant of their coefficients
        ("mlp(widths=[2,2,3],r=2)", ("1 of degree 3 = 3-minors of the 3 x 3 matrix of outputs by monomials of degree 2",)),
        # one quartic, the resultant of two binary quadrics, is no minor of these matrices
        ("lightning(d=2,dp=1)", ()),
    ],
)  # fmt: skip
def test_generators_are_named(engine: Engine, spec: str, names: tuple[str, ...]) -> None:
    answer = closure(spec, engine=engine)
    assert answer.names == names
    for name in names:
        assert name in answer.view().facts[2][1]


def test_a_matrix_of_derivatives_has_the_factorials_of_its_monomials() -> None:
    ((left,)) = [f for f in flattenings(["y[1]: x[1]^2", "y[1]: x[1]*x[2]", "y[1]: x[2]^2"])]
    assert left.places.tolist() == [[0, 1], [1, 2]]
    assert left.factors.tolist() == [[2, 1], [1, 2]]
    assert flattenings(["s^2", "s*t"]) == []
