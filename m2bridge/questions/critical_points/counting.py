"""Counts of critical points by Macaulay2, each with what it was counted on; the witnesses of `critical-points`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import nmod_poly

from m2bridge.errors import M2BridgeError
from m2bridge.linear.primes import LARGEST_MACAULAY2_PRIME, given_numbers, primes_below
from m2bridge.models import Model
from m2bridge.questions.closure import closure
from m2bridge.questions.critical_points.charts import Chart, Source, whole_space
from m2bridge.questions.critical_points.chern import generic_ed_degree
from m2bridge.questions.critical_points.losses import Loss
from m2bridge.questions.critical_points.result import Family
from m2bridge.questions.critical_points.strata import orbit_pairs_dim
from m2bridge.questions.kernel import Asking

TEMPLATE, BUNDLE, CONORMAL = "critical_points", "critical_points_bundle", "critical_points_conormal"
MOST_VALUES = 150
MOST_WEIGHTS = 9
"""With more weights than this, components outside all charts are not looked for (10 weights took more than a minute)."""
_MOST_NORMALS = 8
_PATIENCE = 90.0
"""Seconds for a second witness where there is no limit, or three times as long as the first took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What one run found. `points`: the number of regular critical functions, None when not finite or not reached.

    `zero_loss`: how many of them have zero loss.

    `values` is the polynomial whose roots are the values of a random linear form at these functions, where they are few.
    """

    points: int | None
    zero_loss: int | None
    families: tuple[Family, ...]
    fiber_dim: int | None
    fiber_degree: int | None
    drop_dim: int | None
    values: nmod_poly | None
    limit: str | None
    seconds: float

    @property
    def known(self) -> bool:
        return self.points is not None or bool(self.families)


def grouped(parts: Sequence[Sequence[Any]]) -> tuple[Family, ...]:
    """Components {zero loss, dimension, degree} summed up by the first two."""
    total: dict[tuple[bool, int], int] = {}
    for zero, dim, degree in parts:
        total[bool(zero), int(dim)] = total.get((bool(zero), int(dim)), 0) + int(degree)
    return tuple(
        Family(zero_loss=zero, dim=dim, degree=total[zero, dim])
        for zero, dim in sorted(total, key=lambda key: (-key[1], not key[0]))
    )


def squarefree(coefficients: Sequence[int], p: int) -> nmod_poly:
    """The product of the distinct irreducible factors."""
    found = nmod_poly([int(c) % p for c in coefficients], p)
    result = nmod_poly([1], p)
    for factor, _ in found.factor()[1]:
        result *= factor
    return result


@dataclass(frozen=True)
class Counter:
    """Runs the templates for one loss over one field; random forms are the same in all runs, so that values can be compared."""

    ask: Asking
    loss: Loss
    p: int

    def _random(self, count: int, salt: int) -> list[int]:
        rng = np.random.default_rng([self.ask.seed, 41, salt])
        return [int(x) for x in rng.integers(1, self.p, size=count)]

    def count(
        self,
        model: Model,
        chart: Chart,
        *,
        inverted: bool = False,
        immersed: bool = False,
        seconds: float | None = None,
    ) -> Count:
        """The regular critical functions of a map in a chart; `immersed`: no critical point has a differential that drops."""
        values, limit = self._run(model, chart, {"inverted": inverted, "immersed": immersed}, seconds)
        fiber, degree = values.get("fiber_degree"), values.get("regular_degree")
        if values.get("fiber_dim") != 0 or not fiber:
            fiber = None
        finite = values.get("regular_dim") in (0, -1)
        points = None
        if fiber is not None and finite and degree is not None and degree % fiber == 0:
            points = degree // fiber
        return Count(
            points=points,
            zero_loss=None if points is None else (values.get("zero_degree") or 0) // fiber,
            families=grouped(values.get("parts") or ()),
            fiber_dim=values.get("fiber_dim"),
            fiber_degree=fiber,
            drop_dim=values.get("drop_dim"),
            values=self._polynomial(values.get("values_polynomial")),
            limit=limit,
            seconds=self.ask.last_seconds,
        )

    def values_in_weights(
        self, model: Model, seconds: float | None, equations: Mapping[str, object] | None = None
    ) -> tuple[nmod_poly | None, nmod_poly | None]:
        """The values of the random form at all critical points of the weights, and at those with singular functions.

        None when they are not finitely many, or when there are no `equations` of the closure to judge by.
        """
        more = {"wholeSpace": True, "chosenParts": False, **(equations or {})}
        values, _ = self._run(model, whole_space(model.parameter_count), more, seconds)
        found = (values.get("values_polynomial"), values.get("singular_polynomial"))
        return self._polynomial(found[0]), self._polynomial(found[1])

    def _run(
        self, model: Model, chart: Chart, more: Mapping[str, object], seconds: float | None
    ) -> tuple[Any, str | None]:
        values = self.loss.modulo(self.p) | chart.parameters | dict(more)
        values |= {
            "p": self.p,
            "form": self._random(model.coordinate_count, 1),
            "multipliers": self._random(chart.unknowns, 2),
            "basePoint": self._random(chart.unknowns, 3),
            "mostValues": MOST_VALUES,
        }
        return self.ask.ask(TEMPLATE, values, model, seconds=seconds)

    def _polynomial(self, coefficients: Sequence[int] | None) -> nmod_poly | None:
        return None if coefficients is None else squarefree(coefficients, self.p)

    def bundle(self, source: Source, chart: Chart, seconds: float | None) -> tuple[int, str] | None:
        """The number that Chern classes give, with its hypotheses in words; None where they do not hold or were not checked."""
        dense = source.chart(dense=True)
        degrees = source.class_degrees()
        if degrees is None or not source.product_of_projective_spaces(chart):
            return None
        top = len(dense.directions)
        base, pairs = -1, orbit_pairs_dim(source.model, self.p)
        if pairs is None:
            chart_values = {"base": dense.base, "directions": dense.directions}
            values, _ = self.ask.ask(
                BUNDLE,
                {"p": self.p, **chart_values, "multipliers": self._random(dense.unknowns, 2)},
                source.model,
                seconds=seconds,
            )
            base, pairs = values.get("base_dim"), values.get("pairs_dim")
        if base != -1 or pairs is None or pairs > top - 2:
            return None
        dims = tuple(len(places) - 1 for places in source.classes)
        space = " x ".join(f"P^{n}" for n in dims)
        immersed = "an immersion" if pairs == -1 else "the differential loses k only in codimension > k"
        return generic_ed_degree(
            dims, degrees
        ), f"Chern classes of {space} by O{degrees}; no base points, {immersed}"

    def equations(self, model: Model, image_dim: int, seconds: float | None) -> dict[str, object] | None:
        """Complete equations of the closure over F_p, and as many random combinations as its codimension; None where not had."""
        codim = model.coordinate_count - image_dim
        if not 0 < codim <= _MOST_NORMALS:
            return None
        try:
            found = self.ask.also(closure, model, prime=self.p, seconds=seconds)
        except M2BridgeError:
            return None
        if found.completeness != "complete" or found.equations is None or found.characteristic != self.p:
            return None
        if any(k >= model.coordinate_count for f in found.equations for m in f.monomials for k in m):
            return None  # made homogeneous by a further coordinate
        rng = np.random.default_rng([self.ask.seed, 42])
        terms = [[list(f.coefficients), [list(m) for m in f.monomials]] for f in found.equations]
        return {
            "equationTerms": terms,
            "combinations": rng.integers(1, self.p, size=(codim, len(terms))).tolist(),
        }

    def conormal(self, model: Model, image_dim: int, seconds: float | None) -> int | None:
        """The count from equations of the closure, by the conormal variety; None where complete equations were not had."""
        equations = self.equations(model, image_dim, seconds)
        if equations is None:
            return None
        loss = {k: v for k, v in self.loss.modulo(self.p).items() if not k.startswith("residual")}
        sizes = {"p": self.p, "coordinateCount": model.coordinate_count}
        values, _ = self.ask.ask(CONORMAL, loss | equations | sizes, seconds=seconds)
        return values.get("conormal_degree") if values.get("conormal_dim") in (0, -1) else None


def second_prime(p: int, loss: Loss, source: Source) -> int:
    """Another prime for which nothing given vanishes."""
    numbers = loss.numbers | given_numbers(source.as_map)
    return primes_below(LARGEST_MACAULAY2_PRIME, count=1, without=p, numbers=numbers)[0]


def patience(first: Count, remaining: float | None) -> float:
    """Seconds for a further witness: more than the first took, less than all that is left."""
    wanted = max(20.0, min(_PATIENCE, 4 * first.seconds))
    return wanted if remaining is None else max(1.0, min(wanted, 0.5 * remaining))
