"""Convert lists of sparse polynomials, and of fractions of them, to programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from m2bridge.frontends.polynomials import Polynomial, Terms
from m2bridge.frontends.recording import record_call
from m2bridge.programs.instructions import Shape
from m2bridge.programs.program import Program


def polynomial_program(polynomials: Sequence[Polynomial | Terms], weights: Mapping[str, Shape]) -> Program:
    """Return the program of a polynomial map: monomials from tables of powers, then their combinations.

    The variables are the entries of the weights, one after the other.

    >>> from m2bridge.linear.residues import Mod
    >>> from m2bridge.programs.evaluation import run
    >>> squares = polynomial_program([{(2, 0): 1, (0, 1): -3}, {(1, 1): 2}], {"x": (2,)})
    >>> run(squares, {"x": Mod([[1, 2], [5, 3]], 101)}).values.tolist()
    [[96, 4], [16, 30]]
    """

    def values(arrays: Mapping[str, Any], _: Any) -> Any:
        return _combination(np.concatenate([array.ravel() for array in arrays.values()]), polynomials)

    return record_call(values, weights).program


def fraction_program(fractions: Sequence[tuple[Terms, Terms]], weights: Mapping[str, Shape]) -> Program:
    """Return the program of a rational map: all numerators, divided by all denominators.

    >>> fraction_program([((((0,), 1),), (((1,), 1),))], {"x": (1,)}).polynomial
    False
    """

    def values(arrays: Mapping[str, Any], _: Any) -> Any:
        x = np.concatenate([array.ravel() for array in arrays.values()])
        return _combination(x, [over for over, _ in fractions]) / _combination(
            x, [under for _, under in fractions]
        )

    return record_call(values, weights).program


def _combination(x: Any, forms: Sequence[Polynomial | Terms]) -> Any:
    polynomials = [dict(f) for f in forms]
    monomials = list(dict.fromkeys(exponents for f in polynomials for exponents in f))
    if not monomials:
        return np.zeros(len(polynomials), dtype=np.int64)
    total: Any = np.ones(len(monomials), dtype=np.int64)
    for variable, powers in enumerate(zip(*monomials, strict=True)):
        occurring = sorted(set(powers))
        table = np.concatenate([x[variable : variable + 1] ** n for n in occurring])
        total = total * table[list(map(occurring.index, powers))]
    return np.array([[f.get(monomial, 0) for monomial in monomials] for f in polynomials]) @ total
