"""Equations as text and data, membership, displays."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import sympy

from m2bridge.certainty import Certainty
from m2bridge.cli import main
from m2bridge.errors import InputError
from m2bridge.evidence import Evidence
from m2bridge.questions.closure import FORMATS, Closure, Equation, closure
from m2bridge.questions.closure.result import equation
from m2bridge.records import from_document, save, to_document

CONIC = Equation(degree=2, coefficients=(1, -1), monomials=((0, 2), (1, 1)))


def answer(field: str = "QQ", equations: tuple[Equation, ...] | None = (CONIC,)) -> Closure:
    return Closure(
        model="map", certainty=Certainty.COMPUTED, agreement=True, evidence=(), seed=0, seconds=0.0, ambient_dim=3,
        coordinates="z", coordinate_count=3, span_dim=3, linear_forms=0, image_dim=2, codim=1, degree=2, generator_counts={2: 1},
        hilbert_function=(1, 3, 5), completeness="complete", degree_bound=2, method="interpolation", field=field,
        equations=equations, variables=("s^2", "s*t", "t^2"),
    )  # fmt: skip


def test_membership_is_exact_modular_or_real_with_a_field() -> None:
    assert answer().contains([1, 2, 4]).arithmetic == "exact"
    assert answer().contains([1, 2, 4])
    assert answer().contains([Fraction(1, 3), 1, 3])
    assert not answer().contains([1, 2, 5])
    real = answer().contains([1.0, 0.1, 0.01])
    assert real
    assert real.tolerance == 1e-9
    assert not answer().contains([1.0, 0.1, 0.02])
    modular = answer("F_7").contains([1, 2, 11])
    assert modular
    assert modular.arithmetic == "mod 7"


def test_membership_refuses_what_it_cannot_decide() -> None:
    with pytest.raises(InputError, match="F_p"):
        answer("F_7").contains([0.5, 1.0, 2.0])
    with pytest.raises(InputError, match="3 coordinates"):
        answer().contains([1, 2])
    with pytest.raises(InputError, match="--equations"):
        answer(equations=None).contains([1, 2, 4])


def test_every_format_means_the_same_polynomial() -> None:
    z = sympy.symbols("z0 z1 z2")
    conic = z[0] * z[2] - z[1] ** 2
    assert [f.as_expr() for f in answer().generators] == [conic]
    assert answer().polynomials == answer().generators  # there is no linear form here
    scope: dict[str, object] = {}
    exec(answer().written("sympy"), scope)
    assert scope["equations"] == [conic]
    assert answer().to_m2() == "S = QQ[z0, z1, z2];\nI = ideal(\n  z0*z2 - z1^2);\n"
    assert answer().written("latex") == "z_{0}z_{2} - z_{1}^{2} = 0 \\\\\n"
    assert json.loads(answer().written("json"))["equations"][0]["coefficients"] == [1, -1]
    assert set(FORMATS) == {"m2", "sympy", "latex", "json", "mrdi"}
    with pytest.raises(InputError):
        answer().written("word")


def test_displays() -> None:
    assert "z_{0}z_{2}" in answer()._repr_latex_()
    assert "1 of degree 2" in answer()._repr_html_()
    assert "complete" in answer(equations=None)._repr_latex_()


def test_a_record_without_equations_is_explained_cited_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What evidence calls "generators" are counts; the polynomials of this name are not asked for."""
    counted = Evidence("generators", {2: 1}, "modular", "interpolation", certainty=Certainty.PROBABLE)
    record = save(
        replace(answer(equations=None), model="map:s,t->s^2;s*t;t^2", evidence=(counted,)), tmp_path
    )
    assert main(["explain", str(record)]) == 0
    assert "codimension 1" in capsys.readouterr().out
    assert main(["cite", str(record)]) == 0
    assert main(["report", str(record), "-o", str(tmp_path / "report.html")]) == 0
    assert "codimension 1" in (tmp_path / "report.html").read_text()


def test_an_equation_is_primitive_balanced_and_dehomogenized() -> None:
    assert equation({(1, 0): Fraction(2, 3), (0, 1): Fraction(-4, 3)}, [0, 1]).coefficients == (1, -2)
    assert equation({(1, 0): 1, (0, 1): 6}, [4, 7], p=7).text() == "z4 - z7"
    assert equation({(2, 0, 1): 1, (0, 3, 0): -1}, [0, 1, 2], constant=2).text() == "z0^2 - z1^3"


def test_the_record_comes_back_equal() -> None:
    assert from_document(json.loads(json.dumps(to_document(answer())))) == answer()


def test_in_documents_generators_are_counted() -> None:
    document = to_document(answer())
    assert document["generators"] == {"2": 1}
    assert "generator_counts" not in document
    assert from_document(json.loads(json.dumps(document))) == answer()


def test_a_field_that_is_none_is_refused_in_python_too() -> None:
    with pytest.raises(InputError, match="QQ"):
        closure("lightning(d=2,dp=1)", field="ZZ", engine=False)  # type: ignore[arg-type]
