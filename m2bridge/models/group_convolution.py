"""Group convolutional networks: convolutions over a finite group G, alternating with x -> x^r.

Signals are functions on G. All outputs are translates of one another, so that the network is seen in its output at the identity.
Cyclic groups ``C3`` and dihedral groups ``D4``, of order 8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.models.base import Shape
from m2bridge.models.convolution import FilterNetwork
from m2bridge.models.spec import check_degree, check_sizes

_LARGEST_GROUP = 60


def cayley_table(group: str) -> np.ndarray:
    """The product of elements i and j in row i and column j; the identity is 0.

    A dihedral group has the rotations 0, ..., n - 1 and the reflections n, ..., 2 n - 1; n + k is reflection n, then rotation k.

    >>> cayley_table("C3").tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    """
    match = re.fullmatch(r"([CD])([1-9]\d{0,3})", group)
    order = 0 if match is None else int(match[2]) * (1 if match[1] == "C" else 2)
    if match is None or order > _LARGEST_GROUP:
        raise SpecError(
            f"group-convolution: the group {group!r} should be C2, C3, ... or D3, D4, ..., of order at most {_LARGEST_GROUP}",
            argument="group",
        )
    n = int(match[2])
    g, h = np.arange(order)[:, None], np.arange(order)[None, :]
    turn = np.where(g < n, g + h, g - h) % n  # a reflection turns what follows the other way round
    flipped = (g >= n) ^ (h >= n)
    return np.asarray(turn + n * flipped)


@dataclass(frozen=True, kw_only=True)
class GroupConvolution(FilterNetwork):
    """A polynomial group convolutional network: (w * x)(g) = sum over h of w(h) x(g h) in each layer, x^r between layers.

    Examples
    --------
    >>> model = GroupConvolution(group="C3", layers=3, r=2)
    >>> model.spec, model.parameter_count, model.degrees
    ('group-convolution(group=C3,layers=3,r=2)', 9, (4,))
    """

    family: ClassVar[str] = "group-convolution"
    citation: ClassVar[str] = "homogeneity of the activation"
    m2_partial = "_group_convolution"
    summary: ClassVar[str] = "convolutions over a cyclic group C3 or a dihedral group D4 with activation x^r"
    example: ClassVar[str] = "group-convolution(group=C3,layers=2,r=2)"

    group: str
    layers: int
    r: int = 2

    def __post_init__(self) -> None:
        check_sizes(self.family, layers=self.layers, r=self.r)
        check_degree(self.family, self.r, self.layers)
        cayley_table(self.group)

    @property
    def order(self) -> int:
        return len(cayley_table(self.group))

    @property
    def title(self) -> str:
        return f"polynomial group convolutional network over {self.group}, {self.layers} layers, activation x^{self.r}"

    @property
    def filter_sizes(self) -> tuple[int, ...]:
        return (self.order,) * self.layers

    @property
    def input_shape(self) -> Shape:
        return (self.order,)

    def window(self, layer: int) -> np.ndarray:
        table = cayley_table(self.group)
        return table if layer < self.layers else table[:1]

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {"groupTable": cayley_table(self.group).tolist(), "layers": self.layers, "r": self.r}
