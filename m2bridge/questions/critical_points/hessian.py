"""The Hessian of a loss in a chart of the weights, and its index at a point enclosed in balls.

At a critical point the Hessian by the unknowns of a chart where the differential is injective is that on the image, in other
coordinates: it has the same signs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import flint
from flint import arb, fmpq

from m2bridge.questions.critical_points.charts import Chart, Source
from m2bridge.questions.critical_points.losses import Loss


class Hessian:
    """The Hessian of the loss by the unknowns of a chart, as polynomials; its index at a point of the chart."""

    def __init__(self, source: Source, chart: Chart, loss: Loss) -> None:
        self.size = chart.unknowns
        context = flint.fmpq_mpoly_ctx.get([f"s{i}" for i in range(self.size)], flint.Ordering.lex)
        variables = context.gens()
        count = len(chart.directions)
        weights = [
            context.constant(base)
            + sum(
                (int(row[i]) * s for row, s in zip(chart.directions, variables[:count], strict=True)),
                context.constant(0),
            )
            for i, base in enumerate(chart.base)
        ]
        scale = variables[-1] if chart.scaled else context.constant(1)
        y = [scale * _substituted(f, weights, context) for f in source.polynomials]
        half = context.constant(0)
        quadric, covector = loss.quadric, loss.covector
        for i, yi in enumerate(y):
            row = sum(
                (_fmpq(quadric[i, j]) * yj for j, yj in enumerate(y) if quadric[i, j]), context.constant(0)
            )
            half += yi * row - 2 * _fmpq(covector[i]) * yi
        first = [half.derivative(i) for i in range(self.size)]
        self.entries = {
            (i, j): first[i].derivative(j).to_dict() for i in range(self.size) for j in range(i, self.size)
        }

    def index(self, place: Sequence[Any]) -> int | None:
        """The number of negative eigenvalues; None when a sign is not decided at this precision."""
        matrix = [
            [_term_sum(self.entries[min(i, j), max(i, j)], place) for j in range(self.size)]
            for i in range(self.size)
        ]
        return negative_pivots(matrix)


def negative_pivots(matrix: list[list[Any]]) -> int | None:
    """The number of negative eigenvalues of a symmetric matrix of balls, by L D L^T; None when a pivot may vanish.

    >>> negative_pivots([[arb(1), arb(2)], [arb(2), arb(1)]])
    1
    """
    rows, negative = [list(row) for row in matrix], 0
    while rows:
        k = max(range(len(rows)), key=lambda i: float(abs(rows[i][i].mid())))
        pivot = rows[k][k]
        if not (pivot > 0 or pivot < 0):
            return None
        negative += bool(pivot < 0)
        rest = [i for i in range(len(rows)) if i != k]
        rows = [[rows[i][j] - rows[i][k] * rows[k][j] / pivot for j in rest] for i in rest]
    return negative


def _fmpq(number: Any) -> fmpq:
    value = Fraction(number)
    return fmpq(value.numerator, value.denominator)


def _substituted(polynomial: Mapping[tuple[int, ...], Any], weights: Sequence[Any], context: Any) -> Any:
    total = context.constant(0)
    for exponents, coefficient in polynomial.items():
        term = context.constant(_fmpq(coefficient))
        for weight, power in zip(weights, exponents, strict=True):
            if power:
                term *= weight ** int(power)
        total += term
    return total


def _term_sum(terms: Mapping[tuple[int, ...], fmpq], place: Sequence[Any]) -> Any:
    total = arb(0)
    for exponents, coefficient in terms.items():
        term = arb(coefficient)
        for x, power in zip(place, exponents, strict=True):
            if power:
                term *= x ** int(power)
        total += term
    return total
