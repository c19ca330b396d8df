"""Records made with Macaulay2, explained: the evidence, the witness, and the script that ran, which runs without m2bridge."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from m2bridge import records
from m2bridge.cli import main
from m2bridge.engine import Engine, Outcome
from m2bridge.families import Lightning
from m2bridge.protocol import parse
from m2bridge.questions.boundary import boundary
from m2bridge.questions.fiber import fiber
from m2bridge.questions.singular_locus import SingularLocus, singular_locus
from m2bridge.report.explain import explain
from m2bridge.report.readable_script import readable
from m2bridge.results import Result
from m2bridge.scripts import Script

ONE_LAYER = Lightning(d=2, dp=1)


@pytest.fixture(scope="module")
def located(engine: Engine) -> SingularLocus:
    return singular_locus(ONE_LAYER, engine=engine)


def printed_script(text: str) -> str:
    """The script in an explanation in Markdown."""
    return text.split("```macaulay2\n")[1].split("\n```", maxsplit=1)[0] + "\n"


def test_the_explanation_has_the_number_the_points_and_the_grounds(located: SingularLocus) -> None:
    text = explain(located)
    assert text.startswith(f"# singular-locus: {located.model}\n")
    assert "by (A, V), d=2, d'=1" in text
    assert "Seed 0; prime = 32003." in text
    assert "dimension 5." in text
    assert re.search(r"rk A = 1, rk V = 1, meet 1: singular \(computed\), .* 6 > 5 ", text)
    assert re.search(r"rk A = 2, rk V = 1, meet 1: smooth \(proved\), .* 5 = 5 ", text)
    assert "at A = [[1, 0], [0, 0]], V = [[1, 0]]." in text
    for item in located.evidence:
        if item.value is not None:
            assert f"{item.witness}, {item.method}" in text


def test_the_explanation_shows_the_script_that_is_printed(
    located: SingularLocus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = records.save(located, tmp_path)
    assert main(["singular-locus", "--d", "2", "--dp", "1", "--script"]) == 0
    rendered = capsys.readouterr().out.split("\n", 4)[4]  # below the heading
    assert main(["explain", str(path)]) == 0
    explained = printed_script(capsys.readouterr().out)
    assert readable(explained) == rendered
    assert Script(name="", text=explained).sha256 in {used.sha256 for used in located.scripts}


def test_the_script_of_an_explanation_runs_by_itself(located: SingularLocus, each_engine: Engine) -> None:
    script = Script(name="explained", text=printed_script(explain(located)))
    run = each_engine.run(script)
    assert run.outcome is Outcome.FINISHED, run.stderr
    values = parse(run)
    ((dim, degree, *_),) = values["singular_components"]
    assert (dim, degree) == (located.singular_dim, located.singular_degree) == (4, 3)


@pytest.fixture(scope="module")
def context(engine: Engine) -> Callable[[str], Result]:
    """Answers of analyses at the smallest layer, computed once."""

    @cache
    def answer(question: str) -> Result:
        layer = Lightning(d=2, dp=1, parametrization="attention")
        if question == "fiber":
            return fiber(layer, engine=engine)
        if question == "fiber at a stratum":
            return fiber(layer, engine=engine, at="rank_a=1,rank_v=1,meet=0")
        if question == "boundary":
            return boundary(layer, engine=engine)
        return boundary(layer, engine=engine, point=[1, 0, 1, 0, 0, 0])

    return answer


@pytest.mark.parametrize("question", ["fiber", "fiber at a stratum", "boundary", "boundary at a point"])
def test_only_a_script_that_ran_is_shown(question: str, context: Callable[[str], Result]) -> None:
    result = context(question)
    explained = explain(result)
    shown = printed_script(explained)
    assert Script(name="", text=shown).sha256 in {used.sha256 for used in result.scripts}
    assert "`M2 --script FILE`" in explained
    unknown = replace(result, scripts=tuple(replace(used, text=None) for used in result.scripts))
    assert all(used.sha256[:12] in explain(unknown) for used in result.scripts)
    assert "```macaulay2" not in explain(unknown)
    for item in result.evidence:
        if item.value is not None:
            assert f"{item.witness}, {item.method}" in explained
