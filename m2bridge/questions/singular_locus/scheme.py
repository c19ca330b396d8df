"""Compute the components of the singular scheme of a closure with complete equations, by ranks of their Jacobian.

Macaulay2 computes the components (``singular_strata``). With exhaustive strata it runs once over QQ, at points of the strata;
otherwise over F_p, where it finds points of the components, and again over QQ or a second prime. The ranks at these points are
compared with ranks that are computed here.
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
    """Equations of the closure in coordinates of its linear span; `basis` contains the indices of these coordinates."""

    closure: Closure
    basis: tuple[int, ...]
    equations: tuple[Equation, ...]

    @property
    def complete(self) -> bool:
        return self.closure.completeness == "complete" and self.closure.agreement is not False

    @property
    def minor_count(self) -> int:
        """Return the number of minors of the Jacobian that define the singular scheme."""
        codim = self.closure.codim or 0
        return comb(len(self.equations), codim) * comb(len(self.basis), codim)

    def request(self, *, seed: int) -> dict[str, object]:
        """Return the values for the template that do not depend on the field."""
        variable = {c: i for i, c in enumerate(self.basis)}
        polynomials = [
            [list(f.coefficients), [[variable[i] for i in m] for m in f.monomials]] for f in self.equations
        ]
        numbers = np.random.default_rng([seed, 33]).integers(1, 10_000, size=97).tolist()
        return {
            "variableCount": len(self.basis), "polynomials": polynomials, "numbers": numbers,
            "wantNumbers": self.closure.characteristic > 0,
        }  # fmt: skip

    def minors(self, model: Model, p: int, seed: int) -> list[list[list[int]]]:
        """Return minors of the Jacobian, as (equations, coordinates), that do not vanish at random points of the image."""
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
        """Return the Jacobian of the equations in the span modulo p, or over QQ for p = 0, at a point with all coordinates."""
        rows = [[f.gradient(point)[i] for i in self.basis] for f in self.equations]
        table = np.array(rows, dtype=object).reshape(len(rows), len(self.basis))
        return table % p if p else table

    def renamed(self, text: str) -> str:
        """Rewrite Macaulay2's polynomial in x0, x1, ... in the coordinates z0, z1, ... of the closure."""
        internal = [f"x{i}" for i in range(len(self.basis))]
        polynomial = parse_polynomial(text, internal, source="Macaulay2's output")
        return polynomial_text(polynomial, [f"z{i}" for i in self.basis])


def in_span(closure: Closure) -> InSpan | None:
    """Return the equations other than linear forms, which express further coordinates; None without equations."""
    if closure.equations is None:
        return None
    linear = closure.equations[: closure.linear_forms]
    nonlinear = closure.equations[closure.linear_forms :]
    used = {i for f in nonlinear for m in f.monomials for i in m}
    order = sorted(range(closure.coordinate_count), key=lambda i: i in used)
    table = np.zeros((len(linear), len(order)), dtype=object)
    for row, f in zip(table, linear, strict=True):
        for c, m in zip(f.coefficients, f.monomials, strict=True):
            if m:
                row[order.index(m[0])] = c
    p = closure.characteristic
    pivots: Sequence[int] = (
        () if not len(linear) else eliminate(table % p, p).pivot_columns if p else over_q.echelon(table)[0]
    )
    solved = {order[i] for i in pivots}
    if solved & used:
        return None
    basis = tuple(i for i in range(closure.coordinate_count) if i not in solved)
    return InSpan(closure=closure, basis=basis, equations=nonlinear)


# -- components ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """Components of the singular locus, embedded ones, generators of the radical, and how sure they are.

    `components` is None if they were not computed, `embedded` if strata do not determine the associated primes.
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
    p = span.closure.characteristic or p
    context.report_progress("singular locus")
    exact, runs = (
        _runs_at_strata(context, strata, span, p) if strata.exhaustive else _runs(context, strata, span, p)
    )
    if exact is None and not runs:
        return Scheme()
    certainty = Certainty.PROBABLE if exact is None else span.closure.certainty
    _add_size_evidence(context, exact, runs, certainty)
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
"""Output of the template: over QQ, and over prime fields by their characteristic."""


def _runs(context: Context, strata: Strata, span: InSpan, p: int) -> Runs:
    """Run the template over F_p, and once more over QQ, or else over a second prime; a third decides where two differ."""
    script_input = span.request(seed=context.seed)
    script_input |= {"chosenMinors": span.minors(strata.model, p, context.seed)}
    values, _ = context.run_template(TEMPLATE, {**script_input, "p": p}, share=_SHARE_FOR_COMPONENTS)
    if "singular_components" not in values:
        return None, {}
    runs: dict[int, Values] = {p: values}
    if span.closure.characteristic:
        return None, runs
    run_limits: dict[str, Any] = {"share": _SHARE_FOR_SECOND_FIELD, "decisive": False}
    exact: Values | None
    exact, _ = context.run_template(TEMPLATE, {**script_input, "p": 0, "wantNumbers": True}, **run_limits)
    exact = exact if "singular_components" in exact else None
    for further_prime in primes_below(p - 1, count=2, numbers=given_numbers(strata.model)):
        if _agreed(exact, runs) is None:
            second, _ = context.run_template(TEMPLATE, {**script_input, "p": further_prime}, **run_limits)
            runs |= {further_prime: second} if "singular_components" in second else {}
    return exact, runs


def _runs_at_strata(context: Context, strata: Strata, span: InSpan, p: int) -> Runs:
    """Run the template with the closures of the strata, over the field of the equations: the minors are few."""
    field = span.closure.characteristic
    script_input = {
        **span.request(seed=context.seed),
        **_closures(strata, span),
        "p": field,
        "wantNumbers": True,
    }
    values, _ = context.run_template(TEMPLATE, script_input, share=_SHARE_FOR_COMPONENTS)
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
    """Return the first prime whose sizes are those over QQ or, if these were not computed, those over another prime."""
    sizes = [_sizes(values) for values in (*runs.values(), *([] if exact is None else [exact]))]
    reference = [_sizes(exact)] if exact is not None else [size for size in sizes if sizes.count(size) > 1]
    return next((p for p, values in runs.items() if _sizes(values) in reference), None)


def _add_size_evidence(
    context: Context, exact: Values | None, runs: Mapping[int, Values], certainty: Certainty
) -> None:
    """Collect the results over each field. If two other primes agree, a prime of bad reduction is used for its field only."""
    quantity = "singular components"
    if exact is not None:
        over_q_evidence = Evidence(quantity, _sizes(exact), "macaulay2", f"{_METHOD}, over QQ")
        context.add_evidence(replace(over_q_evidence, certainty=certainty))
        _add_headline_evidence(context, exact, "over QQ", certainty=certainty)
    good = _agreed(exact, runs)
    for p, values in runs.items():
        bad = good is not None and _sizes(values) != _sizes(runs[good])
        context.add_evidence(
            Evidence(quantity, _sizes(values), "macaulay2", _METHOD, prime=p, field=f"F_{p}" if bad else None)
        )
        _add_headline_evidence(context, values, f"over F_{p}", prime=p, field=f"F_{p}" if bad else None)


def _add_headline_evidence(context: Context, values: Values, field_text: str, **fields: Any) -> None:
    """Add dimension and degree of the singular locus: of the largest components over one field."""
    dim, degree = max(_sizes(values), default=[-1, 0])
    for quantity, value in (("singular_dim", dim), ("singular_degree", degree)):
        context.add_evidence(Evidence(quantity, value, "macaulay2", f"{_METHOD}, {field_text}", **fields))


def _sizes(values: Values) -> list[list[int]]:
    """Return dimension and degree of the union in each dimension; these do not depend on the field, over which components may
    split.
    """
    total: dict[int, int] = {}
    for dim, degree, *_ in values["singular_components"]:
        total[dim] = total.get(dim, 0) + degree
    return [[dim, total[dim]] for dim in sorted(total)]


def _read(best: Values, modular: Values, span: InSpan) -> tuple[Component, ...]:
    """Return the components, with multiplicities at a point over F_p if both lists have the same sizes."""
    numbers = [
        best.get(tag) or [None] * len(best["singular_components"])
        for tag in ("milnor_numbers", "delta_invariants")
    ]
    rows = sorted(zip(best["singular_components"], *numbers, strict=True), key=_order)
    modular_components = modular["singular_components"]
    modular_rows = sorted(
        zip(
            modular_components, modular.get("multiplicities") or [None] * len(modular_components), strict=True
        ),
        key=_order,
    )
    same_sizes = [row[0][:3] for row in rows] == [row[0][:3] for row in modular_rows]
    return tuple(
        Component(
            dim=dim, degree=degree, equations=tuple(map(span.renamed, texts)),
            tangent_dim=None if rank is None else len(span.basis) - rank,
            multiplicity=modular_rows[i][1] if same_sizes else None, milnor_number=milnor, delta_invariant=delta,
        )
        for i, ((dim, degree, rank, texts), milnor, delta) in enumerate(rows)
    )  # fmt: skip


def _order(row: Any) -> tuple[int, int, list[str]]:
    dim, degree, _, texts = row[0]
    return -dim, degree, texts


def _witness_points(context: Context, span: InSpan, values: Values, p: int) -> None:
    """Compare at a point of each component: it lies on the closure, and the Jacobian has the rank stated by Macaulay2."""
    points = values.get("component_points") or ()
    pairs = zip(values["singular_components"], points, strict=False)
    for number, ((_, _, stated_rank, _), point) in enumerate(pairs, start=1):
        if point is None or stated_rank is None:
            continue
        ambient_point = [0] * span.closure.coordinate_count
        for coordinate, text in zip(span.basis, point, strict=True):
            ambient_point[coordinate] = int(text) % p if p else int(text)
        jacobian = span.gradients(ambient_point, p)
        rank = rank_mod(jacobian, p) if p and span.equations else over_q.rank(jacobian)
        on_closure = not any(f.at(ambient_point, p) for f in span.equations)
        rank_there = f"rank at a point of component {number}"
        on_it = f"point of component {number} on the closure"
        statements = (
            (rank_there, stated_rank, "macaulay2", "generic rank on the component"),
            (rank_there, rank, "interpolation", "rank of the equations' Jacobian"),
            (on_it, True, "macaulay2", "a point of the component"),
            (on_it, on_closure, "interpolation", "the equations vanish"),
        )
        context.add_evidence(*(Evidence(*statement, prime=p or None) for statement in statements))
