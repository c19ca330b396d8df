"""Dimensions with a citation or a derivation beside each number; computed, never read from a formula."""

from __future__ import annotations

import pytest

from m2bridge.questions.dimension import dimension

PROVED = [
    # Henry, Marchetti, Kohn, Eq. 7: 2ad + dd' - a^2 - 1 for a <= d
    (
        "lightning(d=2,dp=1,a=1,t=2)",
        4,
    ),  # 4+2-1-1; hypotheses fail, but the image is 4-dimensional: two conics
    ("lightning(d=2,dp=1,a=2,t=2)", 5),  # 8+2-4-1
    ("lightning(d=2,dp=2,a=1,t=2)", 6),  # 4+4-1-1
    ("lightning(d=3,dp=1,a=2,t=2)", 10),  # 12+3-4-1
    ("lightning(d=3,dp=2,a=5,t=3)", 14),  # d^2+dd'-1 = 9+6-1
    ("deep-lightning(d=[3,3],a=[2],t=2)", 16),  # Eq. 7: 12+9-4-1; Eq. 14 would leave delta undetermined
    # Eq. 14: d=(3,3,3), a=2: 12-4+18-9-2+8 = 23
    ("deep-lightning(d=[3,3,3],a=[2,2],t=3)", 23),
    ("deep-lightning(d=[3,3,3],a=[2,2],t=2)", 23),  # Corollary 3.8 holds at t = 2 too
    # d_0=5, d_l=4, delta=3, a=(2,3,7): alpha=(2,3,3): 20-4 + 3*9 - 9 - 3 + 9 + 9 = 49
    ("deep-lightning(d=[5,3,3,4],a=[2,3,7],t=3)", 49),
    # Eq. 16 = Eq. 14 + l
    ("softmax(d=[3,3,3],a=[2,2],t=3)", 25),
    ("softmax(d=[4,4,4],a=[2,2],t=3)", 40),
    ("softmax(d=[10,10,10],a=[2,2],t=3)", 172),
    ("softmax(d=[3,2],a=[2],t=2)", 14),  # Theorem 3.9: dim D_2(3x3) + 6 = 8 + 6
    # linear networks: matrices of rank <= min of the widths, r (m + n - r)
    ("linear(widths=[3,2,3])", 8),
    ("linear(widths=[4,5,2])", 8),
    ("linear(widths=[5,2,3,4])", 14),
    # convolutions: |k| - L + 1 (Kohn, Montufar, Shahverdi, Trager; arXiv:2401.04564)
    ("convolution(filters=[2,2],r=2)", 3),
    ("convolution(filters=[3,2,2],r=2)", 5),
    # Alexander and Hirschowitz: the four exceptions, each one below expected
    ("mlp(widths=[3,5,1],r=4)", 14),  # of 15 (Clebsch)
    ("mlp(widths=[4,9,1],r=4)", 34),  # of 35
    ("mlp(widths=[5,14,1],r=4)", 69),  # of 70
    ("mlp(widths=[5,7,1],r=3)", 34),  # of 35 (Palatini)
    # quadrics: symmetric n x n matrices of rank <= k: kn - k(k-1)/2
    ("mlp(widths=[3,2,1],r=2)", 5),
    ("mlp(widths=[5,3,1],r=2)", 12),
    # not exceptional: min(kn, C(n+r-1, r))
    ("mlp(widths=[3,4,1],r=4)", 12),
    ("mlp(widths=[2,3,1],r=5)", 6),
]


UNDECIDED_IN_FLOATS = {"linear(widths=[5,2,3,4])"}  # two gaps in the singular values


@pytest.mark.parametrize(("spec", "expected"), PROVED)
def test_dimension_is_proved(spec: str, expected: int) -> None:
    answer = dimension(spec, engine=False, certify=False)
    assert answer.image_dim == expected
    assert answer.certainty.exact
    assert answer.agreement is not False
    assert answer.numeric_rank == (None if spec in UNDECIDED_IN_FLOATS else expected)
    assert answer.parameters == answer.image_dim + answer.generic_fiber_dim


@pytest.mark.parametrize(
    ("spec", "expected", "would_be"),
    [
        # t = 1: each layer shows the symmetric part of A only: L (9) + 2 symmetric 3x3 (6 each) - 2 scalings
        ("deep-lightning(d=[3,3,3],a=[2,2],t=1)", 19, 23),
        # widening: (M_1, M_2, L) are 2x2: 4 + 4 + 4 - 2 scalings; Eq. 14 with delta = 3 would say 13
        ("deep-lightning(d=[2,3,2],a=[2,2],t=3)", 10, 13),
        # a_1 = 1: tokens of rank one show the symmetric part of M_2: 20 - (8 - 6)
        ("deep-lightning(d=[3,3,3],a=[1,2],t=3)", 18, 20),
        # M_1 of rank one 7, symmetric parts of M_2 and M_3 10 each, L 16, less 3 scalings; Eq. 14 would say 44
        ("deep-lightning(d=[4,4,4,4],a=[1,2,2],t=3)", 40, 44),
        # one token: softmax is 1, the network is the linear map L
        ("softmax(d=[3,3,3],a=[2,2],t=1)", 9, 25),
    ],
)
def test_formulas_do_not_apply_there(spec: str, expected: int, would_be: int) -> None:
    answer = dimension(spec, engine=False, certify=False)
    assert answer.formula is not None
    assert answer.formula.value is None
    assert answer.formula.agrees is None
    assert answer.image_dim == expected
    assert answer.image_dim != would_be
    assert answer.certainty.exact


def test_defects_are_reported() -> None:
    answer = dimension("mlp(widths=[3,5,1],r=4)", engine=False, certify=False)
    assert (answer.expected_dim, answer.defect) == (15, 1)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # H heads, d' >= 2: min(H (dim D_a + dd' - 1), h(d^2 + dd') - h^2, dd' C(d+1, 2)), h = min(H, d^2, dd'),
        # because sum_h A_h (x) V_h is a matrix of rank <= H of size d^2 x dd'
        ("multi-head(d=2,dp=2,a=2,heads=1,t=2)", 7),
        ("multi-head(d=2,dp=2,a=2,heads=2,t=2)", 12),  # min(14, 12, 12)
        ("multi-head(d=3,dp=3,a=3,heads=2,t=2)", 32),  # min(34, 32, 54)
        ("multi-head(d=3,dp=2,a=1,heads=2,t=2)", 20),  # min(2 (5+6-1), 26, 36)
        # skip connections, t >= 2: sum over layers of dim D_a + d^2 - 1, as GL between the layers is gone
        ("skip-lightning(d=[2,2],a=[2],t=2)", 7),
        ("skip-lightning(d=[2,2,2],a=[2,2],t=2)", 14),
        ("skip-lightning(d=[3,3,3],a=[2,2],t=2)", 32),
        # one token: symmetric 3x3 matrices of rank <= 4 are all: 2 (6 + 9 - 1)
        ("skip-lightning(d=[3,3,3],a=[2,2],t=1)", 28),
        # a < d does not help: 3 (8 + 9 - 1) = 48, but matrices 9 x 9 of rank <= 3 have dimension 45
        ("multi-head(d=3,dp=3,a=2,heads=3,t=2)", 45),
    ],
)
def test_heads_and_skip_connections(spec: str, expected: int) -> None:
    answer = dimension(spec, engine=False, certify=False)
    assert answer.image_dim == expected
    assert answer.certainty.exact
