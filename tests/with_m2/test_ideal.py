"""Ideals and templates that a user brings, with the real Macaulay2."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from m2bridge.certainty import Certainty
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.errors import InputError, ParseError
from m2bridge.families import parse_spec
from m2bridge.questions.custom_template import run_template
from m2bridge.questions.ideal import ideal

TEMPLATE = """\
n = 3;
rendered = false;
--% include "_params.m2.j2"
S = ZZ/101[vars(0..n-1)];
emit("hilbert", apply(4, k -> hilbertFunction(k, S)));
emitEnd();
"""


def test_two_quadrics_are_a_twisted_cubic_and_a_line(engine: Engine) -> None:
    """Where x_0 is not 0 the two equations give the cubic (1, t, t^2, t^3); x_0 = 0 forces x_1 = 0: a line."""
    answer = ideal("QQ[x_0..x_3] ideal(x_0*x_3-x_1*x_2, x_0*x_2 - x_1^2)", engine=engine)
    assert (answer.dim, answer.codim, answer.degree, answer.h_vector) == (2, 2, 4, (1, 2, 1))
    assert answer.components is not None
    assert sorted(part.degree for part in answer.components) == [1, 3]
    assert (answer.radical, answer.agreement, answer.certainty) == (True, None, Certainty.COMPUTED)


def test_a_node_a_double_point_and_the_unit_ideal(engine: Engine) -> None:
    node = ideal("y^2*z - x^3 - x^2*z", engine=engine)
    assert (node.singular_dim, node.singular_scheme_degree, node.radical) == (1, 1, True)
    double = ideal("ZZ/101[x,y] ideal(x^2, x*y)", engine=engine)
    assert (double.dim, double.degree, double.radical, double.field) == (1, 1, False, "F_101")
    unit = ideal("x - 1\nx", engine=engine)
    assert (unit.dim, unit.codim) == (-1, None)


def test_a_lost_generator_is_caught(engine: Engine, damage: Callable[[str, str], list[str]]) -> None:
    damaged = damage("I = idealIn(S, polynomials);", "I = idealIn(S, drop(polynomials, 1));")
    answer = ideal("QQ[x_0..x_3] ideal(x_0*x_3-x_1*x_2, x_0*x_2 - x_1^2)", engine=engine)
    assert damaged
    assert answer.agreement is False


SCRIPT = """\
needsPackage "PrimaryDecomposition"
kk = QQ
S = kk[x_(1,1)..x_(2,3)]
J = minors(2, matrix table(2, 3, (i, j) -> x_(i+1,j+1)))
R = S[t]/(t^2 - x_(1,1))
K = sub(J, R)
dim K
"""


def test_an_ideal_that_a_script_defines(engine: Engine, tmp_path: Path) -> None:
    """The matrices of rank at most one have dimension 4 and degree 3; the equation of t doubles the degree."""
    answer = ideal(SCRIPT, run="K", engine=engine)
    assert (answer.dim, answer.codim, answer.degree, answer.field) == (4, 3, 6, "QQ")
    assert answer.variables == ("t", "x_(1,1)", "x_(1,2)", "x_(1,3)", "x_(2,1)", "x_(2,2)", "x_(2,3)")
    assert answer.options["run"] == "K"
    with pytest.raises(ParseError, match="--run NAME"):
        ideal(SCRIPT, engine=engine)


def test_a_script_is_run_even_if_it_can_be_parsed(engine: Engine) -> None:
    """The parser sees one ideal here; the script changes it, and has signs of Jinja in a comment."""
    script = "R = QQ[x,y]\n--% one @{ of }@ two, <## <%% ü\nI = ideal(x^2)\nI = I + ideal(y)\n"
    assert ideal(script, run="I", engine=engine).generators == ("x^2", "y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("R = QQ[x]\nK = ideal(x)", "of class Symbol"),
        ("R = QQ[x,y, Degrees => {1,2}]\nI = ideal(x)", "degrees"),
        ("R = QQ[x,y, SkewCommutative => true]\nI = ideal(x)", "commute"),
        ("R = (GF 9)[x]\nI = ideal(x)\nI", "coefficients"),
        ("R = ZZ[x]\nI = ideal(x)", "coefficients"),
        ("R = (frac((ZZ/5)[t]))[x]\nI = ideal(x)", "coefficients"),
        ("R = QQ[x]\nI = x\nprint I", "of class R"),
        ("R = QQ[x]\nprint R\nI = ideal(x, y z)", "line 3"),
    ],
)
def test_a_script_without_a_supported_ideal(engine: Engine, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        ideal(text, run="I", engine=engine)
    assert message in str(caught.value)


def test_the_command_reads_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "conic.txt"
    file.write_text("x*y - z^2  # a conic\n")
    assert main(["ideal", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["degree"], document["singular_dim"], document["agreement"]) == (2, 0, None)
    assert main(["ideal", str(tmp_path / "missing.txt")]) == 2
    file.write_text("x*(y - z")
    assert main(["ideal", str(file)]) == 2


@pytest.mark.parametrize(
    "text", ["x*y - z^2, 1/2*x^3 - x*x*y", "QQ[x,y] ideal(x^2, x - x, y)", "variables: x\n0"]
)
def test_a_saved_ideal_is_explained_with_the_script_that_ran(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, kept = tmp_path / "mine.txt", tmp_path / "kept"
    file.write_text(text)
    kept.mkdir()
    assert main(["ideal", str(file), "--save", str(tmp_path), "--keep", str(kept)]) == 0
    capsys.readouterr()
    (record,) = tmp_path.glob("*.json")
    assert main(["explain", str(record)]) == 0
    (script,) = kept.glob("*.m2")
    assert script.read_text().rstrip() in capsys.readouterr().out


def test_the_zero_ideal_has_a_component_that_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "zero.txt"
    file.write_text("variables: x, y\n0\n")
    assert main(["ideal", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "x, y over F_32003" in printed
    assert "component 1 codimension 0, degree 1: 0" in " ".join(printed.split())


def test_a_modulus_that_is_no_prime_is_named_as_it_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "line.txt"
    file.write_text("x - y")
    assert main(["ideal", str(file), "--field", "6"]) == 2
    assert "--field 6" in capsys.readouterr().err
    file.write_text("ZZ/6[x,y] ideal(x - y)")
    assert main(["ideal", str(file)]) == 2
    assert "characteristic 6" in capsys.readouterr().err
    assert main(["closure", "map:s->s;s^2", "--prime", "6"]) == 2
    assert "--prime 6" in capsys.readouterr().err


def test_a_user_written_template(engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hilbert.m2.j2"
    file.write_text(TEMPLATE)
    found = run_template(file, {"n": 2}, engine=engine)
    assert (found.complete, found.values) == (True, {"hilbert": [1, 2, 3, 4]})
    with pytest.raises(InputError, match="declare"):
        run_template(file, {"m": 2}, engine=engine)
    assert main(["template", str(file), "--set", "n=1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"] == {"hilbert": [1, 1, 1, 1]}


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("hilbertFunction(k, S)", "nonsense(k)", 5, "nonsense"),
        ("S = ZZ/101[vars(0..n-1)]", "S = ZZ/101[vars(0..n-1)", 4, 'expected "]"'),
        ("n = 3;", "n = 3/0;", 1, "division by zero"),
        ('"hilbert"', '"Hilbert"', None, "tag"),
        ("emitEnd();", "", None, "emitEnd()"),
        ("emitEnd();", 'emit("hilbert", 1); emitEnd();', None, "'hilbert'"),
    ],
)
def test_a_mistake_in_a_template_is_bad_input(
    old: str, new: str, line: int | None, says: str, each_engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    file = tmp_path / "own.m2.j2"
    file.write_text(TEMPLATE.replace(old, new))
    with pytest.raises(InputError) as caught:
        run_template(file, engine=each_engine)
    assert caught.value.line == line
    assert main(["template", str(file), "--engine", str(each_engine.info.path)]) == 2
    message = capsys.readouterr().err
    assert says in message
    assert message.startswith("m2bridge: template own.m2.j2")
    if line is not None:
        rendered = caught.value.run.script.text.split("\n")
        shown = re.search(rf", line {line} \(line (\d+) of the rendered script", message)
        assert shown is not None
        assert rendered[int(shown[1]) - 1] == file.read_text().split("\n")[line - 1]


def test_a_template_can_use_a_model(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "count.m2.j2"
    file.write_text(
        'p = 101;\nrendered = false;\n--% include "_params.m2.j2"\nemit("count", numColumns coordinates);\nemitEnd();\n'
    )
    assert run_template(file, model=parse_spec("lightning(d=2,dp=1)"), engine=engine).values == {"count": 6}


def test_singularities_of_smaller_components_are_not_overlooked(engine: Engine) -> None:
    answer = ideal("variables: x, y, z\nz*(x^2-y^3)\nz*(z-1)", field="QQ", engine=engine)
    assert answer.singular_dim is None  # there is a cusp on the curve in the plane z = 1
    assert any("dimensions" in line for line in answer.not_shown)


def test_a_leading_coefficient_that_vanishes_modulo_p(engine: Engine) -> None:
    answer = ideal("variables: x, y\n3*x^2+y", field=3, engine=engine)
    assert (answer.dim, answer.degree, answer.agreement) == (1, 1, None)
