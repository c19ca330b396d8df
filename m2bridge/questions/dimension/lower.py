"""Lower bounds of a dimension: exact ranks of the program's Jacobian over F_p, balls for analytic networks, and float64.

What is checked on every run stands here too: the two rules of differentiation agree, and the stated symmetries are some.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.families import Model
from m2bridge.limits import Limits
from m2bridge.linear.numeric import NumericRank, numeric_rank
from m2bridge.linear.primes import given_numbers, primes_below
from m2bridge.programs.arithmetics import FloatArithmetic
from m2bridge.programs.jacobians import free_columns, jacobian_block, last_layer
from m2bridge.programs.program import degrees
from m2bridge.programs.proofs import BallProof, Probe, more_by_rounding, prove_rank
from m2bridge.programs.ranks import GenericRank, generic_rank
from m2bridge.programs.run import Lettered
from m2bridge.questions.dimension.result import NumericWitness
from m2bridge.questions.kernel import Context

_image_dim = partial(Evidence, "image_dim", scope="generic")
MOST_NUMERIC_COLUMNS = 700
MOST_BALL_COLUMNS = 6000
_MOST_WHOLE = 400
_REPEATS = 2
_SCALES = (1.0, 0.5, 0.25)
"""Of a real point, tried in turn until float64 sees the rank: where layers skip, parts of high degree drown the others."""
_NOTHING = NumericRank(rank=None, gap=0.0, candidate=0)

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBounds:
    """What the witnesses found, the rank that is likely the generic one, and the minor and the proof for a certificate."""

    evidence: tuple[Evidence, ...]
    likely: int
    rank: GenericRank
    ball: BallProof | None = None


def lower_bounds(context: Context, model: Model, *, p: int, upper: int) -> LowerBounds:
    """The rank of the network's Jacobian at a random point: proved, or for analytic networks a heuristic and a proof by balls.

    Where the user's limit comes after the first rank, that is the answer.
    """
    free, seed, limits, report = model.free, context.seed, context.limits, context.progress
    samples = free.sampling.samples_needed()
    gauge = free.knowledge.gauge
    rank = partial(
        generic_rank, free.program, p=p, seed=seed, held=gauge, upper=upper, memory_limit=limits.memory_bytes, report=report
    )  # fmt: skip
    found = rank(samples=samples)
    layer = found.layer
    if found.heuristic and layer and len(found.token_pivots) < layer.width and found.rank <= _MOST_WHOLE:
        found = rank(whole=True)  # balls need either tokens of full rank or all columns
    method = "Jacobian rank at a random integer point" + (" of the slice" if gauge.count else "")
    if found.heuristic:
        method = "heuristic: Jacobian rank with random units for exponentials"
    item = _image_dim(
        found.rank, "modular", method, relation=">=", prime=p, seconds=found.seconds,
        certainty=Certainty.PROBABLE if found.heuristic else Certainty.PROVED,
        detail={
            "samples": found.samples, "columns": len(found.columns), "tokens": len(found.token_pivots),
            "settled": found.settled, "heuristic": found.heuristic,
        },
    )  # fmt: skip
    if not found.heuristic:
        if found.rank >= upper:
            return LowerBounds(evidence=(item,), likely=found.rank, rank=found)
        best: GenericRank = found
        more: tuple[Evidence, ...] = ()
        with context.keep_partial("the same rank with other primes"):
            context.clock.check()
            best, more = _repeated(free, found, seed=seed, upper=upper, limits=limits)
        return LowerBounds(evidence=(item, *more), likely=best.rank, rank=best)
    ball = None
    with context.keep_partial("a proof of the rank by balls"):
        context.clock.check()
        ball = _balls(free, found, seed=seed, report=report)
    if ball is None:
        return LowerBounds(evidence=(item,), likely=found.rank, rank=found)
    proof = _image_dim(
        ball.rank, "ball", "non-zero minor of the Jacobian at a dyadic point, in balls",
        relation=">=", certainty=Certainty.PROVED, seconds=ball.seconds,
        detail={
            "precision": ball.precision, "residual": ball.residual, "samples": ball.point.samples,
            "columns": len(ball.columns), "bits": ball.point.bits,
        },
    )  # fmt: skip
    return LowerBounds(evidence=(proof, item), likely=max(found.rank, ball.rank), rank=found, ball=ball)


def _balls(model: Model, found: GenericRank, *, seed: int, report: Report | None) -> BallProof | None:
    """Balls on the columns that F_p found independent; with a last layer they need tokens of full rank."""
    layer = found.layer
    if layer is not None and len(found.token_pivots) < layer.width:
        return None
    outputs = layer.few(analytic=True) if layer else 0
    width = len(found.columns) + (outputs * layer.width if layer else 0)
    if width > MOST_BALL_COLUMNS:
        return None
    point = model.sampling.dyadic_point(found.samples, seed)
    return prove_rank(
        model.program, point, found.columns, layer=layer, outputs=outputs, precisions=model.sampling.precisions, report=report
    )  # fmt: skip


def _repeated(
    model: Model, found: GenericRank, *, seed: int, upper: int, limits: Limits
) -> tuple[GenericRank, tuple[Evidence, ...]]:
    """The same rank with other primes and seeds: the best of them, and the probability argument where the bounds do not meet.

    Any rank at an integer point modulo any prime is a proved lower bound, so that a larger one replaces the first.

    Schwartz and Zippel: a minor of degree D of the generic rank vanishes at a random point with chance <= D/p. The degree counts
    weights and inputs. A generic input that does not raise the rank shows that none will, so that a rank that stayed is the
    generic one unless a point was special.
    """
    start = time.perf_counter()
    others = primes_below(found.p - 1, count=_REPEATS, numbers=given_numbers(model))
    runs = [
        generic_rank(
            model.program, p=q, seed=seed + k, held=model.knowledge.gauge, upper=upper, samples=found.samples,
            grow=False, memory_limit=limits.memory_bytes,
        )
        for k, q in enumerate(others, start=1)
    ]  # fmt: skip
    best = max([found, *runs], key=lambda run: run.rank)
    primes = [found.p, *others]
    degree = degrees(model.program)[1]
    assumed = "no minor of the generic rank has all its coefficients divisible by every one of the primes"
    generic = _image_dim(
        best.rank, "modular", "Jacobian rank at random points, several primes and seeds",
        error_probability=math.prod(min(1.0, upper * degree / q) for q in primes),
        seconds=time.perf_counter() - start, detail={"primes": primes, "assumes": assumed},
    )  # fmt: skip
    if best is found:
        return found, (generic,)
    larger = replace(generic, method=f"Jacobian rank modulo {best.p}", relation=">=", prime=best.p)
    return best, (generic, replace(larger, certainty=Certainty.PROVED, error_probability=None, detail={}))


def float_witness(
    model: Model, found: GenericRank, *, seed: int, report: Report | None
) -> tuple[NumericWitness | None, tuple[Evidence, ...]]:
    """The numerical rank in float64, or nothing when the matrix would be large."""
    free = model.free
    program, held = free.program, free.knowledge.gauge
    layer = last_layer(program, held)
    columns = free_columns(program, held, layer)
    outputs = layer.few(not program.polynomial) if layer else 0
    width = len(columns) + (outputs * layer.width if layer else 0)
    if width > MOST_NUMERIC_COLUMNS:
        return None, ()
    if report:
        report("float64 rank")
    start = time.perf_counter()
    samples = math.ceil(1.5 * found.samples) + 1
    rest = (layer.outputs - outputs) * layer.width if layer else 0
    entries = None
    if not layer and program.inputs:
        entries = _some_entries(program.output_count, found.outputs, samples, seed)
    block: dict[str, Any] = {"layer": layer, "outputs": outputs, "entries": entries}
    size, told, seen = (0, width), _NOTHING, set[int | None]()
    for scale in _SCALES:
        weights, inputs = free.sampling.real_point(samples, seed)
        given = {name: Lettered("", scale * value) for name, value in weights.items()}
        given |= {name: Lettered("N", scale * value) for name, value in inputs.items()}
        try:
            with np.errstate(over="raise", under="raise", invalid="raise", divide="raise"):
                matrix = jacobian_block(program, FloatArithmetic(), given, columns, **block)
            size, told = matrix.shape, numeric_rank(matrix)
            more = told.rank is not None and told.rank + rest > found.rank
            unsure = more and more_by_rounding(program, given, columns, **block)
        except FloatingPointError:  # out of float64's range: no contradiction, no answer
            unsure = True
        if unsure or (rest and len(found.token_pivots) < (layer.width if layer else 0)):
            told = replace(told, rank=None)
        seen.add(told.rank)
        if told.rank is not None and told.rank + rest >= found.rank:
            break
    else:  # fewer at every scale, which is no answer where they are not the same
        told = told if len(seen) == 1 else replace(told, rank=None)
    rank = None if told.rank is None else told.rank + rest
    gap = told.gap if math.isfinite(told.gap) else None
    item = _image_dim(
        rank, "numpy", "float64 rank of the Jacobian, rows and columns scaled",
        certainty=Certainty.NUMERIC, seconds=time.perf_counter() - start,
        detail={"gap": gap, "candidate": told.candidate + rest, "rows": size[0], "columns": size[1]},
    )  # fmt: skip
    return NumericWitness(rank=rank, gap=gap, rows=size[0], columns=size[1]), (item,)


def _some_entries(count: int, chosen: int, samples: int, seed: int) -> np.ndarray:
    """For each sample some output entries, at random."""
    rng = np.random.default_rng([seed, 9])
    return np.stack([np.sort(rng.permutation(count)[:chosen]) for _ in range(samples)])


def checked(model: Model, *, p: int, seed: int) -> tuple[Evidence, ...]:
    """Pairs of evidence that contradict each other when a derivative or a stated symmetry is wrong."""
    program = model.program
    probe = Probe(program, p, seed, model.draw_weights(np.random.default_rng([seed, 13]), p))
    rng, symmetries = np.random.default_rng([seed, 14]), model.knowledge.symmetries
    stated = [symmetry.direction(probe.weights, rng, p) for symmetry in symmetries]
    first, *others = probe.moved([probe.random_direction(), *stated])  # one pass for all of them
    pushed, pulled = probe.both_ways(first)
    found = [
        Evidence(
            "derivative_by_two_rules", value, "modular", f"derivative in a random direction, by the {rule} rules",
            certainty=Certainty.PROVED, prime=p, scope="at-point", field=f"F_{p}",
        )
        for rule, value in (("forward", pushed), ("reverse", pulled))
    ]  # fmt: skip
    for symmetry, moved in zip(symmetries, others, strict=True):
        # both of one ancestry: they may contradict, but that a symmetry holds does not support the answer
        say = partial(
            Evidence, f"function_changes_under: {symmetry.name}", prime=p, field=f"F_{p}", ancestry="program"
        )
        found += [
            say(False, "symmetry", symmetry.citation, certainty=Certainty.PROVED),
            say(bool(moved.any()), "modular", "derivative along a random element of its Lie algebra"),
        ]
    return tuple(found)
