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
            for kind in _OPERATIONS[self.operation][0]
        ]
        return " ".join([self.operation, *words, *(f"%{k}" for k in self.operands)])


def need(condition: bool, message: str) -> None:
    """Refuse what does not satisfy a condition."""
    if not condition:
        raise ProgramError(message)


# -- words ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Word:
    """How a part of an instruction is written: its pattern, the constants (or the shape) that it means, and back."""

    pattern: str
    read: Callable[[str], tuple[Any, ...]]
    write: Callable[[tuple[Any, ...]], str]


_INTEGER = r"(?:0|-?[1-9][0-9]{0,5000})"
_RATIONAL = rf"{_INTEGER}(?:/[1-9][0-9]{{0,5000}})?"
_SLICE = r"(?:0|[1-9][0-9]{0,9}):[1-9][0-9]{0,9}:-?[1-9][0-9]{0,9}"


def _rationals(text: str) -> tuple[Fraction, ...]:
    words = text.split(" ")
    need(
        all(re.fullmatch(_RATIONAL, word) for word in words),
        "constant: its entries are rational numbers in lowest terms",
    )
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
_LINE = re.compile(r"%(0|[1-9][0-9]{0,6}) = ([a-z]+)((?: .*)?)")


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
    read = {
        kind: _WORDS[kind].read(word) for kind, word in zip(_OPERATIONS[operation][0], words, strict=True)
    }
    shape = read.pop("shape", ())
    places = tuple(int(word[1:]) for word in references.split())
    for place in places:
        need(place < len(before), f"'%{place}' is not an earlier instruction")
    constants = next(iter(read.values()), ())
    return instruction(operation, constants, places, tuple(before[k].shape for k in places), shape)


# -- shapes --------------------------------------------------------------------------------------------

Rule = Callable[[Any, tuple[Shape, ...], Shape], Shape]
"""The shape of a result from constants, the shapes of operands, and the shape that is written."""


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
    _, counts, rule = _OPERATIONS[operation]
    need(len(shapes) in counts, f"{operation}: {len(shapes)} operands")
    result = rule(constants, shapes, shape)
    if len(result) > MOST_AXES or any(n < 1 for n in result) or prod(result) > MOST_ENTRIES:
        raise ProgramError(f"{operation}: an array of shape {result} is too large or empty")
    return Instruction(operation, constants, operands, result)


def _declared(constants: Any, shapes: tuple[Shape, ...], shape: Shape) -> Shape:
    fits = len(constants) == 1 and isinstance(constants[0], str) and NAME.fullmatch(constants[0])
    need(bool(fits), f"{_joined(constants)!r} is not a name of an array")
    return shape


def _constant(constants: Any, shapes: tuple[Shape, ...], shape: Shape) -> Shape:
    need(len(constants) == prod(shape), "constant: as many numbers as the shape has entries")
    need(all(isinstance(c, Fraction) for c in constants), "constant: its entries are rational numbers")
    return shape


def _broadcast(constants: Any, shapes: tuple[Shape, ...], _: Shape) -> Shape:
    need(not constants, "a sum or a product has no constants")
    return broadcast_shape(*shapes)


def broadcast_shape(*shapes: Shape) -> Shape:
    """The shape of a sum or an entrywise product, by NumPy's rule."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ProgramError(f"shapes {' and '.join(map(str, shapes))} do not fit together") from None


def _scale(constants: Any, shapes: tuple[Shape, ...], _: Shape) -> Shape:
    need(len(constants) == 1 and isinstance(constants[0], Fraction), "scale: a rational and an operand")
    return shapes[0]


def _power(constants: Any, shapes: tuple[Shape, ...], _: Shape) -> Shape:
    fits = len(constants) == 1 and isinstance(constants[0], int) and 2 <= constants[0] <= LARGEST_POWER
    need(fits, "power: an exponent of at least 2")
    return shapes[0]


def _einsum(constants: Any, shapes: tuple[Shape, ...], _: Shape) -> Shape:
    need(len(constants) == 2 and len(constants[0]) == len(shapes), "einsum: one term for each operand")
    terms, result = constants
    lengths: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        fits = len(term) == len(set(term)) == len(shape)
        need(fits, f"einsum: {term!r} does not fit an array of shape {shape}")
        for letter, length in zip(term, shape, strict=True):
            need(lengths.setdefault(letter, length) == length, f"einsum: {letter!r} has two lengths")
    seen = "".join(lengths)
    need(seen == LETTERS[: len(seen)], "einsum: letters come in the order a, b, c, ...")
    fits = len(set(result)) == len(result) and set(result) <= set(seen)
    need(fits, f"einsum: the result {result!r} does not fit")
    return tuple(lengths[letter] for letter in result)


def _reshape(constants: Any, shapes: tuple[Shape, ...], shape: Shape) -> Shape:
    need(not constants and prod(shapes[0]) == prod(shape), "reshape: the same number of entries")
    return shape


def _slice(constants: Any, shapes: tuple[Shape, ...], _: Shape) -> Shape:
    need(len(constants) == len(shapes[0]), "slice: start:count:step for each axis")
    for (start, count, step), length in zip(constants, shapes[0], strict=True):
        inside = 0 <= start < length and 0 <= start + (count - 1) * step < length
        need(count >= 1 and step != 0 and inside, "slice: outside of the array")
        need(count > 1 or step == 1, "slice: the step of a single entry is 1")
    return tuple(count for _, count, _ in constants)


def _gather(constants: Any, shapes: tuple[Shape, ...], shape: Shape) -> Shape:
    need(len(constants) == prod(shape), "gather: as many indices as the shape has entries")
    most = prod(shapes[0])
    inside = all(isinstance(k, int) and 0 <= k < most for k in constants)
    need(inside, "gather: an index outside of the array")
    return shape


def _axis(constants: Any, shapes: tuple[Shape, ...], _: Shape) -> Shape:
    fits = len(constants) == 1 and isinstance(constants[0], int) and 0 <= constants[0] < len(shapes[0])
    need(fits, "concatenate and softmax: an axis of the operand")
    return shapes[0]


def _concatenate(constants: Any, shapes: tuple[Shape, ...], shape: Shape) -> Shape:
    _axis(constants, shapes, shape)
    (axis,) = constants
    rest = {(len(shape), *shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    need(len(rest) == 1, "concatenate: the other axes have the same lengths")
    return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])


def _entrywise(constants: Any, shapes: tuple[Shape, ...], _: Shape) -> Shape:
    need(not constants, "exp and reciprocal have no constants")
    return shapes[0]


_OPERATIONS: dict[str, tuple[tuple[str, ...], Sequence[int], Rule]] = {
    "weight": (("name", "shape"), (0,), _declared),
    "input": (("name", "shape"), (0,), _declared),
    "constant": (("shape", "rationals"), (0,), _constant),
    "add": ((), (2,), _broadcast),
    "scale": (("rational",), (1,), _scale),
    "multiply": ((), (2,), _broadcast),
    "power": (("exponent",), (1,), _power),
    "einsum": (("terms",), (1, 2), _einsum),
    "reshape": (("shape",), (1,), _reshape),
    "slice": (("slices",), (1,), _slice),
    "gather": (("shape", "indices"), (1,), _gather),
    "concatenate": (("axis",), range(2, 10**7), _concatenate),
    "softmax": (("axis",), (1,), _axis),
    "exp": ((), (1,), _entrywise),
    "reciprocal": ((), (1,), _entrywise),
}
"""The words of each operation, how many operands it has, and its rule of shapes."""
_BEHIND = {
    operation: re.compile(
        "".join(f" ({_WORDS[kind].pattern})" for kind in kinds) + "((?: %(?:0|[1-9][0-9]{0,6}))*)"
    )
    for operation, (kinds, _, _) in _OPERATIONS.items()
}
