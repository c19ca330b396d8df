"""A network as data: a short list of array instructions with a canonical text.

A program is recorded once from a forward pass (:mod:`m2bridge.programs.recording`) and interpreted everywhere: over F_p,
float64, balls, polynomials, and by the stand-alone checker. Its text has one instruction a line and a sha256, so that
records and certificates can hold the network itself:

    m2bridge program 1
    %0 = weight W1 [3,2]
    %1 = weight W2 [1,3]
    %2 = input x [2]
    %3 = einsum ab,b->a %0 %2
    %4 = power 2 %3
    %5 = einsum ab,b->a %1 %4
    output y %5

Weights come first, then inputs, then instructions in the order in which they are computed. The document
``docs/certificates.md`` specifies each instruction.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from math import prod
from typing import Any

from m2bridge.errors import InputError

Shape = tuple[int, ...]
Slice = tuple[int, int, int]
"""Start, count and step on one axis."""

HEADER = "m2bridge program 1"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
MOST_ENTRIES = 2**31
"""No array of a program may have more entries than this."""
MOST_AXES = 20
LARGEST_POWER = 10**6

OPERATIONS = (
    "weight", "input", "constant", "add", "scale", "multiply", "power", "einsum", "reshape", "slice", "gather",
    "concatenate", "softmax", "exp", "reciprocal",
)  # fmt: skip
ANALYTIC = frozenset({"softmax", "exp", "reciprocal"})


class ProgramError(InputError):
    """A text that is not a program, or an instruction that does not fit its operands."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of a program: what is done, its constants, the numbers of its operands, and the shape of the result.

    `constants` depends on the operation: ``(name,)`` for weight and input; a tuple of rationals for constant; ``(r,)`` for
    scale; ``(n,)`` for power; ``(terms, result)`` for einsum; slices, one an axis, for slice; flat indices for gather;
    ``(axis,)`` for concatenate and softmax; empty for the others.
    """

    operation: str
    constants: tuple[Any, ...]
    operands: tuple[int, ...]
    shape: Shape

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class Program:
    """A network, or a map given by its coordinates when it has no inputs.

    Attributes
    ----------
    instructions: weights, inputs, then the computation; operands refer to earlier places.
    outputs: names and places of the results.
    vanishing: places of polynomials in the weights that are zero on the source; empty when weights are free.

    Examples
    --------
    >>> text = "m2bridge program 1\\n%0 = weight w [2]\\n%1 = power 2 %0\\noutput y %1\\n"
    >>> program = parse_program(text)
    >>> program.parameters, program.text == text
    ({'w': (2,)}, True)
    """

    instructions: tuple[Instruction, ...]
    outputs: tuple[tuple[str, int], ...]
    vanishing: tuple[int, ...] = ()

    def _named(self, operation: str) -> dict[str, int]:
        return {
            str(item.constants[0]): place
            for place, item in enumerate(self.instructions)
            if item.operation == operation
        }

    @cached_property
    def weights(self) -> dict[str, int]:
        """Names of the weights and their places, in order."""
        return self._named("weight")

    @cached_property
    def inputs(self) -> dict[str, int]:
        """Names of the inputs and their places, in order; empty for a map given by its coordinates."""
        return self._named("input")

    @property
    def parameters(self) -> dict[str, Shape]:
        return {name: self.instructions[place].shape for name, place in self.weights.items()}

    @property
    def input_shapes(self) -> dict[str, Shape]:
        return {name: self.instructions[place].shape for name, place in self.inputs.items()}

    @property
    def output_shapes(self) -> dict[str, Shape]:
        return {name: self.instructions[place].shape for name, place in self.outputs}

    @cached_property
    def parameter_count(self) -> int:
        return sum(prod(shape) for shape in self.parameters.values())

    @cached_property
    def input_count(self) -> int:
        """Number of entries of all inputs together, which are the variables of the coordinates."""
        return sum(prod(shape) for shape in self.input_shapes.values())

    @cached_property
    def output_count(self) -> int:
        """Number of entries of all outputs together."""
        return sum(prod(shape) for shape in self.output_shapes.values())

    @cached_property
    def polynomial(self) -> bool:
        return not any(item.operation in ANALYTIC for item in self.instructions)

    @cached_property
    def sees_inputs(self) -> tuple[bool, ...]:
        """For each place, whether its value depends on an input."""
        seen: list[bool] = []
        for item in self.instructions:
            seen.append(item.operation == "input" or any(seen[k] for k in item.operands))
        return tuple(seen)

    @cached_property
    def sees_weights(self) -> tuple[bool, ...]:
        """For each place, whether its value depends on a weight."""
        seen: list[bool] = []
        for item in self.instructions:
            seen.append(item.operation == "weight" or any(seen[k] for k in item.operands))
        return tuple(seen)

    @cached_property
    def text(self) -> str:
        """The canonical text; ``parse_program(program.text) == program``."""
        lines = [HEADER]
        lines += [f"%{place} = {_written(item)}" for place, item in enumerate(self.instructions)]
        lines += [f"vanishing %{place}" for place in self.vanishing]
        lines += [f"output {name} %{place}" for name, place in self.outputs]
        return "\n".join(lines) + "\n"

    @cached_property
    def sha256(self) -> str:
        return sha256(self.text.encode("ascii")).hexdigest()


def _written(item: Instruction) -> str:
    operation, constants = item.operation, item.constants
    shape = "[" + ",".join(map(str, item.shape)) + "]"
    words: list[str] = [operation]
    if operation in ("weight", "input"):
        words += [str(constants[0]), shape]
    elif operation == "constant":
        words += [shape, *map(str, constants)]
    elif operation == "reshape":
        words.append(shape)
    elif operation == "einsum":
        terms, result = constants
        words.append(",".join(terms) + "->" + result)
    elif operation == "slice":
        words.append(",".join(":".join(map(str, part)) for part in constants))
    elif operation == "gather":
        words += [shape, ",".join(map(str, constants))]
    elif constants:
        words += [str(constant) for constant in constants]
    return " ".join([*words, *(f"%{k}" for k in item.operands)])


# -- shapes ----------------------------------------------------------------------------------------------


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
    rule = _RULES.get(operation)
    if rule is None:
        raise ProgramError(f"{operation!r} is not an instruction")
    result = rule(constants, shapes, shape)
    if len(result) > MOST_AXES or any(n < 1 for n in result) or prod(result) > MOST_ENTRIES:
        raise ProgramError(f"{operation}: an array of shape {result} is too large or empty")
    return Instruction(operation, constants, operands, result)


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise ProgramError(message)


def _declared(constants: tuple[Any, ...], shapes: tuple[Shape, ...], shape: Shape) -> Shape:
    name = constants[0] if len(constants) == 1 else None
    _need(
        isinstance(name, str) and bool(NAME.fullmatch(name)) and not shapes,
        f"{name!r} is not a name of an array",
    )
    return shape


def _constant(constants: tuple[Any, ...], shapes: tuple[Shape, ...], shape: Shape) -> Shape:
    _need(not shapes and len(constants) == prod(shape), "constant: as many numbers as the shape has entries")
    _need(all(isinstance(c, Fraction) for c in constants), "constant: its entries are rational numbers")
    return shape


def _broadcast(constants: tuple[Any, ...], shapes: tuple[Shape, ...], _: Shape) -> Shape:
    _need(len(shapes) == 2 and not constants, "two operands are added or multiplied")
    return broadcast_shape(*shapes)


def broadcast_shape(first: Shape, second: Shape) -> Shape:
    """The shape of a sum or an entrywise product, by NumPy's rule."""
    longest = max(len(first), len(second))
    padded = [(1,) * (longest - len(shape)) + shape for shape in (first, second)]
    for m, n in zip(*padded, strict=True):
        _need(m == n or 1 in (m, n), f"shapes {first} and {second} do not fit together")
    return tuple(n if m == 1 else m for m, n in zip(*padded, strict=True))


def _scale(constants: tuple[Any, ...], shapes: tuple[Shape, ...], _: Shape) -> Shape:
    _need(
        len(shapes) == len(constants) == 1 and isinstance(constants[0], Fraction),
        "scale: a rational and an operand",
    )
    return shapes[0]


def _power(constants: tuple[Any, ...], shapes: tuple[Shape, ...], _: Shape) -> Shape:
    n = constants[0] if len(constants) == 1 else None
    _need(
        isinstance(n, int) and 2 <= n <= LARGEST_POWER and len(shapes) == 1,
        "power: an exponent of at least 2",
    )
    return shapes[0]


def _einsum(constants: tuple[Any, ...], shapes: tuple[Shape, ...], _: Shape) -> Shape:
    terms, result = constants if len(constants) == 2 else ((), "")
    _need(
        isinstance(terms, tuple) and isinstance(result, str) and len(shapes) in (1, 2),
        "einsum: one or two operands",
    )
    assert isinstance(terms, tuple)
    assert isinstance(result, str)
    _need(len(terms) == len(shapes), "einsum: one term for each operand")
    lengths: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        _need(
            len(term) == len(set(term)) == len(shape),
            f"einsum: {term!r} does not fit an array of shape {shape}",
        )
        for letter, length in zip(term, shape, strict=True):
            _need(letter in _LETTERS, f"einsum: {letter!r} is not a letter a-z")
            _need(lengths.setdefault(letter, length) == length, f"einsum: {letter!r} has two lengths")
    seen = "".join(dict.fromkeys("".join(terms)))
    _need(seen == _LETTERS[: len(seen)], "einsum: letters come in the order a, b, c, ...")
    _need(
        len(set(result)) == len(result) and set(result) <= set(seen),
        f"einsum: the result {result!r} does not fit",
    )
    return tuple(lengths[letter] for letter in result)


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _reshape(constants: tuple[Any, ...], shapes: tuple[Shape, ...], shape: Shape) -> Shape:
    _need(
        not constants and len(shapes) == 1 and prod(shapes[0]) == prod(shape),
        "reshape: the same number of entries",
    )
    return shape


def _slice(constants: tuple[Any, ...], shapes: tuple[Shape, ...], _: Shape) -> Shape:
    _need(len(shapes) == 1 and len(constants) == len(shapes[0]), "slice: start:count:step for each axis")
    counts = []
    for part, length in zip(constants, shapes[0], strict=True):
        assert isinstance(part, tuple)
        start, count, step = part
        last = start + (count - 1) * step
        _need(
            count >= 1 and step != 0 and 0 <= start < length and 0 <= last < length,
            "slice: outside of the array",
        )
        _need(count > 1 or step == 1, "slice: the step of a single entry is 1")
        counts.append(count)
    return tuple(counts)


def _gather(constants: tuple[Any, ...], shapes: tuple[Shape, ...], shape: Shape) -> Shape:
    _need(
        len(shapes) == 1 and len(constants) == prod(shape), "gather: as many indices as the shape has entries"
    )
    most = prod(shapes[0])
    _need(
        all(isinstance(k, int) and 0 <= k < most for k in constants), "gather: an index outside of the array"
    )
    return shape


def _concatenate(constants: tuple[Any, ...], shapes: tuple[Shape, ...], _: Shape) -> Shape:
    axis = constants[0] if len(constants) == 1 else None
    _need(
        isinstance(axis, int) and len(shapes) >= 2 and 0 <= axis < len(shapes[0]),
        "concatenate: an axis and operands",
    )
    assert isinstance(axis, int)
    rest = {(len(shape), *shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    _need(len(rest) == 1, "concatenate: the other axes have the same lengths")
    return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])


def _softmax(constants: tuple[Any, ...], shapes: tuple[Shape, ...], _: Shape) -> Shape:
    axis = constants[0] if len(constants) == 1 else None
    _need(
        isinstance(axis, int) and len(shapes) == 1 and 0 <= axis < len(shapes[0]),
        "softmax: an axis of its operand",
    )
    return shapes[0]


def _entrywise(constants: tuple[Any, ...], shapes: tuple[Shape, ...], _: Shape) -> Shape:
    _need(len(shapes) == 1 and not constants, "exp and reciprocal have one operand")
    return shapes[0]


_RULES = {
    "weight": _declared, "input": _declared, "constant": _constant, "add": _broadcast, "multiply": _broadcast,
    "scale": _scale, "power": _power, "einsum": _einsum, "reshape": _reshape, "slice": _slice, "gather": _gather,
    "concatenate": _concatenate, "softmax": _softmax, "exp": _entrywise, "reciprocal": _entrywise,
}  # fmt: skip


# -- reading ---------------------------------------------------------------------------------------------

_INTEGER = r"(?:0|-?[1-9][0-9]{0,5000})"
_RATIONAL = rf"{_INTEGER}(?:/[1-9][0-9]{{0,5000}})?"
_SHAPE = r"\[(?:[0-9]{1,10}(?:,[0-9]{1,10})*)?\]"
_SLICE = r"(?:0|[1-9][0-9]{0,9}):[1-9][0-9]{0,9}:-?[1-9][0-9]{0,9}"
_LINE = re.compile(r"%(0|[1-9][0-9]{0,6}) = ([a-z]+)((?: [^ ]+)*)")
_WORDS = {
    "weight": [NAME.pattern, _SHAPE],
    "input": [NAME.pattern, _SHAPE],
    "scale": [_RATIONAL],
    "power": [r"[1-9][0-9]{0,6}"],
    "einsum": [r"[a-z]*(?:,[a-z]*)?->[a-z]*"],
    "reshape": [_SHAPE],
    "slice": [rf"{_SLICE}(?:,{_SLICE})*"],
    "gather": [_SHAPE, r"[0-9]{1,10}(?:,[0-9]{1,10})*"],
    "concatenate": [r"[0-9]{1,2}"],
    "softmax": [r"[0-9]{1,2}"],
}
_REFERENCE = re.compile(r"%(0|[1-9][0-9]{0,6})")


def parse_program(text: str) -> Program:
    """The program with this canonical text.

    Raises
    ------
    ProgramError
        The text is not canonical: an unknown word, a blank too many, a shape that does not fit. The line is named.
    """
    lines = text.split("\n")
    if lines[0] != HEADER or lines[-1] != "":
        raise ProgramError(f"a program begins with {HEADER!r} and ends with a line break")
    instructions: list[Instruction] = []
    outputs: list[tuple[str, int]] = []
    vanishing: list[int] = []
    for number, line in enumerate(lines[1:-1], start=2):
        try:
            if line.startswith("output "):
                name, place = _tail(line, rf"output ({NAME.pattern}) %([0-9]{{1,7}})")
                outputs.append((name, int(place)))
            elif line.startswith("vanishing ") and not outputs:
                vanishing.append(int(_tail(line, r"vanishing %([0-9]{1,7})")[0]))
            elif outputs or vanishing:
                raise ProgramError("instructions come before outputs")
            else:
                instructions.append(_read(line, instructions))
        except ProgramError as error:
            raise ProgramError(f"line {number}: {error.message}") from None
    program = Program(tuple(instructions), tuple(outputs), tuple(vanishing))
    check_program(program)
    if program.text != text:
        raise ProgramError("the text is not in canonical form")
    return program


def _tail(line: str, pattern: str) -> tuple[str, ...]:
    match = re.fullmatch(pattern, line)
    if not match:
        raise ProgramError(f"{line[:60]!r} is not an instruction")
    return match.groups()


def _read(line: str, before: list[Instruction]) -> Instruction:
    match = _LINE.fullmatch(line)
    if not match or int(match[1]) != len(before):
        raise ProgramError(f"{line[:60]!r} is not instruction %{len(before)}")
    operation, words = match[2], match[3].split()
    patterns = _WORDS.get(operation, [])
    shape: Shape = ()
    if operation == "constant":
        operands: list[str] = []
        shape, values = _shape(words[0] if words else ""), words[1:]
        if not all(re.fullmatch(_RATIONAL, word) for word in values):
            raise ProgramError("constant: its entries are rational numbers in lowest terms")
        constants: tuple[Any, ...] = tuple(Fraction(word) for word in values)
    else:
        given, operands = words[: len(patterns)], words[len(patterns) :]
        if len(given) < len(patterns) or not all(map(re.fullmatch, patterns, given)):
            raise ProgramError(f"{line[:60]!r}: {operation} is not written like this")
        constants, shape = _constants(operation, given)
    places = []
    for word in operands:
        reference = _REFERENCE.fullmatch(word)
        if not reference or int(reference[1]) >= len(before):
            raise ProgramError(f"{word[:20]!r} is not an earlier instruction")
        places.append(int(reference[1]))
    return instruction(operation, constants, tuple(places), tuple(before[k].shape for k in places), shape)


def _shape(word: str) -> Shape:
    if not re.fullmatch(_SHAPE, word):
        raise ProgramError(f"{word[:40]!r} is not a shape")
    return tuple(int(n) for n in word[1:-1].split(",") if n)


def _constants(operation: str, words: list[str]) -> tuple[tuple[object, ...], Shape]:
    if operation in ("weight", "input"):
        return (words[0],), _shape(words[1])
    if operation == "reshape":
        return (), _shape(words[0])
    if operation == "gather":
        return tuple(int(k) for k in words[1].split(",") if k), _shape(words[0])
    if operation == "scale":
        return (Fraction(words[0]),), ()
    if operation == "einsum":
        terms, _, result = words[0].partition("->")
        return (tuple(terms.split(",")), result), ()
    if operation == "slice":
        return tuple(tuple(int(n) for n in part.split(":")) for part in words[0].split(",")), ()
    return tuple(int(word) for word in words), ()


def check_program(program: Program) -> None:
    """Refuse a program without outputs, with names used twice, or whose declarations do not come first."""
    kinds = [{"weight": 0, "input": 1}.get(item.operation, 2) for item in program.instructions]
    _need(kinds == sorted(kinds), "weights come first, then inputs, then the computation")
    names = [str(item.constants[0]) for item in program.instructions if item.operation in ("weight", "input")]
    _need(bool(program.weights), "a program has at least one weight")
    _need(len(set(names)) == len(names), "two arrays have one name")
    _need(bool(program.outputs), "a program has at least one output")
    _need(len(dict(program.outputs)) == len(program.outputs), "two outputs have one name")
    places = [*program.vanishing, *(place for _, place in program.outputs)]
    _need(all(0 <= place < len(program.instructions) for place in places), "an output is not computed")
    _need(
        not any(program.sees_inputs[place] for place in program.vanishing),
        "an equation of the weights has inputs in it",
    )
