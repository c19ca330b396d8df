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
from m2bridge.programs.instructions import Shape, flat_parts
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered

WEIGHTS, INPUTS = 1, 2
_GAMMA = 0x9E3779B97F4A7C15

Integers = NDArray[np.int64]


def integers(seed: int, tag: int, count: int, p: int) -> Integers:
    """The first `count` numbers of a stream, modulo p (p < 2^63; the bias below p / 2^64 does not matter here).

    >>> integers(0, 1, 3, 101).tolist()
    [12, 92, 46]
    """
    start = int(_mix(np.array([((seed << 32) + tag) % 2**64], dtype=np.uint64))[0])
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GAMMA) + np.uint64(start)
    return (_mix(steps) % np.uint64(p)).astype(np.int64)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True)
class Held:
    """Weight entries that are held at given values: a gauge slice. Columns of held entries are left out of Jacobians.

    `masks` and `values` have an array for each weight with held entries: which ones, and at which integers.
    """

    masks: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    values: Mapping[str, Integers] = field(default_factory=dict)

    @cached_property
    def count(self) -> int:
        return sum(int(mask.sum()) for mask in self.masks.values())

    def place(self, name: str, array: np.ndarray, unit: int = 1) -> np.ndarray:
        """The array of a weight with its held entries, times `unit`, put in."""
        return np.where(self.masks[name], self.values[name] * unit, array) if name in self.masks else array

    def free(self, name: str, shape: Shape) -> Integers:
        """Flat places of the entries of a weight that are not held."""
        return np.flatnonzero(~self.masks[name]) if name in self.masks else np.arange(prod(shape))


NOTHING_HELD = Held()


def draw_weights(program: Program, p: int, seed: int, held: Held = NOTHING_HELD) -> dict[str, Integers]:
    """Random weights in 0..p-1, with the held entries put in."""
    numbers = integers(seed, WEIGHTS, program.parameter_count, p)
    parts = flat_parts(program.parameters)
    return {name: held.place(name, numbers[part].reshape(shape)) for name, shape, part in parts}


def draw_inputs(program: Program, p: int, seed: int, samples: int) -> dict[str, Integers]:
    """The first `samples` random inputs of a seed, with a leading axis over them."""
    numbers = integers(seed, INPUTS, samples * program.input_count, p).reshape(samples, program.input_count)
    parts = flat_parts(program.input_shapes)
    return {name: numbers[:, part].reshape(samples, *shape) for name, shape, part in parts}


def entered(arithmetic: Arithmetic, arrays: Mapping[str, Integers], lead: str = "") -> dict[str, Lettered]:
    """Arrays of integers in an arithmetic, behind the axes `lead`."""
    return {name: Lettered(lead, arithmetic.integers(array), arithmetic) for name, array in arrays.items()}
