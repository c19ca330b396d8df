"""Perceptrons: W_l s(W_{l-1} ... s(W_1 x + b_1) ...) + b_l with polynomial activations s, and linear networks (s(x) = x).

Reference: Kileel, Trager, Bruna, *On the Expressive Power of Deep Polynomial Neural Networks*, arXiv:1905.12207. Images of linear
networks are determinantal varieties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from m2bridge.families.base import Knowledge, NetworkModel, Shape
from m2bridge.families.perceptron_knowledge import KILEEL, perceptron_knowledge
from m2bridge.families.spec import Arguments


class Perceptron(NetworkModel):
    """Layers of matrices W_i of size d_i x d_(i-1), perhaps with biases b_i, and powers of each entry between them."""

    widths: tuple[int, ...]
    r: Any
    bias: bool = False
    citation: ClassVar[str] = "homogeneity of the activation"
    """Where the scalings of hidden neurons are stated."""

    @property
    def exponents(self) -> tuple[int, ...]:
        """The exponent of the activation after each layer but the last."""
        return (self.r,) * (self.layers - 1)

    def check(self) -> None:
        self.need(self.layers >= 1, "widths", "widths lists at least two widths, such as [3,2,3]")
        self.check_exponents(self.r, *self.exponents)

    @property
    def layers(self) -> int:
        return len(self.widths) - 1

    @property
    def parameters(self) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {}
        for i in range(1, self.layers + 1):
            shapes[f"W{i}"] = (self.widths[i], self.widths[i - 1])
            if self.bias:
                shapes[f"b{i}"] = (self.widths[i],)
        return shapes

    @property
    def input_shape(self) -> Shape:
        return (self.widths[0],)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        x = inputs
        for i in range(1, self.layers + 1):
            x = weights[f"W{i}"] @ x
            x = x + weights[f"b{i}"] if self.bias else x
            x = x ** self.exponents[i - 1] if i < self.layers else x
        return x

    @cached_property
    def knowledge(self) -> Knowledge:
        return perceptron_knowledge(self)


@dataclass(frozen=True, kw_only=True)
class Linear(Perceptron):
    """x -> W_l ... W_1 x. Target coordinates are the entries of the product, row by row.

    Examples
    --------
    >>> Linear(widths=(3, 2, 3)).knowledge.formula.value
    8
    """

    family = "linear"
    summary = "product of matrices"
    example = "linear(widths=[3,2,3])"
    r = 1

    widths: tuple[int, ...]

    @property
    def title(self) -> str:
        return f"linear network, widths {list(self.widths)}"


@dataclass(frozen=True, kw_only=True)
class MLP(Perceptron):
    """A perceptron with activation x^r.

    Examples
    --------
    >>> model = MLP(widths=(2, 3, 2), r=2)
    >>> model.spec, model.parameter_count, model.coordinate_count
    ('mlp(widths=[2,3,2],r=2)', 12, 6)
    """

    family = "mlp"
    summary = "perceptron with activation x^r"
    example = "mlp(widths=[2,3,2],r=2)"
    citation = f"{KILEEL}, multi-homogeneity"

    widths: tuple[int, ...]
    r: int = 2

    @property
    def title(self) -> str:
        return f"polynomial perceptron, widths {list(self.widths)}, activation x^{self.r}"


@dataclass(frozen=True, kw_only=True)
class BiasedMLP(Perceptron):
    """A perceptron with activations x^r_i, and a bias in every layer if `bias`.

    Examples
    --------
    >>> model = BiasedMLP(widths=(1, 2, 1), r=(2,), bias=True)
    >>> model.spec, model.parameters
    ('mlp(widths=[1,2,1],r=[2],bias=true)', {'W1': (2, 1), 'b1': (2,), 'W2': (1, 2), 'b2': (1,)})
    """

    family = "mlp"
    m2_partial = "_biased_mlp"
    m2_names: ClassVar[Mapping[str, str]] = {"r": "activationDegrees", "bias": "withBias"}

    widths: tuple[int, ...]
    r: tuple[int, ...] = 2  # type: ignore[assignment] # one for all layers
    bias: bool = False

    @property
    def list_length(self) -> int:
        return self.layers - 1

    def check(self) -> None:
        super().check()
        given, hidden = len(self.r), self.layers - 1
        self.need(
            given == hidden, "r", f"{given} exponents for {hidden} hidden layers; there is one for each"
        )

    @property
    def exponents(self) -> tuple[int, ...]:
        return self.r

    @property
    def title(self) -> str:
        biases = ", with biases" if self.bias else ""
        return (
            f"polynomial perceptron, widths {list(self.widths)}, activations x^r, r = {list(self.r)}{biases}"
        )


def perceptron(arguments: Arguments) -> MLP | BiasedMLP:
    """The perceptron of a spec: r may be one exponent for all layers or a list, and there may be biases."""
    found = arguments.built(BiasedMLP)
    r = arguments.values.get("r", 2)
    exponents = set(found.r) if isinstance(r, tuple) else {r}
    if found.bias or len(exponents) != 1:
        return found
    return MLP(widths=found.widths, r=exponents.pop())  # type: ignore[arg-type]
