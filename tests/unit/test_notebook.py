"""Notebooks and interactive terminals: models and answers as boxes, long questions show their step, and the line goes away."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import m2bridge
from m2bridge.questions import steps


class Handle:
    def __init__(self, log: list[str]) -> None:
        self._log = log

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self._log.append(data["text/html"])


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A stand-in for a notebook; what it displays."""
    log: list[str] = []

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        log.append(data["text/html"])
        return Handle(log)

    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))  # type: ignore[arg-type]
    monkeypatch.setattr(steps, "_PROGRESS_DELAY", 0.0)
    return log


def test_a_notebook_shows_steps_and_takes_them_away(notebook: list[str]) -> None:
    shown = steps.suitable_steps()
    assert shown is not None
    shown("ranks of <b>")
    shown("equations")
    shown.close()
    assert notebook[0].startswith("<progress></progress> ranks of &lt;b&gt; (")
    assert "equations" in notebook[1]
    assert notebook[2] == ""


def test_a_question_shows_its_steps_by_default(notebook: list[str]) -> None:
    m2bridge.symmetries("mlp(widths=[2,2,2],r=2)")
    assert len(notebook) != 1  # either no step was announced, or the last thing shown is nothing
    assert not notebook or notebook[-1] == ""


def test_the_line_goes_away_when_interrupted(notebook: list[str]) -> None:
    def stop(context: Any, model: Any) -> Any:
        context.report_progress("long work")
        raise KeyboardInterrupt

    from m2bridge.questions.kernel import Question

    made: Any = Question(name="stop", asks="Nothing.", function=stop, result=m2bridge.Result)
    with pytest.raises(KeyboardInterrupt):
        made("mlp(widths=[2,2,2],r=2)")
    assert [bool(text) for text in notebook] == [True, False]


def test_short_work_shows_nothing(notebook: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_PROGRESS_DELAY", 60.0)
    m2bridge.dimension("lightning(d=2,dp=1)", engine=False)
    assert notebook == []


def test_a_caller_who_listens_is_not_talked_over(notebook: list[str]) -> None:
    m2bridge.dimension("lightning(d=2,dp=1)", engine=False, progress=lambda step: None)
    assert notebook == []


def test_scripts_and_pipes_show_nothing() -> None:
    assert steps.suitable_steps() is None


def test_a_model_is_a_box() -> None:
    text = m2bridge.parse_spec("mlp(widths=[2,3,2],r=2)")._repr_html_()
    assert "polynomial perceptron" in text
    assert "12: W1 3x2, W2 2x3" in text
    assert "[2], [2]" in text
    assert "map:s" in m2bridge.parse_spec("map:s->s;s^2")._repr_html_()


def test_a_model_is_one_short_line() -> None:
    assert (
        repr(m2bridge.parse_spec("lightning(d=2,dp=1)"))
        == "<Attention lightning(d=2,dp=1,a=2,t=2): 10 weights>"
    )
    network = m2bridge.from_callable(
        lambda w, x: (w @ x) ** 2, {"w": (30, 30)}, inputs={"x": (30,)}, name="mine"
    )
    assert repr(network) == f"<UserNetwork mine, 900 weights (program {network.program.sha256[:12]})>"
    long = m2bridge.parse_spec("map:x->" + ";".join(["x^2"] * 100))
    assert len(repr(long)) < 130
