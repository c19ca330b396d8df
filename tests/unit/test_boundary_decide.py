"""Placing rational points exactly: without Macaulay2."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import sympy

from m2bridge.errors import InputError
from m2bridge.families import Attention, Lightning
from m2bridge.papers.lightning_attention.comments import boundary_points
from m2bridge.questions.boundary import decide
from m2bridge.questions.boundary.points import draw_examples
from m2bridge.questions.boundary.regions import orbit_locations
from m2bridge.questions.membership.points import target_of

SIZES = [(2, 1, 1), (2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 2, 2), (3, 3, 3), (4, 2, 3)]


def layer(d: int, dp: int, a: int) -> Attention:
    return Lightning(d=d, dp=dp, a=a, parametrization="attention")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_examples_are_found_where_they_were_built(size: tuple[int, int, int], seed: int) -> None:
    """Where both ranks are one; elsewhere weights decide, which with_m2/test_boundary.py asks for."""
    model = layer(*size)
    for example in draw_examples(model, seed):
        found = decide(model, example.coordinates)
        one = found.rank_a * found.rank_v == 1
        allowed = {example.where} if one else {"undecided"} | ({"outside"} & {example.where})
        assert found.where in allowed, (example.name, found.reason)
        assert one == (example.name not in ("generic", "no factors")) or size == (2, 1, 1)


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


def test_ranks_above_a_are_outside() -> None:
    full, thin = layer(3, 1, 3), layer(3, 1, 2)
    A, V = np.eye(3, dtype=int), np.array([[1, 2, 3]])
    point = [Fraction(int(c)) for c in full.coordinates({"A": A, "V": V})]
    assert decide(full, point).where == "undecided"
    assert decide(thin, point).where == "outside"


def test_zero_and_one_dimensional_tokens() -> None:
    assert decide(layer(2, 1, 2), [Fraction(0)] * 6).where == "boundary"
    assert decide(layer(1, 2, 1), [Fraction(0)] * 2).where == "image"
    assert decide(layer(1, 2, 1), [Fraction(3), Fraction(-5)]).where == "image"


@pytest.mark.parametrize("size", SIZES)
def test_statements_as_the_paper_prints_them(size: tuple[int, int, int]) -> None:
    """Theorem 3.4 and Corollary A.6 on boundary points hold where their hypotheses do (derivation: decide's docstring)."""
    model = layer(*size)
    places = orbit_locations(model)
    applies = size != (2, 1, 1)
    found = boundary_points(model, SimpleNamespace(orbits=places))
    for check in found.values():
        assert check.applies == applies
        assert check.agrees is (True if applies else None)
    boundary = {(p.rank_a, p.rank_v, p.meet) for p in places if p.where == "boundary" and p.rank_a * p.rank_v}
    assert boundary == {(1, 1, 1)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2", "has 2 coordinates"),
        ("a,b,c,d,e,f", "'a'"),
        ("missing.json", "missing.json"),
        ('{"weights": {"A": [[1, 0]], "V": [[1, 2]]}}', r"A .* 2 x 2"),
        ('{"weights": {"A": 3, "V": [[1, 2]]}}', r"A .* 2 x 2"),
        ("[1, NaN, 0, 0, 0, 0]", "NaN"),
        ("[1, 2", "not JSON"),
        ('{"B": 1}', "is not a point"),
        ("1/0,0,0,0,0,0", "1/0"),
        ("[true,0,0,0,0,0]", "True"),
    ],
)
def test_bad_points_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        target_of(layer(2, 1, 2), text)


def test_weights_of_too_high_rank_are_refused() -> None:
    with pytest.raises(InputError, match=r"A .*rank 2"):
        target_of(layer(2, 1, 1), {"weights": {"A": [[1, 0], [0, 1]], "V": [[1, 2]]}})


def test_floats_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="exact"):
        target_of(layer(2, 1, 2), [float("inf"), 0, 0, 0, 0, 0])
