"""Batch: where things stand in the text of a job file, for messages. A text enters; line and column of sections and keys leave.

The readers of TOML and JSON keep no positions. Sections are found by their headers (in JSON by reading the elements of the
arrays ``grid`` and ``job`` one by one), keys by their name inside their section. Where that finds nothing, the answer is the
section, and in the end the beginning of the file: a message is then less exact, never wrong about what it says.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

Path = tuple[str | int, ...]
_HEADER = re.compile(r"^[ \t]*\[{1,2}[ \t]*([A-Za-z0-9_-]+)[ \t]*\]{1,2}", re.MULTILINE)
_BLANK = re.compile(r"[\s,]*")


class Places:
    """Where the sections of a job file begin and end, by their path, such as ``("grid", 0)`` or ``("defaults",)``."""

    def __init__(self, text: str, suffix: str) -> None:
        self._text, self._quoted = text, suffix == ".json"
        self._ends = list(accumulate(len(line) for line in text.splitlines(keepends=True)))
        self._sections = dict(_json_sections(text) if self._quoted else _toml_sections(text))

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Of a character, both from 1."""
        line = bisect_right(self._ends, offset)
        start = self._ends[line - 1] if line else 0
        return line + 1, offset - start + 1

    def has(self, path: Sequence[str | int]) -> bool:
        """Whether a key was written in its section itself, and not filled in."""
        return self._key(tuple(path)) is not None

    def of(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Line and column of a key, or of the section around it."""
        key = self._key(tuple(path))
        return self.line_and_column(
            self._sections.get(self._around(tuple(path)), (0, 0))[0] if key is None else key[0]
        )

    def inside(self, path: Sequence[str | int], column: int) -> tuple[int, int]:
        """Line and column of a character (its number, from 1) of a text on one line; of its key when that is not known."""
        key = self._key(tuple(path))
        return self.of(path) if key is None else self.line_and_column(key[1] + column)

    def _around(self, path: Path) -> Path:
        """The path of the section in which something is."""
        return next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self._sections), ())

    def _key(self, path: Path) -> tuple[int, int] | None:
        """Where the last name of a path is written, and where its value begins."""
        section = self._around(path)
        begin, end = self._sections.get(section, (0, len(self._text)))
        names = [part for part in path[len(section) :] if isinstance(part, str)]
        if not names:
            return None
        name = names[-1]
        written = re.escape(json.dumps(name)) if self._quoted else rf"[\"']?{re.escape(name)}[\"']?"
        before = "" if self._quoted else r"(?:^|[{,.])[ \t]*"
        pattern = re.compile(rf"{before}({written})[ \t]*{':' if self._quoted else '='}[ \t]*", re.MULTILINE)
        match = pattern.search(self._text, begin, end)
        return None if match is None else (match.start(1), match.end())


def _toml_sections(text: str) -> list[tuple[Path, tuple[int, int]]]:
    """Every ``[[grid]]``, ``[[job]]`` and ``[defaults]``, from its header to the next one."""
    headers = [(match[1], match[0].count("[") > 1, match.start()) for match in _HEADER.finditer(text)]
    ends = [start for _, _, start in headers[1:]] + [len(text)]
    counts: dict[str, int] = {}
    found: list[tuple[Path, tuple[int, int]]] = []
    for (name, repeated, start), end in zip(headers, ends, strict=False):
        if repeated:
            counts[name] = counts.get(name, -1) + 1
        offset = start + text[start:end].index("[")
        found.append(((name, counts[name]) if repeated else (name,), (offset, end)))
    return found


def _json_sections(text: str) -> list[tuple[Path, tuple[int, int]]]:
    """The elements of the arrays ``grid`` and ``job``, as far as they can be read."""
    found: list[tuple[Path, tuple[int, int]]] = []
    decoder = json.JSONDecoder()
    for name in ("grid", "job"):
        array = re.search(rf'"{name}"\s*:\s*\[', text)
        at, number = (array.end(), 0) if array else (len(text), 0)
        try:
            while text[(at := _BLANK.match(text, at).end()) : at + 1] == "{":  # type: ignore[union-attr]
                _, end = decoder.raw_decode(text, at)
                found.append(((name, number), (at, end)))
                at, number = end, number + 1
        except (ValueError, RecursionError):
            continue
    return found
