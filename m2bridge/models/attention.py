"""The gauge slice of deep attention, and points at which its Jacobian is well conditioned.

A network of l layers X -> V_k X w(X^T K_k^T Q_k X), w the identity (lightning) or a softmax, is not changed by GL(a_k) acting on
(Q_k, K_k), by GL(d_k) acting between layers, and in the lightning case by l scalings (Henry, Marchetti and Kohn,
arXiv:2408.17221, section 3.3). These groups move a dense set of weights onto the slice:

* K_k = [I | *]: a generic K_k has an invertible first block. Where a_k > d_(k-1), the last rows of K_k and Q_k are zero,
  which leaves the set of products K_k^T Q_k unchanged.
* For lightning one entry of each Q_k is 1: the scalings do that.
* V_1 = [I | *] and V_2, ..., V_(l-1) = I, when l >= 2, all hidden widths are equal and d_0 is not below them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from m2bridge.programs.points import Held, Integers
from m2bridge.programs.proofs import BITS, DyadicPoint, dyadic


def bottleneck(widths: Sequence[int]) -> bool:
    """Whether the slice may fix V_1, ..., V_(l-1): equal hidden widths, none above d_0, at least two layers."""
    hidden = widths[1:-1]
    return len(widths) >= 3 and len(set(hidden)) == 1 and widths[0] >= hidden[0]


def attention_gauge(
    widths: Sequence[int], ranks: Sequence[int], *, scalings: bool = True, numbered: bool = True
) -> Held:
    """The entries of Q_k, K_k, V_k that are held on the slice, and their values.

    >>> attention_gauge((3, 3, 3), (2, 2)).count
    19
    """
    masks, values = {}, {}
    for k, (a, before, after) in enumerate(zip(ranks, widths[:-1], widths[1:], strict=True)):
        number = str(k + 1) if numbered else ""
        rank = min(a, before)
        query, key = np.zeros((a, before), dtype=bool), np.zeros((a, before), dtype=bool)
        query[rank:] = key[rank:] = True
        key[:, :rank] = True
        held_query, held_key = np.zeros((a, before), dtype=np.int64), np.zeros((a, before), dtype=np.int64)
        held_key[:rank, :rank] = np.eye(rank, dtype=np.int64)
        if scalings:
            query[0, 0], held_query[0, 0] = True, 1
        found = {"Q": (query, held_query), "K": (key, held_key)}
        if bottleneck(widths) and k < len(ranks) - 1:
            value = np.zeros((after, before), dtype=bool)
            value[:, :after] = True
            found["V"] = (value, np.eye(after, before, dtype=np.int64))
        for letter, (mask, held) in found.items():
            if mask.any():
                masks[letter + number], values[letter + number] = mask, held
    return Held(masks, values)


def least_samples(
    widths: Sequence[int],
    ranks: Sequence[int],
    tokens: int,
    free: int,
    first: int,
    rows: int,
    *,
    analytic: bool,
) -> int:
    """A guess of how many inputs show the generic rank; a wrong one costs time, never the answer.

    An input shows at most `rows` * t numbers of `free` unknown weights and of `rows` rows of the last V. With ranks a < t in two
    lightning layers or more, all that later layers see of X_0 is X_0^T K_1^T and Q_1 X_0, so that an input shows 2 a t - a^2
    numbers, and a^2 to the later layers, which have all but the `first` unknowns.
    """
    unknowns = free + rows * widths[-2]
    least = unknowns / (rows * tokens)
    rank = min(*(min(a, d) for a, d in zip(ranks, widths[:-1], strict=True)), tokens)
    if not analytic and len(ranks) >= 2 and rank < tokens:
        least = 1.2 * max(unknowns / (2 * rank * tokens - rank**2), (free - first) / rank**2)
    return max(2, int(np.ceil(1.03 * least)) + 2)


@dataclass(frozen=True, slots=True)
class AttentionSizes:
    """Sizes of a deep attention network: widths d_0, ..., d_l, ranks a_1, ..., a_l, tokens t; names of its weights."""

    widths: tuple[int, ...]
    ranks: tuple[int, ...]
    tokens: int
    numbered: bool = True

    def names(self, k: int) -> tuple[str, str, str]:
        number = str(k + 1) if self.numbered else ""
        return f"Q{number}", f"K{number}", f"V{number}"

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for k, (a, before, after) in enumerate(
            zip(self.ranks, self.widths[:-1], self.widths[1:], strict=True)
        ):
            found |= dict(zip(self.names(k), ((a, before), (a, before), (after, before)), strict=True))
        return found

    def samples_needed(self, held: Held, *, analytic: bool) -> int:
        """:func:`least_samples` for the rows of the last V that are looked at first."""
        width = self.widths[-2]
        available = min(width, self.widths[-1])
        enough = max(1, self.tokens - 1 if analytic else self.tokens)
        rows = available if self.tokens == 1 else min(available, enough)
        free = sum(a * b for a, b in self.shapes.values()) - held.count - self.widths[-1] * width
        first = sum(len(held.free(name, self.shapes[name])) for name in self.names(0))
        return least_samples(self.widths, self.ranks, self.tokens, free, first, rows, analytic=analytic)


def lightning_point(
    sizes: AttentionSizes, held: Held, samples: int, seed: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Real weights on the slice and inputs at which the Jacobian of a lightning network is well conditioned.

    Lightning layers are cubic in their inputs: unit tokens keep all samples at one scale, and tokens are brought back to size
    one after each layer by scaling V, which any slice with V free allows; where V is held, scores are scaled through Q.
    """
    rng = np.random.default_rng([seed, 7])
    inputs = rng.normal(size=(samples, sizes.widths[0], sizes.tokens))
    inputs /= np.linalg.norm(inputs, axis=(-1, -2), keepdims=True) / math.sqrt(sizes.widths[0])
    weights: dict[str, np.ndarray] = {}
    x = inputs
    for k in range(len(sizes.ranks)):
        names = sizes.names(k)
        query, key, value = (_held_normal(name, sizes, held, rng) for name in names)
        if k == len(sizes.ranks) - 1 and sizes.widths[-1] >= sizes.widths[-2]:
            value = np.eye(*sizes.shapes[names[2]])
        tokens = x @ (np.swapaxes(key @ x, -1, -2) @ (query @ x))
        if k < len(sizes.ranks) - 1:
            value = value / np.sqrt(np.mean((value @ tokens) ** 2))
        weights |= dict(zip(names, (query, key, value), strict=True))
        x = value @ tokens
    return weights, inputs


def _held_normal(name: str, sizes: AttentionSizes, held: Held, rng: np.random.Generator) -> np.ndarray:
    shape = sizes.shapes[name]
    drawn = rng.normal(size=shape) / math.sqrt(shape[1])
    return np.where(held.masks[name], held.values[name], drawn) if name in held.masks else drawn


def softmax_point(
    sizes: AttentionSizes, held: Held, samples: int, seed: int, temperature: float
) -> DyadicPoint:
    """A dyadic point at which a softmax network is well conditioned.

    Tokens that attend alike become equal and then tell nothing about later layers. So keys and queries are drawn close to each
    other (a token attends to tokens like itself), queries are scaled until scores spread by a few units, and of many inputs
    those are kept whose tokens stay apart through all layers. Any choice is allowed: a proof is about one point, whichever
    it is.
    """
    rng = np.random.default_rng([seed, 4])
    depth, one = len(sizes.ranks), 1 << BITS
    spread_wanted, noise, candidates, more = _how_to_draw(depth)
    samples = math.ceil(more * samples)
    pool = dyadic(rng.normal(size=(samples * candidates, sizes.widths[0], sizes.tokens)))
    x = pool / one
    apart = np.full(len(pool), np.inf)
    weights: dict[str, np.ndarray] = {}
    for k in range(depth):
        names = sizes.names(k)
        drawn = [rng.normal(size=sizes.shapes[name]) / math.sqrt(sizes.shapes[name][1]) for name in names[1:]]
        if k == depth - 1 and sizes.widths[-1] >= sizes.widths[-2]:
            drawn[1] = np.eye(*sizes.shapes[names[2]])
        key, value = (
            _on_slice(name, dyadic(array), held) for name, array in zip(names[1:], drawn, strict=True)
        )
        size = float(np.linalg.norm(key / one)) / math.sqrt(key.size)
        near = key / one + noise * rng.normal(size=key.shape) * size
        scores = np.swapaxes(key / one @ x, -1, -2) @ (near @ x) / temperature
        kept = scores[np.argsort(-apart)[:samples]]
        spread = float((kept - kept.mean(axis=-1, keepdims=True)).std())
        query = _on_slice(names[0], dyadic(near * (spread_wanted / spread if spread > 0 else 1.0)), held)
        weights |= dict(zip(names, (query, key, value), strict=True))
        scores = np.swapaxes(key / one @ x, -1, -2) @ (query / one @ x) / temperature
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        x = value / one @ (x @ np.swapaxes(powers / powers.sum(axis=-1, keepdims=True), -1, -2))
        apart = np.minimum(apart, _apart(x))
    chosen = np.sort(np.argsort(-apart, kind="stable")[:samples])
    return DyadicPoint(weights=weights, inputs={"X": pool[chosen]})


def _on_slice(name: str, array: Integers, held: Held) -> Integers:
    return np.where(held.masks[name], held.values[name] << BITS, array) if name in held.masks else array


def _how_to_draw(depth: int) -> tuple[float, float, int, float]:
    """Spread of the scores, distance of queries from keys, candidates for each sample, samples for each one that the rank needs.

    Found by trying: these values prove Figure 3 and networks of up to twelve layers.
    """
    if depth <= 2:
        return 2.0, 0.3, 4, 1.15
    return (4.0, 0.3, 16, 2.0) if depth <= 8 else (8.0, 0.1, 48, 2.5)


def softmax_precisions(depth: int) -> tuple[int, ...]:
    """Bits to try in turn: every layer costs about 20 of them."""
    if depth <= 3:
        return (53, 128, 256)
    return (128, 256) if depth <= 7 else (256, 512)


def _apart(x: np.ndarray) -> np.ndarray:
    """How far from degenerate the tokens of each sample are: the least non-trivial eigenvalue of their scatter."""
    if x.shape[-1] == 1:
        return np.ones(len(x))
    centred = x - x.mean(axis=-1, keepdims=True)
    values = np.linalg.eigvalsh(np.swapaxes(centred, -1, -2) @ centred)
    return np.asarray(values[:, max(1, x.shape[-1] - x.shape[-2])])
