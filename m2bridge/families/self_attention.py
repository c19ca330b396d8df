"""Networks of self-attention, X -> sum over heads of V X w(X^T A X) with A = K^T Q in each layer: one class with options.

The families ``lightning``, ``deep-lightning``, ``softmax`` and ``attention`` are sets of its options (`attention_options`).

References: Henry, Marchetti, Kohn, *Geometry of Lightning Self-Attention*, arXiv:2408.17221. Lightning: Definitions 1 and 2. The
printed sizes of Q_i and K_i in Definition 2 (and with them the exponent in Equation 5) are misprints: Q_i and K_i are
a_i x d_{i-1}, so that there are sum d_{i-1} (2 a_i + d_i) weights. Softmax: Equation 15, token i attends to token j with weight
S(x_i^T A x_j) / sum_k S(x_i^T A x_k), S(x) = e^x; a temperature is a factor of A. The order of the two tokens is the opposite of
that in the lightning layer (Equation 1: x_j^T A x_i); the code follows each equation as it is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import Any

from m2bridge.errors import InputError, SpecError
from m2bridge.families.attention import HIGHEST_DEGREE, AttentionNetwork
from m2bridge.families.attention_knowledge import attention_knowledge
from m2bridge.families.base import Knowledge
from m2bridge.families.segre import segre_description, segre_names, segre_program
from m2bridge.programs.program import Program


@dataclass(frozen=True, kw_only=True)
class Attention(AttentionNetwork):
    """A network of self-attention layers.

    Attributes
    ----------
    widths: rows d_0, ..., d_l of the inputs and of the output of each layer.
    ranks: rows a_i of Q_i and K_i in each layer, so that rk A_i <= a_i; d_{i-1} unless given.
    t: number of tokens.
    heads: number of heads in each layer, whose outputs are added; 1 unless given.
    power: each score is raised to this power, so that a layer has degree 2 r + 1.
    skip: whether each layer adds its input to its output; needs equal widths.
    causal: whether token i attends to the tokens 1, ..., i only.
    tied: whether Q = K.
    positions: whether a matrix P of weights is added to the input.
    softmax: whether the scores are normalised exponentials; the network is then analytic, and has no coordinates.
    parametrization: ``weights`` for (Q_i, K_i, V_i), ``attention`` for (A_i, V_i) with rk A_i <= a_i, or ``virtual`` for (M_i, L)
        of Equation 8.
    coordinate_system: ``segre`` for the coordinates of Proposition A.5 (argument ``coordinates`` of the spec), ``full`` for all
        coefficients of all outputs; segre for one layer unless t = 1, where it does not determine the function.
    numbered: whether names of weights end with the number of their layer; not in the family ``lightning``.

    Examples
    --------
    >>> model = Attention(widths=(3, 2), ranks=(2,), t=2, causal=True)
    >>> model.spec, model.parameter_count, model.knowledge.formula.value
    ('attention(d=[3,2],a=[2],t=2,causal=true)', 18, 13)
    """

    widths: tuple[int, ...]
    ranks: tuple[int, ...] = None  # type: ignore[assignment]
    t: int = 3
    heads: tuple[int, ...] = None  # type: ignore[assignment]
    power: int = 1
    skip: bool = False
    causal: bool = False
    tied: bool = False
    positions: bool = False
    softmax: bool = False
    parametrization: str = "weights"
    coordinate_system: str = None  # type: ignore[assignment]
    numbered: bool = True

    # -- the spec -----------------------------------------------------------------------------------

    @property
    def family(self) -> str:  # type: ignore[override]
        """Return the name of the family with the fewest options that contains this network."""
        if not self.numbered:
            return "lightning"
        if not self.is_plain:
            return "attention"
        return "softmax" if self.softmax else "deep-lightning"

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {
            "ranks": self.widths[:-1],
            "heads": (1,) * self.layers,
            "coordinate_system": self._default_system,
        }

    @property
    def _default_system(self) -> str:
        segre = self.layers == 1 and self.t > 1 and self.is_plain and not (self.skip or self.softmax)
        return "segre" if segre else "full"

    def argument_name(self, field: str, index: int = 0) -> str:
        if field == "widths" and not self.numbered and index:
            return "dp"
        return {"widths": "d", "ranks": "a", "power": "r"}.get(field) or super().argument_name(field)

    def check(self) -> None:
        self.need(self.power == 1 or not self.softmax, "r", "r is not available with softmax")
        super().check()
        if self.is_plain:
            self.check_choice("parametrization", self.parametrization, self._parametrizations)
        else:
            degree = (2 * self.power + 1) ** self.layers
            if not self.softmax and degree > HIGHEST_DEGREE:
                raise SpecError(
                    f"the degree {degree} of the functions is too large (at most {HIGHEST_DEGREE})"
                )
            needed = "masks, tied weights, positions and powers of scores need parametrization=weights"
            self.need(self.parametrization == "weights", "parametrization", needed)
        self._check_coordinates()

    @property
    def _parametrizations(self) -> tuple[str, ...]:
        deep = self.numbered and not self.softmax
        return ("weights", "attention", "virtual") if deep else ("weights", "attention")

    def _check_coordinates(self) -> None:
        self.check_choice("coordinates", self.coordinate_system, ("segre", "full"))
        virtual = "virtual weights require one head per layer and no skip connections"
        exist = self.parametrization != "virtual" or not (self.skip or self.multi_head)
        self.need(exist, "parametrization", virtual)
        segre = "Segre coordinates require t >= 2, one layer and no skip connections; use coordinates=full"
        self.need(self.coordinate_system in (self._default_system, "full"), "coordinates", segre)
        plain = self.is_plain and not (self.softmax or self.skip or self.multi_head)
        alone = self.numbered or (plain and self.layers == 1)
        self.need(alone, "d", "unnumbered weights require a single layer of lightning attention")

    @property
    def written(self) -> dict[str, Any]:
        default = self.defaults
        common = {
            "t": self.t,
            "parametrization": self.parametrization if self.parametrization != "weights" else None,
            "coordinates": self._unless("coordinate_system"),
        }
        if not self.numbered:
            return {"d": self.d, "dp": self.dp, "a": self.a, **common}
        sizes = {"d": self.widths, "a": self.ranks, "t": self.t, "heads": self._unless("heads")}
        if self.family != "attention":
            equal = self.heads != default["heads"] and len(set(self.heads)) == 1
            heads = {"heads": self.heads[0]} if equal else {}
            return {**sizes, **heads, "skip": self.skip or None, **common}
        options = {name: getattr(self, name) or None for name in _OPTIONS}
        return {**sizes, "r": self.power if self.power > 1 else None, **options}

    def _unless(self, field: str) -> Any:
        """Return the value of a field; None for its default."""
        value = getattr(self, field)
        return None if value == self.defaults[field] else value

    @property
    def title(self) -> str:
        sizes = f"d={list(self.widths)}, a={list(self.ranks)}, t={self.t}"
        heads = f", heads={list(self.heads)}"
        if not self.numbered:
            sizes = f"d={self.d}, d'={self.dp}, a={self.a}, t={self.t}"
            return f"lightning self-attention by {self.by}, {sizes}"
        if self.family == "softmax":
            return f"softmax self-attention by {self.by}, {sizes}"
        if self.family == "deep-lightning":
            skip = " with skip connections" if self.skip else ""
            return (
                f"deep lightning self-attention by {self.by}, {sizes}{heads if self.multi_head else ''}{skip}"
            )
        kind = "".join(f"{word} " for word in ("causal", "softmax") if getattr(self, word))
        options = {
            f" of degree {2 * self.power + 1}": self.power > 1,
            " with Q = K": self.tied,
            " with positions": self.positions,
            " with skip connections": self.skip,
        }
        suffix = ",".join(text for text, present in options.items() if present)
        return f"{kind}self-attention{suffix}, {sizes}{heads}"

    @property
    def m2_parameters(self) -> dict[str, object]:
        self._must_be_polynomial()
        if not self.constraints.has_equations:
            raise InputError(
                f"{self}: virtual weights through narrow layers have no simple equations;"
                " use parametrization=weights, which has the same image"
            )
        system = {"parametrization": self.parametrization, "coordinateSystem": self.coordinate_system}
        if not self.numbered:
            return {"d": self.d, "dp": self.dp, "a": self.a, "t": self.t, **system}
        sizes = {"widths": self.widths, "ranks": self.ranks, "t": self.t, "heads": self.heads}
        if self.is_plain:
            return {**sizes, "skip": self.skip, **system}
        options = {"causal": self.causal, "tied": self.tied, "withPositions": self.positions}
        return {**sizes, "r": self.power, "skip": self.skip, **options, "degreesThatOccur": self.degrees}

    # -- one layer ----------------------------------------------------------------------------------

    @property
    def d(self) -> int:
        """Return rows of the inputs."""
        return self.widths[0]

    @property
    def dp(self) -> int:
        """Return rows of the outputs, d' in the paper."""
        return self.widths[-1]

    @property
    def a(self) -> int:
        """Return rows of Q and K in the first layer."""
        return self.ranks[0]

    @property
    def attention_rank(self) -> int:
        """Return the rank of a generic attention matrix of the first layer, min(a, d)."""
        return min(self.a, self.d)

    def with_rank(self, a: int) -> Attention:
        """Return the layer with a rows of Q and K."""
        return replace(self, ranks=(a,) * self.layers)

    @property
    def leanest(self) -> Attention:
        if self.numbered:
            return self.by_weights if self.constrained else self
        return self.by_attention if self.a >= self.d else self.by_weights

    # -- target -------------------------------------------------------------------------------------

    @property
    def coordinate_count(self) -> int:
        d, dp = self.widths[:2]
        return d * dp * comb(d + 1, 2) if self.coordinate_system == "segre" else self.ambient_dim

    @property
    def with_all_coefficients(self) -> Attention:
        return replace(self, coordinate_system="full")

    @property
    def coordinate_program(self) -> Program | None:
        """Return the Segre coordinates; None for all coefficients."""
        return segre_program(self) if self.coordinate_system == "segre" else None

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        return segre_names(self.d, self.dp) if self.coordinate_system == "segre" else super().coordinate_names

    @property
    def coordinate_description(self) -> str:
        if self.coordinate_system != "segre":
            return super().coordinate_description
        return segre_description(multi_head=self.multi_head)

    # -- knowledge ----------------------------------------------------------------------------------

    @cached_property
    def knowledge(self) -> Knowledge:
        return attention_knowledge(self)


_OPTIONS = ("skip", "causal", "tied", "positions", "softmax")
"""Options of the family ``attention``, in the order of the spec."""
