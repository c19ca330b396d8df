"""Expansions to polynomials are bounded before they begin: a product of two polynomials cannot be interrupted."""

from __future__ import annotations

import numpy as np
import pytest

from m2bridge import from_callable
from m2bridge.certificates.points import closure_certificates
from m2bridge.errors import OutOfReachError
from m2bridge.families import parse_spec
from m2bridge.families.symbolic import MOST_EXPANDED_TERMS, symbolic_map, term_bound
from m2bridge.families.user_network import UserNetwork
from m2bridge.questions.closure.image import image_of


@pytest.mark.parametrize(
    ("spec", "exact"),
    [
        ("lightning(d=3,dp=2)", True),  # no two products of weights are the same
        ("linear(widths=[3,2,2,3])", True),
        ("mlp(widths=[2,3,2],r=2)", False),
        ("mlp(widths=[2,2,2,1],r=3)", False),
        ("map:s,t->(s+t)^9;s*t-1", False),
        ("skip-lightning(d=[1,1,1],a=[1,1],t=2)", False),
    ],
)
def test_the_bound_is_not_below_the_number_of_terms(spec: str, exact: bool) -> None:
    model = parse_spec(spec).free
    terms = sum(map(len, symbolic_map(model)))
    assert terms == term_bound(model) if exact else terms <= term_bound(model)


def power(exponent: int) -> UserNetwork:
    """Return the map of a 3 x 3 matrix to its power: dense polynomials in nine variables."""

    def network(w: np.ndarray) -> np.ndarray:
        return np.linalg.matrix_power(w, exponent)

    return from_callable(network, {"w": (3, 3)})


def test_polynomials_with_too_many_terms_are_not_expanded() -> None:
    model = power(25)  # up to comb(34, 9) = 52 million terms for each entry
    assert term_bound(model) > MOST_EXPANDED_TERMS
    assert image_of(model).polynomials is None
    assert closure_certificates(model, (), 0, 2, seed=0) == ()
    with pytest.raises(OutOfReachError, match="terms"):
        _ = model.polynomials
