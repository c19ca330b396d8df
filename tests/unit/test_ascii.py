"""Terminals that take ASCII alone or are narrow, places that cannot be written to: an answer or one line, never a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from m2bridge.cli import main
from m2bridge.engine.discovery import find_engine
from m2bridge.errors import NoEngineError
from m2bridge.questions.dimension import dimension
from m2bridge.records import save
from tests.marking import slow_except
from tests.running import PATIENCE

OWN = "map:s,t->s;s*t;t^2"


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", **variables}
    command = [sys.executable, "-m", "m2bridge", *words]
    return subprocess.run(
        command, capture_output=True, encoding="ascii", env=environment, timeout=PATIENCE, check=False
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("dimension", OWN, "--no-engine"), 0),
        pytest.param(("dimension", OWN, "--no-engine", "--evidence"), 0, marks=pytest.mark.slow),
        pytest.param(("describe", "lightning:d=2,dp=1"), 0, marks=pytest.mark.slow),
        (("models",), 0),
        pytest.param(("--help",), 0, marks=pytest.mark.slow),
        pytest.param(("dimension", "--help"), 0, marks=pytest.mark.slow),
        (("dimension", "map:é->é"), 2),
        pytest.param(("snö☃",), 2, marks=pytest.mark.slow),
    ],
    ids=lambda value: " ".join(value[:1]) if isinstance(value, tuple) else None,
)
def test_ascii_is_enough(words: tuple[str, ...], code: int) -> None:
    done = run(*words)
    assert done.returncode == code, done.stderr
    assert "unexpected" not in done.stderr
    assert done.stdout or done.stderr


def test_bounds_are_written_with_signs_of_ascii() -> None:
    assert "image_dim >= 2" in run("dimension", OWN, "--no-engine").stdout


def test_json_stays_json() -> None:
    assert json.loads(run("describe", "softmax(d=[2,2],t=2)", "--json").stdout)["spec"]
    assert json.loads(run("dimension", OWN, "--no-engine", "--json").stdout)["image_dim"] == 2


@pytest.mark.parametrize("width", slow_except({"20"}, ["20", "40", "60"]))
def test_narrow_terminals_lose_no_number(width: str) -> None:
    done = run("dimension", "lightning(d=2,dp=1)", "--no-engine", COLUMNS=width)
    assert done.returncode == 0
    assert "dimension 5" in " ".join(done.stdout.split())
    assert (
        max(len(line.rstrip()) for line in done.stdout.splitlines()) <= int(width) + 1
    )  # >= is wider than its sign


def test_the_variable_is_named_and_no_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("M2BRIDGE_M2", "/bin/false")
    with pytest.raises(NoEngineError, match="M2BRIDGE_M2"):
        find_engine()
    for words in (["singular-locus", "--d", "2", "--dp", "1"], ["dimension", OWN], ["closure", OWN]):
        assert main(words) == 4
        output = capsys.readouterr().err
        assert "M2BRIDGE_M2 names /bin/false" in output
        assert "--engine" not in output
    assert main(["dimension", OWN, "--no-engine"]) == 0  # --no-engine was given, --engine was not


def test_an_engine_that_was_given_is_named_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["closure", OWN, "--engine", "/bin/false"]) == 2
    assert "(--engine)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "place", ["missing/a.svg", "directory.svg", "a" * 300 + ".svg", "file/a.svg", "picture.xyz", "."]
)
def test_a_picture_that_cannot_be_written_is_refused(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "directory.svg").mkdir()
    (tmp_path / "file").touch()
    assert main(["figure", "3", "--widths", "3..3", "-o", str(tmp_path / place)]) == 2
    assert capsys.readouterr().err.startswith("m2bridge: -o ")


def test_written_text_keeps_all_characters(tmp_path: Path) -> None:
    save(dimension(OWN, engine=False), tmp_path)
    done = run("report", str(tmp_path), "-o", str(tmp_path / "r.html"))
    assert done.returncode == 0, done.stderr
    assert "≥" in (tmp_path / "r.html").read_text(encoding="utf-8")
