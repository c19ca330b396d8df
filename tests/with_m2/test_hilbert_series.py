"""Hilbert series with the real Macaulay2: known series, wrong algebra is caught, every door of the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from m2bridge import scripts
from m2bridge.cli import main
from m2bridge.engine import Engine
from m2bridge.questions.hilbert_series import expanded, hilbert_series
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
    found = hilbert_series(spec, engine=engine)
    assert (found.series, found.agreement) == (series, True)
    assert from_document(to_document(found)) == found


@pytest.mark.parametrize("parametrization", ["weights", "attention"])
def test_attention_of_rank_one_is_a_segre_product(engine: Engine, parametrization: str) -> None:
    # (v x_2) (k x_2) (q x_1): quadrics of rank <= 2 in 3 variables, det = 0 in 6 coordinates, times a linear form in 3 variables;
    # functions of degree s on a Segre product are the products of functions of degree s
    found = hilbert_series(f"lightning(d=3,dp=1,a=1,parametrization={parametrization})", engine=engine)
    assert found.agreement is True
    assert found.numerator is not None
    assert found.closure_dim == 7
    quadrics = [comb(s + 5, 5) - comb(s + 2, 5) for s in range(7)]
    assert expanded(found.numerator, 7, 6) == tuple(q * comb(s + 2, 2) for s, q in enumerate(quadrics))


@pytest.mark.parametrize(
    ("spec", "right", "wrong"),
    [
        # a missing generator
        ("map:s,t->s^2;s*t;t^2;s+t", "leadTerm closureIdeal", "leadTerm ideal drop(closureIdeal_*, 1)"),
        # not by degree: y^2 leads in y^2 = x^3
        ("map:s->s^3;s^2", "MonomialOrder => GRevLex", "MonomialOrder => Lex"),
    ],
)
def test_wrong_algebra_is_caught(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spec: str, right: str, wrong: str
) -> None:
    original = scripts.render

    def damaged(*arguments: Any, **options: Any) -> scripts.Script:
        script = original(*arguments, **options)
        changed = script.text.replace(right, wrong)
        assert changed != script.text
        return replace(script, text=changed)

    monkeypatch.setattr(scripts, "render", damaged)
    assert main(["hilbert-series", spec]) == 3
    assert "witnesses disagree" in capsys.readouterr().err


def test_what_was_counted_is_told_when_time_runs_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hilbert-series", "lightning(d=4,dp=4)", "--timeout", "3s", "--max-monomials", "1"]) == 5
    assert capsys.readouterr().out.startswith("the Hilbert series begins 1 + 160*T + ...; probable")


def test_every_door_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: object) -> str:
        assert main([str(word) for word in words]) == 0
        return capsys.readouterr().out

    spec, answer = "lightning(d=2,dp=1)", "the Hilbert series is (1 + T + T^2 + T^3)/(1 - T)^5"
    assert "hilbert-series" in run("--help")
    assert "--max-degree" in run("hilbert-series", "--help")
    document = json.loads(run("hilbert-series", spec, "--json", "--save", tmp_path / "records"))
    jsonschema.validate(document, json.loads(run("schema", "hilbert-series")))
    assert (document["numerator"], document["hilbert_function"]) == ([1, 1, 1, 1], [1, 6, 21, 56, 125])
    (record,) = (tmp_path / "records").glob("*.json")
    assert answer in run("explain", record)
    assert "reduceHilbert" in run("hilbert-series", spec, "--script")
    assert "about" in run("hilbert-series", spec, "--estimate")
    jobs = tmp_path / "jobs.toml"
    jobs.write_text('[[grid]]\nanalysis = "hilbert-series"\nmodel = "lightning"\nd = 2\ndp = 1\na = [1, 2]\n')
    run("batch", jobs, "--store", tmp_path / "store", "--workers", 1)
    rows = json.loads(run("results", tmp_path / "store", "--format", "json"))
    # a = 1: binary quadrics times linear forms, of dimension 3 + 2 - 1; a = 2: a hypersurface in 6 coordinates
    assert sorted(row["closure_dim"] for row in rows) == [4, 5]
