"""Sums of few rank-one tensors (CP, CANDECOMP/PARAFAC): cones over secant varieties of Segre varieties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from m2bridge.models.base import Formula, Shape, Symmetry, known
from m2bridge.models.spec import check_sizes, written
from m2bridge.models.tensor_train import TensorFormat

BINARY = "Catalisano, Geramita, Gimigliano, J. Algebraic Geom. 20 (2011): (P^1)^n is defective for n = 4, rank 3 only"
_DEFECTIVE = {
    ((2, 2, 2, 2), 3): (14, BINARY),
    ((3, 3, 3), 4): (26, "Strassen, Linear Algebra Appl. 52 (1983): a hypersurface of degree 9"),
}


@dataclass(frozen=True, kw_only=True)
class CP(TensorFormat):
    """T[i_1, ..., i_N] = sum over s of U_1[i_1, s] ... U_N[i_N, s].

    Examples
    --------
    >>> model = CP(sizes=(2, 2, 2, 2), rank=3)
    >>> model.spec, model.parameter_count, model.formula.value  # one less than expected: a defective case
    ('cp(sizes=[2,2,2,2],rank=3)', 24, 14)
    """

    family: ClassVar[str] = "cp"
    m2_partial = "_cp"
    summary: ClassVar[str] = "sums of rank-one tensors"
    example: ClassVar[str] = "cp(sizes=[3,3,3],rank=2)"

    sizes: tuple[int, ...]
    rank: int

    def __post_init__(self) -> None:
        self._check_tensor()
        check_sizes(self.family, rank=self.rank)

    @property
    def spec(self) -> str:
        return written(self.family, sizes=self.sizes, rank=self.rank)

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
    def m2_parameters(self) -> dict[str, object]:
        return {"sizes": self.sizes, "rankOneCount": self.rank}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return tuple(
            Symmetry(
                name=f"scaling of the columns of U{k} against those of U{k + 1}",
                citation="multilinearity",
                kind="torus",
                size=self.rank,
                axes={f"U{k}": (0, 1), f"U{k + 1}": (0, -1)},
                shapes=self.parameters,
            )
            for k in range(1, len(self.sizes))
        )

    @property
    def formula(self) -> Formula | None:
        """Matrices, tensors with all sizes two, and Strassen's exception; others are not classified."""
        count = len(self.sizes)
        if count == 2:
            rank, (m, n) = min(self.rank, *self.sizes), self.sizes
            citation = "Harris, Algebraic Geometry: A First Course, Proposition 12.2"
            return known(rank * (m + n - rank), citation)
        if (self.sizes, self.rank) in _DEFECTIVE:
            return known(*_DEFECTIVE[self.sizes, self.rank])
        value = min(self.rank * (count + 1), prod(self.sizes))
        return known(value, BINARY, ("all sizes are 2", set(self.sizes) == {2}))

    @property
    def dimension_bound(self) -> Formula:
        if (self.sizes, self.rank) in _DEFECTIVE:
            return known(*_DEFECTIVE[self.sizes, self.rank])
        value = min(self.rank * (sum(self.sizes) - len(self.sizes) + 1), prod(self.sizes))
        return known(value, "rank-one tensors, and the number of entries")
