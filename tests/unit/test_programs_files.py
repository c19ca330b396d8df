"""Programs in TOML files: what is saved is read again, and what is damaged is refused with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from m2bridge.errors import InputError, ParseError
from m2bridge.frontends.program_files import is_program_file, load_program, save_program
from m2bridge.frontends.recording import record

PROGRAM = record(lambda w, x: (w @ x) ** 2 / 3, {"w": (2, 2)}, {"x": (2,)}).program


def test_saved_program_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "net.toml"
    save_program(
        PROGRAM, path, name='my "net" \\ here', notes=["a note\nof two lines", "DEL \x7f, 'quotes'''"]
    )
    read = load_program(path)
    assert read.program == PROGRAM
    assert read.name == 'my "net" \\ here'
    assert read.notes == ("a note\nof two lines", "DEL \x7f, 'quotes'''")
    assert is_program_file(path.read_text())
    assert [file.name for file in tmp_path.iterdir()] == ["net.toml"]


def test_name_is_the_name_of_the_file(tmp_path: Path) -> None:
    save_program(PROGRAM, tmp_path / "net.toml")
    assert load_program(tmp_path / "net.toml").name == "net"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(notes=st.lists(st.text(st.characters(codec="utf-8"))))
def test_notes_are_any_text(tmp_path: Path, notes: list[str]) -> None:
    save_program(PROGRAM, tmp_path / "net.toml", notes=notes)
    assert load_program(tmp_path / "net.toml").notes == tuple(notes)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("scale 1/3", "scale 1/5", "sha256"),
        ("power 2", "power 02", "line 5"),
        ('name = "net"', 'name = "net"\nother = 1', "'other'"),
        ('name = "net"', "", "'name'"),
        ('name = "net"', "name = 3", "string"),
        ("notes = []", "notes = [1]", "notes"),
        ("file 1", "file 2", "format"),
        ("program = '''", "program = ''", "line 7"),
        ("sha256 = ", "sha256 = 1 #", "sha256"),
    ],
)
def test_damaged_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "net.toml"
    save_program(PROGRAM, path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ParseError, match=message):
        load_program(path)


def test_missing_and_unwritable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="file"):
        load_program(tmp_path / "none.toml")
    with pytest.raises(InputError, match="file"):
        save_program(PROGRAM, tmp_path / "none" / "net.toml")
    with pytest.raises(InputError, match="toml"):
        save_program(PROGRAM, tmp_path / "net.json")
