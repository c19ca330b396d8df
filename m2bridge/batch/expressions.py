"""Parse and evaluate expressions such as ``a <= d and dp + 1 < 2*d``, for filters and ranges.

An expression consists of numbers, names, quoted strings, ``true``, ``false``, ``null``; ``+ - * // %``; ``== != < <= > >=``
(which may be chained), ``in``; ``and or not``; parentheses. Python's parser reads the text, only these nodes are accepted, and
this module evaluates them. There are no calls, attributes or powers, so that no expression can execute code or compute a huge
number.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from m2bridge.errors import ParseError

LONGEST_EXPRESSION = 1_000  # characters; a filter is written by hand
DEEPEST_EXPRESSION = 100  # nesting; evaluation is recursive and stays far below Python's limit
_LARGEST_NUMBER = 10**18  # products of a short expression then stay small
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ACCEPTED = (
    ast.Name, ast.Load, ast.Constant, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, *_ARITHMETIC,
    ast.Compare, *_ORDER, ast.Eq, ast.NotEq, ast.In,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression, which consists of accepted nodes only."""

    text: str
    root: ast.expr

    @property
    def names(self) -> frozenset[str]:
        """Return the names on which the value depends."""
        names = (node.id for node in ast.walk(self.root) if isinstance(node, ast.Name))
        return frozenset(name for name in names if name not in _CONSTANTS)

    def value(self, names: Mapping[str, Any]) -> Any:
        """Evaluate the expression for the given values of its names.

        Raises
        ------
        ParseError
            A name has no value, an operand has the wrong type, or a divisor is zero; field `column`.
        """
        return _Evaluator(self, names, lenient=False).value(self.root)

    def holds(self, names: Mapping[str, Any]) -> bool:
        """Return whether the expression is true for a row in which names may be missing.

        For a missing name only the comparisons ``!=`` and ``== null`` are true.
        """
        return _Evaluator(self, names, lenient=True).value(self.root) is True


def parse(text: str) -> Expression:
    """Parse an expression.

    >>> parse("a <= d and (d - a) % 2 == 0").value({"a": 1, "d": 3})
    True

    Raises
    ------
    ParseError
        The text is not an accepted expression; field `column` (from 1).
    """
    if len(text) > LONGEST_EXPRESSION:
        _fail(text, LONGEST_EXPRESSION, f"longer than {LONGEST_EXPRESSION} characters")
    stripped = text.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's warnings about expressions that are rejected below
            root = ast.parse(stripped, mode="eval").body
    except SyntaxError as error:
        column = error.offset or len(stripped) + 1  # an error without a position is at the end
        hint = "; equality is written ==" if stripped[column - 1 : column] == "=" else ""
        _fail(text, column, error.msg + hint)
    except (ValueError, RecursionError, MemoryError) as error:  # NUL, or nested too deeply for the parser
        _fail(text, 1, f"cannot be read ({type(error).__name__})")
    _check(text, root)
    return Expression(text, root)


def _check(text: str, root: ast.expr) -> None:
    """Reject nodes that are not accepted, numbers that are too large, and nesting that is too deep; without recursion."""
    layer: list[ast.AST] = [root]
    for _ in range(DEEPEST_EXPRESSION):
        for node in layer:
            if not isinstance(node, _ACCEPTED):
                allowed = "numbers, names, strings, + - * // %, comparisons, in, and, or, not"
                _fail(text, _column(node), f"{type(node).__name__} is not allowed; allowed are {allowed}")
            if isinstance(node, ast.Constant):
                _check_constant(text, node)
        layer = [child for node in layer for child in ast.iter_child_nodes(node)]
        if not layer:
            return
    _fail(text, 1, f"nested more than {DEEPEST_EXPRESSION} deep")


def _check_constant(text: str, node: ast.Constant) -> None:
    value = node.value
    if not isinstance(value, bool | int | float | str | None):
        _fail(text, _column(node), f"a constant of type {type(value).__name__} is not allowed")
    if isinstance(value, int | float) and not (math.isfinite(value) and abs(value) < _LARGEST_NUMBER):
        _fail(text, _column(node), "a number has at most 18 digits")


def _column(node: ast.AST) -> int:
    return int(getattr(node, "col_offset", 0)) + 1


def _fail(text: str, column: int, message: str) -> NoReturn:
    shown = text if len(text) <= 60 else text[:57] + "..."
    raise ParseError(
        f"expression {shown!r}, column {column}: {message}",
        source=text,
        line=1,
        column=column,
        reason=message,
    )


class _Evaluator:
    """Evaluates nodes. A missing name or an operand of the wrong type raises an error; if `lenient`, its value is None."""

    def __init__(self, expression: Expression, names: Mapping[str, Any], *, lenient: bool) -> None:
        self.expression = expression
        self.names = names
        self.lenient = lenient

    def report(self, node: ast.expr, message: str) -> None:
        """Raise an error about a node, unless `lenient`."""
        if not self.lenient:
            _fail(self.expression.text, _column(node), message)

    def value(self, node: ast.expr) -> Any:  # noqa: PLR0911 -- one case for each kind of node
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self.name(node)
            case ast.BoolOp(op=ast.And()):
                return all(self.truth(value) for value in node.values)
            case ast.BoolOp():
                return any(self.truth(value) for value in node.values)
            case ast.UnaryOp(op=ast.Not()):
                return not self.truth(node.operand)
            case ast.UnaryOp():
                number = self.number(node.operand)
                return None if number is None else -number
            case ast.BinOp():
                return self.arithmetic(node)
            case ast.Compare():
                return self.chain(node)
        raise AssertionError("parse accepts no other node")

    def name(self, node: ast.Name) -> Any:
        if node.id in _CONSTANTS:
            return _CONSTANTS[node.id]
        if node.id not in self.names:
            names = ", ".join(sorted(self.names)) or "none"
            self.report(node, f"there is no {node.id!r}; the names are: {names}")
        return self.names.get(node.id)

    def arithmetic(self, node: ast.BinOp) -> Any:
        left, right = self.number(node.left), self.number(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.FloorDiv | ast.Mod) and right == 0:
            return self.report(node, "division by zero")
        try:
            return _ARITHMETIC[type(node.op)](left, right)
        except OverflowError:  # an integer that cannot be converted to float
            return self.report(node, "the number is too large")

    def number(self, node: ast.expr) -> Any:
        value = self.value(node)
        if _is_number(value):
            return value
        return self.report(node, f"expected a number, got {_kind(value)}")

    def truth(self, node: ast.expr) -> bool:
        value = self.value(node)
        if not isinstance(value, bool):
            self.report(node, f"expected true or false, got {_kind(value)}")
        return value is True

    def chain(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for comparison, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other)
            if not self.compare(comparison, left, right, other):
                return False
            left = right
        return True

    def compare(self, comparison: ast.cmpop, left: Any, right: Any, node: ast.expr) -> bool:
        if isinstance(comparison, ast.Eq | ast.NotEq):
            return _same(left, right) is isinstance(comparison, ast.Eq)
        if isinstance(comparison, ast.In):
            if isinstance(right, list | tuple):
                return any(_same(left, item) for item in right)
        elif (isinstance(left, str) and isinstance(right, str)) or (_is_number(left) and _is_number(right)):
            return bool(_ORDER[type(comparison)](left, right))
        self.report(node, f"cannot compare {_kind(left)} with {_kind(right)}")
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if _is_number(value):
        return "a number"
    return "a string" if isinstance(value, str) else "a list"
