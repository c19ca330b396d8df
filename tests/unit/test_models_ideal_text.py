"""Ideals as a user writes them: what is read, what is refused and in which line."""

from __future__ import annotations

import pytest

from m2bridge.errors import ParseError
from m2bridge.frontends.ideals import read_ideal


@pytest.mark.parametrize(
    "text",
    [
        "x*y - z^2\nx^3",
        "QQ[x,y,z]\nideal(x*y - z^2, x^3)",
        "R = QQ[x,y,z];\nI = {x*y-z^2, -- a conic\n x^3};",
        "variables: x,y,z\nx*y-z^2, x^3",
    ],
)
def test_an_ideal_is_read_from_lines_or_lists(text: str) -> None:
    parsed = read_ideal(text)
    assert parsed.variables == ("x", "y", "z")
    assert parsed.polynomials == ({(1, 1, 0): 1, (0, 0, 2): -1}, {(3, 0, 0): 1})


def test_ranges_subscripts_and_characteristic_of_an_ideal() -> None:
    parsed = read_ideal("ZZ/101[x_0..x_2]; ideal(x_0*x_2-x_1^2)")
    assert (parsed.variables, parsed.characteristic) == (("x_0", "x_1", "x_2"), 101)


@pytest.mark.parametrize("text", ["", "1", "x +* y", "QQ[x,x] ideal(x)", "QQ[x] ideal(y)", 'ideal(run "ls")'])
def test_a_bad_ideal_is_a_parse_error(text: str) -> None:
    with pytest.raises(ParseError):
        read_ideal(text)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("# comment\nx^2 + * y", 2, 7),
        ("# comment\n\nx*y\n  x^", 4, 5),
        ("x*(y - z\nx^2", 1, 3),
        ("x; y; z +", 1, 10),
        ("-- one\r\n-- two\r\nx y", 3, 3),
        ("R = QQ[x,\n  y]\nI = ideal(x,\n  x*y -- product\n  + w)", 5, 5),
        ("variables: x, y\n// note\nx, w", 3, 4),
    ],
)
def test_a_mistake_is_reported_where_it_is_in_the_file(text: str, line: int, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        read_ideal(text, source="my.txt")
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"line {line}, column {column}: " in str(caught.value)


@pytest.mark.parametrize("text", ["# rings\nQQ[x,x]\nx", "# names\nvariables: x, 2y\nx", "x\nx^2--3*x"])
def test_a_bad_declaration_is_reported_with_its_line(text: str) -> None:
    with pytest.raises(ParseError, match=r"my\.txt, line 2: "):
        read_ideal(text, source="my.txt")


def test_two_signs_are_not_a_comment_and_a_comment_is_no_sign() -> None:
    assert read_ideal("x - -3*y -- three").polynomials == ({(1, 0): 1, (0, 1): 3},)
    assert read_ideal("x + -3*y").polynomials == ({(1, 0): 1, (0, 1): -3},)
    with pytest.raises(ParseError, match="'- -'"):
        read_ideal("x--3*y")


def test_a_long_file_is_read_in_a_moment() -> None:
    assert len(read_ideal("\n" * 200_000 + "x\n" * 20_000).polynomials) == 20_000


def test_ideals_as_macaulay2_users_write_them() -> None:
    lex = read_ideal("R = QQ[a,b,c, MonomialOrder => Lex];\nI = ideal(a^2-b*c, a*b-c^2)")
    assert (lex.variables, len(lex.polynomials)) == (("a", "b", "c"), 2)
    minors = read_ideal("R = ZZ/101[a..f]\nI = minors(2, matrix {{a,b,c},{d,e,f}})\n")
    assert minors.variables == tuple("abcdef")
    assert minors.texts() == ("a*e-b*d", "a*f-c*d", "b*f-c*e")
    (determinant,) = read_ideal("minors(3, matrix {{x,0,y},{0,x,0},{y,0,x+1}})").texts()
    assert determinant == "x^3+x^2-x*y^2"


@pytest.mark.parametrize(
    ("text", "characteristic"),
    [
        ("kk = ZZ/101\nR = kk[x,y];\nI = ideal(x^2-y)", 101),
        ("kk = QQ;\nR = kk[x, y]\nI = ideal(x^2-y)", 0),
        ("R = GF(101)[x,y]; ideal(x^2-y)", 101),
        ("R = (ZZ/101)[x,y]; ideal(x^2-y)", 101),
        ("R = QQ[x,y, Degrees => {1,1}, MonomialOrder => {Lex => 1, GRevLex => {1}}]; ideal(x^2-y)", 0),
        ("R = QQ[x,y, Degrees => {2:1}]; ideal(x^2-y)", 0),
        ("-* a\nparabola *-\nR = QQ[x,y];\nI = ideal(x**2 {* the square *} -\n y);", 0),
    ],
)
def test_fields_options_and_comments_of_macaulay2(text: str, characteristic: int) -> None:
    parsed = read_ideal(text)
    assert (parsed.variables, parsed.texts()) == (("x", "y"), ("x^2-y",))
    assert parsed.characteristic == characteristic


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("R = QQ[x,y, Degrees => {1,2}]; I = ideal(x)", "Degrees"),
        ("R = QQ[x,y, SkewCommutative => true]; ideal(x)", "SkewCommutative"),
        ("ideal(x^2) + ideal(y^2)", "operations"),
        ("I = ideal(x, y); J = ideal(z)", "J = ideal(z)"),
        ("@{ x }@ {{ y }}", "'@'"),
        ("ideal(x^2) : ideal(x)", "operations"),
        ("minors(9, matrix {{x,y},{y,x}})", "size 9"),
        ("minors(2, matrix {{x,y},{y}})", "lengths"),
        ("R = QQ[f..a]; ideal(a)", "range"),
    ],
)
def test_what_is_not_read_is_said(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_ideal(text)
    assert message in str(caught.value)
