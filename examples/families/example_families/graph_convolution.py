"""Graph convolutional networks with polynomial activation: Kipf, Welling, arXiv:1609.02907."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from m2bridge.families.base import NetworkModel

LARGEST_GRAPH = 100


@dataclass(frozen=True, kw_only=True)
class GraphConvolution(NetworkModel):
    """X -> W_l s(... s(W_1 X S) ...) S with S = I + A, A the adjacency matrix, one column of X for each vertex.

    The paper has a normalised matrix in place of I + A, whose entries are not rational.

    Attributes
    ----------
    edges: the vertices 1, 2, ... of the edges, two for each edge.
    widths: features of a vertex before the first layer and after each. r: exponent of the activation.
    """

    family = "graph-convolution"
    summary = "graph convolution with activation x^r; edges=[1,2,2,3] for the edges 1-2 and 2-3"
    example = "graph-convolution(edges=[1,2,2,3],widths=[2,2,1],r=2)"

    edges: tuple[int, ...]
    widths: tuple[int, ...]
    r: int = 2

    def check(self) -> None:
        pairs = len(self.edges) % 2 == 0 and 0 < max(self.edges, default=0) <= LARGEST_GRAPH
        self.need(pairs, "edges", f"edges lists two of at most {LARGEST_GRAPH} vertices for each edge")
        loops = any(i == j for i, j in zip(self.edges[::2], self.edges[1::2], strict=True))
        self.need(not loops, "edges", "an edge joins two different vertices")
        self.need(self.layers >= 1, "widths", "widths lists at least two widths, such as [2,2,1]")
        self.check_exponents(self.r, *[self.r] * (self.layers - 1))

    @property
    def layers(self) -> int:
        return len(self.widths) - 1

    @property
    def title(self) -> str:
        graph = f"{max(self.edges)} vertices and {len(self.edges) // 2} edges"
        return f"graph convolutional network on {graph}, widths {list(self.widths)}, activation x^{self.r}"

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        return {f"W{i}": (self.widths[i], self.widths[i - 1]) for i in range(1, self.layers + 1)}

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.widths[0], max(self.edges))

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        i, j = np.array(self.edges[::2]) - 1, np.array(self.edges[1::2]) - 1
        neighbours = np.eye(max(self.edges), dtype=np.int64)
        neighbours[i, j] = neighbours[j, i] = 1
        X = weights["W1"] @ inputs @ neighbours
        for k in range(2, self.layers + 1):
            X = weights[f"W{k}"] @ X**self.r @ neighbours
        return X
