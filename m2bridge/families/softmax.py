"""Normalised (softmax) self-attention, analytic but not polynomial.

Reference: Henry, Marchetti, Kohn, arXiv:2408.17221, Equation 15: token i attends to token j with weight
S(x_i^T A x_j) / sum_k S(x_i^T A x_k), S(x) = e^x; a temperature is a factor of A. The pairing is the other way round than in
the lightning layer (Equation 1: x_j^T A x_i); we follow each equation as it is printed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from m2bridge.families.attention import (
    PAPER,
    Attention,
    attention_dim,
    bottleneck_hypotheses,
    bottleneck_value,
    normal_matrix,
)
from m2bridge.families.base import Formula, known
from m2bridge.families.lightning import DeepLightning
from m2bridge.programs.proofs import BITS, DyadicPoint, dyadic


@dataclass(frozen=True, kw_only=True)
class Softmax(Attention):
    """A deep network of normalised attention layers.

    Attributes
    ----------
    d, a, t: as for deep lightning attention.
    parametrization: ``weights`` or ``attention``.

    The program runs over floats and balls. There are no coordinates and no ideal: the
    functions do not lie in a finite-dimensional space of polynomials.

    Examples
    --------
    >>> model = Softmax(d=(3, 3, 3), a=(2, 2))
    >>> model.spec, model.formula.value
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

    @property
    def precisions(self) -> tuple[int, ...]:  # type: ignore[override]
        """Bits to try in turn: every layer costs about 20 of them."""
        if self.layers <= 3:
            return (53, 128, 256)
        return (128, 256) if self.layers <= 7 else (256, 512)

    def dyadic_point(self, samples: int, seed: int) -> DyadicPoint:
        if self.parametrization != "weights":
            return super().dyadic_point(samples, seed)
        return softmax_point(self, samples, seed)

    def real_point(self, samples: int, seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        floats = self.dyadic_point(samples, seed).floats()
        return {name: floats[name].array for name in self.parameters}, {"X": floats["X"].array}

    @property
    def formula(self) -> Formula:
        """Theorem 3.9 for one layer; for more layers Equation 16, which docs/conjecture-3.10.md proves for t >= 2."""
        d, a, tokens = self.d, self.a, ("t >= 2", self.t >= 2)
        if self.layers == 1:
            return known(attention_dim(a[0], d[0]) + d[0] * d[1], f"{PAPER}, Theorem 3.9", tokens)
        citation = f"{PAPER}, Equation 16; Conjecture 3.10 is proved for t >= 2 in docs/conjecture-3.10.md"
        return known(bottleneck_value(d, a), citation, tokens, *bottleneck_hypotheses(d))


def softmax_point(model: Softmax, samples: int, seed: int) -> DyadicPoint:
    """A dyadic point at which a softmax network is well conditioned.

    Tokens that attend alike become equal and then tell nothing about later layers. So keys and queries are drawn close to each
    other (a token attends to tokens like itself), queries are scaled until scores spread by a few units, and of many inputs
    those are kept whose tokens stay apart through all layers. Any choice is allowed: a proof is about one point, whichever
    it is.
    """
    rng = np.random.default_rng([seed, 4])
    d, shapes, held, one = model.widths, model.parameters, model.gauge, 1 << BITS
    spread_wanted, noise, candidates, more = _how_to_draw(model.layers)
    samples = math.ceil(more * samples)
    pool = dyadic(rng.normal(size=(samples * candidates, d[0], model.t)))
    x = pool / one
    apart = np.full(len(pool), np.inf)
    weights: dict[str, np.ndarray] = {}
    for k in model.layer_numbers:
        names = [model.weight_name(letter, k) for letter in "QKV"]
        drawn = [normal_matrix(shapes[name], rng) for name in names[1:]]
        if k == model.layers and d[-1] >= d[-2]:
            drawn[1] = np.eye(d[-1], d[-2])
        key, value = (
            held.place(name, dyadic(array), one) for name, array in zip(names[1:], drawn, strict=True)
        )
        size = float(np.linalg.norm(key / one)) / math.sqrt(key.size)
        near = key / one + noise * rng.normal(size=key.shape) * size
        kept = _scores(key, near, x)[np.argsort(-apart)[:samples]]
        spread = float((kept - kept.mean(axis=-1, keepdims=True)).std())
        query = held.place(names[0], dyadic(near * (spread_wanted / spread if spread > 0 else 1.0)), one)
        weights |= dict(zip(names, (query, key, value), strict=True))
        scores = _scores(key, query / one, x)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        x = value / one @ (x @ np.swapaxes(powers / powers.sum(axis=-1, keepdims=True), -1, -2))
        apart = np.minimum(apart, _apart(x))
    chosen = np.sort(np.argsort(-apart, kind="stable")[:samples])
    return DyadicPoint(weights=weights, inputs={"X": pool[chosen]})


def _scores(key: np.ndarray, query: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Scores of all inputs, from dyadic keys and real queries."""
    return np.asarray(np.swapaxes(key / (1 << BITS) @ x, -1, -2) @ (query @ x))


def _how_to_draw(depth: int) -> tuple[float, float, int, float]:
    """Spread of the scores, distance of queries from keys, candidates for each sample, samples for each one that the rank needs.

    Found by trying: these values prove Figure 3 and networks of up to twelve layers.
    """
    if depth <= 2:
        return 2.0, 0.3, 4, 1.15
    return (4.0, 0.3, 16, 2.0) if depth <= 8 else (8.0, 0.1, 48, 2.5)


def _apart(x: np.ndarray) -> np.ndarray:
    """How far from degenerate the tokens of each sample are: the least non-trivial eigenvalue of their scatter."""
    if x.shape[-1] == 1:
        return np.ones(len(x))
    centred = x - x.mean(axis=-1, keepdims=True)
    values = np.linalg.eigvalsh(np.swapaxes(centred, -1, -2) @ centred)
    return np.asarray(values[:, max(1, x.shape[-1] - x.shape[-2])])
