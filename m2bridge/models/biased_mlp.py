"""Polynomial perceptrons with one exponent for each hidden layer, and with biases.

x -> W_l s_(l-1)(... s_1(W_1 x + b_1) ...) + b_l, s_i the r_i-th power of each entry; in specs
``mlp(widths=[2,2,2,2],r=[2,3],bias=true)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from m2bridge.errors import SpecError
from m2bridge.models.mlp import MLP, Perceptron
from m2bridge.models.spec import Arguments, written

_HIGHEST_DEGREE = 10**6


@dataclass(frozen=True, kw_only=True)
class BiasedMLP(Perceptron):
    """A perceptron with activations x^r_i, and a bias in every layer if `bias`.

    Examples
    --------
    >>> model = BiasedMLP(widths=(1, 2, 1), r=(2,), bias=True)
    >>> model.spec, model.parameters
    ('mlp(widths=[1,2,1],r=[2],bias=true)', {'W1': (2, 1), 'b1': (2,), 'W2': (1, 2), 'b2': (1,)})
    """

    family: ClassVar[str] = "mlp"
    m2_partial = "_biased_mlp"
    citation: ClassVar[str] = "homogeneity of the activation"

    widths: tuple[int, ...]
    r: tuple[int, ...]
    bias: bool = False

    def __post_init__(self) -> None:
        self._check_widths("[2,3,2]")
        if len(self.r) != self.layers - 1:
            raise SpecError(
                f"mlp: {len(self.r)} exponents for {self.layers - 1} hidden layers; there is one for each",
                argument="r",
            )
        if max((*self.r, 1)) > 64 or prod(self.r) > _HIGHEST_DEGREE:
            raise SpecError(f"mlp: r={list(self.r)} gives functions of too high a degree", argument="r")

    @property
    def exponents(self) -> tuple[int, ...]:
        return self.r

    @property
    def spec(self) -> str:
        return written(self.family, widths=self.widths, r=self.r or None, bias=self.bias or None)

    @property
    def title(self) -> str:
        biases = ", with biases" if self.bias else ""
        return (
            f"polynomial perceptron, widths {list(self.widths)}, activations x^r, r = {list(self.r)}{biases}"
        )

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {"widths": self.widths, "activationDegrees": self.r, "withBias": self.bias}


def perceptron(arguments: Arguments) -> MLP | BiasedMLP:
    """The perceptron of a spec: r may be one exponent for all layers or a list, and there may be biases."""
    arguments.only("widths", "r", "bias")
    r = arguments.values.get("r", 2)
    bias = arguments.values.get("bias", False)
    if not isinstance(bias, bool):
        arguments.fail("bias should be true or false", "bias")
    widths = arguments.values.get("widths")
    if not bias and not (isinstance(r, tuple) and len(set(r)) > 1):
        plain = {"widths": widths, "r": r[0] if isinstance(r, tuple) and r else r}
        if isinstance(r, tuple) and isinstance(widths, tuple) and len(r) != len(widths) - 2:
            BiasedMLP(widths=widths, r=r)  # refuses it
        values = {key: value for key, value in plain.items() if key in arguments.values and value is not None}
        return Arguments(arguments.text, arguments.family, values, arguments.positions).built(MLP)
    if not isinstance(widths, tuple):
        arguments.fail("widths should be a list such as [2,3,2] or 2-3-2", "widths")
    if isinstance(r, int) and not isinstance(r, bool):
        r = (r,) * (len(widths) - 2)
    if not isinstance(r, tuple):
        arguments.fail("r should be an integer or a list of them, such as [2,3]", "r")
    return BiasedMLP(widths=widths, r=r, bias=bias)
