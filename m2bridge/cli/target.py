"""CLI: where a picture goes: into a file with its data beside it, or alone to standard output (``-o -``)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from m2bridge.errors import InputError
from m2bridge.figures import plotting

STANDARD_OUTPUT = Path("-")


class Target:
    """The place that ``-o`` names, checked before any work is done.

    `picture` is the text of ``--format``, which belongs to standard output only; `allowed` are the endings that can be drawn.
    """

    def __init__(self, output: Path, picture: str | None, allowed: Sequence[str]) -> None:
        self.path = None if output == STANDARD_OUTPUT else output
        if self.path is not None:
            if picture is not None:
                raise InputError(f"--format is for -o -; the ending of {output} chooses its format")
            plotting.check_output(self.path, allowed)
            return
        self.ending = f".{(picture or 'png').lower()}"
        if self.ending not in allowed:
            known = ", ".join(ending.lstrip(".") for ending in allowed)
            raise InputError(f"--format {picture}: use one of {known}")
        if sys.stdout.isatty():
            raise InputError(
                "-o - writes a picture to standard output, which is a terminal; send it to a file with >"
            )
        plotting.check_output(Path(tempfile.gettempdir()) / f"picture{self.ending}", allowed)

    @contextmanager
    def file(self) -> Iterator[Path]:
        """The file to draw into. What was drawn for standard output is sent there once it is complete."""
        if self.path is not None:
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="m2bridge-") as directory:
            path = Path(directory) / f"picture{self.ending}"
            yield path
            sys.stdout.flush()
            sys.stdout.buffer.write(path.read_bytes())
            sys.stdout.buffer.flush()

    def add_data(
        self, document: Mapping[str, Any], rows: Sequence[Sequence[Any]], columns: Sequence[str]
    ) -> None:
        """Write the data beside the picture and say what was written; nothing beside standard output."""
        if self.path is not None:
            beside = plotting.write_data(self.path, document, columns, rows)
            self.say(f"{self.path} (data: {', '.join(path.name for path in beside)})")

    def say(self, message: str) -> None:
        """A line for people, which keeps out of the way of a picture on standard output."""
        typer.echo(message, err=self.path is None)
