"""What may enter a script, and how it is written there; everything else is refused before Macaulay2 sees it."""

from __future__ import annotations

import math
from collections import UserList, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from m2bridge.errors import InputError
from m2bridge.literals import assignment, literal


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (np.True_, "true"),
        (0, "0"),
        (-7, "-7"),
        (2**100, str(2**100)),
        (np.int64(-3), "-3"),
        (np.uint8(255), "255"),
        (Fraction(1, 3), "(1/3)"),
        (Fraction(-5), "(-5/1)"),
        ("", '""'),
        ("attention", '"attention"'),
        ('say "a\\b"', '"say \\"a\\\\b\\""'),
        ((), "{}"),
        ((7,), "{7}"),
        ([[1, 2], [3, -4]], "{{1,2},{3,-4}}"),
        ((True, None, "x", Fraction(1, 2)), '{true,null,"x",(1/2)}'),
        (range(3), "{0,1,2}"),
        (UserList([1, 2]), "{1,2}"),
        (np.array([[1, 0], [0, 1]]), "{{1,0},{0,1}}"),
        (np.array([2**70, -1], dtype=object), f"{{{2**70},-1}}"),
        (np.array(5), "5"),
        (np.zeros((0, 2), dtype=int), "{}"),
        ([np.array([1, 2]), np.array([3])], "{{1,2},{3}}"),
    ],
)
def test_allowed_values(value: object, text: str) -> None:
    assert literal(value) == text


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def endless() -> object:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        0.5,
        math.nan,
        math.inf,
        np.float64(1.0),
        np.array([1.0, 2.0]),
        np.array([math.nan]),
        [1, [2, 3.0]],
        1j,
        Decimal(1),
        b"bytes",
        bytearray(b"bytes"),
        memoryview(b"bytes"),
        np.array([b"bytes"]),
        {"a": 1},
        {1, 2},
        deque,
        object(),
        iter([1]),
        Path("x"),
        lambda: 1,
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(InputError, match="Macaulay2"):
        literal(value)


@pytest.mark.parametrize(
    "text",
    [
        "\n", "a\nb", "\r", "\t", "\0", "end\0", "\x1b[31m", "\x7f", "\x80", "é", "а",  # the last one is Cyrillic
        "＂", "”", "\u2028", "\u202e", "\ufeff", "\u00a0", "\ud800", "x\u0301", "￼", "𝐚",
    ],
    ids=ascii,
)  # fmt: skip
def test_characters_that_are_not_printable_ascii_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="character"):
        literal(text)


def test_the_message_names_the_character_and_its_position() -> None:
    with pytest.raises(InputError, match=r"'\\n' .*\b3\b"):
        literal("abc\nd")


@pytest.mark.parametrize("value", ["a" * 10**6, "a" * 10_001, ["ok", "\\" * 10**6]], ids=len)
def test_long_strings_are_refused_with_a_short_message(value: object) -> None:
    with pytest.raises(InputError, match="characters") as caught:
        literal(value)
    assert len(str(caught.value)) < 200


def test_the_longest_string_is_allowed() -> None:
    assert literal("a" * 10_000) == '"' + "a" * 10_000 + '"'


@pytest.mark.parametrize("value", [10**5000, -(10**5000), Fraction(1, 10**5000), [10**10**5]], ids=type)
def test_integers_too_long_to_write_are_refused(value: object) -> None:
    with pytest.raises(InputError, match="bits"):
        literal(value)


def test_nesting_is_bounded() -> None:
    assert literal(nested(16)) == "{" * 16 + "1" + "}" * 16
    for value in (nested(17), nested(10_000), endless(), np.zeros((1,) * 30, dtype=int)):
        with pytest.raises(InputError, match=r"\b16\b"):
            literal(value)


def test_a_refused_value_is_named_in_few_words() -> None:
    with pytest.raises(InputError) as caught:
        literal({i: "x" * 100 for i in range(1000)})
    assert len(str(caught.value)) < 200


def test_assignment() -> None:
    assert assignment("strata", [[1, 0], [0, 1]]) == "strata = {{1,0},{0,1}};"


@pytest.mark.parametrize(
    "name",
    ["", "1a", "a b", "a;b", "a_b", "a=b", "x\n", "é", "а", 'a"', "a.b", "--", "a" * 65, "run;run", "{a}"],
    ids=ascii,
)
def test_names_that_are_not_plain_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="name"):
        assignment(name, 1)
