"""Counts of critical points by Macaulay2 and by Chern classes, each with what it was counted on.

The generic ED degree of a product of projective spaces: let X = P^n1 x ... x P^nk of dimension N be mapped by sections of
O(w1, ..., wk) without base points and birationally onto its image. For a general quadric the number of critical points of the
loss on the cone over the image is

    sum over i of (-1)^i (2^(N + 1 - i) - 1) deg(c_i(T) h^(N - i)),      h = w1 h1 + ... + wk hk

(Draisma, Horobet, Ottaviani, Sturmfels, Thomas, *The Euclidean distance degree of an algebraic variety*, arXiv:1309.0049, Theorem
5.8, for an embedding). It also holds when the differential loses k >= 1 only in codimension greater than k: the pairs of a point
and a hyperplane that contains the image of the differential there are then irreducible of the same dimension, so they are the
conormal variety, and its class is computed by the same bundles. This is what :meth:`Counter.bundle` checks first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import comb, factorial, prod
from typing import Any

import numpy as np
from flint import nmod_poly

from m2bridge.errors import M2BridgeError
from m2bridge.linear.primes import LARGEST_MACAULAY2_PRIME, given_numbers, primes_below
from m2bridge.models import Model
from m2bridge.questions.closure import closure
from m2bridge.questions.critical_points.charts import Chart, Source, orbit_pairs_dim, whole_space
from m2bridge.questions.critical_points.losses import Loss
from m2bridge.questions.critical_points.result import Family
from m2bridge.questions.kernel import Asking

TEMPLATE, BUNDLE, CONORMAL = "critical_points", "critical_points_bundle", "critical_points_conormal"
MOST_VALUES = 150
_MOST_NORMALS = 8
_FIRST = 30.0
"""Seconds for the hypotheses of Chern classes, which are checked before anything is counted."""
_PATIENCE = 90.0
"""Seconds for a second witness where there is no limit, or three times as long as the first took."""


def generic_ed_degree(dims: Sequence[int], degrees: Sequence[int]) -> int:
    """The sum above for dims (n1, ..., nk) and degrees (w1, ..., wk).

    >>> generic_ed_degree((3, 1), (1, 1)), generic_ed_degree((2,), (2,)), generic_ed_degree((1, 1), (1, 1))
    (14, 13, 6)
    """
    top, total = sum(dims), 0
    for chosen in product(*(range(n + 1) for n in dims)):
        i, left = sum(chosen), [n - k for n, k in zip(dims, chosen, strict=True)]
        chern = prod(comb(n + 1, k) for n, k in zip(dims, chosen, strict=True))
        power = factorial(top - i) // prod(map(factorial, left))
        power *= prod(w**n for w, n in zip(degrees, left, strict=True))
        total += (-1) ** i * (2 ** (top + 1 - i) - 1) * chern * power
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What one run found.

    Attributes
    ----------
    points: the number of regular critical functions, None when not finite or not reached; `zero_loss` of them have zero loss.
    values: the polynomial whose roots are the values of a random linear form at these functions, where they are few.
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

    def patience(self, remaining: float | None) -> float:
        """Seconds for a further witness: more than this one took, less than all that is left."""
        wanted = max(20.0, min(_PATIENCE, 4 * self.seconds))
        return wanted if remaining is None else max(1.0, min(wanted, 0.5 * remaining))


def _grouped(parts: Sequence[Sequence[Any]]) -> tuple[Family, ...]:
    """Components {zero loss, dimension, degree} summed up by the first two."""
    total: dict[tuple[bool, int], int] = {}
    for zero, dim, degree in parts:
        total[bool(zero), int(dim)] = total.get((bool(zero), int(dim)), 0) + int(degree)
    order = sorted(total, key=lambda key: (-key[1], not key[0]))
    return tuple(Family(zero_loss=zero, dim=dim, degree=total[zero, dim]) for zero, dim in order)


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
        fiber = values.get("fiber_degree") if values.get("fiber_dim") == 0 else None
        degree, points, zero_loss = values.get("regular_degree"), None, None
        if fiber and values.get("regular_dim") in (0, -1) and degree is not None and degree % fiber == 0:
            points, zero_loss = degree // fiber, (values.get("zero_degree") or 0) // fiber
        return Count(
            points=points,
            zero_loss=zero_loss,
            families=_grouped(values.get("parts") or ()),
            fiber_dim=values.get("fiber_dim"),
            fiber_degree=fiber or None,
            drop_dim=values.get("drop_dim"),
            values=self._squarefree(values.get("values_polynomial")),
            limit=limit,
            seconds=self.ask.last_seconds,
        )

    def first(self, source: Source, seconds: float | None = None) -> tuple[tuple[int, str] | None, Count]:
        """What Chern classes say of a general loss, whose hypotheses are checked first, and the count in a fitting chart."""
        bundle = self.bundle(source, _FIRST) if self.loss.general else None
        immersed = bundle is not None
        chart = source.chart_for(special=self.loss.special, general=immersed)
        self.ask.announce("critical points in a chart")
        return bundle, self.count(source.model, chart, immersed=immersed, seconds=seconds)

    def values_in_weights(
        self, model: Model, seconds: float | None, equations: Mapping[str, object] | None = None
    ) -> tuple[nmod_poly | None, nmod_poly | None]:
        """The values of the random form at all critical points of the weights, and at those with singular functions.

        None when they are not finitely many, or when there are no `equations` of the closure to judge by.
        """
        more = {"wholeSpace": True, "chosenParts": False, **(equations or {})}
        values, _ = self._run(model, whole_space(model.parameter_count), more, seconds)
        all_of_them, singular = values.get("values_polynomial"), values.get("singular_polynomial")
        return self._squarefree(all_of_them), self._squarefree(singular)

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

    def _squarefree(self, coefficients: Sequence[int] | None) -> nmod_poly | None:
        """The product of the distinct irreducible factors."""
        if coefficients is None:
            return None
        factors = nmod_poly([int(c) % self.p for c in coefficients], self.p).factor()[1]
        return prod((factor for factor, _ in factors), start=nmod_poly([1], self.p))

    def bundle(self, source: Source, seconds: float | None) -> tuple[int, str] | None:
        """The number that Chern classes give, with its hypotheses in words; None where they do not hold or were not checked."""
        degrees = source.class_degrees()
        if degrees is None or not source.product_of_projective_spaces(source.chart(dense=False)):
            return None
        dense = source.chart(dense=True)
        base, pairs = -1, orbit_pairs_dim(source.model, self.p)
        if pairs is None:
            values = {"p": self.p, "base": dense.base, "directions": dense.directions}
            values["multipliers"] = self._random(dense.unknowns, 2)
            found, _ = self.ask.ask(BUNDLE, values, source.model, seconds=seconds)
            base, pairs = found.get("base_dim"), found.get("pairs_dim")
        if base != -1 or pairs is None or pairs > len(dense.directions) - 2:
            return None
        dims = tuple(len(places) - 1 for places in source.classes)
        space = " x ".join(f"P^{n}" for n in dims)
        immersed = "an immersion" if pairs == -1 else "the differential loses k only in codimension > k"
        method = f"Chern classes of {space} by O{degrees}; no base points, {immersed}"
        return generic_ed_degree(dims, degrees), method

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
        combinations = rng.integers(1, self.p, size=(codim, len(terms))).tolist()
        return {"equationTerms": terms, "combinations": combinations}

    def conormal(self, model: Model, image_dim: int, seconds: float | None) -> int | None:
        """The count from equations of the closure, by the conormal variety; None where complete equations were not had."""
        equations = self.equations(model, image_dim, seconds)
        if equations is None:
            return None
        sizes = {"p": self.p, "coordinateCount": model.coordinate_count}
        given = self.loss.modulo(self.p, residual=False) | equations | sizes
        values, _ = self.ask.ask(CONORMAL, given, seconds=seconds)
        return values.get("conormal_degree") if values.get("conormal_dim") in (0, -1) else None


def second_prime(p: int, loss: Loss, source: Source) -> int:
    """Another prime for which nothing given vanishes."""
    numbers = loss.numbers | given_numbers(source.as_map)
    return primes_below(LARGEST_MACAULAY2_PRIME, count=1, without=p, numbers=numbers)[0]
