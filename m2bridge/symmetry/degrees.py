"""The degrees in the inputs that the outputs of a program can have, and how many coefficients that makes."""

from __future__ import annotations

from math import comb, prod

from m2bridge.programs.arithmetics import Objects, object_array
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate


class WeightDegrees:
    """A set of degrees as bits of an integer; sums unite such sets, products add their members."""

    __slots__ = ("bits",)

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def __add__(self, other: WeightDegrees) -> WeightDegrees:
        return WeightDegrees(self.bits | other.bits)

    def __mul__(self, other: WeightDegrees) -> WeightDegrees:
        found, rest, shift = 0, other.bits, 0
        while rest:
            if rest & 1:
                found |= self.bits << shift
            rest >>= 1
            shift += 1
        return WeightDegrees(found)

    @property
    def members(self) -> list[int]:
        return [d for d in range(self.bits.bit_length()) if self.bits >> d & 1]


def output_degrees(program: Program) -> list[WeightDegrees]:
    """For each flat output, the degrees in the input entries that can occur."""
    arithmetic = Objects(lambda q: WeightDegrees(1 if q else 0))
    given = {}
    for shapes, bits in ((program.parameters, 1), (program.input_shapes, 2)):
        for name, shape in shapes.items():
            given[name] = Lettered("", object_array([WeightDegrees(bits)] * prod(shape), shape))
    values = evaluate(program, arithmetic, given)
    return [entry for _, place in program.outputs for entry in values[place].array.reshape(-1)]


def coordinate_count(program: Program) -> int:
    """How many coefficients the outputs can have: monomials in the inputs of all degrees that can occur."""
    n = sum(prod(shape) for shape in program.input_shapes.values())
    if not n:
        return program.output_count
    return sum(comb(n + d - 1, d) for entry in output_degrees(program) for d in entry.members)


def common_degree(program: Program) -> int | None:
    """The one degree in which all outputs are homogeneous, or None."""
    members = {d for entry in output_degrees(program) for d in entry.members}
    return members.pop() if len(members) == 1 else None
