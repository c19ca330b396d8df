"""Lists of sparse polynomials, evaluated and differentiated at many points at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from m2bridge.models.evaluation import program_jacobian, run
from m2bridge.models.polynomials import Polynomial
from m2bridge.programs.instructions import Shape
from m2bridge.programs.program import Builder, Program


class PolynomialSystem:
    """Polynomials f_1, ..., f_m in n variables over QQ.

    Examples
    --------
    >>> from m2bridge.linear.residues import Mod
    >>> system = PolynomialSystem([{(2, 0): 1, (0, 1): -3}, {(1, 1): 2}], 2)
    >>> system(Mod([[1, 2], [5, 3]], 101)).values.tolist()
    [[96, 4], [16, 30]]
    >>> system.jacobian(Mod([1, 2], 101)).values.tolist()
    [[2, 98], [4, 2]]
    """

    def __init__(self, polynomials: Sequence[Polynomial], variables: int) -> None:
        self.polynomials = tuple(polynomials)
        self.variables = variables
        place: dict[tuple[int, ...], int] = {}
        rows, columns, values = [], [], []
        for row, polynomial in enumerate(self.polynomials):
            for exponents, coefficient in polynomial.items():
                columns.append(place.setdefault(exponents, len(place)))
                rows.append(row)
                values.append(coefficient)
        self.exponents = np.array(list(place), dtype=np.int64).reshape(len(place), variables)
        self.rows, self.columns, self.values = rows, columns, values

    def __len__(self) -> int:
        return len(self.polynomials)

    @cached_property
    def program(self) -> Program:
        """The polynomials as a program with one weight ``x``."""
        return polynomial_program(self)

    def __call__(self, points: Any) -> Any:
        """Values at points, over any arithmetic: the last axis of `points` has length n, of the result
        length m.
        """
        return run(self.program, {"x": points})

    def jacobian(self, points: Any) -> Any:
        """The matrix of partial derivatives: the last two axes have lengths m and n."""
        return program_jacobian(self.program, {"x": points})


def polynomial_program(
    system: PolynomialSystem,
    equations: PolynomialSystem | None = None,
    weights: Mapping[str, Shape] | None = None,
) -> Program:
    """The program of a polynomial map: monomials from tables of powers, then their combinations.

    The variables are the entries of one weight ``x``, or of the given weights, one after the other.
    """
    builder = Builder()
    shapes = {"x": (system.variables,)} if weights is None else weights
    parts = [builder.write("weight", (), name, shape=shape) for name, shape in shapes.items()]
    flat = [
        place
        if len(builder.shape(place)) == 1
        else builder.write("reshape", (place,), shape=(prod(builder.shape(place)),))
        for place in parts
    ]
    x = flat[0] if len(flat) == 1 else builder.write("concatenate", flat, 0)
    output = _combination(builder, x, system)
    vanishing = [_combination(builder, x, equations)] if equations else []
    return builder.finished([("y", output)], vanishing)


def _combination(builder: Builder, x: int, system: PolynomialSystem) -> int:
    exponents, count = system.exponents, len(system.exponents)
    one = builder.write("constant", (), Fraction(1), shape=(1,))
    if not count:
        return builder.write("constant", (), *[Fraction(0)] * len(system), shape=(len(system),))
    total: int | None = None
    for variable in range(system.variables):
        occurring = sorted({int(e) for e in exponents[:, variable]})
        if occurring != [0]:
            base = builder.write("slice", (x,), (variable, 1, 1))
            powers = [
                one if n == 0 else base if n == 1 else builder.write("power", (base,), n) for n in occurring
            ]
            table = builder.write("concatenate", powers, 0) if len(powers) > 1 else powers[0]
            places = [occurring.index(int(e)) for e in exponents[:, variable]]
            part = builder.write("gather", (table,), *places, shape=(count,))
            total = part if total is None else builder.write("multiply", (total, part))
    if total is None:
        total = builder.write("constant", (), *[Fraction(1)] * count, shape=(count,))
    matrix = [Fraction(0)] * (len(system) * count)
    for row, column, value in zip(system.rows, system.columns, system.values, strict=True):
        matrix[row * count + column] = Fraction(value)
    combined = builder.write("constant", (), *matrix, shape=(len(system), count))
    return builder.write("einsum", (combined, total), ("ab", "b"), "a")
