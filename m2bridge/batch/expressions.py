"""Batch: small expressions such as ``a <= d and dp + 1 < 2*d``: read here, never evaluated as code.

Integers, names, texts in quotes, ``true``, ``false``, ``null``; ``+ - * // %``; ``== != < <= > >=`` (chained as in
mathematics), ``in``; ``and or not``; parentheses. There are no calls, no attributes, no powers: the value of an expression is
about as long as the expression.

The words are read and their order is checked here, so that a mistake is found where it is. What binds more is then left to
Python's own parser, which sees the operators and, for each operand, the number of its word.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

from m2bridge.errors import ParseError

LONGEST = 1_000
DEEPEST = 40
_LONGEST_NUMBER = 18
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>\"[^\"\\]*\"|'[^'\\]*')|(?P<operator>//|[=!<>]=|[-+*%()<>]))"
)
_BETWEEN = frozenset(["and", "or", "in", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "//", "%"])
_BEFORE_NOT = frozenset(["", "(", "and", "or", "not"])
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


class _Token(NamedTuple):
    kind: str
    text: str
    column: int

    @property
    def name(self) -> str | None:
        """The name of something that varies, if this is one."""
        return self.text if self.kind == "name" and self.text not in _CONSTANTS else None

    @property
    def value(self) -> Any:
        """What a number, a text or a constant stands for."""
        if self.kind == "number":
            return Fraction(self.text) if "." in self.text else int(self.text)
        return self.text[1:-1] if self.kind == "text" else _CONSTANTS[self.text]


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that can be read: its text, its words, and how they belong together."""

    text: str
    words: tuple[_Token, ...]
    root: ast.expr

    @property
    def names(self) -> frozenset[str]:
        """The names that the value depends on."""
        leaves = (self.words[_number(node)] for node in ast.walk(self.root) if isinstance(node, ast.Name))
        return frozenset(word.name for word in leaves if word.name is not None)

    def value(self, names: Mapping[str, Any]) -> Any:
        """The value, with every name known and every operation between things of one kind.

        Raises
        ------
        ParseError
            A name is unknown, an operand is of the wrong kind, or a divisor is zero; field `column`.
        """
        return _Evaluator(self, names, lenient=False).value(self.root)

    def holds(self, names: Mapping[str, Any]) -> bool:
        """Whether the expression is true of a row in which names may be missing: nothing but ``!=`` and ``== null`` is true of
        what is missing.
        """
        return _Evaluator(self, names, lenient=True).value(self.root) is True


def parse(text: str) -> Expression:
    """Read an expression.

    >>> parse("a <= d and (d - a) % 2 == 0").value({"a": 1, "d": 3})
    True

    Raises
    ------
    ParseError
        With the column (from 1) in field `column`.
    """
    words = _words(text)
    _check_order(text, words)
    source = (f"_{at}" if _is_operand(word) else word.text for at, word in enumerate(words[:-1]))
    return Expression(text, tuple(words), ast.parse(" ".join(source), mode="eval").body)


def _fail(text: str, column: int, message: str) -> NoReturn:
    shown = text if len(text) <= 60 else text[:57] + "..."
    where = f"expression {shown!r}, column {column}"
    raise ParseError(f"{where}: {message}", source=text, line=1, column=column, reason=message)


def _words(text: str) -> list[_Token]:
    if len(text) > LONGEST:
        _fail(text, LONGEST, f"longer than {LONGEST} characters")
    words: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            wrong = at + len(text[at:]) - len(text[at:].lstrip())
            hint = "; equality is written ==" if text[wrong] == "=" else ""
            _fail(text, wrong + 1, f"{text[wrong]!r} has no meaning here{hint}")
        kind = str(match.lastgroup)
        words.append(_Token(kind, match[kind], match.start(kind) + 1))
        if kind == "number" and len(match[kind]) > _LONGEST_NUMBER:
            _fail(text, words[-1].column, f"a number has at most {_LONGEST_NUMBER} digits")
        at = match.end()
    return [*words, _Token("end", "the end", len(text) + 1)]


def _is_operand(word: _Token) -> bool:
    return word.kind in ("number", "text") or (word.kind == "name" and word.text not in _BETWEEN | {"not"})


def _check_order(text: str, words: list[_Token]) -> None:
    """Operands and operators take turns, and parentheses match; nothing is nested too deeply for Python's stack."""
    around: list[str] = []  # open parentheses, and signs that wait for their operand
    operand_expected, before = True, ""
    for word in words:
        found = word.text if word.kind == "end" else repr(word.text)
        if operand_expected:
            if _is_operand(word):
                operand_expected = False
            elif word.text in ("(", "-") or (word.text == "not" and before in _BEFORE_NOT):
                around.append(word.text)
                if len(around) > DEEPEST:
                    _fail(text, word.column, f"nested more than {DEEPEST} deep")
            else:
                _fail(text, word.column, f"expected a number, a name or '(', found {found}")
        elif word.text == ")" and "(" in around:
            around.pop()
        elif word.text in _BETWEEN:
            operand_expected = True
        elif "(" in around:
            _fail(text, word.column, f"expected ')', found {found}")
        elif word.kind != "end":
            _fail(text, word.column, f"expected an operator, found {found}")
        while not operand_expected and around and around[-1] != "(":
            around.pop()
        before = word.text


def _number(leaf: ast.Name) -> int:
    return int(leaf.id[1:])


class _Evaluator:
    """Values of parts. What is missing or of the wrong kind is a mistake, or, if `lenient`, not true of anything."""

    def __init__(self, expression: Expression, names: Mapping[str, Any], *, lenient: bool) -> None:
        self.expression, self.names, self.lenient = expression, names, lenient

    def wrong(self, part: ast.expr, message: str) -> None:
        if not self.lenient:
            first = min(_number(leaf) for leaf in ast.walk(part) if isinstance(leaf, ast.Name))
            _fail(self.expression.text, self.expression.words[first].column, message)

    def value(self, part: ast.expr) -> Any:
        match part:
            case ast.Name():
                return self.leaf(part)
            case ast.BoolOp(op=ast.And()):
                return all(self.truth(value) for value in part.values)
            case ast.BoolOp():
                return any(self.truth(value) for value in part.values)
            case ast.UnaryOp(op=ast.Not()):
                return not self.truth(part.operand)
            case ast.UnaryOp():
                value = self.number(part.operand)
                return None if value is None else -value
            case ast.Compare():
                return self.chain(part)
            case ast.BinOp():
                left, right, symbol = self.number(part.left), self.number(part.right), _SYMBOLS[type(part.op)]
                if left is None or right is None:
                    return None
                if symbol in ("//", "%") and right == 0:
                    return self.wrong(part, "division by zero")
                return _OPERATIONS[symbol](left, right)
        raise AssertionError("no such part was written")

    def leaf(self, part: ast.Name) -> Any:
        word = self.expression.words[_number(part)]
        if word.name is None:
            return word.value
        if word.name not in self.names:
            known = ", ".join(sorted(self.names)) or "none"
            self.wrong(part, f"there is no {word.name!r} here; the names are: {known}")
        return self.names.get(word.name)

    def number(self, part: ast.expr) -> Any:
        value = self.value(part)
        return value if _is_number(value) else self.wrong(part, f"expected a number, this is {_kind(value)}")

    def truth(self, part: ast.expr) -> bool:
        value = self.value(part)
        if not isinstance(value, bool):
            self.wrong(part, f"expected true or false, this is {_kind(value)}")
        return value is True

    def chain(self, part: ast.Compare) -> bool:
        left = self.value(part.left)
        for operation, other in zip(part.ops, part.comparators, strict=True):
            right = self.value(other)
            if not self.compare(_SYMBOLS[type(operation)], left, right, other):
                return False
            left = right
        return True

    def compare(self, symbol: str, left: Any, right: Any, part: ast.expr) -> bool:
        if symbol in ("==", "!="):
            return _same(left, right) is (symbol == "==")
        if symbol == "in" and isinstance(right, (list, tuple)):
            return any(_same(left, item) for item in right)
        texts = isinstance(left, str) and isinstance(right, str)
        if symbol != "in" and (texts or (_is_number(left) and _is_number(right))):
            return bool(_OPERATIONS[symbol](left, right))
        self.wrong(part, f"cannot compare {_kind(left)} with {_kind(right)} by {symbol}")
        return False


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
