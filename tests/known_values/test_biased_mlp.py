"""Perceptrons with biases and with one exponent a layer, at sizes where the image is known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from m2bridge import dimension
from m2bridge.checker import verify
from m2bridge.errors import SpecError
from m2bridge.families import MLP, parse_spec
from m2bridge.records import dumps, to_document


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            "mlp(widths=[1,1,1],r=2,bias=true)",
            3,
        ),  # w (a x + b)^2 + c: all quadratic polynomials in one variable
        (
            "mlp(widths=[2,2,1],r=2,bias=true)",
            6,
        ),  # all quadratic polynomials in two variables, by completing squares
        ("mlp(widths=[2,1,1],r=2,bias=true)", 4),  # w l^2 + c with an affine l: 3 for w l^2, 1 for c
        ("mlp(widths=[1,1,1,1],r=[2,3])", 1),  # multiples of x^6
        ("mlp(widths=[2,1,1,1],r=[2,3])", 2),  # sixth powers of linear forms
        ("mlp(widths=[3,2],r=2,bias=true)", 8),  # all affine maps
    ],
)
def test_dimensions_known_by_hand(spec, expected, engine):
    answer = dimension(spec, engine=engine)
    assert (answer.image_dim, answer.certainty.value, answer.agreement) == (expected, "proved", True)
    assert verify(dumps(to_document(answer)))[0] == 0


def test_the_network_is_written_out():
    model = parse_spec("mlp(widths=[1,2,1,1],r=[2,3],bias=true)")
    weights = {
        "W1": np.array([[2], [3]]), "b1": np.array([1, -1]), "W2": np.array([[1, 2]]), "b2": np.array([5]),
        "W3": np.array([[7]]), "b3": np.array([11]),
    }  # fmt: skip
    inner = 1 * (2 * 4 + 1) ** 2 + 2 * (3 * 4 - 1) ** 2 + 5
    assert model.forward(weights, np.array([4])).tolist() == [7 * inner**3 + 11]


def test_specs():
    assert parse_spec("mlp(widths=[2,2,2,2],r=[2,2])") == MLP(widths=(2, 2, 2, 2), r=2)
    assert parse_spec("mlp(widths=[2,2],r=[])") == MLP(widths=(2, 2), r=2)
    assert parse_spec("mlp(widths=[2,2],r=2,bias=true)").spec == "mlp(widths=[2,2],r=[],bias=true)"
    for spec in (
        "mlp(widths=[2,2,2,2],r=[2,3],bias=true)",
        "mlp(widths=[2,2,2,2],r=[2,3])",
        "mlp(widths=[2,2],r=[],bias=true)",
    ):
        assert parse_spec(spec).spec == spec
        assert parse_spec(parse_spec(spec).spec) == parse_spec(spec)


@pytest.mark.parametrize(
    "spec",
    [
        "mlp(widths=[2,2,2],r=[2,3])",
        "mlp(widths=[2,2,2],r=[2,2])",
        "mlp(widths=[2,2,2],r=[])",
        "mlp(widths=[2,2],bias=3)",
        "mlp(r=[2,3])",
    ],
)
def test_inconsistent_arguments_are_refused(spec):
    with pytest.raises(SpecError):
        parse_spec(spec)
