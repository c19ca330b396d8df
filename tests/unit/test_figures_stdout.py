"""``figure ... -o -``: the picture alone on standard output, the words on standard error; places that cannot be written to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from m2bridge import records
from m2bridge.cli import main
from m2bridge.families import DeepLightning
from m2bridge.questions.dimension import dimension
from tests.marking import slow_except
from tests.running import PATIENCE

OPENING = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "svg": b"<?xml"}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    answer = dimension(DeepLightning(d=(2, 2, 2), a=(1, 1), t=3), engine=False)
    return records.save(answer, tmp_path_factory.mktemp("records"))


def figure(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "m2bridge", "figure", "3", *arguments],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("kind", slow_except({"png"}, sorted(OPENING)))
def test_the_picture_alone_is_on_standard_output(kind: str, record: Path, tmp_path: Path) -> None:
    done = figure("-o", "-", "--format", kind, "--record", str(record))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(OPENING[kind])
    assert b"1 widths" in done.stderr
    file = tmp_path / f"figure.{kind}"
    assert main(["figure", "3", "-o", str(file), "--record", str(record)]) == 0
    assert file.read_bytes() == done.stdout, "the same bytes as in a file"


def test_png_is_the_default(record: Path) -> None:
    assert figure("-o", "-", "--record", str(record)).stdout.startswith(OPENING["png"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "-", "--format", "gif"], "png, pdf, svg"),
        (["-o", "-", "--format", "html"], "png, pdf, svg"),
        (["-o", "x.png", "--format", "svg"], "--format"),
    ],
)
def test_formats_that_do_not_fit(arguments: list[str], message: str, record: Path) -> None:
    done = figure(*arguments, "--record", str(record))
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_a_directory_that_cannot_be_written_to(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The superuser may write everywhere, so the question is answered for it."""
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)
    assert main(["figure", "3", "-o", str(tmp_path / "f.svg"), "--record", str(record)]) == 2
    assert f"-o {tmp_path / 'f.svg'}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_picture_that_fails_leaves_nothing(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full while the picture is written: the file of before stays as it was."""
    target = tmp_path / "f.png"
    target.write_text("before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["figure", "3", "-o", str(target), "--record", str(record)]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["f.png"]
    assert target.read_text() == "before"
