"""Expressions of job files: their values, and the rejection of everything else."""

from __future__ import annotations

import pytest

from m2bridge.batch.expressions import DEEPEST_EXPRESSION, LONGEST_EXPRESSION, parse
from m2bridge.errors import ParseError

NAMES = {"a": 1, "d": 3, "word": "segre", "flag": True, "widths": [2, 3, 2]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a <= d", True),
        ("1 <= a < d <= 3", True),
        ("1 <= a < d < 3", False),
        ("-d // 2", -2),
        ("-d % 2", 1),
        ("2*(d - a) + 1", 5),
        ("d - a - 1", 1),
        ("not a == d and d == 3", True),
        ("a == d or d == 3 and a == 1", True),
        ("word == 'segre'", True),
        ('word != "full"', True),
        ("flag", True),
        ("flag == 1", False),
        ("2 in widths", True),
        ("d in widths and not (7 in widths)", True),
        ("a == null", False),
    ],
)
def test_value(text: str, value: object) -> None:
    assert parse(text).value(NAMES) == value


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("a = d", 3, "=="),
        ("a <= ", 1, "syntax"),
        ("(a <= d", 1, "'('"),
        ("a ** 2", 1, "Pow"),
        ("a.b", 1, "Attribute"),
        ("f(a)", 1, "Call"),
        ("a; b", 2, "syntax"),
        ("__import__('os').system('x')", 1, "Call"),
        ("", 1, "syntax"),
        ("9" * 19, 1, "18"),
        ("1e999", 1, "18"),
        ("1j", 1, "complex"),
        ("b'x' == a", 1, "bytes"),
        ("...", 1, "ellipsis"),
        ("f'{a}'", 1, "JoinedStr"),
        ("[a][0]", 1, "Subscript"),
        ("(lambda: a)()", 1, "Call"),
        ("[x for x in a]", 1, "ListComp"),
        ("(a := 1)", 2, "NamedExpr"),
        ("a if d else 1", 1, "IfExp"),
        ("a << d", 1, "LShift"),
        ("a is d", 1, "Is"),
        ("a / d", 1, "Div"),
        ("~a", 1, "Invert"),
        ("a\\", 2, "unexpected"),
        ("a\x00", 1, "null bytes"),
        ("1 and and", 7, "syntax"),
    ],
)
def test_rejected_expressions(text: str, column: int, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert reason in caught.value.message
    assert caught.value.column >= column


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nothing < 1", "'nothing'"),
        ("a // (d - 3)", "zero"),
        ("a % 0", "zero"),
        ("word < 1", "compare"),
        ("word + 1", "number"),
        ("a and d", "true"),
        ("a in d", "compare"),
    ],
)
def test_errors_of_evaluation(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason.replace("(", r"\(")):
        parse(text).value(NAMES)


def test_hostile_texts_are_rejected_quickly() -> None:
    for text in (
        "(" * 10_000,
        "not " * 200 + "a",
        "-" * (DEEPEST_EXPRESSION + 1) + "1",
        "1+" * LONGEST_EXPRESSION,
    ):
        with pytest.raises(ParseError):
            parse(text)


def test_comparisons_with_missing_names_are_false() -> None:
    row = {"image_dim": 5, "seconds": 0.25}
    assert parse("image_dim > 4 and seconds < 0.5").holds(row)
    for text in (
        "degree > 4",
        "not (degree > 4) and image_dim < 0",
        "degree + 1 > 0",
        "degree",
        "image_dim < 'x'",
    ):
        assert not parse(text).holds(row), text
    assert parse("degree == null").holds(row)
    assert parse("degree != 4").holds(row)


def test_names() -> None:
    assert parse("a <= d and 2*t > 1 and word == 'x'").names == {"a", "d", "t", "word"}
