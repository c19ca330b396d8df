"""Polynomial group convolutional networks: arXiv:2603.29566."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.families.base import Knowledge, NetworkModel, Symmetry

LARGEST_GROUP = 60


def cayley_table(group: str) -> np.ndarray:
    """Return the table with the product of elements i and j in row i and column j; the identity is 0.

    A dihedral group has the rotations 0, ..., n - 1 and the reflections n, ..., 2 n - 1; n + k is reflection n, then rotation k.
    """
    match = re.fullmatch(r"([CD])([1-9]\d{0,3})", group)
    order = 0 if match is None else int(match[2]) * (1 if match[1] == "C" else 2)
    if match is None or order > LARGEST_GROUP:
        raise SpecError(
            f"the group {group!r} should be C2, C3, ... or D3, D4, ..., of order at most {LARGEST_GROUP}",
            argument="group",
        )
    n = int(match[2])
    g, h = np.arange(order)[:, None], np.arange(order)[None, :]
    turn = np.where(g < n, g + h, g - h) % n  # a reflection turns what follows the other way round
    flipped = (g >= n) ^ (h >= n)
    return np.asarray(turn + n * flipped)


@dataclass(frozen=True, kw_only=True)
class GroupConvolution(NetworkModel):
    """(w * x)(g) = sum over h of w(h) x(g h) in each layer, x^r between layers; the output is the value at the identity.

    Inputs are functions on a cyclic group ``C3`` or a dihedral group ``D4``, of order 8.
    """

    family = "group-convolution"
    summary = "convolutions over a cyclic group C3 or a dihedral group D4 with activation x^r"
    example = "group-convolution(group=C3,layers=2,r=2)"

    group: str
    layers: int
    r: int = 2

    def check(self) -> None:
        self.check_exponents(self.r, *[self.r] * (self.layers - 1))
        cayley_table(self.group)

    @property
    def title(self) -> str:
        return f"polynomial group convolutional network over {self.group}, {self.layers} layers, activation x^{self.r}"

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        return {f"w{i}": self.input_shape for i in range(1, self.layers + 1)}

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (len(cayley_table(self.group)),)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        table, x = cayley_table(self.group), inputs
        for i in range(1, self.layers):
            x = (x[table] @ weights[f"w{i}"]) ** self.r
        return x[table[:1]] @ weights[f"w{self.layers}"]

    @property
    def knowledge(self) -> Knowledge:
        """Scalings between layers; `fiber` counts points up to them."""
        return Knowledge(symmetries=tuple(map(self._scaling, range(1, self.layers))))

    def _scaling(self, i: int) -> Symmetry:
        return Symmetry(
            name=f"(s w{i}, w{i + 1} / s^{self.r})",
            citation="homogeneity of the activation",
            kind="scaling",
            size=1,
            axes={f"w{i}": (1,), f"w{i + 1}": (-self.r,)},
            shapes=self.parameters,
        )

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {"groupTable": cayley_table(self.group).tolist(), "layers": self.layers, "r": self.r}
