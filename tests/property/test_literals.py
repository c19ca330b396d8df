"""Literals round-trip, and no string, however it is made, ends before its closing quote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from m2bridge.errors import InputError
from m2bridge.literals import literal

printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)
hostile = st.lists(
    st.sampled_from(
        ['"', "\\", "--", "-*", "*-", "///", "{", "}", ",", ";", 'run "x"', "\\n", "@{", "}@", " "]
    ),
    max_size=12,
).map("".join)
scalars = st.none() | st.booleans() | st.integers() | printable | hostile
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=5), max_leaves=20)

INJECTIONS = [
    '"', '""', '\\"', "\\", "\\\\", '\\\\"', '";', '"; run "touch x"; "', '" | get "!id" | "', "-- comment",
    "-* block *-", "/// raw ///", '///; run "id"; ///', "\\n", "\\u0022", "\\x22", "\\042", "@{ assignments }@",
    "--% include \"_emit.m2.j2\"", "<%% for x in y %%>", "<## comment ##>", "{{1,2}}", "$PATH", "`id`", "%s%n", "'",
]  # fmt: skip


class Reader:
    """Reads the texts of literals back, following Macaulay2's grammar and nothing of the code under test."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def whole(self) -> Any:
        value = self.value()
        assert self.at == len(self.text), f"trailing text {self.text[self.at :]!r}"
        return value

    def value(self) -> Any:
        rest = self.text[self.at :]
        for word, value in (("null", None), ("true", True), ("false", False)):
            if rest.startswith(word):
                self.at += len(word)
                return value
        if rest[0] == "{":
            return self.list()
        if rest[0] == '"':
            return self.string()
        digits = len(rest) - len(rest.lstrip("-0123456789"))
        self.at += digits
        return int(rest[:digits])

    def list(self) -> list[Any]:
        items: list[Any] = []
        self.at += 1
        while self.text[self.at] != "}":
            items.append(self.value())
            if self.text[self.at] == ",":
                self.at += 1
        self.at += 1
        return items

    def string(self) -> str:
        text = ""
        self.at += 1
        while self.text[self.at] != '"':
            if self.text[self.at] == "\\":
                self.at += 1
                assert self.text[self.at] in '"\\', "an escape that was not asked for"
            text += self.text[self.at]
            self.at += 1
        self.at += 1
        return text


@given(values)
def test_text_reads_back_as_the_value(value: object) -> None:
    assert Reader(literal(value)).whole() == value


@pytest.mark.parametrize("text", INJECTIONS)
def test_injection_stays_inside_its_string(text: str) -> None:
    assert Reader(literal(text)).whole() == text
    assert Reader(literal([text, 1, [text]])).whole() == [text, 1, [text]]


@given(hnp.arrays(np.int64, hnp.array_shapes(max_dims=3, max_side=4)))
def test_integer_arrays_read_back(array: np.ndarray) -> None:
    assert Reader(literal(array)).whole() == array.tolist()


@given(st.text(min_size=1, max_size=60))
def test_any_text_is_refused_or_one_line_of_plain_ascii(text: str) -> None:
    try:
        written = literal(text)
    except InputError:
        assert any(not " " <= char <= "~" for char in text)
    else:
        assert written.isascii()
        assert written.isprintable()
        assert Reader(written).whole() == text


@given(st.floats() | st.binary() | st.complex_numbers() | st.dictionaries(st.text(), st.integers()))
def test_inexact_and_foreign_values_are_always_refused(value: object) -> None:
    with pytest.raises(InputError):
        literal(value)
