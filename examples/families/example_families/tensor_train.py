"""Tensor trains (matrix product states): Holtz, Rohwedder, Schneider, Numer. Math. 120 (2012)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from m2bridge.families.base import Model

MOST_ENTRIES = 100_000


@dataclass(frozen=True, kw_only=True)
class TensorTrain(Model):
    """T[i_1, ..., i_N] = G_1[:, i_1, :] ... G_N[:, i_N, :]: a map without inputs, whose coordinates are the entries.

    Attributes
    ----------
    sizes: n_1, ..., n_N. ranks: r_1, ..., r_(N-1), the sizes of the matrices between the cores.
    """

    family = "tensor-train"
    summary = "tensors as products of cores (matrix product states)"
    example = "tensor-train(sizes=[2,2,2],ranks=[2,2])"
    output_name = "T"

    sizes: tuple[int, ...]
    ranks: tuple[int, ...]

    def check(self) -> None:
        fits = len(self.sizes) > 1 and prod(self.sizes) <= MOST_ENTRIES
        self.need(fits, "sizes", f"sizes lists two or more sizes, with at most {MOST_ENTRIES} entries in all")
        given, cores = len(self.ranks), len(self.sizes)
        self.need(
            given == cores - 1, "ranks", f"{given} ranks for {cores} cores; there is one between two cores"
        )

    @property
    def title(self) -> str:
        return f"tensor train, sizes {list(self.sizes)}, ranks {list(self.ranks)}"

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        r = (1, *self.ranks, 1)
        return {f"G{k}": (r[k - 1], n, r[k]) for k, n in enumerate(self.sizes, start=1)}

    def network(self, weights: Mapping[str, Any], inputs: Any = None) -> Any:
        T = weights["G1"]
        for k in range(2, len(self.sizes) + 1):
            T = np.tensordot(T, weights[f"G{k}"], axes=1)
        return T.reshape(self.sizes)
