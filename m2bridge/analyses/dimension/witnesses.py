"""Analyses stage: the witnesses of a dimension, each as evidence: exact ranks, balls, float64."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from m2bridge.analyses.dimension.lower import PointRank, point_rank, primes_below, weight_degree
from m2bridge.analyses.dimension.result import NumericWitness
from m2bridge.engine import Limits
from m2bridge.errors import NotPolynomialError
from m2bridge.linear.numeric import numeric_rank
from m2bridge.linear.primes import given_numbers
from m2bridge.linear.primes import primes_below as primes_dividing_nothing_below
from m2bridge.models import Model
from m2bridge.models.derivatives import jacobian
from m2bridge.rank.attention import AttentionRank, attention_rank
from m2bridge.rank.ball import BallProof, prove_rank
from m2bridge.rank.numeric_attention import numeric_attention_rank
from m2bridge.rank.slices import AttentionSlice
from m2bridge.results import Certainty, Evidence

MOST_NUMERIC_COLUMNS = 700
MOST_BALL_COLUMNS = 6000
_REPEATS = 2

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the lower-bound witnesses found; the fields that a certificate needs."""

    evidence: tuple[Evidence, ...]
    likely: int
    point: PointRank | None = None
    attention: AttentionRank | None = None
    ball: BallProof | None = None


def attention_lower(
    shape: AttentionSlice, *, p: int, seed: int, upper: int, limits: Limits, report: Report | None
) -> Found:
    """Lower bound of a deep attention network: exact over F_p, and for softmax with balls."""
    found = attention_rank(shape, p=p, seed=seed, memory_limit=limits.memory_bytes, report=report)
    detail = {
        "samples": found.samples,
        "outputs": found.outputs,
        "columns": shape.inner_count,
        "token_rank": found.token_rank,
        "settled": found.settled,
        "planned_memory_bytes": found.memory_bytes,
    }
    if not shape.softmax:
        item = Evidence(
            quantity="image_dim",
            witness="modular",
            method="Jacobian rank at a random integer point of the slice",
            value=found.rank,
            relation=">=",
            certainty=Certainty.PROVED,
            prime=p,
            seconds=found.seconds,
            detail=detail,
        )
        more = _repeated(shape, found, p=p, seed=seed, limits=limits) if found.rank < upper else ()
        return Found(
            evidence=(item, *more), likely=max(found.rank, *(e.value for e in more), 0), attention=found
        )
    heuristic = Evidence(
        quantity="image_dim",
        witness="modular",
        method="heuristic: Jacobian rank with random units for exponentials",
        value=found.rank,
        relation=">=",
        certainty=Certainty.PROBABLE,
        prime=p,
        seconds=found.seconds,
        detail={**detail, "heuristic": True},
    )
    ball = _ball(shape, found, seed=seed, report=report)
    likely = max(found.rank, ball.rank if ball else 0)
    if ball is None:
        trivial = Evidence(
            quantity="image_dim",
            witness="ball",
            method="not proved by balls at this size; zero is a bound",
            value=0,
            relation=">=",
            certainty=Certainty.PROVED,
        )
        return Found(evidence=(heuristic, trivial), likely=likely, attention=found)
    proof = Evidence(
        quantity="image_dim",
        witness="ball",
        method="non-zero minor of the Jacobian at a dyadic point, in balls",
        value=ball.rank,
        relation=">=",
        certainty=Certainty.PROVED,
        seconds=ball.seconds,
        detail={
            "precision": ball.precision,
            "residual": ball.residual,
            "samples": ball.samples,
            "outputs": ball.outputs,
            "columns": len(ball.columns),
            "bits": ball.bits,
        },
    )
    return Found(evidence=(proof, heuristic), likely=likely, attention=found, ball=ball)


def _ball(
    shape: AttentionSlice, found: AttentionRank, *, seed: int, report: Report | None
) -> BallProof | None:
    """Balls on the columns that F_p found independent; they cover a network whose tokens have full rank."""
    columns = len(found.pivot_columns) + found.outputs * shape.widths[-2]
    if found.token_rank < shape.widths[-2] or columns > MOST_BALL_COLUMNS:
        return None
    return prove_rank(shape, columns=found.pivot_columns, seed=seed, report=report)


def _repeated(
    shape: AttentionSlice, found: AttentionRank, *, p: int, seed: int, limits: Limits
) -> tuple[Evidence, ...]:
    """The same rank with other primes and seeds: the probability argument where the bounds do not meet."""
    layers_degree = 0
    for _ in range(shape.depth):
        layers_degree = 3 + 3 * layers_degree
    start = time.perf_counter()
    runs = [
        attention_rank(shape, p=q, seed=seed + k, memory_limit=limits.memory_bytes)
        for k, q in enumerate(primes_below(p, _REPEATS), start=1)
    ]
    best = max([found.rank, *(run.rank for run in runs)])
    primes = [p, *(run.p for run in runs)]
    degree = layers_degree + 3**shape.depth
    return (_probable(best, primes, degree, shape.free_count, time.perf_counter() - start),)


def _probable(rank: int, primes: list[int], degree: int | None, most: int, seconds: float) -> Evidence:
    """Schwartz and Zippel: a minor of degree D of the generic rank vanishes at a random point with chance <= D/p.

    The degree counts weights and inputs. A generic input that does not raise the rank shows that none will, so that a
    rank that stayed is the generic one unless a point was special.
    """
    error = None
    if degree is not None:
        error = math.prod(min(1.0, most * degree / p) for p in primes)
    return Evidence(
        quantity="image_dim",
        witness="modular",
        method="Jacobian rank at random points, several primes and seeds",
        value=rank,
        relation="=",
        certainty=Certainty.PROBABLE,
        error_probability=error,
        seconds=seconds,
        detail={
            "primes": primes,
            "assumes": "no minor of the generic rank has all its coefficients divisible by every one of the primes",
        },
    )


def general_lower(
    model: Model, *, p: int, seed: int, upper: int, limits: Limits, report: Report | None
) -> Found:
    """Lower bound of any polynomial model: exact rank of its Jacobian over F_p."""
    if not model.polynomial:
        raise NotPolynomialError(f"{model.spec} is not polynomial: exact ranks need a prime below 2^23 here")
    start = time.perf_counter()
    found = point_rank(model, p=p, seed=seed, upper=upper, memory_limit=limits.memory_bytes, report=report)
    item = Evidence(
        quantity="image_dim",
        witness="modular",
        method="Jacobian rank at a random integer point",
        value=found.rank,
        relation=">=",
        certainty=Certainty.PROBABLE if found.constrained else Certainty.PROVED,
        prime=p,
        seconds=time.perf_counter() - start,
        detail={
            "rows": "coordinates" if found.inputs is None else "outputs at random inputs",
            "samples": None if found.inputs is None else len(found.inputs),
            "settled": found.settled,
        },
    )
    if found.rank >= upper and not found.constrained:
        return Found(evidence=(item,), likely=found.rank, point=found)
    start = time.perf_counter()
    others = primes_dividing_nothing_below(p - 1, count=_REPEATS, numbers=given_numbers(model))
    runs = [
        point_rank(model, p=q, seed=seed + k, upper=upper, memory_limit=limits.memory_bytes)
        for k, q in enumerate(others, start=1)
    ]
    best = max([found.rank, *(run.rank for run in runs)])
    primes = [p, *(run.p for run in runs)]
    degree = weight_degree(model)
    if degree is not None and found.inputs is not None:
        degree += max(getattr(model, "degrees", (0,)))
    more = _probable(best, primes, degree, upper, time.perf_counter() - start)
    return Found(evidence=(item, more), likely=best, point=found)


def float_witness(
    model: Model, shape: AttentionSlice | None, *, seed: int, report: Report | None
) -> tuple[NumericWitness | None, tuple[Evidence, ...]]:
    """The numerical rank in float64, or nothing when the matrix would be large."""
    columns = shape.inner_count + 3 * shape.widths[-2] if shape else model.parameter_count
    if columns > MOST_NUMERIC_COLUMNS or constrained(model):
        return None, ()
    if report:
        report("float64 rank")
    start = time.perf_counter()
    if shape is not None:
        found, size = numeric_attention_rank(shape, seed=seed)
    else:
        free = model.free
        rng = np.random.default_rng([seed, 8])
        weights = free.draw_real_weights(rng)
        if free.input_shape is None:
            _, matrix = jacobian(free, weights)
        else:
            count = 2 * math.ceil(free.parameter_count / math.prod(free.output_shape or ())) + 4
            _, matrix = jacobian(free, weights, rng.normal(size=(count, *free.input_shape)))
        found, size = numeric_rank(matrix), matrix.shape
    gap = found.gap if math.isfinite(found.gap) else None
    item = Evidence(
        quantity="image_dim",
        witness="numpy",
        method="float64 rank of the Jacobian, rows and columns scaled",
        value=found.rank,
        relation="=",
        certainty=Certainty.NUMERIC,
        seconds=time.perf_counter() - start,
        detail={"gap": gap, "candidate": found.candidate, "rows": size[0], "columns": size[1]},
    )
    return NumericWitness(rank=found.rank, gap=gap, rows=size[0], columns=size[1]), (item,)


def constrained(model: Model) -> bool:
    """Whether the weights satisfy equations that the model cannot do away with."""
    return bool(getattr(model.free, "constraints", ()))
