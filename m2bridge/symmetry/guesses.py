"""Vector fields that are tried before a search of high degree: cheap to write down, and verified like all others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import prod

from m2bridge.programs.program import Program
from m2bridge.symmetry.fields import VectorField

_MATRIX_VECTOR = (("ab", "b"), "a")


def rotations(program: Program) -> Iterator[VectorField]:
    """dw_i = v_j w_j, dw_j = -v_i w_i wherever a program computes sum_i v_i (w_i . h)^2: rotations of the quadratic form v."""
    items = program.instructions
    starts, start = {}, 0
    for name, shape in program.parameters.items():
        starts[program.weights[name]] = start
        start += prod(shape)
    for item in items:
        if item.operation != "einsum" or len(item.operands) != 2 or item.size != 1:
            continue
        for v, q in (item.operands, item.operands[::-1]):
            square = items[q]
            if v not in starts or square.operation != "power" or square.constants[0] != 2:
                continue
            linear = items[square.operands[0]]
            if (
                linear.operation == "einsum"
                and linear.constants == _MATRIX_VECTOR
                and linear.operands[0] in starts
            ):
                n, width = items[linear.operands[0]].shape
                if items[v].size == n:
                    yield from _rotations(starts[v], starts[linear.operands[0]], n, width)


def _rotations(v: int, w: int, n: int, width: int) -> Iterator[VectorField]:
    for i, j in combinations(range(n), 2):
        terms = []
        for k in range(width):
            at_i, at_j = w + i * width + k, w + j * width + k
            terms.append((at_i, 1, tuple(sorted((v + j, at_j)))))
            terms.append((at_j, -1, tuple(sorted((v + i, at_i)))))
        yield VectorField(tuple(sorted(terms)))
