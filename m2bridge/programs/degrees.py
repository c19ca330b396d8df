"""Degrees of a program's outputs, read off its instructions."""

from __future__ import annotations

from m2bridge.programs.program import Program


def degrees(program: Program) -> tuple[int, int]:
    """Upper bounds of the degree of the outputs in the weights, and in weights and inputs together.

    >>> from m2bridge.programs import parse_program
    >>> degrees(parse_program("m2bridge program 1\\n%0 = weight w [2]\\n%1 = power 3 %0\\noutput y %1\\n"))
    (3, 3)
    """
    found: list[tuple[int, int]] = []
    for item in program.instructions:
        operands = [found[k] for k in item.operands]
        if item.operation in ("weight", "input"):
            found.append((int(item.operation == "weight"), 1))
        elif not operands:
            found.append((0, 0))
        elif item.operation in ("multiply", "einsum"):
            found.append((sum(a for a, _ in operands), sum(b for _, b in operands)))
        elif item.operation == "power":
            (a, b), n = operands[0], int(item.constants[0])
            found.append((n * a, n * b))
        else:
            found.append((max(a for a, _ in operands), max(b for _, b in operands)))
    places = [place for _, place in program.outputs]
    return max(found[k][0] for k in places), max(found[k][1] for k in places)
