"""Jobs about files of the user: templates and ideals in job files, without Macaulay2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from m2bridge.batch.entry import plan_of
from m2bridge.batch.job import Job
from m2bridge.batch.rows import row_of
from m2bridge.errors import ParseError

TEMPLATE = """n = 3;
word = "x";
seed = 0;
rendered = false;
--% include "_params.m2.j2"
--% include "helper.m2.j2"
emit("n", f n);
emitEnd();
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "own.m2.j2").write_text(TEMPLATE)
    (tmp_path / "helper.m2.j2").write_text("f = n -> n + 1;\n")
    (tmp_path / "curve.m2").write_text("ideal(x*y - z^2)\n")
    (tmp_path / "script.m2").write_text("R = QQ[x,y]\nJ = (ideal vars R)^2\n")
    return tmp_path


def jobs_of(directory: Path, text: str) -> list[Job]:
    file = directory / "jobs.toml"
    file.write_text(text)
    return list(plan_of(file, workers=1).jobs)


def mistakes(directory: Path, text: str) -> str:
    with pytest.raises(ParseError) as caught:
        jobs_of(directory, text)
    return str(caught.value)


def test_a_grid_over_the_parameters_of_a_template(directory: Path) -> None:
    text = '[[grid]]\nanalysis = "template"\ntemplate = "own.m2.j2"\nn = "1..3"\nseed = [4, 5]\n'
    jobs = jobs_of(directory, text)
    assert [job.parameters for job in jobs] == [{"seed": s, "n": n} for n in (1, 2, 3) for s in (4, 5)]
    file = jobs[0].file
    assert file is not None
    assert "f = n -> n + 1;" in file.text, "files that a template includes are part of the job"
    assert "_params.m2.j2" in file.text
    assert jobs[0].document()["file"] == {"name": "own.m2.j2", "text": file.text}
    assert (jobs[0].spec, jobs[0].title) == ("none", "template own.m2.j2 seed=4 n=1")


def test_the_key_changes_with_the_text(directory: Path) -> None:
    text = '[[job]]\nanalysis = "template"\ntemplate = "own.m2.j2"\nn = 1\n'
    before = jobs_of(directory, text)[0].key("1.21")
    other = directory / "other"
    other.mkdir()
    for name in ("own.m2.j2", "helper.m2.j2"):
        (other / name).write_text((directory / name).read_text())
    assert jobs_of(other, text)[0].key("1.21") == before, "the path is not part of the key"
    changed = directory / "changed"
    changed.mkdir()
    (changed / "own.m2.j2").write_text(TEMPLATE)
    (changed / "helper.m2.j2").write_text("f = n -> n + 2;\n")
    assert jobs_of(changed, text)[0].key("1.21") != before


def test_a_template_with_a_model(directory: Path) -> None:
    text = '[[grid]]\nanalysis = "template"\ntemplate = "own.m2.j2"\nmodel = "lightning"\nd = [2, 3]\ndp = 1\nn = [7, 8]\n'
    jobs = jobs_of(directory, text)
    assert len(jobs) == 4
    assert jobs[0].spec.startswith("lightning(d=2,dp=1")
    assert jobs[0].parameters == {"seed": 0, "n": 7}
    assert jobs[0].size > 0


def test_a_grid_over_ideals(directory: Path) -> None:
    text = '[[grid]]\nanalysis = "ideal"\nideal = ["curve.m2"]\nfield = ["QQ", 101]\nsingular = false\n'
    jobs = jobs_of(directory, text)
    assert [job.parameters["field"] for job in jobs] == ["QQ", 101]
    assert jobs[0].title == "ideal curve.m2 field=QQ singular=False"


def test_an_ideal_that_a_script_defines(directory: Path) -> None:
    (job,) = jobs_of(directory, '[[job]]\nanalysis = "ideal"\nideal = "script.m2"\nrun = "J"\n')
    assert job.parameters["run"] == "J"
    assert job.file is not None
    assert "vars R" in job.file.text


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ('analysis = "template"', "template = 'FILE'"),
        ('analysis = "template"\ntemplate = "/own.m2.j2"', "own.m2.j2"),
        ('analysis = "template"\ntemplate = "missing.m2.j2"', "missing.m2.j2: No such file"),
        ('analysis = "template"\ntemplate = "curve.m2"', "_params.m2.j2"),
        ('analysis = "template"\ntemplate = "own.m2.j2"\nm = 3', "'m'"),
        ('analysis = "template"\ntemplate = "own.m2.j2"\nn = 0.5', "n: a float"),
        ('analysis = "ideal"\nideal = "curve.m2"\nspec = "lightning(d=2,dp=1)"', "ideal"),
        ('analysis = "ideal"\nideal = "own.m2.j2"', "own.m2.j2"),
        ('analysis = "ideal"\nideal = "curve.m2"\nfield = "RR"', "field"),
        ('analysis = "ideal"\nideal = "script.m2"', "script.m2"),
        ('analysis = ["template", "dimension"]\ntemplate = "own.m2.j2"', "requires"),
    ],
)
def test_errors_name_the_entry(directory: Path, entries: str, message: str) -> None:
    assert message in mistakes(directory, f"[[grid]]\n{entries}\n")


def record(analysis: str, result: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    return {
        "job": {"analysis": analysis, "model": "none", "parameters": parameters, "tags": [], "size": 0},
        "result": result, "message": None, "engine": None, "finished": "", "peak_memory_bytes": None, "key": "k",
        "outcome": "complete", "seconds": 0.1, "attempts": [],
    }  # fmt: skip


def test_emitted_values_are_columns() -> None:
    row = row_of(record("template", {"values": {"deg": 4, "hilbert": [1, 2], "field": "QQ"}}, n=3, seed=0))
    assert (row["n"], row["deg"], row["hilbert"], row["field"]) == (3, 4, [1, 2], "QQ")
    assert row["certainty"] == "computed by your script"
    declared = row_of(record("template", {"certainty": "numeric", "values": {"certainty": "numeric"}}))
    assert declared["certainty"] == "numeric"
    boasting = row_of(record("template", {"values": {"certainty": "proved"}}))
    assert boasting["certainty"] == "computed by your script"


def test_the_field_of_a_row() -> None:
    assert row_of(record("closure", {"characteristic": 0}, field="QQ"))["field"] == "QQ"
    assert row_of(record("closure", {"characteristic": 32003}, field=32003))["field"] == "F_32003"
    assert row_of(record("ideal", {"field": "F_101"}, field=None))["field"] == "F_101"
    assert row_of(record("dimension", {"options": {"prime": 10007}}))["field"] == "F_10007"
    assert row_of(record("boundary", {}))["field"] is None
