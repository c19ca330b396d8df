"""The loss landscape: critical points of a quadratic loss on the functions of a polynomial network, counted exactly.

Regular points are counted in a chart of the weights modulo gauge; points on known strata of the singular locus are counted on a
map of that stratum; functions that are critical for the weights only (spurious) are what remains of all critical points of the
weights. Second witnesses: Chern classes where their hypotheses were checked, the conormal variety of the closure's equations, and
the polynomials that the network's own program expands, with another prime, another gauge and another elimination.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    read_target,
    sample_loss,
)
from m2bridge.questions.critical_points.real import (
    MOST_POINTS,
    algebra,
    enclosed,
    kinds,
    real_roots,
    signature,
)
from m2bridge.questions.critical_points.real import TEMPLATE as REAL
from m2bridge.questions.critical_points.result import CriticalPoints, RealPoint, StratumPoints
from m2bridge.questions.critical_points.strata import known_strata
from m2bridge.questions.kernel import Asking, Option, question
from m2bridge.questions.source import constrained_map
from m2bridge.results import Certainty

__all__ = ["CriticalPoints", "StratumPoints", "critical_points"]

Metric = Literal["generic", "bombieri", "euclidean"]
_MOST_COORDINATES = 150
_LONG = 3.0
"""Seconds of the first count beyond which one further witness is enough."""
_FIRST = 30.0
"""Seconds for the hypotheses of Chern classes, which are checked before anything is counted."""


@question(
    asks="The critical points of the squared loss on a network's functions: how many, of which kind, how many real.",
    templates=(TEMPLATE, BUNDLE, CONORMAL, REAL),
    quantities={
        "regular": "the number of regular critical points over the complex numbers",
        "singular": "the numbers of critical points on strata of the singular locus",
        "fiber_dim": "the dimension of a general fiber in the chart",
        "real": "the number of real ones, for these data and in this chart",
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
    target: Annotated[
        Any,
        Option("The target of a metric, as coordinates: 1/2,3,-0.25 (default: random).", read=read_target),
    ] = None,
    real: Annotated[bool, Option("Also find the real critical points, over QQ, with their index.")] = False,
    digits: Annotated[int, Option("Decimals of the coordinates of real points.", least=1)] = 12,
    draws: Annotated[int, Option("Count the real points of so many random data.", least=0)] = 0,
) -> CriticalPoints:
    """The critical points of a quadratic loss on the neuromanifold.

    The loss is a metric with a random target, or the squared error of samples: `data` is a pair of arrays (X, Y). Counts are
    over F_p.

    `target` are the coordinates of the function that is approximated, random unless given.

    Examples
    --------
    >>> critical_points("lightning(d=2,dp=1)").regular  # doctest: +SKIP
    14
    """
    source_model = _checked(model)
    given = Given(metric, kernel, data, samples, noise, target, small=real or draws > 0)
    loss = given.loss(model, ask.seed)
    chosen = None if ask.prime is None else check_prime(ask.prime)
    p = prime_for(given_numbers(model) | loss.numbers, chosen=chosen, default=MACAULAY2_PRIME)
    ask.require_engine()
    source = Source(source_model, p, ask.seed)
    counter = Counter(ask, loss, p)
    chart = source.chart(dense=False)
    ask.announce("hypotheses of Chern classes")
    bundle = counter.bundle(source, chart, _FIRST) if loss.general else None
    chart = source.chart_for(special=loss.special, general=bundle is not None)
    ask.announce("critical points in a chart")
    count = counter.count(source_model, chart, immersed=bundle is not None)
    _say(ask, count, "macaulay2", "Groebner basis in a chart of the weights", p, general=loss.general)
    if count.fiber_dim:
        # the program's Jacobian has full rank in the chart: Macaulay2 has another network
        ask.say("fiber_dim", 0, "modular", "rank of the program's Jacobian in the chart", prime=p)
        ask.say(
            "fiber_dim", count.fiber_dim, "macaulay2", "fiber of the template's map in the chart", prime=p
        )
    if bundle is not None and count.fiber_degree:
        ask.say("regular", bundle[0] // count.fiber_degree, "formula", bundle[1])
    if count.limit is None:
        _witness(ask, counter, source, count, immersed=bundle is not None)
    strata = _strata(ask, counter, model, source) if count.limit is None else None
    spurious, singular, accounted = _account(ask, counter, source, count, strata, immersed=bundle is not None)
    remarks = _remarks(loss, count, source, model)
    points, over_q = (
        _real(ask, source, source.chart(dense=False), loss, count, digits, remarks) if real else (None, False)
    )
    histogram = _histogram(ask, source, source.chart(dense=False), given, draws, remarks) if draws else None
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
        loss=_description(loss, kernel, samples, target),
        loss_rank=loss.rank(),
        needed_rank=_span_dim(source_model, p, ask.seed),
        image_dim=source.image_dim,
        coordinate_count=source_model.coordinate_count,
        fiber_degree=count.fiber_degree,
        ed_degree=count.points if loss.kind != "samples" and kernel == 0 and target is None else None,
        regular=count.points,
        zero_loss=count.zero_loss,
        singular=singular,
        spurious=spurious,
        accounted=accounted,
        positive_dimensional=count.families,
        real=None if points is None else len(points),
        index=None if points is None or not over_q else kinds(points),
        real_points=points or (),
        histogram=histogram,
        remarks=tuple(remarks),
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


@dataclass(frozen=True)
class Given:
    """What the user said of the loss; `small` asks for short numbers, for computations over QQ."""

    metric: str
    kernel: int
    data: Any
    samples: int | None
    noise: float
    target: Any
    small: bool

    def loss(self, model: Model, seed: int) -> Loss:
        if self.metric not in METRICS:
            raise InputError(f"--metric {self.metric!r} is not one of {', '.join(METRICS)}")
        asked = {"--data": self.data is not None, "--samples": self.samples is not None}
        named = [name for name, there in asked.items() if there]
        metric = self.metric != "generic" or self.kernel or self.target is not None
        if len(named) == 2 or (named and metric):
            raise InputError(
                f"give --metric (with --kernel), or --data, or --samples; not {' and '.join(named)} with another"
            )
        if self.data is not None:
            inputs, outputs = (np.asarray(array) for array in self.data)
            return sample_loss(model, inputs, outputs)
        if self.samples is not None:
            return drawn_samples(model, self.samples, self.noise, seed)
        return metric_loss(model, self.metric, self.kernel, seed, small=self.small, target=self.target)


def _description(loss: Loss, kernel: int, samples: int | None, target: Any) -> str:
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
    return f"{words[loss.kind]}, {'random' if target is None else 'given'} target"


def _span_dim(model: Model, p: int, seed: int) -> int:
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


def _say(ask: Asking, count: Count, witness: str, method: str, p: int, *, general: bool, **more: Any) -> None:
    """Evidence of the regular points; a general loss has finitely many, and families would contradict a formula."""
    detail = {"fiber_degree": count.fiber_degree, "drop_dim": count.drop_dim}
    name, value = (
        ("positive_dimensional", _families(count))
        if count.families and not general
        else ("regular", _kind(count))
    )
    ask.say(name, value, witness, method, prime=p, seconds=count.seconds, detail=detail, **more)


def _witness(ask: Asking, counter: Counter, source: Source, count: Count, *, immersed: bool) -> None:
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
        _say(ask, found, "expansion", method, q, ancestry="program", general=counter.loss.general)
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
        bundle = counter.bundle(own, chart, _FIRST) if counter.loss.general else None
        chart = own.chart_for(special=counter.loss.special, general=bundle is not None)
        count = counter.count(stratum, chart, immersed=bundle is not None)
        point = StratumPoints(
            stratum=name,
            dim=own.image_dim,
            count=count.points,
            zero_loss=count.zero_loss,
            families=count.families,
        )
        found.append((point, count))
        said.append(_kind(count))
        again.append(_again(ask, counter, own, count, bundle))
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


def _again(ask: Asking, counter: Counter, own: Source, count: Count, bundle: tuple[int, str] | None) -> Any:
    seconds = patience(count, ask.clock.remaining)
    if bundle is not None and count.fiber_degree:
        return bundle[0] // count.fiber_degree
    q = second_prime(counter.p, counter.loss, own)
    other = Source(own.as_map, q, ask.seed + 1)
    found = replace(counter, p=q).count(other.model, other.chart(dense=True), seconds=seconds)
    return _kind(found)


def _account(
    ask: Asking,
    counter: Counter,
    source: Source,
    count: Count,
    strata: tuple[tuple[StratumPoints, Count], ...] | None,
    *,
    immersed: bool,
) -> tuple[int | None, tuple[StratumPoints, ...] | None, str]:
    """How many functions are critical for the weights only; the strata with what is critical in the weights; how it is known."""
    linear = source.image_dim == _span_dim(source.model, counter.p, ask.seed)
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


def _real(
    ask: Asking, source: Source, chart: Chart, loss: Loss, count: Count, digits: int, remarks: list[str]
) -> tuple[tuple[RealPoint, ...] | None, bool]:
    """The real critical functions, and whether their weights in the chart are known, so that they have an index."""
    if count.points is None or count.points > MOST_POINTS or count.drop_dim is None:
        remarks.append(
            f"Real points were not looked for: there must be finitely many regular ones, at most {MOST_POINTS}."
        )
        return None, False
    ask.announce("real critical points")
    found, reason = algebra(ask, source.model, chart, loss, saturating=count.drop_dim >= 0)
    if found is None:
        remarks.append(f"The real points were not found: {reason}.")
        return None, False
    ask.say(
        "regular",
        found.points,
        "rational",
        "the algebra of the critical points over QQ",
        ancestry="construction",
    )
    points = enclosed(found, source, chart, loss, digits)
    proved: dict[str, Any] = {"certainty": Certainty.PROVED, "field": "QQ", "scope": "at-point"}
    ask.say(
        "real", len(points), "isolation", "real roots enclosed by FLINT", ancestry="construction", **proved
    )
    ask.say(
        "real", signature(found.minimal), "trace form", "its signature over QQ", ancestry="formula", **proved
    )
    return points, found.places is not None


def _histogram(
    ask: Asking, source: Source, chart: Chart, given: Given, draws: int, remarks: list[str]
) -> dict[str, int]:
    tally: dict[int, int] = {}
    for k in range(draws):
        ask.announce(f"random data {k + 1} of {draws}")
        loss = given.loss(source.model, ask.seed + 1000 + k)
        found, reason = algebra(ask, source.model, chart, loss)
        if found is None:
            remarks.append(f"Random data {k + 1} were left out: {reason}.")
            continue
        real = len(real_roots(found.minimal))
        tally[real] = tally.get(real, 0) + 1
    return {str(n): tally[n] for n in sorted(tally)}


def _remarks(loss: Loss, count: Count, source: Source, model: Model) -> list[str]:
    found = [loss.note] if loss.note else []
    if source.model != model:
        found.append(
            f"Critical points in the weights are those of {source.model.title}, which has the same functions."
        )
    rank, span = loss.rank(), _span_dim(source.model, source.p, source.seed)
    if rank < span:
        found.append(
            f"The quadric has rank {rank}, the functions span {span} dimensions: {span - rank} directions do not change the loss"
            + (", and more samples would make them count." if loss.kind == "samples" else ".")
        )
    if count.drop_dim is not None and count.drop_dim >= 0:
        found.append(
            f"The differential drops at critical points of the chart (dimension {count.drop_dim}); these are not regular."
        )
    if count.fiber_degree is None and count.limit is None:
        found.append("The chart does not meet general fibers in finitely many points: no count.")
    return found
