"""A limit that cuts an answer is named in it, whichever script it stops, and the clock decides nothing else."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from m2bridge import limits
from m2bridge.cli import main
from m2bridge.engine import Engine, Run
from m2bridge.engine.base import EngineInfo, Listener, Outcome
from m2bridge.errors import LimitError
from m2bridge.limits import Limits
from m2bridge.questions import find
from m2bridge.results import Result
from m2bridge.scripts import Script

ASKED: list[tuple[str, str, dict[str, Any]]] = [
    ("boundary", "lightning(d=2,dp=1)", {"point": [1, 0, 1, 0, 0, 0]}),
    ("closure", "lightning(d=2,dp=1)", {}),
    ("closure", "map:s,t->s^3;s^2*t;s*t^2;t^3", {"field": "QQ"}),
    ("critical-points", "lightning(d=2,dp=1)", {}),
    ("critical-points", "mlp(widths=[2,1,1],r=2)", {}),
    ("dimension", "lightning(d=2,dp=1)", {}),
    ("fiber", "lightning(d=2,dp=1,parametrization=attention)", {}),
    ("membership", "map:t->t^2;t^3", {"point": [1, 2]}),
    ("membership", "map:s,t->s^2+t^2;s*t", {"point": [1, 1]}),
    ("singular-locus", "lightning(d=2,dp=1)", {}),
    ("singular-locus", "map:t->t^2;t^3", {}),
    ("singular-point", "map:t->t^2;t^3", {}),
]


class StoppedEngine(Engine):
    """A Macaulay2 that a time limit stops at every run of one script; `names` are the scripts that were run."""

    def __init__(self, engine: Engine, stopped: str = "") -> None:
        self._engine, self._stopped, self.names = engine, stopped, list[str]()

    @property
    def info(self) -> EngineInfo:
        return self._engine.info

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        self.names.append(script.name)
        if script.name != self._stopped:
            return self._engine.run(script, limits, listener)
        return Run(
            script=script, engine=self.info, outcome=Outcome.TIMED_OUT, stdout="", stderr="", seconds=1.0,
            limits=limits or Limits(),
        )  # fmt: skip


def statements(result: Result) -> list[Any]:
    """Return an answer without its times."""
    evidence = [
        (e.quantity, str(e.value), e.relation, e.witness, e.method, e.certainty) for e in result.evidence
    ]
    return [result.view().answer, result.certainty, result.agreement, result.limit, evidence]


@pytest.mark.parametrize(
    ("name", "model", "options"),
    [pytest.param(*ASKED[0], marks=pytest.mark.slow), *ASKED[1:]],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_whichever_script_is_stopped_the_answer_names_the_limit_or_is_the_same(
    engine: Engine, name: str, model: str, options: dict[str, Any]
) -> None:
    whole = StoppedEngine(engine)
    answer = find(name)(model, engine=whole, **options)
    assert answer.limit is None
    for script in dict.fromkeys(whole.names):
        try:
            cut = find(name)(model, engine=StoppedEngine(engine, script), **options)
        except LimitError:  # nothing could be said
            continue
        if cut.limit is None:  # the limit left nothing out
            assert statements(cut) == statements(answer), script
        else:
            assert "--timeout" in cut.limit


@pytest.mark.parametrize(
    ("name", "model", "options"), [ASKED[1], ASKED[6], ASKED[8], ASKED[10]], ids=lambda v: v if isinstance(v, str) else ""
)  # fmt: skip
def test_a_fast_clock_changes_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str, model: str, options: dict[str, Any]
) -> None:
    """Twenty times as much time passes for the question; its limit is not reached."""
    expected = statements(find(name)(model, engine=engine, **options))
    begin = time.monotonic()
    fast = SimpleNamespace(monotonic=lambda: begin + 20 * (time.monotonic() - begin))
    monkeypatch.setattr(limits, "time", fast)
    assert statements(find(name)(model, engine=engine, timeout=12_000, **options)) == expected


def test_the_command_exits_with_5(capsys: pytest.CaptureFixture[str]) -> None:
    """The whole answer takes half a minute; one that takes three seconds fits into two where Macaulay2 runs already."""
    assert main(["singular-locus", "lightning(d=3,dp=3)", "--timeout", "2"]) == 5
    assert "2 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "model", "options"),
    [
        ("critical-points", "mlp(widths=[3,3,3],r=4)", {}),
        ("membership", "mlp(widths=[3,3,3],r=2)", {"point": list(range(18))}),
        ("boundary", "lightning(d=4,dp=4)", {}),
    ],
)
def test_a_limit_in_python_code_leaves_a_partial_answer(
    name: str, model: str, options: dict[str, Any], engine: Engine
) -> None:
    """The expansion, the distance in float64 and the group action do not look at the clock."""
    answer = find(name)(model, engine=engine, timeout=0.5, **options)
    assert answer.limit is not None
    assert answer.agreement is not False
