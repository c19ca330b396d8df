"""Properties of job files, expressions and records for random input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m2bridge.batch import jobfile
from m2bridge.batch.expressions import parse
from m2bridge.batch.grid import Grid, axis_of
from m2bridge.batch.plan import expand
from m2bridge.batch.store import STORE_VERSION, decode, encode
from m2bridge.errors import InputError, OutOfReachError, ParseError, RecordError

numbers = st.integers(0, 9).map(str) | st.sampled_from(["a", "d"])
sums = st.recursive(
    numbers,
    lambda part: (
        st.tuples(part, st.sampled_from(["+", "-", "*", "//", "%"]), part).map(
            lambda p: f"({p[0]} {p[1]} {p[2]})"
        )
        | part.map(lambda p: f"-{p}")
    ),
    max_leaves=8,
)
comparisons = st.tuples(sums, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), sums).map(" ".join)
conditions = st.recursive(
    comparisons,
    lambda part: (
        st.tuples(part, st.sampled_from(["and", "or"]), part).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        | part.map(lambda p: f"not ({p})")
    ),
    max_leaves=6,
)


@given(conditions, st.integers(-5, 5), st.integers(-5, 5))
@settings(max_examples=200, deadline=None)
def test_expressions_have_the_value_of_python(text: str, a: int, d: int) -> None:
    try:
        expected: Any = eval(text, {"__builtins__": {}}, {"a": a, "d": d})
    except ZeroDivisionError:
        expected = ZeroDivisionError
    try:
        found: Any = parse(text).value({"a": a, "d": d})
    except ParseError as error:
        found = ZeroDivisionError if "division by zero" in error.message else error
    if not (isinstance(found, ParseError) and ("nested" in found.message or "longer" in found.message)):
        assert found == expected


@given(st.text(max_size=80) | st.text(alphabet="ad01 +-*/%()<>=!andortif.'\"", max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_an_expression_or_a_parse_error(text: str) -> None:
    try:
        parse(text).holds({"a": 1})
    except ParseError as error:
        assert error.column >= 1  # noqa: PT017


@given(st.text(alphabet='[]{}=",.#\n ad1"\'\\:', max_size=120) | st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_job_file_or_an_input_error(text: str) -> None:
    for name in ("x.toml", "x.json"):
        try:
            expand(jobfile.parse(text, Path(name)))
        except InputError:
            pass
        else:
            raise AssertionError("no such text is a job file")


axes = st.fixed_dictionaries(
    {
        "d": st.lists(st.integers(-3, 6), min_size=1, max_size=4),
        "a": st.sampled_from(["1..d", "d..3", "0..2*d", "2..1"]),
        "b": st.sampled_from(["a..d", "1..3", "a..a+1"]),
        "c": st.integers(0, 3),
    }
)


def inclusive(text: str, names: dict[str, int]) -> range:
    first, last = (eval(bound, {}, names) for bound in text.split(".."))
    return range(first, last + 1)


@given(axes, st.sampled_from([None, "a <= b", "a + b != d"]))
@settings(max_examples=150, deadline=None)
def test_a_grid_is_filtered_and_limited(given_axes: dict[str, Any], when: str | None) -> None:
    grid = Grid.of({name: axis_of(value) for name, value in given_axes.items()}, None)
    points = list(grid.points(10**6))
    expected = [
        {"d": d, "a": a, "b": b, "c": given_axes["c"]}
        for d in given_axes["d"]
        for a in inclusive(given_axes["a"], {"d": d})
        for b in inclusive(given_axes["b"], {"d": d, "a": a})
    ]
    assert sorted(map(sorted, map(dict.items, points))) == sorted(map(sorted, map(dict.items, expected)))
    if points:
        with pytest.raises(OutOfReachError):
            list(grid.points(len(points) - 1))
    filtered = Grid(grid.axes, None if when is None else parse(when))
    kept = [p for p in points if when is None or eval(when, {}, dict(p))]
    assert list(filtered.points(10**6)) == kept


plain = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
values = st.recursive(
    plain, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part), max_leaves=8
)


@given(st.dictionaries(st.text(max_size=8), values, max_size=5), st.integers(0, 10**6), st.integers(1, 255))
@settings(max_examples=200, deadline=None)
def test_records_round_trip_and_damage_is_detected(extra: dict[str, Any], where: int, flip: int) -> None:
    key = "ab" * 32
    record = {**extra, "store_version": STORE_VERSION, "key": key}
    record.pop("sha256", None)
    data = encode(record)
    found = decode(data, key)
    found.pop("sha256")
    assert found == json.loads(json.dumps(record))
    at = where % len(data)
    damaged = data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
    try:
        decode(damaged, key)
    except RecordError:
        return
    raise AssertionError("a damaged record was read")
