"""The polynomial parser: what it reads, what it refuses and where; systems evaluate and differentiate
exactly.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np
import pytest

from m2bridge.errors import InputError, ParseError
from m2bridge.frontends.polynomial_programs import polynomial_program
from m2bridge.frontends.polynomials import ParseLimits, derivative, parse_polynomial, polynomial_text
from m2bridge.linear.residues import Mod
from m2bridge.programs.evaluation import GivenArrays, run
from m2bridge.programs.gradings import gradings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3*x^2*y-15*y", {(2, 1): 3, (0, 1): -15}),
        ("(x+y)^2-x^2-y^2", {(1, 1): 2}),
        ("-(x-1)*(x+1)", {(2, 0): -1, (0, 0): 1}),
        ("x/2+1/3", {(1, 0): Fraction(1, 2), (0, 0): Fraction(1, 3)}),
        ("2*x/2", {(1, 0): 1}),
        ("0", {}),
        ("x-x", {}),
        ("+x**2", {(2, 0): 1}),
        ("2^10*x", {(1, 0): 1024}),
        ("((x))", {(1, 0): 1}),
        ("x\n + y", {(1, 0): 1, (0, 1): 1}),
        ("0*(x+1)+y^0", {(0, 0): 1}),
        ("x^2 + -3*y", {(2, 0): 1, (0, 1): -3}),
        ("x - -3*y", {(1, 0): 1, (0, 1): 3}),
        ("x + +y", {(1, 0): 1, (0, 1): 1}),
        ("x*-2", {(1, 0): -2}),
        ("x*-y^2", {(1, 2): -1}),
        ("2*-(x - y)*-3", {(1, 0): 6, (0, 1): -6}),
        ("-(-(x))", {(1, 0): 1}),
        ("--x", {(1, 0): 1}),
        ("-1*-1/2*x", {(1, 0): Fraction(1, 2)}),
    ],
)
def test_reads(text: str, expected: dict[tuple[int, int], object]) -> None:
    assert parse_polynomial(text, ["x", "y"]) == expected


def test_reads_what_macaulay2_prints() -> None:
    variables = ["x_(0,0)", "x_(0,1)", "z"]
    assert parse_polynomial("3*x_(0,0)^2*x_(0,1)-15*z", variables) == {(2, 1, 0): 3, (0, 0, 1): -15}
    assert parse_polynomial("(1/2)*z^3-x_(0, 1)", variables) == {(0, 0, 3): Fraction(1, 2), (0, 1, 0): -1}


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("x+", "end", 1, 3),
        ("", "end", 1, 1),
        ("(x", "'('", 1, 1),
        ("x*(y-1))", "')'", 1, 8),
        ("2x", "'*'", 1, 2),
        ("x y", "'*'", 1, 3),
        ("x(y)", "'*'", 1, 2),
        ("x^1000000000", "above 1000", 1, 3),
        ("x^999*x^999", "above 1000", 1, 7),
        ("(x+1)^999", "large", 1, 1),
        ("x^-1", "write 1/x^2 for x^-2", 1, 3),
        ("x + - -y", "sign", 1, 7),
        ("x*--2", "sign", 1, 4),
        ("x*+", "end", 1, 4),
        ("x/-2", "integer", 1, 3),
        ("x*/2", "number", 1, 3),
        ("-" * 100_000 + "x", "sign", 1, 3),
        ("x^y", "sign", 1, 3),
        ("x**2**2", "power", 1, 5),
        ("1/0", "zero", 1, 3),
        ("x/y", "integer", 1, 3),
        ("1/(x+1)", "integer", 1, 3),
        ("x +\n  w", "'w'", 2, 3),
        ("exp(x)", "write a Python function", 1, 1),
        ("__import__('os')", "'_'", 1, 1),
        ("x;y", "';'", 1, 2),
        ("x.real", "'.'", 1, 2),
        ("1.5*x", "write 1/10 for 0.1", 1, 2),
        ("x_(0,1", "'_'", 1, 2),
        ("x\u00b2", "allowed", 1, 2),
        ("9" * 5000, "digits", 1, 1),
        ("99999^999*x", "digits", 1, 1),
        ("(" * 60 + "x" + ")" * 60, "nested", 1, 51),
        ("(x+y+1)^400", "large", 1, 1),
    ],
)
def test_errors_have_a_position(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse_polynomial(text, ["x", "y"], source="here")
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"here, line {line}, column {column}: ")
    assert "\n" not in str(caught.value)


def test_the_limits_can_be_lowered() -> None:
    limits = ParseLimits(terms=3, characters=20)
    with pytest.raises(ParseError, match=r"\b3 terms"):
        parse_polynomial("x+x^2+x^3+x^4", ["x"], limits=limits)
    with pytest.raises(ParseError, match="21 characters"):
        parse_polynomial("x" * 21, ["x"], limits=limits)


def test_text_of_polynomials() -> None:
    assert polynomial_text({}, ["x"]) == "0"
    assert polynomial_text({(0,): -1, (2,): Fraction(-1, 2)}, ["x"]) == "-1-1/2*x^2"


def test_derivatives_are_formal() -> None:
    assert derivative({(3, 1): 2, (0, 5): 1}, 0) == {(2, 1): 6}


def test_systems_agree_over_all_arithmetics() -> None:
    rng = np.random.default_rng(0)
    texts = ["x^3*y-2*z+1", "(x+y+z)^4", "0", "7", "1/2*x*z"]
    polynomials = [parse_polynomial(text, ["x", "y", "z"]) for text in texts]
    system = polynomial_program(polynomials, {"x": (3,)})
    points = rng.integers(-9, 10, (6, 3))
    x, y, z = points.T
    plain = [x**3 * y - 2 * z + 1, (x + y + z) ** 4, 0 * x, 0 * x + 7]
    p = 10007
    assert (run(system, {"x": Mod(points, p)}).values[:, :4] == np.stack(plain, axis=-1) % p).all()
    assert np.allclose(run(system, {"x": points.astype(float)})[:, :4], np.stack(plain, axis=-1))
    arrays = GivenArrays(system, {"x": Mod(points, p)}, derivative=True)
    matrix = arrays.matrix(arrays.values()).values
    assert matrix.shape == (6, 5, 3)
    assert (matrix[:, 0, 0] == 3 * x**2 * y % p).all()
    assert (matrix[:, 1, 2] == 4 * (x + y + z) ** 3 % p).all()
    assert (matrix[:, 4, 2] == x * pow(2, -1, p) % p).all()


def test_a_prime_in_a_denominator_is_refused() -> None:
    system = polynomial_program([{(1,): Fraction(1, 7)}], {"x": (1,)})
    with pytest.raises(InputError, match="modulo 7"):
        run(system, {"x": Mod([[1]], 7)})


def test_hundreds_of_terms_are_evaluated_as_python_does() -> None:
    rng = np.random.default_rng(1)
    terms = {tuple(int(e) for e in rng.integers(0, 4, 5)): int(rng.integers(1, 99)) for _ in range(900)}
    polynomials = [terms, dict(list(terms.items())[:7])]
    points = rng.integers(0, 101, (3, 5))
    values = run(polynomial_program(polynomials, {"x": (5,)}), {"x": Mod(points, 101)}).values
    for point, row in zip(points.tolist(), values.tolist(), strict=True):
        plain = [
            sum(c * prod(x**e for x, e in zip(point, m, strict=True)) for m, c in f.items())
            for f in polynomials
        ]
        assert row == [value % 101 for value in plain]


def test_gradings_of_a_system() -> None:
    system = polynomial_program([{(2, 0, 0): 1, (1, 1, 0): 1}, {(0, 0, 3): 1}], {"x": (3,)})
    listed = gradings(system)
    assert listed is not None
    weights = listed.weights
    assert weights.shape == (2, 3)
    assert (weights[:, 0] == weights[:, 1]).all()
