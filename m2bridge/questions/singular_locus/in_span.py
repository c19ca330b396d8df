"""Equations of a closure in coordinates of its linear span, with their Jacobian and some minors of it that do not vanish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from m2bridge.linear.modular import eliminate
from m2bridge.models import Model
from m2bridge.questions import over_q
from m2bridge.questions.closure import Closure, Equation
from m2bridge.questions.closure.image import image_of

_STARTING_MINORS = 8


@dataclass(frozen=True, kw_only=True)
class Equations:
    """Equations of the closure in coordinates of its linear span: `basis` are the numbers of these coordinates."""

    found: Closure
    basis: tuple[int, ...]
    equations: tuple[Equation, ...]

    @property
    def complete(self) -> bool:
        return self.found.completeness == "complete" and self.found.agreement is not False

    def request(self, p: int, minors: Sequence[object], *, irreducible: bool, seed: int) -> dict[str, object]:
        """Values for the template; over QQ (p = 0) only when the equations are."""
        place = {c: i for i, c in enumerate(self.basis)}
        polynomials = [
            [list(f.coefficients), [[place[i] for i in m] for m in f.monomials]] for f in self.equations
        ]
        numbers = np.random.default_rng([seed, 33]).integers(1, 10_000, size=97).tolist()
        return {
            "p": p, "variableCount": len(self.basis), "polynomials": polynomials, "irreducible": irreducible,
            "chosenMinors": list(minors), "numbers": numbers, "wantPoints": p > 0,
        }  # fmt: skip

    def minors(self, model: Model, p: int, seed: int) -> list[list[list[int]]]:
        """Minors of the Jacobian, as (equations, coordinates), that do not vanish at random points of the image."""
        rng, size = np.random.default_rng([seed, 32]), len(self.equations)
        points = image_of(model).points(rng, _STARTING_MINORS, p)
        chosen: dict[tuple[tuple[int, ...], tuple[int, ...]], None] = {}
        for point in points:
            rows = sorted(
                rng.permutation(size).tolist(), key=lambda i: (self.equations[i].degree, len(self.equations[i].monomials))
            )  # fmt: skip
            columns = rng.permutation(len(self.basis)).tolist()
            table = self.gradients(point.tolist(), p)[np.ix_(rows, columns)]
            pivots = eliminate(table, p)
            key = (
                tuple(sorted(rows[i] for i in pivots.pivot_rows)),
                tuple(sorted(columns[i] for i in pivots.pivot_columns)),
            )
            chosen[key] = None
        longest = max((len(rows) for rows, _ in chosen), default=0)
        return [[list(rows), list(columns)] for rows, columns in chosen if len(rows) == longest]

    def gradients(self, point: Sequence[Any], p: int) -> np.ndarray:
        """The Jacobian of the equations in the span, at a point given by all coordinates; residues, or Fractions for p = 0."""
        rows = [[f.gradient(point)[i] for i in self.basis] for f in self.equations]
        table = np.array(rows, dtype=object).reshape(len(rows), len(self.basis))
        return table % p if p else table


def in_span(found: Closure) -> Equations | None:
    """The equations without the linear forms, which express the other coordinates; None without equations."""
    if found.equations is None:
        return None
    linear, others = found.equations[: found.linear_forms], found.equations[found.linear_forms :]
    used = {i for f in others for m in f.monomials for i in m}
    order = sorted(range(found.coordinate_count), key=lambda i: i in used)
    table = np.zeros((len(linear), len(order)), dtype=object)
    for row, f in zip(table, linear, strict=True):
        for c, m in zip(f.coefficients, f.monomials, strict=True):
            if m:
                row[order.index(m[0])] = c
    p = found.characteristic
    if len(linear) == 0:
        pivots: Sequence[int] = ()
    else:
        pivots = eliminate(table % p, p).pivot_columns if p else over_q.echelon(table)[0]
    solved = {order[i] for i in pivots}
    if solved & used:
        return None
    basis = tuple(i for i in range(found.coordinate_count) if i not in solved)
    return Equations(found=found, basis=basis, equations=others)
