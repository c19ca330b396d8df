"""Lay out a rendered script for readers: no line of more than 120 columns, values in place of defaults, and no switch.

The script computes the same: white space, comments and the variable ``rendered`` change, and a default that the caller
replaces is left out.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

WIDTH = 120  # columns of a printed script
_SWITCH = re.compile(r"rendered = (?:true|false);|if not rendered then .*;")
_VALUES_BEGIN = "rendered = true;"
_LITERAL = re.compile(r'(\w+) = ((?:[-\d{}, /]|true|false|null|"[^"\\]*")*);( *--.*)?')
"""A line that assigns numbers, booleans or strings: name, value, comment."""


def readable(text: str) -> str:
    """Return the script with values in place of defaults, without its switches and with long lines broken."""
    lines = _values_in_place(text.split("\n"))
    shorter = [line for line in lines if not _SWITCH.fullmatch(line)]
    if not any(re.search(r"\brendered\b", code_and_comment(line)[0]) for line in shorter):
        lines = shorter
    return "\n".join(piece for line in lines for piece in _broken(line))


def _values_in_place(lines: list[str]) -> list[str]:
    """Write values of the caller in place of the defaults, where all defaults are literals."""
    if _VALUES_BEGIN not in lines:
        return lines
    begin = lines.index(_VALUES_BEGIN)
    defaults = [_LITERAL.fullmatch(line) for line in lines[:begin]]
    if any(
        code_and_comment(line)[0].strip() and not match for line, match in zip(lines, defaults, strict=False)
    ):
        return lines
    declared = {match[1] for match in defaults if match}
    values = {}
    later = begin + 1
    while later < len(lines) and (name := re.match(r"(\w+) = .*;$", lines[later])):
        values[name[1]] = lines[later]
        later += 1
    head = [
        values[match[1]] + (match[3] or "") if match and match[1] in values else line
        for line, match in zip(lines, defaults, strict=False)
    ]
    added = [line for name, line in values.items() if name not in declared]
    return [*head, _VALUES_BEGIN, *added, *lines[later:]]


def code_and_comment(line: str) -> tuple[str, str]:
    """Split a line at its comment; two dashes in a string do not begin one.

    >>> code_and_comment('emit("a--b", n);   -- a value')
    ('emit("a--b", n);', 'a value')
    """
    index = _without_strings(line).find("--")
    return (line, "") if index < 0 else (line[:index].rstrip(), line[index:].lstrip("-").strip())


def _without_strings(line: str) -> str:
    """Write quotes in place of all characters of strings; the others keep their positions."""
    return re.sub(r'"(?:\\.|[^"\\])*"?', lambda string: '"' * len(string[0]), line)


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
    for index, character in enumerate(_without_strings(code)):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth > 0:
            yield index + 1
