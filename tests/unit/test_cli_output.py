"""What people see: a user's words as they wrote them, and tables that can be read in 80 columns."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from m2bridge.certainty import Certainty
from m2bridge.cli import common, main, show
from m2bridge.evidence import Evidence
from m2bridge.results import Result
from tests.marking import slow_except
from tests.running import PATIENCE

NAMES = ("x [/foo]", "my [bold]map[/bold]", "[link=a]", "a\\[b]", "I :heart: it", "[/]")


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def map_file(directory: Path, name: str, variables: str = '"s", "t"', polynomials: str = '"s^2", "t"') -> str:
    path = directory / "map.toml"
    path.write_text(f"name = '{name}'\nvariables = [{variables}]\npolynomials = [{polynomials}]\n")
    return f"file:{path}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", [("dimension", "--no-engine"), ("describe",)], ids=lambda c: c[0])
def test_a_name_is_printed_as_it_was_written(
    command: tuple[str, ...], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, map_file(tmp_path, name)]) == 0
    assert f"{name}, 2 polynomials in 2 variables" in capsys.readouterr().out


def test_one_polynomial_in_one_variable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", map_file(tmp_path, "square", '"s"', '"s^2"')]) == 0
    assert "square, 1 polynomial in 1 variable\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        "describe {code}",
        "describe {code} --program",
        "dimension {code} --no-engine --evidence",
        "symmetries {code}",
        "identifiable {code} --function W",
        "same {code} --at {weights} --and {weights}",
        "models",
        "verify --list",
    ],
)
def test_a_json_document_is_alone_on_standard_output(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What files of users print when they are executed goes to standard error."""
    code, weights = tmp_path / "noisy.py", tmp_path / "weights.json"
    code.write_text(
        "print('executed')\ndef f(W: (2, 2), V: (1, 2), *, x: (2,)):\n    print('called')\n    return V @ (W @ x) ** 2\n"
    )
    weights.write_text('{"W": [[1, 2], [3, 4]], "V": [[1, 1]]}')
    assert main([*command.format(code=f"python:{code}:f", weights=weights).split(), "--json"]) == 0
    output = capsys.readouterr()
    json.loads(output.out)
    assert all(word in output.err for word in ("executed", "called") if "{code}" in command)


@pytest.mark.parametrize("option", [("--script",), ("--format", "m2")])
def test_a_json_document_excludes_other_output(option: tuple[str, ...]) -> None:
    assert main(["closure", "map:t->t^2;t^3", "--json", *option]) == 2


@pytest.mark.parametrize(
    "arguments",
    slow_except(
        {("models",)},
        [
            ("verify", "--list"),
            ("schema", "dimension"),
            ("models",),
            ("dimension", "lightning(d=2,dp=1)", "--no-engine"),
            ("--version",),
            ("--help",),
            ("singular-locus", "--d", "2", "--dp", "1", "--script"),
        ],
    ),
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("buffered", [True, False])
def test_a_closed_pipe_is_141_without_a_word(arguments: tuple[str, ...], buffered: bool) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    if not buffered:
        environment["PYTHONUNBUFFERED"] = "1"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "m2bridge", *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            env=environment,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_closed_pipe_of_standard_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "m2bridge", "describe", "nothing"]
        done = subprocess.run(command, stdout=writing, stderr=writing, timeout=PATIENCE, check=False)
    finally:
        os.close(writing)
    assert done.returncode == 141


def test_witnesses_without_a_value_are_omitted_by_default(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    arguments = ["dimension", "softmax(d=[2,2,2],a=2,t=2)"]
    assert main(arguments) == 0
    plain = capsys.readouterr().out
    assert "undecided" not in plain
    assert "no Macaulay2" not in plain
    assert "Macaulay2" in plain
    assert main([*arguments, "--evidence"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "undecided" in line)
    assert "macaulay2: " in row
    assert "≥" not in row
    assert "probable" not in row
    assert main(["dimension", "lightning(d=2,dp=1)", "--no-engine"]) == 0
    assert re.search(r"; Macaulay2 .*, p=", capsys.readouterr().out)


def result(*evidence: Evidence) -> Result:
    return Result(
        model="m", certainty=Certainty.PROBABLE, agreement=None, evidence=evidence, seed=0, seconds=0.0
    )


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("not used", "Macaulay2"),
        ("not used: too large", "(too large)"),
        ("no Macaulay2 found; the answer uses the other witnesses", "no Macaulay2 found"),
        ("Macaulay2 failed: it crashed", "Macaulay2 failed: it crashed"),
    ],
)
def test_the_reason_why_macaulay2_was_not_used(method: str, text: str) -> None:
    silent = Evidence("image_dim", None, "macaulay2", method)
    assert text in show.engine_text(result(silent))
    assert "Macaulay2" in show.engine_text(result())


def test_undecided_quantities_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    decided = Evidence("codim", 2, "numpy", "m")
    silent = [Evidence(name, None, "macaulay2", "m") for name in ("codim", "degree")]
    words = {"title": "m", "quantities": {"codim": "", "degree": ""}}
    show.show(result(decided, *silent), common.console(), **words, evidence=False)
    printed = capsys.readouterr().out
    assert "macaulay2" not in printed
    assert "undecided  degree" in printed
    show.show(result(decided, *silent), common.console(), **words, evidence=True)
    assert capsys.readouterr().out.count("macaulay2: m") == 2


def test_closed_streams_are_no_error() -> None:
    """A service may start a command without standard output and standard error."""
    words = ["dimension", "lightning(d=2,dp=1)", "--no-engine", "--json"]
    command = f'"{sys.executable}" -m m2bridge "$@" >&- 2>&-'
    assert subprocess.run(["sh", "-c", command, "sh", *words], timeout=PATIENCE, check=False).returncode == 0
    command = f'"{sys.executable}" -m m2bridge ideal - <&-'
    done = subprocess.run(
        ["sh", "-c", command], timeout=PATIENCE, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (2, "m2bridge: standard input: it contains no polynomials\n")


def test_an_answer_that_cannot_be_saved_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A disk that is full at the end of a long computation costs the record, not the answer."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["dimension", "lightning(d=2,dp=1)", "--no-engine", "--save", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("dimension 5, affine; proved")
    assert "No space left on device" in printed.err
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_written_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dimension", "lightning(d=2,dp=1)", "--no-engine", "--save", str(tmp_path)]) == 0

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "page.html")]) == 1
    assert capsys.readouterr().err.endswith("page.html: No space left on device\n")


def test_a_console_prints_no_escape_sequences_of_its_input(capsys: pytest.CaptureFixture[str]) -> None:
    console = common.console()
    console.print("a \x1b]0;title\x07 b", markup=False)
    table = show.grid()
    table.add_row("name", "\x1b[2J")
    console.print(table)
    seen = capsys.readouterr().out
    assert "\x1b" not in seen
    assert "a \\x1b]0;title" in seen
