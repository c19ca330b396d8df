"""The singular scheme of a closure whose equations are complete: its components, by ranks of the equations' Jacobian.

Macaulay2 computes them (``singular_strata``). With exhaustive strata that is done once over QQ, at points of the strata; else
over F_p, where it finds points of the components, and again over QQ or a second prime. The points are examined once more here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.families import Model
from m2bridge.families.strata import Strata
from m2bridge.families.symbolic import symbolic_map
from m2bridge.frontends.polynomials import for_macaulay2, parse_polynomial, polynomial_text
from m2bridge.linear.modular import eliminate, rank_mod
from m2bridge.linear.primes import given_numbers, primes_below
from m2bridge.protocol import Values
from m2bridge.questions import over_q
from m2bridge.questions.closure import Closure, Equation, image_of
from m2bridge.questions.kernel import Context
from m2bridge.questions.singular_locus.result import Component

TEMPLATE = "singular_strata"
_SHARE_FOR_COMPONENTS = 0.5
"""Of the time left, for the components modulo p."""
_SHARE_FOR_SECOND_FIELD = 0.25
"""Of the time left, for the components over QQ, on which the certainty rests; then for a second prime."""
_STARTING_MINORS = 8  # points at which a minor is chosen
_MOST_MINORS, _MOST_MINORS_OF_MANY_COORDINATES = 20_000, 100
"""Of the Jacobian, beyond which the scheme is not computed where strata decide without it; the second in a linear span of more
than 8 dimensions: with the scheme over QQ the answer for 3 x 3 matrices of rank one took 26 s, for 3 x 4 matrices of rank at
most two 300 s, and 1.6 s without."""
_METHOD = "components by ranks of the equations' Jacobian"


# -- equations in the span -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class InSpan:
    """Equations of the closure in coordinates of its linear span: `basis` are the numbers of these coordinates."""

    found: Closure
    basis: tuple[int, ...]
    equations: tuple[Equation, ...]

    @property
    def complete(self) -> bool:
        return self.found.completeness == "complete" and self.found.agreement is not False

    @property
    def minor_count(self) -> int:
        """The number of minors of the Jacobian that define the singular scheme."""
        codim = self.found.codim or 0
        return comb(len(self.equations), codim) * comb(len(self.basis), codim)

    def request(self, *, seed: int) -> dict[str, object]:
        """Return the values for the template that do not depend on the field."""
        place = {c: i for i, c in enumerate(self.basis)}
        polynomials = [
            [list(f.coefficients), [[place[i] for i in m] for m in f.monomials]] for f in self.equations
        ]
        numbers = np.random.default_rng([seed, 33]).integers(1, 10_000, size=97).tolist()
        return {
            "variableCount": len(self.basis), "polynomials": polynomials, "numbers": numbers,
            "wantNumbers": self.found.characteristic > 0,
        }  # fmt: skip

    def minors(self, model: Model, p: int, seed: int) -> list[list[list[int]]]:
        """Minors of the Jacobian, as (equations, coordinates), that do not vanish at random points of the image."""
        rng, size = np.random.default_rng([seed, 32]), len(self.equations)
        chosen: dict[tuple[tuple[int, ...], tuple[int, ...]], None] = {}
        for point in image_of(model).affine_points(rng, _STARTING_MINORS, p):
            rows = sorted(
                rng.permutation(size).tolist(), key=lambda i: (self.equations[i].degree, len(self.equations[i].monomials))
            )  # fmt: skip
            columns = rng.permutation(len(self.basis)).tolist()
            pivots = eliminate(self.gradients(point.tolist(), p)[np.ix_(rows, columns)], p)
            chosen_rows = tuple(sorted(rows[i] for i in pivots.pivot_rows))
            chosen[chosen_rows, tuple(sorted(columns[i] for i in pivots.pivot_columns))] = None
        longest = max((len(rows) for rows, _ in chosen), default=0)
        return [[list(rows), list(columns)] for rows, columns in chosen if len(rows) == longest]

    def gradients(self, point: Sequence[int], p: int) -> np.ndarray:
        """The Jacobian of the equations in the span modulo p, or over QQ for p = 0, at a point given by all coordinates."""
        rows = [[f.gradient(point)[i] for i in self.basis] for f in self.equations]
        table = np.array(rows, dtype=object).reshape(len(rows), len(self.basis))
        return table % p if p else table

    def renamed(self, text: str) -> str:
        """Macaulay2's polynomial in x0, x1, ... written in the coordinates z0, z1, ... of the closure."""
        internal = [f"x{i}" for i in range(len(self.basis))]
        found = parse_polynomial(text, internal, source="Macaulay2's output")
        return polynomial_text(found, [f"z{i}" for i in self.basis])


def in_span(found: Closure) -> InSpan | None:
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
    pivots: Sequence[int] = (
        () if not len(linear) else eliminate(table % p, p).pivot_columns if p else over_q.echelon(table)[0]
    )
    solved = {order[i] for i in pivots}
    if solved & used:
        return None
    basis = tuple(i for i in range(found.coordinate_count) if i not in solved)
    return InSpan(found=found, basis=basis, equations=others)


# -- components ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """Components of the singular locus, embedded ones, generators of the radical, and how sure they are.

    `components` is None where they were not computed, and `embedded` unless strata determine the associated primes.
    """

    components: tuple[Component, ...] | None = None
    embedded: tuple[Component, ...] | None = None
    radical: tuple[str, ...] | None = None
    certainty: Certainty = Certainty.PROBABLE


def singular_scheme(context: Context, strata: Strata, span: InSpan | None, p: int) -> Scheme:
    """Return the components of the singular locus. Where strata are exhaustive and minors many, the strata decide alone."""
    if span is None or not span.complete:
        return Scheme()
    most = _MOST_MINORS if len(span.basis) <= 8 else _MOST_MINORS_OF_MANY_COORDINATES
    if strata.exhaustive and span.minor_count > most:
        return Scheme()
    p = span.found.characteristic or p
    context.report_progress("singular locus")
    exact, runs = (
        _runs_at_strata(context, strata, span, p) if strata.exhaustive else _runs(context, strata, span, p)
    )
    if exact is None and not runs:
        return Scheme()
    certainty = Certainty.PROBABLE if exact is None else span.found.certainty
    _say_sizes(context, exact, runs, certainty)
    p = _agreed(exact, runs) or next(iter(runs), 0)
    values = runs.get(p) or exact
    best = exact or values
    assert values is not None  # there is a run over QQ or over a prime field
    assert best is not None
    _witness_points(context, span, values, p)
    return Scheme(
        components=_read(best, values, span), embedded=_embedded(best, span), certainty=certainty,
        radical=tuple(map(span.renamed, best.strings("radical"))) if "radical" in best else None,
    )  # fmt: skip


Runs = tuple[Values | None, Mapping[int, Values]]
"""What the template emits: over QQ, and over prime fields by their characteristic."""


def _runs(context: Context, strata: Strata, span: InSpan, p: int) -> Runs:
    """Run the template over F_p, and once more over QQ, or else over a second prime; a third decides where two differ."""
    send = span.request(seed=context.seed)
    send |= {"chosenMinors": span.minors(strata.model, p, context.seed)}
    values, _ = context.run_template(TEMPLATE, {**send, "p": p}, share=_SHARE_FOR_COMPONENTS)
    if "singular_components" not in values:
        return None, {}
    runs: dict[int, Values] = {p: values}
    if span.found.characteristic:
        return None, runs
    more: dict[str, Any] = {"share": _SHARE_FOR_SECOND_FIELD, "decisive": False}
    exact: Values | None
    exact, _ = context.run_template(TEMPLATE, {**send, "p": 0, "wantNumbers": True}, **more)
    exact = exact if "singular_components" in exact else None
    for other in primes_below(p - 1, count=2, numbers=given_numbers(strata.model)):
        if _agreed(exact, runs) is None:
            second, _ = context.run_template(TEMPLATE, {**send, "p": other}, **more)
            runs |= {other: second} if "singular_components" in second else {}
    return exact, runs


def _runs_at_strata(context: Context, strata: Strata, span: InSpan, p: int) -> Runs:
    """Run the template with the closures of the strata, over the field of the equations: the minors are few."""
    field = span.found.characteristic
    send = {**span.request(seed=context.seed), **_closures(strata, span), "p": field, "wantNumbers": True}
    values, _ = context.run_template(TEMPLATE, send, share=_SHARE_FOR_COMPONENTS)
    if "singular_components" not in values:
        return None, {}
    return (None, {field: values}) if field else (values, {})


def _closures(strata: Strata, span: InSpan) -> dict[str, object]:
    """Return the closures of all strata but the dense one, as (number of variables, coordinates), and a point of each stratum.

    The singular scheme is stable under a connected group with finitely many orbits, so that its associated primes are ideals of
    closures of orbits.
    """
    closures: list[object] = []
    points = []
    for stratum in strata.strata()[:-1]:
        image = strata.model.coordinates(dict(strata.representative(stratum)))
        points.append([int(image[i]) for i in span.basis])
        source = strata.parametrization(stratum)
        if source is None:
            closures.append([0, []])  # the origin
            continue
        polynomials = symbolic_map(source)
        closures.append([source.parameter_count, [for_macaulay2(polynomials[i]) for i in span.basis]])
    return {"closures": closures, "closurePoints": points}


def _embedded(values: Values, span: InSpan) -> tuple[Component, ...] | None:
    if "embedded" not in values:
        return None
    return tuple(
        Component(dim=dim, degree=degree, equations=tuple(map(span.renamed, texts)))
        for dim, degree, texts in values["embedded"]
    )


def _agreed(exact: Values | None, runs: Mapping[int, Values]) -> int | None:
    """The first prime over which the sizes are those over QQ or, where these are not known, those over another prime."""
    sizes = [_sizes(values) for values in (*runs.values(), *([] if exact is None else [exact]))]
    reference = [_sizes(exact)] if exact is not None else [size for size in sizes if sizes.count(size) > 1]
    return next((p for p, values in runs.items() if _sizes(values) in reference), None)


def _say_sizes(
    context: Context, exact: Values | None, runs: Mapping[int, Values], certainty: Certainty
) -> None:
    """Collect the results over each field. If two other primes agree, a prime of bad reduction is used for its field only."""
    quantity = "singular components"
    if exact is not None:
        own = Evidence(quantity, _sizes(exact), "macaulay2", f"{_METHOD}, over QQ")
        context.add_evidence(replace(own, certainty=certainty))
        _say_headline(context, exact, "over QQ", certainty=certainty)
    good = _agreed(exact, runs)
    for p, values in runs.items():
        bad = good is not None and _sizes(values) != _sizes(runs[good])
        context.add_evidence(
            Evidence(quantity, _sizes(values), "macaulay2", _METHOD, prime=p, field=f"F_{p}" if bad else None)
        )
        _say_headline(context, values, f"over F_{p}", prime=p, field=f"F_{p}" if bad else None)


def _say_headline(context: Context, values: Values, over: str, **more: Any) -> None:
    """Add dimension and degree of the singular locus: of the largest components over one field."""
    dim, degree = max(_sizes(values), default=[-1, 0])
    for quantity, value in (("singular_dim", dim), ("singular_degree", degree)):
        context.add_evidence(Evidence(quantity, value, "macaulay2", f"{_METHOD}, {over}", **more))


def _sizes(values: Values) -> list[list[int]]:
    """Dimension and degree of the union in each dimension: the same over every field, where components may split."""
    total: dict[int, int] = {}
    for dim, degree, *_ in values["singular_components"]:
        total[dim] = total.get(dim, 0) + degree
    return [[dim, total[dim]] for dim in sorted(total)]


def _read(best: Values, modular: Values, span: InSpan) -> tuple[Component, ...]:
    """The components, with multiplicities at a point over F_p where both lists have the same sizes."""
    numbers = [
        best.get(tag) or [None] * len(best["singular_components"])
        for tag in ("milnor_numbers", "delta_invariants")
    ]
    listed = sorted(zip(best["singular_components"], *numbers, strict=True), key=_order)
    parts = modular["singular_components"]
    beside = sorted(zip(parts, modular.get("multiplicities") or [None] * len(parts), strict=True), key=_order)
    same = [row[0][:3] for row in listed] == [row[0][:3] for row in beside]
    return tuple(
        Component(
            dim=dim, degree=degree, equations=tuple(map(span.renamed, texts)),
            tangent_dim=None if rank is None else len(span.basis) - rank,
            multiplicity=beside[i][1] if same else None, milnor_number=milnor, delta_invariant=delta,
        )
        for i, ((dim, degree, rank, texts), milnor, delta) in enumerate(listed)
    )  # fmt: skip


def _order(row: Any) -> tuple[int, int, list[str]]:
    dim, degree, _, texts = row[0]
    return -dim, degree, texts


def _witness_points(context: Context, span: InSpan, values: Values, p: int) -> None:
    """Compare at the points of the components: on the closure, and the rank of the Jacobian; over QQ for p = 0."""
    points = values.get("component_points") or ()
    for number, (part, point) in enumerate(zip(values["singular_components"], points, strict=False), start=1):
        if point is None or part[2] is None:
            continue
        place = [0] * span.found.coordinate_count
        for coordinate, text in zip(span.basis, point, strict=True):
            place[coordinate] = int(text) % p if p else int(text)
        jacobian = span.gradients(place, p)
        rank = rank_mod(jacobian, p) if p and span.equations else over_q.rank(jacobian)
        over: dict[str, Any] = {"prime": p or None}
        context.add_evidence(
            Evidence(
                f"rank at a point of component {number}",
                part[2],
                "macaulay2",
                "generic rank on the component",
                **over,
            ),
            Evidence(
                f"rank at a point of component {number}",
                rank,
                "interpolation",
                "rank of the equations' Jacobian",
                **over,
            ),
        )
        values_there = [f.at(place) for f in span.equations]
        on_closure = not any(value % p if p else value for value in values_there)
        context.add_evidence(
            Evidence(
                f"point of component {number} on the closure",
                True,
                "macaulay2",
                "a point of the component",
                **over,
            ),
            Evidence(
                f"point of component {number} on the closure",
                on_closure,
                "interpolation",
                "the equations vanish",
                **over,
            ),
        )
