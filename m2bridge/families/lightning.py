"""Lightning self-attention, X -> V X X^T A X with A = K^T Q: one layer, and deep networks with heads and skip connections.

Reference: Henry, Marchetti, Kohn, *Geometry of Lightning Self-Attention*, arXiv:2408.17221, Definitions 1 and 2. The printed
sizes of Q_i and K_i in Definition 2 (and with them the exponent in Equation 5) are misprints: Q_i and K_i are a_i x d_{i-1}, so
that there are sum d_{i-1} (2 a_i + d_i) weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb
from typing import Any, ClassVar, Self

import numpy as np

from m2bridge.errors import InputError
from m2bridge.families.attention import AttentionNetwork
from m2bridge.frontends.recording import record_call
from m2bridge.programs.program import Program


class LightningNetwork(AttentionNetwork):
    """What one layer and several have in common: coordinates of polynomial functions."""

    coordinate_system: str
    parametrizations: ClassVar[tuple[str, ...]] = ("weights", "attention", "virtual")

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {**super().defaults, "coordinate_system": self._default_system}

    @property
    def _default_system(self) -> str:
        return "segre" if self.layers == 1 and not self.skip and self.t > 1 else "full"

    def check(self) -> None:
        super().check()
        self.check_choice("parametrization", self.parametrization, self.parametrizations)
        self.check_choice("coordinates", self.coordinate_system, ("segre", "full"))
        virtual = "virtual weights exist for one head in each layer and no skip connections only"
        exist = self.parametrization != "virtual" or not (self.skip or self.multi_head)
        self.need(exist, "parametrization", virtual)
        segre = (
            "Segre coordinates compare two tokens of one layer: they need t >= 2, one layer and no skip connections; "
            "use coordinates=full"
        )
        self.need(self.coordinate_system in (self._default_system, "full"), "coordinates", segre)

    # -- target -------------------------------------------------------------------------------------

    @property
    def coordinate_count(self) -> int:
        d, dp = self.widths[:2]
        return d * dp * comb(d + 1, 2) if self.coordinate_system == "segre" else self.ambient_dim

    @property
    def with_all_coefficients(self) -> Self:
        return replace(self, coordinate_system="full")  # type: ignore[type-var]

    @property
    def coordinate_program(self) -> Program | None:
        """The Segre coordinates; None for all coefficients."""
        return segre_program(self) if self.coordinate_system == "segre" else None

    def tensor_factors(self, weights: Mapping[str, Any]) -> tuple[Any, Any]:
        """A and V of one layer, on which Segre coordinates depend."""
        if self.parametrization == "virtual":
            return weights["M1"], weights["L"]
        return self.attention(weights), weights[self.weight_name("V", 1)]

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        if self.coordinate_system != "segre":
            return super().coordinate_names
        d, dp = self.widths
        pairs = zip(*np.triu_indices(d), strict=True)
        squares = [f"x[{i + 1},2]^2" if i == j else f"x[{i + 1},2]*x[{j + 1},2]" for i, j in pairs]
        places = [(n, m, square) for n in range(dp) for m in range(d) for square in squares]
        return tuple(f"y[{n + 1},1]: x[{m + 1},1]*{square}" for n, m, square in places)

    @property
    def coordinate_description(self) -> str:
        if self.coordinate_system != "segre":
            return super().coordinate_description
        coefficients = "the coefficients of x[m,1]*x[i,2]*x[j,2] in the outputs y[n,1]"
        if self.multi_head:
            return f"{coefficients} (Segre coordinates, Proposition A.5, added up over the heads)"
        return (
            f"{coefficients}, that is of x_i*x_j in the product of the linear forms alpha_m(x) = x^T A e_m and nu_n, row n of V "
            "(Segre coordinates, Proposition A.5)"
        )


@dataclass(frozen=True, kw_only=True)
class Lightning(LightningNetwork):
    """One layer of lightning self-attention.

    Attributes
    ----------
    d, dp: rows of the inputs and of the outputs (dp is the paper's d').
    a: rows of Q and K, so that rk A <= a; d unless given.
    t: number of tokens.
    parametrization: ``weights`` for (Q, K, V), ``attention`` for (A, V) with rk A <= a.
    coordinate_system: ``segre`` for the coordinates of Proposition A.5 (argument ``coordinates`` of the spec), ``full`` for
        all coefficients of all outputs; segre unless t = 1, where it does not determine the function.

    Examples
    --------
    >>> model = Lightning(d=2, dp=1)
    >>> model.spec, model.parameter_count, model.coordinate_count, model.knowledge.formula.value
    ('lightning(d=2,dp=1,a=2,t=2)', 10, 6, 5)
    """

    family = "lightning"
    summary = "one layer of lightning self-attention, V X X^T A X"
    example = "lightning(d=2,dp=1,a=2,t=2)"
    m2_names: ClassVar[Mapping[str, str]] = {"coordinate_system": "coordinateSystem"}
    numbered = False
    parametrizations = ("weights", "attention")

    d: int
    dp: int
    a: int = None  # type: ignore[assignment]
    t: int = 2
    parametrization: str = "weights"
    coordinate_system: str = None  # type: ignore[assignment]

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {"a": self.d, "coordinate_system": self._default_system}

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.d, self.dp)

    @property
    def ranks(self) -> tuple[int, ...]:
        return (self.a,)

    @property
    def leanest(self) -> Lightning:
        return replace(self, parametrization="attention") if self.a >= self.d else self.free

    @property
    def attention_rank(self) -> int:
        """The rank of a generic attention matrix, min(a, d)."""
        return min(self.a, self.d)

    @property
    def title(self) -> str:
        return f"lightning self-attention by {self.by}, d={self.d}, d'={self.dp}, a={self.a}, t={self.t}"


@dataclass(frozen=True, kw_only=True)
class DeepLightning(LightningNetwork):
    """A composition of lightning attention layers.

    Attributes
    ----------
    d: widths d_0, ..., d_l.
    a: rows of Q_i and K_i in each layer; d_{i-1} unless given.
    t: number of tokens.
    heads: number of heads in each layer, whose outputs are added; 1 unless given.
    skip: whether each layer adds its input to its output; needs equal widths.
    parametrization: ``weights`` (Q_i, K_i, V_i), ``attention`` (A_i, V_i), or ``virtual`` (M_i, L) of Equation 8.
    coordinate_system: ``segre`` (one layer without skip connections) or ``full``.

    Examples
    --------
    >>> model = DeepLightning(d=(3, 3, 3), a=(2, 2))
    >>> model.spec, model.parameter_count, model.knowledge.formula.value
    ('deep-lightning(d=[3,3,3],a=[2,2],t=3)', 42, 23)
    """

    family = "deep-lightning"
    summary = "layers of lightning self-attention; heads=, skip=, parametrization="
    example = "deep-lightning(d=[3,3,3],a=[2,2],t=3)"

    d: tuple[int, ...]
    a: tuple[int, ...] = None  # type: ignore[assignment]
    t: int = 3
    heads: tuple[int, ...] = None  # type: ignore[assignment]
    skip: bool = False
    parametrization: str = "weights"
    coordinate_system: str = None  # type: ignore[assignment]

    @property
    def written(self) -> dict[str, Any]:
        same = {"heads": self.heads[0]} if self.multi_head and len(set(self.heads)) == 1 else {}
        return super().written | same

    @property
    def title(self) -> str:
        heads = f", heads={list(self.heads)}" if self.multi_head else ""
        sizes = f"d={list(self.d)}, a={list(self.a)}, t={self.t}{heads}"
        skip = " with skip connections" if self.skip else ""
        return f"deep lightning self-attention by {self.by}, {sizes}{skip}"

    @property
    def m2_parameters(self) -> dict[str, object]:
        if self.parametrization == "virtual" and self.constrained:
            raise InputError(
                f"{self}: virtual weights through narrow layers have no simple equations;"
                " use parametrization=weights, which has the same image"
            )
        return super().m2_parameters


# -- Segre coordinates of one layer (Proposition A.5) -----------------------------------------------------
# The coefficients of x_(m,1) x_(i,2) x_(j,2) in the first token's output are the products of the m-th column of A with the
# n-th row of V in Sym2. For t >= 2 all other coefficients are linear in them. Order: n, then m, then i <= j lexicographically.


def segre_coordinates(A: Any, V: Any) -> Any:
    """The products of columns of A with rows of V in Sym2: axes are n, m and (i, j), i <= j."""
    i, j = np.triu_indices(A.shape[-1])
    columns = A.T  # the m-th row is the linear form alpha_m
    straight = columns[None, :, i] * V[:, None, j]
    crossed = columns[None, :, j] * V[:, None, i]
    return straight + crossed * (i < j).astype(np.int64)


@lru_cache(maxsize=128)
def segre_program(model: LightningNetwork) -> Program:
    """The program of the Segre coordinates of a model, a vector; heads (a leading axis) are added up."""

    def coordinates(weights: Mapping[str, Any], _: Any) -> Any:
        A, V = model.tensor_factors(weights)
        if len(A.shape) == 2:
            return segre_coordinates(A, V).reshape(-1)
        return sum(segre_coordinates(A[h], V[h]) for h in range(A.shape[0])).reshape(-1)

    return record_call(coordinates, model.parameters).program
