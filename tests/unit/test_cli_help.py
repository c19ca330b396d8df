"""The help of every command says all that its source says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from m2bridge.cli import build_app, main
from m2bridge.questions import Declared, declared, sentences


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


@pytest.mark.parametrize("name", sentences())
def test_help_that_is_read_is_that_of_the_question(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Help is made from the file of a question, which is not imported; it says what the imported question says."""
    assert isinstance(declared(name), Declared)
    told = []
    for for_help in (True, False):
        app: Any = typer.main.get_command(build_app([name], for_help=for_help))
        app.main(args=[name, "--help"], prog_name="m2bridge", standalone_mode=False)
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert "--seed" in told[0]


def test_help_imports_nothing_that_computes() -> None:
    for name in ("dimension", "closure"):
        code = (
            f"import sys; from m2bridge.cli import main; main(['{name}', '--help']); "
            "print(sorted({'numpy', 'sympy', 'flint', 'jinja2', 'm2bridge.models'} & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout.endswith("[]\n"), name
