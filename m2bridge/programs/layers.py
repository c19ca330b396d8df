"""Linear layers of a program: instructions W z, where W is a weight matrix."""

from __future__ import annotations

from dataclasses import dataclass

from m2bridge.programs.program import Program

_MATRIX_VECTOR = (("ab", "b"), "a")
_MATRIX_MATRIX = (("ab", "bc"), "ac")


@dataclass(frozen=True, slots=True)
class LinearLayer:
    """An instruction W z, or W Z with several columns.

    `weight` and `argument` are the instructions of W and z, `rows` and `width` the shape of W. `columns` is the number of columns
    of Z, None for a vector z.
    """

    weight: int
    argument: int
    rows: int
    width: int
    columns: int | None


def linear_layer(program: Program, index: int) -> LinearLayer | None:
    """Match W z or W Z at an instruction; None if it is something else."""
    item = program.instructions[index]
    if item.operation != "einsum" or item.constants not in (_MATRIX_VECTOR, _MATRIX_MATRIX):
        return None
    weight, argument = item.operands
    if program.instructions[weight].operation != "weight":
        return None
    rows, width = program.instructions[weight].shape
    return LinearLayer(weight, argument, rows, width, item.shape[1] if len(item.shape) == 2 else None)


def output_layer(program: Program) -> LinearLayer | None:
    """Match a program with one output, W z or W Z."""
    return linear_layer(program, program.outputs[0][1]) if len(program.outputs) == 1 else None


def powered_layer(program: Program, index: int) -> tuple[LinearLayer, int] | None:
    """Match (W z)^r at an instruction, with a vector z; return the layer and r."""
    item = program.instructions[index]
    layer = linear_layer(program, item.operands[0]) if item.operation == "power" else None
    if layer is None or layer.columns is not None:
        return None
    return layer, int(item.constants[0])


def one_hidden_layer(program: Program) -> tuple[int, int, int, int] | None:
    """Match the whole program x -> W_2 (W_1 x)^r, with the weights W_1 and W_2 in this order; return (n, k, m, r).

    W_1 is k x n and W_2 is m x k. The checker accepts the six instructions of this program in no other order.
    """
    outer = output_layer(program)
    if outer is None or outer.columns is not None or len(program.instructions) != 6:
        return None
    hidden = powered_layer(program, outer.argument)
    if hidden is None:
        return None
    inner, r = hidden
    if (inner.weight, outer.weight, inner.argument) != (0, 1, 2) or not program.inputs:
        return None
    return inner.width, inner.rows, outer.rows, r
