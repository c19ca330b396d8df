"""Polynomial vector fields on the weights of a program: their values at points, and their span."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, lcm, prod
from typing import Any

import numpy as np

from m2bridge.linear.modular import echelon_mod
from m2bridge.linear.residues import Mod, field_of, rational
from m2bridge.programs.arithmetics import PrimeFieldArithmetic
from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.jacobians import jacobian_block
from m2bridge.programs.points import Integers
from m2bridge.programs.program import Program
from m2bridge.programs.run import Lettered, aligned, evaluate, flat_outputs

Monomial = tuple[int, ...]
"""Flat weights in ascending order, repeated as often as the exponent says; empty for 1."""
Term = tuple[int, int, Monomial]
"""Flat weight i moves by c times a monomial."""


@dataclass(frozen=True, slots=True)
class VectorField:
    """A vector field with integer coefficients: the sum of c * monomial * d/dw_i over its terms (i, c, monomial)."""

    terms: tuple[Term, ...]

    @property
    def degree(self) -> int:
        return max((len(monomial) for _, _, monomial in self.terms), default=0)

    @property
    def moved(self) -> tuple[int, ...]:
        """Return the flat weights that move, in ascending order."""
        return tuple(sorted({i for i, _, _ in self.terms}))

    @property
    def involved(self) -> frozenset[int]:
        """Return the flat weights that move or by which others move."""
        return frozenset({i for i, _, _ in self.terms} | {j for _, _, m in self.terms for j in m})

    @property
    def document(self) -> list[list[Any]]:
        """Return the field as certificates write it: ``[i, c, [[j, e], ...]]``."""
        return [[i, c, [[j, m.count(j)] for j in sorted(set(m))]] for i, c, m in self.terms]

    def at(self, points: Integers, p: int) -> Integers:
        """Return its values modulo p at flat weights, the last axis of `points`."""
        moved = np.zeros(points.shape, dtype=np.int64)
        for i, c, monomial in self.terms:
            moved[..., i] = (moved[..., i] + c % p * monomial_at(monomial, points, p)) % p
        return moved

    def generators(self, weights: Mapping[str, Any]) -> Any:
        """Return how a linear field moves given weights (Mod arrays, integers or objects): one row."""
        flat = np.concatenate([weight.reshape(-1) for weight in weights.values()])
        sources = sorted({j for _, _, (j,) in self.terms})
        matrix = np.zeros((flat.shape[0], len(sources)), dtype=np.int64)
        for i, c, (j,) in self.terms:
            matrix[i, sources.index(j)] += c
        return (matrix @ flat[sources]).reshape(1, -1)


def without_denominators(terms: Iterable[tuple[int, int, Monomial, Mapping[int, int]]]) -> VectorField:
    """Return the field of terms (i, c, monomial, powers), multiplied by the least product that makes all powers positive.

    >>> without_denominators([(0, 1, (2,), {3: -1}), (1, 5, (), {})]).terms
    ((0, 1, (2,)), (1, 5, (3,)))
    """
    listed = list(terms)
    lowest = {w: min(powers.get(w, 0) for *_, powers in listed) for *_, powers in listed for w in powers}
    polynomial = []
    for i, c, monomial, powers in listed:
        factors = [w for w, low in lowest.items() for _ in range(powers.get(w, 0) - low)]
        polynomial.append((i, c, tuple(sorted((*monomial, *factors)))))
    return VectorField(tuple(sorted(polynomial)))


def monomial_at(monomial: Monomial, points: Integers, p: int) -> Integers:
    """Return the values modulo p of a monomial at points, along their last axis."""
    value = np.ones(points.shape[:-1], dtype=np.int64)
    for j in monomial:
        value = value * points[..., j] % p
    return value


def jacobian_at(
    program: Program, p: int, weights: Integers, inputs: Integers, entries: np.ndarray | None = None
) -> Integers:
    """Return the Jacobian by all flat weights at pairs of flat weights and flat inputs: (samples, rows, weights), in 0..p-1.

    One row of `weights` serves for all inputs. With `entries`, only these flat outputs of each sample are used.
    """
    arithmetic = PrimeFieldArithmetic(field_of(p))
    several = weights if len(weights) == len(inputs) else np.repeat(weights, len(inputs), axis=0)
    arrays = arrays_at(program, several, inputs, arithmetic)
    block = jacobian_block(program, arithmetic, arrays, np.arange(program.parameter_count), entries=entries)
    return arithmetic.field.canonical(block).reshape(len(several), -1, program.parameter_count)


def outputs_at(program: Program, p: int, weights: Integers, inputs: Integers | None = None) -> Integers:
    """Return the flat outputs at flat weights (and flat inputs), one point per row, in 0..p-1."""
    arithmetic = PrimeFieldArithmetic(field_of(p))
    arrays = arrays_at(program, weights, weights[:, :0] if inputs is None else inputs, arithmetic)
    values = evaluate(program, arithmetic, arrays)
    return arithmetic.field.canonical(flat_outputs(program, arithmetic, values, {"N": len(weights)}))


def arrays_at(
    program: Program, weights: Integers, inputs: Integers, arithmetic: PrimeFieldArithmetic
) -> dict[str, Lettered]:
    """Return flat weights and inputs, one point per row, as the arrays of a program with an axis N over the points."""
    arrays, points = {}, np.concatenate([weights, inputs], axis=1)
    for name, shape, entries in flat_parts(program.parameters | program.input_shapes):
        array = np.ascontiguousarray(points[:, entries]).reshape(len(points), *shape)
        arrays[name] = Lettered("N", arithmetic.integers(array))
    return arrays


def flat_values(item: Lettered, count: int, arithmetic: PrimeFieldArithmetic) -> Integers:
    """Return the entries of an array at `count` points, one point per row, in 0..p-1."""
    array = arithmetic.field.canonical(np.asarray(aligned(item, "N", len(item.core))))
    return np.broadcast_to(array.reshape(len(array), prod(item.core)), (count, prod(item.core)))


def product_mod(left: Integers, right: Integers, p: int) -> Integers:
    """Return the product of two matrices modulo p."""
    return (Mod(left, p) @ Mod(right, p)).values


def small_integers(row: Sequence[int] | Integers, p: int) -> list[int] | None:
    """Return integers, without common factor, proportional to the row modulo p, by rational reconstruction; None if none fit.

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
        scaled = [int(f * common) // divisor for f in fractions]
        if best is None or max(map(abs, scaled)) < max(map(abs, best)):
            best = scaled
    return best


# -- spans ----------------------------------------------------------------------------------


def in_span(field: VectorField, others: Sequence[VectorField], p: int) -> bool:
    """Return whether a field is a combination of others with constant coefficients, modulo p."""
    return each_in_span([field], others, p)[0]


def each_in_span(fields: Sequence[VectorField], others: Sequence[VectorField], p: int) -> list[bool]:
    """Return for each field whether it is a combination of others with constant coefficients, modulo p."""
    table = _coefficients([*others, *fields], p)
    rows = table[len(others) :]
    if others:
        reduced, pivots = echelon_mod(table[: len(others)], p)
        rows = (rows - product_mod(rows[:, pivots], reduced[: len(pivots)], p)) % p
    return [not row.any() for row in rows]


def _coefficients(fields: Sequence[VectorField], p: int) -> Integers:
    """Return the coefficients of the fields modulo p, one field a row, on all terms that occur."""
    terms = {(i, m) for field in fields for i, _, m in field.terms}
    columns = {term: k for k, term in enumerate(sorted(terms))}
    table = np.zeros((len(fields), max(1, len(columns))), dtype=np.int64)
    for row, field in zip(table, fields, strict=True):
        for i, c, m in field.terms:
            row[columns[i, m]] = c % p
    return table
