"""Gradings of a program: characters of weights and inputs for which every entry of every output is homogeneous.

A one-parameter torus multiplies weight j by s^(w_j) and input i by s^(u_i). Each entry that is computed then has a character,
an integer combination of the w_j and u_i, as long as all terms of every sum have the same one. These conditions are linear;
their solutions are the gradings that can be read off the instructions. Characters are one more arithmetic in which programs
are interpreted: products add them, roots halve them, and a sum requires that those of its terms are equal. An exponential is a
further variable with a character of its own, and requires that the one of its argument is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import flint
import numpy as np

from m2bridge.programs.arithmetics import ObjectArithmetic, object_array
from m2bridge.programs.instructions import split_flat
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate

MOST_CHARACTERS = 10_000_000
"""With more numbers than this in the characters of one instruction, gradings are not searched."""
MOST_ROOTS = 30  # instructions with square roots


@dataclass(frozen=True, slots=True)
class Gradings:
    """One row for each grading: characters of the flat weights, of the input entries, and of the flat outputs."""

    weights: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray


@dataclass(frozen=True, slots=True)
class _Character:
    """The character of an entry; None for a zero entry. `conditions` collects the linear conditions of sums."""

    vector: np.ndarray | None
    conditions: dict[bytes, np.ndarray]

    def __add__(self, other: _Character) -> _Character:
        if self.vector is None or other.vector is None:
            return self if other.vector is None else other
        self.require_zero(self.vector - other.vector)
        return self

    def __mul__(self, other: _Character) -> _Character:
        if self.vector is None or other.vector is None:
            return _Character(None, self.conditions)
        return _Character(self.vector + other.vector, self.conditions)

    def __rtruediv__(self, one: int) -> _Character:
        return self if self.vector is None else _Character(-self.vector, self.conditions)

    def sqrt(self) -> _Character:
        return self if self.vector is None else _Character(self.vector // 2, self.conditions)

    def require_zero(self, vector: np.ndarray | None) -> None:
        if vector is not None and vector.any():
            self.conditions[vector.tobytes()] = vector


class _Units:
    """Exponentials are further variables, each with its character; the characters of their arguments must be zero."""

    def __init__(self, units: Sequence[_Character]) -> None:
        self._left = list(reversed(units))

    def value(self, index: int, argument: Lettered) -> Lettered:
        for entry in argument.array.reshape(-1):
            entry.require_zero(entry.vector)
        units = [self._left.pop() for _ in range(argument.array.size)]
        return argument.like(object_array(units, argument.array.shape))


def gradings(program: Program) -> Gradings | None:
    """Return a basis of the gradings of a program; None if the program is too large.

    >>> from m2bridge.programs import parse_program
    >>> text = "m2bridge program 1\\n%0 = weight w [2]\\n%1 = einsum a,a-> %0 %0\\noutput y %1\\n"
    >>> found = gradings(parse_program(text))
    >>> found.weights.tolist(), found.outputs.tolist()
    ([[1, 1]], [[2]])
    """
    exponentials = (item.size for item in program.instructions if item.operation in ("exp", "softmax"))
    count, given = program.parameter_count, program.parameter_count + program.input_count
    variables = given + sum(exponentials)
    if variables * max(item.size for item in program.instructions) > MOST_CHARACTERS:
        return None
    if len(program.roots) > MOST_ROOTS:
        return None
    conditions: dict[bytes, np.ndarray] = {}
    nothing = np.zeros(variables, dtype=np.int64)
    arithmetic = ObjectArithmetic(lambda number: _Character(nothing if number else None, conditions))
    multiple = 2 ** len(program.roots)  # which can be halved by each of the roots
    units = [_Character(row, conditions) for row in multiple * np.eye(variables, dtype=np.int64)]
    characters = split_flat(object_array(units[:given], (given,)), program.parameters | program.input_shapes)
    arrays = {name: Lettered("", array) for name, array in characters.items()}
    values = evaluate(program, arithmetic, arrays, _Units(units[given:]))
    entries = [entry for _, index in program.outputs for entry in values[index].array.flat]
    outputs = np.array([nothing if entry.vector is None else entry.vector for entry in entries])
    basis = _solutions(list(conditions.values()), variables)
    return Gradings(basis[:, :count], basis[:, count:given], basis @ outputs.T // multiple)


def _solutions(conditions: list[np.ndarray], variables: int) -> np.ndarray:
    """Return a basis of the integer vectors that satisfy all conditions; the first non-zero entry of each row is positive."""
    if not conditions:
        return np.eye(variables, dtype=np.int64)
    kernel, rank = flint.fmpz_mat(np.array(conditions).tolist()).nullspace()
    columns = [[int(kernel[i, j]) for i in range(variables)] for j in range(rank)]
    divisors = [np.gcd.reduce(column) * np.sign(next(filter(None, column))) for column in columns]
    basis = [[v // divisor for v in column] for column, divisor in zip(columns, divisors, strict=True)]
    return np.array(basis, dtype=np.int64).reshape(rank, variables)
