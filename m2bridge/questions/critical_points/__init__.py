"""The loss landscape: critical points of a quadratic loss on the functions of a polynomial network, counted exactly.

Regular points are counted in a chart of the weights modulo gauge; points on known strata of the singular locus are counted on a map
of that stratum; functions that are critical for the weights only (spurious) are what remains of all critical points of the
weights. Second witnesses: Chern classes where their hypotheses were checked, the conormal variety of the closure's equations, and the
polynomials that the network's own program expands, with another prime, another gauge and another elimination.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np

from m2bridge.errors import InputError, NotPolynomialError
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import MACAULAY2_PRIME, check_prime, given_numbers, prime_for
from m2bridge.models import Mod, Model
from m2bridge.questions.closure.image import leanest
from m2bridge.questions.critical_points.charts import Chart, Source
from m2bridge.questions.critical_points.counting import (
    BUNDLE,
    CONORMAL,
    MOST_WEIGHTS,
    TEMPLATE,
    Count,
    Counter,
    patience,
    second_prime,
)
from m2bridge.questions.critical_points.losses import (
    METRICS,
    Loss,
    drawn_samples,
    metric_loss,
    read_samples,
    sample_loss,
)
from m2bridge.questions.critical_points.result import CriticalPoints, StratumPoints
from m2bridge.questions.critical_points.strata import known_strata
from m2bridge.questions.kernel import Asking, Option, question
from m2bridge.questions.source import constrained_map
from m2bridge.results import Certainty

Metric = Literal["generic", "bombieri", "euclidean"]
_MOST_COORDINATES = 150


@question(
    asks="The critical points of the squared loss on a network's functions: how many, of which kind, how many real.",
    templates=(TEMPLATE, BUNDLE, CONORMAL),
    quantities={
        "regular": "the number of regular critical points over the complex numbers",
        "singular": "the numbers of critical points on strata of the singular locus",
        "positive_dimensional": "families of regular critical points: zero loss, dimension, degree",
    },
    example="m2bridge critical-points 'lightning(d=2,dp=1)'",
    warm=True,
)
def critical_points(
    ask: Asking,
    model: Model,
    *,
    metric: Annotated[
        Metric, Option("generic (a random quadric), bombieri (the functions' own norm) or euclidean.")
    ] = "generic",
    kernel: Annotated[int, Option("Dimension of the kernel of a generic quadric.", least=0)] = 0,
    data: Annotated[Any, Option("Samples: X.npz,Y.npz, or one .npz with X and Y.", read=read_samples)] = None,
    samples: Annotated[int | None, Option("The loss of so many random samples.", least=1)] = None,
    noise: Annotated[
        float, Option("Noise on the targets of --samples; 0: a network of this kind made them.")
    ] = 1.0,
) -> CriticalPoints:
    """The critical points of a quadratic loss on the neuromanifold.

    The loss is a metric with a random target, or the squared error of samples: `data` is a pair of arrays (X, Y). Counts are over F_p.

    Examples
    --------
    >>> critical_points("lightning(d=2,dp=1)").regular  # doctest: +SKIP
    14
    """
    source_model = _checked(model)
    loss = _loss(model, metric, kernel, data, samples, noise, ask.seed)
    chosen = None if ask.prime is None else check_prime(ask.prime)
    p = prime_for(given_numbers(model) | loss.numbers, chosen=chosen, default=MACAULAY2_PRIME)
    ask.require_engine()
    source = Source(source_model, p, ask.seed)
    counter = Counter(ask, loss, p)
    chart = source.chart(dense=False)
    ask.announce("critical points in a chart")
    count = counter.count(source_model, chart)
    _say(ask, count, "macaulay2", "Groebner basis in a chart of the weights", p)
    if count.limit is None:
        _witness(ask, counter, source, chart, count)
    strata = _strata(ask, counter, model, source) if count.limit is None else None
    spurious, strata, accounted = _account(ask, counter, source, chart, count, strata)
    return ask.answer(
        CriticalPoints,
        model=model.spec,
        options={
            "prime": p,
            "metric": None if loss.kind == "samples" else loss.kind,
            "kernel": kernel,
            "samples": samples,
        },
        certainty=Certainty.PROBABLE,
        limit=count.limit,
        loss=_description(loss, kernel, samples),
        loss_rank=loss.rank(),
        needed_rank=_span_dim(source_model, p, ask.seed),
        image_dim=source.image_dim,
        coordinate_count=source_model.coordinate_count,
        fiber_degree=count.fiber_degree,
        ed_degree=count.points if loss.kind != "samples" and kernel == 0 else None,
        regular=count.points,
        singular=strata,
        spurious=spurious,
        accounted=accounted,
        positive_dimensional=count.families,
        remarks=tuple(_remarks(loss, count, source, _span_dim(source_model, p, ask.seed))),
    )


def _checked(model: Model) -> Model:
    """The model with fewest weights and the same image; what has no critical points of this kind is refused."""
    if not model.polynomial:
        raise NotPolynomialError(f"{model.spec} is not polynomial: its critical points are no algebraic set")
    if constrained_map(model) is not None:
        raise InputError(
            f"{model.spec}: its variables satisfy equations; give a parametrization of this source instead"
        )
    if model.coordinate_count > _MOST_COORDINATES:
        raise InputError(
            f"{model.spec} has {model.coordinate_count} coordinates; critical points are counted for up to {_MOST_COORDINATES}"
        )
    return leanest(model)


def _loss(
    model: Model,
    metric: str,
    kernel: int,
    data: Any,
    samples: int | None,
    noise: float,
    seed: int,
    *,
    small: bool = False,
) -> Loss:
    if metric not in METRICS:
        raise InputError(f"--metric {metric!r} is not one of {', '.join(METRICS)}")
    given = [
        name for name, there in (("--data", data is not None), ("--samples", samples is not None)) if there
    ]
    if len(given) == 2 or (given and (metric != "generic" or kernel)):
        raise InputError(
            f"give --metric (with --kernel), or --data, or --samples; not {' and '.join(given)} with another"
        )
    if data is not None:
        return sample_loss(model, *(np.asarray(array) for array in data))
    if samples is not None:
        return drawn_samples(model, samples, noise, seed)
    return metric_loss(model, metric, kernel, seed, small=small)


def _description(loss: Loss, kernel: int, samples: int | None) -> str:
    if loss.kind == "samples":
        return (
            "the squared error of the given samples"
            if samples is None
            else f"the squared error of {samples} random samples"
        )
    words = {
        "generic": f"a random quadric{f' with a kernel of dimension {kernel}' if kernel else ''}",
        "bombieri": "the Bombieri norm",
        "euclidean": "the sum of squares of the coordinates",
    }
    return f"{words[loss.kind]}, random target"


def _span_dim(model: Model, p: int, seed: int) -> int:
    rng = np.random.default_rng([seed, 51])
    drawn = [model.draw_weights(rng, p) for _ in range(model.coordinate_count + 5)]
    weights = {name: Mod(np.stack([w[name] for w in drawn]), p) for name in model.parameters}
    return rank_mod(model.coordinates(weights).values, p)


def _families(count: Count) -> list[list[Any]] | None:
    return [[f.zero_loss, f.dim, f.degree] for f in count.families] or None


def _say(ask: Asking, count: Count, witness: str, method: str, p: int, **more: Any) -> None:
    detail = {"fiber_degree": count.fiber_degree, "drop_dim": count.drop_dim}
    name, value = ("positive_dimensional", _families(count)) if count.families else ("regular", count.points)
    ask.say(name, value, witness, method, prime=p, seconds=count.seconds, detail=detail, **more)


def _witness(ask: Asking, counter: Counter, source: Source, chart: Chart, count: Count) -> None:
    """Second witnesses of the count of regular points."""
    seconds = patience(count, ask.clock.remaining)
    if counter.loss.general and count.points is not None:
        ask.announce("hypotheses of Chern classes")
        bundle = counter.bundle(source, chart, seconds)
        if bundle is not None and count.fiber_degree:
            ask.say("regular", bundle[0] // count.fiber_degree, "formula", bundle[1])
            if count.seconds > 3:
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
        _say(ask, found, "expansion", method, q, ancestry="program")
    elif count.points is not None and counter.loss.kind != "samples":
        ask.announce("conormal variety")
        normal = counter.conormal(source.model, source.image_dim, seconds)
        ask.say("regular", normal, "conormal", "multipliers on the equations of the closure", prime=counter.p)


def _strata(
    ask: Asking, counter: Counter, model: Model, source: Source
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
        count = counter.count(stratum, chart)
        point = StratumPoints(stratum=name, dim=own.image_dim, count=count.points, families=count.families)
        found.append((point, count))
        said.append(count.points if not count.families else _families(count))
        again.append(_again(ask, counter, own, chart, count))
    if found:
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


def _again(ask: Asking, counter: Counter, own: Source, chart: Chart, count: Count) -> Any:
    seconds = patience(count, ask.clock.remaining)
    if counter.loss.general and count.points is not None and count.fiber_degree:
        bundle = counter.bundle(own, chart, seconds)
        if bundle is not None:
            return bundle[0] // count.fiber_degree
    q = second_prime(counter.p, counter.loss, own)
    other = Source(own.as_map, q, ask.seed + 1)
    found = replace(counter, p=q).count(other.model, other.chart(dense=True), seconds=seconds)
    return found.points if not found.families else _families(found)


def _account(
    ask: Asking,
    counter: Counter,
    source: Source,
    chart: Chart,
    count: Count,
    strata: tuple[tuple[StratumPoints, Count], ...] | None,
) -> tuple[int | None, tuple[StratumPoints, ...] | None, str]:
    """How many functions are critical for the weights only, the strata with what is critical in the weights, and how it is known."""
    linear = source.image_dim == _span_dim(source.model, counter.p, ask.seed)
    points = None if strata is None else [point for point, _ in strata]
    if points is not None and source.cone and not linear:
        points.append(StratumPoints(stratum="the origin", dim=0, count=1))
    done = None if points is None else tuple(points)
    if count.points is None or count.families or count.values is None:
        return None, done, "Components outside the chart were not looked at."
    if source.model.parameter_count > MOST_WEIGHTS:
        if source.product_of_projective_spaces(chart) and count.drop_dim == -1:
            text = "The charts of a product of projective spaces leave out only weights of the zero function; nothing drops in this one."
            return 0 if not linear else 1, done, text
        return (
            None,
            done,
            f"Components outside the chart were not looked for: more than {MOST_WEIGHTS} weights.",
        )
    ask.announce("all critical points of the weights")
    total = counter.values_in_weights(source.model, patience(count, ask.clock.remaining))
    if total is None:
        return (
            None,
            done,
            "The critical points of all weights were not reached, or are infinitely many functions.",
        )
    return _compared(total, count, strata, points, source, linear)


def _compared(
    total: Any, count: Count, strata: Any, points: list[StratumPoints] | None, source: Source, linear: bool
) -> tuple[int | None, tuple[StratumPoints, ...] | None, str]:
    """Values at all critical weights, less the regular ones, less those on strata: the spurious ones."""
    rest = total // total.gcd(count.values)
    missing = count.values.degree() - total.gcd(count.values).degree()
    named = []
    for i, point in enumerate(points or ()):
        zero = type(rest)([0, 1], rest.modulus())
        own = strata[i][1].values if strata and i < len(strata) else zero
        common = None if own is None else rest.gcd(own)
        if common is not None:
            rest = rest // common
        named.append(replace(point, in_weights=None if common is None else common.degree()))
    text = f"All {total.degree()} critical functions of the weights were found without a chart"
    if missing:
        text += f"; {missing} regular ones have no weights at all"
    singular = None if points is None else tuple(named)
    if points is None and not linear and source.cone:
        # the origin is the vertex of the cone, whatever else is singular
        zero = type(rest)([0, 1], rest.modulus())
        rest = rest // rest.gcd(zero)
        text += "; the origin is not counted"
        if rest.degree() > 0:
            return (
                None,
                singular,
                f"{text}; {rest.degree()} others are spurious or singular: no strata are known for this model.",
            )
    return rest.degree(), singular, f"{text}."


def _remarks(loss: Loss, count: Count, source: Source, span: int) -> list[str]:
    found = [loss.note] if loss.note else []
    rank = loss.rank()
    if rank < span:
        found.append(
            f"The quadric has rank {rank} on functions of a {span}-dimensional space: {span - rank} directions do not change the loss"
            + (", more samples would" if loss.kind == "samples" else "")
            + "."
        )
    if count.drop_dim is not None and count.drop_dim >= 0:
        found.append(
            f"The differential drops at critical points of the chart (dimension {count.drop_dim}); they are not counted as regular."
        )
    if count.fiber_degree is None and count.limit is None:
        found.append("The chart does not meet general fibers in finitely many points: no count.")
    return found
