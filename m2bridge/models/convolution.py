"""Polynomial convolutional networks, over intervals, finite groups and graphs: convolutions alternating with x -> x^r.

Reference: Shahverdi, Marchetti, Kohn, *On the Geometry and Optimization of Polynomial Convolutional
Networks*, arXiv:2410.00722. All outputs of a layer over an interval or a group are shifts of one another, so that the network is
seen in one output: for intervals the first, whose inputs are its receptive field, for groups that at the identity.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.models.base import Formula, Model, NetworkModel, Shape, Symmetry, known
from m2bridge.models.mlp import MLP, Perceptron, determinantal
from m2bridge.models.spec import Arguments, suggestion

CONVOLUTIONS = "Shahverdi, Marchetti, Kohn, arXiv:2410.00722"
_LARGEST_GROUP = 60
_LARGEST_GRAPH = 100


class FilterNetwork(NetworkModel):
    """Layers x -> sum_j w_j x[window[i, j]] with x^r between them, seen in one output."""

    r: int
    citation: ClassVar[str]
    """Where the scalings between layers are stated."""

    @property
    @abstractmethod
    def filter_sizes(self) -> tuple[int, ...]:
        """Number of weights of each layer."""

    @abstractmethod
    def window(self, layer: int) -> np.ndarray:
        """Which neurons before a layer (from 1) each neuron after it sees: one row for each, one column for each weight."""

    def check(self) -> None:
        self.check_exponents(self.r, *[self.r] * (len(self.filter_sizes) - 1))

    @property
    def parameters(self) -> dict[str, Shape]:
        return {f"w{i}": (size,) for i, size in enumerate(self.filter_sizes, start=1)}

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        x = inputs[self.window(1)] @ weights["w1"]
        for i in range(2, len(self.filter_sizes) + 1):
            x = (x**self.r)[self.window(i)] @ weights[f"w{i}"]
        return x

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Scalings between layers."""
        found = []
        for i in range(1, len(self.filter_sizes)):
            axes, name = {f"w{i}": (1,), f"w{i + 1}": (-self.r,)}, f"(s w{i}, w{i + 1} / s^{self.r})"
            found.append(self.symmetry("scaling", 1, axes, name, self.citation))
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Convolution(FilterNetwork):
    """A polynomial convolutional network: (w * x)_i = sum_j w_j x_(i s + j) in each layer, x^r between
    layers.

    Attributes
    ----------
    filters: filter sizes k_1, ..., k_L.
    strides: strides s_1, ..., s_L; 1 unless given. The last one does not matter for a single output.
    r: the exponent of the activation.

    Examples
    --------
    >>> model = Convolution(filters=(2, 2), r=2)
    >>> model.spec, model.input_shape, model.formula.value
    ('convolution(filters=[2,2],r=2)', (3,), 3)
    """

    family = "convolution"
    citation = f"{CONVOLUTIONS}, section 3"
    summary = "convolutional network with activation x^r; strides="
    example = "convolution(filters=[2,2],r=2)"
    m2_names: ClassVar[Mapping[str, str]] = {"filters": "filterSizes"}
    unwritten = ("strides",)

    filters: tuple[int, ...]
    strides: tuple[int, ...] = None  # type: ignore[assignment]
    r: int = 2

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {"strides": (1,) * self.layers}

    def check(self) -> None:
        which, fits = "strides" if self.filters else "filters", len(self.strides) == self.layers > 0
        counts = f"{len(self.strides)} strides for {self.layers} filters"
        self.need(fits, which, f"{counts}; there is one for each")
        super().check()

    @property
    def layers(self) -> int:
        return len(self.filters)

    @property
    def title(self) -> str:
        sizes = f"filters {list(self.filters)}, strides {list(self.strides)}"
        return f"polynomial convolutional network, {sizes}, activation x^{self.r}"

    @property
    def filter_sizes(self) -> tuple[int, ...]:
        return self.filters

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of neurons before each layer and after the last: the receptive fields, ending with one output."""
        sizes = [1]
        for filter_size, stride in zip(reversed(self.filters), reversed(self.strides), strict=True):
            sizes.append((sizes[-1] - 1) * stride + filter_size)
        return tuple(reversed(sizes))

    @property
    def input_shape(self) -> Shape:
        return (self.sizes[0],)

    def window(self, layer: int) -> np.ndarray:
        stride, size = self.strides[layer - 1], self.filters[layer - 1]
        return np.arange(self.sizes[layer])[:, None] * stride + np.arange(size)

    @property
    def formula(self) -> Formula:
        """|k| - L + 1: the filters up to the scalings between layers."""
        several = ("r > 1, or a single layer", self.r > 1 or self.layers == 1)
        return known(sum(self.filters) - self.layers + 1, CONVOLUTIONS, several)

    @property
    def dimension_bound(self) -> Formula:
        """The filters up to the scalings between layers."""
        return known(min(sum(self.filters) - self.layers + 1, self.ambient_dim), CONVOLUTIONS)


# -- finite groups -------------------------------------------------------------------------------------


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

    Signals are functions on a cyclic group ``C3`` or a dihedral group ``D4``, of order 8.

    Examples
    --------
    >>> model = GroupConvolution(group="C3", layers=3, r=2)
    >>> model.spec, model.parameter_count, model.degrees
    ('group-convolution(group=C3,layers=3,r=2)', 9, (4,))
    """

    family = "group-convolution"
    citation = "homogeneity of the activation"
    summary = "convolutions over a cyclic group C3 or a dihedral group D4 with activation x^r"
    example = "group-convolution(group=C3,layers=2,r=2)"

    group: str
    layers: int
    r: int = 2

    def check(self) -> None:
        super().check()
        cayley_table(self.group)

    @property
    def title(self) -> str:
        return f"polynomial group convolutional network over {self.group}, {self.layers} layers, activation x^{self.r}"

    @property
    def filter_sizes(self) -> tuple[int, ...]:
        return self.input_shape * self.layers

    @property
    def input_shape(self) -> Shape:
        return (len(cayley_table(self.group)),)

    def window(self, layer: int) -> np.ndarray:
        table = cayley_table(self.group)
        return table if layer < self.layers else table[:1]

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {"groupTable": cayley_table(self.group).tolist(), "layers": self.layers, "r": self.r}


# -- graphs --------------------------------------------------------------------------------------------


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
class GraphConvolution(Perceptron):
    """X -> W_l s(... s(W_1 X S) ...) S with S = I + A, A the adjacency matrix, one column of X for each vertex.

    The layer is that of Kipf, Welling, *Semi-Supervised Classification with Graph Convolutional Networks*, arXiv:1609.02907, with
    I + A in place of the normalised matrix, whose entries are not rational.

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

    family = "graph-convolution"
    units = "features"
    summary = (
        "graph convolution with activation x^r; graph=path4, cycle4, star4, complete4, or edges=[1,2,2,3]"
    )
    example = "graph-convolution(graph=cycle4,widths=[2,2,1],r=2)"

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
        return arguments.changed("graph", edges=named_graph(name)).built(cls)

    def check(self) -> None:
        pairs = len(self.edges) % 2 == 0 and 0 < max(self.edges, default=0) <= _LARGEST_GRAPH
        vertices = f"two of at most {_LARGEST_GRAPH} vertices for each edge, such as [1,2,2,3]"
        self.need(pairs, "edges", f"edges lists {vertices}")
        loops = any(i == j for i, j in zip(self.edges[::2], self.edges[1::2], strict=True))
        self.need(not loops, "edges", "an edge joins two different vertices")
        super().check()

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
    def input_shape(self) -> Shape:
        return (self.widths[0], max(self.edges))

    def linear(self, W: Any, x: Any) -> Any:
        return W @ x @ self.neighbours

    @property
    def formula(self) -> Formula:
        """Linear networks: X -> W X S^l with W of rank at most the least width."""
        linear = ("r = 1, or one layer", self.r == 1 or self.layers == 1)
        return determinantal(min(self.widths), self.widths[0], self.widths[-1], linear)

    @property
    def dimension_bound(self) -> Formula | None:
        """With two layers the network is f(X S) S, f a perceptron that acts on each vertex."""
        return MLP(widths=self.widths, r=self.r).dimension_bound if self.layers == 2 else None
