"""The Hilbert series of closures with the real Macaulay2: known series, none without all equations, errors are caught."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import comb
from typing import Any

import pytest

from m2bridge import scripts
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.evidence import AGREEMENT_WORDS
from m2bridge.questions.closure import closure
from m2bridge.records import from_document, to_document

KNOWN = [
    # the twisted cubic has minimal degree 3: h-vector (1, 2)
    ("map:s,t->s^3;s^2*t;s*t^2;t^3", "(1 + 2*T)/(1 - T)^2"),
    # the cuspidal cubic y^2 = x^3 is no cone; the form of highest degree, x^3, counts
    ("map:s->s^2;s^3", "(1 + T + T^2)/(1 - T)"),
    # singular 2x2 matrices: one quadric in 4 variables
    ("linear(widths=[2,1,2])", "(1 + T)/(1 - T)^3"),
    # P^2 x P^2 in P^8 has binom(s + 2, 2)^2 functions of degree s
    ("linear(widths=[3,1,3])", "(1 + 4*T + T^2)/(1 - T)^5"),
    # every quadratic form in 2 variables is a sum of 2 squares over CC
    ("mlp(widths=[2,2,1],r=2)", "1/(1 - T)^3"),
    # one equation of degree 4 in 6 variables
    ("lightning(d=2,dp=1)", "(1 + T + T^2 + T^3)/(1 - T)^5"),
    # a point; a dense image, with rational coefficients; a coefficient that the default prime divides
    ("map:s->1;0", "1"),
    ("map:s,t->1/2*s;s*t+1/3", "1/(1 - T)^2"),
    ("map:s->s/32003;s^2", "(1 + T)/(1 - T)"),
]


@pytest.mark.parametrize(("spec", "series"), KNOWN)
def test_known_series(engine: Engine, spec: str, series: str) -> None:
    answer = closure(spec, field="QQ", engine=engine)
    assert answer.hilbert_series is not None
    assert answer.hilbert_series.text == series
    # nothing is counted on the parametrization of a linear space or a point: the degree has one statement there
    assert (answer.agreement, answer.weighed.once) == ((True, ()) if answer.codim else (None, ("degree",)))
    assert answer.hilbert_series.certainty is answer.certainty
    assert from_document(to_document(answer)) == answer
    assert ("Hilbert series", f"{series} ({answer.certainty.value})") in answer.view().facts


@pytest.mark.parametrize("method", ["interpolation", "kernel"])
def test_series_over_the_rationals_are_exact(engine: Engine, method: str) -> None:
    found = closure("map:s,t->s^3;s^2*t;s*t^2;t^3", field="QQ", method=method, engine=engine).hilbert_series
    assert found is not None
    assert (found.numerator, found.denominator_exponent, found.certainty.value) == ((1, 2), 2, "computed")


@pytest.mark.parametrize("parametrization", ["weights", "attention"])
def test_attention_of_rank_one_is_a_segre_product(engine: Engine, parametrization: str) -> None:
    # (v x_2) (k x_2) (q x_1): quadrics of rank <= 2 in 3 variables, det = 0 in 6 coordinates, times a linear form in 3 variables;
    # functions of degree s on a Segre product are the products of functions of degree s
    answer = closure(f"lightning(d=3,dp=1,a=1,parametrization={parametrization})", engine=engine)
    assert answer.agreement is True
    assert answer.hilbert_series is not None
    assert (answer.hilbert_series.denominator_exponent, answer.image_dim) == (7, 7)
    quadrics = [comb(s + 5, 5) - comb(s + 2, 5) for s in range(7)]
    assert answer.hilbert_series.coefficients(6) == tuple(q * comb(s + 2, 2) for s, q in enumerate(quadrics))


def test_equations_that_are_not_complete_have_no_series(engine: Engine) -> None:
    answer = closure("lightning(d=2,dp=2)", max_degree=2, engine=engine)
    assert (answer.completeness, answer.hilbert_series) == ("up-to-degree", None)


@pytest.mark.parametrize("method", ["interpolation", "kernel"])
def test_a_wrong_series_is_caught(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    original = scripts.render

    def damaged(*arguments: Any, **options: Any) -> scripts.Script:
        script = original(*arguments, **options)
        text = script.text.replace("numerator reduceHilbert", "numerator")  # not divided by powers of 1 - T
        return replace(script, text=text)

    monkeypatch.setattr(scripts, "render", damaged)
    assert main(["closure", "linear(widths=[2,1,2])", "--method", method]) == 3
    assert AGREEMENT_WORDS[False] in capsys.readouterr().err


def test_the_answer_describes_its_coordinates(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 2 * 20 coefficients of two cubic outputs in 4 variables, 6 determine the others linearly (Proposition A.5)."""
    facts = dict(closure("lightning(d=2,dp=1)", engine=engine).view().facts)
    assert facts["coordinates"].startswith("z0, z1, ..., z5: ")
    assert "x[m,1]*x[i,2]*x[j,2]" in facts["coordinates"]
    assert re.findall(r"\d+", facts["linear span"]) == ["6", "0", "6", "34", "40"]
    full = closure("lightning(d=2,dp=1,coordinates=full)", max_degree=1, engine=engine)
    assert (full.coordinate_count, full.linear_forms, full.span_dim) == (40, 34, 6)
    assert main(["closure", "mlp(widths=[2,1,1],r=2)", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "coefficients" in document["coordinates"]
    assert document["hilbert_series"] == {
        "numerator": [1, 1],
        "denominator_exponent": 2,
        "certainty": "probable",
    }
