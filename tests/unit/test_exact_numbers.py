"""Numbers are read in one way wherever they enter: text as it is written, floats exactly."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2bridge.errors import InputError
from m2bridge.exact_numbers import exact_json, exact_number
from m2bridge.families import parse_spec
from m2bridge.figures import slices
from m2bridge.questions.critical_points.losses import read_target
from m2bridge.questions.membership.points import target_of
from m2bridge.questions.point import one_of, point_from_weights, resolve, weights_or_path

HALF = Fraction(1, 2)
TENTH = Fraction(1, 10)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("0.5", HALF), (".5", HALF), ("1/2", HALF), ("5e-1", HALF), (0.5, HALF), (np.float32(0.5), HALF), (Decimal("0.5"), HALF),
        (HALF, HALF), ("0.1", TENTH), (0.1, Fraction(3602879701896397, 36028797018963968)), (np.int64(-3), Fraction(-3)),
        (" 7 ", Fraction(7)), (10**30, Fraction(10**30)),
    ],
)  # fmt: skip
def test_a_number_is_converted_exactly(value: Any, number: Fraction) -> None:
    assert exact_number(value) == number


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "1/0",
        "0.5/2",
        "nan",
        "inf",
        "1e99999",
        "1" * 5000,
        True,
        np.True_,
        None,
        [1],
        1j,
        float("nan"),
        np.float64("inf"),
    ],
)
def test_inexact_numbers_are_refused_in_one_line(value: Any) -> None:
    with pytest.raises(InputError, match=r"weights .*") as caught:
        exact_number(value, "weights")
    assert len(str(caught.value)) < 160


@pytest.mark.parametrize("text", ["[NaN]", "[-Infinity]", "[1e99999]", "{", "[" * 100_000])
def test_json_that_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="file"):
        exact_json(text, "the file")


def points(texts: list[Any]) -> dict[str, list[Fraction]]:
    """Read the same six numbers through every entry point."""
    model = parse_spec("map:a,b,c,d,e,f->a;b;c;d;e;f")
    weights = dict(zip("abcdef", texts, strict=True))
    written = json.dumps(texts)
    return {
        "weights": point_from_weights(model, weights).weights["x"].tolist(),
        "weights in JSON": resolve(model, one_of(weights_or_path(json.dumps(weights)), None, None), 0)
        .weights["x"]
        .tolist(),
        "membership": list(target_of(model, texts).point),
        "membership in JSON": list(target_of(model, written).point),
    }


@pytest.mark.parametrize("half", ["0.5", "1/2", 0.5])
def test_every_entry_point_reads_one_half(half: Any) -> None:
    for name, numbers in points([half, 0, 1, 0, 0, 2]).items():
        assert numbers == [HALF, 0, 1, 0, 0, 2], name


def test_targets_and_slices(tmp_path: Path) -> None:
    assert read_target("0.5,1/2,5e-1") == (HALF,) * 3
    file = tmp_path / "slice.json"
    file.write_text('{"origin": [0.5, "0.5", "1/2"], "directions": [[1, 0, 0], [0, 1, 0]]}')
    assert slices.slice_file(file, parse_spec("map:s,t->s;t;s*t")).origin == (HALF,) * 3


def test_a_function_is_given_by_its_polynomials():
    model = parse_spec("mlp(widths=[2,2,2],r=2)")
    assert target_of(model, "x[1]^2 - 3*x[1]*x[2]; 1/3*x[2]^2").point == tuple(
        map(Fraction, (1, -3, 0, 0, 0, "1/3"))
    )
    weights = {"W1": [[1, 2], [3, 5]], "W2": [[1, 1], [0, 3]]}
    polynomials = "(x[1] + 2*x[2])^2 + (3*x[1] + 5*x[2])^2; 3*(3*x[1] + 5*x[2])^2"
    assert target_of(model, polynomials).point == target_of(model, {"weights": weights}).point


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("mlp(widths=[2,2,1],r=2)", "x[1]^3"),
        ("mlp(widths=[2,2,1],r=2)", "x[3]^2"),
        ("mlp(widths=[2,2,1],r=2)", "x[1]^2; x[2]^2"),
        ("mlp(widths=[2,2,1],r=2)", "x[1]^2 +"),
        ("lightning(d=2,dp=1)", "x[1,1]^3; x[1,1]^3"),
        ("map:s,t->s;t", "x[1]"),
    ],
)
def test_other_polynomials_are_rejected(spec, text):
    with pytest.raises(InputError) as caught:
        target_of(parse_spec(spec), text)
    assert "_(" not in str(caught.value)
