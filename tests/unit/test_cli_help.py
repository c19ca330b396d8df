"""The help of every command says all that its source says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from rich.text import Text

from m2bridge.cli import build_app, main


def helps(command: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every help text of a command and of the commands in it."""
    yield path, command.help or ""
    yield f"{path} (epilog)", command.epilog or ""
    for parameter in command.params:
        yield f"{path} {parameter.name}", getattr(parameter, "help", None) or ""
    for name, inner in getattr(command, "commands", {}).items():
        yield from helps(inner, f"{path} {name}")


def test_no_help_is_taken_for_markup() -> None:
    found = dict(helps(typer.main.get_command(build_app(whole=True)), "m2bridge"))
    assert len(found) > 100
    for path, text in found.items():
        assert Text.from_markup(text).plain == text.replace("\\[", "["), path


def test_the_help_of_ideal_shows_a_ring(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["ideal", "--help"]) == 0
    assert "A ring QQ[x,y,z] or" in " ".join(capsys.readouterr().out.split())
