"""The loss landscape: critical points of a quadratic loss on the functions of a polynomial network, counted exactly.

Regular points are counted in a chart of the weights modulo gauge; points on known strata of the singular locus are counted on a
map of that stratum; functions that are critical in the weights only (spurious) are what remains of all critical points of the
weights. Second witnesses: Chern classes where their hypotheses were checked, the conormal variety of the closure's equations, and
the polynomials that the network's own program expands, with another prime, another gauge and another elimination.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from m2bridge.certainty import Certainty
from m2bridge.errors import InputError, NotPolynomialError
from m2bridge.evidence import Evidence
from m2bridge.families import Model
from m2bridge.linear.primes import (
    LARGEST_MACAULAY2_PRIME,
    MACAULAY2_PRIME,
    given_numbers,
    prime_for,
)
from m2bridge.questions.critical_points import counting
from m2bridge.questions.critical_points.charts import ExpandedMap
from m2bridge.questions.critical_points.counting import BUNDLE, CONORMAL, TEMPLATE, Count, Counter
from m2bridge.questions.critical_points.losses import GivenLoss, Loss, read_samples, read_target
from m2bridge.questions.critical_points.real import TEMPLATE as REAL
from m2bridge.questions.critical_points.real import histogram, kinds, real_points
from m2bridge.questions.critical_points.result import CriticalPoints, StratumPoints
from m2bridge.questions.critical_points.solving import again_by_msolve
from m2bridge.questions.kernel import Context, Option, question

__all__ = ["CriticalPoints", "StratumPoints", "critical_points"]

Metric = Literal["generic", "bombieri", "euclidean"]
_MOST_LOSS_COORDINATES = 150
"""Coordinates of a map whose critical points are counted."""
_SHARE_FOR_FIRST_COUNT = 0.6
"""Of the time left, for the count by Macaulay2 where msolve can count too."""
LEAST_PRIME = 1009
"""Over smaller fields random data are too often special."""


@question(
    asks="Critical points of the squared loss on the functions of a network: number, types, and real ones.",
    templates=(TEMPLATE, BUNDLE, CONORMAL, REAL),
    quantities={
        "regular": "the number of regular critical points over the complex numbers",
        "zero_loss": "how many of the regular ones have zero loss",
        "singular": "the numbers of critical points on strata of the singular locus",
        "fiber_dim": "the dimension of a general fiber in the chart",
        "real": "the number of real ones, for these data and in this chart",
        "positive_dimensional": "families of regular critical points: zero loss, dimension, degree",
    },
    example="m2bridge critical-points 'lightning(d=2,dp=1)'",
    primes=(LEAST_PRIME, LARGEST_MACAULAY2_PRIME),
    warm=True,
    uses_msolve=True,
)
def critical_points(  # noqa: PLR0913 -- the options of the question
    context: Context,
    model: Model,
    *,
    metric: Annotated[
        Metric, Option("Metric: generic (a random quadric), bombieri (the Bombieri norm) or euclidean.")
    ] = "generic",
    kernel: Annotated[
        int,
        Option(
            "Dimension of the kernel of the quadratic form of --metric generic, for a loss that does not "
            "determine the function.",
            least=0,
        ),
    ] = 0,
    data: Annotated[
        Any,
        Option(
            "Samples: two files X.npz,Y.npz (or .npy), separated by a comma, or one .npz file with arrays X and Y.",
            read=read_samples,
        ),
    ] = None,
    samples: Annotated[int | None, Option("Use the loss of this number of random samples.", least=1)] = None,
    noise: Annotated[
        float,
        Option(
            "Largest error that is added to the targets of --samples (uniform); with 0 they are outputs of a network of the "
            "model."
        ),
    ] = 1.0,
    target: Annotated[
        Any,
        Option(
            "Coordinates of the target of --metric, e.g. 1/2,3,-0.25 (default: random).", read=read_target
        ),
    ] = None,
    real: Annotated[bool, Option("Also compute the real critical points over QQ, with their index.")] = False,
    digits: Annotated[int, Option("Number of decimals of the coordinates of real points.", least=1)] = 12,
    draws: Annotated[
        int,
        Option("Number of random data sets for which the real critical points are counted.", least=0),
    ] = 0,
) -> CriticalPoints:
    """Count the critical points of a quadratic loss on the neuromanifold.

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
    loss_choice = GivenLoss(metric, kernel, data, samples, noise, target, small=real or draws > 0)
    loss = loss_choice.loss(model, context.seed)
    p = prime_for(given_numbers(model) | loss.numbers, chosen=context.prime, default=MACAULAY2_PRIME)
    context.require_engine()
    source = ExpandedMap(source_model, p, context.seed)
    if source.image_dim == 0:
        raise InputError(f"{model} has a single function, so there are no critical points to count")
    counter = Counter(context, loss, p)
    span_dim = source.span_dim
    counted = _Counted()
    with context.keep_partial("critical points in a chart"):
        counted = _count_regular(counter, source)
    strata = None
    with context.keep_partial("further counts"):
        context.clock.check()
        counted, by_msolve = _count_again(counter, source, counted)
        if counted.count.limit is None:
            counting.further_witnesses(
                counter, source, counted.count, immersed=counted.immersed, by_msolve=by_msolve
            )
            strata = counting.strata_points(counter, model, counted.count)
    count, immersed = counted.count, counted.immersed
    accounted = counting.NOT_ACCOUNTED
    with context.keep_partial("critical points of the weights"):
        context.clock.check()
        accounted = counting.account(counter, source, count, strata, immersed=immersed)
    remarks = _remarks(loss, count, source, model)
    points, indexed, histogram_of_real = None, False, None
    with context.keep_partial("real critical points"):
        if real:
            points, indexed = real_points(counter, source, count, digits, remarks, immersed=immersed)
        if draws:
            histogram_of_real = histogram(context, source, loss_choice, draws, remarks)
    return context.build_result(
        CriticalPoints, model=model.spec, options={"prime": p, **loss_choice.options(loss)},
        certainty=Certainty.PROBABLE, limit=count.limit, loss=loss_choice.description, loss_rank=loss.rank(),
        needed_rank=span_dim, image_dim=source.image_dim, coordinate_count=source_model.coordinate_count,
        fiber_degree=count.fiber_degree,
        ed_degree=count.points if loss.kind != "samples" and kernel == 0 and target is None else None,
        regular=1 if counted.dense and count.points is None else count.points, zero_loss=count.zero_loss,
        singular=accounted.singular, spurious=accounted.spurious, accounted=accounted.text,
        positive_dimensional=count.families, real=None if points is None else len(points),
        index=kinds(points) if points is not None and indexed else None, real_points=points or (),
        histogram=histogram_of_real, remarks=tuple(remarks),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Counted:
    """The count of the regular points, what Chern classes say, and whether the image is dense in a linear space."""

    count: Count = counting.NOT_COUNTED
    bundle: tuple[int, str] | None = None
    dense: bool = False

    @property
    def immersed(self) -> bool:
        return self.bundle is not None


def _count_regular(counter: Counter, source: ExpandedMap) -> _Counted:
    """Count the regular points by Macaulay2 in a chart, with evidence from Chern classes and ranks."""
    context, loss, p = counter.context, counter.loss, counter.p
    context.report_progress("hypotheses of Chern classes")
    with_msolve = loss.general and context.msolve is not None
    share = _SHARE_FOR_FIRST_COUNT if with_msolve else None
    bundle, count = counter.first(source, share, decisive=not with_msolve)
    counting.say_count(counter, count, "macaulay2", "Groebner basis in a chart of the weights")
    if count.fiber_dim:
        # the program's Jacobian has full rank in the chart: Macaulay2 has another network
        context.add_evidence(
            Evidence("fiber_dim", 0, "modular", "rank of the program's Jacobian in the chart", prime=p)
        )
        method = "fiber of the template's map in the chart"
        context.add_evidence(Evidence("fiber_dim", count.fiber_dim, "macaulay2", method, prime=p))
    if bundle is not None and count.fiber_degree:
        context.add_evidence(
            Evidence("regular", bundle[0] // count.fiber_degree, "formula", bundle[1], ancestry="literature")
        )
    dense = loss.general and source.cone and source.image_dim == source.span_dim
    if dense:
        method = "the image is dense in a linear space, so only the target is regular"
        context.add_evidence(Evidence("regular", 1, "linear image", method, ancestry="construction"))
    return _Counted(count, bundle, dense)


def _count_again(counter: Counter, source: ExpandedMap, counted: _Counted) -> tuple[_Counted, bool]:
    """Count by msolve; return the count to use, and whether msolve counted."""
    expected = counted.bundle[0] if counted.bundle else None
    count, by_msolve = again_by_msolve(
        counter, source, counted.count, immersed=counted.immersed, expected=expected
    )
    if count.limit is not None:
        counter.context.note_limit(count.limit)
    return replace(counted, count=count), by_msolve


def _checked(model: Model) -> Model:
    """Return the model with fewest weights and the same image; refuse models without critical points of this kind."""
    if not model.polynomial:
        raise NotPolynomialError(f"{model} is not polynomial: its critical points are not an algebraic set")
    if model.coordinate_count > _MOST_LOSS_COORDINATES:
        raise InputError(
            f"{model} has {model.coordinate_count} coordinates; critical points are counted for up to {_MOST_LOSS_COORDINATES}"
        )
    return model.leanest


def _remarks(loss: Loss, count: Count, source: ExpandedMap, model: Model) -> list[str]:
    remarks = [loss.note] if loss.note else []
    if source.model != model:
        remarks.append(
            f"Critical points in the weights are those of {source.model.title}, which has the same functions."
        )
    rank, span = loss.rank(), source.span_dim
    if rank < span:
        remarks.append(
            f"The quadric has rank {rank}, the functions span {span} dimensions: {span - rank} directions do not change the loss"
            + (", and more samples would make them count." if loss.kind == "samples" else ".")
        )
    if count.drop_dim is not None and count.drop_dim >= 0:
        remarks.append(
            f"At some critical points of the chart (a set of dimension {count.drop_dim}) the rank of the differential drops;"
            " these are not regular."
        )
    if count.fiber_degree is None and count.fiber_dim is not None and count.limit is None:
        remarks.append("The chart does not meet general fibers in finitely many points: no count.")
    return remarks
