"""A program in which sums over a concatenated axis are sums over its parts, so that each part has symmetries of its own."""

from __future__ import annotations

from m2bridge.programs.instructions import Instruction
from m2bridge.programs.program import Builder, Program


def without_concatenations(program: Program) -> Program:
    """Replace each einsum that sums over a concatenated axis by the sum of einsums with the parts.

    >>> from m2bridge.programs import parse_program
    >>> head = "m2bridge program 1\\n%0 = weight a [1]\\n%1 = weight b [1]\\n%2 = weight W [2]\\n"
    >>> text = head + "%3 = concatenate 0 %0 %1\\n%4 = einsum a,a-> %2 %3\\noutput y %4\\n"
    >>> print("\\n".join(without_concatenations(parse_program(text)).text.splitlines()[4:]))
    %3 = slice 0:1:1 %2
    %4 = einsum a,a-> %3 %0
    %5 = slice 1:1:1 %2
    %6 = einsum a,a-> %5 %1
    %7 = add %4 %6
    output y %7
    """
    builder, renamed = Builder(), dict[int, int]()
    for index, item in enumerate(program.instructions):
        side = _concatenated(program, item)
        if side is None:
            operands = tuple(renamed[k] for k in item.operands)
            renamed[index] = builder.write(item.operation, operands, *item.constants, shape=item.shape)
        else:
            renamed[index] = _sum_over_parts(program, builder, item, side, renamed)
    return builder.finished([(name, renamed[index]) for name, index in program.outputs])


def _concatenated(program: Program, item: Instruction) -> int | None:
    """Return which operand of an einsum is concatenated along an axis that is summed over; None if none is."""
    for side, k in enumerate(item.operands if item.operation == "einsum" else ()):
        before = program.instructions[k]
        terms, result = item.constants
        if before.operation == "concatenate" and terms[side][before.constants[0]] not in result:
            return side
    return None


def _sum_over_parts(
    program: Program, builder: Builder, item: Instruction, side: int, renamed: dict[int, int]
) -> int:
    """Write the einsums with the parts of one operand and slices of the other one, and their sum."""
    whole = program.instructions[item.operands[side]]
    axis = int(whole.constants[0])
    terms, _ = item.constants
    start, total = 0, -1
    for source in whole.operands:
        count = program.instructions[source].shape[axis]
        operands = []
        for number, k in enumerate(item.operands):
            if number == side:
                operands.append(renamed[source])
            else:
                box = [(0, n, 1) for n in program.instructions[k].shape]
                if terms[side][axis] in terms[number]:
                    box[terms[number].index(terms[side][axis])] = (start, count, 1)
                operands.append(builder.write("slice", (renamed[k],), *box))
        product = builder.write("einsum", operands, *item.constants)
        total = product if total < 0 else builder.write("add", (total, product))
        start += count
    return total
