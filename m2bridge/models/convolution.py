"""Polynomial convolutional networks, convolutions alternating with x -> x^r.

Reference: Shahverdi, Marchetti, Kohn, *On the Geometry and Optimization of Polynomial Convolutional
Networks*, arXiv:2410.00722. All outputs of a layer are shifts of one another, so that the network is seen in
its first output, whose inputs are its receptive field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.models.base import Formula, Shape, Symmetry, known
from m2bridge.models.network import NetworkModel
from m2bridge.models.spec import check_degree, check_sizes, per_layer, written

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
    >>> model.spec, model.input_shape, model.formula.value
    ('convolution(filters=[2,2],r=2)', (3,), 3)
    """

    family: ClassVar[str] = "convolution"
    m2_partial = "_convolution"
    summary: ClassVar[str] = "convolutional network with activation x^r; strides="
    example: ClassVar[str] = "convolution(filters=[2,2],r=2)"

    filters: tuple[int, ...]
    strides: tuple[int, ...] = None  # type: ignore[assignment]
    r: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "filters", tuple(self.filters))
        object.__setattr__(self, "strides", per_layer(self.strides, self.layers, (1,) * self.layers))
        check_sizes(self.family, filters=self.filters, strides=self.strides, r=self.r)
        if not self.filters or len(self.strides) != self.layers:
            raise SpecError(
                f"convolution: {len(self.strides)} strides for {self.layers} filters; there is one for each",
                argument="strides" if self.filters else "filters",
            )
        check_degree(self.family, self.r, self.layers)

    @property
    def layers(self) -> int:
        return len(self.filters)

    @property
    def spec(self) -> str:
        strides = None if set(self.strides) == {1} else self.strides
        return written(self.family, filters=self.filters, strides=strides, r=self.r)

    @property
    def title(self) -> str:
        sizes = f"filters {list(self.filters)}, strides {list(self.strides)}"
        return f"polynomial convolutional network, {sizes}, activation x^{self.r}"

    @property
    def parameters(self) -> dict[str, Shape]:
        return {f"w{i}": (size,) for i, size in enumerate(self.filters, start=1)}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of neurons before each layer and after the last: the receptive fields, ending with one
        output.
        """
        sizes = [1]
        for filter_size, stride in zip(reversed(self.filters), reversed(self.strides), strict=True):
            sizes.append((sizes[-1] - 1) * stride + filter_size)
        return tuple(reversed(sizes))

    @property
    def input_shape(self) -> Shape:
        return (self.sizes[0],)

    @property
    def output_shape(self) -> Shape:
        return (1,)

    @property
    def degrees(self) -> tuple[int, ...]:
        return (self.r ** (self.layers - 1),)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        x = inputs
        for i, (filter_size, stride) in enumerate(zip(self.filters, self.strides, strict=True), start=1):
            if i > 1:
                x = x**self.r
            window = np.arange(self.sizes[i])[:, None] * stride + np.arange(filter_size)
            x = x[window] @ weights[f"w{i}"]
        return x

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {"filterSizes": self.filters, "strides": self.strides, "r": self.r}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return tuple(self._scaling(i) for i in range(1, self.layers))

    def _scaling(self, i: int) -> Symmetry:
        return Symmetry(
            name=f"(s w{i}, w{i + 1} / s^{self.r})",
            citation=f"{CONVOLUTIONS}, section 3",
            kind="scaling",
            size=1,
            axes={f"w{i}": (1,), f"w{i + 1}": (-self.r,)},
            shapes=self.parameters,
        )

    @property
    def grading(self) -> np.ndarray:
        """Degree (scaling of the last filter), then the weight of the inputs with x_i of weight i."""
        places = np.arange(self.input_shape[0])
        return np.stack([np.ones(self.coordinate_count, dtype=np.int64), self.monomials @ places])

    @property
    def parameter_grading(self) -> np.ndarray:
        degree, weight, scale = [], [], 1
        for i, (size, stride) in enumerate(zip(self.filters, self.strides, strict=True), start=1):
            degree.append(np.full(size, int(i == self.layers)))
            weight.append(scale * np.arange(size))
            scale *= stride * self.r
        return np.stack([np.concatenate(degree), np.concatenate(weight)]).astype(np.int64)

    @property
    def formula(self) -> Formula:
        """|k| - L + 1: the filters up to the scalings between layers."""
        several = ("r > 1, or a single layer", self.r > 1 or self.layers == 1)
        return known(sum(self.filters) - self.layers + 1, CONVOLUTIONS, several)

    @property
    def dimension_bound(self) -> Formula:
        """The filters up to the scalings between layers."""
        return known(min(sum(self.filters) - self.layers + 1, self.ambient_dim), CONVOLUTIONS)
