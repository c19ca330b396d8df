"""Perceptrons with a polynomial activation, whose coefficients are given or learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from m2bridge.families.base import NetworkModel


@dataclass(frozen=True, kw_only=True)
class PolynomialMLP(NetworkModel):
    """W_l s(... s(W_1 x + b_1) ...) + b_l with s(y) = c_0 + c_1 y + ... + c_k y^k; biases b only if `bias`.

    Learned coefficients are weights c1_0, c1_1, ..., those of layer i shared by its neurons.

    Attributes
    ----------
    widths: d_0, ..., d_l. coefficients: the integers c_0, ..., c_k. degree: k, when the coefficients are weights.
    """

    family = "polynomial-mlp"
    summary = "perceptron with a polynomial activation: coefficients=[0,1,1] for x + x^2, or degree=2 to learn them; bias="
    example = "polynomial-mlp(widths=[2,3,1],coefficients=[0,1,1])"
    signed: ClassVar[tuple[str, ...]] = ("coefficients",)
    m2_names: ClassVar[Mapping[str, str]] = {
        "coefficients": "givenCoefficients",
        "degree": "activationDegree",
        "bias": "withBias",
    }

    widths: tuple[int, ...]
    coefficients: tuple[int, ...] = ()
    degree: int = None  # type: ignore[assignment]
    bias: bool = False

    def check(self) -> None:
        c = self.coefficients
        one = bool(c) == (self.degree is None)
        self.need(one, "degree", "give coefficients=[c_0,c_1,...], or degree= for learned ones")
        last = not c or (len(c) > 1 and c[-1] != 0)
        self.need(last, "coefficients", "the last of the coefficients c_0, ..., c_k is not zero, and k >= 1")
        self.need(self.layers >= 1, "widths", "widths lists at least two widths, such as [3,2,3]")
        self.check_exponents(self.activation_degree, *[self.activation_degree] * (self.layers - 1))

    @property
    def layers(self) -> int:
        return len(self.widths) - 1

    @property
    def activation_degree(self) -> int:
        return len(self.coefficients) - 1 if self.coefficients else self.degree

    @property
    def title(self) -> str:
        kind = f"coefficients {list(self.coefficients)}" if self.coefficients else "learned coefficients"
        biases = ", with biases" if self.bias else ""
        return f"perceptron, widths {list(self.widths)}, activation of degree {self.activation_degree}, {kind}{biases}"

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        for i in range(1, self.layers + 1):
            shapes[f"W{i}"] = (self.widths[i], self.widths[i - 1])
            if self.bias:
                shapes[f"b{i}"] = (self.widths[i],)
            if i < self.layers and not self.coefficients:
                shapes |= {f"c{i}_{j}": (1,) for j in range(self.degree + 1)}
        return shapes

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.widths[0],)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        x = inputs
        for i in range(1, self.layers + 1):
            x = weights[f"W{i}"] @ x
            x = x + weights[f"b{i}"] if self.bias else x
            x = self.activation(weights, i, x) if i < self.layers else x
        return x

    def activation(self, weights: Mapping[str, Any], i: int, y: Any) -> Any:
        """Apply the activation that follows layer i."""
        c = self.coefficients or [weights[f"c{i}_{j}"] for j in range(self.degree + 1)]
        return sum(c[j] * y**j for j in range(1, self.activation_degree + 1)) + c[0]

    @property
    def m2_parameters(self) -> dict[str, object]:
        return super().m2_parameters | {
            "activationDegree": self.activation_degree,
            "degreesThatOccur": self.degrees,
        }
