"""Batch: a job file becomes sections. Text enters; jobs and grids leave, or every mistake at once.

A mistake is named by the path of its key, such as ``grid[2].d`` (counted from 0); what is no TOML or JSON at all, by the line
and column that the reader of the format reports. Nothing of a job file is executed, no name in it becomes a path, and its size
is known before anything of it is expanded.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from m2bridge.errors import InputError, ParseError, suggestion
from m2bridge.limits import parse_bytes, parse_seconds

LARGEST_FILE = 1_000_000
DEEPEST = 8
MOST_MISTAKES = 50
LONGEST_TEXT = 2_000
_TOP = ("defaults", "grid", "job")
COMMON = ("timeout", "memory", "tags", "priority", "prime", "seed")
_TAG = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,63}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

KeyPath = tuple[str | int, ...]
"""The path of a key in a job file, such as ``("grid", 0, "d")`` or ``("defaults",)``."""


def written_path(path: Sequence[str | int]) -> str:
    """Write the path of a key.

    >>> written_path(("grid", 2, "d"))
    'grid[2].d'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{_short(part)}"
    return text.removeprefix(".")


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something wrong in a job file, and the path of the key that it is about; an empty one for the whole file."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(slots=True)
class Mistakes:
    """Collects what is wrong, so that it can be reported at once."""

    source: str
    found: dict[Mistake, None] = field(default_factory=dict)

    def add(self, path: Sequence[str | int], message: str) -> None:
        self.found[Mistake(written_path(path), " ".join(message.split()))] = None

    def raise_if_any(self) -> None:
        if self.found:
            raise self.error()

    def error(self) -> ParseError:
        mistakes = tuple(self.found)
        shown = [str(mistake) for mistake in mistakes[:MOST_MISTAKES]]
        if len(mistakes) > MOST_MISTAKES:
            shown.append(f"and {len(mistakes) - MOST_MISTAKES} more")
        count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        return ParseError(
            f"{self.source} has {count}; nothing was run: {'; '.join(shown)}", source=self.source,
            mistakes=mistakes, lines=tuple(shown),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """One ``[[job]]`` or ``[[grid]]``: its path in the file, its entries with the defaults filled in, and those not its own."""

    kind: str
    path: KeyPath
    entries: Mapping[str, Any]
    inherited: frozenset[str] = frozenset()

    def path_of(self, key: str) -> KeyPath:
        """Return the path of an entry, that of the section if it has none of this name."""
        if key in self.inherited:
            return ("defaults", key)
        return (*self.path, key) if key in self.entries else self.path


@dataclass(frozen=True, slots=True)
class JobFile:
    """A job file that can be read: its sections, and where its mistakes are to be collected."""

    path: Path
    sections: tuple[Section, ...]
    mistakes: Mistakes


def read(path: Path) -> JobFile:
    """Read a job file; what is wrong with single values is found by :func:`m2bridge.batch.plan.expand` in the same collection.

    Raises
    ------
    InputError
        The file is missing, too large, or neither .toml nor .json.
    ParseError
        It is not TOML or JSON.
    """
    if path.suffix not in (".toml", ".json"):
        raise InputError(f"{path}: a job file ends in .toml or .json")
    try:
        if not path.is_file():
            raise InputError(f"{path}: there is no such file")
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if len(data) > LARGEST_FILE:
        raise InputError(
            f"{path}: a job file has at most {LARGEST_FILE:,} bytes; use grids, or several files"
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"{path}: not UTF-8 text (byte {error.start})", source=str(path)) from None
    return read_text(text, path)


def read_text(text: str, path: Path) -> JobFile:
    """The sections in the text of a job file."""
    mistakes = Mistakes(path.name)
    document = _document(text, path, mistakes)
    for key in document:
        if key not in _TOP:
            mistakes.add((key,), f"there is no {_short(key)!r} in a job file; {suggestion(key, _TOP)}")
    defaults = document.get("defaults", {})
    if not isinstance(defaults, dict):
        mistakes.add(("defaults",), "defaults should be a table")
        defaults = {}
    for key in defaults:
        if key not in COMMON:
            known = suggestion(key, COMMON)
            mistakes.add(("defaults", key), f"no default can be set for {_short(key)!r}; {known}")
    sections = []
    for kind in ("job", "grid"):
        tables = document.get(kind, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            mistakes.add((kind,), f"{kind} should be an array of tables: write [[{kind}]]")
            continue
        for number, table in enumerate(tables):
            inherited = frozenset(defaults.keys() - table.keys())
            sections.append(Section(kind, (kind, number), {**defaults, **table}, inherited))
    if not sections and not mistakes.found:
        mistakes.add((), "there is no [[job]] and no [[grid]]")
    for section in sections:
        _check_section(section, mistakes)
    return JobFile(path, tuple(sections), mistakes)


def _document(text: str, path: Path, mistakes: Mistakes) -> dict[str, Any]:
    try:
        if path.suffix == ".toml":
            document = tomllib.loads(text)
        else:
            document = json.loads(text, object_pairs_hook=lambda pairs: _once(pairs, mistakes))
    except RecursionError:
        mistakes.add((), "nested too deeply")
    except ValueError as error:  # the readers say where: "(at line 1, column 2)"
        mistakes.add((), str(error).splitlines()[0])
    else:
        if not isinstance(document, dict):
            mistakes.add((), "expected an object with grid and job")
        elif _depth(document) > DEEPEST:
            mistakes.add((), f"nested more than {DEEPEST} deep")
        else:
            return document
    raise mistakes.error()


def _once(pairs: list[tuple[str, Any]], mistakes: Mistakes) -> dict[str, Any]:
    """An object of JSON, in which no key is given twice."""
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        mistakes.add((), f"{_short(twice)!r} is given twice")
    return document


def _depth(document: Any) -> int:
    """How deep lists and tables are nested, without recursion: nesting may be hostile; more than :data:`DEEPEST` is one more."""
    layer, depth = [document], 0
    while layer and depth <= DEEPEST:
        depth += 1
        items = (value.values() if isinstance(value, dict) else value for value in layer)
        layer = [item for part in items for item in part if isinstance(item, (dict, list))]
    return depth


def _check_section(section: Section, mistakes: Mistakes) -> None:
    """What can be said of a section without knowing the analysis or the model."""
    entries = section.entries
    if "analysis" not in entries:
        mistakes.add(section.path, f"this {section.kind} has no analysis")
    given = [word for word in ("spec", "model") if word in entries]
    if section.kind == "job" and given != ["spec"]:
        mistakes.add(section.path, "a job takes analysis and spec, e.g. spec = 'lightning(d=2,dp=1)'")
    elif len(given) != 1:
        mistakes.add(section.path, "a grid takes either model (a family's name) or spec (whole models)")
    for key, value in entries.items():
        if not NAME.fullmatch(key):
            mistakes.add(section.path_of(key), f"{_short(key)!r} is not a name")
        for part in _texts(value):
            if len(part) > LONGEST_TEXT or not part.isprintable():
                mistakes.add(section.path_of(key), "a text should be short, on one line, and printable")
    for read_limit, word in ((parse_seconds, "timeout"), (parse_bytes, "memory")):
        if word in entries:
            try:
                read_limit(entries[word])
            except InputError as error:
                mistakes.add(section.path_of(word), error.message)
    tags = entries.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) and _TAG.fullmatch(tag) for tag in tags):
        wanted = "tags should be a list of short names of letters, digits, - _ and ."
        mistakes.add(section.path_of("tags"), wanted)
    priority = entries.get("priority", 0)
    if type(priority) is not int or abs(priority) > 1_000_000:
        mistakes.add(section.path_of("priority"), "priority should be an integer; larger goes first")
    if not isinstance(entries.get("options", {}), dict):
        mistakes.add(section.path_of("options"), "options should be a table")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts(item)]


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
