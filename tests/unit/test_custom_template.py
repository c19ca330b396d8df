"""Settings of a user-written template: JSON values, and errors for other texts."""

from __future__ import annotations

import pytest

from m2bridge.errors import InputError
from m2bridge.questions.custom_template import parse_setting


def test_settings_are_json() -> None:
    assert parse_setting("n=[[1,2],[3,4]]") == ("n", [[1, 2], [3, 4]])
    assert parse_setting('word="abc"') == ("word", "abc")
    assert parse_setting(" n = true") == ("n", True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n", "write name=value"),
        ("2n=1", "write name=value"),
        ("n=0.5", "only exact values"),
        ('n={"a":1}', "only exact values"),
        ("n=abc", """--set n='"abc"'"""),
        ("n=", "JSON"),
        ("n=1/2", "JSON"),
        ("n=" + "[" * 100_000, "JSON"),
    ],
)
def test_a_bad_setting_is_an_error_with_a_correct_example(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_setting(text)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300
