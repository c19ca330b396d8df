"""Properties of the models stage: parsers turn any text into a value or a typed error; arithmetic is
exact.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from m2bridge.errors import InputError, ParseError
from m2bridge.families import Mod, Model, parse_spec
from m2bridge.frontends.polynomials import parse_polynomial, polynomial_text

VARIABLES = ["x", "y_1", "z_(0,1)"]
exponents = st.tuples(*[st.integers(0, 6)] * 3)
coefficients = st.integers(-(10**6), 10**6).filter(bool) | st.fractions(max_denominator=50).filter(
    lambda q: q.denominator > 1
)
polynomials = st.dictionaries(exponents, coefficients, max_size=8)


def answer_or_error(function: Callable[[], Any], kind: type[Exception]) -> Any:
    """What a function returns, or the error of this kind that it raises."""
    try:
        return function()
    except kind as error:
        return error


@given(polynomials)
def test_polynomial_text_round_trips(polynomial: dict[tuple[int, ...], int | Fraction]) -> None:
    assert parse_polynomial(polynomial_text(polynomial, VARIABLES), VARIABLES) == polynomial


@given(polynomials, polynomials, st.integers(1, 3))
def test_the_parser_multiplies_out(
    f: dict[tuple[int, ...], int], g: dict[tuple[int, ...], int], n: int
) -> None:
    text = f"({polynomial_text(f, VARIABLES)})^{n}*({polynomial_text(g, VARIABLES)})"
    parsed = parse_polynomial(text, VARIABLES)
    point = (Fraction(2), Fraction(-3, 2), Fraction(5))

    def at(h: dict[tuple[int, ...], int]) -> Fraction:
        return sum(
            (c * point[0] ** e[0] * point[1] ** e[1] * point[2] ** e[2] for e, c in h.items()), Fraction(0)
        )

    assert at(parsed) == at(f) ** n * at(g)  # type: ignore[arg-type]


@given(st.text(alphabet="xyz_(),0123456789+-*/^ \n'\u00e9;[]", max_size=40) | st.text(max_size=40))
def test_any_text_is_a_polynomial_or_a_parse_error(text: str) -> None:
    answer = answer_or_error(lambda: parse_polynomial(text, VARIABLES), ParseError)
    if isinstance(answer, ParseError):
        assert "\n" not in str(answer)
        assert min(answer.line, answer.column) >= 1
    else:
        assert all(answer.values())


@given(st.text(alphabet="lightning:mlpd=0123456789,-[]()adtwhsr ", max_size=40) | st.text(max_size=40))
def test_any_text_is_a_model_or_an_input_error(text: str) -> None:
    answer = answer_or_error(lambda: parse_spec(text), InputError)
    assert isinstance(answer, Model) or "\n" not in str(answer)


sizes = st.integers(1, 4)
specs = st.one_of(
    st.builds("lightning(d={},dp={},a={},t={})".format, sizes, sizes, sizes, sizes),
    st.builds("mlp:widths={}-{}-{},r={}".format, sizes, sizes, sizes, sizes),
    st.builds("deep-lightning:d={}-{}-{},t={},heads={}".format, sizes, sizes, sizes, sizes, sizes),
    st.builds("convolution:filters={}-{},strides={},r={}".format, sizes, sizes, sizes, sizes),
    st.builds("softmax(d=[{},{}],t={})".format, sizes, sizes, sizes),
    st.builds("linear(widths=[{},{},{}])".format, sizes, sizes, sizes),
)


@given(specs)
def test_specs_round_trip(text: str) -> None:
    model = parse_spec(text)
    assert parse_spec(model.spec) == model
    assert model.parameter_dim <= model.parameter_count
    formula, bound = model.knowledge.formula, model.knowledge.dimension_bound
    if formula is not None and formula.value is not None:
        assert 0 < formula.value <= model.parameter_dim
        assert bound is None or bound.value is None or formula.value <= bound.value


@settings(max_examples=30)
@given(
    st.sampled_from([2, 101, 8388593]),
    st.integers(1, 40),
    st.randoms(use_true_random=False),
)
def test_products_of_residues_are_products_of_integers(p: int, inner: int, random) -> None:  # type: ignore[no-untyped-def]
    left = [[random.randrange(p) for _ in range(inner)] for _ in range(2)]
    right = [[random.randrange(p) for _ in range(2)] for _ in range(inner)]
    exact = np.array(left, dtype=object) @ np.array(right, dtype=object) % p
    assert (Mod(left, p) @ Mod(right, p)).values.tolist() == exact.tolist()
