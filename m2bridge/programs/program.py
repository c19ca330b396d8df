"""A network as data: a short list of array instructions with a canonical text and its sha256.

A program is recorded once from a forward pass (:mod:`m2bridge.frontends.recording`, which shows one) and interpreted everywhere:
over F_p, float64, polynomials, and by the stand-alone checker. Weights come first, then inputs, then instructions
(:mod:`m2bridge.programs.instructions`) in the order in which they are computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from hashlib import sha256
from math import prod
from operator import add, mul

from m2bridge.linear.primes import GivenNumbers
from m2bridge.programs.instructions import (
    ANALYTIC,
    NAME,
    Instruction,
    ProgramError,
    Shape,
    instruction,
    need,
    read_instruction,
)

__all__ = ["Builder", "Instruction", "Program", "ProgramError", "Shape", "check_program", "parse_program"]

HEADER = "m2bridge program 1"
_KINDS = {"weight": 0, "input": 1}
"""Declarations, in the order in which they come before the computation."""
_RESULT = re.compile(rf"output ({NAME.pattern}) %([0-9]{{1,7}})")


class Degrees:
    """A set of degrees as bits of an integer; sums unite such sets, products add their members."""

    __slots__ = ("bits",)

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def __add__(self, other: Degrees) -> Degrees:
        return Degrees(self.bits | other.bits)

    def __mul__(self, other: Degrees) -> Degrees:
        bits = 0
        for d in other.members:
            bits |= self.bits << d
        return Degrees(bits)

    @property
    def members(self) -> list[int]:
        return [d for d in range(self.bits.bit_length()) if self.bits >> d & 1]


@dataclass(frozen=True)
class Program:
    """A network, or a map given by its coordinates when it has no inputs.

    `outputs` are names and indices of the results.

    >>> text = "m2bridge program 1\\n%0 = weight w [2]\\n%1 = power 2 %0\\noutput y %1\\n"
    >>> program = parse_program(text)
    >>> program.parameters, program.text == text
    ({'w': (2,)}, True)
    """

    instructions: tuple[Instruction, ...]
    outputs: tuple[tuple[str, int], ...]

    @cached_property
    def weights(self) -> dict[str, int]:
        """Map the names of the weights to their indices, in order."""
        return self._named("weight")

    @cached_property
    def inputs(self) -> dict[str, int]:
        """Map the names of the inputs to their indices, in order; empty for a map given by its coordinates."""
        return self._named("input")

    def _named(self, operation: str) -> dict[str, int]:
        indices = enumerate(self.instructions)
        return {str(item.constants[0]): index for index, item in indices if item.operation == operation}

    @property
    def parameters(self) -> dict[str, Shape]:
        return self._shapes(self.weights)

    @property
    def input_shapes(self) -> dict[str, Shape]:
        return self._shapes(self.inputs)

    @property
    def output_shapes(self) -> dict[str, Shape]:
        return self._shapes(dict(self.outputs))

    def _shapes(self, indices: dict[str, int]) -> dict[str, Shape]:
        return {name: self.instructions[index].shape for name, index in indices.items()}

    @cached_property
    def parameter_count(self) -> int:
        return sum(map(prod, self.parameters.values()))

    @cached_property
    def input_count(self) -> int:
        """Return the number of entries of all inputs, which are the variables of the coordinates."""
        return sum(map(prod, self.input_shapes.values()))

    @cached_property
    def output_count(self) -> int:
        return sum(map(prod, self.output_shapes.values()))

    @cached_property
    def polynomial(self) -> bool:
        return not any(item.operation in ANALYTIC for item in self.instructions)

    @cached_property
    def rational(self) -> bool:
        """Return whether the outputs are rational functions: polynomials, or fractions of them."""
        return not self.exponential and not self.roots

    @cached_property
    def exponential(self) -> bool:
        """Return whether an instruction has exponentials."""
        return any(item.operation in ("exp", "softmax") for item in self.instructions)

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """Return the indices of the square roots."""
        return tuple(index for index, item in enumerate(self.instructions) if item.operation == "sqrt")

    def depending_on(self, indices: Iterable[int]) -> tuple[bool, ...]:
        """Return for each instruction whether its value depends on one of the given instructions."""
        leaves, dependent = set(indices), list[bool]()
        for index, item in enumerate(self.instructions):
            dependent.append(index in leaves or any(dependent[k] for k in item.operands))
        return tuple(dependent)

    @cached_property
    def sees_inputs(self) -> tuple[bool, ...]:
        """Return for each instruction whether its value depends on an input."""
        return self.depending_on(self.inputs.values())

    @cached_property
    def input_degrees(self) -> tuple[int, ...]:
        """Return the degrees in the inputs that can occur in the outputs, ascending.

        A sum has the degrees of its terms, a product the sums of the degrees of its factors.
        """
        degrees: list[Degrees] = []
        for item in self.instructions:
            operands = [degrees[k] for k in item.operands] or [Degrees(2 if item.operation == "input" else 1)]
            if item.operation == "power":
                operands *= item.constants[0]
            degrees.append(
                reduce(mul if item.operation in ("multiply", "einsum", "power") else add, operands)
            )
        return tuple(reduce(add, (degrees[index] for _, index in self.outputs)).members)

    @cached_property
    def numbers(self) -> GivenNumbers:
        """Return all constants and exponents."""
        kinds = ("constant", "scale", "power")
        return GivenNumbers(
            c for item in self.instructions if item.operation in kinds for c in item.constants
        )

    @cached_property
    def text(self) -> str:
        """Return the canonical text; ``parse_program(program.text) == program``."""
        lines = [HEADER]
        lines += [f"%{index} = {item.text}" for index, item in enumerate(self.instructions)]
        lines += [f"output {name} %{index}" for name, index in self.outputs]
        return "\n".join(lines) + "\n"

    @cached_property
    def sha256(self) -> str:
        return sha256(self.text.encode("ascii")).hexdigest()


def parse_program(text: str) -> Program:
    """Parse a canonical text. A text that is not canonical is a ProgramError that names the line."""
    lines = text.split("\n")
    if lines[0] != HEADER or lines[-1] != "":
        raise ProgramError(f"a program begins with {HEADER!r} and ends with a line break")
    instructions: list[Instruction] = []
    outputs: list[tuple[str, int]] = []
    for number, line in enumerate(lines[1:-1], start=2):
        try:
            result = _RESULT.fullmatch(line)
            if result:
                outputs.append((result[1], int(result[2])))
            elif outputs:
                raise ProgramError("instructions come before outputs")
            else:
                instructions.append(read_instruction(line, instructions))
        except ProgramError as error:
            raise ProgramError(f"line {number}: {error.message}") from None
    program = Program(tuple(instructions), tuple(outputs))
    check_program(program)
    if program.text != text:
        raise ProgramError("the text is not in canonical form")
    return program


def check_program(program: Program) -> None:
    """Refuse a program without outputs, with names used twice, or whose declarations do not come first."""
    kinds = [_KINDS.get(item.operation, 2) for item in program.instructions]
    need(kinds == sorted(kinds), "weights must come first, then inputs, then the computation")
    need(bool(program.weights), "a program must have at least one weight")
    need(
        len(program.weights | program.inputs) == kinds.count(0) + kinds.count(1),
        "two arrays have the same name",
    )
    need(bool(program.outputs), "a program must have at least one output")
    need(len(dict(program.outputs)) == len(program.outputs), "two outputs have the same name")
    computed = all(0 <= index < len(program.instructions) for _, index in program.outputs)
    need(computed, "an output refers to an instruction that does not exist")


def arranged(
    items: Mapping[int, Instruction], outputs: Sequence[tuple[str, int]]
) -> tuple[Program, list[int]]:
    """Build a program from some instructions, given by index, with declarations first; also return the old indices in order."""
    order = sorted(items, key=lambda k: (_KINDS.get(items[k].operation, 2), k))
    new_index = {old: new for new, old in enumerate(order)}
    made = [replace(items[k], operands=tuple(new_index[j] for j in items[k].operands)) for k in order]
    named = tuple((name, new_index[k]) for name, k in outputs)
    return Program(tuple(made), named), order


def indices_needed(items: Sequence[Instruction], results: Iterable[int], leaf: int | None = None) -> set[int]:
    """Return the indices of the results and of all instructions that they depend on, not searching beyond `leaf`."""
    needed = set(results)
    for index in reversed(range(len(items))):
        if index in needed and index != leaf:
            needed.update(items[index].operands)
    return needed


class Builder:
    """Builds a program. Indices returned by :meth:`write` are final only after :meth:`finished`."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self._known: dict[Instruction, int] = {}

    def shape(self, index: int) -> Shape:
        return self.instructions[index].shape

    def write(self, operation: str, operands: Sequence[int], *constants: object, shape: Shape = ()) -> int:
        """Add an instruction, unless an equal one exists already, and return its index."""
        shapes = tuple(self.instructions[k].shape for k in operands)
        made = instruction(operation, constants, tuple(operands), shapes, shape)
        index = self._known.setdefault(made, len(self.instructions))
        if index == len(self.instructions):
            self.instructions.append(made)
        return index

    def finished(self, outputs: Sequence[tuple[str, int]]) -> Program:
        """Return the program, with declarations first and without instructions that no output needs."""
        needed = indices_needed(self.instructions, (index for _, index in outputs))
        items = {k: i for k, i in enumerate(self.instructions) if k in needed or i.operation in _KINDS}
        program, _ = arranged(items, outputs)
        check_program(program)
        return program


# -- what can be read off a program --------------------------------------------------------------------


def degrees(program: Program) -> tuple[int, int]:
    """Return upper bounds of the degree of the outputs in the weights, and in weights and inputs together.

    For a fraction it is the degree of the numerator plus twice that of the denominator: the numerator of a k-minor of the
    Jacobian has at most k times this degree, and this also covers the points at which a denominator is zero.

    >>> from m2bridge.programs import parse_program
    >>> degrees(parse_program("m2bridge program 1\\n%0 = weight w [2]\\n%1 = power 3 %0\\noutput y %1\\n"))
    (3, 3)
    """
    return degree_in(program, "weight"), degree_in(program, "weight", "input")


def degree_in(program: Program, *kinds: str, only: str | None = None) -> int:
    """Bound the degree of the outputs in the arrays of the given kinds ("weight", "input"), or in one array."""
    over: list[int] = []  # degrees of numerators
    under: list[int] = []  # and of denominators
    for item in program.instructions:
        top, bottom = [over[k] for k in item.operands], [under[k] for k in item.operands]
        if item.operation == "reciprocal":
            top, bottom = bottom, top
        if item.operation in ("multiply", "einsum"):
            summed = _products(program, item) // item.size  # products with different denominators
            over.append(sum(top) + (summed - 1) * sum(bottom))
            under.append(summed * sum(bottom))
        elif item.operation == "power":
            over.append(int(item.constants[0]) * top[0])
            under.append(int(item.constants[0]) * bottom[0])
        elif item.operation == "add":
            over.append(max(top[0] + bottom[1], top[1] + bottom[0]))
            under.append(sum(bottom))
        else:
            counts = item.operation in kinds and only in (None, *item.constants)
            over.append(max(top, default=int(counts)))
            under.append(max(bottom, default=0))
    return max(over[index] + 2 * under[index] for _, index in program.outputs)


def _products(program: Program, item: Instruction) -> int:
    """Return the number of products in all entries of the result of an instruction."""
    if item.operation != "einsum":
        return item.size
    pairs = zip(item.constants[0], item.operands, strict=True)
    lengths = {a: n for term, k in pairs for a, n in zip(term, program.instructions[k].shape, strict=True)}
    return prod(lengths.values())


def multiplications(program: Program) -> int:
    """Return an upper bound of the number of multiplications of one run of the program."""
    return sum(_products(program, item) for item in program.instructions)
