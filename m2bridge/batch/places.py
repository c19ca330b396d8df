"""Batch: where things stand in the text of a job file. A text enters; line and column of every key and element leave.

The standard readers of TOML and JSON keep no positions, so the text is walked a second time, lightly: the walk knows
strings, comments, brackets and keys, and nothing else. Where it does not know a place it answers with the nearest one around
it: the column is that of the enclosing key, and of the table when even that is unknown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

Path = tuple[str | int, ...]
TOO_DEEP = 16
"""The walk ends at this nesting of brackets: a job file has no use for it, and paths would grow without bound."""
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)
_KEY = re.compile(r'\s*("(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+)\s*(\.?)')
_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\s,\[\]{}#\"']+")


@dataclass(slots=True)
class Places:
    """Offsets of keys and elements by their path, e.g. ``("grid", 0, "d", 1)``; `deepest` nesting; keys given twice."""

    text: str
    offsets: dict[Path, int] = field(default_factory=dict)
    values: dict[Path, int] = field(default_factory=dict)
    repeated: list[Path] = field(default_factory=list)
    deepest: int = 0
    _ends: list[int] = field(default_factory=list)

    def put(self, path: Path, offset: int, *, key: bool = False) -> None:
        if key and path in self.offsets:
            self.repeated.append(path)
        self.offsets.setdefault(path, offset)
        self.deepest = max(self.deepest, len(path))

    def line_and_column(self, offset: int) -> tuple[int, int]:
        if not self._ends:
            self._ends = list(accumulate(len(line) for line in self.text.splitlines(keepends=True)))
        line = bisect_right(self._ends, offset)
        start = self._ends[line - 1] if line else 0
        return line + 1, offset - start + 1

    def of(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Line and column (from 1) of a key or element, or of the nearest one around it."""
        known = tuple(path)
        while known and known not in self.offsets:
            known = known[:-1]
        return self.line_and_column(self.offsets.get(known, 0))

    def inside(self, path: Sequence[str | int], column: int) -> tuple[int, int]:
        """Line and column of a character (its number, from 1) in a text on one line; of its key when that is not known."""
        offset = self.values.get(tuple(path))
        if offset is None or self.text.startswith(('"""', "'''"), offset):
            return self.of(path)
        return self.line_and_column(offset + column)


def of_toml(text: str) -> Places:
    """The places in a TOML text; stops quietly where it does not understand (the reader then says why)."""
    places = Places(text)
    counts: dict[Path, int] = {}
    prefix: Path = ()
    at = _skip(_BLANK, text, 0)
    while at < len(text):
        if text[at] == "[":
            double = text.startswith("[[", at)
            keys, _, end = _keys(text, at + 1 + double)
            close = "]]" if double else "]"
            if not keys or not text.startswith(close, end):
                break
            prefix = _resolve(keys if not double else keys[:-1], counts)
            if double:
                prefix = (*prefix, keys[-1])
                counts[prefix] = counts.get(prefix, -1) + 1
                prefix = (*prefix, counts[prefix])
            places.put(prefix, at)
            at = end + len(close)
        else:
            keys, start, end = _keys(text, at)
            if not keys or not text.startswith("=", end):
                break
            places.put((*prefix, *keys), start)
            at = _value(places, end + 1, (*prefix, *keys), _BLANK, "=")
            if at < 0:
                break
        at = _skip(_BLANK, text, at)
    return places


def of_json(text: str) -> Places:
    """The places in a JSON text."""
    places = Places(text)
    _value(places, 0, (), _SPACE, ":")
    return places


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _keys(text: str, at: int) -> tuple[tuple[str, ...], int, int]:
    """A dotted key: its parts, where it begins and where it ends."""
    parts: list[str] = []
    begin = _skip(_SPACE, text, at)
    dot = True
    while dot and (match := _KEY.match(text, at)):
        parts.append(match[1].strip("\"'"))
        at, dot = match.end(), bool(match[2])
    return tuple(parts), begin, at


def _resolve(keys: Sequence[str], counts: dict[Path, int]) -> Path:
    """The path of a table's name: the last element stands for an array of tables."""
    path: Path = ()
    for key in keys:
        path = (*path, key)
        if path in counts:
            path = (*path, counts[path])
    return path


def _value(places: Places, at: int, path: Path, blank: re.Pattern[str], separator: str) -> int:
    """Walk over one value, noting its elements; the offset after it, or -1. Without recursion: nesting may be hostile."""
    text = places.text
    stack: list[tuple[str, Path, int]] = []  # the closing bracket, the path, how many elements so far
    while True:
        at = _skip(blank, text, at)
        if at >= len(text):
            return -1
        places.values.setdefault(path, at)
        opened = text[at] in "[{"
        if opened:
            if len(stack) >= TOO_DEEP:
                places.deepest = TOO_DEEP
                return -1
            closing = "]" if text[at] == "[" else "}"
            stack.append((closing, path, 0))
            at = _skip(blank, text, at + 1)
        else:
            match = _STRING.match(text, at) or _WORD.match(text, at)
            if match is None:
                return -1
            at = match.end()
        found = _next(places, at, stack, blank, separator, first=opened)
        if found is None:
            return -1
        at, path = found
        if not stack:
            return at


def _next(
    places: Places,
    at: int,
    stack: list[tuple[str, Path, int]],
    blank: re.Pattern[str],
    separator: str,
    *,
    first: bool,
) -> tuple[int, Path] | None:
    """Close brackets, and step to the next element: its offset and path."""
    text = places.text
    while stack:
        closing, parent, count = stack[-1]
        at = _skip(blank, text, at)
        if not first and text.startswith(",", at):
            at = _skip(blank, text, at + 1)
            first = True
        if text.startswith(closing, at):
            stack.pop()
            at, first = at + 1, False
            continue
        if not first or at >= len(text):
            return None
        stack[-1] = (closing, parent, count + 1)
        if closing == "]":
            path: Path = (*parent, count)
            places.put(path, at)
            return at, path
        keys, start, end = _keys(text, at)
        end = _skip(_SPACE, text, end)
        if not keys or not text.startswith(separator, end):
            return None
        path = (*parent, *keys)
        places.put(path, start, key=True)
        return end + 1, path
    return at, ()


WALKERS: dict[str, Callable[[str], Places]] = {".toml": of_toml, ".json": of_json}
