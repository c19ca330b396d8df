"""Primes that divide none of the numbers in the user's input."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from m2bridge import dimension, from_callable, identifiable, symmetries
from m2bridge.errors import InputError
from m2bridge.families import parse_spec
from m2bridge.linear.primes import (
    LARGE_PRIME,
    MACAULAY2_PRIME,
    GivenNumbers,
    check_prime,
    given_numbers,
    is_prime,
    prime_for,
    primes_below,
)

DEFAULTS = (MACAULAY2_PRIME, LARGE_PRIME)
CANDIDATES = primes_below(MACAULAY2_PRIME, count=6) + primes_below(LARGE_PRIME, count=6)
numbers = st.lists(
    st.builds(
        lambda n, d, p, up: Fraction(n * p, d) if up else Fraction(n, d * p),
        st.integers(-50, 50), st.integers(1, 50), st.sampled_from([1, *CANDIDATES]), st.booleans(),
    ),
    max_size=8,
)  # fmt: skip


@given(numbers, st.sampled_from(DEFAULTS))
def test_the_default_prime_is_the_largest_that_divides_no_input(
    fractions: list[Fraction], default: int
) -> None:
    p = prime_for(GivenNumbers(fractions), chosen=None, default=default)

    def divides_an_input(q: int) -> bool:
        return any((x and x.numerator % q == 0) or x.denominator % q == 0 for x in fractions)

    assert is_prime(p)
    assert not divides_an_input(p)
    assert all(divides_an_input(q) for q in range(p + 1, default + 1) if is_prime(q))


@given(numbers, st.sampled_from(CANDIDATES))
def test_a_rejected_prime_comes_with_a_valid_one(fractions: list[Fraction], chosen: int) -> None:
    input_numbers = GivenNumbers(fractions)
    try:
        assert prime_for(input_numbers, chosen=chosen, default=MACAULAY2_PRIME) == chosen
        assert input_numbers.divided_by(chosen) is None
    except InputError as error:
        assert input_numbers.divided_by(chosen) is not None
        suggested = int(str(error).split("--prime ")[-1].split(" ")[0])
        assert prime_for(input_numbers, chosen=suggested, default=MACAULAY2_PRIME) == suggested


def test_coefficients_exponents_and_weights_are_all_considered() -> None:
    model = parse_spec("map:x,y->1/101*x^7;5*y;103*x-y^11")
    weights = {"x": np.array([Fraction(2, 107), Fraction(109)], dtype=object)}
    input_numbers = given_numbers(model, weights)
    divisors = [p for p in primes_below(113, count=30) if input_numbers.divided_by(p)]
    assert divisors == [109, 107, 103, 101, 11, 7, 5, 2]
    assert given_numbers(parse_spec("lightning(d=2,dp=1)")) == frozenset()


@pytest.mark.parametrize("p", [4, 2**23 + 9, 1])
def test_a_modulus_that_is_not_prime_is_rejected(p: int) -> None:
    with pytest.raises(InputError, match="--prime"):
        check_prime(p)


@pytest.mark.parametrize("activation", [np.square, np.exp])
def test_networks_whose_numbers_the_default_prime_divides(activation) -> None:
    """All steps use the next prime. W and V have 12 weights; W -> s W does not fix W x + 1/p, so no symmetry is left."""

    def network(W, V, x):
        return V @ activation(W @ x + Fraction(1, LARGE_PRIME))

    model = from_callable(network, {"W": (3, 2), "V": (2, 3)}, inputs={"x": (2,)})
    answers = [dimension(model, engine=False), symmetries(model), identifiable(model)]
    assert answers[0].image_dim == 12
    assert {answer.options["prime"] for answer in answers} == {8388587}


def test_a_map_whose_coefficients_the_default_prime_divides() -> None:
    assert symmetries(f"map:x,y->x^2*y/{LARGE_PRIME};x*y").options["prime"] == 8388587
