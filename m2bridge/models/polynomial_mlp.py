"""Perceptrons with a polynomial activation s(x) = c_0 + c_1 x + ... + c_k x^k, its coefficients given or learned.

Learned coefficients are weights c1_0, c1_1, ..., those of layer i shared by its neurons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from m2bridge.errors import SpecError
from m2bridge.models.base import Shape, Symmetry
from m2bridge.models.network import NetworkModel
from m2bridge.models.spec import check_degree, check_sizes, written


@dataclass(frozen=True, kw_only=True)
class PolynomialMLP(NetworkModel):
    """x -> W_l s(... s(W_1 x + b_1) ...) + b_l; the biases only if `bias`.

    Attributes
    ----------
    widths: d_0, ..., d_l. coefficients: the integers c_0, ..., c_k. degree: k, when the coefficients are weights.

    Examples
    --------
    >>> PolynomialMLP(widths=(1, 2, 1), degree=2).parameters
    {'W1': (2, 1), 'c1_0': (1,), 'c1_1': (1,), 'c1_2': (1,), 'W2': (1, 2)}
    """

    family: ClassVar[str] = "polynomial-mlp"
    m2_partial = "_polynomial_mlp"
    summary: ClassVar[str] = (
        "perceptron with a polynomial activation: coefficients=[0,1,1] for x + x^2, or degree=2 to learn them; bias="
    )
    example: ClassVar[str] = "polynomial-mlp(widths=[2,3,1],coefficients=[0,1,1])"

    widths: tuple[int, ...]
    coefficients: tuple[int, ...] = ()
    degree: int = None  # type: ignore[assignment]
    bias: bool = False

    def __post_init__(self) -> None:
        given = bool(self.coefficients)
        if given == (self.degree is not None):
            raise SpecError(
                "polynomial-mlp: give coefficients=[c_0,c_1,...], or degree= for learned ones",
                argument="degree",
            )
        if given:
            top = max((k for k, c in enumerate(self.coefficients) if c), default=0)
            if top < 1 or top + 1 < len(self.coefficients):
                raise SpecError(
                    "polynomial-mlp: the last of the coefficients c_0, ..., c_k is not zero, and k >= 1",
                    argument="coefficients",
                )
            check_sizes(self.family, coefficients=tuple(abs(c) or 1 for c in self.coefficients))
        check_sizes(self.family, widths=self.widths, degree=self.k)
        if len(self.widths) < 2:
            raise SpecError("polynomial-mlp: widths lists at least two widths", argument="widths")
        check_degree(self.family, self.k, self.layers)

    @property
    def k(self) -> int:
        """The degree of the activation."""
        return len(self.coefficients) - 1 if self.coefficients else self.degree

    @property
    def layers(self) -> int:
        return len(self.widths) - 1

    @property
    def spec(self) -> str:
        given, bias = self.coefficients or None, self.bias or None
        return written(self.family, widths=self.widths, coefficients=given, degree=self.degree, bias=bias)

    @property
    def title(self) -> str:
        kind = f"coefficients {list(self.coefficients)}" if self.coefficients else "learned coefficients"
        biases = ", with biases" if self.bias else ""
        return f"perceptron, widths {list(self.widths)}, activation of degree {self.k}, {kind}{biases}"

    @property
    def parameters(self) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {}
        for i in range(1, self.layers + 1):
            shapes[f"W{i}"] = (self.widths[i], self.widths[i - 1])
            if self.bias:
                shapes[f"b{i}"] = (self.widths[i],)
            if i < self.layers and not self.coefficients:
                shapes |= {f"c{i}_{j}": (1,) for j in range(self.k + 1)}
        return shapes

    @property
    def input_shape(self) -> Shape:
        return (self.widths[0],)

    @property
    def output_shape(self) -> Shape:
        return (self.widths[-1],)

    @property
    def degrees(self) -> tuple[int, ...]:
        top = self.k ** (self.layers - 1)
        occurring = [j for j, c in enumerate(self.coefficients) if c]
        if self.layers == 2 and occurring and not self.bias:
            return tuple(occurring)
        return tuple(range(top + 1)) if self.layers > 1 or self.bias else (1,)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        x = inputs
        for i in range(1, self.layers + 1):
            x = weights[f"W{i}"] @ x
            x = x + weights[f"b{i}"] if self.bias else x
            if i < self.layers:
                c = self.coefficients or [weights[f"c{i}_{j}"] for j in range(self.k + 1)]
                x = sum(c[j] * x**j for j in range(1, self.k + 1)) + c[0]
        return x

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {
            "widths": self.widths,
            "givenCoefficients": self.coefficients,
            "activationDegree": self.k,
            "withBias": self.bias,
            "degreesThatOccur": self.degrees,
        }

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """With learned coefficients: s(x) -> s(x / u) for the neurons of a layer, and s -> u s against the next matrix."""
        if self.coefficients:
            return ()
        found = []
        for i in range(1, self.layers):
            inner = {f"W{i}": (1,)} | ({f"b{i}": (1,)} if self.bias else {})
            moved = {f"c{i}_{j}": (-j,) for j in range(1, self.k + 1)}
            outer = {f"c{i}_{j}": (1,) for j in range(self.k + 1)} | {f"W{i + 1}": (-1,)}
            for name, axes in (("argument", inner | moved), ("value", outer)):
                found.append(
                    Symmetry(
                        name=f"scaling of the {name} of the activation of layer {i}",
                        citation="substitution",
                        kind="scaling",
                        size=1,
                        axes=axes,
                        shapes=self.parameters,
                    )
                )
        return tuple(found)
