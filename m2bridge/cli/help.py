"""CLI: write the help text of every question to a file, so that it can be printed without importing the question.

``python -m m2bridge.cli.help`` writes the files (``make schemas``); a test compares them with the commands.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import typer

from m2bridge.cli import HELP_DIRECTORY, build_app
from m2bridge.questions import QUESTIONS

_HELP_WIDTH = 80  # columns of the help texts in data/help


def help_of(name: str) -> str:
    """Return what the command of a question prints with ``--help``, for a terminal of 80 columns."""
    command = typer.main.get_command(build_app([name]))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        command.main(
            [name, "--help"], prog_name="m2bridge", standalone_mode=False, terminal_width=_HELP_WIDTH
        )
    return printed.getvalue()


def write(directory: Path) -> None:
    """Write the help text of every question of this package into `directory` and remove other texts."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("*.txt"):
        old.unlink()
    for name in QUESTIONS:
        (directory / f"{name}.txt").write_text(help_of(name), encoding="utf-8")


if __name__ == "__main__":
    write(HELP_DIRECTORY)
