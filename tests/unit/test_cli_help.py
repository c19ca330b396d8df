"""The help of every command says all that its source says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from m2bridge.cli import build_app, main


def helps(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Every command below this one: the words that name it, and the texts that its help should have."""
    for name, inner in getattr(command, "commands", {}).items():
        shown = [p for p in inner.params if not getattr(p, "hidden", False)]
        below = [c.help.partition("\n")[0] for c in getattr(inner, "commands", {}).values()]
        yield (*words, name), [inner.help, *below, *(getattr(p, "help", None) or "" for p in shown)]
        yield from helps(inner, (*words, name))


def test_every_help_is_printed_as_it_is_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brackets are no markup, and no sentence is cut off."""
    monkeypatch.setenv("COLUMNS", "120")
    app: Any = typer.main.get_command(build_app())
    found = dict(helps(app))
    assert sum(map(len, found.values())) > 100
    for words, texts in found.items():
        app.main(args=[*words, "--help"], prog_name="m2bridge", standalone_mode=False)
        printed = " ".join(capsys.readouterr().out.split())
        for text in texts:
            assert " ".join(text.split()) in printed, words


def test_the_help_of_ideal_shows_a_ring(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["ideal", "--help"]) == 0
    assert "A ring QQ[x,y,z] or" in " ".join(capsys.readouterr().out.split())
