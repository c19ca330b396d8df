"""The instructions of programs: how each is written and read, and which shape its result has.

The document ``docs/certificates.md`` specifies each instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

import numpy as np

from m2bridge.errors import InputError

Shape = tuple[int, ...]
AxisSlice = tuple[int, int, int]
"""Start, count and step on one axis."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
MOST_ENTRIES = 2**31
"""No array of a program may have more entries than this."""
MOST_AXES = 20  # axes of one array
LARGEST_POWER = 10**6  # of an entrywise power
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ANALYTIC = frozenset({"softmax", "exp", "reciprocal", "sqrt"})


def flat_parts(shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Shape, slice]]:
    """Yield names and shapes of arrays, each with its slice of the vector in which all arrays are concatenated.

    >>> list(flat_parts({"A": (2, 2), "b": (3,)}))
    [('A', (2, 2), slice(0, 4, None)), ('b', (3,), slice(4, 7, None))]
    """
    start = 0
    for name, shape in shapes.items():
        yield name, shape, slice(start, start + prod(shape))
        start += prod(shape)


def split_flat(vectors: Any, shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """Split vectors, along the last axis, into the arrays that were concatenated; other axes stay in front.

    >>> split_flat(np.arange(3), {"A": (1, 2), "b": (1,)})
    {'A': array([[0, 1]]), 'b': array([2])}
    """
    parts = flat_parts(shapes)
    return {name: vectors[..., part].reshape((*vectors.shape[:-1], *shape)) for name, shape, part in parts}


class ProgramError(InputError):
    """A text that is not a program, or an instruction that does not fit its operands."""


def need(condition: bool, message: str) -> None:
    """Raise ProgramError with the message if the condition is false."""
    if not condition:
        raise ProgramError(message)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of a program: what is done, its constants, the numbers of its operands, and the shape of the result.

    `constants` depends on the operation: ``(name,)`` for weight and input; a tuple of rationals for constant; ``(r,)`` for
    scale; ``(n,)`` for power; ``(terms, result)`` for einsum; slices, one for each axis, for slice; flat indices for gather;
    ``(axis,)`` for concatenate and softmax; empty for the others.
    """

    operation: str
    constants: tuple[Any, ...]
    operands: tuple[int, ...]
    shape: Shape

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def text(self) -> str:
        """Return the text of the instruction after the equals sign."""
        words = [
            _WORDS[kind].write(self.shape if kind == "shape" else self.constants)
            for kind in _OPERATIONS[self.operation].words
        ]
        return " ".join([self.operation, *words, *(f"%{k}" for k in self.operands)])


# -- words ---------------------------------------------------------------------------------------------

_RATIONAL = re.compile(r"-?[0-9]+(/[0-9]+)?")


def _rationals(text: str) -> tuple[Fraction, ...]:
    words = text.split(" ")
    need(all(map(_RATIONAL.fullmatch, words)), "its entries are rational numbers in lowest terms")
    return tuple(map(Fraction, words))


def _terms(text: str) -> tuple[tuple[str, ...], str]:
    terms, _, result = text.partition("->")
    return tuple(terms.split(",")), result


def _integers(text: str, between: str = ",") -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(between) if n)


def _joined(values: Sequence[Any], between: str = ",") -> str:
    return between.join(map(str, values))


class _Word(NamedTuple):
    """A word of an instruction: how to read its constants (or the shape), and how to write them."""

    read: Callable[[str], tuple[Any, ...]]
    write: Callable[[tuple[Any, ...]], str] = _joined


_WORDS = {
    "name": _Word(lambda text: (text,)),
    "shape": _Word(lambda text: _integers(text.strip("[]")), lambda shape: f"[{_joined(shape)}]"),
    "rational": _Word(_rationals),
    "rationals": _Word(_rationals, lambda values: _joined(values, " ")),
    "integers": _Word(_integers),
    "slices": _Word(
        lambda text: tuple(_integers(part, ":") for part in text.split(",")),
        lambda parts: _joined([_joined(part, ":") for part in parts]),
    ),
    "terms": _Word(_terms, lambda given: f"{_joined(given[0])}->{given[1]}"),
}


class _Operation(NamedTuple):
    """The words of an operation, its number of operands, and the conditions on its constants and operands."""

    words: tuple[str, ...]
    counts: Sequence[int]
    needs: str


_OPERATIONS = {
    "weight": _Operation(("name", "shape"), (0,), "not a name of an array"),
    "input": _Operation(("name", "shape"), (0,), "not a name of an array"),
    "constant": _Operation(("shape", "rationals"), (0,), "as many rational numbers as the shape has entries"),
    "add": _Operation((), (2,), "two operands and no constants"),
    "scale": _Operation(("rational",), (1,), "a rational and an operand"),
    "multiply": _Operation((), (2,), "two operands and no constants"),
    "power": _Operation(("integers",), (1,), "an exponent of at least 2"),
    "einsum": _Operation(("terms",), (1, 2), "one term for each operand, with letters in the order a, b, c, ..."),
    "reshape": _Operation(("shape",), (1,), "the same number of entries"),
    "slice": _Operation(("slices",), (1,), "start:count:step for each axis, inside of the array"),
    "gather": _Operation(("shape", "integers"), (1,), "as many indices, inside of the array, as the shape has entries"),
    "concatenate": _Operation(("integers",), range(2, 10**7), "an axis; the other axes have the same lengths"),
    "softmax": _Operation(("integers",), (1,), "an axis of the operand"),
    "exp": _Operation((), (1,), "no constants"),
    "reciprocal": _Operation((), (1,), "no constants"),
    "sqrt": _Operation((), (1,), "no constants"),
}  # fmt: skip


def read_instruction(line: str, before: Sequence[Instruction]) -> Instruction:
    """Parse a canonical line such as ``%3 = einsum ab,b->a %0 %2``; `before` are the instructions before it."""
    start, _, text = line.partition(" = ")
    need(start == f"%{len(before)}", f"{line[:60]!r} is not instruction %{len(before)}")
    operation, *words = text.split(" ")
    need(operation in _OPERATIONS, f"{operation!r} is not an instruction")
    kinds = _OPERATIONS[operation].words
    count = next((k for k, word in enumerate(words) if word[:1] == "%"), len(words))
    # only the last word may have blanks in it
    fields = " ".join(words[:count]).split(" ", max(len(kinds) - 1, 0))
    try:
        read = {kind: _WORDS[kind].read(field) for kind, field in zip(kinds, fields, strict=False)}
        shape = read.pop("shape", ())
        operands = tuple(int(word[1:]) for word in words[count:])
        for operand in operands:
            need(0 <= operand < len(before), f"'%{operand}' is not an earlier instruction")
        constants = next(iter(read.values()), ())
        made = instruction(operation, constants, operands, tuple(before[k].shape for k in operands), shape)
    except (ValueError, ZeroDivisionError):
        raise ProgramError(f"{line[:60]!r}: invalid syntax for {operation}") from None
    need(made.text == text, f"{line[:60]!r}: not in canonical form; write {made.text[:60]!r}")
    return made


# -- shapes --------------------------------------------------------------------------------------------


def instruction(
    operation: str,
    constants: tuple[Any, ...],
    operands: tuple[int, ...],
    shapes: tuple[Shape, ...],
    shape: Shape = (),
) -> Instruction:
    """Build an instruction and compute its shape; weight, input, constant, reshape and gather require `shape`."""
    need(operation in _OPERATIONS, f"{operation!r} is not an instruction")
    need(len(shapes) in _OPERATIONS[operation].counts, f"{operation}: {len(shapes)} operands")
    result = _result_shape(operation, constants, shapes, shape)
    if result is None:
        shown = f" {constants[0]!r}" if operation in ("weight", "input") and constants else ""
        raise ProgramError(f"{operation}{shown}: {_OPERATIONS[operation].needs}")
    if len(result) > MOST_AXES or any(n < 1 for n in result) or prod(result) > MOST_ENTRIES:
        raise ProgramError(f"{operation}: an array of shape {result} is too large or empty")
    return Instruction(operation, constants, operands, result)


def broadcast_shape(*shapes: Shape) -> Shape:
    """Return the shape of a sum or an entrywise product, by NumPy's rule."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ProgramError(f"shapes {' and '.join(map(str, shapes))} do not fit together") from None


def _result_shape(  # noqa: C901, PLR0911 -- one case for each instruction
    operation: str, constants: tuple[Any, ...], shapes: tuple[Shape, ...], shape: Shape
) -> Shape | None:
    """Return the shape of the result from constants, shapes of operands, and the written shape; None if they do not fit."""
    first = shapes[0] if shapes else ()
    match operation, constants:
        case (("weight" | "input"), (str(name),)) if NAME.fullmatch(name):
            return shape
        case "constant", _ if len(constants) == prod(shape) and all(
            isinstance(c, Fraction) for c in constants
        ):
            return shape
        case (("add" | "multiply"), ()):
            return broadcast_shape(*shapes)
        case "scale", (Fraction(),):
            return first
        case "power", (int(exponent),) if 2 <= exponent <= LARGEST_POWER:
            return first
        case "einsum", (terms, str(result)) if len(terms) == len(shapes):
            return _einsum_shape(terms, result, shapes)
        case "reshape", () if prod(first) == prod(shape):
            return shape
        case "slice", _ if len(constants) == len(first) and all(map(_is_inside, constants, first)):
            return tuple(count for _, count, _ in constants)
        case "gather", _ if len(constants) == prod(shape):
            return shape if all(isinstance(k, int) and 0 <= k < prod(first) for k in constants) else None
        case "concatenate", (int(axis),) if 0 <= axis < len(first):
            rest = {(*other[:axis], -1, *other[axis + 1 :]) for other in shapes}
            length = sum(other[axis] for other in shapes) if len(rest) == 1 else 0
            return (*first[:axis], length, *first[axis + 1 :]) if length else None
        case "softmax", (int(axis),) if 0 <= axis < len(first):
            return first
        case (("exp" | "reciprocal" | "sqrt"), ()):
            return first
    return None


def _is_inside(bounds: AxisSlice, length: int) -> bool:
    """Return whether a slice of an axis is non-empty and in range; the step of a single entry is 1."""
    start, count, step = bounds
    inside = 0 <= start < length and 0 <= start + (count - 1) * step < length
    return inside and count >= 1 and step != 0 and (count > 1 or step == 1)


def _einsum_shape(terms: Sequence[str], result: str, shapes: Sequence[Shape]) -> Shape | None:
    lengths: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        fits = len(term) == len(set(term)) == len(shape)
        need(fits, f"einsum: {term!r} does not fit an array of shape {shape}")
        for letter, length in zip(term, shape, strict=True):
            need(lengths.setdefault(letter, length) == length, f"einsum: {letter!r} has two lengths")
    if "".join(lengths) != LETTERS[: len(lengths)]:
        return None
    need(
        len(set(result)) == len(result) and set(result) <= set(lengths),
        f"einsum: the result {result!r} does not fit",
    )
    return tuple(lengths[letter] for letter in result)
