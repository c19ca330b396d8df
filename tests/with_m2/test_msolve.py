"""The adapter of msolve: real jobs with answers known by hand, and damaged output of every kind of job."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

from m2bridge import msolve as adapter
from m2bridge.engine import Engine, EngineInfo, MsolveEngine, discovery, find_msolve
from m2bridge.errors import CrashError, InputError, M2BridgeError, OutputError, ScriptError, TimeLimitError
from m2bridge.limits import Limits
from m2bridge.msolve import System

P = 8_388_593
CIRCLE = {(2, 0): 1, (0, 2): 1, (0, 0): -5}
HYPERBOLA = {(1, 1): 1, (0, 0): -2}


def system(p: int, *equations: adapter.Polynomial) -> System:
    return System(variables=("x", "y"), p=p, equations=equations)


def count(engine: Engine, asked: System, saturate_by: adapter.Polynomial | None = None) -> int | None:
    run = engine.run(adapter.counting_script("count", asked, saturate_by))
    return adapter.standard_monomials(adapter.leading_monomials(run, asked))


def solve(engine: Engine, asked: System) -> adapter.Parametrization | None:
    return adapter.parametrization(engine.run(adapter.parametrizing_script("solve", asked)), asked)


def test_counts(msolve: Engine) -> None:
    """A circle and a hyperbola meet in 4 points; x (x - 1), x y leave the point (1, 0) away from x = 0."""
    assert count(msolve, system(P, CIRCLE, HYPERBOLA)) == 4
    lines = system(P, {(2, 0): 1, (1, 0): -1}, {(1, 1): 1})
    assert count(msolve, lines) is None
    assert count(msolve, lines, {(1, 0): 1}) == 1
    assert count(msolve, system(P, CIRCLE, {(0, 0): 1})) == 0


@pytest.mark.parametrize("p", [0, P])
def test_parametrizations(msolve: Engine, p: int) -> None:
    """The four points (1, 2), (2, 1), (-1, -2), (-2, -1), all real; two double points; no solution; a line."""
    four = solve(msolve, system(p, CIRCLE, HYPERBOLA))
    assert four is not None
    assert (four.degree, four.solutions, len(four.boxes)) == (4, 4, 0 if p else 4)
    double = solve(msolve, system(p, {(2, 0): 1}, {(0, 2): 1, (0, 0): -1}))
    assert double is not None
    assert (double.degree, double.solutions) == (4, 2)
    none = solve(msolve, system(p, {(0, 0): 1}))
    assert none is not None
    assert none.solutions == 0
    assert solve(msolve, system(p, {(1, 0): 1})) is None


def test_rational_coefficients_and_an_added_form(msolve: Engine) -> None:
    """x^2 = 1/4, y^2 = 4: no coordinate separates the four points, so msolve adds a linear form."""
    asked = system(0, {(2, 0): 1, (0, 0): Fraction(-1, 4)}, {(0, 2): 1, (0, 0): -4})
    solved = solve(msolve, asked)
    assert solved is not None
    assert solved.solutions == 4
    assert {box[0][0] for box in solved.boxes} == {Fraction(1, 2), Fraction(-1, 2)}
    wrong = system(0, {(2, 0): 1, (0, 0): Fraction(-1, 9)}, {(0, 2): 1, (0, 0): -4})
    assert not adapter.satisfies(solved, wrong, P)


def test_only_checked_names_and_numbers_are_written() -> None:
    with pytest.raises(InputError):
        _ = System(variables=("x;y",), p=P, equations=({(1,): 1},)).text
    with pytest.raises(InputError):
        _ = system(P, {(1, 0): 0.5}).text  # type: ignore[dict-item]
    with pytest.raises(InputError, match="65537"):
        adapter.counting_script("small", system(101, CIRCLE), HYPERBOLA)


# -- damage ----------------------------------------------------------------------------------------------


def wrapped(tmp_path: Path, engine: Engine, change: str) -> MsolveEngine:
    """An msolve whose output goes through a shell command."""
    assert engine.info.path is not None
    program = tmp_path / "msolve"
    program.write_text(
        f'#!/bin/sh\ntest "$1" = -V && exec {engine.info.path} -V\n{engine.info.path} "$@" | {change}\n'
    )
    program.chmod(0o755)
    return MsolveEngine(
        EngineInfo(version=engine.info.version, origin="option", path=program, program="msolve")
    )


JOBS = {
    "count": lambda engine: count(engine, system(P, CIRCLE, HYPERBOLA)),
    "saturation": lambda engine: count(engine, system(P, CIRCLE, HYPERBOLA), {(1, 0): 1}),
    "over F_p": lambda engine: solve(engine, system(P, CIRCLE, HYPERBOLA)),
    "over QQ": lambda engine: solve(engine, system(0, CIRCLE, HYPERBOLA)),
}
DAMAGES = {
    "truncated": ("head -c -5", OutputError),
    "half": ("head -n 5", OutputError),
    "empty": ("head -c 0", OutputError),
    "words": ("sed 's/x/os/'", OutputError),
    "letters for digits": ("tr 0-9 a-j", OutputError),
    "no line ends": ("tr -d '\\n'", OutputError),
    "twice": ("sed p", OutputError),
    "a crash": ("kill -SEGV $$", CrashError),
    "an exit": ("exit 3", ScriptError),
    "a hang": ("sleep 60", TimeLimitError),
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_output_is_an_error(tmp_path: Path, msolve: Engine, job: str, damage: str) -> None:
    change, error = DAMAGES[damage]
    engine = wrapped(tmp_path, msolve, change)
    short = Limits(wall_seconds=2.0)
    run = engine.run
    engine.run = lambda script, limits=short, listener=None: run(script, limits, listener)  # type: ignore[method-assign]
    with pytest.raises(error):
        JOBS[job](engine)


@pytest.mark.parametrize(
    ("job", "change"),
    [
        ("count", "sed '/^y^3/d; s/^x^2,/x^2]:/'"),  # a monomial less, in a closed list
        ("saturation", "sed '/^y^3/d; s/^x^2,/x^2]:/'"),
        ("over F_p", "sed 's/^\\[4, 0, [0-9]*, 0, 1\\]/[4, 0, 1]/'"),  # coefficients missing
        ("over F_p", "sed 's/^\\[4, 0, [0-9]*, 0, 1\\]/[4, 0, 7, 0, 1]/'"),  # another polynomial
        ("over F_p", "sed 's/^4, *$/3,/'"),  # a solution fewer than the polynomial has
        ("over QQ", "sed 's/\\[20, 0, -8, 0\\]/[21, 0, -8, 0]/'"),  # a wrong coordinate
        ("over QQ", "sed 's/\\[4, 0, -5, 0, 1\\]/[4, 0, -5, 0, 2]/'"),
        ("over QQ", "sed 's/\\[\\[-1, -1\\], /[/'"),  # a box without a coordinate
    ],
)
def test_a_changed_solution_is_caught(tmp_path: Path, msolve: Engine, job: str, change: str) -> None:
    JOBS[job](msolve)
    with pytest.raises(OutputError):
        JOBS[job](wrapped(tmp_path, msolve, change))


def test_a_dropped_box_shows_in_the_count(tmp_path: Path, msolve: Engine) -> None:
    """The boxes are compared with the real roots of the polynomial by who asks; here they are only counted."""
    dropped = solve(
        wrapped(tmp_path, msolve, "sed 's/\\[\\[-1, -1\\], \\[-2, -2\\]\\], //'"),
        system(0, CIRCLE, HYPERBOLA),
    )
    assert dropped is not None
    assert (dropped.solutions, len(dropped.boxes)) == (4, 3)


# -- discovery -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("sed 's/65536/65535/'", "wrong result"),
        ("sed 's/-10/-11/'", "wrong result"),
        ("kill -ILL $$", "SIGILL"),
        ("head -c 0", "wrong result"),
    ],
)
def test_a_broken_msolve_is_not_used(
    tmp_path: Path, msolve: Engine, monkeypatch: pytest.MonkeyPatch, change: str, reason: str
) -> None:
    path = wrapped(tmp_path, msolve, change).info.path
    monkeypatch.setenv("M2BRIDGE_MSOLVE", str(path))
    assert find_msolve() is None
    (candidate,) = discovery.candidates(wheel=discovery.MSOLVE)
    assert reason in (candidate.reason or "")


def test_no_msolve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M2BRIDGE_MSOLVE", "/nonexistent/msolve")
    assert find_msolve() is None


def test_another_version_at_the_same_path_is_no_answer(tmp_path: Path, msolve: Engine) -> None:
    assert msolve.info.path is not None
    info = EngineInfo(version="0.0.1", origin="option", path=msolve.info.path, program="msolve")
    with pytest.raises(M2BridgeError, match="version"):
        count(MsolveEngine(info), system(P, CIRCLE, HYPERBOLA))


def test_it_runs_in_the_sandbox(tmp_path: Path, msolve: Engine) -> None:
    """A program in the place of msolve can write no file."""
    target = tmp_path / "written"
    wrapped(tmp_path, msolve, f"tee {target}").run(
        adapter.counting_script("count", system(P, CIRCLE, HYPERBOLA))
    )
    assert not target.exists() or os.path.getsize(target) == 0
