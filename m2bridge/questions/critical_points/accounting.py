"""Who else counts, and what is left over: second witnesses, strata of the singular locus, functions critical for weights only.

All critical points of the weights, without a chart, are compared with the regular ones and those on strata by the values of one
random linear form: what remains is spurious.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from m2bridge.models import Model
from m2bridge.questions.critical_points.charts import Source, known_strata
from m2bridge.questions.critical_points.counting import Count, Counter, second_prime
from m2bridge.questions.critical_points.result import StratumPoints
from m2bridge.questions.kernel import Asking

MOST_WEIGHTS = 9
"""With more weights than this, components outside all charts are not looked for (10 weights took more than a minute)."""
_LONG = 3.0
"""Seconds of the first count beyond which one further witness is enough."""

Strata = tuple[tuple[StratumPoints, Count], ...]


def _kind(count: Count, *, general: bool = False) -> Any:
    """What witnesses compare: the number of points, with zero loss and without where some have it, or the families."""
    if count.families:
        return [[f.zero_loss, f.dim, f.degree] for f in count.families]
    if count.zero_loss and not general:
        return [count.zero_loss, (count.points or 0) - count.zero_loss]
    return count.points


def say_count(ask: Asking, count: Count, witness: str, method: str, counter: Counter, **more: Any) -> None:
    """Evidence of the regular points; a general loss has finitely many, and families would contradict a formula."""
    general = counter.loss.general
    detail = {"fiber_degree": count.fiber_degree, "drop_dim": count.drop_dim}
    name = "positive_dimensional" if count.families and not general else "regular"
    more |= {"prime": counter.p, "seconds": count.seconds, "detail": detail}
    ask.say(name, _kind(count, general=general), witness, method, **more)


def further_witnesses(ask: Asking, counter: Counter, source: Source, count: Count, *, immersed: bool) -> None:
    """Second witnesses of the count of regular points; `immersed`: Chern classes have spoken already."""
    seconds = count.patience(ask.clock.remaining)
    if immersed and count.seconds > _LONG:
        return
    ask.announce("another prime, gauge and elimination")
    other = replace(counter, p=second_prime(counter.p, counter.loss, source))
    again = Source(source.as_map, other.p, ask.seed + 1)
    chart = again.chart(dense=True, scaled=False)
    found = other.count(again.model, chart, inverted=source.cone, seconds=seconds)
    if found.known:
        method = "the program's polynomials, other prime, gauge and elimination"
        say_count(ask, found, "expansion", method, other, ancestry="program")
    by_polynomials = source.model.m2_partial == "_custom"
    alone = not immersed and (by_polynomials or not found.known)
    if alone and count.points is not None and counter.loss.general:
        ask.announce("conormal variety")
        normal = counter.conormal(source.model, source.image_dim, seconds)
        ask.say("regular", normal, "conormal", "multipliers on the equations of the closure", prime=counter.p)


def strata_points(ask: Asking, counter: Counter, model: Model, first: Count) -> Strata | None:
    """Counts on known strata of the singular locus; None where none are known."""
    strata = known_strata(model)
    if strata is None:
        return None
    found, again = [], []
    for name, stratum in strata:
        ask.announce(f"stratum {name}")
        own = Source(stratum, counter.p, ask.seed)
        bundle, count = counter.first(own, 2 * first.patience(ask.clock.remaining))
        point = StratumPoints(
            stratum=name,
            dim=own.image_dim,
            count=count.points,
            zero_loss=count.zero_loss,
            families=count.families,
        )
        found.append((point, count))
        again.append(_again(ask, counter, own, count, bundle) if count.known else None)
    if found and all(count.known for _, count in found):
        said, method = (
            [_kind(count) for _, count in found],
            "Groebner bases on parametrizations of the strata",
        )
        ask.say("singular", said, "macaulay2", method, prime=counter.p)
        if None not in again:
            method = "Chern classes, or another prime and gauge"
            ask.say("singular", again, "second count", method, ancestry="formula")
    return tuple(found)


def _again(ask: Asking, counter: Counter, own: Source, count: Count, bundle: tuple[int, str] | None) -> Any:
    """A second count on a stratum: by Chern classes, or with another prime and gauge."""
    if bundle is not None and count.fiber_degree:
        return bundle[0] // count.fiber_degree
    seconds = count.patience(ask.clock.remaining)
    q = second_prime(counter.p, counter.loss, own)
    other = Source(own.as_map, q, ask.seed + 1)
    return _kind(replace(counter, p=q).count(other.model, other.chart(dense=True), seconds=seconds))


@dataclass(frozen=True, slots=True)
class Account:
    """How many functions are critical for the weights only; strata with what is critical in the weights; how it is known."""

    spurious: int | None
    singular: tuple[StratumPoints, ...] | None
    text: str


def account(
    ask: Asking, counter: Counter, source: Source, count: Count, strata: Strata | None, *, immersed: bool
) -> Account:
    """What the critical points of the weights are, beside the regular ones of the chart."""
    linear = source.image_dim == source.span_dim
    points = None if strata is None else [point for point, _ in strata]
    if points is not None and source.cone and not linear:
        points.append(StratumPoints(stratum="the origin", dim=0, count=1))
    small = source.model.parameter_count <= MOST_WEIGHTS and count.values is not None
    total = None
    if small and not count.families and count.limit is None:
        ask.announce("all critical points of the weights")
        seconds = count.patience(ask.clock.remaining)
        judged = points is None and not linear and not immersed
        equations = counter.equations(source.model, source.image_dim, seconds) if judged else None
        total, on_singular = counter.values_in_weights(source.model, seconds, equations)
    if total is not None:
        common = total.gcd(count.values)
        text = f"Without a chart, {total.degree()} functions are critical for the weights, {common.degree()} of them regular."
        rest, origin = total // common, type(total)([0, 1], total.modulus())
        if points is None and not linear:
            return _judged(rest, on_singular, text, origin if source.cone else None)
        values = [own.values for _, own in strata or ()] + [origin]
        named = []
        for point, own in zip(points or (), values, strict=False):
            shared = None if own is None else rest.gcd(own)
            rest = rest if shared is None else rest // shared
            named.append(replace(point, in_weights=None if shared is None else shared.degree()))
        return Account(rest.degree(), None if points is None else tuple(named), text)
    done = None if points is None else tuple(points)
    if immersed:
        # a locus of codimension c where the differential loses k has critical points of a general loss only for c <= k
        text = "The differential loses k only in codimension > k: a general loss has no critical weights there but those of 0."
        return Account(int(linear), done, text)
    return Account(None, done, "Critical points of the weights outside the chart were not accounted for.")


def _judged(rest: Any, on_singular: Any, text: str, origin: Any) -> Account:
    """Where no strata are known, equations of the closure tell which critical functions that are not regular are singular."""
    if on_singular is not None:
        singular = rest.gcd(on_singular)
        where, size = "the singular locus, critical in the weights", singular.degree()
        found = StratumPoints(stratum=where, dim=None, count=size, in_weights=size)
        return Account((rest // singular).degree(), (found,), text)
    if origin is not None:
        rest = rest // rest.gcd(origin)
        text += " The origin, where a cone that is no linear space is singular, is left out."
    if rest.degree() == 0:
        return Account(0, None, text)
    open_ones = f"Of these, {rest.degree()} are spurious or singular; equations of the closure would tell."
    return Account(None, None, f"{text} {open_ones}")
