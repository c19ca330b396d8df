"""Normalised (softmax) self-attention, analytic but not polynomial.

Reference: Henry, Marchetti, Kohn, arXiv:2408.17221, Equation 15: token i attends to token j with weight
S(x_i^T A x_j) / sum_k S(x_i^T A x_k), S(x) = e^x; a temperature is a factor of A. The pairing is the other way round than in
the lightning layer (Equation 1: x_j^T A x_i); we follow each equation as it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass

from m2bridge.families.attention import AttentionNetwork
from m2bridge.families.lightning import DeepLightning


@dataclass(frozen=True, kw_only=True)
class Softmax(AttentionNetwork):
    """A deep network of normalised attention layers.

    Attributes
    ----------
    d, a, t: as for deep lightning attention.
    parametrization: ``weights`` or ``attention``.

    The program runs over floats. There are no coordinates and no ideal: the
    functions do not lie in a finite-dimensional space of polynomials.

    Examples
    --------
    >>> model = Softmax(d=(3, 3, 3), a=(2, 2))
    >>> model.spec, model.knowledge.formula.value
    ('softmax(d=[3,3,3],a=[2,2],t=3)', 25)
    """

    family = "softmax"
    summary = "normalised self-attention; analytic, so it has a dimension but no ideal"
    example = "softmax(d=[3,3,3],a=[2,2],t=3)"
    softmax = True

    d: tuple[int, ...]
    a: tuple[int, ...] = None  # type: ignore[assignment]
    t: int = 3
    parametrization: str = "weights"

    def check(self) -> None:
        super().check()
        self.check_choice("parametrization", self.parametrization, ("weights", "attention"))

    @property
    def lightning(self) -> DeepLightning:
        """The network with the same weights and no normalisation."""
        return DeepLightning(d=self.d, a=self.a, t=self.t, parametrization=self.parametrization)

    @property
    def title(self) -> str:
        sizes = f"d={list(self.d)}, a={list(self.a)}, t={self.t}"
        return f"softmax self-attention by {self.by}, {sizes}"
