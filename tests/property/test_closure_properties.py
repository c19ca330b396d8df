"""Properties of interpolation on random monomial and polynomial maps."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from m2bridge.errors import InputError
from m2bridge.families.polynomial_map import from_text
from m2bridge.frontends.ideals import read_ideal
from m2bridge.linear.modular import echelon_mod, kernel_mod
from m2bridge.questions.closure import interpolate
from m2bridge.questions.closure.image import image_of
from m2bridge.questions.closure.interpolation import evaluate

EXPONENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=5, unique=True)


def text(exponents: tuple[int, int]) -> str:
    return "*".join(f"{v}^{e}" for v, e in zip("st", exponents, strict=True) if e) or "1"


@settings(max_examples=15, deadline=None)
@given(EXPONENTS)
def test_equations_of_a_monomial_map_are_binomials_that_vanish(exponents: list[tuple[int, int]]) -> None:
    model = from_text("monomials", ["s", "t"], [text(e) for e in exponents])
    interpolation = interpolate(model, 3)
    image = image_of(model)
    points = image.points(np.random.default_rng(9), 5, 32003)[:, list(interpolation.span.basis)]
    for group in interpolation.generators.values():
        for f in group:
            assert len(f) == 2
            assert sum(f.values()) % 32003 == 0
            assert not evaluate(f, points, 32003).any()


@settings(max_examples=10, deadline=None)
@given(EXPONENTS)
def test_symmetry_and_seed_do_not_change_the_counts(exponents: list[tuple[int, int]]) -> None:
    model = from_text("monomials", ["s", "t"], [text(e) for e in exponents])
    first, second = interpolate(model, 3), interpolate(model, 3, symmetric=False, seed=4)
    assert (first.counts, first.hilbert_function) == (second.counts, second.hilbert_function)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 12), st.sampled_from([2, 3, 32003]))
def test_echelon_keeps_the_row_space(seed: int, height: int, width: int, p: int) -> None:
    matrix = np.random.default_rng(seed).integers(0, p, size=(height, width))
    reduced, pivots = echelon_mod(matrix, p)
    again, same = echelon_mod(np.concatenate([reduced, matrix]), p)
    assert (again.tolist(), same) == (reduced.tolist(), pivots)
    assert len(kernel_mod(matrix, p)[2]) == width - len(pivots)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="xyz0123+-*^(){},;_ \n[]QZ/=ideal", max_size=40))
def test_text_is_an_ideal_or_an_input_error(source: str) -> None:
    try:
        parsed = read_ideal(source)
    except InputError:
        return
    assert parsed.variables
    assert all(len(m) == len(parsed.variables) for f in parsed.polynomials for m in f)
