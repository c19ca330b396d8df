"""Batch: a job file becomes sections. Text enters; jobs and grids leave, or every mistake at once with line and column.

Nothing of a job file is executed, no name in it becomes a path, and its size is known before anything of it is expanded.

The readers of TOML and JSON keep no positions. Sections are found by their headers (in JSON by reading the elements of the
arrays ``grid`` and ``job`` one by one), keys by their name inside their section. Where that finds nothing, the answer is the
section, and in the end the beginning of the file: a message is then less exact, never wrong about what it says.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from m2bridge.engine.base import parse_bytes, parse_seconds
from m2bridge.errors import InputError, ParseError
from m2bridge.models.spec import suggestion

LARGEST_FILE = 1_000_000
DEEPEST = 8
MOST_MISTAKES = 50
LONGEST_TEXT = 2_000
_TOP = ("defaults", "grid", "job")
COMMON = ("timeout", "memory", "tags", "priority", "prime", "seed")
_TAG = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,63}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_HEADER = re.compile(r"^[ \t]*\[{1,2}[ \t]*([A-Za-z0-9_-]+)[ \t]*\]{1,2}", re.MULTILINE)
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)")


Place = tuple[str | int, ...]
"""A path in a job file, such as ``("grid", 0, "d")`` or ``("defaults",)``."""


class Places:
    """Line and column of the sections of a job file and of their keys."""

    def __init__(self, text: str, suffix: str) -> None:
        self._text, self._quoted = text, suffix == ".json"
        self._ends = list(accumulate(len(line) for line in text.splitlines(keepends=True)))
        self._sections = dict(_json_sections(text) if self._quoted else _toml_sections(text))

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Of a character, both from 1."""
        line = bisect_right(self._ends, offset)
        return line + 1, offset - (self._ends[line - 1] if line else 0) + 1

    def has(self, path: Sequence[str | int]) -> bool:
        """Whether a key was written in its section itself, and not filled in."""
        return self._key(tuple(path)) is not None

    def of(self, path: Sequence[str | int], column: int | None = None) -> tuple[int, int]:
        """Line and column of a key, or of the section around it; with a `column` (from 1), of that character of its text."""
        key = self._key(tuple(path))
        if key is None:
            return self.line_and_column(self._sections.get(self._around(tuple(path)), (0, 0))[0])
        return self.line_and_column(key[0] if column is None else key[1] + column)

    def _around(self, path: Place) -> Place:
        """The path of the section in which something is."""
        return next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self._sections), ())

    def _key(self, path: Place) -> tuple[int, int] | None:
        """Where the last name of a path is written, and where its value begins."""
        section = self._around(path)
        begin, end = self._sections.get(section, (0, len(self._text)))
        names = [part for part in path[len(section) :] if isinstance(part, str)]
        if not names:
            return None
        if self._quoted:
            pattern = rf"({re.escape(json.dumps(names[-1]))})[ \t]*:[ \t]*"
        else:
            pattern = rf"(?:^|[{{,.])[ \t]*([\"']?{re.escape(names[-1])}[\"']?)[ \t]*=[ \t]*"
        match = re.compile(pattern, re.MULTILINE).search(self._text, begin, end)
        return None if match is None else (match.start(1), match.end())


def _toml_sections(text: str) -> Iterator[tuple[Place, tuple[int, int]]]:
    """Every ``[[grid]]``, ``[[job]]`` and ``[defaults]``, from its header to the next one."""
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    counts: dict[str, int] = {}
    for header, end in zip(headers, ends, strict=False):
        name, repeated = header[1], header[0].count("[") > 1
        if repeated:
            counts[name] = counts.get(name, -1) + 1
        yield (name, counts[name]) if repeated else (name,), (text.index("[", header.start()), end)


def _json_sections(text: str) -> Iterator[tuple[Place, tuple[int, int]]]:
    """The elements of the arrays ``grid`` and ``job``, as far as they can be read."""
    decoder, blank = json.JSONDecoder(), re.compile(r"[\s,]*")
    for name in ("grid", "job"):
        array = re.search(rf'"{name}"\s*:\s*\[', text)
        at, number = (array.end() if array else len(text)), 0
        try:
            while text[(at := blank.match(text, at).end()) : at + 1] == "{":  # type: ignore[union-attr]
                _, end = decoder.raw_decode(text, at)
                yield (name, number), (at, end)
                at, number = end, number + 1
        except (ValueError, RecursionError):
            continue


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """Something wrong in a job file, and where."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


@dataclass(slots=True)
class Mistakes:
    """Collects what is wrong, so that it can be reported at once."""

    source: str
    places: Places
    found: set[Mistake] = field(default_factory=set)

    def add(self, path: Sequence[str | int], message: str, column: int | None = None) -> None:
        self.found.add(Mistake(*self.places.of(path, column), " ".join(message.split())))

    def add_error(self, path: Sequence[str | int], error: InputError) -> None:
        """An error about the value at `path`; one inside an expression keeps its column."""
        column = error.fields.get("column") if "reason" in error.fields else None
        self.add(path, error.message, column)

    def raise_if_any(self) -> None:
        if self.found:
            raise self.error()

    def error(self) -> ParseError:
        ordered = sorted(self.found)
        shown = [str(mistake) for mistake in ordered[:MOST_MISTAKES]]
        if len(ordered) > MOST_MISTAKES:
            shown.append(f"and {len(ordered) - MOST_MISTAKES} more")
        count = "a mistake" if len(ordered) == 1 else f"{len(ordered)} mistakes"
        return ParseError(
            f"{self.source} has {count}; nothing was run: {'; '.join(shown)}", source=self.source,
            line=ordered[0].line, column=ordered[0].column, mistakes=tuple(ordered), lines=tuple(shown),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """One ``[[job]]`` or ``[[grid]]``: its path in the file, and its entries with the defaults filled in."""

    kind: str
    path: Place
    entries: Mapping[str, Any]

    def place_of(self, key: str) -> Place:
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
        line = data.count(b"\n", 0, error.start) + 1
        where = f"{path}, line {line}"
        raise ParseError(f"{where}: not UTF-8 text", source=str(path), line=line, column=1) from None
    return read_text(text, path)


def read_text(text: str, path: Path) -> JobFile:
    """The sections in the text of a job file."""
    mistakes = Mistakes(path.name, Places(text, path.suffix))
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
            sections.append(Section(kind, (kind, number), {**defaults, **table}))
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
    except json.JSONDecodeError as error:
        mistakes.found.add(Mistake(error.lineno, error.colno, error.msg))
    except RecursionError:
        mistakes.add((), "nested too deeply")
    except ValueError as error:  # tomllib says "(at line 1, column 2)"; other readers of numbers say nothing
        first = str(error).splitlines()[0]
        line, column = 1, 1
        if match := _AT.search(first):
            end = mistakes.places.line_and_column(len(text))
            line, column = (int(match[1]), int(match[2])) if match[1] else end
        mistakes.found.add(Mistake(line, column, _AT.sub("", first)))
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
            mistakes.add((*section.path, key), f"{_short(key)!r} is not a name")
        for part in _texts(value):
            if len(part) > LONGEST_TEXT or not part.isprintable():
                mistakes.add((*section.path, key), "a text should be short, on one line, and printable")
    for read_limit, word in ((parse_seconds, "timeout"), (parse_bytes, "memory")):
        if word in entries:
            try:
                read_limit(entries[word])
            except InputError as error:
                mistakes.add(section.place_of(word), error.message)
    tags = entries.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) and _TAG.fullmatch(tag) for tag in tags):
        wanted = "tags should be a list of short names of letters, digits, - _ and ."
        mistakes.add(section.place_of("tags"), wanted)
    priority = entries.get("priority", 0)
    if type(priority) is not int or abs(priority) > 1_000_000:
        mistakes.add(section.place_of("priority"), "priority should be an integer; larger goes first")
    if not isinstance(entries.get("options", {}), dict):
        mistakes.add(section.place_of("options"), "options should be a table")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts(item)]


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
