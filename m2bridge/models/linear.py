"""Linear networks, products of matrices, whose images are determinantal varieties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.models.base import Formula, Shape, Symmetry
from m2bridge.models.gradings import coefficient_rows, output_rows, parameter_rows
from m2bridge.models.network import NetworkModel
from m2bridge.models.spec import Arguments, check_sizes, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear(NetworkModel):
    """x -> W_l ... W_1 x. Target coordinates are the entries of the product, row by row.

    Examples
    --------
    >>> Linear(widths=(3, 2, 3)).formula.value
    8
    """

    family: ClassVar[str] = "linear"

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))
        check_sizes(self.family, widths=self.widths)
        if len(self.widths) < 2:
            raise SpecError("linear: widths lists at least two widths, such as [3,2,3]", argument="widths")

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Linear:
        arguments.only("widths")
        return cls(widths=arguments.integers("widths"))

    @property
    def layers(self) -> int:
        return len(self.widths) - 1

    @property
    def spec(self) -> str:
        return written(self.family, widths=self.widths)

    @property
    def title(self) -> str:
        return f"linear network, widths {list(self.widths)}"

    @property
    def parameters(self) -> dict[str, Shape]:
        return {f"W{i}": (self.widths[i], self.widths[i - 1]) for i in range(1, self.layers + 1)}

    @property
    def input_shape(self) -> Shape:
        return (self.widths[0],)

    @property
    def output_shape(self) -> Shape:
        return (self.widths[-1],)

    @property
    def degrees(self) -> tuple[int, ...]:
        return (1,)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        x = inputs
        for i in range(1, self.layers + 1):
            x = weights[f"W{i}"] @ x
        return x

    @property
    def m2_partial(self) -> str:
        return "_linear"

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {"widths": self.widths}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return tuple(between_linear_layers(self, i) for i in range(1, self.layers))

    @property
    def grading(self) -> np.ndarray:
        """Scalings of the inputs, then of the outputs."""
        inputs = coefficient_rows(self.monomials, self.input_shape, self.widths[-1], 1)
        return np.concatenate([inputs, output_rows(self.monomials, self.widths[-1], 1)])

    @property
    def parameter_grading(self) -> np.ndarray:
        rows = [{"W1": e[None, :]} for e in np.eye(self.widths[0], dtype=np.int64)]
        rows += [{f"W{self.layers}": e[:, None]} for e in np.eye(self.widths[-1], dtype=np.int64)]
        return parameter_rows(self.parameters, rows)

    @property
    def formula(self) -> Formula:
        """The image is all matrices of rank at most the smallest width r: dimension r (d_0 + d_l - r)."""
        r = min(self.widths)
        return Formula(
            value=r * (self.widths[0] + self.widths[-1] - r),
            citation="Harris, Algebraic Geometry: A First Course, Proposition 12.2",
            hypotheses=(),
        )


def between_linear_layers(model: Any, i: int) -> Symmetry:
    """W_i -> C W_i, W_{i+1} -> W_{i+1} C^-1."""
    return Symmetry(
        name=f"change of basis between layers {i} and {i + 1}",
        citation="Trager, Kohn, Bruna, arXiv:1910.01671",
        kind="gl",
        size=model.widths[i],
        axes={f"W{i}": (1, 0), f"W{i + 1}": (0, -1)},
        shapes=model.parameters,
    )
