"""Analyses stage: the witnesses of a dimension, each as evidence: exact ranks, balls, float64, Macaulay2."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from m2bridge.analyses.dimension.lower import PointRank, point_rank, primes_below, weight_degree
from m2bridge.analyses.dimension.result import NumericWitness
from m2bridge.analyses.workbench import Workbench, opened
from m2bridge.engine import Engine, Limits
from m2bridge.errors import EngineError, NoEngineError, NotPolynomialError, OutOfReachError
from m2bridge.models import Mod, Model
from m2bridge.models.derivatives import jacobian
from m2bridge.rank.attention import AttentionRank, attention_rank
from m2bridge.rank.ball import BallProof, prove_rank
from m2bridge.rank.numeric import numeric_rank
from m2bridge.rank.numeric_attention import numeric_attention_rank
from m2bridge.rank.slices import AttentionSlice
from m2bridge.results import Certainty, EngineUse, Evidence, ScriptUse

MOST_NUMERIC_COLUMNS = 700
MOST_BALL_COLUMNS = 6000
MOST_M2_PARAMETERS, MOST_M2_COORDINATES = 60, 1500
MOST_M2_DEGREE = 6
M2_SECONDS = 20.0
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What Macaulay2 said, or why it was not asked."""

    evidence: tuple[Evidence, ...] = ()
    engine: EngineUse | None = None
    scripts: tuple[ScriptUse, ...] = field(default=())


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
    return (_probable(best, primes, layers_degree, shape.free_count, time.perf_counter() - start),)


def _probable(rank: int, primes: list[int], degree: int | None, most: int, seconds: float) -> Evidence:
    """Schwartz and Zippel: a minor of degree D of the generic rank vanishes at a random point with chance <= D/p."""
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
    runs = [
        point_rank(model, p=q, seed=seed + k, upper=upper, memory_limit=limits.memory_bytes)
        for k, q in enumerate(primes_below(p, _REPEATS), start=1)
    ]
    best = max([found.rank, *(run.rank for run in runs)])
    primes = [p, *(run.p for run in runs)]
    more = _probable(best, primes, weight_degree(model), upper, time.perf_counter() - start)
    return Found(evidence=(item, more), likely=best, point=found)


def float_witness(
    model: Model, shape: AttentionSlice | None, *, seed: int, report: Report | None
) -> tuple[NumericWitness | None, tuple[Evidence, ...]]:
    """The numerical rank in float64, or nothing when the matrix would be large."""
    columns = shape.inner_count + 3 * shape.widths[-2] if shape else model.parameter_count
    if columns > MOST_NUMERIC_COLUMNS or _constrained(model):
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


def ask_macaulay2(
    model: Model,
    engine: Engine | bool | None,
    *,
    p: int,
    seed: int,
    limits: Limits,
    keep: Path | None,
    report: Report | None,
) -> Asked:
    """Macaulay2's rank of the Jacobian of the coordinates at the same kind of point, and its value there."""
    if engine is False:
        return _unasked("not asked")
    free = model.free
    try:
        small = (
            free.polynomial
            and free.parameter_count <= MOST_M2_PARAMETERS
            and free.coordinate_count <= MOST_M2_COORDINATES
            and (weight_degree(free) or 0) <= MOST_M2_DEGREE
            and not _constrained(free)
        )
        free.m2_parameters  # noqa: B018 - raises where there is no twin
    except (NotPolynomialError, OutOfReachError):
        small = False
    if not small:
        return _unasked("not asked: too large for it to be cheap, or not polynomial")
    seconds = limits.wall_seconds or M2_SECONDS
    if engine is None:
        seconds = min(seconds, M2_SECONDS)
    capped = Limits(wall_seconds=seconds, memory_bytes=limits.memory_bytes)
    weights = free.draw_weights(np.random.default_rng([seed, 9]), p)
    try:
        with opened(None if engine is True else engine) as ready:
            bench = Workbench(ready, limits=capped, keep=keep, progress=report)
            flat = free.flatten(weights).tolist()
            start = time.perf_counter()
            values, stopped = bench.ask_within_limits("dimension", {"p": p, "point": flat}, free)
            spent = time.perf_counter() - start
            use, scripts = bench.engine_use, tuple(bench.scripts)
    except NoEngineError:
        return _unasked("no Macaulay2 found; the other witnesses answer")
    except EngineError as error:
        if engine is not None and engine is not True:
            raise
        return _unasked(f"Macaulay2 failed: {error}")
    rank = values.integer("jacobian_rank") if "jacobian_rank" in values else None
    said = list(values.integers("image_point")) if "image_point" in values else None
    own = free.coordinates({name: Mod(value, p) for name, value in weights.items()}).values.tolist()
    found = [
        Evidence(
            quantity="image_dim",
            witness="macaulay2",
            method="rank of the Jacobian at a random point" if stopped is None else "stopped by its limit",
            value=rank,
            relation=">=",
            certainty=Certainty.PROVED,
            prime=p,
            seconds=spent,
        )
    ]
    if rank is not None:
        found.append(
            Evidence(
                quantity="image_dim",
                witness="macaulay2",
                method="that rank is generic unless the point is special",
                value=rank,
                relation="=",
                certainty=Certainty.PROBABLE,
                prime=p,
            )
        )
    if said is not None:
        for witness, value in (("macaulay2", said), ("modular", own)):
            found.append(
                Evidence(
                    quantity="image_point",
                    witness=witness,
                    method="target coordinates at the point",
                    value=value,
                    certainty=Certainty.PROVED,
                    prime=p,
                )
            )
    return Asked(evidence=tuple(found), engine=use, scripts=scripts)


def _constrained(model: Model) -> bool:
    """Whether the weights satisfy equations that the model cannot do away with."""
    return bool(getattr(model.free, "constraints", ()))


def _unasked(reason: str) -> Asked:
    return Asked(
        evidence=(
            Evidence(
                quantity="image_dim",
                witness="macaulay2",
                method=reason,
                value=None,
                relation=">=",
                certainty=Certainty.PROBABLE,
            ),
        )
    )
