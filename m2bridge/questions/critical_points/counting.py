"""Counts of critical points by Macaulay2 and by Chern classes, each with what it was counted on.

All critical points of the weights, without a chart, are compared with the regular ones and those on strata of the singular locus
by the values of one random linear form: what remains is spurious.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from flint import nmod_poly

from m2bridge.errors import M2BridgeError
from m2bridge.evidence import Ancestry, Evidence
from m2bridge.families import Model
from m2bridge.linear.primes import LARGEST_MACAULAY2_PRIME, given_numbers, primes_below
from m2bridge.questions.closure import closure
from m2bridge.questions.critical_points.charts import (
    Chart,
    ExpandedMap,
    known_strata,
    orbit_pairs_dim,
    whole_space,
)
from m2bridge.questions.critical_points.ed_degree import generic_ed_degree
from m2bridge.questions.critical_points.equations import charted, inverted_terms
from m2bridge.questions.critical_points.losses import Loss
from m2bridge.questions.critical_points.result import CriticalFamily, StratumPoints
from m2bridge.questions.kernel import Context

TEMPLATE, BUNDLE, CONORMAL = "critical_points", "critical_points_bundle", "critical_points_conormal"
MOST_VALUES = 150  # critical values whose polynomial Macaulay2 computes
MOST_CHART_WEIGHTS = 9
"""With more weights than this, components outside all charts are not looked for (10 weights took more than a minute)."""
MOST_POINTS_AGAIN = 60
"""Points of the chart, with their multiplicity in the fiber, up to which they are counted again beside Chern classes (chosen;
the 14 of lightning(d=2,dp=1) take seconds)."""
_MOST_NORMALS = 8  # codimensions for which the conormal variety is formed
_SHARE_FOR_HYPOTHESES = 0.1
"""Of the time left, for the hypotheses of Chern classes, which are checked before anything is counted."""
_SHARE_FOR_SECOND_WITNESS = 0.5
"""Of the time left, for every further witness and stratum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What one run found.

    Attributes
    ----------
    points: the number of regular critical functions, None when not finite or not reached; `zero_loss` of them have zero loss.
    values: the polynomial whose roots are the values of a random linear form at these functions, where they are few.
    localized: whether points where the differential drops were left out before anything was computed.
    """

    points: int | None = None
    zero_loss: int | None = None
    families: tuple[CriticalFamily, ...] = ()
    fiber_dim: int | None = None
    fiber_degree: int | None = None
    drop_dim: int | None = None
    values: nmod_poly | None = None
    limit: str | None = None
    seconds: float = 0.0
    localized: bool = False

    @property
    def known(self) -> bool:
        return self.points is not None or bool(self.families)


NOT_COUNTED = Count()


def _grouped(components: Sequence[Sequence[Any]]) -> tuple[CriticalFamily, ...]:
    """Sum up components {zero loss, dimension, degree} by the first two."""
    total: dict[tuple[bool, int], int] = {}
    for zero, dim, degree in components:
        total[bool(zero), int(dim)] = total.get((bool(zero), int(dim)), 0) + int(degree)
    order = sorted(total, key=lambda key: (-key[1], not key[0]))
    return tuple(CriticalFamily(zero_loss=zero, dim=dim, degree=total[zero, dim]) for zero, dim in order)


@dataclass(frozen=True)
class Counter:
    """Runs the templates for one loss over one field; random forms are the same in all runs, so that values can be compared."""

    context: Context
    loss: Loss
    p: int

    def _random(self, count: int, salt: int) -> list[int]:
        rng = np.random.default_rng([self.context.seed, 41, salt])
        return [int(x) for x in rng.integers(1, self.p, size=count)]

    def other_primes(self, source: ExpandedMap, largest: int, count: int = 1) -> list[int]:
        """Return other primes up to `largest` that divide no number of the loss or the map."""
        numbers = self.loss.numbers | given_numbers(source.as_map)
        return primes_below(largest, count=count, without=self.p, numbers=numbers)

    def count(
        self, model: Model, chart: Chart, *, inverted: bool = False, immersed: bool = False,
        invertible: Sequence[Any] = (), share: float | None = None, decisive: bool = True,
    ) -> Count:  # fmt: skip
        """Count regular critical functions of a map in a chart; `immersed`: no critical point has a differential that drops."""
        more = {"inverted": inverted, "immersed": immersed, "invertible": invertible}
        values, limit = self._run(model, chart, more, share, decisive=decisive)
        fiber = values.get("fiber_degree") if values.get("fiber_dim") == 0 else None
        degree, points, zero_loss = values.get("regular_degree"), None, None
        if fiber and values.get("regular_dim") in (0, -1) and degree is not None and degree % fiber == 0:
            points, zero_loss = degree // fiber, (values.get("zero_degree") or 0) // fiber
        return Count(
            points=points, zero_loss=zero_loss, families=_grouped(values.get("parts") or ()),
            fiber_dim=values.get("fiber_dim"), fiber_degree=fiber or None, drop_dim=values.get("drop_dim"),
            values=self._squarefree(values.get("values_polynomial")), limit=limit, seconds=values.run.seconds,
            localized=bool(invertible),
        )  # fmt: skip

    def first(
        self, source: ExpandedMap, share: float | None = None, *, decisive: bool = True
    ) -> tuple[tuple[int, str] | None, Count]:
        """Return the number by Chern classes for a general loss, after checking hypotheses, and the count in a fitting chart."""
        bundle = self.bundle(source) if self.loss.general else None
        immersed = bundle is not None
        chart = source.chart_for(special=self.loss.special, general=immersed)
        self.context.report_progress("critical points in a chart")
        invertible: list[Any] = []
        if self.loss.general and not immersed:
            invertible = inverted_terms(charted(source, chart, self.p), self.context.seed)
        more: dict[str, Any] = {"immersed": immersed, "invertible": invertible}
        return bundle, self.count(source.model, chart, share=share, decisive=decisive, **more)

    def values_in_weights(
        self, model: Model, equations: Mapping[str, object] | None = None
    ) -> tuple[nmod_poly | None, nmod_poly | None]:
        """Return the values of the random form at all critical points of the weights, and at those with singular functions.

        None when they are not finitely many, or when there are no `equations` of the closure to judge by.
        """
        more = {"wholeSpace": True, "chosenParts": False, **(equations or {})}
        values, _ = self._run(model, whole_space(model.parameter_count), more, _SHARE_FOR_SECOND_WITNESS)
        all_of_them, singular = values.get("values_polynomial"), values.get("singular_polynomial")
        return self._squarefree(all_of_them), self._squarefree(singular)

    def _run(
        self,
        model: Model,
        chart: Chart,
        more: Mapping[str, object],
        share: float | None,
        *,
        decisive: bool = True,
    ) -> tuple[Any, str | None]:
        values = self.loss.modulo(self.p) | chart.parameters | dict(more)
        values |= {
            "p": self.p, "form": self._random(model.coordinate_count, 1), "multipliers": self._random(chart.unknowns, 2),
            "basePoint": self._random(max(chart.unknowns, model.coordinate_count), 3), "mostValues": MOST_VALUES,
        }  # fmt: skip
        return self.context.run_template(TEMPLATE, values, model, share=share, decisive=decisive)

    def _squarefree(self, coefficients: Sequence[int] | None) -> nmod_poly | None:
        """Return the product of the distinct irreducible factors."""
        if coefficients is None:
            return None
        factors = nmod_poly([int(c) % self.p for c in coefficients], self.p).factor()[1]
        return prod((factor for factor, _ in factors), start=nmod_poly([1], self.p))

    def bundle(self, source: ExpandedMap) -> tuple[int, str] | None:
        """Return the number by Chern classes, with its hypotheses in words; None where they do not hold or were not checked."""
        degrees = source.class_degrees()
        if degrees is None or not source.product_of_projective_spaces(source.chart(dense=False)):
            return None
        dense = source.chart(dense=True)
        base, pairs = -1, orbit_pairs_dim(source.model, self.p)
        if pairs is None:
            values = {"p": self.p, "base": dense.base, "directions": dense.directions}
            values["multipliers"] = self._random(dense.unknowns, 2)
            hypotheses, _ = self.context.run_template(
                BUNDLE, values, source.model, share=_SHARE_FOR_HYPOTHESES
            )
            base, pairs = hypotheses.get("base_dim"), hypotheses.get("pairs_dim")
        if base != -1 or pairs is None or pairs > len(dense.directions) - 2:
            return None
        dims = tuple(len(indices) - 1 for indices in source.classes)
        space = " x ".join(f"P^{n}" for n in dims)
        drops = "the rank of the differential drops by k only in codimension > k"
        immersed = "an immersion" if pairs == -1 else drops
        method = f"Chern classes of {space} by O{degrees}; no base points, {immersed}"
        return generic_ed_degree(dims, degrees), method

    def equations(self, model: Model, image_dim: int) -> dict[str, object] | None:
        """Return complete equations of the closure over F_p and as many random combinations as its codimension, or None."""
        codim = model.coordinate_count - image_dim
        if not 0 < codim <= _MOST_NORMALS:
            return None
        try:
            answer = self.context.ask_question(closure, model, prime=self.p, share=_SHARE_FOR_SECOND_WITNESS)
        except M2BridgeError:
            return None
        if answer.completeness != "complete" or answer.equations is None or answer.characteristic != self.p:
            return None
        if any(k >= model.coordinate_count for f in answer.equations for m in f.monomials for k in m):
            return None  # made homogeneous by a further coordinate
        rng = np.random.default_rng([self.context.seed, 42])
        terms = [[list(f.coefficients), [list(m) for m in f.monomials]] for f in answer.equations]
        combinations = rng.integers(1, self.p, size=(codim, len(terms))).tolist()
        return {"equationTerms": terms, "combinations": combinations}

    def conormal(self, model: Model, image_dim: int) -> int | None:
        """Return the count from equations of the closure, by the conormal variety; None where complete equations were not had."""
        equations = self.equations(model, image_dim)
        if equations is None:
            return None
        sizes = {"p": self.p, "coordinateCount": model.coordinate_count}
        parameters = self.loss.modulo(self.p, residual=False) | equations | sizes
        values, _ = self.context.run_template(CONORMAL, parameters, share=_SHARE_FOR_SECOND_WITNESS)
        return values.get("conormal_degree") if values.get("conormal_dim") in (0, -1) else None


# -- who else counts, and what is left over --------------------------------------------------------------


Strata = tuple[tuple[StratumPoints, Count], ...]


def _kind(count: Count) -> Any:
    """Return what witnesses compare: the number of points, with zero loss and without where some have it, or the families."""
    if count.families:
        return [f.numbers for f in count.families]
    if count.zero_loss:
        return [count.zero_loss, (count.points or 0) - count.zero_loss]
    return count.points


def say_count(counter: Counter, count: Count, witness: str, method: str, **more: Any) -> None:
    """Add evidence of the regular points; a general loss has finitely many, and families would contradict a formula."""
    general = counter.loss.general
    detail = {"fiber_degree": count.fiber_degree, "drop_dim": count.drop_dim}
    name = "positive_dimensional" if count.families and not general else "regular"
    more |= {"prime": counter.p, "seconds": count.seconds, "detail": detail}
    value = [f.numbers for f in count.families] if count.families else count.points
    counter.context.add_evidence(Evidence(name, value, witness, method, **more))
    if not general and not count.families and count.zero_loss is not None:
        counter.context.add_evidence(Evidence("zero_loss", count.zero_loss, witness, method, **more))


def further_witnesses(
    counter: Counter, source: ExpandedMap, count: Count, *, immersed: bool, by_msolve: bool
) -> None:
    """Add second witnesses of the count of regular points; `immersed`: Chern classes have counted them already."""
    context, degree = counter.context, (count.points or 0) * (count.fiber_degree or 1)
    if by_msolve:
        if count.drop_dim is None and not immersed:  # Macaulay2 has not counted them in a chart
            _add_conormal(counter, source)
        return
    if immersed and degree > MOST_POINTS_AGAIN:
        method = f"not attempted beside Chern classes: {degree} points of the chart > {MOST_POINTS_AGAIN}"
        context.add_evidence(Evidence("regular", None, "expansion", method, ancestry="program"))
        return
    context.report_progress("another prime, gauge and elimination")
    other, again = elsewhere(counter, source)
    second = other.count(
        again.model,
        again.chart(dense=True, scaled=False),
        inverted=source.cone,
        share=_SHARE_FOR_SECOND_WITNESS,
    )
    if second.known:
        method = "the program's polynomials, other prime, gauge and elimination"
        say_count(other, second, "expansion", method, ancestry="program")
    by_polynomials = source.model.m2_partial == "_custom"
    alone = not immersed and (by_polynomials or not second.known)
    if alone and count.points is not None and counter.loss.general:
        _add_conormal(counter, source)


def _add_conormal(counter: Counter, source: ExpandedMap) -> None:
    """Add evidence of the regular points from equations of the closure."""
    counter.context.report_progress("conormal variety")
    normal = counter.conormal(source.model, source.image_dim)
    method = "multipliers on the equations of the closure"
    counter.context.add_evidence(Evidence("regular", normal, "conormal", method, prime=counter.p))


def elsewhere(counter: Counter, source: ExpandedMap) -> tuple[Counter, ExpandedMap]:
    """Return the same loss and map over another prime, by the polynomials that the program expanded, with another seed."""
    other = replace(counter, p=counter.other_primes(source, LARGEST_MACAULAY2_PRIME)[0])
    return other, ExpandedMap(source.as_map, other.p, counter.context.seed + 1)


def strata_points(counter: Counter, model: Model, first: Count) -> Strata | None:
    """Count on known strata of the singular locus; None where none are known."""
    strata = known_strata(model)
    if strata is None:
        return None
    context, counted, again = counter.context, [], []
    ancestry: Ancestry = "formula"
    for name, stratum in strata:
        context.report_progress(f"stratum {name}")
        expanded = ExpandedMap(stratum, counter.p, context.seed)
        bundle, count = counter.first(expanded, _SHARE_FOR_SECOND_WITNESS)
        point = StratumPoints(
            stratum=name, dim=expanded.image_dim, count=count.points, zero_loss=count.zero_loss, families=count.families
        )  # fmt: skip
        counted.append((point, count))
        again.append(_again(counter, expanded, count, bundle) if count.known else None)
        if bundle is not None and count.fiber_degree:
            ancestry = "literature"  # Chern classes are compared, and support nothing
    if counted and all(count.known for _, count in counted):
        method = "Groebner bases on parametrizations of the strata"
        context.add_evidence(
            Evidence("singular", [_kind(count) for _, count in counted], "macaulay2", method, prime=counter.p)
        )
        if None not in again:
            method = "Chern classes, or another prime and gauge"
            context.add_evidence(Evidence("singular", again, "second count", method, ancestry=ancestry))
    return tuple(counted)


def _again(counter: Counter, stratum: ExpandedMap, count: Count, bundle: tuple[int, str] | None) -> Any:
    """Return a second count on a stratum: by Chern classes, or with another prime and gauge."""
    if bundle is not None and count.fiber_degree:
        return bundle[0] // count.fiber_degree
    other, source = elsewhere(counter, stratum)
    return _kind(other.count(source.model, source.chart(dense=True), share=_SHARE_FOR_SECOND_WITNESS))


@dataclass(frozen=True, slots=True)
class OtherCriticalPoints:
    """How many functions are critical in the weights only; strata with what is critical in the weights; how it is known."""

    spurious: int | None
    singular: tuple[StratumPoints, ...] | None
    text: str


NOT_ACCOUNTED = OtherCriticalPoints(
    None, None, "Critical points of the weights outside the chart were not accounted for."
)


def account(
    counter: Counter, source: ExpandedMap, count: Count, strata: Strata | None, *, immersed: bool
) -> OtherCriticalPoints:
    """Classify the critical points of the weights beside the regular ones of the chart."""
    linear = source.image_dim == source.span_dim
    points = None if strata is None else [point for point, _ in strata]
    if points is not None and source.cone and not linear:
        points.append(StratumPoints(stratum="the origin", dim=0, count=1))
    small = source.model.parameter_count <= MOST_CHART_WEIGHTS and count.values is not None
    total = None
    if small and not count.families and count.limit is None:
        counter.context.report_progress("all critical points of the weights")
        judged = points is None and not linear and not immersed
        equations = counter.equations(source.model, source.image_dim) if judged else None
        total, on_singular = counter.values_in_weights(source.model, equations)
    if total is not None:
        common = total.gcd(count.values)
        text = f"Without a chart, {total.degree()} functions are critical in the weights, {common.degree()} of them regular."
        rest, origin = total // common, type(total)([0, 1], total.modulus())
        if points is None and not linear:
            return _judged(rest, on_singular, text, origin if source.cone else None)
        named = []
        on_strata = [stratum_count.values for _, stratum_count in strata or ()]
        for point, values in zip(points or (), [*on_strata, origin], strict=False):
            shared = None if values is None else rest.gcd(values)
            rest = rest if shared is None else rest // shared
            named.append(replace(point, in_weights=None if shared is None else shared.degree()))
        return OtherCriticalPoints(rest.degree(), None if points is None else tuple(named), text)
    done = None if points is None else tuple(points)
    if immersed:
        # a locus of codimension c where the differential loses k has critical points of a general loss only for c <= k
        text = (
            "The rank of the differential drops by k only in codimension > k, so a general loss has no critical weights"
            " there except those of the zero function."
        )
        return OtherCriticalPoints(int(linear), done, text)
    return replace(NOT_ACCOUNTED, singular=done)


def _judged(rest: Any, on_singular: Any, text: str, origin: Any) -> OtherCriticalPoints:
    """Decide by equations of the closure which irregular critical functions are singular, where no strata are known."""
    if on_singular is not None:
        singular = rest.gcd(on_singular)
        where, size = "the singular locus, critical in the weights", singular.degree()
        stratum = StratumPoints(stratum=where, dim=None, count=size, in_weights=size)
        return OtherCriticalPoints((rest // singular).degree(), (stratum,), text)
    if origin is not None:
        rest = rest // rest.gcd(origin)
        text += " The origin, where a cone other than a linear space is singular, is not counted."
    if rest.degree() == 0:
        return OtherCriticalPoints(0, None, text)
    open_ones = f"Of these, {rest.degree()} are spurious or singular; the equations of the closure are needed to decide."
    return OtherCriticalPoints(None, None, f"{text} {open_ones}")
