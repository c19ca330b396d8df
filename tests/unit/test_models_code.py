"""``python:my_map.py:f``: the user's file is run from the command line, and from nowhere else unless that is allowed."""

from __future__ import annotations

import json

import pytest

from m2bridge import cli
from m2bridge.batch.entry import plan_of
from m2bridge.errors import InputError, SpecError
from m2bridge.families import parse_spec
from m2bridge.families.user_code import allowing, model_from_code
from m2bridge.questions.kernel import model_of

FILE = """
def network(W1: (3, 2), W2: (1, 3), *, x: (2,)):
    return W2 @ (W1 @ x) ** 2

def with_default(W1: (3, 2), W2: (1, 3), *, x: (2,), power=2):
    return W2 @ (W1 @ x) ** power

def without_entries(W: (0, 2)):
    return W

def without_shapes(W, x):
    return W @ x

def broken(W: 2):
    return W.nothing

def layer(width):
    def network(W1: (width, 2), W2: (1, width), *, x: (2,)):
        return W2 @ (W1 @ x) ** 2
    return network

number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_map.py"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_function_with_annotations_is_a_network(file, capsys):
    model = model_from_code(f"python:{file}:network")
    assert model.parameters == {"W1": (3, 2), "W2": (1, 3)}
    assert model.input_shape == (2,)
    assert parse_spec(model.spec) == model, "the spec is the program: the file is not needed again"
    assert model_from_code(f"python:{file}:with_default") == model
    with pytest.raises(InputError, match="shape"):
        model_from_code(f"python:{file}:without_entries")
    model_from_code(f"python:{file}:network")
    assert capsys.readouterr().err.count(str(file)) == 1, "the message is printed once"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("without_shapes", "annotations"),
        ("missing", "'missing'"),
        ("number", "function"),
        ("broken", "nothing"),
    ],
)
def test_errors_of_a_function_are_reported(file, name, message):
    with pytest.raises(InputError, match=message):
        model_from_code(f"python:{file}:{name}")


def test_a_function_with_arguments_returns_the_network(file):
    assert model_from_code(f"python:{file}:layer(width=3)") == model_from_code(f"python:{file}:network")
    for call in (
        "layer",
        "layer()",
        "layer(width=[2,3])",
        "layer(widht=3)",
        "number(width=3)",
        "layer(width=3",
        "layer(__import__)",
    ):
        with pytest.raises(InputError):
            model_from_code(f"python:{file}:{call}")


def test_a_grid_sweeps_an_argument_of_a_function(file):
    jobs = file.with_name("jobs.json")
    entry = {"analysis": "dimension", "model": "python:my_map.py:layer", "width": [2, 3]}
    jobs.write_text(json.dumps({"grid": [entry]}), encoding="utf-8")
    with pytest.raises(InputError, match="--allow-code"):
        plan_of(jobs, workers=1)
    with allowing(True):
        plan = plan_of(jobs, workers=1)
    assert sorted(parse_spec(job.spec).parameter_count for job in plan.jobs) == [6, 9]
    assert sorted(str(job.name) for job in plan.jobs) == ["layer(width=2)", "layer(width=3)"]
    assert sorted(job.sweep["width"] for job in plan.jobs) == [2, 3]


def test_an_error_of_the_file_has_its_line(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text("import math\n\nmath.nothing\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 3: AttributeError"):
        model_from_code(f"python:{path}:f")
    path.write_text("import sys\n\nsys.exit(5)\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 3: SystemExit: 5"):
        model_from_code(f"python:{path}:f")


@pytest.mark.parametrize("read", [parse_spec, model_of])
def test_no_other_function_executes_a_file(file, read):
    file.write_text("raise SystemExit('this file was run')", encoding="utf-8")
    with pytest.raises(SpecError, match="--allow-code"):
        read(f"python:{file}:network")
    with pytest.raises(SpecError, match="--allow-code"):
        read(f" torch:{file}:network")


def test_a_job_file_runs_code_only_when_that_is_allowed(file):
    jobs = file.with_name("jobs.json")
    entry = {"analysis": "dimension", "spec": "python:my_map.py:network"}
    jobs.write_text(json.dumps({"job": [entry]}), encoding="utf-8")
    with pytest.raises(InputError, match="--allow-code"):
        plan_of(jobs, workers=1)
    with allowing(True):
        plan = plan_of(jobs, workers=1)
    assert [job.spec.split(":")[0] for job in plan.jobs] == ["program"]
    with pytest.raises(SpecError):
        parse_spec("python:my_map.py:network")


def test_a_job_file_names_only_files_beside_it(file, tmp_path):
    jobs = tmp_path / "inner" / "jobs.json"
    jobs.parent.mkdir()
    entry = {"analysis": "dimension", "spec": "python:../my_map.py:network"}
    jobs.write_text(json.dumps({"job": [entry]}), encoding="utf-8")
    with allowing(True), pytest.raises(InputError, match="directory"):
        plan_of(jobs, workers=1)


def test_the_command_line_runs_the_file_that_was_typed(file, capsys):
    assert cli.main(["dimension", f"python:{file}:network", "--no-engine", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["image_dim"] == 3, "all quadratic forms in two variables"
    assert document["model"].startswith("program:")


def test_a_name_that_is_not_there_gets_a_suggestion(tmp_path):
    file = tmp_path / "nets.py"
    file.write_text("def squares(w: (2,)):\n    return w**2\n\n\ndef nothing():\n    return 3\n")
    with pytest.raises(InputError, match=r"'square'.*squares"):
        model_from_code(f"python:{file}:square")
    with pytest.raises(InputError, match=r"nothing .*weights"):
        model_from_code(f"python:{file}:nothing")
