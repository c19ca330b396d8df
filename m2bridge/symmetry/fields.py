"""Polynomial vector fields on the weights of a program, and the places at which they are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, lcm, prod
from typing import Any

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.linear.residues import Mod, field_of, rational
from m2bridge.programs.arithmetics import Residues
from m2bridge.programs.jacobians import jacobian_rows, output_seeds
from m2bridge.programs.points import INPUTS, WEIGHTS, Integers, integers
from m2bridge.programs.program import Program, Shape
from m2bridge.programs.run import Lettered, aligned, evaluate

Monomial = tuple[int, ...]
"""Flat weights in ascending order, repeated as often as the exponent says; empty for 1."""
Term = tuple[int, int, Monomial]
"""Flat weight i moves by c times a monomial."""

MOST_ROWS = 24
"""So many output entries are looked at for each sample."""


@dataclass(frozen=True, slots=True)
class VectorField:
    """A vector field with integer coefficients: the sum of c * monomial * d/dw_i over its terms (i, c, monomial)."""

    terms: tuple[Term, ...]

    @property
    def degree(self) -> int:
        return max((len(monomial) for _, _, monomial in self.terms), default=0)

    @property
    def moved(self) -> tuple[int, ...]:
        """The flat weights that move, in ascending order."""
        return tuple(sorted({i for i, _, _ in self.terms}))

    @property
    def involved(self) -> frozenset[int]:
        """The flat weights that move or by which others move."""
        return frozenset({i for i, _, _ in self.terms} | {j for _, _, m in self.terms for j in m})

    @property
    def document(self) -> list[list[Any]]:
        """The field as certificates write it: ``[i, c, [[j, e], ...]]``."""
        return [[i, c, [[j, m.count(j)] for j in sorted(set(m))]] for i, c, m in self.terms]

    def at(self, points: Integers, p: int) -> Integers:
        """Its values modulo p at flat weights, the last axis of `points`."""
        moved = np.zeros(points.shape, dtype=np.int64)
        for i, c, monomial in self.terms:
            value = np.full(points.shape[:-1], c % p, dtype=np.int64)
            for j in monomial:
                value = value * points[..., j] % p
            moved[..., i] = (moved[..., i] + value) % p
        return moved


def field_from(document: Sequence[Sequence[Any]]) -> VectorField:
    """The field that :attr:`VectorField.document` wrote.

    >>> field_from([[0, 1, [[1, 2]]]]).terms
    ((0, 1, (1, 1)),)
    """
    terms = [(int(i), int(c), tuple(j for j, e in m for _ in range(e))) for i, c, m in document]
    return VectorField(tuple(sorted(terms)))


class Samples:
    """Rows of the Jacobian of a program at random weights, another point for each sample, over F_p.

    A vector field is a symmetry only if each of these rows kills its value at the same point. More samples are drawn on
    request, always the same ones for one seed.
    """

    def __init__(self, program: Program, p: int, seed: int) -> None:
        self.program, self.p, self.seed = program, p, seed
        self.weights: Integers = np.zeros((0, program.parameter_count), dtype=np.int64)
        self.rows: Integers = np.zeros((0, self.height, program.parameter_count), dtype=np.int64)

    @cached_property
    def height(self) -> int:
        """Rows for each sample."""
        return min(self.program.output_count, MOST_ROWS)

    def draw(self, count: int) -> None:
        """Have at least `count` samples."""
        known = len(self.weights)
        if count <= known:
            return
        size = max(1, (8 << 20) // max(1, self.height * self.program.parameter_count))
        for start in range(known, count, size):
            self._append(start, min(size, count - start))

    def _append(self, start: int, count: int) -> None:
        program, p = self.program, self.p
        drawn = integers(self.seed, WEIGHTS + 16, (start + count) * program.parameter_count, p)
        weights = drawn.reshape(-1, program.parameter_count)[start:]
        width = sum(prod(shape) for shape in program.input_shapes.values())
        inputs = integers(self.seed, INPUTS + 16, (start + count) * width, p).reshape(start + count, width)[
            start:
        ]
        rng = np.random.default_rng([self.seed, start])
        entries = np.stack(
            [np.sort(rng.permutation(program.output_count)[: self.height]) for _ in range(count)]
        )
        block = jacobian_at(program, p, weights, inputs, entries)
        self.weights = np.concatenate([self.weights, weights])
        self.rows = np.concatenate([self.rows, block])


def jacobian_at(
    program: Program, p: int, weights: Integers, inputs: Integers, entries: np.ndarray | None = None
) -> Integers:
    """The Jacobian by all flat weights at pairs of flat weights and flat inputs: (samples, rows, weights), in 0..p-1.

    One row of `weights` serves for all inputs. With `entries`, only these flat outputs of each sample are looked at.
    """
    arithmetic = Residues(field_of(p))
    several = weights if len(weights) == len(inputs) else np.repeat(weights, len(inputs), axis=0)
    given = arrays_at(program.parameters, several, arithmetic) | arrays_at(
        program.input_shapes, inputs, arithmetic
    )
    values = evaluate(program, arithmetic, given)
    seeds = output_seeds(program, arithmetic, entries)
    columns = {name: np.arange(prod(shape)) for name, shape in program.parameters.items()}
    block = jacobian_rows(program, arithmetic, values, seeds, columns)
    return arithmetic.field.canonical(np.asarray(block))


def arrays_at(shapes: Mapping[str, Shape], points: Integers, arithmetic: Residues) -> dict[str, Lettered]:
    """Flat points, one a row, as the arrays of a program with an axis N over the points."""
    found, start = {}, 0
    for name, shape in shapes.items():
        part = np.ascontiguousarray(points[:, start : start + prod(shape)]).reshape(len(points), *shape)
        found[name] = Lettered("N", arithmetic.integers(part))
        start += prod(shape)
    return found


def flat_values(item: Lettered, count: int, arithmetic: Residues) -> Integers:
    """The entries of an array at `count` points, one point a row, in 0..p-1."""
    array = arithmetic.field.canonical(np.asarray(aligned(item, "N", len(item.core))))
    return np.broadcast_to(array.reshape(len(array), prod(item.core)), (count, prod(item.core)))


def small_integers(row: Sequence[int] | Integers, p: int) -> list[int] | None:
    """Integers without a common factor that are proportional to the row modulo p, by rational reconstruction; None if none fit.

    >>> small_integers([4, 2, 6], 101)
    [2, 1, 3]
    """
    best: list[int] | None = None
    for first in [int(c) for c in row if int(c) % p][:4]:
        inverse = pow(first, -1, p)
        fractions = [f for c in row if (f := rational(int(c) * inverse % p, p)) is not None]
        if len(fractions) < len(row):
            continue
        common = lcm(*(f.denominator for f in fractions))
        divisor = gcd(*(int(f * common) for f in fractions))
        found = [int(f * common) // divisor for f in fractions]
        if best is None or max(map(abs, found)) < max(map(abs, best)):
            best = found
    return best


def orbit_rank(fields: Sequence[VectorField], point: Integers, p: int) -> int:
    """The rank modulo p of the fields at one point: a lower bound of the dimension of their generic orbits."""
    if not fields:
        return 0
    return rank_mod(np.stack([field.at(point, p) for field in fields]), p)


def product_mod(left: Integers, right: Integers, p: int) -> Integers:
    """The product of two matrices modulo p."""
    return (Mod(left, p) @ Mod(right, p)).values
