"""The pair of weights that contradicts Theorem 3.7 as printed, as an exact polynomial identity."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from m2bridge.families import DeepLightning
from m2bridge.questions.equal import comparison
from m2bridge.questions.fiber.equivalent_weights import counterexample, skew_partner
from m2bridge.questions.point import Point, point_from_weights

J, N, L = [[0, 1], [-1, 0]], [[3, 5], [2, 7]], [[2, 3], [5, 11]]
DIVIDED = [[Fraction(x, 11) for x in row] for row in L]


def point(M1: Any, M2: Any, last: Any, tokens: int) -> Point:
    model = DeepLightning(d=(len(M1), len(M1), len(last)), t=tokens, parametrization="virtual")
    return point_from_weights(model, {"M1": M1, "M2": M2, "L": last})


def same_function(first: tuple[Any, Any, Any], second: tuple[Any, Any, Any], tokens: int) -> bool:
    """Whether all coefficients of both polynomial maps were found equal."""
    one, other = point(*first, tokens), point(*second, tokens)
    return comparison(one.model, one.weights, other.weights, 0).proved_same


@pytest.mark.parametrize("tokens", [2, 3])
def test_the_identity_holds_over_the_rationals(tokens):
    """det N = 11: (J, N, L) and (N, J, L / 11), because S J S = det(S) J and J S J^T = adj(S) for symmetric 2 x 2 S."""
    assert same_function((J, N, L), (N, J, DIVIDED), tokens)


def test_wrong_partners_are_distinguished():
    assert not same_function((J, N, L), (N, J, L), 2)  # L not divided by det N
    assert not same_function((J, N, L), (J, [[3, 2], [5, 7]], L), 2)  # N transposed
    assert not same_function((J, N, L), ([[3, 2], [5, 7]], J, DIVIDED), 2)
    assert not same_function(
        (N, [[1, 0], [0, 2]], L), ([[1, 0], [0, 2]], N, L), 2
    )  # exchanged layers, none skew


@pytest.mark.parametrize("scale", [1, -2, Fraction(3, 5)])
def test_the_exhibited_partner_is_verified(scale):
    M1 = [[0, scale], [-scale, 0]]
    example = counterexample(point(M1, N, L, 3))
    assert example is not None
    assert example["verified"] is True
    assert example["other"]["M1"] == [["3", "5"], ["2", "7"]]


def test_zero_padding_carries_it_to_three_rows():
    pad = [[0, 1, 0], [-1, 0, 0], [0, 0, 0]], [[3, 5, 0], [2, 7, 0], [0, 0, 0]], [[2, 3, 1]]
    example = counterexample(point(*pad, 2))
    assert example is not None
    assert example["verified"] is True


@pytest.mark.parametrize(
    ("M1", "M2"),
    [(N, N), (J, J), (J, [[1, 2], [2, 4]]), ([[0, 0], [0, 0]], N)],
    ids=["not skew", "both skew", "singular", "zero"],
)
def test_no_partner_where_the_construction_does_not_apply(M1, M2):
    assert skew_partner(point(M1, M2, L, 2)) is None
