"""Estimates: every question predicts from the size of its subject, and nothing runs meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import m2bridge
from m2bridge import cli
from m2bridge.errors import InputError
from m2bridge.questions import find, questions
from m2bridge.questions.cost import Expense
from m2bridge.questions.kernel import MODEL, Question


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("an estimate opens no engine")

    monkeypatch.setattr("m2bridge.questions.kernel.open_engine", never)
    monkeypatch.setattr("m2bridge.engine.open_engine", never)


@pytest.mark.parametrize("name", [name for name, asked in questions().items() if asked.subject is MODEL])
def test_every_question_predicts_and_grows_with_the_model(name: str) -> None:
    small = find(name).estimate("lightning(d=2,dp=1)")
    large = find(name).estimate("lightning(d=40,dp=40)")
    assert 0.5 < small.seconds < 60
    assert 0 < small.memory_bytes < 2**30
    assert large.seconds > small.seconds
    assert large.memory_bytes > small.memory_bytes
    assert small.without_engine


def test_a_question_that_needs_no_engine_says_so() -> None:
    assert "the whole answer" in find("dimension").estimate("lightning(d=2,dp=1)").without_engine
    assert "dimension --no-engine" in find("closure").estimate("lightning(d=2,dp=1)").without_engine


def test_unknown_options_and_models_are_refused() -> None:
    with pytest.raises(InputError, match="has no option 'degree'"):
        find("dimension").estimate("lightning(d=2,dp=1)", degree=3)
    with pytest.raises(InputError, match="lightnin"):
        find("dimension").estimate("lightnin(d=2,dp=1)")


def test_a_declaration_brings_its_own_cost() -> None:
    asked = find("closure")
    own: Question[object, object] = Question(
        name="own", asks="?", function=asked.function, result=asked.result,
        cost=lambda model, options: Expense(seconds=7.0, megabytes=3.0, rests_on=f"{options['max_degree']} degrees"),
    )  # type: ignore[type-var]  # fmt: skip
    found = own.estimate("lightning(d=2,dp=1)", max_degree=4)
    assert (found.seconds, found.memory_bytes, found.rests_on) == (7.0, 3 * 2**20, "4 degrees")


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["closure", "--d", "3", "--dp", "3", "--timeout", "10s", "--estimate"]) == 0
    text = capsys.readouterr().out
    assert "from 54 coordinates" in text
    assert "more than the time limit of 10 s" in text
    assert cli.main(["dimension", "--d", "2", "--dp", "1", "--estimate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["question"] == "dimension"
    assert cli.main(["closure", "deep-lightning(d=[5,5,5,5],a=[3,3,3],t=3)", "--estimate"]) == 0
    assert "out of reach" in capsys.readouterr().out
    (tmp_path / "ideal.txt").write_text("x^2*y - z^3\nx*y*z - 1\n")
    assert cli.main(["ideal", str(tmp_path / "ideal.txt"), "--estimate"]) == 0
    assert "3 variables and Bezout number 9" in capsys.readouterr().out


def test_a_network_without_known_symmetries_costs_a_search() -> None:
    """A network of 189 weights took 1.6 s of one core without Macaulay2, nearly all of it a search for symmetries."""
    shapes = {"Q": (3, 7), "K": (3, 7), "V": (7, 7), "W": (7, 7), "U": (7, 7)}
    own = m2bridge.from_callable(
        lambda X, Q, K, V, W, U: X + V @ X @ (X.T @ K.T @ Q @ X) + U @ (W @ X) ** 2,
        shapes,
        inputs={"X": (7, 3)},
    )
    known = m2bridge.parse_spec("transformer(d=7,a=3,t=3)")
    assert own.parameter_count == known.parameter_count == 189
    assert m2bridge.dimension.estimate(own).seconds > m2bridge.dimension.estimate(known).seconds + 1
