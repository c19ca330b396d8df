"""Who else counts, and what is left over: second witnesses, strata of the singular locus, functions critical for weights only.

All critical points of the weights, without a chart, are compared with the regular ones and those on strata by the values of one
random linear form: what remains is spurious.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from m2bridge.linear.modular import rank_mod
from m2bridge.models import Mod, Model
from m2bridge.questions.critical_points.charts import Source
from m2bridge.questions.critical_points.counting import MOST_WEIGHTS, Count, Counter, patience, second_prime
from m2bridge.questions.critical_points.result import StratumPoints
from m2bridge.questions.critical_points.strata import known_strata
from m2bridge.questions.kernel import Asking

_LONG = 3.0
"""Seconds of the first count beyond which one further witness is enough."""
FIRST = 30.0
"""Seconds for the hypotheses of Chern classes, which are checked before anything is counted."""


def span_dim(model: Model, p: int, seed: int) -> int:
    rng = np.random.default_rng([seed, 51])
    drawn = [model.draw_weights(rng, p) for _ in range(model.coordinate_count + 5)]
    weights = {name: Mod(np.stack([w[name] for w in drawn]), p) for name in model.parameters}
    return rank_mod(model.coordinates(weights).values, p)


def _families(count: Count) -> list[list[Any]] | None:
    return [[f.zero_loss, f.dim, f.degree] for f in count.families] or None


def _kind(count: Count) -> Any:
    """What witnesses compare: the number of points, with zero loss and without where some have it, or the families."""
    if count.families:
        return _families(count)
    return [count.zero_loss, (count.points or 0) - count.zero_loss] if count.zero_loss else count.points


def say_count(
    ask: Asking, count: Count, witness: str, method: str, p: int, *, general: bool, **more: Any
) -> None:
    """Evidence of the regular points; a general loss has finitely many, and families would contradict a formula."""
    detail = {"fiber_degree": count.fiber_degree, "drop_dim": count.drop_dim}
    name, value = "regular", _kind(count)
    if count.families and not general:
        name, value = "positive_dimensional", _families(count)
    elif general and not count.families:
        value = count.points
    ask.say(name, value, witness, method, prime=p, seconds=count.seconds, detail=detail, **more)


def further_witnesses(ask: Asking, counter: Counter, source: Source, count: Count, *, immersed: bool) -> None:
    """Second witnesses of the count of regular points; `immersed`: Chern classes have spoken already."""
    seconds = patience(count, ask.clock.remaining)
    if immersed and count.seconds > _LONG:
        return
    ask.announce("another prime, gauge and elimination")
    q = second_prime(counter.p, counter.loss, source)
    other = replace(counter, p=q)
    again = Source(source.as_map, q, ask.seed + 1)
    found = other.count(
        again.model, again.chart(dense=True, scaled=False), inverted=source.cone, seconds=seconds
    )
    if found.known:
        method = "the program's polynomials, other prime, gauge and elimination"
        say_count(ask, found, "expansion", method, q, ancestry="program", general=counter.loss.general)
    given_by_polynomials = source.model.m2_partial == "_custom"
    if (
        count.points is not None
        and not immersed
        and (given_by_polynomials or not found.known)
        and counter.loss.general
    ):
        ask.announce("conormal variety")
        normal = counter.conormal(source.model, source.image_dim, seconds)
        ask.say("regular", normal, "conormal", "multipliers on the equations of the closure", prime=counter.p)


def strata_points(
    ask: Asking, counter: Counter, model: Model, first: Count
) -> tuple[tuple[StratumPoints, Count], ...] | None:
    """Counts on known strata of the singular locus, with the origin of a cone last."""
    strata = known_strata(model)
    if strata is None:
        return None
    found, said, again = [], [], []
    for name, stratum in strata:
        ask.announce(f"stratum {name}")
        own = Source(stratum, counter.p, ask.seed)
        chart = own.chart(dense=False)
        bundle = counter.bundle(own, chart, FIRST) if counter.loss.general else None
        chart = own.chart_for(special=counter.loss.special, general=bundle is not None)
        seconds = 2 * patience(first, ask.clock.remaining)
        count = counter.count(stratum, chart, immersed=bundle is not None, seconds=seconds)
        point = StratumPoints(
            stratum=name,
            dim=own.image_dim,
            count=count.points,
            zero_loss=count.zero_loss,
            families=count.families,
        )
        found.append((point, count))
        said.append(_kind(count))
        again.append(_again(ask, counter, own, count, bundle) if count.known else None)
    if found and all(count.known for _, count in found):
        ask.say(
            "singular", said, "macaulay2", "Groebner bases on parametrizations of the strata", prime=counter.p
        )
        if None not in again:
            ask.say(
                "singular",
                again,
                "second count",
                "Chern classes, or another prime and gauge",
                ancestry="formula",
            )
    return tuple(found)


def _again(ask: Asking, counter: Counter, own: Source, count: Count, bundle: tuple[int, str] | None) -> Any:
    seconds = patience(count, ask.clock.remaining)
    if bundle is not None and count.fiber_degree:
        return bundle[0] // count.fiber_degree
    q = second_prime(counter.p, counter.loss, own)
    other = Source(own.as_map, q, ask.seed + 1)
    found = replace(counter, p=q).count(other.model, other.chart(dense=True), seconds=seconds)
    return _kind(found)


def account(
    ask: Asking,
    counter: Counter,
    source: Source,
    count: Count,
    strata: tuple[tuple[StratumPoints, Count], ...] | None,
    *,
    immersed: bool,
) -> tuple[int | None, tuple[StratumPoints, ...] | None, str]:
    """How many functions are critical for the weights only; the strata with what is critical in the weights; how it is known."""
    linear = source.image_dim == span_dim(source.model, counter.p, ask.seed)
    points = None if strata is None else [point for point, _ in strata]
    if points is not None and source.cone and not linear:
        points.append(StratumPoints(stratum="the origin", dim=0, count=1))
    done = None if points is None else tuple(points)
    total = None
    small = source.model.parameter_count <= MOST_WEIGHTS and count.values is not None
    if small and not count.families and count.limit is None:
        ask.announce("all critical points of the weights")
        seconds = patience(count, ask.clock.remaining)
        judged = points is None and not linear and not immersed
        equations = counter.equations(source.model, source.image_dim, seconds) if judged else None
        total, on_singular = counter.values_in_weights(source.model, seconds, equations)
    if total is not None and points is None and not linear:
        return _judged(total, on_singular, count, source)
    if total is not None:
        return _compared(total, count, strata, points)
    if immersed:
        # a locus of codimension c where the differential loses k has critical points of a general loss only for c <= k
        text = "The differential loses k only in codimension > k: a general loss has no critical weights there but those of 0."
        return int(linear), done, text
    return None, done, "Critical points of the weights outside the chart were not accounted for."


def _compared(
    total: Any, count: Any, strata: Any, points: list[StratumPoints] | None
) -> tuple[int | None, tuple[StratumPoints, ...] | None, str]:
    """Values at all critical weights, less the regular ones, less those on strata: the spurious ones."""
    rest, text = _without_regular(total, count)
    origin = type(rest)([0, 1], rest.modulus())
    named = []
    for i, point in enumerate(points or ()):
        own = strata[i][1].values if i < len(strata) else origin
        common = None if own is None else rest.gcd(own)
        if common is not None:
            rest = rest // common
        named.append(replace(point, in_weights=None if common is None else common.degree()))
    return rest.degree(), None if points is None else tuple(named), text


def _judged(
    total: Any, on_singular: Any, count: Any, source: Source
) -> tuple[int | None, tuple[StratumPoints, ...] | None, str]:
    """The same where no strata are known: equations of the closure tell which of the other critical functions are singular."""
    rest, text = _without_regular(total, count)
    origin = type(rest)([0, 1], rest.modulus())
    if source.cone and on_singular is None:
        rest = rest // rest.gcd(origin)
        text += " The origin, where a cone that is no linear space is singular, is left out."
    if on_singular is None:
        if rest.degree() == 0:
            return 0, None, text
        return (
            None,
            None,
            f"{text} Of these, {rest.degree()} are spurious or singular; equations of the closure would tell.",
        )
    singular = rest.gcd(on_singular)
    where = "the singular locus, critical in the weights"
    found = StratumPoints(stratum=where, dim=None, count=singular.degree(), in_weights=singular.degree())
    return (rest // singular).degree(), (found,), text


def _without_regular(total: Any, count: Any) -> tuple[Any, str]:
    common = total.gcd(count.values)
    text = f"Without a chart, {total.degree()} functions are critical for the weights, {common.degree()} of them regular."
    return total // common, text
