"""Graph convolutional networks: every vertex adds up its neighbours and itself, then a matrix, then x -> x^r.

Reference for the layer: Kipf, Welling, *Semi-Supervised Classification with Graph Convolutional Networks*, arXiv:1609.02907, here
with I + A in place of the normalised matrix, whose entries are not rational.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.models.base import Formula, Model, Shape, Symmetry, known
from m2bridge.models.mlp import MLP
from m2bridge.models.network import NetworkModel
from m2bridge.models.spec import Arguments, check_degree, check_sizes, suggestion, written

_LARGEST_GRAPH = 100


def named_graph(name: str) -> tuple[int, ...]:
    """The edges of a graph with a name: path4, cycle4, star4 or complete4, with so many vertices.

    >>> named_graph("cycle3"), named_graph("star3")
    ((1, 2, 2, 3, 1, 3), (1, 2, 1, 3))
    """
    match = re.fullmatch(r"([a-z]+?)([1-9]\d{0,3})", name)
    n = int(match[2]) if match else 0
    chain = [(i, i + 1) for i in range(1, n)]
    kinds = {
        "path": chain,
        "cycle": [*chain, (1, n)] if n > 2 else chain,
        "star": [(1, i) for i in range(2, n + 1)],
        "complete": list(combinations(range(1, n + 1), 2)),
    }
    if match is None or match[1] not in kinds or not 2 <= n <= _LARGEST_GRAPH:
        hint = suggestion(match[1] if match else name, tuple(kinds))
        raise SpecError(
            f"graph-convolution: no graph {name!r} with 2 to {_LARGEST_GRAPH} vertices, such as cycle4; {hint}",
            argument="graph",
        )
    return tuple(vertex for edge in kinds[match[1]] for vertex in edge)


@dataclass(frozen=True, kw_only=True)
class GraphConvolution(NetworkModel):
    """X -> W_l s(... s(W_1 X S) ...) S with S = I + A, A the adjacency matrix, one column of X for each vertex.

    Attributes
    ----------
    widths: features of a vertex before the first layer and after each. r: exponent of the activation.
    edges: the vertices 1, 2, ... of the edges, two for each edge; in specs also ``graph=cycle4`` (path, star, complete).

    Examples
    --------
    >>> model = GraphConvolution(edges=(1, 2, 2, 3), widths=(2, 2, 1))
    >>> model.spec, model.input_shape, model.parameter_count
    ('graph-convolution(edges=[1,2,2,3],widths=[2,2,1],r=2)', (2, 3), 6)
    """

    family: ClassVar[str] = "graph-convolution"
    m2_partial = "_graph_convolution"
    summary: ClassVar[str] = (
        "graph convolution with activation x^r; graph=path4, cycle4, star4, complete4, or edges=[1,2,2,3]"
    )
    example: ClassVar[str] = "graph-convolution(graph=cycle4,widths=[2,2,1],r=2)"

    edges: tuple[int, ...]
    widths: tuple[int, ...]
    r: int = 2

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Model:  # type: ignore[override]
        arguments.only("graph", *(item.name for item in fields(cls)))
        name = arguments.values.get("graph")
        if name is None:
            return arguments.built(cls)
        if not isinstance(name, str) or "edges" in arguments.values:
            arguments.fail("give a graph by its name, such as graph=cycle4, or by its edges", "graph")
        rest = {key: value for key, value in arguments.values.items() if key != "graph"}
        return replace(arguments, values=rest | {"edges": named_graph(name)}).built(cls)

    def __post_init__(self) -> None:
        check_sizes(self.family, edges=self.edges, widths=self.widths, r=self.r)
        if len(self.edges) % 2 or not self.edges or max(self.edges) > _LARGEST_GRAPH:
            raise SpecError(
                f"graph-convolution: edges lists two of at most {_LARGEST_GRAPH} vertices for each edge, such as [1,2,2,3]",
                argument="edges",
            )
        if any(i == j for i, j in zip(self.edges[::2], self.edges[1::2], strict=True)):
            raise SpecError("graph-convolution: an edge joins two different vertices", argument="edges")
        if len(self.widths) < 2:
            raise SpecError("graph-convolution: widths lists at least two widths", argument="widths")
        check_degree(self.family, self.r, self.layers)

    @property
    def layers(self) -> int:
        return len(self.widths) - 1

    @property
    def spec(self) -> str:
        return written(self.family, edges=self.edges, widths=self.widths, r=self.r)

    @property
    def title(self) -> str:
        graph = f"{max(self.edges)} vertices and {len(self.edges) // 2} edges"
        return f"graph convolutional network on {graph}, widths {list(self.widths)}, activation x^{self.r}"

    @property
    def neighbours(self) -> np.ndarray:
        """I + A."""
        matrix = np.eye(max(self.edges), dtype=np.int64)
        i, j = np.array(self.edges[::2]) - 1, np.array(self.edges[1::2]) - 1
        matrix[i, j] = matrix[j, i] = 1
        return matrix

    @property
    def parameters(self) -> dict[str, Shape]:
        return {f"W{i}": (self.widths[i], self.widths[i - 1]) for i in range(1, self.layers + 1)}

    @property
    def input_shape(self) -> Shape:
        return (self.widths[0], max(self.edges))

    @property
    def output_shape(self) -> Shape:
        return (self.widths[-1], max(self.edges))

    @property
    def degrees(self) -> tuple[int, ...]:
        return (self.r ** (self.layers - 1),)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        X = inputs
        for i in range(1, self.layers + 1):
            X = weights[f"W{i}"] @ X @ self.neighbours
            X = X**self.r if i < self.layers else X
        return X

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {"edges": self.edges, "widths": self.widths, "r": self.r}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Scalings of the hidden features; whole changes of basis for r = 1."""
        return tuple(
            Symmetry(
                name=f"scaling of the features of layer {i}"
                if self.r > 1
                else f"change of basis of layer {i}",
                citation="homogeneity of the activation",
                kind="torus" if self.r > 1 else "gl",
                size=self.widths[i],
                axes={f"W{i}": (1, 0), f"W{i + 1}": (0, -self.r)},
                shapes=self.parameters,
            )
            for i in range(1, self.layers)
        )

    @property
    def formula(self) -> Formula | None:
        """Linear networks: X -> W X S^l with W of rank at most the least width."""
        rank, d = min(self.widths), self.widths
        linear = ("r = 1, or one layer", self.r == 1 or self.layers == 1)
        citation = "Harris, Algebraic Geometry: A First Course, Proposition 12.2"
        return known(rank * (d[0] + d[-1] - rank), citation, linear)

    @property
    def dimension_bound(self) -> Formula | None:
        """With two layers the network is f(X S) S, f a perceptron that acts on each vertex."""
        return MLP(widths=self.widths, r=self.r).dimension_bound if self.layers == 2 else None
