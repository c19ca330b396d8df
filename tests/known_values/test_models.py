"""Dimensions with a citation or a derivation beside them, against formulas and against ranks over F_p.

The rank of the Jacobian at one point over F_p is a lower bound of the dimension over QQ; the formulas give
the value.
"""

from __future__ import annotations

import numpy as np
import pytest
from flint import nmod_mat

from m2bridge.families import Model, jacobian, parse_spec
from m2bridge.families.catalogue import span_dim
from m2bridge.families.perceptron_knowledge import waring_dim

P = 8388593


def image_rank(model: Model, samples: int = 40) -> int:
    """Rank of the Jacobian of the outputs at random inputs, by unconstrained weights."""
    model, rng = model.free, np.random.default_rng(0)
    weights = model.draw_weights(rng, P)
    inputs = rng.integers(0, P, (samples, *(model.input_shape or ())))
    _, matrix = jacobian(model, weights, inputs, P)
    return int(nmod_mat(*matrix.shape, matrix.reshape(-1).tolist(), P).rank())


@pytest.mark.parametrize(
    ("spec", "dimension"),
    [
        # Henry, Marchetti, Kohn, arXiv:2408.17221, Equation 7: 2ad + dd' - a^2 - 1 for a <= d, d^2 + dd' - 1
        # else
        ("lightning(d=2,dp=1,a=2,t=2)", 5),  # 8 + 2 - 4 - 1, the value printed below Theorem 3.4
        ("lightning(d=3,dp=2,a=2,t=2)", 13),  # 12 + 6 - 4 - 1
        ("lightning(d=3,dp=2,a=1,t=3)", 10),  # 6 + 6 - 1 - 1
        ("lightning(d=2,dp=2,a=5,t=2)", 7),  # 4 + 4 - 1
        (
            "deep-lightning(d=[3,3],a=[2],t=3)",
            16,
        ),  # one layer: 12 + 9 - 4 - 1; Equation 14 with delta=2 would say 15
        # Equation 14: 2 a1 d0 - a1^2 + delta (d0 + dl) - delta^2 - l + sum (2 ai delta - ai^2)
        ("deep-lightning(d=[3,3,3],a=[2,2],t=3)", 23),  # 8 + 18 - 9 - 2 + 8
        ("deep-lightning(d=[3,2,3],a=[2,2],t=3)", 18),  # 8 + 12 - 4 - 2 + 4
        ("deep-lightning(d=[2,2,2,2],t=3)", 13),  # 4 + 8 - 4 - 3 + 8
        # products of matrices: r (m + n - r) for rank <= r (Harris, Algebraic Geometry, Proposition 12.2)
        ("linear(widths=[3,2,3])", 8),
        ("linear(widths=[4,5,3])", 12),
        # Shahverdi, Marchetti, Kohn, arXiv:2410.00722: |k| - L + 1 for r > 1
        ("convolution(filters=[2,2],r=2)", 3),
        ("convolution(filters=[3,2,2],strides=[2,1,1],r=2)", 5),
        # symmetric 3 x 3 matrices of rank <= 2: 6 - 1; binary quadrics: 3; plane quartics of rank <= 5: 14,
        # not 15 (Clebsch)
        ("mlp(widths=[3,2,1],r=2)", 5),
        ("mlp(widths=[2,3,1],r=2)", 3),
        ("mlp(widths=[3,5,1],r=4)", 14),
        # equal widths n: l n^2 - (l-1) n (Finkel, Rodriguez, Wu, Yahl, arXiv:2408.04569)
        ("mlp(widths=[3,3,3],r=2)", 15),
        ("mlp(widths=[2,2,2],r=3)", 6),
    ],
)
def test_formulas_meet_ranks(spec: str, dimension: int) -> None:
    model = parse_spec(spec)
    assert model.knowledge.formula is not None
    assert model.knowledge.formula.applies
    assert model.knowledge.formula.value == dimension
    assert image_rank(model) == dimension


@pytest.mark.parametrize(
    ("spec", "failing", "rank"),
    [
        ("lightning(d=2,dp=1,t=1)", "t >= 2", 4),  # binary cubics: a 4-dimensional space
        ("lightning(d=3,dp=1,a=1,t=2)", "d, d' >= 2 or d, a >= 2", 7),  # q (x) kv: 3 + (3 + 3 - 1) - 1
        (
            "deep-lightning(d=[2,3,2],t=3)",
            "d_0, d_l >= delta",
            10,
        ),  # Equation 14 would say 13; (M, L) has 4 + 4 + 4 - 2
        (
            "deep-lightning(d=[3,3,3],a=[1,2],t=3)",
            "every a_i >= 2",
            18,
        ),  # M_2 is seen up to its skew part only
        ("mlp(widths=[2,3,2],r=2)", "all widths are equal and >= 2", 6),
    ],
)
def test_a_formula_has_no_value_if_a_hypothesis_fails(spec: str, failing: str, rank: int) -> None:
    model = parse_spec(spec)
    assert model.knowledge.formula is not None
    assert model.knowledge.formula.value is None
    assert [text for text, holds in model.knowledge.formula.hypotheses if not holds] == [failing]
    assert image_rank(model) == rank


@pytest.mark.parametrize(
    ("spec", "bound"),
    [
        # layers with skip connections: sum of dim D_a + d^2 - 1 over layers, the scaling of each layer
        # survives
        ("skip-lightning(d=[2,2,2],a=[2,2],t=2)", 14),
        ("skip-lightning(d=[2,2,2],a=[1,2],t=2)", 13),
        # H heads: min of H (dim D_a + dd' - 1), h (d^2 + dd') - h^2 with h = min(H, d^2, dd'), dd' C(d+1, 2)
        ("multi-head(d=3,dp=3,a=3,heads=2,t=2)", 32),
        ("multi-head(d=3,dp=3,a=1,heads=2,t=2)", 26),
        ("multi-head(d=2,dp=2,a=2,heads=3,t=2)", 12),
    ],
)
def test_bounds_without_a_formula(spec: str, bound: int) -> None:
    model = parse_spec(spec)
    assert model.knowledge.formula is None
    assert model.knowledge.dimension_bound is not None
    assert model.knowledge.dimension_bound.value == bound
    assert image_rank(model) == bound


@pytest.mark.parametrize(
    ("r", "variables", "summands", "dimension"),
    [
        # Alexander, Hirschowitz: the exceptions of degree >= 3, each one less than expected
        (3, 5, 7, 34),
        (4, 3, 5, 14),
        (4, 4, 9, 34),
        (4, 5, 14, 69),
        (3, 5, 6, 30),
        (3, 3, 4, 10),
    ],
)
def test_sums_of_powers(r: int, variables: int, summands: int, dimension: int) -> None:
    assert waring_dim(variables, summands, r) == dimension


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        # Theorem 3.9: dim D_a + dd'; Equation 16 (if Conjecture 3.10 holds): Equation 14 plus l
        ("softmax(d=[3,2],a=[2],t=2)", 14),
        ("softmax(d=[3,3,3],a=[2,2],t=3)", 25),
        ("softmax(d=[10,10,10],a=[2,2],t=3)", 172),  # 2 (40 - 4) + 100
    ],
)
def test_softmax_formula(spec: str, value: int) -> None:
    formula = parse_spec(spec).knowledge.formula
    assert formula is not None
    assert formula.value == value


def test_spans() -> None:
    # (2,1,2) at t = 2: 40 coefficients, 34 linear relations, 6 Segre coordinates that are independent
    assert span_dim(parse_spec("lightning(d=2,dp=1,coordinates=full)")) == 6
    # d d' C(d+1, 2)
    assert span_dim(parse_spec("lightning(d=3,dp=2)")) == 36
