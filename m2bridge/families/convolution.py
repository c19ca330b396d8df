"""Polynomial convolutional networks: convolutions alternating with x -> x^r.

Reference: Shahverdi, Marchetti, Kohn, *On the Geometry and Optimization of Polynomial Convolutional
Networks*, arXiv:2410.00722. All outputs of a layer are shifts of one another, so that the network is seen in one
output: the first, whose inputs are its receptive field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from m2bridge.families.base import NetworkModel, Shape
from m2bridge.families.knowledge import Knowledge, cited
from m2bridge.families.symmetries import Symmetry

CONVOLUTIONS = "Shahverdi, Marchetti, Kohn, arXiv:2410.00722"


@dataclass(frozen=True, kw_only=True)
class Convolution(NetworkModel):
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
    >>> model.spec, model.input_shape, model.knowledge.formula.value
    ('convolution(filters=[2,2],r=2)', (3,), 3)
    """

    family = "convolution"
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
        which = "strides" if self.filters else "filters"
        fits = len(self.strides) == self.layers > 0
        counts = f"{len(self.strides)} strides for {self.layers} filters"
        self.need(fits, which, f"{counts}; there is one for each")
        self.check_exponents(self.r, *[self.r] * (self.layers - 1))

    @property
    def layers(self) -> int:
        return len(self.filters)

    @property
    def title(self) -> str:
        sizes = f"filters {list(self.filters)}, strides {list(self.strides)}"
        return f"polynomial convolutional network, {sizes}, activation x^{self.r}"

    @property
    def parameters(self) -> dict[str, Shape]:
        return {f"w{i}": (size,) for i, size in enumerate(self.filters, start=1)}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of neurons before each layer and after the last: the receptive fields, ending with one output."""
        sizes = [1]
        for filter_size, stride in zip(reversed(self.filters), reversed(self.strides), strict=True):
            sizes.append((sizes[-1] - 1) * stride + filter_size)
        return tuple(reversed(sizes))

    @property
    def input_shape(self) -> Shape:
        return (self.sizes[0],)

    def window(self, layer: int) -> np.ndarray:
        """Return the inputs of each neuron of a layer (from 1): one row per neuron, one column per weight."""
        stride, size = self.strides[layer - 1], self.filters[layer - 1]
        return np.arange(self.sizes[layer])[:, None] * stride + np.arange(size)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        x = inputs[self.window(1)] @ weights["w1"]
        for i in range(2, self.layers + 1):
            x = (x**self.r)[self.window(i)] @ weights[f"w{i}"]
        return x

    @cached_property
    def knowledge(self) -> Knowledge:
        """Return the dimension formula |k| - L + 1 (filters up to scalings between layers) and the symmetries."""
        several = ("r > 1, or a single layer", self.r > 1 or self.layers == 1)
        dim = sum(self.filters) - self.layers + 1
        return Knowledge(
            formula=cited(dim, CONVOLUTIONS, several),
            dimension_bound=cited(min(dim, self.ambient_dim), CONVOLUTIONS),
            symmetries=tuple(map(self._scaling, range(1, self.layers))),
            homogeneous=True,
        )

    def _scaling(self, i: int) -> Symmetry:
        """Scale layer i against layer i + 1."""
        return Symmetry(
            name=f"(s w{i}, w{i + 1} / s^{self.r})",
            citation=f"{CONVOLUTIONS}, section 3",
            kind="scaling",
            size=1,
            axes={f"w{i}": (1,), f"w{i + 1}": (-self.r,)},
            shapes=self.parameters,
        )
