"""Real roots of squarefree polynomials: FLINT's isolation and Sturm's sequence beside SymPy."""

from __future__ import annotations

import flint
import sympy
from hypothesis import assume, given
from hypothesis import strategies as st

from m2bridge.questions.over_q import real_roots, sturm_count


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=9))
def test_the_number_of_real_roots_is_sympys(coefficients: list[int]) -> None:
    theirs = sympy.Poly(coefficients[::-1], sympy.Symbol("u"))
    assume(theirs.degree() > 0 and sympy.gcd(theirs, theirs.diff()).degree() == 0)
    ours = flint.fmpq_poly(coefficients)
    assert sturm_count(ours) == len(real_roots(ours)) == theirs.count_roots()
