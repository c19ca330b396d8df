"""Strata of a linear network: matrices of one rank.

The product W_l ... W_1 is any m x n matrix of rank at most r, the smallest width. GL_m x GL_n acts on these matrices by
M -> g M h, and its orbits are the matrices of each rank; the closure of one contains those of smaller rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from m2bridge.families.attention_knowledge import determinantal_degree
from m2bridge.families.perceptron import Linear, Perceptron
from m2bridge.families.strata import ImageDegree, Strata


@dataclass(frozen=True, slots=True)
class MatricesOfRank:
    """All m x n matrices of one rank."""

    rank: int

    def __str__(self) -> str:
        return f"rank {self.rank}"


class LinearStrata(Strata):
    """Matrices of each rank up to the smallest width.

    The group is connected and acts linearly with finitely many orbits: they cover the closure, and the singular locus is a union
    of their closures. No finite map is needed: below the largest rank all points are singular, or the matrices are all matrices.
    """

    model: Perceptron
    exhaustive = True
    closure_coordinates = 18
    """Matrices of size 4 x 4 have 16; with 25 coordinates and 100 cubics the equations take minutes and add nothing."""

    def __init__(self, network: Perceptron) -> None:
        self.model = network

    def strata(self) -> Sequence[MatricesOfRank]:
        return tuple(MatricesOfRank(rank) for rank in range(min(self.model.widths) + 1))

    def ranks(self, stratum: MatricesOfRank) -> Mapping[str, int]:
        return {"product": stratum.rank}

    def representative(self, stratum: MatricesOfRank) -> dict[str, np.ndarray]:
        """Return matrices with ones at the first entries of the diagonal; their product has the same form."""
        weights = {}
        for name, shape in self.model.parameters.items():
            weights[name] = np.zeros(shape, dtype=np.int64)
            np.fill_diagonal(weights[name][: stratum.rank, : stratum.rank], 1)
        return weights

    def fiber(self, stratum: MatricesOfRank) -> list[Mapping[str, np.ndarray]]:
        """Return the representative and, below the largest rank r, weights whose differentials together span all matrices.

        The last matrix is the representative's, the others have rank r. Changes of the last matrix reach all products whose rows
        are combinations of the rows of W_1: these are the first unit vectors and r - rank further ones.
        """
        weights = self.representative(stratum)
        fiber: list[Mapping[str, np.ndarray]] = [weights]
        largest, columns = min(self.model.widths), self.model.widths[0]
        step = largest - stratum.rank
        if not step or self.model.layers == 1:
            return fiber
        full = self.representative(MatricesOfRank(largest))
        for start in range(stratum.rank, columns, step):
            first = weights["W1"].copy()
            for row, column in enumerate(range(start, min(start + step, columns)), start=stratum.rank):
                first[row, column] = 1
            fiber.append({**full, "W1": first, f"W{self.model.layers}": weights[f"W{self.model.layers}"]})
        return fiber

    def directions(self, stratum: MatricesOfRank) -> np.ndarray:
        """Return the action of the Lie algebra on the representative: the first matrix by columns, the last one by rows."""
        weights = self.representative(stratum)
        first, last = "W1", f"W{self.model.layers}"
        zero = {name: np.zeros_like(matrix) for name, matrix in weights.items()}
        n, m = self.model.widths[0], self.model.widths[-1]
        by_columns = [weights[first] @ e for e in np.eye(n * n, dtype=np.int64).reshape(-1, n, n)]
        by_rows = [e @ weights[last] for e in np.eye(m * m, dtype=np.int64).reshape(-1, m, m)]
        moves = [{**zero, first: matrix} for matrix in by_columns]
        moves += [{**zero, last: matrix} for matrix in by_rows]
        return np.array([self.model.flatten(move) for move in moves])

    def contains(self, larger: MatricesOfRank, smaller: MatricesOfRank) -> bool:
        return smaller.rank <= larger.rank

    def parametrization(self, stratum: MatricesOfRank) -> Perceptron | None:
        if not stratum.rank:
            return None
        return Linear(widths=(self.model.widths[0], stratum.rank, self.model.widths[-1]))

    def degree(self, stratum: MatricesOfRank) -> ImageDegree:
        n, m = self.model.widths[0], self.model.widths[-1]
        value = determinantal_degree(max(m, n), min(m, n), stratum.rank)
        argument = f"degree of the matrices of rank at most {stratum.rank} (Harris, Algebraic Geometry, Example 19.10)"
        return ImageDegree(value=value, argument=argument)
