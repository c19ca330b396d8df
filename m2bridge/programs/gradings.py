"""Gradings of a program: characters of weights and inputs for which every entry of every output is homogeneous.

A one-parameter torus multiplies weight j by s^(w_j) and input i by s^(u_i). Each entry that is computed then has a character,
an integer combination of the w_j and u_i, as long as all terms of every sum have the same one. These conditions are linear;
their solutions are the gradings that can be read off the instructions. Characters are one more arithmetic in which programs
are interpreted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from m2bridge.programs.arithmetics import Floats
from m2bridge.programs.instructions import Shape, flat_parts
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, evaluate

MOST_CHARACTERS = 10_000_000
"""With more numbers than this in the characters of one instruction, no grading is looked for."""


@dataclass(frozen=True, slots=True)
class Gradings:
    """One row for each grading: characters of the flat weights, of the input entries, and of the flat outputs."""

    weights: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray


@dataclass(frozen=True, slots=True)
class _Characters:
    """For each entry of an array its character, a vector along the last axis, and whether the entry is zero and has none."""

    vectors: np.ndarray
    zero: np.ndarray

    @property
    def shape(self) -> Shape:
        return self.zero.shape

    def reshape(self, shape: Shape) -> _Characters:
        return _Characters(self.vectors.reshape(*shape, self.vectors.shape[-1]), self.zero.reshape(shape))

    def transpose(self, *axes: int) -> _Characters:
        return _Characters(self.vectors.transpose(*axes, len(axes)), self.zero.transpose(*axes))

    def __getitem__(self, key: Any) -> _Characters:
        return _Characters(self.vectors[key], self.zero[key])


class _CharacterArithmetic(Floats):
    """Products add characters; a sum asks that those of its terms are equal, which `conditions` collects."""

    def __init__(self, variables: int) -> None:
        self.variables = variables
        self.conditions = [np.zeros((0, variables), dtype=np.int64)]

    def constant(self, values: Sequence[Fraction], shape: Shape) -> _Characters:
        zero = np.array([value == 0 for value in values]).reshape(shape)
        return _Characters(np.zeros((*shape, self.variables), dtype=np.int64), zero)

    def scale(self, factor: Fraction, array: _Characters) -> _Characters:
        return array

    def power(self, array: _Characters, exponent: int) -> _Characters:
        return _Characters(array.vectors * exponent, array.zero)

    def multiply(self, left: _Characters, right: _Characters) -> _Characters:
        return _Characters(left.vectors + right.vectors, left.zero | right.zero)

    def add(self, left: _Characters, right: _Characters) -> _Characters:
        shape = np.broadcast_shapes(left.shape, right.shape)
        left, right = self.broadcast(left, shape), self.broadcast(right, shape)
        differences = (left.vectors - right.vectors)[~left.zero & ~right.zero]
        self.conditions.append(_distinct(differences))
        return _Characters(
            np.where(left.zero[..., None], right.vectors, left.vectors), left.zero & right.zero
        )

    def sum(self, array: _Characters, axes: tuple[int, ...]) -> _Characters:
        kept = [k for k in range(len(array.shape)) if k not in axes]
        terms = array.transpose(*axes, *kept).reshape((-1, *(array.shape[k] for k in kept)))
        total = terms[0, ...]
        for k in range(1, terms.shape[0]):
            total = self.add(total, terms[k, ...])
        return total

    def matmul(self, left: _Characters, right: _Characters) -> _Characters:
        wide = _Characters(left.vectors[..., None, :], left.zero[..., None])
        tall = _Characters(right.vectors[..., None, :, :, :], right.zero[..., None, :, :])
        product = self.multiply(wide, tall)
        return self.sum(product, (len(product.shape) - 2,))

    def concatenate(self, arrays: Sequence[_Characters], axis: int) -> _Characters:
        vectors = np.concatenate([array.vectors for array in arrays], axis=axis - 1)
        return _Characters(vectors, np.concatenate([array.zero for array in arrays], axis=axis))

    def broadcast(self, array: _Characters, shape: Shape) -> _Characters:
        return _Characters(
            np.broadcast_to(array.vectors, (*shape, self.variables)), np.broadcast_to(array.zero, shape)
        )


def gradings(program: Program) -> Gradings | None:
    """A basis of the gradings of a polynomial program; None for one that is too large.

    >>> from m2bridge.programs import parse_program
    >>> text = "m2bridge program 1\\n%0 = weight w [2]\\n%1 = einsum a,a-> %0 %0\\noutput y %1\\n"
    >>> found = gradings(parse_program(text))
    >>> found.weights.tolist(), found.outputs.tolist()
    ([[1, 1]], [[2]])
    """
    count, variables = program.parameter_count, program.parameter_count + program.input_count
    if variables * max(item.size for item in program.instructions) > MOST_CHARACTERS:
        return None
    characters = _CharacterArithmetic(variables)
    units = np.eye(variables, dtype=np.int64)
    given = {}
    for name, shape, part in flat_parts(program.parameters | program.input_shapes):
        vectors = units[part].reshape(*shape, variables)
        given[name] = Lettered("", _Characters(vectors, np.zeros(shape, dtype=bool)))
    found = evaluate(program, characters, given)
    outputs = [found[place].array.vectors.reshape(-1, variables) for _, place in program.outputs]
    basis = _solutions(_distinct(np.concatenate(characters.conditions)))
    return Gradings(basis[:, :count], basis[:, count:], basis @ np.concatenate(outputs).T)


def _distinct(rows: np.ndarray) -> np.ndarray:
    rows = rows[rows.any(axis=1)]
    return np.unique(rows, axis=0) if len(rows) else rows


def _solutions(conditions: np.ndarray) -> np.ndarray:
    """A basis of the integer vectors that satisfy all conditions, as rows whose first entries that are not 0 are positive."""
    variables = conditions.shape[1]
    if not len(conditions):
        return np.eye(variables, dtype=np.int64)
    kernel, rank = flint.fmpz_mat(conditions.tolist()).nullspace()
    columns = [[int(kernel[i, j]) for i in range(variables)] for j in range(rank)]
    divisors = [np.gcd.reduce(column) * np.sign(next(filter(None, column))) for column in columns]
    basis = [[v // divisor for v in column] for column, divisor in zip(columns, divisors, strict=True)]
    return np.array(basis, dtype=np.int64).reshape(rank, variables)
