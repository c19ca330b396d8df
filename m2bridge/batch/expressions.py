"""Batch: small expressions such as ``a <= d and dp + 1 < 2*d``.

Numbers, names, texts in quotes, ``true``, ``false``, ``null``; ``+ - * // %``; ``== != < <= > >=`` (chained as in
mathematics), ``in``; ``and or not``; parentheses. Python's parser reads the text; only these nodes are accepted, and they are
evaluated here. There are no calls, no attributes, no powers: the value of an expression is about as long as the expression.
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

LONGEST = 1_000
DEEPEST = 100
_LARGEST_NUMBER = 10**18
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
    """An expression that was read and consists of accepted nodes only."""

    text: str
    root: ast.expr

    @property
    def names(self) -> frozenset[str]:
        """The names that the value depends on."""
        found = (node.id for node in ast.walk(self.root) if isinstance(node, ast.Name))
        return frozenset(name for name in found if name not in _CONSTANTS)

    def value(self, names: Mapping[str, Any]) -> Any:
        """Compute the value, with every name known and every operation between things of one kind.

        Raises
        ------
        ParseError
            A name is unknown, an operand is of the wrong kind, or a divisor is zero; field `column`.
        """
        return _Evaluator(self, names, lenient=False).value(self.root)

    def holds(self, names: Mapping[str, Any]) -> bool:
        """Tell whether the expression is true of a row in which names may be missing: only ``!=`` and ``== null`` are true of
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
    if len(text) > LONGEST:
        _fail(text, LONGEST, f"longer than {LONGEST} characters")
    stripped = text.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's advice about what is refused below
            root = ast.parse(stripped, mode="eval").body
    except SyntaxError as error:
        column = error.offset or len(stripped) + 1  # without one, at the end
        hint = "; equality is written ==" if stripped[column - 1 : column] == "=" else ""
        _fail(text, column, error.msg + hint)
    except (ValueError, RecursionError, MemoryError) as error:  # NUL, or nested too deeply for the parser
        _fail(text, 1, f"cannot be read ({type(error).__name__})")
    _check(text, root)
    return Expression(text, root)


def _check(text: str, root: ast.expr) -> None:
    """Refuse nodes that are not accepted, too large numbers and too deep nesting, without recursion."""
    layer: list[ast.AST] = [root]
    for _ in range(DEEPEST):
        for node in layer:
            if not isinstance(node, _ACCEPTED):
                allowed = "numbers, names, texts, + - * // %, comparisons, in, and, or, not"
                _fail(text, _column(node), f"{type(node).__name__} has no meaning here; there are: {allowed}")
            if isinstance(node, ast.Constant):
                _check_constant(text, node)
        layer = [child for node in layer for child in ast.iter_child_nodes(node)]
        if not layer:
            return
    _fail(text, 1, f"nested more than {DEEPEST} deep")


def _check_constant(text: str, node: ast.Constant) -> None:
    value = node.value
    if not isinstance(value, bool | int | float | str | None):
        _fail(text, _column(node), f"a constant of type {type(value).__name__} has no meaning here")
    if isinstance(value, int | float) and not (math.isfinite(value) and abs(value) < _LARGEST_NUMBER):
        _fail(text, _column(node), "a number has at most 18 digits")


def _column(node: ast.AST) -> int:
    return int(getattr(node, "col_offset", 0)) + 1


def _fail(text: str, column: int, message: str) -> NoReturn:
    shown = text if len(text) <= 60 else text[:57] + "..."
    where = f"expression {shown!r}, column {column}"
    raise ParseError(f"{where}: {message}", source=text, line=1, column=column, reason=message)


class _Evaluator:
    """Computes values of nodes. What is missing or of the wrong kind is a mistake, or, if `lenient`, not true of anything."""

    def __init__(self, expression: Expression, names: Mapping[str, Any], *, lenient: bool) -> None:
        self.expression, self.names, self.lenient = expression, names, lenient

    def wrong(self, node: ast.expr, message: str) -> None:
        if not self.lenient:
            _fail(self.expression.text, _column(node), message)

    def value(self, node: ast.expr) -> Any:
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
            known = ", ".join(sorted(self.names)) or "none"
            self.wrong(node, f"there is no {node.id!r} here; the names are: {known}")
        return self.names.get(node.id)

    def arithmetic(self, node: ast.BinOp) -> Any:
        left, right = self.number(node.left), self.number(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.FloorDiv | ast.Mod) and right == 0:
            return self.wrong(node, "division by zero")
        try:
            return _ARITHMETIC[type(node.op)](left, right)
        except OverflowError:  # an integer that no float can hold
            return self.wrong(node, "the number is too large")

    def number(self, node: ast.expr) -> Any:
        value = self.value(node)
        return value if _is_number(value) else self.wrong(node, f"expected a number, this is {_kind(value)}")

    def truth(self, node: ast.expr) -> bool:
        value = self.value(node)
        if not isinstance(value, bool):
            self.wrong(node, f"expected true or false, this is {_kind(value)}")
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
        self.wrong(node, f"cannot compare {_kind(left)} with {_kind(right)}")
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
    return "a number" if _is_number(value) else "a text" if isinstance(value, str) else "a list"
