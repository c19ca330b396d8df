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

from collections.abc import Sequence

import numpy as np

from m2bridge.programs.points import Held


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
