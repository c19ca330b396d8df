"""What all networks have in common: target coordinates are the coefficients of the polynomial
function.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import comb, prod
from typing import Any

import numpy as np

from m2bridge.errors import OutOfReachError
from m2bridge.models.base import Model, Shape
from m2bridge.programs.coefficients import monomials

MOST_COORDINATES = 500_000


class NetworkModel(Model):
    """A model with inputs and outputs whose target coordinates are, unless said otherwise, all coefficients.

    Order: output entries row by row, then monomials of the input entries by ascending degree, within a
    degree in descending lexicographic order; the entries of an input matrix are ordered column by column
    (the first token first).
    """

    @property
    @abstractmethod
    def input_shape(self) -> Shape: ...

    @property
    @abstractmethod
    def output_shape(self) -> Shape: ...

    @property
    @abstractmethod
    def degrees(self) -> tuple[int, ...]:
        """Degrees in the inputs that occur, ascending."""

    @abstractmethod
    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any: ...

    @property
    def coordinate_count(self) -> int:
        return self.ambient_dim

    @property
    def ambient_dim(self) -> int:
        """Dimension of the space of polynomial functions with these degrees, inputs and outputs."""
        variables = prod(self.input_shape)
        return prod(self.output_shape) * sum(comb(variables + k - 1, k) for k in self.degrees)

    @property
    def monomials(self) -> np.ndarray:
        """Exponents of the monomials in the inputs, in the order of the coordinates."""
        if self.coordinate_count > MOST_COORDINATES:
            raise OutOfReachError(
                f"{self.spec} has {self.coordinate_count} target coordinates, more than {MOST_COORDINATES}",
                estimate=self.coordinate_count,
            )
        return _monomials(prod(self.input_shape), self.degrees)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        return coefficient_names({"y": self.output_shape}, {"x": self.input_shape}, self.monomials)


@lru_cache(maxsize=16)
def _monomials(variables: int, degrees: tuple[int, ...]) -> np.ndarray:
    table = np.concatenate([monomials(variables, degree) for degree in degrees])
    table.setflags(write=False)
    return table


def coefficient_names(
    outputs: Mapping[str, Shape], inputs: Mapping[str, Shape], exponents: np.ndarray
) -> tuple[str, ...]:
    """Which monomial of which output entry, e.g. ``y[1,1]: x[2,1]^2``."""
    entries = [name + _index(i) for name, shape in outputs.items() for i in np.ndindex(shape)]
    variables = [
        name + _index(i[::-1]) for name, shape in inputs.items() for i in np.ndindex(tuple(reversed(shape)))
    ]
    terms = [monomial_name(row, variables) for row in exponents]
    return tuple(f"{entry}: {term}" for entry in entries for term in terms) if inputs else tuple(entries)


def _index(index: tuple[int, ...]) -> str:
    return "[" + ",".join(str(i + 1) for i in index) + "]" if index else ""


def monomial_name(exponents: Any, names: list[str]) -> str:
    """A monomial as text, e.g. ``x[1,1]*x[2,2]^2``."""
    factors = [
        name if power == 1 else f"{name}^{power}"
        for name, power in zip(names, exponents, strict=True)
        if power
    ]
    return "*".join(factors) or "1"


# -- gradings: torus weights of parameters and of coefficients -------------------------------------------


def parameter_rows(parameters: Mapping[str, Shape], rows: Sequence[Mapping[str, np.ndarray]]) -> np.ndarray:
    """One row for each one-parameter group, one column for each flattened parameter.

    `rows` have the characters of each weight, broadcast to its shape; weights without any are fixed.
    """
    zero = np.zeros(1, dtype=np.int64)
    return np.array(
        [
            np.concatenate(
                [
                    np.broadcast_to(row.get(name, zero), shape).reshape(-1)
                    for name, shape in parameters.items()
                ]
            )
            for row in rows
        ],
        dtype=np.int64,
    )


def coefficient_rows(monomials: np.ndarray, input_shape: Shape, outputs: int, columns: int) -> np.ndarray:
    """Characters of coefficients when input rows are scaled: degrees in each input row, summed over tokens.

    One column for each coefficient: output entries (`outputs` rows times `columns`) first, monomials inside.
    """
    rows, tokens = (*input_shape, 1)[:2]
    by_row = monomials.reshape(len(monomials), tokens, rows).sum(axis=1).T
    return np.tile(by_row, (1, outputs * columns))


def output_rows(monomials: np.ndarray, outputs: int, columns: int) -> np.ndarray:
    """Characters of coefficients when output rows are scaled."""
    return np.repeat(np.eye(outputs, dtype=np.int64), columns * len(monomials), axis=1)
