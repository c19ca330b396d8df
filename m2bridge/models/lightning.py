"""One layer of lightning self-attention, X -> V X X^T A X with A = K^T Q.

Reference: Henry, Marchetti, Kohn, *Geometry of Lightning Self-Attention*, arXiv:2408.17221, Definition 1 and
Equation 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import SpecError
from m2bridge.linear.mod import Mod
from m2bridge.models.attention import AttentionSizes, attention_gauge, lightning_point
from m2bridge.models.base import Formula, Shape, Symmetry
from m2bridge.models.gradings import attention_characters, coefficient_rows, output_rows, parameter_rows
from m2bridge.models.network import NetworkModel
from m2bridge.models.segre import segre_count, segre_grading, segre_names, segre_program
from m2bridge.models.spec import Arguments, check_choice, check_sizes, written
from m2bridge.programs.points import NOTHING_HELD, Held
from m2bridge.programs.program import Program

PAPER = "Henry, Marchetti, Kohn, arXiv:2408.17221"
PARAMETRIZATIONS = ("weights", "attention")
COORDINATE_SYSTEMS = ("segre", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lightning(NetworkModel):
    """One layer of lightning self-attention.

    Attributes
    ----------
    d, dp: rows of the inputs and of the outputs (dp is the paper's d').
    a: rows of Q and K, so that rk A <= a; d unless given.
    t: number of tokens.
    parametrization: ``weights`` for (Q, K, V), ``attention`` for (A, V) with rk A <= a.
    coordinate_system: ``segre`` for the coordinates of Proposition A.5 (argument ``coordinates`` of the
        spec), ``full`` for all coefficients of all outputs; segre unless t = 1, where it does not determine
        the function.

    Examples
    --------
    >>> model = Lightning(d=2, dp=1)
    >>> model.spec, model.parameter_count, model.coordinate_count, model.formula.value
    ('lightning(d=2,dp=1,a=2,t=2)', 10, 6, 5)
    """

    family: ClassVar[str] = "lightning"

    d: int
    dp: int
    a: int = None  # type: ignore[assignment]
    t: int = 2
    parametrization: str = "weights"
    coordinate_system: str = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.a is None:
            object.__setattr__(self, "a", self.d)
        check_sizes(self.family, d=self.d, dp=self.dp, a=self.a, t=self.t)
        check_choice(self.family, "parametrization", self.parametrization, PARAMETRIZATIONS)
        if self.coordinate_system is None:
            object.__setattr__(self, "coordinate_system", "segre" if self.t > 1 else "full")
        check_choice(self.family, "coordinates", self.coordinate_system, COORDINATE_SYSTEMS)
        if self.t == 1 and self.coordinate_system == "segre":
            raise SpecError(
                "lightning: Segre coordinates compare two tokens and need t >= 2; use coordinates=full",
                argument="coordinates",
            )

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Lightning:
        arguments.only("d", "dp", "a", "t", "parametrization", "coordinates")
        return cls(
            d=arguments.integer("d"),
            dp=arguments.integer("dp"),
            a=arguments.optional("a"),  # type: ignore[arg-type]
            t=arguments.integer("t", 2),
            parametrization=arguments.word("parametrization", PARAMETRIZATIONS) or "weights",
            coordinate_system=arguments.word("coordinates", COORDINATE_SYSTEMS),  # type: ignore[arg-type]
        )

    @property
    def spec(self) -> str:
        default = "segre" if self.t > 1 else "full"
        return written(
            self.family,
            d=self.d,
            dp=self.dp,
            a=self.a,
            t=self.t,
            parametrization=None if self.parametrization == "weights" else self.parametrization,
            coordinates=None if self.coordinate_system == default else self.coordinate_system,
        )

    @property
    def title(self) -> str:
        by = "(Q, K, V)" if self.parametrization == "weights" else "(A, V)"
        return f"lightning self-attention by {by}, d={self.d}, d'={self.dp}, a={self.a}, t={self.t}"

    # -- source ------------------------------------------------------------------------------------------

    @property
    def attention_rank(self) -> int:
        """The rank of a generic attention matrix, min(a, d)."""
        return min(self.a, self.d)

    @property
    def parameters(self) -> dict[str, Shape]:
        if self.parametrization == "attention":
            return {"A": (self.d, self.d), "V": (self.dp, self.d)}
        return {"Q": (self.a, self.d), "K": (self.a, self.d), "V": (self.dp, self.d)}

    @property
    def parameter_dim(self) -> int:
        """Dimension of the space of (Q, K, V), or of {rk A <= a} times the space of V."""
        if self.parametrization == "weights":
            return self.parameter_count
        return self.attention_rank * (2 * self.d - self.attention_rank) + self.dp * self.d

    @property
    def free(self) -> Lightning:
        constrained = self.parametrization == "attention" and self.a < self.d
        return replace(self, parametrization="weights") if constrained else self

    def draw_weights(self, rng: np.random.Generator, p: int) -> dict[str, np.ndarray]:
        if self.free is self:
            return NetworkModel.draw_weights(self, rng, p)
        drawn = self.free.draw_weights(rng, p)
        return {"A": _attention_mod(drawn["Q"], drawn["K"], p), "V": drawn["V"]}

    def draw_real_weights(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        if self.free is self:
            return NetworkModel.draw_real_weights(self, rng)
        drawn = self.free.draw_real_weights(rng)
        return {"A": drawn["K"].T @ drawn["Q"], "V": drawn["V"]}

    # -- target ------------------------------------------------------------------------------------------

    @property
    def input_shape(self) -> Shape:
        return (self.d, self.t)

    @property
    def output_shape(self) -> Shape:
        return (self.dp, self.t)

    @property
    def degrees(self) -> tuple[int, ...]:
        return (3,)

    def attention(self, weights: Mapping[str, Any]) -> Any:
        """The attention matrix A = K^T Q (Equation 3)."""
        return weights["A"] if self.parametrization == "attention" else weights["K"].T @ weights["Q"]

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        X, V = inputs, weights["V"]
        if self.parametrization == "attention":
            return V @ (X @ (X.T @ (weights["A"] @ X)))
        return V @ (X @ ((weights["K"] @ X).T @ (weights["Q"] @ X)))

    @property
    def coordinate_count(self) -> int:
        if self.coordinate_system == "segre":
            return segre_count(self.d, self.dp)
        return self.ambient_dim

    @property
    def coordinate_program(self) -> Program | None:
        """Coefficients of x_(m,1) x_(i,2) x_(j,2), i <= j, in the first token's output; None for all coefficients.

        These are the products of the m-th column of A with the n-th row of V in Sym2, ordered by n, then m, then (i, j)
        lexicographically.
        """
        return segre_program(self, self.attention, "V") if self.coordinate_system == "segre" else None

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        if self.coordinate_system == "full":
            return NetworkModel.coordinate_names.fget(self)  # type: ignore[attr-defined,no-any-return]
        return segre_names(self.d, self.dp)

    # -- the Macaulay2 twin ------------------------------------------------------------------------------

    @property
    def m2_partial(self) -> str:
        return "_lightning"

    @property
    def m2_parameters(self) -> dict[str, object]:
        return {
            "d": self.d,
            "dp": self.dp,
            "a": self.a,
            "t": self.t,
            "parametrization": self.parametrization,
            "coordinateSystem": self.coordinate_system,
        }

    # -- what is known -----------------------------------------------------------------------------------

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        scaled = "A" if self.parametrization == "attention" else "Q"
        scaling = Symmetry(
            name="(s A, V / s)",
            citation=f"{PAPER}, Theorem 3.2",
            kind="scaling",
            size=1,
            axes={scaled: (1,), "V": (-1,)},
            shapes=self.parameters,
        )
        if self.parametrization == "attention":
            return (scaling,)
        change = Symmetry(
            name="(C^-T Q, C K)",
            citation=f"{PAPER}, Lemma 3.1",
            kind="gl",
            size=self.a,
            axes={"Q": (-1, 0), "K": (1, 0)},
            shapes=self.parameters,
        )
        return change, scaling

    @property
    def gauge(self) -> Held:
        return (
            attention_gauge((self.d, self.dp), (self.a,), numbered=False)
            if "Q" in self.parameters
            else NOTHING_HELD
        )

    @property
    def attention_sizes(self) -> AttentionSizes:
        """Sizes of the network by (Q, K, V) with the same image."""
        return AttentionSizes((self.d, self.dp), (self.a,), self.t, numbered=False)

    def samples_needed(self) -> int | None:
        return (
            self.attention_sizes.samples_needed(self.gauge, analytic=False)
            if self.parametrization == "weights"
            else None
        )

    def real_point(self, samples: int, seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        if self.parametrization != "weights":
            return NetworkModel.real_point(self, samples, seed)
        weights, inputs = lightning_point(self.attention_sizes, self.gauge, samples, seed)
        return weights, {"X": inputs}

    @property
    def grading(self) -> np.ndarray:
        """Torus weights of the coordinates: rows of V's image, then scalings of the inputs.

        Segre: A -> g A h, V -> k V g^T for diagonal g, h, k (rows: g, h, k). Full: X -> g X and k on the
        outputs (rows: g, k).
        """
        if self.coordinate_system == "segre":
            return segre_grading(self.d, self.dp)
        shape = (self.monomials, self.input_shape, self.dp, self.t)
        return np.concatenate([coefficient_rows(*shape), output_rows(self.monomials, self.dp, self.t)])

    @property
    def parameter_grading(self) -> np.ndarray:
        names = {letter: letter for letter in self.parameters if letter != "V"}
        segre = self.coordinate_system == "segre"
        none = np.zeros(self.d, dtype=np.int64)
        rows = [
            attention_characters(names, e, none if segre else e) | {"V": e[None, :]}
            for e in np.eye(self.d, dtype=np.int64)
        ]
        if segre:
            rows += [attention_characters(names, none, e) for e in np.eye(self.d, dtype=np.int64)]
        rows += [{"V": e[:, None]} for e in np.eye(self.dp, dtype=np.int64)]
        return parameter_rows(self.parameters, rows)

    @property
    def formula(self) -> Formula:
        """Dimension by Corollary 3.3 (Equation 7)."""
        hypotheses = (
            ("t >= 2", self.t >= 2),
            ("d, d' >= 2 or d, a >= 2", self.d >= 2 and (self.dp >= 2 or self.a >= 2)),
        )
        r = self.attention_rank
        value = 2 * r * self.d - r * r + self.d * self.dp - 1
        holds = all(truth for _, truth in hypotheses)
        return Formula(
            value=value if holds else None,
            citation=f"{PAPER}, Corollary 3.3, Equation 7",
            hypotheses=hypotheses,
        )


def _attention_mod(Q: np.ndarray, K: np.ndarray, p: int) -> np.ndarray:
    return np.asarray((Mod(K, p).mT @ Mod(Q, p)).values)
