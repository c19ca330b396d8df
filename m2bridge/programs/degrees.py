"""Degrees of a program's outputs, read off its instructions."""

from __future__ import annotations

from m2bridge.programs.program import Program


def degrees(program: Program) -> tuple[int, int]:
    """Upper bounds of the degree of the outputs in the weights, and in weights and inputs together.

    >>> from m2bridge.programs import parse_program
    >>> degrees(parse_program("m2bridge program 1\\n%0 = weight w [2]\\n%1 = power 3 %0\\noutput y %1\\n"))
    (3, 3)
    """
    return degree_in(program, "weight"), degree_in(program, "weight", "input")


def degree_in(program: Program, *kinds: str) -> int:
    """An upper bound of the degree of the outputs in the arrays of the given kinds, "weight" or "input"."""
    found: list[int] = []
    for item in program.instructions:
        operands = [found[k] for k in item.operands]
        if item.operation in ("multiply", "einsum"):
            found.append(sum(operands))
        elif item.operation == "power":
            found.append(int(item.constants[0]) * operands[0])
        else:
            found.append(max(operands, default=int(item.operation in kinds)))
    return max(found[place] for _, place in program.outputs)
