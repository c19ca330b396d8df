"""What people see: a user's words as they wrote them, and tables that can be read in 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from m2bridge.cli import main

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
