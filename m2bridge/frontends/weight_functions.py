"""Record functions of the weights that are written as text: ``K.T @ Q``, ``W2[0] * W1[:, 0]``, ``A + A.T``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from m2bridge.errors import InputError, M2BridgeError
from m2bridge.frontends.recording import record_call
from m2bridge.programs.program import Program, Shape

_MOST_BITS_OF_POWERS = 10_000  # larger powers of numbers are refused


def _power(base: Any, exponent: Any) -> Any:
    numbers = isinstance(base, int) and isinstance(exponent, int)
    if numbers and not 0 <= exponent * base.bit_length() <= _MOST_BITS_OF_POWERS:
        raise ValueError("a power of numbers with a negative or very large exponent")
    return base**exponent


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.MatMult: lambda a, b: a @ b,
    ast.Pow: _power,
}


def weight_function(
    text: str,
    shapes: Mapping[str, Shape],
    named: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
) -> Program:
    """Record a function of weights that is written with ``+ - * @ **``, ``.T`` and indices.

    `named` returns the values by the names that the text uses, if these are not the names of the weights.

    >>> print(weight_function("B @ A.T", {"A": (2, 3), "B": (2, 3)}).text.splitlines()[-2])
    %2 = einsum ab,cb->ac %1 %0

    Raises
    ------
    InputError
        The text is not such a function, or names no weight.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        message = error.msg if isinstance(error, SyntaxError) else error
        raise InputError(
            f"the function {text!r} is not valid Python: {message}", argument="function"
        ) from None
    return record_call(
        lambda weights, _: _recorded(tree, named(weights), text), shapes, name="function"
    ).program


def _recorded(tree: ast.expr, weights: Mapping[str, Any], text: str) -> Any:
    """Evaluate a syntax tree on recorded weights; an error names the text instead of a line of this file."""
    try:
        return _value(tree, weights, text)
    except Exception as error:
        if getattr(error, "argument", None) == "function":
            raise
        message = str(error)
        if isinstance(error, M2BridgeError):  # the first line names the line of this file
            message = message.partition("\n")[2] or message
        raise InputError(f"the function {text!r}: {message}", argument="function") from None


def _value(node: ast.expr, weights: Mapping[str, Any], text: str) -> Any:
    """Evaluate a node of the syntax tree on recorded weights."""
    match node:
        case ast.Name(id=name) if name in weights:
            return weights[name]
        case ast.Name(id=name):
            raise InputError(
                f"{name!r} is not a weight; available: {', '.join(weights)}", argument="function"
            )
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -1 * _value(operand, weights, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, weights, text), _value(right, weights, text))
        case ast.Attribute(value=value, attr="T"):
            return _value(value, weights, text).T
        case ast.Subscript(value=value, slice=index):
            return _value(value, weights, text)[_index(index, text)]
    raise InputError(
        f"the function {text!r} uses more than + - * @ **, .T, indices and integers", argument="function"
    )


def _index(node: ast.expr, text: str) -> Any:
    """Read an index: numbers, slices, or several of them."""
    match node:
        case ast.Tuple(elts=parts):
            return tuple(_index(part, text) for part in parts)
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(*(None if part is None else _index(part, text) for part in (lower, upper, step)))
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as operand):
            return -int(_index(operand, text))
    raise InputError(f"an index of the function {text!r} is not an integer or a slice", argument="function")


# -- what the checker compares -------------------------------------------------------------------------------------

_Sized = tuple[Shape, float]
"""The shape of a value, and a bound of its degree plus the logarithm of its coefficients."""
_LARGEST_COMPARED = 10_000  # degrees up to which the checker expands derivatives of functions
_COMPARED_TEXT = re.compile(r"[A-Za-z0-9_ .,:@*+()\[\]-]{1,1000}")


def is_compared(text: str, shapes: Mapping[str, Shape]) -> bool:
    """Return whether ``m2bridge check`` compares a text with the program of the function.

    It does not broadcast arrays, and multiplies matrices only; exponents are integers below 1000, degrees below 5,000.

    >>> shapes = {"W": (2, 3), "b": (3,)}
    >>> [is_compared(text, shapes) for text in ("W.T @ W", "W[0] * b", "W * b", "W @ b", "b**1000")]
    [True, True, False, False, False]
    """
    if not _COMPARED_TEXT.fullmatch(text):
        return False
    try:
        sized = _sized(ast.parse(text.strip(), mode="eval").body, shapes)
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError, InputError):
        return False
    return sized is not None and sized[1] < _LARGEST_COMPARED


def _sized(node: ast.expr, shapes: Mapping[str, Shape]) -> _Sized | None:  # noqa: PLR0911 -- one case for each kind
    """Return the shape and size of a node; None for what the checker does not read."""
    match node:
        case ast.Name(id=name) if name in shapes:
            return shapes[name], 1.0
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return (), float(number.bit_length())
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _sized(operand, shapes)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as n)) if 0 <= n < 1000:
            base = _sized(left, shapes)
            return base and (base[0], base[1] * n)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.MatMult() as op, right=right):
            both = _sized(left, shapes), _sized(right, shapes)
            return None if None in both else _combined(op, *both)  # type: ignore[arg-type] # neither is None
        case ast.Attribute(value=value, attr="T"):
            matrix = _sized(value, shapes)
            return (matrix[0][::-1], matrix[1]) if matrix and len(matrix[0]) == 2 else None
        case ast.Subscript(value=value, slice=index):
            array = _sized(value, shapes)
            return array and (np.broadcast_to(0, array[0])[_index(index, ast.unparse(index))].shape, array[1])
    return None


def _combined(op: ast.operator, left: _Sized, right: _Sized) -> _Sized | None:
    """Return the shape and size of a sum or product; None where arrays would be broadcast, or are not matrices."""
    (a, first), (b, second) = left, right
    if isinstance(op, ast.MatMult):
        return ((a[0], b[1]), first + second + a[1]) if len(a) == len(b) == 2 else None
    return (a or b, first + second + 1) if a == b or () in (a, b) else None
