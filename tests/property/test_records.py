"""Every registered result type goes through JSON text and comes back equal, and its schema accepts what it writes."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any, Literal, Union

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from m2bridge import records
from m2bridge.errors import RecordError
from m2bridge.evidence import Evidence
from m2bridge.results import RESULT_TYPES, Result
from m2bridge.schemas import schema

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts | numbers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(),
    bool: st.booleans(),
    float: numbers,
    str: texts,
    type(None): st.none(),
    Any: json_values,
    Fraction: st.fractions(),
}


@cache
def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of an annotated type."""
    if hint in PLAIN:
        return PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(a) for a in arguments])
    if origin is tuple and Ellipsis not in arguments:
        return st.tuples(*map(values_of, arguments))
    if origin in (tuple, list):
        return st.lists(values_of(arguments[0]), max_size=2).map(origin)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=2)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    assert dataclasses.is_dataclass(hint), f"no strategy for {hint}"
    hints = typing.get_type_hints(hint)
    return st.builds(hint, **{f.name: values_of(hints[f.name]) for f in dataclasses.fields(hint)})


def through_text(result: Result) -> Any:
    return json.loads(records.dumps(records.to_document(result)))


@given(values_of(Evidence))
def test_evidence_round_trips(evidence: Evidence) -> None:
    text = json.dumps(records._encode(evidence), allow_nan=False)
    assert records.decode(Evidence, json.loads(text), "evidence") == evidence


@pytest.mark.parametrize("analysis", sorted(RESULT_TYPES))
@settings(
    max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None
)
@given(data=st.data())
def test_every_result_type_round_trips_and_fits_its_schema(analysis: str, data: st.DataObject) -> None:
    result = data.draw(values_of(RESULT_TYPES[analysis]))
    document = through_text(result)
    assert records.from_document(document) == result
    jsonschema.Draft202012Validator(schema(analysis)).validate(document)


@given(json_values)
def test_any_json_is_a_record_or_a_record_error(value: Any) -> None:
    for document in (
        value,
        {
            "schema_version": records.SCHEMA_VERSION,
            "analysis": "singular-locus",
            "analysis_version": 1,
            "model": value,
        },
    ):
        with pytest.raises(RecordError):
            records.from_document(document)
