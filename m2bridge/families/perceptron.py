"""Perceptrons: W_l s(W_{l-1} ... s(W_1 x + b_1) ...) + b_l with polynomial activations s, and linear networks (s(x) = x).

The families ``mlp`` and ``linear`` are sets of options of one class: :func:`MLP` and :func:`Linear` build it from the arguments
of the spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from m2bridge.families.base import Knowledge, NetworkModel, Shape
from m2bridge.families.perceptron_knowledge import perceptron_knowledge


@dataclass(frozen=True, kw_only=True)
class Perceptron(NetworkModel):
    """Layers of matrices W_i of size d_i x d_(i-1), perhaps with biases b_i, and powers of each entry between them.

    Attributes
    ----------
    widths: d_0, ..., d_l.
    r: the exponent of all activations, or, where there are biases or different exponents, one for each hidden layer.
    bias: whether every layer has a bias.
    linear: whether the network is of the family ``linear``, with exponent 1.

    Examples
    --------
    >>> model = Perceptron(widths=(1, 2, 1), r=2, bias=True)
    >>> model.spec, model.parameters
    ('mlp(widths=[1,2,1],r=[2],bias=true)', {'W1': (2, 1), 'b1': (2,), 'W2': (1, 2), 'b2': (1,)})
    """

    widths: tuple[int, ...]
    r: Any = 2
    bias: bool = False
    linear: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", self._canonical_exponents())
        super().__post_init__()

    def _canonical_exponents(self) -> int | tuple[int, ...]:
        """Return one exponent without biases where all are equal, else one for each hidden layer."""
        r, hidden = self.r, len(self.widths) - 2
        if isinstance(r, int):
            return (r,) * hidden if self.bias else r
        exponents = tuple(r)
        if not exponents and not hidden and not self.bias:
            return 2  # there is no activation
        equal = len(set(exponents)) == 1 and len(exponents) == hidden
        return exponents[0] if equal and not self.bias else exponents

    @property
    def family(self) -> str:  # type: ignore[override]
        return "linear" if self.linear else "mlp"

    def check(self) -> None:
        self.need(self.layers >= 1, "widths", "widths lists at least two widths, such as [3,2,3]")
        self.check_sizes("r", self.r)
        self.check_exponents(self.r, *self.exponents)
        count, hidden = len(self.exponents), self.layers - 1
        self.need(
            count == hidden, "r", f"{count} exponents for {hidden} hidden layers; there is one for each"
        )
        self.need(not self.linear or (self.r == 1 and not self.bias), "r", "a linear network has exponent 1")

    @property
    def exponents(self) -> tuple[int, ...]:
        """Return the exponent of the activation after each layer but the last."""
        return self.r if isinstance(self.r, tuple) else (self.r,) * (self.layers - 1)

    @property
    def written(self) -> dict[str, Any]:
        exponents = {} if self.linear else {"r": self.r}
        return {"widths": self.widths, **exponents, "bias": self.bias or None}

    @property
    def title(self) -> str:
        widths = list(self.widths)
        if self.linear:
            return f"linear network, widths {widths}"
        if isinstance(self.r, int):
            return f"polynomial perceptron, widths {widths}, activation x^{self.r}"
        biases = ", with biases" if self.bias else ""
        return f"polynomial perceptron, widths {widths}, activations x^r, r = {list(self.r)}{biases}"

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

    @property
    def m2_partial(self) -> str | Path:
        return super().m2_partial if isinstance(self.r, int) else "_biased_mlp"

    @property
    def m2_parameters(self) -> dict[str, object]:
        if self.linear:
            return {"widths": self.widths}
        if isinstance(self.r, int):
            return {"widths": self.widths, "r": self.r}
        return {"widths": self.widths, "activationDegrees": self.r, "withBias": self.bias}

    @cached_property
    def knowledge(self) -> Knowledge:
        return perceptron_knowledge(self)


def Linear(*, widths: tuple[int, ...]) -> Perceptron:  # a public name
    """Build x -> W_l ... W_1 x. Target coordinates are the entries of the product, row by row.

    >>> Linear(widths=(3, 2, 3)).knowledge.formula.value
    8
    """
    return Perceptron(widths=widths, r=1, linear=True)


def MLP(*, widths: tuple[int, ...], r: int | tuple[int, ...] = 2, bias: bool = False) -> Perceptron:
    """Build a perceptron with activation x^r; a list r has one exponent for each hidden layer.

    >>> model = MLP(widths=(2, 3, 2), r=2)
    >>> model.spec, model.parameter_count, model.coordinate_count
    ('mlp(widths=[2,3,2],r=2)', 12, 6)
    """
    return Perceptron(widths=widths, r=r, bias=bias)
