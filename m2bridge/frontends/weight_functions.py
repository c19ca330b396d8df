"""Record functions of the weights that are written as text: ``K.T @ Q``, ``W2[0] * W1[:, 0]``, ``A + A.T``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

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
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -int(_index(operand, text))
    raise InputError(f"an index of the function {text!r} is not an integer or a slice", argument="function")
