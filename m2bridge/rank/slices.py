"""Rank stage: the gauge slice of a deep attention network. Sizes enter, the free weights and their number leave.

A network of l layers X -> V_k X w(X^T K_k^T Q_k X), w the identity (lightning) or a softmax over each column, is not
changed by GL(a_k) acting on (Q_k, K_k), by GL(d_k) acting between layers, and in the lightning case by l scalings
(Henry, Marchetti and Kohn, section 3.3). Where these groups move a dense set of weights onto a linear slice, the
number of free entries of the slice is a proved upper bound of the dimension, and ranks on the slice are the ranks of
the whole network.

What is fixed on the slice, and when that is allowed:

* K_k = [I | *] always: a generic K_k has an invertible first block. Here a_k is replaced by min(a_k, d_(k-1)),
  which leaves the set of products K_k^T Q_k unchanged.
* For lightning one entry of each Q_k is 1: the scaling (M_k, L) of Eq. 13 does that.
* V_1 = [I | *] and V_2, ..., V_(l-1) = I, only when l >= 2, all hidden widths are equal and d_0 is not below them.
  Otherwise all V_k stay free, and the number of free entries is still an upper bound, but seldom the dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from m2bridge.errors import InputError

Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class AttentionSlice:
    """Sizes of a deep attention network and the free entries of its gauge slice.

    Attributes
    ----------
    widths: d_0, ..., d_l. `ranks`: a_1, ..., a_l as given. `tokens`: t. `softmax`: whether columns are normalized.

    Examples
    --------
    >>> AttentionSlice(widths=(3, 3, 3), ranks=(2, 2), tokens=3, softmax=False).free_count
    23
    """

    widths: tuple[int, ...]
    ranks: tuple[int, ...]
    tokens: int
    softmax: bool

    def __post_init__(self) -> None:
        sizes = (*self.widths, *self.ranks, self.tokens)
        if len(self.widths) != len(self.ranks) + 1 or not self.ranks or any(size < 1 for size in sizes):
            raise InputError(
                f"a network of l layers has l+1 widths and l ranks, all positive: "
                f"widths {self.widths}, ranks {self.ranks}, t {self.tokens}"
            )

    @property
    def depth(self) -> int:
        return len(self.ranks)

    @cached_property
    def effective_ranks(self) -> tuple[int, ...]:
        """min(a_k, d_(k-1)): the largest rank that K_k^T Q_k can have."""
        return tuple(min(a, d) for a, d in zip(self.ranks, self.widths[:-1], strict=True))

    @property
    def bottleneck(self) -> bool:
        """Whether the slice may fix V_1, ..., V_(l-1): equal hidden widths, none above d_0, at least two layers."""
        hidden = self.widths[1:-1]
        return self.depth >= 2 and len(set(hidden)) == 1 and self.widths[0] >= hidden[0]

    @property
    def parameter_count(self) -> int:
        """Number of weights of the network as it is defined: sum of d_(k-1) (2 a_k + d_k)."""
        layers = zip(self.ranks, self.widths[:-1], self.widths[1:], strict=True)
        return sum(before * (2 * a + after) for a, before, after in layers)

    @cached_property
    def masks(self) -> tuple[tuple[Mask, Mask, Mask], ...]:
        """Free entries of (Q_k, K_k, V_k), layer by layer; the last V is all free."""
        layers = []
        for k, (a, before, after) in enumerate(
            zip(self.effective_ranks, self.widths[:-1], self.widths[1:], strict=True)
        ):
            query = np.ones((a, before), dtype=bool)
            if not self.softmax:
                query[0, 0] = False
            key = np.ones((a, before), dtype=bool)
            key[:, :a] = False
            value = np.ones((after, before), dtype=bool)
            if self.bottleneck and k < self.depth - 1:
                value[:, : after if k == 0 else before] = False
            layers.append((query, key, value))
        return tuple(layers)

    @property
    def free_count(self) -> int:
        """Number of free entries of the slice, the last V included: an upper bound of the dimension."""
        return sum(int(mask.sum()) for layer in self.masks for mask in layer)

    @property
    def inner_count(self) -> int:
        """Number of free entries without those of the last V."""
        return self.free_count - self.widths[-1] * self.widths[-2]

    def place(
        self, layers: list[tuple[NDArray[np.int64], ...]], one: int = 1
    ) -> list[tuple[NDArray[np.int64], ...]]:
        """Weights with the fixed entries of the slice put in; `one` is how the number 1 is written."""
        return [self.place_layer(k, weights, one) for k, weights in enumerate(layers)]

    def place_layer(
        self, k: int, weights: tuple[NDArray[np.int64], ...], one: int = 1
    ) -> tuple[NDArray[np.int64], ...]:
        """Weights of layer k (from 0) with the fixed entries of the slice put in."""
        masks = self.masks[k]
        query, key, value = (np.where(mask, w, 0) for w, mask in zip(weights, masks, strict=True))
        if not self.softmax:
            query[0, 0] = one
        for matrix, mask in ((key, masks[1]), (value, masks[2])):
            size = int((~mask).any(axis=0).sum())  # the fixed columns come first and hold the identity
            matrix[np.arange(size), np.arange(size)] = one
        return query, key, value
