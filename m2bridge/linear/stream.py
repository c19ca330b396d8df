"""Random numbers that any program can make again. A seed enters, integers leave.

The generator is splitmix64 (Steele, Lea, Flood, OOPSLA 2014): number k of stream (seed, tag) is the mix of
start + (k+1) * 0x9E3779B97F4A7C15 modulo 2^64, where start is the mix of 2^32 * seed + tag. A certificate
names a point by its seed, and a checker in another language needs ten lines to make it again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GAMMA = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


def integers(seed: int, tag: int, count: int, p: int) -> NDArray[np.int64]:
    """The first `count` numbers of a stream, modulo p (p < 2^63; the bias below p / 2^64 does not matter here).

    >>> integers(0, 1, 3, 101).tolist()
    [12, 92, 46]
    """
    start = int(_mix(np.array([((seed << 32) + tag) & _MASK], dtype=np.uint64))[0])
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GAMMA) + np.uint64(start)
    return (_mix(steps) % np.uint64(p)).astype(np.int64)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
