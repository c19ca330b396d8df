"""Batch: small expressions such as ``a <= d and dp + 1 < 2*d``: parsed here, never evaluated as code.

Integers, names, texts in quotes, ``true``, ``false``, ``null``; ``+ - * // %``; ``== != < <= > >=`` (chained as in
mathematics), ``in``; ``and or not``; parentheses. There are no calls, no attributes, no powers: the value of an expression is
about as long as the expression.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from m2bridge.errors import ParseError

LONGEST = 1_000
DEEPEST = 40
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>\"[^\"\\]*\"|'[^'\\]*')|(?P<operator>//|[=!<>]=|[-+*%()<>]))"
)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_LONGEST_NUMBER = 18


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression: an operator (or ``value``, ``name``), its operands, its column (from 1)."""

    kind: str
    operands: tuple[Any, ...]
    column: int


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression."""

    text: str
    root: Node

    @property
    def names(self) -> frozenset[str]:
        """The names that the value depends on."""
        return frozenset(node.operands[0] for node in _walk(self.root) if node.kind == "name")

    def value(self, names: Mapping[str, Any]) -> Any:
        """The value, with every name known and every operation between things of one kind.

        Raises
        ------
        ParseError
            A name is unknown, an operand is of the wrong kind, or a divisor is zero; field `column`.
        """
        return _Evaluator(self.text, names, lenient=False).value(self.root)

    def holds(self, names: Mapping[str, Any]) -> bool:
        """Whether the expression is true of a row in which names may be missing: nothing but ``!=`` and ``== null`` is true of
        what is missing.
        """
        return _Evaluator(self.text, names, lenient=True).value(self.root) is True

    def conjuncts(self) -> Iterator[Node]:
        """The parts joined by ``and`` at the top."""
        if self.root.kind == "and":
            yield from self.root.operands
        else:
            yield self.root


def parse(text: str) -> Expression:
    """Parse an expression.

    >>> parse("a <= d and (d - a) % 2 == 0").value({"a": 1, "d": 3})
    True

    Raises
    ------
    ParseError
        With the column (from 1) in field `column`.
    """
    return Expression(text, _Parser(text).parse())


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for operand in node.operands:
        if isinstance(operand, Node):
            yield from _walk(operand)


def _fail(text: str, column: int, message: str) -> NoReturn:
    shown = text if len(text) <= 60 else text[:57] + "..."
    raise ParseError(
        f"expression {shown!r}, column {column}: {message}",
        source=text,
        line=1,
        column=column,
        reason=message,
    )


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST:
            _fail(text, LONGEST, f"longer than {LONGEST} characters")
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                column = at + len(text[at:]) - len(text[at:].lstrip()) + 1
                hint = "; equality is written ==" if text[column - 1] == "=" else ""
                _fail(text, column, f"{text[column - 1]!r} has no meaning here{hint}")
            kind = str(match.lastgroup)
            self.tokens.append((kind, match[kind], match.start(kind) + 1))
            at = match.end()
        self.tokens.append(("end", "the end", len(text) + 1))
        self.at = 0
        self.depth = 0

    def parse(self) -> Node:
        node = self.disjunction()
        if self.tokens[self.at][0] != "end":
            self.fail("expected an operator")
        return node

    def fail(self, message: str) -> NoReturn:
        kind, word, column = self.tokens[self.at]
        found = word if kind == "end" else repr(word)
        _fail(self.text, column, f"{message}, found {found}")

    def accept(self, *words: str) -> tuple[str, int] | None:
        kind, word, column = self.tokens[self.at]
        if kind in ("operator", "name") and word in words:
            self.at += 1
            return word, column
        return None

    @contextmanager
    def deeper(self, column: int) -> Iterator[None]:
        """Count nesting, so that a hostile text is refused before Python's stack is used up."""
        self.depth += 1
        if self.depth > DEEPEST:
            _fail(self.text, column, f"nested more than {DEEPEST} deep")
        yield
        self.depth -= 1

    def joined(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self.accept(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Node(word, tuple(parts), parts[0].column)

    def disjunction(self) -> Node:
        return self.joined("or", self.conjunction)

    def conjunction(self) -> Node:
        return self.joined("and", self.negation)

    def negation(self) -> Node:
        if found := self.accept("not"):
            with self.deeper(found[1]):
                return Node("not", (self.negation(),), found[1])
        return self.comparison()

    def comparison(self) -> Node:
        parts: list[Any] = [self.sum()]
        while found := self.accept("==", "!=", "<", "<=", ">", ">=", "in"):
            parts += [found[0], self.sum()]
        return parts[0] if len(parts) == 1 else Node("compare", tuple(parts), parts[0].column)

    def sum(self) -> Node:
        node = self.product()
        while found := self.accept("+", "-"):
            node = Node(found[0], (node, self.product()), found[1])
        return node

    def product(self) -> Node:
        node = self.factor()
        while found := self.accept("*", "//", "%"):
            node = Node(found[0], (node, self.factor()), found[1])
        return node

    def factor(self) -> Node:
        kind, word, column = self.tokens[self.at]
        if found := self.accept("-", "("):
            with self.deeper(column):
                if found[0] == "-":
                    return Node("negative", (self.factor(),), column)
                inner = self.disjunction()
                if not self.accept(")"):
                    self.fail("expected ')'")
                return inner
        if kind == "number":
            if len(word) > _LONGEST_NUMBER:
                self.fail(f"a number has at most {_LONGEST_NUMBER} digits")
            value: Any = Fraction(word) if "." in word else int(word)
        elif kind == "text":
            value = word[1:-1]
        elif kind == "name" and word in _WORDS:
            value = _WORDS[word]
        elif kind == "name" and word not in ("and", "or", "not", "in"):
            self.at += 1
            return Node("name", (word,), column)
        else:
            self.fail("expected a number, a name or '('")
        self.at += 1
        return Node("value", (value,), column)


class _Evaluator:
    def __init__(self, text: str, names: Mapping[str, Any], *, lenient: bool) -> None:
        self.text, self.names, self.lenient = text, names, lenient

    def value(self, node: Node) -> Any:
        if node.kind == "value":
            return node.operands[0]
        if node.kind == "name":
            return self.name(node)
        if node.kind in ("and", "or"):
            wanted = node.kind == "or"
            return wanted if any(self.truth(part) is wanted for part in node.operands) else not wanted
        if node.kind == "not":
            return not self.truth(node.operands[0])
        if node.kind == "compare":
            return self.chain(node)
        operands = [self.value(part) for part in node.operands]
        if self.lenient and any(not _is_number(value) for value in operands):
            return None
        for part, value in zip(node.operands, operands, strict=True):
            if not _is_number(value):
                _fail(self.text, part.column, f"expected a number, this is {_kind(value)}")
        if node.kind == "negative":
            return -operands[0]
        if node.kind in ("//", "%") and operands[1] == 0:
            if self.lenient:
                return None
            _fail(self.text, node.column, "division by zero")
        return _ARITHMETIC[node.kind](*operands)

    def name(self, node: Node) -> Any:
        name = node.operands[0]
        if name in self.names:
            return self.names[name]
        if self.lenient:
            return None
        known = ", ".join(sorted(self.names)) or "none"
        _fail(self.text, node.column, f"there is no {name!r} here; the names are: {known}")

    def truth(self, node: Node) -> bool:
        value = self.value(node)
        if isinstance(value, bool):
            return value
        if self.lenient:
            return False
        _fail(self.text, node.column, f"expected true or false, this is {_kind(value)}")

    def chain(self, node: Node) -> bool:
        left = self.value(node.operands[0])
        for word, part in zip(node.operands[1::2], node.operands[2::2], strict=True):
            right = self.value(part)
            if not self.compare(word, left, right, part.column):
                return False
            left = right
        return True

    def compare(self, word: str, left: Any, right: Any, column: int) -> bool:
        if word == "==":
            return _same(left, right)
        if word == "!=":
            return not _same(left, right)
        if word == "in" and isinstance(right, (list, tuple)):
            return any(_same(left, item) for item in right)
        if word != "in" and (
            (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str))
        ):
            return _COMPARISONS[word](left, right)
        if self.lenient:
            return False
        _fail(self.text, column, f"cannot compare {_kind(left)} with {_kind(right)} by {word}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)


def _same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    return "a number" if _is_number(value) else "a text" if isinstance(value, str) else "a list"
