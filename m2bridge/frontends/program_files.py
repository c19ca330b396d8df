"""Write programs to TOML files with their canonical text, and read them again.

::

    format = "m2bridge program file 1"
    name = "squares"
    notes = []
    sha256 = "..."
    program = '''
    m2bridge program 1
    %0 = weight w [2]
    %1 = power 2 %0
    output y %1
    '''
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from m2bridge.errors import InputError, ParseError
from m2bridge.programs.instructions import ProgramError, need
from m2bridge.programs.program import Program, parse_program

FORMAT = "m2bridge program file 1"
LARGEST_PROGRAM_FILE = 2**28
"""Bytes of a file with a program."""
_KEYS = ("format", "name", "notes", "sha256", "program")
NAME_RULE = "name should be a short string on one line"


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """The content of a file: a network, its name, and notes for every answer about it."""

    program: Program
    name: str
    notes: tuple[str, ...] = ()


def is_program_file(text: str) -> bool:
    """Return whether the text of a TOML file declares a program; it may still be invalid."""
    return any(line.startswith('format = "m2bridge program file') for line in text.splitlines()[:10])


def save_program(
    program: Program, path: str | Path, *, name: str | None = None, notes: Sequence[str] = ()
) -> None:
    """Write a program to a .toml file, whole or not at all; an existing file is replaced."""
    file = Path(path)
    title = file.stem if name is None else name
    need(is_short_line(title), f"{file}: {NAME_RULE}")
    lines = [
        "# A network recorded by m2bridge. The hash is that of the text of the program.",
        f'format = "{FORMAT}"',
        f"name = {_quoted(title)}",
        f"notes = [{', '.join(map(_quoted, notes))}]",
        f'sha256 = "{program.sha256}"',
        f"program = '''\n{program.text}'''",
    ]
    if file.suffix != ".toml":
        raise InputError(f"{file}: a program is written to a .toml file")
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    try:
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(f"{file}: {error.strerror}") from None


def load_program(path: str | Path) -> ProgramFile:
    """Read a program file; a ParseError for wrong, missing or unknown keys, and for a wrong hash."""
    file = Path(path)
    _, document = read_document(file, LARGEST_PROGRAM_FILE)
    try:
        return _program_file(document)
    except ProgramError as error:
        raise _wrong(file, error.message) from None


def _program_file(document: dict[str, Any]) -> ProgramFile:
    for key in document:
        need(key in _KEYS, f"there is no key {key[:40]!r}; a program file has {', '.join(_KEYS)}")
    for key in _KEYS:
        need(key in document, f"the key {key!r} is missing")
    name, notes, text = document["name"], document["notes"], document["program"]
    need(document["format"] == FORMAT, f"format should be {FORMAT!r}")
    listed = isinstance(notes, list) and all(isinstance(note, str) for note in notes)
    need(listed, "notes should be a list of strings")
    need(isinstance(text, str), "program should be a string")
    program = parse_program(text)
    fits = document["sha256"] == program.sha256
    need(fits, f"sha256 is not the hash of the program, which is {program.sha256}")
    need(is_short_line(name), NAME_RULE)
    return ProgramFile(program, name, tuple(notes))


def read_document(file: Path, largest: int) -> tuple[str, dict[str, Any]]:
    """Read a TOML or JSON file of at most `largest` bytes; return text and value. A ParseError names the position."""
    text = read_text(file, largest)
    try:
        document = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except RecursionError:
        raise ParseError(f"{file}: nested too deeply", source=str(file), line=1, column=1) from None
    except json.JSONDecodeError as error:
        line, column = error.lineno, error.colno
        raise ParseError(
            f"{file}, line {line}, column {column}: {error.msg}", source=str(file), line=line, column=column
        ) from None
    except ValueError as error:  # tomllib's error says "(at line 1, column 2)" itself
        raise _wrong(file, str(error).splitlines()[0]) from None
    if not isinstance(document, dict):
        raise _wrong(file, "expected an object with names and values")
    return text, document


def read_text(file: Path, largest: int, advice: str = "") -> str:
    """Read a UTF-8 text of at most `largest` bytes; the error of a larger one ends with `advice`."""
    try:
        if not file.is_file():
            raise InputError(f"{file}: no such file")
        size = file.stat().st_size
        if size > largest:
            raise InputError(f"{file}: the file has {size:,} bytes, more than {largest:,}{advice}")
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _wrong(file, f"byte {error.start} is not UTF-8 text") from None
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None


def _wrong(file: Path, message: str) -> ParseError:
    return ParseError(f"{file}: {message}", source=str(file))


def is_short_line(name: Any) -> bool:
    return isinstance(name, str) and name.isprintable() and 0 < len(name) <= 200


def _quoted(text: str) -> str:
    """Return a TOML basic string: JSON's escapes are valid in TOML, but TOML also requires the DEL character to be escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
