"""The help of every command contains all help texts of its source."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from m2bridge.cli import HELP_DIRECTORY, build_app, main
from m2bridge.questions import QUESTIONS
from tests.running import run_command


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


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_shipped_help_is_that_of_the_question(name: str) -> None:
    """It is printed without importing the question. How typer writes a type depends on its version, and is not compared."""
    app: Any = typer.main.get_command(build_app([name]))
    command = app.commands[name]
    shipped = (HELP_DIRECTORY / f"{name}.txt").read_text(encoding="utf-8")
    words = " ".join(shipped.split())
    for text in (command.help, *(p.help for p in command.params)):
        assert " ".join(text.split()) in words, "run make schemas"
    flags = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", shipped, re.MULTILINE))
    declared = {p.opts[-1] for p in command.params if p.opts[-1].startswith("--")}
    assert flags == declared | {"--help"}, "run make schemas"


def test_every_shipped_help_is_of_a_question() -> None:
    assert {path.stem for path in HELP_DIRECTORY.iterdir()} == set(QUESTIONS), "run make schemas"


def test_help_imports_nothing_that_computes() -> None:
    for name in ("dimension", "closure"):
        code = (
            f"import sys; from m2bridge.cli import main; main(['{name}', '--help']); "
            "print(sorted({'typer', 'numpy', 'sympy', 'flint', 'jinja2', 'm2bridge.families'} & set(sys.modules)))"
        )
        done = run_command([sys.executable, "-c", code])
        assert done.stdout.endswith("[]\n"), name
