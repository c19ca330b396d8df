"""Equations whose number, degree or shape is known from elsewhere.

The generator counts of one-layer attention in Segre coordinates have been computed independently with Macaulay2's `ker` over
ZZ/32003 (with_m2/test_closure.py repeats that); the degrees follow from the intersection number derived in
`m2bridge.families.attention_knowledge.layer_degree`. Each other value carries its source.
"""

from __future__ import annotations

from math import comb

import pytest

from m2bridge.families import parse_spec
from m2bridge.families.attention_knowledge import determinantal_degree
from m2bridge.families.attention_strata import porteous_degree
from m2bridge.families.polynomial_map import from_text
from m2bridge.questions.closure import interpolate

ATTENTION = [
    # (d, d', a), coordinates d d' C(d+1,2), generators by degree, codimension, degree of the closure
    ((2, 1, 1), 6, {2: 3}, 2, 3),
    ((2, 1, 2), 6, {4: 1}, 1, 4),
    ((2, 2, 1), 12, {2: 15, 4: 5}, 6, 20),
    ((2, 2, 2), 12, {2: 5, 4: 10}, 5, 20),
    ((3, 1, 1), 18, {2: 45, 3: 10}, 11, 45),
    ((3, 1, 2), 18, {3: 30, 4: 90}, 8, 108),
    ((3, 1, 3), 18, {3: 20, 4: 90}, 7, 45),
]


@pytest.mark.parametrize(("size", "coordinates", "generators", "codim", "degree"), ATTENTION)
def test_one_layer_attention(
    size: tuple[int, int, int], coordinates: int, generators: dict[int, int], codim: int, degree: int
) -> None:
    d, dp, a = size
    model = parse_spec(f"lightning(d={d},dp={dp},a={a})")
    interpolation = interpolate(model, 4)
    assert (interpolation.span.dim, interpolation.counts) == (coordinates, generators)
    counted = model.knowledge.closure_degree
    assert counted is not None
    assert counted.value == degree
    # dimension: D_a has a(2d-a) parameters, V has dd', one scaling is lost (Corollary 3.3)
    assert codim == coordinates - (a * (2 * d - a) + d * dp - 1)


def test_the_quartic_is_the_resultant_of_two_binary_quadrics() -> None:
    """(2,1,2): alpha_1 nu and alpha_2 nu share the factor nu, so the resultant of the two quadrics vanishes.

    Res = (a0 b2 - a2 b0)^2 - (a0 b1 - a1 b0)(a1 b2 - a2 b1) (Sylvester's determinant).
    """
    import sympy

    a0, a1, a2, b0, b1, b2 = z = sympy.symbols("z0:6")
    resultant = sympy.Poly(
        (a0 * b2 - a2 * b0) ** 2 - (a0 * b1 - a1 * b0) * (a1 * b2 - a2 * b1), *z, modulus=32003
    )
    found = interpolate(parse_spec("lightning(d=2,dp=1,a=2)"), 4).generators[4][0]
    ours = sympy.Poly(dict(found), *z, modulus=32003)
    assert ours.monic() == resultant.monic()


def test_rank_one_attention_with_one_output_is_a_segre_variety() -> None:
    """(2,1,1): q_m (k nu): rank-one 2x3 matrices (q) x (binary quadric), so the 2-minors of a 2x3 matrix: degree 3."""
    assert interpolate(parse_spec("lightning(d=2,dp=1,a=1)"), 2).counts == {2: comb(2, 2) * comb(3, 2)}


@pytest.mark.parametrize(
    ("spec", "generators"),
    [
        # three binary quadrics in the span of two squares: the 3x3 determinant of their coefficients (as in Kileel, Trager,
        # Bruna, arXiv:1905.12207)
        ("mlp(widths=[2,2,3],r=2)", {3: 1}),
        # sums of two r-th powers of binary forms: 3-minors of the catalecticant, the secant variety of the rational normal curve
        # (Sylvester; degree C(r-1, 2) = 3, 6, 10). r=4: one 3x3 determinant; r=5: 3-minors of 3x4; r=6: of 3x5
        ("mlp(widths=[2,2,1],r=4)", {3: comb(3, 3)}),
        ("mlp(widths=[2,2,1],r=5)", {3: comb(4, 3)}),
        ("mlp(widths=[2,2,1],r=6)", {3: comb(5, 3)}),
    ],
)
def test_polynomial_perceptrons(spec: str, generators: dict[int, int]) -> None:
    assert interpolate(parse_spec(spec), 4).counts == generators


@pytest.mark.parametrize("n", [3, 4, 5])
def test_rational_normal_curves(n: int) -> None:
    """C(n, 2) quadrics (Harris, Algebraic Geometry, Lecture 1), Hilbert function nk + 1."""
    interpolation = interpolate(
        from_text(
            "curve",
            ["s", "t"],
            [f"s^{n - i}*t^{i}" if 0 < i < n else f"{'st'[i > 0]}^{n}" for i in range(n + 1)],
        ),
        4,
    )
    assert interpolation.counts == {2: comb(n, 2)}
    assert interpolation.hilbert_function == tuple(n * k + 1 for k in range(5))


def test_degrees_of_determinantal_varieties() -> None:
    """Harris, Example 19.10: rank <= 1 is the Segre variety of degree C(2d-2, d-1), rank <= d-1 has degree d."""
    for d in range(2, 6):
        assert determinantal_degree(d, d, 1) == porteous_degree(d, d, 1) == comb(2 * d - 2, d - 1)
        assert determinantal_degree(d, d, d - 1) == d
        assert determinantal_degree(d, d, d) == determinantal_degree(d, d, d + 1) == 1
