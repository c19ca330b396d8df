"""Generators that are recognised: textbook ideals, and all of one layer of lightning attention at small sizes."""

from __future__ import annotations

import pytest

from m2bridge.engine import Engine
from m2bridge.questions.closure import closure
from m2bridge.questions.closure.names import coefficients_of


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
        # the rational normal quintic is toric (Harris, Example 1.14)
        ("map:s,t->s^5;s^4*t;s^3*t^2;s^2*t^3;s*t^4;t^5", ("10 of degree 2 = binomials of a toric ideal",)),
        # one layer of attention with d' = 1: the quadrics q_m = alpha_m * nu, m = 1..d, have a common linear factor
        ("lightning(d=2,dp=1)", ("1 of degree 4 = resultants of two binary forms of degree 2",)),
        # d = 3: combinations of the q_m are products, of rank <= 2, and on a line all q_m are multiples of one linear form: these
        # are S^3 (C^3) (x) 1 and 1 (x) S_33 (C^3), of dimension 10 each; on lines: S_22 (C^3) (x) S_44 (C^3), 6 * 15 = 90
        ("lightning(d=3,dp=1,a=3)", (
            "10 of degree 3 = 3-minors of the 3 x 3 matrix of monomials of degree 2 in token 2 by inputs in token 1, on every "
            "2-dimensional space of token 2",
            "10 of degree 3 = 3-minors of the 3 x 3 matrix of inputs in token 2 by inputs in token 2, at every value of token 1",
            "90 of degree 4 = resultants of two binary forms of degree 2, on every 2-dimensional space of token 1, on every "
            "2-dimensional space of token 2",
        )),
        # d' = 2: q_mn = alpha_m * nu_n, q_11 q_22 = q_12 q_21 as binary quartics, and two of them with a common factor
        ("lightning(d=2,dp=2)", (
            "5 of degree 2 = 2-minors of the 2 x 2 matrix of outputs by inputs in token 1, at every value of token 2",
            "5 of degree 4 = resultants of two binary forms of degree 2, at every value of token 1",
            "5 of degree 4 = resultants of two binary forms of degree 2, of every combination of outputs",
        )),
    ],
)  # fmt: skip
def test_generators_are_named(engine: Engine, spec: str, names: tuple[str, ...]) -> None:
    answer = closure(spec, engine=engine)
    assert answer.names == names
    for name in names:
        assert name in answer.view().facts[2][1]


def test_a_generator_that_is_no_member_of_a_family_is_not_named(engine: Engine) -> None:
    answer = closure("convolution(filters=[2,2],r=2)", engine=engine)
    assert dict(answer.generator_counts) == {2: 1, 3: 3}
    assert answer.names == ("1 of degree 3 = 3-minors of the 3 x 3 matrix of inputs by inputs",)
    assert (
        closure("linear(widths=[3,1,3])", field=101, engine=engine).names == ()
    )  # ranks of points mean little there


def test_an_array_of_derivatives_has_the_factorials_of_its_monomials() -> None:
    found = coefficients_of(["y[1]: x[1]^2", "y[1]: x[1]*x[2]", "y[1]: x[2]^2"])
    assert found is not None
    assert found.places.tolist() == [[[0, 1], [1, 2]]]
    assert found.factors.tolist() == [[[2, 1], [1, 2]]]
    assert coefficients_of(["s^2", "s*t"]) is None
