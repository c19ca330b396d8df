"""Lightning self-attention, X -> V X X^T A X with A = K^T Q: one layer, and deep networks with heads and skip connections.

Reference: Henry, Marchetti, Kohn, *Geometry of Lightning Self-Attention*, arXiv:2408.17221, Definitions 1 and 2. The printed
sizes of Q_i and K_i in Definition 2 (and with them the exponent in Equation 5) are misprints: Q_i and K_i are a_i x d_{i-1}, so
that there are sum d_{i-1} (2 a_i + d_i) weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb, sqrt
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import InputError
from m2bridge.families.attention import (
    PAPER,
    Attention,
    attention_dim,
    bottleneck_hypotheses,
    bottleneck_value,
    coordinates_each,
    layer_dim,
    normal_matrix,
    one_layer,
)
from m2bridge.families.base import Formula, known
from m2bridge.frontends.recording import record_call
from m2bridge.programs.program import Program


class LightningNetwork(Attention):
    """What one layer and several have in common: coordinates of polynomial functions, and what is known of them."""

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

    # -- what is known ------------------------------------------------------------------------------

    def real_point(self, samples: int, seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Real weights on the slice and inputs at which the Jacobian of a lightning network is well conditioned.

        Lightning layers are cubic in their inputs: unit tokens keep all samples at one scale, and tokens are brought back to
        size one after each layer by scaling V, which any slice with V free allows.
        """
        if self.attention_sizes is not self:
            return super().real_point(samples, seed)
        rng = np.random.default_rng([seed, 7])
        d, shapes, held = self.widths, self.parameters, self.gauge
        inputs = rng.normal(size=(samples, d[0], self.t))
        inputs /= np.linalg.norm(inputs, axis=(-1, -2), keepdims=True) / sqrt(d[0])
        weights: dict[str, np.ndarray] = {}
        x = inputs
        for k in self.layer_numbers:
            names = [self.weight_name(letter, k) for letter in "QKV"]
            query, key, value = (held.place(name, normal_matrix(shapes[name], rng)) for name in names)
            if k == self.layers and d[-1] >= d[-2]:
                value = np.eye(d[-1], d[-2])
            tokens = x @ (np.swapaxes(key @ x, -1, -2) @ (query @ x))
            if k < self.layers:
                value = value / np.sqrt(np.mean((value @ tokens) ** 2))
            weights |= dict(zip(names, (query, key, value), strict=True))
            x = value @ tokens
        return weights, {"X": inputs}

    @property
    def formula(self) -> Formula | None:
        """Equation 7 for one layer, Equation 14 for more; None with several heads or skip connections.

        Equation 14 leaves delta undetermined for one layer, so it is not used there.
        """
        if self.skip or self.multi_head:
            return None
        d, a, t = self.widths, self.ranks, self.t
        if self.layers == 1:
            value, citation = (
                attention_dim(a[0], d[0]) + d[0] * d[1] - 1,
                f"{PAPER}, Corollary 3.3, Equation 7",
            )
            return one_layer(value, citation, d[0], d[1], a[0], ("t >= 2", t >= 2))
        return known(
            bottleneck_value(d, a) - self.layers,
            f"{PAPER}, Corollary 3.8, Equation 14",
            ("t >= 3", t >= 3),
            ("every a_i >= 2", min(a) >= 2),
            *bottleneck_hypotheses(d),
            ("delta >= 2", d[1] >= 2),
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
    >>> model.spec, model.parameter_count, model.coordinate_count, model.formula.value
    ('lightning(d=2,dp=1,a=2,t=2)', 10, 6, 5)
    """

    family = "lightning"
    summary = "one layer of lightning self-attention, V X X^T A X"
    example = "lightning(d=2,dp=1,a=2,t=2)"
    m2_names: ClassVar[Mapping[str, str]] = {"coordinate_system": "coordinateSystem"}
    numbered = False
    scaling = f"{PAPER}, Theorem 3.2"
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
    def closure_degree(self) -> Formula:
        """In closed form.

        The image is that of PD_a x P^(dd'-1), PD_a the projective variety of d x d matrices of rank <= a, under the map given by
        the bilinear products alpha_m nu_n. It has no base points (a product of non-zero linear forms is not zero), so it is
        finite and pulls O(1) back to O(1,1): degree of the map times degree of the image = (h + k)^n = C(n, dd'-1) deg D_a with
        n = dim PD_a + dd' - 1. The map is birational by unique factorization, but for a = d' = 1, d >= 2, where the two linear
        forms can be exchanged and it has degree 2. Holds for t >= 2, where the Segre coordinates determine the function.
        """
        d, dp, a = self.d, self.dp, self.attention_rank
        n = a * (2 * d - a) - 1 + d * dp - 1
        total = determinantal_degree(d, a) * comb(n, d * dp - 1)
        value = total // 2 if a == 1 and dp == 1 and d >= 2 else total
        return known(value, "intersection number of O(1,1) on PD_a x P^(dd'-1)", ("t >= 2", self.t >= 2))

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
    >>> model.spec, model.parameter_count, model.formula.value
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

    @property
    def dimension_bound(self) -> Formula:
        """The sum over the layers of what a layer's function can depend on, minus the changes of basis between layers.

        The outputs of a layer are combinations of the H d rows of X X^T A_h X, and have so many coordinates each as
        :func:`coordinates_each` says. So they span at most e <= d' dimensions, and without skip connections a network with these
        widths has the same functions. GL(e) between two layers then acts on the functions of both and not on their composition.
        At least min(e, d min(H, d)) outputs of some layer are independent (A_h = u_h^T u_h for unit vectors u_h), so of a
        generic one: its orbits have dimension e times that number or more. After one head with one row of Q the outputs have
        rank one, and what follows acts on them as on one token.
        """
        total, d, t = 0, self.d[0], self.t
        for i, (_, dp, a, heads) in zip(self.layer_numbers, self.layer_sizes, strict=True):
            inside = i < self.layers and not self.skip
            e = min(dp, heads * d, coordinates_each(d, t)) if inside else dp
            total += layer_dim(d, e, a, heads, t)
            total -= e * min(e, d * min(heads, d)) if inside else 0
            if inside and heads == min(a, d) == 1:  # tokens are multiples of one, here and after
                t = 1
            d = e
        return known(total, "symmetries and coordinates of each layer, changes of basis between them")


# -- Segre coordinates of one layer (Proposition A.5) -----------------------------------------------------
# The coefficients of x_(m,1) x_(i,2) x_(j,2) in the first token's output are the products of the m-th column of A with the
# n-th row of V in Sym2. For t >= 2 all other coefficients are linear in them. Order: n, then m, then i <= j lexicographically.


def determinantal_degree(d: int, a: int) -> int:
    """The degree of the variety of d x d matrices of rank at most a (Harris, *Algebraic Geometry*, Example 19.10).

    >>> determinantal_degree(3, 2), determinantal_degree(3, 1), determinantal_degree(4, 2)
    (3, 6, 20)
    """
    numerator = denominator = 1
    for i in range(d - min(a, d)):
        numerator *= comb(d + i, a)
        denominator *= comb(a + i, a)
    return numerator // denominator


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
