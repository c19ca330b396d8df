"""The instructions of programs: how each is written and read, and which shape its result has.

The document ``docs/certificates.md`` specifies each instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from m2bridge.errors import InputError

Shape = tuple[int, ...]
AxisSlice = tuple[int, int, int]
"""Start, count and step on one axis."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
MOST_ENTRIES = 2**31
"""No array of a program may have more entries than this."""
MOST_AXES = 20
LARGEST_POWER = 10**6
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ANALYTIC = frozenset({"softmax", "exp", "reciprocal"})


def flat_parts(shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Shape, slice]]:
    """Names and shapes of arrays, each with its part of the vector in which they stand one after the other.

    >>> list(flat_parts({"A": (2, 2), "b": (3,)}))
    [('A', (2, 2), slice(0, 4, None)), ('b', (3,), slice(4, 7, None))]
    """
    start = 0
    for name, shape in shapes.items():
        yield name, shape, slice(start, start + prod(shape))
        start += prod(shape)


class ProgramError(InputError):
    """A text that is not a program, or an instruction that does not fit its operands."""


def need(condition: bool, message: str) -> None:
    """Refuse what does not satisfy a condition."""
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
        """The instruction as its line in a program has it, behind the equals sign."""
        words = [
            _WORDS[kind].write(self.shape if kind == "shape" else self.constants)
            for kind in _OPERATIONS[self.operation].words
        ]
        return " ".join([self.operation, *words, *(f"%{k}" for k in self.operands)])


# -- words ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Word:
    """How a part of an instruction is written: its pattern, the constants (or the shape) that it means, and back."""

    pattern: str
    read: Callable[[str], tuple[Any, ...]]
    write: Callable[[tuple[Any, ...]], str]


_RATIONAL = r"(?:0|-?[1-9][0-9]{0,5000})(?:/[1-9][0-9]{0,5000})?"
_SLICE = r"(?:0|[1-9][0-9]{0,9}):[1-9][0-9]{0,9}:-?[1-9][0-9]{0,9}"


def _rationals(text: str) -> tuple[Fraction, ...]:
    words = text.split(" ")
    fits = all(re.fullmatch(_RATIONAL, word) for word in words)
    need(fits, "constant: its entries are rational numbers in lowest terms")
    return tuple(map(Fraction, words))


def _terms(text: str) -> tuple[tuple[str, ...], str]:
    terms, _, result = text.partition("->")
    return tuple(terms.split(",")), result


def _integers(text: str, between: str = ",") -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(between) if n)


def _joined(values: Sequence[Any], between: str = ",") -> str:
    return between.join(map(str, values))


_WORDS = {
    "name": _Word(NAME.pattern, lambda word: (word,), _joined),
    "shape": _Word(
        r"\[(?:[0-9]{1,10}(?:,[0-9]{1,10})*)?\]",
        lambda word: _integers(word[1:-1]),
        lambda shape: f"[{_joined(shape)}]",
    ),
    "rational": _Word(_RATIONAL, lambda word: (Fraction(word),), _joined),
    "rationals": _Word("[0-9/ -]+", _rationals, lambda values: _joined(values, " ")),
    "exponent": _Word("[1-9][0-9]{0,6}", _integers, _joined),
    "axis": _Word("[0-9]{1,2}", _integers, _joined),
    "indices": _Word("[0-9]{1,10}(?:,[0-9]{1,10})*", _integers, _joined),
    "slices": _Word(
        rf"{_SLICE}(?:,{_SLICE})*",
        lambda word: tuple(_integers(part, ":") for part in word.split(",")),
        lambda parts: _joined([_joined(part, ":") for part in parts]),
    ),
    "terms": _Word(r"[a-z]*(?:,[a-z]*)?->[a-z]*", _terms, lambda given: f"{_joined(given[0])}->{given[1]}"),
}


@dataclass(frozen=True, slots=True)
class _Operation:
    """The words of an operation, how many operands it has, and what its constants and operands have to be."""

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
    "power": _Operation(("exponent",), (1,), "an exponent of at least 2"),
    "einsum": _Operation(("terms",), (1, 2), "one term for each operand, with letters in the order a, b, c, ..."),
    "reshape": _Operation(("shape",), (1,), "the same number of entries"),
    "slice": _Operation(("slices",), (1,), "start:count:step for each axis, inside of the array"),
    "gather": _Operation(("shape", "indices"), (1,), "as many indices, inside of the array, as the shape has entries"),
    "concatenate": _Operation(("axis",), range(2, 10**7), "an axis; the other axes have the same lengths"),
    "softmax": _Operation(("axis",), (1,), "an axis of the operand"),
    "exp": _Operation((), (1,), "no constants"),
    "reciprocal": _Operation((), (1,), "no constants"),
}  # fmt: skip
_LINE = re.compile(r"%(0|[1-9][0-9]{0,6}) = ([a-z]+)((?: .*)?)")
_BEHIND = {
    name: re.compile(
        "".join(f" ({_WORDS[kind].pattern})" for kind in operation.words) + "((?: %(?:0|[1-9][0-9]{0,6}))*)"
    )
    for name, operation in _OPERATIONS.items()
}


def read_instruction(line: str, before: Sequence[Instruction]) -> Instruction:
    """The instruction in a line ``%3 = einsum ab,b->a %0 %2``, which comes after those before it."""
    match = _LINE.fullmatch(line)
    if not match or int(match[1]) != len(before):
        raise ProgramError(f"{line[:60]!r} is not instruction %{len(before)}")
    operation = match[2]
    need(operation in _OPERATIONS, f"{operation!r} is not an instruction")
    behind = _BEHIND[operation].fullmatch(match[3])
    if not behind:
        raise ProgramError(f"{line[:60]!r}: {operation} is not written like this")
    *words, references = behind.groups()
    kinds = _OPERATIONS[operation].words
    read = {kind: _WORDS[kind].read(word) for kind, word in zip(kinds, words, strict=True)}
    shape = read.pop("shape", ())
    places = tuple(int(word[1:]) for word in references.split())
    for place in places:
        need(place < len(before), f"'%{place}' is not an earlier instruction")
    constants = next(iter(read.values()), ())
    return instruction(operation, constants, places, tuple(before[k].shape for k in places), shape)


# -- shapes --------------------------------------------------------------------------------------------


def instruction(
    operation: str,
    constants: tuple[Any, ...],
    operands: tuple[int, ...],
    shapes: tuple[Shape, ...],
    shape: Shape = (),
) -> Instruction:
    """An instruction whose result has the right shape; `shape` is needed by weight, input, constant, reshape and gather.

    Raises
    ------
    ProgramError
        The constants or the shapes of the operands do not fit.
    """
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
    """The shape of a sum or an entrywise product, by NumPy's rule."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ProgramError(f"shapes {' and '.join(map(str, shapes))} do not fit together") from None


def _result_shape(
    operation: str, constants: tuple[Any, ...], shapes: tuple[Shape, ...], shape: Shape
) -> Shape | None:
    """The shape of the result from constants, shapes of operands, and the shape that is written; None if they do not fit."""
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
        case (("exp" | "reciprocal"), ()):
            return first
    return None


def _is_inside(part: AxisSlice, length: int) -> bool:
    """Whether a slice of an axis is not empty and inside; the step of a single entry is 1."""
    start, count, step = part
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
