"""Points at which the Jacobian of an attention network is well conditioned, on its gauge slice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from m2bridge.programs.proofs import BITS, DyadicPoint, dyadic

if TYPE_CHECKING:
    from m2bridge.models.attention import Attention
    from m2bridge.models.softmax import Softmax


def lightning_point(model: Attention, samples: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Real weights on the slice and inputs at which the Jacobian of a lightning network is well conditioned.

    Lightning layers are cubic in their inputs: unit tokens keep all samples at one scale, and tokens are brought back to size
    one after each layer by scaling V, which any slice with V free allows; where V is held, scores are scaled through Q.
    """
    rng = np.random.default_rng([seed, 7])
    d, shapes, held = model.widths, model.parameters, model.gauge
    inputs = rng.normal(size=(samples, d[0], model.t))
    inputs /= np.linalg.norm(inputs, axis=(-1, -2), keepdims=True) / math.sqrt(d[0])
    weights: dict[str, np.ndarray] = {}
    x = inputs
    for k in model.layer_numbers:
        names = [model.weight_name(letter, k) for letter in "QKV"]
        query, key, value = (held.place(name, _normal(shapes[name], rng)) for name in names)
        if k == model.layers and d[-1] >= d[-2]:
            value = np.eye(d[-1], d[-2])
        tokens = x @ (np.swapaxes(key @ x, -1, -2) @ (query @ x))
        if k < model.layers:
            value = value / np.sqrt(np.mean((value @ tokens) ** 2))
        weights |= dict(zip(names, (query, key, value), strict=True))
        x = value @ tokens
    return weights, inputs


def _normal(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=shape) / math.sqrt(shape[-1])


def softmax_point(model: Softmax, samples: int, seed: int) -> DyadicPoint:
    """A dyadic point at which a softmax network is well conditioned.

    Tokens that attend alike become equal and then tell nothing about later layers. So keys and queries are drawn close to each
    other (a token attends to tokens like itself), queries are scaled until scores spread by a few units, and of many inputs
    those are kept whose tokens stay apart through all layers. Any choice is allowed: a proof is about one point, whichever
    it is.
    """
    rng = np.random.default_rng([seed, 4])
    d, shapes, held, one = model.widths, model.parameters, model.gauge, 1 << BITS
    temperature = float(model.temperature)
    spread_wanted, noise, candidates, more = _how_to_draw(model.layers)
    samples = math.ceil(more * samples)
    pool = dyadic(rng.normal(size=(samples * candidates, d[0], model.t)))
    x = pool / one
    apart = np.full(len(pool), np.inf)
    weights: dict[str, np.ndarray] = {}
    for k in model.layer_numbers:
        names = [model.weight_name(letter, k) for letter in "QKV"]
        drawn = [_normal(shapes[name], rng) for name in names[1:]]
        if k == model.layers and d[-1] >= d[-2]:
            drawn[1] = np.eye(d[-1], d[-2])
        key, value = (
            held.place(name, dyadic(array), one) for name, array in zip(names[1:], drawn, strict=True)
        )
        size = float(np.linalg.norm(key / one)) / math.sqrt(key.size)
        near = key / one + noise * rng.normal(size=key.shape) * size
        kept = _scores(key, near, x, temperature)[np.argsort(-apart)[:samples]]
        spread = float((kept - kept.mean(axis=-1, keepdims=True)).std())
        query = held.place(names[0], dyadic(near * (spread_wanted / spread if spread > 0 else 1.0)), one)
        weights |= dict(zip(names, (query, key, value), strict=True))
        scores = _scores(key, query / one, x, temperature)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        x = value / one @ (x @ np.swapaxes(powers / powers.sum(axis=-1, keepdims=True), -1, -2))
        apart = np.minimum(apart, _apart(x))
    chosen = np.sort(np.argsort(-apart, kind="stable")[:samples])
    return DyadicPoint(weights=weights, inputs={"X": pool[chosen]})


def _scores(key: np.ndarray, query: np.ndarray, x: np.ndarray, temperature: float) -> np.ndarray:
    """Scores of all inputs, from dyadic keys and real queries."""
    return np.asarray(np.swapaxes(key / (1 << BITS) @ x, -1, -2) @ (query @ x) / temperature)


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
