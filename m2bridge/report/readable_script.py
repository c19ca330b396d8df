"""Lay out a rendered script for readers: no line of more than 120 columns, and no switch that only m2bridge needs.

Only white space, comments and the variable ``rendered`` change, so the script computes the same.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

WIDTH = 120  # columns of a printed script
_SWITCH = re.compile(r"rendered = (?:true|false);|if not rendered then .*;")


def readable(text: str) -> str:
    """Return the script without its switches and with long lines broken."""
    lines = text.split("\n")
    shorter = [line for line in lines if not _SWITCH.fullmatch(line)]
    if not any(re.search(r"\brendered\b", code_and_comment(line)[0]) for line in shorter):
        lines = shorter
    return "\n".join(piece for line in lines for piece in _broken(line))


def code_and_comment(line: str) -> tuple[str, str]:
    """Split a line at its comment; two dashes in a string do not begin one.

    >>> code_and_comment('emit("a--b", n);   -- a value')
    ('emit("a--b", n);', 'a value')
    """
    for index in _positions_outside_strings(line):
        if line.startswith("--", index):
            return line[:index].rstrip(), line[index:].lstrip("-").strip()
    return line, ""


def _positions_outside_strings(line: str) -> Iterator[int]:
    inside = False
    skipped = -1
    for index, character in enumerate(line):
        if index == skipped:
            continue
        if inside and character == "\\":
            skipped = index + 1
        elif character == '"':
            inside = not inside
        elif not inside:
            yield index


def _broken(line: str) -> Iterator[str]:
    """Yield a line in pieces of at most WIDTH columns; a comment beside long code is written above it."""
    if len(line) <= WIDTH:
        yield line
        return
    code, comment = code_and_comment(line)
    indent = re.match(r" *", line)[0]  # type: ignore[index]
    if comment:
        begin = f"{indent}-- "
        yield from textwrap.wrap(
            comment, WIDTH, initial_indent=begin, subsequent_indent=begin, break_long_words=False
        )
    yield from _broken_code(code, indent + "    ")


def _broken_code(code: str, indent: str) -> Iterator[str]:
    """Yield code broken after commas inside brackets, where Macaulay2 ignores the end of a line."""
    breaks = list(_commas_inside_brackets(code))
    start, prefix = 0, ""
    while len(prefix) + len(code) - start > WIDTH:
        later = [index for index in breaks if index > start]
        fitting = [index for index in later if index - start + len(prefix) <= WIDTH]
        end = fitting[-1] if fitting else next(iter(later), len(code))
        if end == len(code):
            break
        yield prefix + code[start:end].strip(" ") if start else code[:end]
        start, prefix = end, indent
    yield prefix + code[start:].strip(" ") if start else code


def _commas_inside_brackets(code: str) -> Iterator[int]:
    """Yield the positions after commas that are inside brackets of this line."""
    depth = 0
    for index in _positions_outside_strings(code):
        depth += (code[index] in "([{") - (code[index] in ")]}")
        if code[index] == "," and depth > 0:
            yield index + 1
