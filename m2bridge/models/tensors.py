"""Parametrized sets of tensors: tensor trains (matrix product states), and sums of few rank-one tensors (CP)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from m2bridge.models.base import Formula, Model, Shape, Symmetry, known
from m2bridge.models.mlp import determinantal

HOLTZ = "Holtz, Rohwedder, Schneider, Numer. Math. 120 (2012)"
BINARY = "Catalisano, Geramita, Gimigliano, J. Algebraic Geom. 20 (2011): (P^1)^n is defective for n = 4, rank 3 only"
INDUCTION = "Abo, Ottaviani, Peterson, Trans. Amer. Math. Soc. 361 (2009): a defective Segre variety"
_DEFECTIVE = {
    ((2, 2, 2, 2), 3): (14, BINARY),
    ((3, 3, 3), 4): (26, "Strassen, Linear Algebra Appl. 52 (1983): a hypersurface of degree 9"),
    ((3, 4, 4), 5): (44, INDUCTION),
    ((2, 2, 3, 3), 5): (34, INDUCTION),
}
"""By sizes in ascending order, and rank."""
MOST_ENTRIES = 100_000


class TensorFormat(Model):
    """A parametrized set of tensors: the map has no inputs, and its coordinates are the entries."""

    output_name = "T"
    sizes: tuple[int, ...]

    def check(self) -> None:
        fits = len(self.sizes) > 1 and prod(self.sizes) <= MOST_ENTRIES
        wanted = f"two or more sizes, such as [2,2,2], with at most {MOST_ENTRIES} entries"
        self.need(fits, "sizes", f"sizes lists {wanted}")


@dataclass(frozen=True, kw_only=True)
class TensorTrain(TensorFormat):
    """T[i_1, ..., i_N] = G_1[:, i_1, :] ... G_N[:, i_N, :].

    Attributes
    ----------
    sizes: n_1, ..., n_N. ranks: r_1, ..., r_(N-1), the sizes of the matrices between the cores.

    Examples
    --------
    >>> model = TensorTrain(sizes=(2, 2, 2, 2), ranks=(2, 2, 2))
    >>> model.spec, model.parameter_count, model.formula.value
    ('tensor-train(sizes=[2,2,2,2],ranks=[2,2,2])', 24, 12)
    """

    family = "tensor-train"
    summary = "tensors as products of cores (matrix product states)"
    example = "tensor-train(sizes=[2,2,2],ranks=[2,2])"

    sizes: tuple[int, ...]
    ranks: tuple[int, ...]

    def check(self) -> None:
        super().check()
        given, cores = len(self.ranks), len(self.sizes)
        self.need(
            given == cores - 1, "ranks", f"{given} ranks for {cores} cores; there is one between two cores"
        )

    @property
    def title(self) -> str:
        return f"tensor train, sizes {list(self.sizes)}, ranks {list(self.ranks)}"

    @property
    def parameters(self) -> dict[str, Shape]:
        r = (1, *self.ranks, 1)
        return {f"G{k}": (r[k - 1], n, r[k]) for k, n in enumerate(self.sizes, start=1)}

    def network(self, weights: Mapping[str, Any], inputs: Any = None) -> Any:
        T = weights["G1"]
        for k in range(2, len(self.sizes) + 1):
            T = np.tensordot(T, weights[f"G{k}"], axes=1)
        return T.reshape(self.sizes)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        found = []
        for k, rank in enumerate(self.ranks, start=1):
            axes = {f"G{k}": (0, 0, -1), f"G{k + 1}": (1, 0, 0)}
            name = f"change of basis between cores {k} and {k + 1}"
            found.append(self.symmetry("gl", rank, axes, name, f"{HOLTZ}, section 4"))
        return tuple(found)

    @property
    def formula(self) -> Formula:
        """The cores minus GL(r_k) between them, with the ranks that can be reached: r_k <= r_(k-1) n_k and r_(k-1) <= n_k r_k."""
        n, r = self.sizes, [1, *self.ranks, 1]
        for k in range(1, len(n)):
            r[k] = min(r[k], r[k - 1] * n[k - 1])
        for k in range(len(n) - 1, 0, -1):
            r[k] = min(r[k], n[k] * r[k + 1])
        cores = sum(r[k] * size * r[k + 1] for k, size in enumerate(n))
        return known(cores - sum(rank**2 for rank in r[1:-1]), HOLTZ)

    @property
    def dimension_bound(self) -> Formula:
        return self.formula


@dataclass(frozen=True, kw_only=True)
class CP(TensorFormat):
    """T[i_1, ..., i_N] = sum over s of U_1[i_1, s] ... U_N[i_N, s]: the cone over a secant variety of a Segre variety.

    Examples
    --------
    >>> model = CP(sizes=(2, 2, 2, 2), rank=3)
    >>> model.spec, model.parameter_count, model.formula.value  # one less than expected: a defective case
    ('cp(sizes=[2,2,2,2],rank=3)', 24, 14)
    """

    family = "cp"
    summary = "sums of rank-one tensors"
    example = "cp(sizes=[3,3,3],rank=2)"
    m2_names: ClassVar[Mapping[str, str]] = {"rank": "rankOneCount"}

    sizes: tuple[int, ...]
    rank: int

    @property
    def title(self) -> str:
        return f"sums of {self.rank} rank-one tensors of size {list(self.sizes)}"

    @property
    def parameters(self) -> dict[str, Shape]:
        return {f"U{k}": (n, self.rank) for k, n in enumerate(self.sizes, start=1)}

    def network(self, weights: Mapping[str, Any], inputs: Any = None) -> Any:
        T = weights["U1"]
        for k in range(2, len(self.sizes) + 1):
            T = T[..., None, :] * weights[f"U{k}"]
        return T.sum(axis=-1)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        found = []
        for k in range(1, len(self.sizes)):
            axes = {f"U{k}": (0, 1), f"U{k + 1}": (0, -1)}
            name = f"scaling of the columns of U{k} against those of U{k + 1}"
            found.append(self.symmetry("torus", self.rank, axes, name, "multilinearity"))
        return tuple(found)

    @property
    def _case(self) -> tuple[tuple[int, ...], int]:
        return tuple(sorted(n for n in self.sizes if n > 1)), self.rank

    @property
    def formula(self) -> Formula:
        """Matrices, tensors with all sizes two, and some exceptions; others are not classified."""
        if len(self.sizes) == 2:
            return determinantal(self.rank, *self.sizes)
        if self._case in _DEFECTIVE:
            return known(*_DEFECTIVE[self._case])
        value = min(self.rank * (len(self.sizes) + 1), prod(self.sizes))
        return known(value, BINARY, ("all sizes are 2", set(self.sizes) == {2}))

    @property
    def dimension_bound(self) -> Formula:
        """Rank-one tensors are counted; and as a matrix, some axes its rows, the tensor has this rank at most."""
        if self._case in _DEFECTIVE:
            return known(*_DEFECTIVE[self._case])
        entries, rows = prod(self.sizes), {1}
        for n in self.sizes:
            rows |= {n * row for row in rows}
        flattened = [determinantal(self.rank, row, entries // row).value or 0 for row in rows]
        counted = self.rank * (sum(self.sizes) - len(self.sizes) + 1)
        return known(min(counted, *flattened), "rank-one tensors, and ranks of flattenings")
