"""An independent rank for tests: dual numbers in plain Python over F_p, p = 2^61 - 1, through a function of arrays.

Nothing of the package is used. A function that is written for NumPy runs on object arrays of :class:`Dual`; each number
carries its derivatives by all weights.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

P = 2**61 - 1


def residue(value: Any) -> int:
    exact = Fraction(value)
    return exact.numerator * pow(exact.denominator, -1, P) % P


class Dual:
    """A number modulo P with its derivatives."""

    __slots__ = ("moves", "value")

    def __init__(self, value: int, moves: list[int]) -> None:
        self.value, self.moves = value % P, moves

    def __add__(self, other: Any) -> Dual:
        if not isinstance(other, Dual):
            return Dual(self.value + residue(other), self.moves)
        return Dual(
            self.value + other.value, [(a + b) % P for a, b in zip(self.moves, other.moves, strict=True)]
        )

    __radd__ = __add__

    def __mul__(self, other: Any) -> Dual:
        if not isinstance(other, Dual):
            factor = residue(other)
            return Dual(self.value * factor, [a * factor % P for a in self.moves])
        x, y = self.value, other.value
        return Dual(x * y, [(a * y + b * x) % P for a, b in zip(self.moves, other.moves, strict=True)])

    __rmul__ = __mul__

    def __neg__(self) -> Dual:
        return self * -1

    def __sub__(self, other: Any) -> Dual:
        return self + other * -1

    def __rsub__(self, other: Any) -> Dual:
        return self * -1 + other

    def __truediv__(self, other: int) -> Dual:
        return self * Fraction(1, other)

    def __pow__(self, exponent: int) -> Dual:
        result = self
        for _ in range(int(exponent) - 1):
            result = result * self
        return result


def _array(shape: tuple[int, ...], entries: list[Dual]) -> np.ndarray:
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array.reshape(shape)


def rank(
    function: Callable[..., Any],
    weights: Mapping[str, tuple[int, ...]],
    inputs: Mapping[str, tuple[int, ...]],
    *,
    samples: int | None = None,
    seed: int = 0,
) -> int:
    """The rank of the derivatives of all outputs at random inputs by all weights, at random weights.

    A random input that does not raise the rank shows that none will, so that as many inputs as weights are enough.
    """
    source = random.Random(seed)
    count = sum(prod(shape) for shape in weights.values())
    given, start = {}, 0
    for name, shape in weights.items():
        entries = []
        for k in range(start, start + prod(shape)):
            unit = [0] * count
            unit[k] = 1
            entries.append(Dual(source.randrange(P), unit))
        given[name] = _array(shape, entries)
        start += prod(shape)
    rows: list[list[int]] = []
    for _ in range((samples or count) if inputs else 1):
        drawn = {
            name: _array(shape, [Dual(source.randrange(P), [0] * count) for _ in range(prod(shape))])
            for name, shape in inputs.items()
        }
        result = function(**given, **drawn)
        parts = list(result.values()) if isinstance(result, dict) else [result]
        numbers = [entry for part in parts for entry in np.asarray(part, dtype=object).reshape(-1)]
        rows += [entry.moves for entry in numbers if isinstance(entry, Dual)]
    return matrix_rank(rows)


def matrix_rank(rows: list[list[int]]) -> int:
    """Rank modulo P by elimination, row by row against the pivots that are known."""
    pivots: dict[int, list[int]] = {}
    for given in rows:
        row = given
        for column, pivot in pivots.items():
            if row[column]:
                factor = row[column]
                row = [(a - factor * b) % P for a, b in zip(row, pivot, strict=True)]
        lead = next((k for k, entry in enumerate(row) if entry), None)
        if lead is not None:
            inverse = pow(row[lead], -1, P)
            pivots[lead] = [a * inverse % P for a in row]
            if len(pivots) == len(row):
                break
    return len(pivots)
