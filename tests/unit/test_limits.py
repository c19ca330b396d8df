"""One clock: constants in seconds are those of docs/limits.md, counted work ends searches, and a limit keeps what was found."""

from __future__ import annotations

import re
import time
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from m2bridge import dimension, from_callable, limits, symmetries
from m2bridge.cli import main
from m2bridge.limits import LimitReached
from m2bridge.programs.work import WorkBudget
from m2bridge.questions.context import Context
from m2bridge.symmetry.search import Search

ROOT = Path(__file__).parents[2]
SKIPS = "attention(d=[2,2,2],a=[3,4],t=3,heads=[2,2],tied=true,skip=true)"
"""Ranks take a moment, the search for symmetries half a minute."""
_WORDS = "SECONDS?|PATIENCE|GRACE|PAUSE|TICK|HEARTBEAT|EVERY|LOOK|SILENCE|TIMEOUT|INTERVAL|OVERTIME"
_ASSIGNED = re.compile(r"^ *([A-Z_, ]+)(?:: [a-z]+)? = (?=.*[0-9]|\")", re.MULTILINE)
_ONE_NAME = re.compile(rf"\b[A-Z_]*(?:{_WORDS})\b")
_LIMITS = re.compile(r"wall_seconds(?:: float \| None)? ?= ?[0-9]")
NOT_SECONDS = {
    ("cli/common.py", "_TIMEOUT"),  # a help text
}


def constants() -> set[tuple[str, str]]:
    """Files of the package with the names of their constants in seconds."""
    found = set()
    for path in sorted((ROOT / "m2bridge").rglob("*.py")):
        text, file = path.read_text(encoding="utf-8"), path.relative_to(ROOT / "m2bridge").as_posix()
        for names in _ASSIGNED.findall(text):
            found |= {(file, name) for name in _ONE_NAME.findall(names)}
        if _LIMITS.search(text):
            found.add((file, "wall_seconds"))
    return found - NOT_SECONDS


def listed() -> set[tuple[str, str]]:
    rows = re.findall(
        r"^\| `([^`]+)` \| ([^|]+) \|", (ROOT / "docs/limits.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    return {(file, name) for file, names in rows for name in re.findall(r"`([^`]+)`", names)}


def test_every_constant_in_seconds_is_in_the_table() -> None:
    assert constants() - listed() == set()
    deciding = ("questions/", "symmetry/", "programs/", "linear/", "frontends/", "families/")
    assert {c for c in listed() if c[0].startswith(deciding)} == {
        ("questions/kernel.py", "_PROGRESS_DELAY"),
    }


def test_no_step_is_allowed_seconds() -> None:
    """What a step may take is a share; evidence and runs have seconds, which are measured."""
    allowed = re.compile(r"\b(?:seconds|until|timeout)=[0-9]")
    for folder in ("questions", "symmetry", "programs"):
        for path in (ROOT / "m2bridge" / folder).rglob("*.py"):
            assert not allowed.search(path.read_text(encoding="utf-8")), path


def test_work_is_counted() -> None:
    work = WorkBudget(10.0)
    assert work.spend(4.0)
    assert not work.spend(7.0)
    part = work.share(0.5)
    assert (part.left, work.left) == (3.0, 3.0)
    part.charge(5.0)
    assert part.left < 0


def test_the_users_limit_ends_counted_work() -> None:
    def over() -> None:
        raise LimitReached("over")

    with pytest.raises(LimitReached):
        WorkBudget(10.0, over).spend(1.0)


def network(x: Any, W: Any, U: Any) -> Any:
    return U @ (W @ x) ** 2


def small() -> Any:
    return from_callable(network, {"W": (2, 3), "U": (2, 2)}, inputs={"x": (3,)})


def test_a_search_without_work_is_not_complete() -> None:
    found = Search(small().program, p=8388593, work=WorkBudget(0.0)).run(2)
    assert (found.rank, found.complete) == (0, False)
    assert Search(small().program, p=8388593).run(1).complete


def statements(result: Any) -> list[Any]:
    evidence = [(e.quantity, str(e.value), e.relation, e.witness, e.certainty) for e in result.evidence]
    return [result.view().answer, result.certainty, result.agreement, result.limit, evidence]


@pytest.mark.parametrize("question", [dimension, symmetries])
def test_a_fast_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch, question: Any) -> None:
    """Twenty times as much time passes for the question; its limit is not reached."""
    expected = statements(question(small(), engine=False))
    begin = time.monotonic()
    fast = SimpleNamespace(monotonic=lambda: begin + 20 * (time.monotonic() - begin))
    monkeypatch.setattr(limits, "time", fast)
    assert statements(question(small(), engine=False, timeout=12_000)) == expected


def over_after(monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    """Let the time be over at the given look at the clock."""
    left = [looks]

    def check(self: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise LimitReached("the time limit of 600 s was reached")

    monkeypatch.setattr(limits.Clock, "check", check)


@pytest.mark.parametrize("looks", range(6))
def test_a_limit_keeps_the_bounds_found_before(monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    whole = dimension(small(), engine=False)
    over_after(monkeypatch, looks)
    answer = dimension(small(), engine=False)
    if answer.limit is None:  # the answer needs fewer looks at the clock
        assert looks >= 4
        assert statements(answer) == statements(whole)
        return
    assert "--timeout" in answer.limit
    assert answer.lower_bound == whole.lower_bound  # the first rank is there before the first look
    assert answer.lower_bound <= answer.upper_bound


@pytest.mark.parametrize("looks", range(0, 6, 2))
def test_a_limit_keeps_the_symmetries_found_before(monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    over_after(monkeypatch, looks)
    answer = symmetries(small(), engine=False)
    assert answer.limit is not None
    assert not answer.complete
    assert answer.upper_bound >= 2 * 3 + 2 * 2 - 2  # two squared neurons, each up to a scaling


def test_the_command_exits_with_5_and_prints_the_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dimension", SKIPS, "--timeout", "2", "--no-engine"]) == 5
    printed = capsys.readouterr()
    assert "dimension 20 (20 to " in printed.out
    assert "2 s" in printed.err


def test_a_limit_is_never_dropped() -> None:
    """A question that passes no limit of its own answers with the one that was noted."""
    context = Context(engine=False, prime=None, seed=0, limits=limits.Limits(), keep=None, progress=None)
    with context.keep_partial("a step"):
        raise LimitReached("the reason")
    assert context.limit.startswith("the reason")
    assert "a step" in context.limit
    assert "--timeout" in context.limit
    answer = dimension(small(), engine=False)
    left_out = ("limit", "evidence", "engine", "scripts", "seconds", "peak_memory_bytes")
    values = {f.name: getattr(answer, f.name) for f in fields(answer) if f.name not in left_out}
    assert context.build_result(type(answer), **values).limit == context.limit
    assert context.build_result(type(answer), **{**values, "limit": "mine"}).limit == "mine"


def test_parts_of_a_clock_end_within_it() -> None:
    clock = limits.Clock(100.0, started=time.monotonic() - 60)
    half = clock.part(0.5)
    assert (clock.is_part, half.is_part) == (False, True)
    assert half.seconds == pytest.approx(20, abs=1)
    assert half.part().seconds == pytest.approx(20, abs=1)
    assert half.limit_text == clock.limit_text
    assert "100 s" in clock.limit_text
    assert limits.Clock().part(0.5).seconds is None


def test_scripts_after_the_end_share_one_overtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each script that begins late has what the ones before have left of a twentieth of the limit, or of one second."""
    begin = time.monotonic()
    monkeypatch.setattr("m2bridge.limits.time", SimpleNamespace(monotonic=lambda: begin))
    for late, left in ((0.0, 0.1), (0.06, 0.04), (0.2, 0.001)):
        clock = limits.Clock(2.0, started=begin - 2 - late)
        allowed = clock.limits(limits.Limits())
        assert allowed.wall_seconds == pytest.approx(left)
        assert allowed.deadline == pytest.approx(begin + 0.1 - late)
    assert limits.Clock(600.0).overtime == 1.0


def test_the_start_of_macaulay2_counts() -> None:
    """A script that begins later than it was sent has what is left until the deadline, never more than its share."""
    now = time.monotonic()
    assert limits.Limits(wall_seconds=5.0, deadline=now + 60).seconds_left == 5.0
    assert limits.Limits(wall_seconds=5.0, deadline=now + 2).seconds_left == pytest.approx(2, abs=0.5)
    assert limits.Limits(wall_seconds=5.0, deadline=now - 2).seconds_left == 0.0


def test_loading_a_command_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The clock of a command starts when it begins, not when its modules are loaded."""
    monkeypatch.setattr("m2bridge.cli.time", SimpleNamespace(monotonic=lambda: time.monotonic() - 1000))
    assert main(["dimension", "lightning(d=2,dp=1)", "--no-engine", "--timeout", "600"]) == 5
    assert "600 s" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["dimension", "identifiable"])
def test_a_limit_before_all_bounds_leaves_those_that_take_no_time(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def reached(*_: object, **__: object) -> None:
        raise LimitReached("the time limit of 1 s was reached")

    monkeypatch.setattr("m2bridge.questions.dimension.upper_bounds", reached)
    monkeypatch.setattr("m2bridge.questions.identifiable.structural_rank", reached)
    assert main([command, "mlp(widths=[3,2,1],r=2)", "--no-engine"]) == 5
    assert "image_dim <= 8, image_dim <= 6" in capsys.readouterr().err  # weights, quadratic forms
