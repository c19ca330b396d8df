"""Points at which programs are evaluated: random weights and inputs that any program can draw again, with some entries held.

The numbers are those of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): number k of stream (seed, tag) is the mix of
start + (k+1) * 0x9E3779B97F4A7C15 modulo 2^64, where start is the mix of 2^32 * seed + tag. Stream 1 of a seed gives the flat
weights, stream 2 the inputs, sample by sample. A certificate names a point by its seed, and a checker in another language needs
ten lines to draw it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from m2bridge.programs.arithmetics import Arithmetic
from m2bridge.programs.instructions import Shape, split_flat
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered

WEIGHTS, INPUTS = 1, 2  # streams of random numbers
_GAMMA = 0x9E3779B97F4A7C15  # the odd constant of SplitMix64

Integers = NDArray[np.int64]


def integers(seed: int, tag: int, count: int, p: int) -> Integers:
    """Return the first `count` numbers of a stream, modulo p (p < 2^63; the bias is below p / 2^64).

    >>> integers(0, 1, 3, 101).tolist()
    [12, 92, 46]
    """
    return _numbers(seed, tag, np.arange(count), p)


def integer_rows(seed: int, tag: int, rows: int | Integers, width: int, p: int) -> Integers:
    """Return rows of `width` numbers of a stream: the first ones, or those with the given numbers.

    >>> integer_rows(0, 1, np.array([2, 0]), 1, 101).tolist()
    [[46], [12]]
    """
    chosen = np.arange(rows) if isinstance(rows, int) else rows
    return _numbers(seed, tag, chosen[:, None] * width + np.arange(width), p)


def _numbers(seed: int, tag: int, positions: Integers, p: int) -> Integers:
    start = int(_mix(np.array([((seed << 32) + tag) % 2**64], dtype=np.uint64))[0])
    steps = (positions.astype(np.uint64) + np.uint64(1)) * np.uint64(_GAMMA) + np.uint64(start)
    return (_mix(steps) % np.uint64(p)).astype(np.int64)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True)
class Held:
    """Weight entries with fixed values, which define a gauge slice. Jacobians have no columns for them.

    `masks` and `values` map each weight with held entries to the positions of these entries and to their integer values.
    """

    masks: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    values: Mapping[str, Integers] = field(default_factory=dict)

    @cached_property
    def count(self) -> int:
        return sum(int(mask.sum()) for mask in self.masks.values())

    def with_held(self, name: str, array: np.ndarray) -> np.ndarray:
        """Return the array of a weight with its held entries set to their values."""
        return np.where(self.masks[name], self.values[name], array) if name in self.masks else array

    def free(self, name: str, shape: Shape) -> Integers:
        """Return the flat indices of the entries of a weight that are not held."""
        return np.flatnonzero(~self.masks[name]) if name in self.masks else np.arange(prod(shape))


NOTHING_HELD = Held()


def draw_weights(program: Program, p: int, seed: int, held: Held = NOTHING_HELD) -> dict[str, Integers]:
    """Draw random weights in 0..p-1; held entries have their values."""
    numbers = split_flat(integers(seed, WEIGHTS, program.parameter_count, p), program.parameters)
    return {name: held.with_held(name, array) for name, array in numbers.items()}


def draw_inputs(
    program: Program, p: int, seed: int, samples: int | Integers, stream: int = INPUTS
) -> dict[str, Integers]:
    """Draw the first `samples` random inputs of a seed, or those with the given numbers; the leading axis is the sample."""
    return split_flat(integer_rows(seed, stream, samples, program.input_count, p), program.input_shapes)


def lettered(arithmetic: Arithmetic, arrays: Mapping[str, Integers], lead: str = "") -> dict[str, Lettered]:
    """Convert arrays of integers to arrays of an arithmetic whose leading axes are named by `lead`."""
    return {name: Lettered(lead, arithmetic.integers(array), arithmetic) for name, array in arrays.items()}
