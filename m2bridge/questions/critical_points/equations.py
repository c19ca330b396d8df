"""The critical points of a chart as polynomial equations, expanded from the network's program.

They are written for msolve, and over QQ they give the Hessian. For a general target every critical point on the regular locus
avoids any given proper closed subset of the image, so a polynomial on the chart that is not identically zero may be inverted. One
maximal minor of the differential in the chart vanishes wherever the rank of the differential drops; its irreducible factors are
inverted, each by an unknown of its own. So the points where the rank drops, often whole families, are never computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import flint
import numpy as np
from flint import Ordering, fmpq_mpoly_ctx, nmod_mpoly_ctx

from m2bridge.families.symbolic import sparse
from m2bridge.linear.modular import kernel_mod
from m2bridge.linear.primes import LARGE_PRIME
from m2bridge.linear.residues import residue
from m2bridge.msolve import Polynomial, System
from m2bridge.questions.critical_points.charts import Chart, ExpandedMap
from m2bridge.questions.critical_points.losses import Loss
from m2bridge.questions.over_q import fmpq as rational
from m2bridge.questions.point import residues

MOST_MINOR_TERMS = 2000
"""A minor with more terms, also during the elimination, is not expanded (chosen): its inverse would be a long equation."""


def _ring(names: Sequence[str], p: int) -> Any:
    """Return the polynomial ring over F_p, over QQ for p = 0."""
    if p == 0:
        return fmpq_mpoly_ctx.get(list(names), Ordering.degrevlex)
    return nmod_mpoly_ctx.get(list(names), modulus=p, ordering=Ordering.degrevlex)


def _coefficients(array: Any, p: int) -> Any:
    """Numbers as coefficients of the ring: residues, or rational numbers."""
    if p:
        return residues(np.asarray(array, dtype=object), p).tolist()
    return [
        [rational(x) for x in row] if np.ndim(row) else rational(row)
        for row in np.asarray(array, dtype=object)
    ]


@dataclass(frozen=True)
class ChartedMap:
    """A map in the unknowns of a chart: its coordinates `y` (times the scale) and `phi` (without), and the Jacobian there."""

    names: tuple[str, ...]
    p: int
    y: tuple[Any, ...]
    phi: tuple[Any, ...]
    jacobian: tuple[tuple[Any, ...], ...]

    @property
    def zero(self) -> Any:
        return self.y[0] * 0

    @property
    def tangent(self) -> list[list[Any]]:
        """Return the derivatives by the unknowns of the chart, one row for each, and by the scale."""
        scaled = len(self.names) - ("c" in self.names)
        rows = [[f.derivative(k) for f in self.phi] for k in range(scaled)]
        return rows + ([list(self.phi)] if "c" in self.names else [])

    def differential(self, loss: Loss) -> list[Any]:
        """Return the differential of half the loss at the coordinates."""
        quadric, covector = _coefficients(loss.quadric, self.p), _coefficients(loss.covector, self.p)
        return [
            sum((c * f for c, f in zip(row, self.y, strict=True) if c), self.zero) - b
            for row, b in zip(quadric, covector, strict=True)
        ]

    def critical(self, loss: Loss) -> list[Any]:
        """Return the derivatives of half the loss by all weights, in the chart."""
        normal = self.differential(loss)
        derivatives = [
            sum((g * d for g, d in zip(row, normal, strict=True)), self.zero) for row in self.jacobian
        ]
        return [f for f in derivatives if f != 0]

    def system(self, equations: Sequence[Any], inverted: Sequence[Any] = ()) -> System:
        """Equations for msolve; each inverted polynomial f has an unknown z with z f = 1."""
        more = tuple(f"z{i}" for i in range(len(inverted)))
        rows: list[Polynomial] = [
            {(*e, *(0 for _ in more)): c for e, c in sparse(f).items()} for f in equations
        ]
        for i, f in enumerate(inverted):
            unit = tuple(int(j == i) for j in range(len(more)))
            row = {(*e, *unit): c for e, c in sparse(f).items()}
            rows.append({**row, (0,) * (len(self.names) + len(more)): -1})
        return System(variables=(*self.names, *more), p=self.p, equations=tuple(rows))

    def fiber(self, seed: int) -> list[Any]:
        """Equations of the points of the chart with the function of one random point."""
        rng = np.random.default_rng([seed, 23])
        at = [int(x) for x in rng.integers(1, self.p, size=len(self.names))]
        return [f - f(*at) for f in self.y]


def charted(source: ExpandedMap, chart: Chart, p: int) -> ChartedMap:
    """Expand the map and its Jacobian in a chart over F_p, over QQ for p = 0."""
    unknowns = len(chart.directions)
    names = (*(f"s{i}" for i in range(unknowns)), *(("c",) if chart.scaled else ()))
    ring = _ring(names, p)
    weights = _ring([f"w{i}" for i in range(len(chart.base))], p)
    gens, zero = ring.gens(), ring.constant(0)
    at = [
        sum((int(row[i]) * s for row, s in zip(chart.directions, gens, strict=False) if row[i]), zero + int(base))
        for i, base in enumerate(chart.base)
    ]  # fmt: skip
    maps = []
    for f in source.polynomials:
        numbers = _coefficients(list(f.values()), p)
        maps.append(weights.from_dict(dict(zip(f, numbers, strict=True))))
    phi = tuple(f.compose(*at, ctx=ring) for f in maps)
    jacobian = tuple(
        tuple(f.derivative(k).compose(*at, ctx=ring) for f in maps) for k in range(len(chart.base))
    )
    scale = gens[-1] if chart.scaled else ring.constant(1)
    return ChartedMap(names=names, p=p, y=tuple(scale * f for f in phi), phi=phi, jacobian=jacobian)


def inverted_polynomials(map_in_chart: ChartedMap, seed: int) -> list[Any] | None:
    """Return the distinct factors of one nonzero maximal minor of the differential in the chart.

    None if there is none, because the chart has idle directions, or if it is too long.
    """
    rows = map_in_chart.tangent
    rng, p = np.random.default_rng([seed, 24]), map_in_chart.p or LARGE_PRIME
    at = [int(x) for x in rng.integers(1, p, size=len(map_in_chart.names))]
    columns = sorted(range(len(map_in_chart.phi)), key=lambda j: sum(len(row[j]) for row in rows))
    reduced = int if map_in_chart.p else partial(residue, p=p)
    numbers = np.array([[reduced(row[j](*at)) for j in columns] for row in rows], dtype=np.int64)
    pivots = kernel_mod(numbers, p)[1] if rows else ()
    if not rows or len(pivots) < len(rows):
        return None
    minor = _determinant([[row[columns[j]] for j in pivots] for row in rows], map_in_chart.zero + 1)
    return None if minor is None else [factor for factor, _ in minor.factor()[1]]


def inverted_terms(map_in_chart: ChartedMap, seed: int) -> list[Any]:
    """Return the inverted polynomials for the template, as coefficients and lists of indices; none if there is no short minor."""
    polynomials = inverted_polynomials(map_in_chart, seed) or []
    listed = []
    for f in polynomials:
        terms = sparse(f)
        indices = [[i for i, e in enumerate(exponents) for _ in range(e)] for exponents in terms]
        listed.append([list(terms.values()), indices])
    return listed


def _determinant(matrix: list[list[Any]], one: Any) -> Any:
    """Return the determinant by fraction-free elimination; None if an entry becomes too long or a column has no pivot."""
    previous = one
    for k in range(len(matrix) - 1):
        choices = [i for i in range(k, len(matrix)) if matrix[i][k] != 0]
        if not choices:
            return None
        best = min(choices, key=lambda i: len(matrix[i][k]))
        matrix[k], matrix[best] = matrix[best], matrix[k]
        for i in range(k + 1, len(matrix)):
            for j in range(k + 1, len(matrix)):
                entry = matrix[i][j] * matrix[k][k] - matrix[i][k] * matrix[k][j]
                matrix[i][j] = entry / previous
                if len(matrix[i][j]) > MOST_MINOR_TERMS:
                    return None
        previous = matrix[k][k]
    return matrix[-1][-1]


Terms = dict[tuple[int, ...], flint.fmpq]


def second_derivatives(
    source: ExpandedMap, chart: Chart, loss: Loss
) -> tuple[list[Terms], dict[tuple[int, int], Terms]]:
    """Compute the first derivatives of half the loss by the unknowns of a chart and the second, by i <= j, over QQ."""
    map_in_chart = charted(source, chart, 0)
    normal = map_in_chart.differential(loss)
    first = []
    for k in range(len(map_in_chart.names)):
        terms = (f.derivative(k) * d for f, d in zip(map_in_chart.y, normal, strict=True))
        first.append(sum(terms, map_in_chart.zero))
    n = range(len(first))
    second = {(i, j): first[i].derivative(j).to_dict() for i in n for j in n if i <= j}
    return [f.to_dict() for f in first], second
