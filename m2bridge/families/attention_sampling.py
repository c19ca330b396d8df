"""Points at which networks of attention are well conditioned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from m2bridge.families.sampling import Arrays, Sampling, normal_matrix

if TYPE_CHECKING:
    from m2bridge.families.self_attention import Attention


def attention_sampling(network: Attention) -> Sampling:
    """Choose the points for a network of attention: special ones for one head in each layer and no skip connections."""
    plain = network.knowledge.attention is not None and not (network.skip or network.multi_head)
    if not plain:
        return Sampling(network)
    return SoftmaxSampling(network) if network.softmax else LightningSampling(network)


@dataclass(frozen=True)
class LightningSampling(Sampling):
    """Points of lightning networks, by (Q, K, V)."""

    model: Attention

    def samples_needed(self) -> int | None:
        """Estimate how many inputs show the generic rank.

        With ranks a < t in two layers or more, all that later layers see of X_0 is X_0^T K_1^T and Q_1 X_0, so that an input
        shows 2 a t - a^2 numbers of `free` unknown weights and of some rows of the last V, and a^2 to the later layers, which
        have all but the `first` unknowns.
        """
        network, d, t = self.model, self.model.widths, self.model.t
        rank = min(*network.ranks, *d[:-1])
        if network.by_weights is not network or network.layers < 2 or rank >= t:
            return None
        gauge = network.knowledge.gauge
        free = network.parameter_count - gauge.count - d[-1] * d[-2]
        unknowns = free + min(*d[-2:], t) * d[-2]
        first = sum(len(gauge.free(name, shape)) for name, shape in network.layer_weights(1).items())
        return math.ceil(1.24 * max(unknowns / (2 * rank * t - rank**2), (free - first) / rank**2)) + 2

    def real_point(self, samples: int, seed: int) -> tuple[Arrays, Arrays]:
        """Draw real weights on the slice and inputs at which the Jacobian is well conditioned.

        Lightning layers are cubic in their inputs: unit tokens keep all samples at one scale, and tokens are brought back to
        size one after each layer by scaling V, which any slice with V free allows.
        """
        network = self.model
        if network.by_weights is not network:
            return super().real_point(samples, seed)
        rng = np.random.default_rng([seed, 7])
        d, shapes, gauge = network.widths, network.parameters, network.knowledge.gauge
        inputs = rng.normal(size=(samples, d[0], network.t))
        inputs /= np.linalg.norm(inputs, axis=(-1, -2), keepdims=True) / math.sqrt(d[0])
        weights: Arrays = {}
        x = inputs
        for k in network.layer_numbers:
            names = [network.weight_name(letter, k) for letter in "QKV"]
            query, key, value = (gauge.place(name, normal_matrix(shapes[name], rng)) for name in names)
            if k == network.layers and d[-1] >= d[-2]:
                value = np.eye(d[-1], d[-2])
            tokens = x @ (np.swapaxes(key @ x, -1, -2) @ (query @ x))
            if k < network.layers:
                value = value / np.sqrt(np.mean((value @ tokens) ** 2))
            weights |= dict(zip(names, (query, key, value), strict=True))
            x = value @ tokens
        return weights, {"X": inputs}


@dataclass(frozen=True)
class SoftmaxSampling(Sampling):
    """Points of softmax networks, by (Q, K, V)."""

    model: Attention

    def real_point(self, samples: int, seed: int) -> tuple[Arrays, Arrays]:
        if self.model.parametrization != "weights":
            return super().real_point(samples, seed)
        return softmax_point(self.model, samples, seed)


def softmax_point(network: Attention, samples: int, seed: int) -> tuple[Arrays, Arrays]:
    """Draw real weights and inputs at which a softmax network is well conditioned.

    Tokens that attend alike become equal and then tell nothing about later layers. So keys and queries are drawn close to each
    other (a token attends to tokens like itself), queries are scaled until scores spread by a few units, and of many inputs
    those are kept whose tokens stay apart through all layers.
    """
    rng = np.random.default_rng([seed, 4])
    d, shapes, gauge = network.widths, network.parameters, network.knowledge.gauge
    spread_wanted, noise, candidates, more = _how_to_draw(network.layers)
    samples = math.ceil(more * samples)
    pool = rng.normal(size=(samples * candidates, d[0], network.t))
    x = pool
    apart = np.full(len(pool), np.inf)
    weights: dict[str, np.ndarray] = {}
    for k in network.layer_numbers:
        names = [network.weight_name(letter, k) for letter in "QKV"]
        drawn = [normal_matrix(shapes[name], rng) for name in names[1:]]
        if k == network.layers and d[-1] >= d[-2]:
            drawn[1] = np.eye(d[-1], d[-2])
        key, value = (gauge.place(name, array) for name, array in zip(names[1:], drawn, strict=True))
        size = float(np.linalg.norm(key)) / math.sqrt(key.size)
        near = key + noise * rng.normal(size=key.shape) * size
        kept = _scores(key, near, x)[np.argsort(-apart)[:samples]]
        spread = float((kept - kept.mean(axis=-1, keepdims=True)).std())
        query = gauge.place(names[0], near * (spread_wanted / spread if spread > 0 else 1.0))
        weights |= dict(zip(names, (query, key, value), strict=True))
        scores = _scores(key, query, x)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        x = value @ (x @ np.swapaxes(powers / powers.sum(axis=-1, keepdims=True), -1, -2))
        apart = np.minimum(apart, _apart(x))
    chosen = np.sort(np.argsort(-apart, kind="stable")[:samples])
    return weights, {"X": pool[chosen]}


def _scores(key: np.ndarray, query: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the scores of all inputs."""
    return np.asarray(np.swapaxes(key @ x, -1, -2) @ (query @ x))


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
