"""Test the command line without Macaulay2: bad input gives one line on standard error and exit code 2."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import typer

from m2bridge import cli
from m2bridge._version import __version__
from m2bridge.certainty import Certainty
from m2bridge.cli import common, main, questions, show
from m2bridge.cli.common import model_from
from m2bridge.errors import (
    CertificateError,
    CrashError,
    DisagreementError,
    InputError,
    M2BridgeError,
    NoEngineError,
    SpecError,
    TimeLimitError,
)
from m2bridge.evidence import Conflict, Evidence
from m2bridge.questions import sentences
from m2bridge.views import shorten

LAYER = ("--d", "2", "--dp", "1")


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if an engine is opened: bad input must be rejected before."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an engine was opened")

    monkeypatch.setattr("m2bridge.questions.kernel.open_engine", refuse)


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the single line on standard error; standard output must be empty."""
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith("\n")
    assert printed.err.count("\n") == 1, printed.err
    assert printed.err.startswith("m2bridge: ")
    assert "Traceback" not in printed.err
    assert "M2BRIDGE_DEBUG" not in printed.err
    return printed.err.removeprefix("m2bridge: ").strip()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--d", "0", "--dp", "1"), "--d 0"),
        (("--d", "-2", "--dp", "1"), "--d -2"),
        (("--d", "2", "--dp", "0"), "--dp 0"),
        ((*LAYER, "--a", "0"), "--a 0"),
        ((*LAYER, "--t", "-1"), "--t -1"),
        ((*LAYER, "--t", "0"), "--t 0"),
        ((*LAYER, "--t", "1"), "t >= 2"),
        (("--d", "1.5", "--dp", "1"), "Invalid value for '--d'"),
        (("--d", "two", "--dp", "1"), "Invalid value for '--d'"),
        (("--d", "", "--dp", "1"), "Invalid value for '--d'"),
        (("--d", "2"), "model"),
        (("--dp", "2"), "model"),
        ((), "model"),
        (("--d", "2", "--dp"), "--dp"),
        ((*LAYER, "--prime", "4"), "--prime 4"),
        ((*LAYER, "--prime", "0"), "--prime 0"),
        ((*LAYER, "--prime", "2"), "--prime 2"),
        ((*LAYER, "--prime", "-7"), "--prime -7"),
        ((*LAYER, "--prime", "32771"), "101 to 32749"),
        ((*LAYER, "--prime", str(2**61 - 1)), "--prime"),
        ((*LAYER, "--prime", "p"), "Invalid value for '--prime'"),
        ((*LAYER, "--seed", "-1"), "Invalid value for '--seed'"),
        ((*LAYER, "--timeout", "0"), "--timeout '0'"),
        ((*LAYER, "--timeout", "-5"), "--timeout '-5'"),
        ((*LAYER, "--timeout", "soon"), "--timeout 'soon'"),
        ((*LAYER, "--timeout", "nan"), "--timeout 'nan'"),
        ((*LAYER, "--timeout", "inf"), "--timeout 'inf'"),
        ((*LAYER, "--timeout", "1y"), "--timeout '1y'"),
        ((*LAYER, "--timeout", "9" * 400), "--timeout"),
        ((*LAYER, "--memory", "9" * 400), "--memory"),
        ((*LAYER, "--memory", "99999999999999T"), "--memory '99999999999999T'"),
        ((*LAYER, "--memory", "0.1"), "--memory '0.1'"),
        ((*LAYER, "--memory", "0"), "--memory '0'"),
        ((*LAYER, "--memory", "lots"), "--memory 'lots'"),
        ((*LAYER, "--memory", "-4G"), "--memory '-4G'"),
        ((*LAYER, "--save", "/dev/null/x"), "--save /dev/null/x"),
        ((*LAYER, "--keep", "/dev/null/x"), "--keep /dev/null/x"),
        ((*LAYER, "--nonsense"), "--nonsense"),
        ((*LAYER, "--jsn"), "--jsn"),
        (("lightning(d=2,dp=1)", *LAYER), "--d, --dp"),
        (("lightning(d=2)",), "dp"),
        (("lightning(d=0,dp=1)",), "100000"),
        (("lightning(d=2,dp=1,t=1)",), "t >= 2"),
        (("lightning(d=2,dp=1",), "expected"),
        (("lightnin(d=2,dp=1)",), "lightning"),
        (("",), "model"),
        ((" ",), "model"),
        (("lightning(d=2,dp=1)", "more"), "unexpected extra argument"),
        (("softmax(widths=[2,2])",), "'widths'"),
        (("--d", "40", "--dp", "40"), "--force"),
        (("--d", "1000", "--dp", "1000"), "--force"),
        (("--d", "99999", "--dp", "99999"), "--force"),
        (("--d", str(10**12), "--dp", "1"), "100000"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("no_engine")
def test_bad_input(arguments: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["singular-locus", *arguments]) == 2
    assert expected in error_line(capsys)


@pytest.mark.usefixtures("no_engine")
def test_a_file_is_not_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["singular-locus", *LAYER, "--save", str(tmp_path / "file")]) == 2
    assert f"--save {tmp_path / 'file'}" in error_line(capsys)


def test_a_missing_directory_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save, keep = tmp_path / "a" / "b", tmp_path / "c" / "d"
    arguments = ["dimension", *LAYER, "--no-engine", "--save", str(save), "--keep", str(keep)]
    assert main(arguments) == 0
    assert len(list(save.glob("dimension-*.json"))) == 1
    assert keep.is_dir()
    assert f"record: {save}" in capsys.readouterr().err


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_an_engine_that_is_not_macaulay2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reject a missing path, a directory, a file that is not executable, and other programs."""
    (tmp_path / "plain").write_text("not a program")
    candidates = [
        tmp_path / "missing",
        tmp_path,
        tmp_path / "plain",
        executable(tmp_path / "silent", "#!/bin/sh\nexit 0\n"),
        executable(tmp_path / "liar", "#!/bin/sh\necho '@m2b-probe 9.9'\n"),
    ]
    for candidate in candidates:
        assert main(["singular-locus", *LAYER, "--engine", str(candidate)]) == 2, candidate
        assert str(candidate) in error_line(capsys)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("no-such-command",), "'no-such-command'"),
        (("figure", "2"), "1, theorem-3.4, 3"),
        (("dimensoin",), "dimension"),
        (("describe", ""), "model"),
        (("dimension", ""), "model"),
        (("--nonsense",), "--nonsense"),
        (("nothing", *LAYER, "--script"), "'nothing'"),
        (("closure", *LAYER, "--prime", "4", "--script"), "--prime 4"),
        (("closure", "softmax(d=[2,2],t=2)", "--script"), "polynomial"),
        (("singular-locus", "--script"), "model"),
        (("singular-locus", "--d", "0", "--dp", "1", "--script"), "--d 0"),
        (("singular-locus", *LAYER, "--t", "1", "--script"), "t >= 2"),
        (("singular-locus", *LAYER, "--prime", "4", "--script"), "--prime 4"),
        (("singular-locus", "--d", "40", "--dp", "40", "--script"), "coordinates"),
        (("schema", "nothing"), "'nothing'"),
        (("closure", *LAYER, "--field", "QQ", "--prime", "101"), "--field QQ and --prime 101"),
        (("same", *LAYER, "--tolerance", "abc"), "at least 0 and less than 1, not abc"),
    ],
)  # fmt: skip
def test_bad_input_of_other_commands(
    arguments: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(list(arguments)) == 2
    assert expected in error_line(capsys)


def test_an_ideal_has_one_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ideal.txt"
    file.write_text("x^2 - y\n")
    assert main(["ideal", str(file), "--field", "QQ", "--prime", "101"]) == 2
    assert "--field QQ and --prime 101" in error_line(capsys)


def test_force_goes_past_the_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """--force lifts the size limit and no other check."""

    def reached(*_: object, **__: object) -> None:
        raise NoEngineError("reached", candidates=())

    monkeypatch.setattr("m2bridge.questions.kernel.open_engine", reached)
    assert main(["singular-locus", "--d", "40", "--dp", "40", "--force"]) == 4
    assert main(["singular-locus", "--d", "40", "--dp", "40", "--t", "1", "--force"]) == 2


def test_version_help_and_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"m2bridge {__version__}\n"
    for arguments in (["--help"], ["-h"], ["singular-locus", "--help"]):
        assert main(arguments) == 0
        assert "Usage: m2bridge" in capsys.readouterr().out
    assert main([]) == 2


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_list_of_commands_needs_no_library(option: str) -> None:
    found = "sys.exit(bool({'typer', 'rich', 'numpy'} & set(sys.modules)))"
    code = f"import sys; from m2bridge.cli import main; main(['{option}']); {found}"
    assert (
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False).returncode == 0
    )


def test_help_documents_every_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    for code in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130, 141, 143):
        assert re.search(rf"\b{code} [a-z]", text), code


def test_every_listed_command_exists_and_has_the_listed_description() -> None:
    app = typer.main.get_command(cli.build_app())
    names = set(app.commands)  # type: ignore[attr-defined]
    assert {"singular-locus", "describe", "schema", "doctor", "engine"} <= names
    listed = {**sentences(), **cli.COMMANDS}
    assert list(listed) == [*sentences(), *cli.COMMANDS]
    assert set(listed) == names
    for name, command in app.commands.items():  # type: ignore[attr-defined]
        assert listed[name]
        assert command.help.startswith(listed[name])


EVIDENCE = Evidence("degree", 3, "a", "m")
OTHER = Evidence("degree", 4, "b", "m")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("two\nlines  and  spaces"), 2),
        (SpecError("x"), 2),
        (NoEngineError("x"), 4),
        (CrashError("x"), 1),
        (TimeLimitError("x"), 5),
        (CertificateError("x"), 7),
        (DisagreementError("x", conflicts=(Conflict(quantity="degree", first=EVIDENCE, second=OTHER),)), 3),
        (KeyboardInterrupt(), 130),
        (ValueError("x"), 1),
        (RecursionError(), 1),
        (MemoryError(), 1),
    ],
    ids=lambda x: type(x).__name__,
)
def test_exit_codes_of_errors(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.delenv("M2BRIDGE_DEBUG", raising=False)
    monkeypatch.setattr("m2bridge.questions.kernel.open_engine", fail)
    assert main(["singular-locus", *LAYER]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert all(line.startswith("m2bridge: ") for line in lines)
    assert len(lines) == (2 if isinstance(error, DisagreementError) else 1)
    assert ("M2BRIDGE_DEBUG" in printed.err) is (not isinstance(error, (M2BridgeError, KeyboardInterrupt)))
    if isinstance(error, DisagreementError):
        assert "= 3" in lines[1]
        assert "= 4" in lines[1]


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("x")

    monkeypatch.setattr("m2bridge.questions.kernel.open_engine", fail)
    monkeypatch.setenv("M2BRIDGE_DEBUG", "1")
    with pytest.raises(ValueError, match="x"):
        main(["singular-locus", *LAYER])


def test_schema_prints_one_valid_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "singular-locus"]) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


def test_the_option_script_prints_the_script_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["singular-locus", *LAYER, "--script"]) == 0
    first = capsys.readouterr()
    assert first.err == ""
    assert first.out.rstrip().endswith("emitEnd();")
    assert main(["singular-locus", "lightning(d=2,dp=1)", "--script"]) == 0
    assert capsys.readouterr().out == first.out
    assert main(["singular-locus", *LAYER, "--script", "--seed", "1"]) == 0
    assert capsys.readouterr().out != first.out


def test_the_option_script_saves_the_record_and_keeps_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["singular-locus", *LAYER, "--script", "--save", str(tmp_path)]
    assert main(command) == 0
    assert len(list(tmp_path.glob("*.json"))) == 1
    answer = questions._answer
    monkeypatch.setattr(
        questions, "_answer", lambda *args, **options: replace(answer(*args, **options), limit="time")
    )
    capsys.readouterr()
    assert main(command) == 5
    assert capsys.readouterr().out.rstrip().endswith("emitEnd();")


def test_a_supplement_that_cannot_be_written_leaves_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "missing" / "supplement.m2"
    save = tmp_path / "records"
    command = ["dimension", *LAYER, "--no-engine", "--json", "--supplement", str(file), "--save", str(save)]
    assert main(command) == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out)["image_dim"] == 5
    assert str(file) in printed.err
    assert len(list(save.glob("*.json"))) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("0.5", 0.5),
        ("10m", 600.0),
        ("2h", 7200.0),
        ("1 D", 86400.0),
        ("none", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert common.parse_limits(text, "none").wall_seconds == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1k", 1024),
        ("512M", 2**29),
        ("4G", 2**32),
        ("4GiB", 2**32),
        ("1.5g", 3 * 2**29),
        ("None", None),
    ],
)
def test_sizes(text: str, size: int | None) -> None:
    assert common.parse_limits("none", text).memory_bytes == size


def test_the_layer_given_by_options() -> None:
    model = model_from(None, 3, 2, None, None)
    assert (model.d, model.dp, model.a, model.t) == (3, 2, 3, 2)  # type: ignore[attr-defined]
    assert model_from("lightning(d=3,dp=2)", None, None, None, None) == model


def test_long_values_are_shortened() -> None:
    assert shorten([1, 2]) == "[1, 2]"
    assert shorten({"2": 3, "4": 1}) == "2:3, 4:1"
    assert len(shorten("x" * 100)) == 24


@contextmanager
def colour(variables: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_a_pipe_has_no_colour_and_a_known_width(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert common.console().color_system is None
    assert common.console().width == 100
    with colour({"COLUMNS": "80"}):
        assert common.console().width == 80


def test_certainties_have_a_colour_each() -> None:
    assert len({show.styled(certainty.value) for certainty in Certainty}) == len(Certainty)
