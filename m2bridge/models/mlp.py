"""Polynomial multilayer perceptrons, x -> W_l s(W_{l-1} ... s(W_1 x)) with s(x) = x^r entrywise, and linear networks (r = 1).

Reference: Kileel, Trager, Bruna, *On the Expressive Power of Deep Polynomial Neural Networks*, arXiv:1905.12207. Images of linear
networks are determinantal varieties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.models.base import Formula, Shape, Symmetry, known
from m2bridge.models.network import NetworkModel, coefficient_rows, output_rows, parameter_rows
from m2bridge.models.spec import check_degree, check_sizes, written

KILEEL = "Kileel, Trager, Bruna, arXiv:1905.12207"
# Alexander and Hirschowitz: degree r, number of variables, number of summands of the exceptions with r >= 3
_DEFECTIVE = {(3, 5, 7), (4, 3, 5), (4, 4, 9), (4, 5, 14)}


class Perceptron(NetworkModel):
    """Layers of matrices W_i of size d_i x d_{i-1}, with x^r between them."""

    widths: tuple[int, ...]
    r: int = 1

    def _check_widths(self, example: str) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))
        check_sizes(self.family, widths=self.widths, r=self.r)
        if len(self.widths) < 2:
            raise SpecError(
                f"{self.family}: widths lists at least two widths, such as {example}", argument="widths"
            )

    @property
    def layers(self) -> int:
        return len(self.widths) - 1

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
        return (self.r ** (self.layers - 1),)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        x = weights["W1"] @ inputs
        for i in range(2, self.layers + 1):
            x = weights[f"W{i}"] @ x**self.r
        return x

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Scalings of the hidden neurons; whole changes of basis for r = 1."""
        return tuple(self._between(i) for i in range(1, self.layers))

    def _between(self, i: int) -> Symmetry:
        linear = self.r == 1
        basis, scaling = (
            f"change of basis between layers {i} and {i + 1}",
            f"scaling of the neurons of layer {i}",
        )
        return Symmetry(
            name=basis if linear else scaling,
            citation="Trager, Kohn, Bruna, arXiv:1910.01671" if linear else f"{KILEEL}, multi-homogeneity",
            kind="gl" if linear else "torus",
            size=self.widths[i],
            axes={f"W{i}": (1, 0), f"W{i + 1}": (0, -self.r)},
            shapes=self.parameters,
        )

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
    def formula(self) -> Formula | None:
        """The image is all matrices of rank at most the smallest width r: dimension r (d_0 + d_l - r)."""
        r, d = min(self.widths), self.widths
        return known(r * (d[0] + d[-1] - r), "Harris, Algebraic Geometry: A First Course, Proposition 12.2")


@dataclass(frozen=True, kw_only=True)
class Linear(Perceptron):
    """x -> W_l ... W_1 x. Target coordinates are the entries of the product, row by row.

    Examples
    --------
    >>> Linear(widths=(3, 2, 3)).formula.value
    8
    """

    family: ClassVar[str] = "linear"
    m2_partial = "_linear"
    summary: ClassVar[str] = "product of matrices"
    example: ClassVar[str] = "linear(widths=[3,2,3])"

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        self._check_widths("[3,2,3]")

    @property
    def spec(self) -> str:
        return written(self.family, widths=self.widths)

    @property
    def title(self) -> str:
        return f"linear network, widths {list(self.widths)}"

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {"widths": self.widths}


@dataclass(frozen=True, kw_only=True)
class MLP(Perceptron):
    """A perceptron with activation x^r.

    Examples
    --------
    >>> model = MLP(widths=(2, 3, 2), r=2)
    >>> model.spec, model.parameter_count, model.coordinate_count
    ('mlp(widths=[2,3,2],r=2)', 12, 6)
    """

    family: ClassVar[str] = "mlp"
    m2_partial = "_mlp"
    summary: ClassVar[str] = "perceptron with activation x^r"
    example: ClassVar[str] = "mlp(widths=[2,3,2],r=2)"

    widths: tuple[int, ...]
    r: int = 2

    def __post_init__(self) -> None:
        self._check_widths("[2,3,2]")
        check_degree(self.family, self.r, self.layers)

    @property
    def spec(self) -> str:
        return written(self.family, widths=self.widths, r=self.r)

    @property
    def title(self) -> str:
        return f"polynomial perceptron, widths {list(self.widths)}, activation x^{self.r}"

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {"widths": self.widths, "r": self.r}

    @property
    def formula(self) -> Formula | None:
        """What is a theorem: linear networks, one hidden layer with one output, and equal widths."""
        if self.r == 1 or self.layers == 1:
            return super().formula
        if self.layers == 2 and self.widths[-1] == 1:
            value = waring_dim(self.widths[0], self.widths[1], self.r)
            return known(value, f"Alexander, Hirschowitz, J. Algebraic Geom. 4 (1995); {KILEEL}, section 2")
        equal = len(set(self.widths)) == 1 and self.widths[0] >= 2
        return known(
            self._expected,
            "Finkel, Rodriguez, Wu, Yahl, arXiv:2408.04569 (equi-width architectures)",
            ("all widths are equal and >= 2", equal),
            ("r >= 2", self.r >= 2),
        )

    @property
    def _expected(self) -> int:
        return min(self.parameter_count - sum(self.widths[1:-1]), self.ambient_dim)

    @property
    def dimension_bound(self) -> Formula | None:
        """Weights minus scalings of hidden neurons, or the ambient dimension."""
        return super().formula if self.r == 1 else known(self._expected, f"{KILEEL}, section 3")


def waring_dim(variables: int, summands: int, r: int) -> int:
    """Dimension of the affine cone of sums of `summands` r-th powers of linear forms (r >= 2).

    Alexander and Hirschowitz: as expected but for quadrics (symmetric matrices of bounded rank) and four
    exceptions.

    >>> waring_dim(3, 2, 2), waring_dim(3, 5, 4)
    (5, 14)
    """
    if r == 2:
        rank = min(variables, summands)
        return rank * variables - rank * (rank - 1) // 2
    expected = min(variables * summands, comb(variables + r - 1, r))
    return expected - ((r, variables, summands) in _DEFECTIVE)
