"""The JSON Schema of every analysis is itself valid, describes every field, and refuses what lacks one."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path

import jsonschema
import pytest

from m2bridge import schemas
from m2bridge.errors import InputError
from m2bridge.records import result_types
from m2bridge.results import RESULT_TYPES
from m2bridge.schemas import schema


@pytest.mark.parametrize("analysis", sorted(result_types()))
def test_schema_is_valid_and_closed(analysis: str) -> None:
    found = schema(analysis)
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["additionalProperties"] is False
    names = {field.metadata.get("key", field.name) for field in dataclasses.fields(RESULT_TYPES[analysis])}
    envelope = {"schema_version", "analysis", "analysis_version", "package_version", "digest"}
    assert set(found["properties"]) == set(found["required"]) == names | envelope


def test_singular_locus_names_verdicts_and_certainties() -> None:
    properties = schema("singular-locus")["properties"]
    stratum = properties["strata"]["items"]["properties"]
    assert stratum["verdict"] == {"enum": ["singular", "smooth", "undecided"]}
    words = ["proved", "theorem", "computed", "probable", "numeric", "undecided"]
    assert properties["certainty"] == {"enum": words}
    assert properties["agreement"] == {"anyOf": [{"type": "boolean"}, {"type": "null"}]}
    assert properties["singular_degree"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def test_a_pair_has_two_items() -> None:
    from m2bridge import schemas

    pair = schemas.schema_of(tuple[int, str])
    validator = jsonschema.Draft202012Validator(pair)
    assert validator.is_valid([1, "a"])
    for wrong in ([1], [1, "a", 2], ["a", 1]):
        assert not validator.is_valid(wrong)


def test_unknown_analysis_is_an_input_error_that_names_the_known() -> None:
    with pytest.raises(InputError, match=r"'nothing'.*singular-locus"):
        schema("nothing")


def test_a_type_without_a_schema_is_noticed() -> None:
    from m2bridge import schemas

    with pytest.raises(TypeError, match="schema"):
        schemas.schema_of(typing.Callable)


def test_the_shipped_files_are_the_current_schemas(tmp_path: Path) -> None:
    schemas.write(tmp_path)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    shipped = {path.name: path.read_text() for path in schemas.shipped().iterdir()}
    assert shipped == written, "run make schemas"
