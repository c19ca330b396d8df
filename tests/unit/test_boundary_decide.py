"""Placing rational points exactly: without Macaulay2."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sympy

from m2bridge.claims.lightning_attention.said import boundary_points
from m2bridge.errors import InputError
from m2bridge.models import Lightning
from m2bridge.questions.boundary import exact, place_of_fiber
from m2bridge.questions.boundary.exact import Surd, as_surds, decide, split, square_root
from m2bridge.questions.boundary.parts import orbit_places
from m2bridge.questions.boundary.points import as_point, draw_examples, read_point, span_matrix
from m2bridge.questions.boundary.search import search

SIZES = [(2, 1, 1), (2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 2, 2), (3, 3, 3), (4, 2, 3)]


def layer(d: int, dp: int, a: int) -> Lightning:
    return Lightning(d=d, dp=dp, a=a, parametrization="attention")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_examples_are_found_where_they_were_built(size: tuple[int, int, int], seed: int) -> None:
    model = layer(*size)
    for example in draw_examples(model, seed):
        found = decide(model, example.coordinates)
        assert found.where == example.where, (example.name, found.reason)
        if found.A is not None:
            real = all(entry.is_real for entry in [*as_surds(found.A).flat, *as_surds(found.V).flat])
            assert real == (found.where != "closure-only")
            point = model.coordinates({"A": as_surds(found.A), "V": as_surds(found.V)})
            assert all(c == z for c, z in zip(point, example.coordinates, strict=True))


def test_weights_of_an_irrational_point_satisfy_sympy() -> None:
    # x^2 - 2 y^2 = (x - sqrt(2) y)(x + sqrt(2) y)
    model = layer(2, 1, 2)
    found = decide(model, [Fraction(c) for c in (1, 0, -2, 3, 0, -6)])
    A, V = (
        sympy.Matrix([[sympy.sympify(str(e)) for e in row] for row in as_surds(m)])
        for m in (found.A, found.V)
    )
    x, y = sympy.symbols("x y")
    first, second = A.T @ sympy.Matrix([x, y])
    value = (V @ sympy.Matrix([x, y]))[0]
    assert sympy.expand(first * value - (x**2 - 2 * y**2)) == 0
    assert sympy.expand(second * value - 3 * (x**2 - 2 * y**2)) == 0


def test_sturm_counts_the_real_factors() -> None:
    """d = 2, d' = 1, two proportional binary quadrics: two, one or no real roots on the line, counted by SymPy's Sturm chains."""
    model, x = layer(2, 1, 2), sympy.Symbol("x")
    places = {2: "image", 1: "boundary", 0: "closure-only"}
    for a, b, c in product(range(-2, 3), repeat=3):
        if (a, b, c) != (0, 0, 0):
            polynomial = sympy.Poly(a * x**2 + b * x + c, x)
            finite = polynomial.count_roots() if polynomial.degree() > 0 else 0
            roots = finite + (a == 0)  # distinct ones, that at infinity included
            assert decide(model, [Fraction(n) for n in (a, b, c, 2 * a, 2 * b, 2 * c)]).where == places[roots]


def test_complex_pair_is_the_conjugate_factorization() -> None:
    k, v = split(exact.quadric_matrix([Fraction(1), Fraction(0), Fraction(1)], 2))  # x^2 + y^2
    assert [str(c) for c in k] == ["1", "sqrt(-1)"]
    assert all(c.conjugate() == w for c, w in zip(k, v, strict=True))


def test_ranks_above_a_are_outside() -> None:
    full, thin = layer(3, 1, 3), layer(3, 1, 2)
    A, V = np.eye(3, dtype=int), np.array([[1, 2, 3]])
    point = [Fraction(int(c)) for c in full.coordinates({"A": A, "V": V})]
    assert decide(full, point).where == "image"
    assert decide(thin, point).where == "outside"


def test_a_perturbed_point_is_outside() -> None:
    model = layer(2, 2, 2)
    point = list(draw_examples(model, 0)[0].coordinates)
    point[0] += Fraction(1, 10**30)  # no float sees it
    assert decide(model, point).where == "outside"


def test_zero_and_one_dimensional_tokens() -> None:
    assert decide(layer(2, 1, 2), [Fraction(0)] * 6).where == "boundary"
    assert decide(layer(1, 2, 1), [Fraction(0)] * 2).where == "image"
    assert decide(layer(1, 2, 1), [Fraction(3), Fraction(-5)]).where == "image"


@pytest.mark.parametrize(
    ("fiber", "where"),
    [
        ((0, 0, 0), "outside"),
        ((1, 1, 1), "image"),
        ((2, 2, 2), "image"),
        ((2, 2, 0), "closure-only"),
        ((3, 1, 1), "boundary"),
        ((2, 2, -2), "impossible"),
    ],
)
def test_place_of_a_fiber(fiber: tuple[int, int, int], where: str) -> None:
    assert place_of_fiber(fiber) == where


@pytest.mark.parametrize("size", SIZES)
def test_statements_as_the_paper_prints_them(size: tuple[int, int, int]) -> None:
    """Theorem 3.4 and Corollary A.6 on boundary points hold where their hypotheses do (derivation: decide's docstring)."""
    model = layer(*size)
    places = orbit_places(model)
    applies = size != (2, 1, 1)
    found = boundary_points(model, SimpleNamespace(orbits=places))
    for check in found.values():
        assert check.applies == applies
        assert check.agrees is (True if applies else None)
    boundary = {(p.rank_a, p.rank_v, p.meet) for p in places if p.where == "boundary" and p.rank_a * p.rank_v}
    assert boundary == {(1, 1, 1)}


def test_search_reaches_what_is_in_the_image_and_misses_the_rest() -> None:
    model = layer(2, 2, 2)
    for number, example in enumerate(draw_examples(model, 3)):
        found = search(model, example.coordinates, np.random.default_rng(number))
        assert found.reached is (example.where in ("image", "boundary")), (example.name, found.distance)


def test_search_says_nothing_where_floats_cannot_tell() -> None:
    found = search(
        layer(2, 1, 2),
        [Fraction(1), Fraction(0), Fraction(1, 10**20), *[Fraction(0)] * 3],
        np.random.default_rng(0),
    )
    assert found.distance < 1e-7
    assert found.reached is None


def test_surds() -> None:
    w = Surd(Fraction(1, 2), 3, -2)
    assert w * w.conjugate() == Fraction(1, 4) + 18
    assert w - w == 0
    assert square_root(Fraction(-9, 4)) == Surd(0, Fraction(3, 2), -1)
    assert square_root(Fraction(50, 8)) == Fraction(5, 2)
    with pytest.raises(ValueError, match="one quadratic field"):
        Surd(0, 1, 2) + Surd(0, 1, 3)


def test_points_are_read_exactly(tmp_path: Path) -> None:
    model = layer(2, 1, 2)
    expected = (Fraction(1), Fraction(1, 10), Fraction(-2, 3), *[Fraction(0)] * 3)
    assert read_point(model, "1, 0.1, -2/3, 0, 0, 0") == expected
    assert read_point(model, '[1, 0.1, "-2/3", 0, 0, 0]') == expected
    file = tmp_path / "point.json"
    file.write_text(json.dumps({"coordinates": ["1", "0.1", "-2/3", 0, 0, 0]}))
    assert read_point(model, str(file)) == expected
    weights = {"A": [[1, 0], [0, 1]], "V": [[1, 2]]}
    assert as_point(model, weights) == (1, 2, 0, 0, 1, 2)
    by_queries = {"Q": [[1, 0], [0, 1]], "K": [[1, 0], [0, 1]], "V": [[1, 2]]}
    assert as_point(model, by_queries) == as_point(model, weights)


def test_all_coefficients_lead_back_to_the_span() -> None:
    model = layer(2, 1, 2)
    matrix = span_matrix(model)
    assert matrix.shape == (40, 6)
    point = tuple(Fraction(c) for c in (1, 2, 3, 4, 5, 6))
    assert as_point(model, list(matrix @ np.array(point, dtype=object))) == point
    with pytest.raises(InputError, match="outside the 6-dimensional span"):
        as_point(model, [1] * 40)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2", "has 2 coordinates"),
        ("a,b,c,d,e,f", "no exact number"),
        ("missing.json", "no such file"),
        ('{"A": [[1, 0]], "V": [[1, 2]]}', "2 x 2 matrix"),
        ('{"A": 3, "V": [[1, 2]]}', "2 x 2 matrix"),
        ("[1, NaN, 0, 0, 0, 0]", "not a number"),
        ("[1, 2", "not JSON"),
        ('{"B": 1}', "neither coordinates nor weights"),
        ("1/0,0,0,0,0,0", "no exact number"),
        ("[true,0,0,0,0,0]", "no exact number"),
    ],
)
def test_bad_points_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_point(layer(2, 1, 2), text)


def test_weights_of_too_high_rank_are_refused() -> None:
    with pytest.raises(InputError, match="rk A = 2"):
        as_point(layer(2, 1, 1), {"A": [[1, 0], [0, 1]], "V": [[1, 2]]})


def test_floats_are_refused() -> None:
    with pytest.raises(InputError, match="no exact number"):
        as_point(layer(2, 1, 2), [0.1, 0, 0, 0, 0, 0])
