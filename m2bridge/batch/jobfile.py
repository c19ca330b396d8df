"""Read a job file (TOML or JSON) and split it into sections, jobs and grids; report all errors at once.

An error is located by the path of its key, such as ``grid[2].d`` (counted from 0). A file that is not valid TOML or JSON is
reported with the line and column given by the parser. Nothing in a job file is executed (a template that it names runs in the
sandbox of Macaulay2), and its size is limited before it is
expanded.
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
from m2bridge.frontends.program_files import read_text
from m2bridge.limits import parse_bytes, parse_seconds

LARGEST_JOB_FILE = 1_000_000  # bytes, read before the file is parsed
DEEPEST_JOB_FILE = 8  # levels of nested tables and lists
MOST_MISTAKES = 50  # errors that one message lists
LONGEST_TEXT = 2_000  # characters of one string, as of a spec
_TOP = ("defaults", "grid", "job")
COMMON = ("timeout", "memory", "tags", "priority", "prime", "seed")
_TAG = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,63}")
FILE_ANALYSES = ("template", "ideal")
"""Analyses of a file of the user, which the entry of the same name contains."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

KeyPath = tuple[str | int, ...]
"""The path of a key in a job file, such as ``("grid", 0, "d")`` or ``("defaults",)``."""


def written_path(path: Sequence[str | int]) -> str:
    """Write the path of a key.

    >>> written_path(("grid", 2, "d"))
    'grid[2].d'
    """
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{_short(key)}"
    return text.removeprefix(".")


@dataclass(frozen=True, slots=True)
class Mistake:
    """An error in a job file and the path of its key; the path is empty if the error concerns the whole file."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(slots=True)
class Mistakes:
    """The errors of a job file, without repetitions, in the order in which they were found."""

    source: str
    entries: dict[Mistake, None] = field(default_factory=dict)

    def add(self, path: Sequence[str | int], message: str) -> None:
        self.entries[Mistake(written_path(path), " ".join(message.split()))] = None

    def raise_if_any(self) -> None:
        if self.entries:
            raise self.error()

    def error(self) -> ParseError:
        """Make one exception from all errors."""
        mistakes = tuple(self.entries)
        shown = [str(mistake) for mistake in mistakes[:MOST_MISTAKES]]
        if len(mistakes) > MOST_MISTAKES:
            shown.append(f"and {len(mistakes) - MOST_MISTAKES} more")
        count = "1 error" if len(mistakes) == 1 else f"{len(mistakes)} errors"
        return ParseError(
            f"{self.source} has {count}; no job was run: {'; '.join(shown)}", source=self.source,
            mistakes=mistakes, lines=tuple(shown),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """A ``[[job]]`` or ``[[grid]]``: its path in the file, its entries including defaults, and the names of `inherited`
    defaults.
    """

    kind: str
    path: KeyPath
    entries: Mapping[str, Any]
    inherited: frozenset[str] = frozenset()

    def path_of(self, key: str) -> KeyPath:
        """Return the path of an entry, or the path of the section if there is no such entry."""
        if key in self.inherited:
            return ("defaults", key)
        return (*self.path, key) if key in self.entries else self.path


@dataclass(frozen=True, slots=True)
class JobFile:
    """A parsed job file: its path, its sections and the collection of its errors."""

    path: Path
    sections: tuple[Section, ...]
    mistakes: Mistakes


def read(path: Path) -> JobFile:
    """Read a job file. Errors in single values are found by :func:`m2bridge.batch.plan.expand`.

    Raises
    ------
    InputError
        The file does not exist, is too large, or has another suffix than .toml and .json.
    ParseError
        The content is not valid TOML or JSON.
    """
    if path.suffix not in (".toml", ".json"):
        raise InputError(f"{path}: the name of a job file ends in .toml or .json")
    return parse(read_text(path, LARGEST_JOB_FILE, "; use grids, or several files"), path)


def parse(text: str, path: Path) -> JobFile:  # noqa: C901 -- each check adds one mistake; together they are the grammar of a section
    """Parse the text of a job file; the suffix of `path` determines the format."""
    mistakes = Mistakes(path.name)
    document = _document(text, path, mistakes)
    for key in document:
        if key not in _TOP:
            mistakes.add((key,), f"unknown key {_short(key)!r}; {suggestion(key, _TOP)}")
    defaults = document.get("defaults", {})
    if not isinstance(defaults, dict):
        mistakes.add(("defaults",), "defaults must be a table")
        defaults = {}
    for key in defaults:
        if key not in COMMON:
            nearest = suggestion(key, COMMON)
            mistakes.add(("defaults", key), f"no default can be set for {_short(key)!r}; {nearest}")
    sections = []
    for kind in ("job", "grid"):
        tables = document.get(kind, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            mistakes.add((kind,), f"{kind} must be an array of tables: write [[{kind}]]")
            continue
        for number, table in enumerate(tables):
            inherited = frozenset(defaults.keys() - table.keys())
            sections.append(Section(kind, (kind, number), {**defaults, **table}, inherited))
    if not sections and not mistakes.entries:
        mistakes.add((), "there is no [[job]] and no [[grid]]")
    for section in sections:
        _check_section(section, mistakes)
    return JobFile(path, tuple(sections), mistakes)


def _document(text: str, path: Path, mistakes: Mistakes) -> dict[str, Any]:
    try:
        if path.suffix == ".toml":
            document = tomllib.loads(text)
        else:
            document = json.loads(text, object_pairs_hook=lambda pairs: _without_duplicates(pairs, mistakes))
    except RecursionError:
        mistakes.add((), "nested too deeply")
    except ValueError as error:  # the message contains the position: "(at line 1, column 2)"
        mistakes.add((), str(error).splitlines()[0])
    else:
        if not isinstance(document, dict):
            mistakes.add((), "expected an object with the keys grid and job")
        elif _depth(document) > DEEPEST_JOB_FILE:
            mistakes.add((), f"nested more than {DEEPEST_JOB_FILE} deep")
        else:
            return document
    raise mistakes.error()


def _without_duplicates(pairs: list[tuple[str, Any]], mistakes: Mistakes) -> dict[str, Any]:
    """Make the dictionary of a JSON object; report a duplicate key."""
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(name for name in names if names.count(name) > 1)
        mistakes.add((), f"duplicate key {_short(duplicate)!r}")
    return document


def _depth(document: Any) -> int:
    """Return the depth of nesting of lists and tables, at most :data:`DEEPEST_JOB_FILE` + 1.

    There is no recursion, because the nesting of a hostile file may exceed Python's limit.
    """
    layer = [document]
    depth = 0
    while layer and depth <= DEEPEST_JOB_FILE:
        depth += 1
        collections = (value.values() if isinstance(value, dict) else value for value in layer)
        layer = [item for items in collections for item in items if isinstance(item, (dict, list))]
    return depth


def _check_section(section: Section, mistakes: Mistakes) -> None:  # noqa: C901, PLR0912 -- each check adds one mistake; together they are the grammar of a section
    """Check the entries of a section that do not depend on the analysis or the model."""
    entries = section.entries
    if "analysis" not in entries:
        mistakes.add(section.path, f"this {section.kind} has no analysis")
    model_keys = [key for key in ("spec", "model") if key in entries]
    if entries.get("analysis") in FILE_ANALYSES:
        _check_file_section(section, model_keys, mistakes)
    elif section.kind == "job" and model_keys != ["spec"]:
        mistakes.add(section.path, "a job requires analysis and spec, e.g. spec = 'lightning(d=2,dp=1)'")
    elif len(model_keys) != 1:
        mistakes.add(
            section.path, "a grid requires either model (the name of a family) or spec (whole models)"
        )
    for key, value in entries.items():
        if not NAME.fullmatch(key):
            mistakes.add(section.path_of(key), f"{_short(key)!r} is not a name")
        for text in _strings(value):
            if len(text) > LONGEST_TEXT or not text.isprintable():
                mistakes.add(section.path_of(key), "a string must be short, on one line, and printable")
    for parse_limit, key in ((parse_seconds, "timeout"), (parse_bytes, "memory")):
        if key in entries:
            try:
                parse_limit(entries[key])
            except InputError as error:
                mistakes.add(section.path_of(key), error.message)
    tags = entries.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) and _TAG.fullmatch(tag) for tag in tags):
        mistakes.add(
            section.path_of("tags"), "tags must be a list of short names of letters, digits, - _ and ."
        )
    priority = entries.get("priority", 0)
    if type(priority) is not int or abs(priority) > 1_000_000:
        mistakes.add(section.path_of("priority"), "priority must be an integer; larger ones run first")
    if not isinstance(entries.get("options", {}), dict):
        mistakes.add(section.path_of("options"), "options must be a table")


def _check_file_section(section: Section, model_keys: list[str], mistakes: Mistakes) -> None:
    """Check which of the entries template, ideal, spec and model a section about files of the user has."""
    analysis = section.entries["analysis"]
    if analysis not in section.entries:
        mistakes.add(section.path, f"the analysis {analysis} requires {analysis} = 'FILE'")
    if analysis == "ideal" and model_keys:
        mistakes.add(section.path_of(model_keys[0]), "an ideal has no model")
    if len(model_keys) > 1 or (section.kind == "job" and "model" in model_keys):
        mistakes.add(section.path, "a template takes one model: spec, or in a grid model and its arguments")


def _strings(value: Any) -> list[str]:
    """Return all strings in nested lists and tables."""
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
