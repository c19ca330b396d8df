"""Primes that divide nothing that a user gave."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
FEW = primes_below(MACAULAY2_PRIME, count=6) + primes_below(LARGE_PRIME, count=6)
numbers = st.lists(
    st.builds(
        lambda n, d, p, up: Fraction(n * p, d) if up else Fraction(n, d * p),
        st.integers(-50, 50), st.integers(1, 50), st.sampled_from([1, *FEW]), st.booleans(),
    ),
    max_size=8,
)  # fmt: skip


@given(numbers, st.sampled_from(DEFAULTS))
def test_a_default_prime_divides_nothing_and_is_the_largest_such(
    given_: list[Fraction], default: int
) -> None:
    p = prime_for(GivenNumbers(given_), chosen=None, default=default)

    def bad(q: int) -> bool:
        return any((x and x.numerator % q == 0) or x.denominator % q == 0 for x in given_)

    assert is_prime(p)
    assert not bad(p)
    assert all(bad(q) for q in range(p + 1, default + 1) if is_prime(q))


@given(numbers, st.sampled_from(FEW))
def test_a_chosen_prime_is_taken_or_refused_with_another_that_can_be_taken(
    given_: list[Fraction], chosen: int
) -> None:
    known = GivenNumbers(given_)
    try:
        assert prime_for(known, chosen=chosen, default=MACAULAY2_PRIME) == chosen
        assert known.divided_by(chosen) is None
    except InputError as error:
        assert known.divided_by(chosen) is not None
        named = int(str(error).split("--prime ")[-1].split(" ")[0])
        assert prime_for(known, chosen=named, default=MACAULAY2_PRIME) == named


def test_all_that_was_given_is_looked_at() -> None:
    model = parse_spec("map:x,y->1/101*x^7;5*y;103*x-y^11")
    known = given_numbers(model, {"x": np.array([Fraction(2, 107), Fraction(109)], dtype=object)})
    assert [p for p in primes_below(113, count=30) if known.divided_by(p)] == [
        109,
        107,
        103,
        101,
        11,
        7,
        5,
        2,
    ]
    assert given_numbers(parse_spec("lightning(d=2,dp=1)")) == frozenset()


@pytest.mark.parametrize("p", [4, 2**23 + 9, 1])
def test_a_modulus_that_is_no_prime_is_refused(p: int) -> None:
    with pytest.raises(InputError, match="--prime"):
        check_prime(p)
