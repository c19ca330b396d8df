"""Tensor trains (matrix product states): a tensor whose entries are products of matrices, one from each core.

Reference: Holtz, Rohwedder, Schneider, *On manifolds of tensors of fixed TT-rank*, Numer. Math. 120 (2012).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.models.base import Formula, Model, Shape, Symmetry, known
from m2bridge.models.network import coefficient_names
from m2bridge.models.spec import check_sizes, written

HOLTZ = "Holtz, Rohwedder, Schneider, Numer. Math. 120 (2012)"
MOST_ENTRIES = 100_000


class TensorFormat(Model):
    """A parametrized set of tensors: the map has no inputs, and its coordinates are the entries."""

    sizes: tuple[int, ...]

    def _check_tensor(self) -> None:
        check_sizes(self.family, sizes=self.sizes)
        if len(self.sizes) < 2 or prod(self.sizes) > MOST_ENTRIES:
            raise SpecError(
                f"{self.family}: sizes lists two or more sizes, such as [2,2,2], with at most {MOST_ENTRIES} entries",
                argument="sizes",
            )

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        return coefficient_names({"T": self.sizes}, {}, np.zeros((0, 0)))


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

    family: ClassVar[str] = "tensor-train"
    m2_partial = "_tensor_train"
    summary: ClassVar[str] = "tensors as products of cores (matrix product states)"
    example: ClassVar[str] = "tensor-train(sizes=[2,2,2],ranks=[2,2])"

    sizes: tuple[int, ...]
    ranks: tuple[int, ...]

    def __post_init__(self) -> None:
        self._check_tensor()
        check_sizes(self.family, ranks=self.ranks)
        if len(self.ranks) != len(self.sizes) - 1:
            raise SpecError(
                f"tensor-train: {len(self.ranks)} ranks for {len(self.sizes)} cores; there is one between two cores",
                argument="ranks",
            )

    @property
    def spec(self) -> str:
        return written(self.family, sizes=self.sizes, ranks=self.ranks)

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
    def m2_parameters(self) -> dict[str, object]:
        return {"sizes": self.sizes, "ranks": self.ranks}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return tuple(
            Symmetry(
                name=f"change of basis between cores {k} and {k + 1}",
                citation=f"{HOLTZ}, section 4",
                kind="gl",
                size=rank,
                axes={f"G{k}": (0, 0, -1), f"G{k + 1}": (1, 0, 0)},
                shapes=self.parameters,
            )
            for k, rank in enumerate(self.ranks, start=1)
        )

    @property
    def formula(self) -> Formula:
        """The cores minus GL(r_k) between them, where all ranks are reached."""
        r = (1, *self.ranks, 1)
        reached = all(r[k + 1] <= r[k] * n and r[k] <= n * r[k + 1] for k, n in enumerate(self.sizes))
        value = self.parameter_count - sum(rank**2 for rank in self.ranks)
        return known(value, HOLTZ, ("r_k <= r_(k-1) n_k and r_(k-1) <= n_k r_k for all cores", reached))
