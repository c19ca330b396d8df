"""Evaluate a model over polynomials, so that an identity holds for all weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, lcm, prod
from typing import Any

import numpy as np
from flint import Ordering, fmpq_mpoly_ctx

from m2bridge.families.base import Model
from m2bridge.families.polynomial_map import PolynomialMap
from m2bridge.linear.modular import rank_over_q
from m2bridge.programs.arithmetics import object_array

MOST_EXPANDED_TERMS = 40_000_000
"""Of :func:`term_bound`: one product of two polynomials cannot be interrupted. mlp(widths=[3,4,4,2],r=3) has the bound
10 million and 60,640 terms, which take 2 s."""


def symbolic_weights(model: Model, extra: int = 0) -> tuple[dict[str, np.ndarray], list[Any]]:
    """Return weights whose entries are variables over QQ, and `extra` more variables of the same ring."""
    names = [f"w{i}" for i in range(model.parameter_count)] + [f"z{i}" for i in range(extra)]
    variables = rational_variables(names)
    weights = {name: variable_array(variables, shape) for name, shape in model.parameters.items()}
    return weights, variables


def symbolic_map(model: Model) -> tuple[dict[tuple[int, ...], Any], ...]:
    """Return the target coordinates as sparse polynomials in the flattened weights.

    >>> from m2bridge.families import Linear
    >>> symbolic_map(Linear(widths=(1, 1, 1)))
    ({(1, 1): 1},)
    """
    if isinstance(model, PolynomialMap):
        return tuple(map(dict, model.polynomials))
    weights, _ = symbolic_weights(model)
    return tuple(sparse(entry) for entry in model.coordinates(weights).reshape(-1))


def coefficient_rank(polynomials: Sequence[Mapping[tuple[int, ...], Any]]) -> int:
    """Return the number of linearly independent polynomials over QQ.

    >>> coefficient_rank([{(1, 0): 1, (0, 1): Fraction(1, 2)}, {(1, 0): 2, (0, 1): 1}])
    1
    """
    columns = {e: i for i, e in enumerate({e for f in polynomials for e in f})}
    table = np.zeros((len(polynomials), len(columns)), dtype=object)
    for row, f in zip(table, polynomials, strict=True):
        common = lcm(*(Fraction(c).denominator for c in f.values()))  # a multiple of a row keeps the rank
        for e, c in f.items():
            row[columns[e]] = int(c * common)
    return rank_over_q(table)


@dataclass(frozen=True, slots=True)
class _Terms:
    """An upper bound of the number of terms of a polynomial, with the bounds for sums and products.

    A sum has at most a + b terms, a product a * b, and a polynomial of degree d in n variables at most C(n + d, d).
    """

    count: int
    degree: int
    variables: int

    def _sized(self, count: int, degree: int) -> _Terms:
        return _Terms(min(count, comb(self.variables + degree, degree)), degree, self.variables)

    def _of(self, value: Any) -> _Terms:
        return value if isinstance(value, _Terms) else _Terms(int(bool(value)), 0, self.variables)

    def __add__(self, value: Any) -> _Terms:
        other = self._of(value)
        return self._sized(self.count + other.count, max(self.degree, other.degree))

    def __mul__(self, value: Any) -> _Terms:
        other = self._of(value)
        return self._sized(self.count * other.count, self.degree + other.degree)

    def __neg__(self) -> _Terms:
        return self

    __radd__ = __sub__ = __rsub__ = __add__
    __rmul__ = __mul__


def term_bound(model: Model) -> int:
    """Return an upper bound of the number of terms of all coordinates of a polynomial model, without expanding them.

    >>> from m2bridge.families import Linear
    >>> term_bound(Linear(widths=(2, 2, 2)))
    8
    """
    variables = model.parameter_count
    entries = object_array([_Terms(1, 1, variables)] * variables, (variables,))
    counts = np.asarray(model.coordinates(model.unflatten(entries)), dtype=object)
    return sum(entry.count if isinstance(entry, _Terms) else 1 for entry in counts.flat)


def sparse(polynomial: Any) -> dict[tuple[int, ...], Any]:
    """Return a python-flint polynomial as exponents -> coefficient (int, or Fraction where it is not whole)."""
    return {tuple(map(int, key)): _number(value) for key, value in polynomial.to_dict().items()}


def _number(value: Any) -> Any:
    if hasattr(value, "p") and hasattr(value, "q"):
        return int(value.p) if value.q == 1 else Fraction(int(value.p), int(value.q))
    return int(value)


def rational_variables(names: list[str]) -> list[Any]:
    """Return the variables of a polynomial ring over QQ."""
    return list(fmpq_mpoly_ctx.get(names, Ordering.lex).gens())


def variable_array(variables: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Return the next ``prod(shape)`` variables as an array, taken from the front of the list."""
    taken = [variables.pop(0) for _ in range(prod(shape))]
    return object_array(taken, shape)
