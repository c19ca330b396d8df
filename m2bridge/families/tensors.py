"""Sums of few rank-one tensors (CP): a map without inputs, whose coordinates are the entries of the tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar

from m2bridge.families.base import Model, Shape
from m2bridge.families.knowledge import Formula, Knowledge, cited
from m2bridge.families.perceptron_knowledge import determinantal
from m2bridge.families.symmetries import Symmetry

BINARY = "Catalisano, Geramita, Gimigliano, J. Algebraic Geom. 20 (2011): (P^1)^n is defective for n = 4, rank 3 only"
INDUCTION = "Abo, Ottaviani, Peterson, Trans. Amer. Math. Soc. 361 (2009): a defective Segre variety"
_DEFECTIVE = {
    ((2, 2, 2, 2), 3): (14, BINARY),
    ((3, 3, 3), 4): (26, "Strassen, Linear Algebra Appl. 52 (1983): a hypersurface of degree 9"),
    ((3, 4, 4), 5): (44, INDUCTION),
    ((2, 2, 3, 3), 5): (34, INDUCTION),
}
"""By sizes in ascending order, and rank."""
MOST_TENSOR_ENTRIES = 100_000  # entries of the tensor, each of which is a coordinate


@dataclass(frozen=True, kw_only=True)
class CP(Model):
    """T[i_1, ..., i_N] = sum over s of U_1[i_1, s] ... U_N[i_N, s]: the cone over a secant variety of a Segre variety.

    Examples
    --------
    >>> model = CP(sizes=(2, 2, 2, 2), rank=3)
    >>> model.spec, model.parameter_count, model.knowledge.formula.value  # one less than expected: a defective case
    ('cp(sizes=[2,2,2,2],rank=3)', 24, 14)
    """

    family = "cp"
    summary = "sums of rank-one tensors"
    example = "cp(sizes=[3,3,3],rank=2)"
    output_name = "T"
    m2_names: ClassVar[Mapping[str, str]] = {"rank": "rankOneCount"}

    sizes: tuple[int, ...]
    rank: int

    def check(self) -> None:
        fits = len(self.sizes) > 1 and prod(self.sizes) <= MOST_TENSOR_ENTRIES
        expected = f"two or more sizes, such as [2,2,2], with at most {MOST_TENSOR_ENTRIES} entries"
        self.need(fits, "sizes", f"sizes lists {expected}")

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

    @cached_property
    def knowledge(self) -> Knowledge:
        return Knowledge(
            formula=self._dimension_formula(),
            dimension_bound=self._dimension_bound(),
            symmetries=tuple(map(self._scaling, range(1, len(self.sizes)))),
        )

    def _scaling(self, k: int) -> Symmetry:
        return Symmetry(
            name=f"scaling of the columns of U{k} against those of U{k + 1}",
            citation="multilinearity",
            kind="torus",
            size=self.rank,
            axes={f"U{k}": (0, 1), f"U{k + 1}": (0, -1)},
            shapes=self.parameters,
        )

    @property
    def _case(self) -> tuple[tuple[int, ...], int]:
        return tuple(sorted(n for n in self.sizes if n > 1)), self.rank

    def _dimension_formula(self) -> Formula:
        """State the dimension of matrices, of tensors with all sizes two, and of some exceptions; others are not classified."""
        if len(self.sizes) == 2:
            return determinantal(self.rank, *self.sizes)
        if self._case in _DEFECTIVE:
            return cited(*_DEFECTIVE[self._case])
        value = min(self.rank * (len(self.sizes) + 1), prod(self.sizes))
        return cited(value, BINARY, ("all sizes are 2", set(self.sizes) == {2}))

    def _dimension_bound(self) -> Formula:
        """Bound the dimension by the number of parameters of rank-one tensors, and by ranks of flattenings."""
        if self._case in _DEFECTIVE:
            return cited(*_DEFECTIVE[self._case])
        entries, rows = prod(self.sizes), {1}
        for n in self.sizes:
            rows |= {n * row for row in rows}
        flattened = [determinantal(self.rank, row, entries // row).value or 0 for row in rows]
        counted = self.rank * (sum(self.sizes) - len(self.sizes) + 1)
        return cited(min(counted, *flattened), "rank-one tensors, and ranks of flattenings")
