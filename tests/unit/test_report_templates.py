"""Records of ideals and templates that a user brought are explained like any other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from m2bridge import records
from m2bridge.certainty import Certainty
from m2bridge.cli import main
from m2bridge.evidence import Evidence
from m2bridge.questions.custom_template import TemplateValues
from m2bridge.questions.ideal import IdealComponent, IdealSummary
from m2bridge.report.cite import sentence
from m2bridge.report.explain import explain
from m2bridge.results import EngineUse, ScriptUse

LINES = IdealSummary(
    model="ideal", options={"components": True, "singular": False, "generators": ["x*y"]}, certainty=Certainty.COMPUTED,
    agreement=True, seed=0, seconds=0.1, engine=EngineUse(version="1.21", origin="replay"), variables=("x", "y"), field="QQ",
    evidence=tuple(
        Evidence("hilbert_function", [1, 2, 2], witness, "series", certainty=Certainty.PROVED)
        for witness in ("macaulay2", "modular")
    ),
    generators=("x*y",), homogeneous=True, dim=1, codim=1, degree=2, generator_degrees=(2,), h_vector=(1, 1), radical=True,
    components=tuple(IdealComponent(codim=1, degree=1, generators=(name,)) for name in "xy"), singular_dim=None,
    singular_scheme_degree=None, not_shown=("anything else",),
)  # fmt: skip
VALUES = TemplateValues(
    model="none", options={"n": [1, 2], "word": "it's"}, certainty=Certainty.PROBABLE, agreement=None, evidence=(), seed=3,
    seconds=0.1, scripts=(ScriptUse(name="own", sha256="ab" * 32),), template="own.m2.j2", complete=True,
    values={"hilbert": [1, 2, 3], "word": "x_1"},
)  # fmt: skip


def test_an_ideal_is_explained() -> None:
    text = explain(LINES)
    assert text.startswith("# ideal: ideal of x*y in x, y over QQ\n")
    assert "- dimension 1 (affine), codimension 1, degree 2." in text
    assert "- component 2: codimension 1, degree 1: y." in text
    assert ": anything else." in text
    assert "- hilbert_function is [1, 2, 2]: modular, series (proved)." in text


def test_a_script_is_shown_when_its_text_is_known() -> None:
    ran = ScriptUse(name="ideal", sha256="ab" * 32)
    assert "--save DIRECTORY" in explain(replace(LINES, scripts=(ran,)))
    text = explain(replace(LINES, scripts=(replace(ran, text="R = QQ[x,y];\n"),)))
    assert "R = QQ[x,y];" in text.split("## In Macaulay2")[1]


def test_an_ideal_without_a_second_witness() -> None:
    alone = replace(LINES, evidence=(), agreement=None, dim=-1, codim=None, components=None, limit="too long")
    text = explain(alone)
    assert "by Macaulay2 alone" in text
    assert "unit ideal" in text
    assert ": too long." in text


def test_a_template_is_explained_with_the_command_that_repeats_it() -> None:
    text = explain(VALUES)
    assert text.startswith("# template: template own.m2.j2\n")
    assert "- Seed 3; n = [1, 2]; word = it's." in text
    assert "- hilbert: [1, 2, 3]" in text

    assert """`m2bridge template own.m2.j2 --set 'n=[1, 2]' --set 'word="it'"'"'s"' --seed 3`""" in text
    assert "probable" not in text
    assert f"Certainty: {VALUES.sure}" in text
    cut_off = explain(replace(VALUES, complete=False, values={}, model="lightning(d=2,dp=1)"))
    assert "incomplete" in cut_off
    assert "--model 'lightning(d=2,dp=1)'" in cut_off


def test_values_of_a_script_have_no_certainty_word() -> None:
    assert VALUES.sure == "computed by your script"
    assert VALUES.sure in repr(VALUES)
    cited = sentence(VALUES)
    assert "script" in cited
    assert "finite" not in cited
    assert "probable" not in cited


@pytest.mark.parametrize("record", [LINES, VALUES], ids=["ideal", "template"])
def test_the_command_explains_such_a_record(
    record: IdealSummary | TemplateValues, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = records.save(record, tmp_path)
    assert main(["explain", str(path)]) == 0
    assert capsys.readouterr().out == explain(record)
