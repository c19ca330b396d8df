"""A program as checked numbers for Macaulay2, and how much work its interpretation is."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from m2bridge.errors import NotPolynomialError
from m2bridge.programs.instructions import Instruction
from m2bridge.programs.program import Program


def program_for_macaulay2(program: Program) -> dict[str, object]:
    """The instructions as words and integers for the partial ``_program``: no name of a user reaches a script.

    Raises
    ------
    NotPolynomialError
        The program has an analytic instruction.
    """
    if not program.polynomial:
        raise NotPolynomialError("Macaulay2 interprets polynomial programs only")
    return {
        "instructions": [
            [item.operation, item.shape, item.operands, _constants(item)] for item in program.instructions
        ],
        "outputPlaces": [place for _, place in program.outputs],
    }


def _constants(item: Instruction) -> list[object]:
    if item.operation in ("weight", "input"):
        return []
    if item.operation == "einsum":
        terms, result = item.constants
        return [[ord(letter) - ord("a") for letter in word] for word in (*terms, result)]
    return [[c.numerator, c.denominator] if isinstance(c, Fraction) else c for c in item.constants]


def multiplications(program: Program) -> int:
    """An upper bound of the number of entries that are computed when the program runs once."""
    return sum(_work(program, item) for item in program.instructions)


def _work(program: Program, item: Instruction) -> int:
    if item.operation != "einsum":
        return item.size
    lengths: dict[str, int] = {}
    for term, place in zip(item.constants[0], item.operands, strict=True):
        lengths |= dict(zip(term, program.instructions[place].shape, strict=True))
    return prod(lengths.values())
