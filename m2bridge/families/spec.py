"""Read and write spec strings, the notation of models on the command line, in records and in job files.

``family(key=value,...)``, or ``family:key=value,...`` where a shell would need quotes; lists are ``[2,3,2]``
or ``2-3-2``. :func:`read` converts the text into :class:`Arguments`; each family decides which arguments it accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, NoReturn, TypeVar

from m2bridge.errors import SpecError, suggestion

LONGEST_SPEC = 2_000  # characters; maps have a limit of their own

Value = int | bool | str | tuple[int, ...]
_Built = TypeVar("_Built")

_WORD = r"[a-zA-Z][a-zA-Z0-9_-]*"
_KEY = r"[a-zA-Z_][a-zA-Z0-9_]*"
_INTEGER = r"-?\d{1,18}"
_VALUE = rf"(?P<list>\[)|(?P<dashed>\d{{1,18}}(?:-\d{{1,18}})+)|(?P<integer>{_INTEGER})|(?P<word>{_WORD})"
_LIST, _ONE_OR_LIST = "tuple[int, ...]", "int | tuple[int, ...]"
_KINDS: dict[str, tuple[Any, str]] = {
    "int": (int, "an integer"),
    "bool": (bool, "true or false"),
    "str": (str, "a word"),
    _LIST: (tuple, "a list such as [2,3,2] or 2-3-2"),
    _ONE_OR_LIST: ((int, tuple), "an integer or a list such as [2,3,2] or 2-3-2"),
}
WRITTEN = {"coordinate_system": "coordinates"}
"""Fields of models that have another name in specs."""


def type_name(annotation: Any) -> str:
    """Return a type as it is written, with and without ``from __future__ import annotations``."""
    return annotation.__name__ if type(annotation) is type else str(annotation)


def argument_names(build: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments of a spec whose model a class or a function builds.

    >>> from m2bridge.families import MLP
    >>> argument_names(MLP)
    ('widths', 'r', 'bias')
    """
    return tuple(WRITTEN.get(name, name) for name in signature(build).parameters)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments in a spec string, with the position (from 1) of each."""

    text: str
    family: str
    values: dict[str, Value]
    positions: dict[str, int]

    def fail(self, message: str, key: str | None = None) -> NoReturn:
        position = self.positions.get(key or "", 1)
        raise SpecError(f"{self.text}: {message} (position {position})", text=self.text, position=position)

    def changed(self, **values: Value) -> Arguments:
        """Return these arguments with other values."""
        return replace(self, values=self.values | values)

    def called(self, build: Callable[..., _Built]) -> _Built:
        """Call a class or a function whose keyword arguments are these; one without a default is needed.

        A list with one integer for each layer may be given as a single integer, unless it is needed.
        """
        names = argument_names(build)
        for key in self.values:
            if key not in names:
                self.fail(f"{self.family} has no argument {key!r}; {suggestion(key, names)}", key)
        values: dict[str, Value] = {}
        for key, item in zip(names, signature(build).parameters.values(), strict=True):
            kind, needed = type_name(item.annotation).removesuffix(" | None"), item.default is item.empty
            if key in self.values:
                value = values[item.name] = self.values[key]
                accepted, expected = _KINDS[_ONE_OR_LIST if kind == _LIST and not needed else kind]
                if not isinstance(value, accepted) or isinstance(value, bool) != (kind == "bool"):
                    self.fail(f"{key} should be {expected}, not {_shown(value)}", key)
            elif needed:
                self.fail(f"{self.family} requires {key}=" + ("[...]" if kind == _LIST else ""))
        return build(**values)


class _Reader:
    """Read a text from left to right; blanks between tokens are ignored."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, message: str) -> NoReturn:
        position = self.at + 1
        raise SpecError(f"{self.text}: {message} at position {position}", text=self.text, position=position)

    def peek(self) -> str:
        """Return the next character that is not a blank; empty at the end."""
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1
        return self.text[self.at : self.at + 1]

    def take(self, pattern: str, expected: str) -> re.Match[str]:
        next_character = repr(self.peek()) if self.peek() else "the end"
        match = re.compile(pattern).match(self.text, self.at)
        if match is None:
            self.fail(f"expected {expected}, found {next_character}")
        self.at = match.end()
        return match

    def skip(self, char: str) -> bool:
        """Read the next character if it is `char`; return whether it was."""
        matches = self.peek() == char
        self.at += matches
        return matches

    def value(self) -> Value:
        match = self.take(_VALUE, "a value")
        kind, text = match.lastgroup, match[0]
        if kind == "list":
            items = [] if self.peek() == "]" else [self.take(_INTEGER, "an integer in a list")[0]]
            while items and self.skip(","):
                items.append(self.take(_INTEGER, "an integer in a list")[0])
            self.take(r"\]", "']'")
            return tuple(map(int, items))
        if kind == "dashed":
            return tuple(map(int, text.split("-")))
        if kind == "word":
            return {"true": True, "false": False}.get(text, text)
        if self.peek().isdigit():
            self.fail("a number is too long")
        return int(text)


def read(text: str) -> Arguments:
    """Return the family and arguments in a spec string; raise SpecError with the position otherwise.

    >>> read("mlp:widths=2-3-2,r=2").values
    {'widths': (2, 3, 2), 'r': 2}
    """
    if len(text) > LONGEST_SPEC:
        raise SpecError(
            f"a spec of {len(text)} characters is too long (at most {LONGEST_SPEC})", text=text[:80]
        )
    text = text.strip()
    if invalid := re.search(r"[^ -~]", text):
        char, position = invalid[0], invalid.end()
        message = f"character {char!r} at position {position} is not allowed in a spec"
        raise SpecError(message, position=position)
    reader = _Reader(text)
    family = reader.take(_WORD, "a family such as lightning")[0]
    arguments = Arguments(text, family, {}, {})
    opening = reader.peek()
    if opening not in ("(", ":", ""):
        hint = " (a polynomial map is written map:x,y->x^2;x*y)" if opening in "^*+-/;," else ""
        reader.fail(f"expected '(' or ':' after {family}{hint}, found {opening!r}")
    reader.at += len(opening)
    expects_argument = opening != "" and reader.peek() not in ("", ")")
    while expects_argument:
        reader.peek()
        start = reader.at + 1
        key = reader.take(_KEY, "an argument's name")[0]
        if key in arguments.values:
            reader.fail(f"argument {key!r} is given twice")
        reader.take("=", "'='")
        arguments.values[key], arguments.positions[key] = reader.value(), start
        expects_argument = reader.skip(",")
    if opening == "(":
        reader.take(r"\)", "')'")
    if reader.peek():
        reader.fail(f"unexpected {reader.peek()!r}")
    return arguments


def written(family: str, **values: object) -> str:
    """Return the canonical spec string; arguments that are None are omitted.

    >>> written("mlp", widths=(2, 3, 2), r=2, skip=None)
    'mlp(widths=[2,3,2],r=2)'
    """
    arguments = ",".join(f"{key}={_shown(value)}" for key, value in values.items() if value is not None)
    return f"{family}({arguments})"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ",".join(str(item) for item in value) + "]"
    return str(value)
