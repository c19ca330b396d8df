"""Rational maps: how they are read and written, and their dimensions. Each number is derived beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sympy

from m2bridge import checker
from m2bridge.certainty import Certainty
from m2bridge.errors import InputError, ParseError
from m2bridge.families import PolynomialMap, from_callable, from_sympy, from_text, parse_spec, read_map
from m2bridge.families.polynomial_map import RationalMap
from m2bridge.families.rational_cone import cone_map, symbolic_fractions
from m2bridge.frontends.rational_functions import parse_fraction
from m2bridge.linear.residues import Mod
from m2bridge.programs.program import degrees
from m2bridge.programs.ranks import generic_rank
from m2bridge.questions.dimension import dimension


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("x/y", "x/y"),
        ("1/(x+y)", "1/(x+y)"),
        ("x^2/x", "x"),  # lowest terms
        ("(x^2-y^2)/(x-y)", "x+y"),
        ("x/(2*y)", "1/2*x/y"),
        ("1/x+1/y", "(x+y)/(x*y)"),
        ("-(x/y)^2", "-x^2/y^2"),
        ("x/y/y*2", "2*x/y^2"),
        ("1/(-x)", "-1/x"),
        ("(1/(1/x))", "x"),
        ("3/4*x/2", "3/8*x"),
        ("1/(x/2-y/3)", "6/(3*x-2*y)"),
    ],
)
def test_fractions_are_written_in_lowest_terms(text: str, written: str) -> None:
    model = from_text("map", ["x", "y"], [text])
    assert model.coordinate_names == (written,)
    assert parse_spec(model.spec) == model
    names = sympy.symbols("x y")
    assert (
        sympy.simplify(sympy.sympify(text.replace("^", "**")) - sympy.sympify(written.replace("^", "**")))
        == 0
    )
    assert from_sympy([sympy.sympify(text.replace("^", "**"))], names) == model


def test_a_map_whose_denominators_cancel_is_polynomial() -> None:
    assert isinstance(parse_spec("map:x,y->x*y/y;(2*x)/2"), PolynomialMap)
    assert isinstance(parse_spec("map:x,y->x/y"), RationalMap)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("map:x->1/(x-x)", r"column 3: .*zero"),
        ("map:x,y->x/(y-1/(1/y))", "zero"),
        ("map:x->1/", "number"),
        ("map:x->1/z", "'z'"),
        ("map:x->x/(x+1", "'\\('"),
        ("map:x->1/(x^1200)", "above 1000"),
    ],
)
def test_invalid_fractions_are_refused_with_their_position(spec: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_spec(spec)


def test_a_rational_map_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "circle.toml"
    file.write_text('variables = ["t"]\npolynomials = ["(1-t^2)/(1+t^2)",\n "2*t/(1+t^2)"]\n')
    assert read_map(file) == parse_spec("map:t->(1-t^2)/(1+t^2);2*t/(1+t^2)")
    file.write_text('variables = ["t"]\npolynomials = ["t",\n "2*t/(t-t)"]\n')
    with pytest.raises(ParseError, match="zero") as error:
        read_map(file)
    assert error.value.line == 3


def test_values_are_those_of_the_fractions() -> None:
    model = parse_spec("map:x,y->x/y;1/(x+y);x^2")
    exact = model.coordinates({"x": np.array([Fraction(2), Fraction(3)], dtype=object)})
    assert exact.tolist() == [Fraction(2, 3), Fraction(1, 5), 4]
    residues = model.coordinates({"x": Mod(np.array([2, 3]), 101)}).values
    assert residues.tolist() == [2 * pow(3, -1, 101) % 101, pow(5, -1, 101), 4]


# dimension, and whether it has a certificate
DIMENSIONS = [
    ("map:x,y->x/y;1/(x+y)", 2, True),  # y = 1/(b (1 + a)), x = a y
    ("map:x,y,z->x/y;y/z;z/x", 2, False),  # the product is 1
    ("map:t->(1-t^2)/(1+t^2);2*t/(1+t^2)", 1, True),  # the circle
    ("map:x,y->x/y;y/x", 1, False),  # a hyperbola
    ("map:x,y->x/(x^2+y^2);y/(x^2+y^2)", 2, True),  # inversion is its own inverse
    (
        "map:a,b,c,d->a/(a*d-b*c);b/(a*d-b*c);c/(a*d-b*c);d/(a*d-b*c)",
        4,
        True,
    ),  # the inverse of a matrix, up to order and signs
    ("map:a,b,c->a/c;b/c;a*b/c^2", 2, False),  # the Segre quadric z = x y
    ("map:x,y->x^2/y;x;y", 2, True),  # a graph
    ("map:x,y,z->(x+y)/z;(x+y)^2/z^2", 1, False),  # a parabola
    ("map:x,y->1/(x+y)+1;(x+y)/2", 1, False),  # functions of x + y
]


@pytest.mark.parametrize(("spec", "dim", "certified"), DIMENSIONS)
def test_dimensions(spec: str, dim: int, certified: bool, tmp_path: Path) -> None:
    answer = dimension(spec, engine=False)
    word = Certainty.PROVED if certified else Certainty.COMPUTED
    assert (answer.image_dim, answer.certainty, answer.conflicts) == (dim, word, ())
    assert (answer.certificate is not None) == certified
    if certified:
        (tmp_path / "certificate.json").write_text(json.dumps(answer.certificate))
        run = [sys.executable, checker.__file__, str(tmp_path / "certificate.json")]
        said = subprocess.run(run, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stdout
        assert f" {dim}" in said.stdout


def test_a_certificate_at_a_point_without_a_value_is_rejected() -> None:
    circuit = checker.read_program("m2bridge program 1\n%0 = weight x [1]\n%1 = reciprocal %0\noutput y %1\n")
    lower = {
        "kind": "minor",
        "prime": 101,
        "samples": 1,
        "inputs": {"entries": []},
        "columns": [0],
        "rows": [[0, 0]],
    }
    assert checker.check_lower(circuit, lower | {"weights": {"entries": [5]}}) == 1
    with pytest.raises(checker.Rejected, match=r"denominator .*101"):
        checker.check_lower(circuit, lower | {"weights": {"entries": [0]}})


def test_points_at_which_a_denominator_is_zero_are_drawn_again() -> None:
    """Over F_5 many points are special: x (x - 1) y is zero at 13 of 25."""
    program = parse_spec("map:x,y->1/(x*(x-1)*y);y").program
    assert {generic_rank(program, p=5, seed=seed).rank for seed in range(8)} <= {1, 2}
    nowhere = from_callable(lambda w: 1 / ((w + 1) ** 2 - w**2 - 2 * w - 1), {"w": (1,)}).program
    with pytest.raises(InputError, match="zero"):
        generic_rank(nowhere)


def test_a_division_in_python_is_a_rational_map() -> None:
    model = from_callable(lambda w: np.stack([w[0] / w[1], w[1] / w[2], w[2] / w[0]]), {"w": (3,)})
    assert symbolic_fractions(model) == parse_spec("map:a,b,c->a/b;b/c;c/a").fractions
    answer = dimension(model, engine=False)
    assert (answer.image_dim, answer.certainty) == (2, Certainty.PROVED)


def test_degrees_bound_numerators_and_denominators() -> None:
    """x/y has degrees 1 and 1, and 1 + 2 * 1 bounds minors; (x^3 + x^2 y + y) / (x y + y^2) has 3 and 2."""
    assert degrees(parse_spec("map:x,y->x/y").program) == (3, 3)
    assert degrees(parse_spec("map:x,y->1/(x+y)+x^2/y").program)[0] >= 3 + 2 * 2


def test_the_cone_has_the_fractions_as_quotients() -> None:
    *over, under = cone_map(parse_spec("map:x,y->x/y;1/(x+y)")).polynomials
    for f, text in zip(over, ("w0/w1", "1/(w0+w1)"), strict=True):
        names = ["w0", "w1", "w2"]
        quotient = from_text("", names, ["1"])  # the ring
        shown = PolynomialMap(variables=tuple(names), polynomials=(f, under)).coordinate_names
        assert parse_fraction(f"({shown[0]})/({shown[1]})", quotient.variables) == parse_fraction(text, names)
