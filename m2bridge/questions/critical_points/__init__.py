"""The loss landscape: critical points of a quadratic loss on the functions of a polynomial network, counted exactly.

Regular points are counted in a chart of the weights modulo gauge; points on known strata of the singular locus are counted on a
map of that stratum; functions that are critical for the weights only (spurious) are what remains of all critical points of the
weights. Second witnesses: Chern classes where their hypotheses were checked, the conormal variety of the closure's equations, and
the polynomials that the network's own program expands, with another prime, another gauge and another elimination.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from m2bridge.errors import InputError, NotPolynomialError
from m2bridge.linear.primes import (
    LARGEST_MACAULAY2_PRIME,
    MACAULAY2_PRIME,
    check_prime,
    given_numbers,
    prime_for,
)
from m2bridge.models import Model
from m2bridge.questions.critical_points.accounting import (
    account,
    further_witnesses,
    say_count,
    strata_points,
)
from m2bridge.questions.critical_points.charts import Source
from m2bridge.questions.critical_points.counting import BUNDLE, CONORMAL, TEMPLATE, Count, Counter
from m2bridge.questions.critical_points.losses import Given, Loss, read_samples, read_target
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
from m2bridge.questions.kernel import Asking, Option, question
from m2bridge.questions.source import constrained_map, leanest
from m2bridge.results import Certainty

__all__ = ["CriticalPoints", "StratumPoints", "critical_points"]

Metric = Literal["generic", "bombieri", "euclidean"]
_MOST_COORDINATES = 150
LEAST_PRIME = 1009
"""Over smaller fields random data are too often special."""


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
    data = read_samples(data) if isinstance(data, str) else data
    target = read_target(target) if isinstance(target, str) else target
    given = Given(metric, kernel, data, samples, noise, target, small=real or draws > 0)
    loss = given.loss(model, ask.seed)
    p = _prime(ask, model, loss)
    ask.require_engine()
    source = Source(source_model, p, ask.seed)
    if source.image_dim == 0:
        raise InputError(
            f"{model.spec} has one function only: there is nothing to vary, and no critical points to count"
        )
    counter = Counter(ask, loss, p)
    ask.announce("hypotheses of Chern classes")
    bundle, count = counter.first(source)
    immersed = bundle is not None
    say_count(ask, count, "macaulay2", "Groebner basis in a chart of the weights", counter)
    if count.fiber_dim:
        # the program's Jacobian has full rank in the chart: Macaulay2 has another network
        ask.say("fiber_dim", 0, "modular", "rank of the program's Jacobian in the chart", prime=p)
        method = "fiber of the template's map in the chart"
        ask.say("fiber_dim", count.fiber_dim, "macaulay2", method, prime=p)
    if bundle is not None and count.fiber_degree:
        ask.say("regular", bundle[0] // count.fiber_degree, "formula", bundle[1])
    dense = loss.general and source.cone and source.image_dim == source.span_dim
    if dense:
        method = "the image is dense in a linear space, so only the target is regular"
        ask.say("regular", 1, "linear image", method, ancestry="construction")
    strata = None
    if count.limit is None:
        further_witnesses(ask, counter, source, count, immersed=immersed)
        strata = strata_points(ask, counter, model, count)
    accounted = account(ask, counter, source, count, strata, immersed=immersed)
    remarks = _remarks(loss, count, source, model)
    points, indexed = _real(ask, source, loss, count, digits, remarks) if real else (None, False)
    histogram = _histogram(ask, source, given, draws, remarks) if draws else None
    return ask.answer(
        CriticalPoints,
        model=model.spec,
        options={"prime": p, **given.options(loss)},
        certainty=Certainty.PROBABLE,
        limit=count.limit,
        loss=given.description,
        loss_rank=loss.rank(),
        needed_rank=source.span_dim,
        image_dim=source.image_dim,
        coordinate_count=source_model.coordinate_count,
        fiber_degree=count.fiber_degree,
        ed_degree=count.points if loss.kind != "samples" and kernel == 0 and target is None else None,
        regular=1 if dense and count.points is None else count.points,
        zero_loss=count.zero_loss,
        singular=accounted.singular,
        spurious=accounted.spurious,
        accounted=accounted.text,
        positive_dimensional=count.families,
        real=None if points is None else len(points),
        index=None if points is None or not indexed else kinds(points),
        real_points=points or (),
        histogram=histogram,
        remarks=tuple(remarks),
    )


def _prime(ask: Asking, model: Model, loss: Loss) -> int:
    chosen = None if ask.prime is None else check_prime(ask.prime)
    if chosen is not None and not LEAST_PRIME <= chosen <= LARGEST_MACAULAY2_PRIME:
        raise InputError(
            f"--prime {chosen}: random data and Groebner bases need one from {LEAST_PRIME} to {LARGEST_MACAULAY2_PRIME}"
        )
    return prime_for(given_numbers(model) | loss.numbers, chosen=chosen, default=MACAULAY2_PRIME)


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


def _real(
    ask: Asking, source: Source, loss: Loss, count: Count, digits: int, remarks: list[str]
) -> tuple[tuple[RealPoint, ...] | None, bool]:
    """The real critical functions, and whether their weights in the chart are known, so that they have an index."""
    if count.points is None or count.points > MOST_POINTS or count.drop_dim is None:
        remarks.append(
            f"Real points were not looked for: there must be finitely many regular ones, at most {MOST_POINTS}."
        )
        return None, False
    ask.announce("real critical points")
    chart = source.chart(dense=False)
    found, reason = algebra(ask, source.model, chart, loss, saturating=count.drop_dim >= 0)
    if found is None:
        remarks.append(f"The real points were not found: {reason}.")
        return None, False
    # held entries may miss critical points of special data, which were counted in a random chart
    relation = ">=" if loss.special else "="
    method = "the algebra of the critical points over QQ"
    ask.say("regular", found.points, "rational", method, ancestry="construction", relation=relation)
    points = enclosed(found, source, chart, loss, digits)
    for value, witness, method, ancestry in (
        (len(points), "isolation", "real roots enclosed by FLINT", "construction"),
        (signature(found.minimal), "trace form", "its signature over QQ", "formula"),
    ):
        proved: dict[str, Any] = {"certainty": Certainty.PROVED, "field": "QQ", "scope": "at-point"}
        ask.say("real", value, witness, method, ancestry=ancestry, **proved)
    return points, found.places is not None


def _histogram(ask: Asking, source: Source, given: Given, draws: int, remarks: list[str]) -> dict[str, int]:
    """How many random data have how many real critical points."""
    tally: dict[int, int] = {}
    for k in range(draws):
        ask.announce(f"random data {k + 1} of {draws}")
        loss = given.loss(source.model, ask.seed + 1000 + k)
        found, reason = algebra(ask, source.model, source.chart(dense=False), loss)
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
    rank, span = loss.rank(), source.span_dim
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
