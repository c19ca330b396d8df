"""Bound a dimension from below by exact ranks of the program's Jacobian over F_p."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from m2bridge.bounds.searched import SearchContext
from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.families import Model
from m2bridge.limits import Limits
from m2bridge.linear.primes import given_numbers, primes_below
from m2bridge.programs.program import degrees
from m2bridge.programs.ranks import GenericRank, generic_rank

_image_dim = partial(Evidence, "image_dim", scope="generic")
MOST_COLUMNS_BESIDE_THEOREM = 6000
"""Weights up to which the rank is computed although a theorem gives the dimension."""
_REPEATS = 2  # other primes at which a rank below the upper bound is computed again
_REPEATED_TWICE = 3000
"""Larger ranks are repeated once."""

Report = Callable[[str], None]


class RankContext(SearchContext, Protocol):
    """The context of the question that computes ranks: also limits, and a function that reports progress."""

    limits: Limits
    progress: Report | None

    def add_evidence(self, *evidence: Evidence) -> None:
        """Add evidence for the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBounds:
    """Evidence for lower bounds, and the rank that is probably the generic one, with its minor and proof for a certificate."""

    evidence: tuple[Evidence, ...]
    rank: GenericRank


def lower_bounds(context: RankContext, model: Model, *, p: int, upper: int) -> LowerBounds:
    """Return the rank of the network's Jacobian at a random point modulo p, with units in place of exponentials.

    If the user's limit is reached after the first rank, that rank is the answer. If it is reached before, the rank of the rows so
    far is added to the evidence as a lower bound, and LimitReached is raised.
    """
    free = model.free
    seed = context.seed
    limits = context.limits
    report = context.progress
    gauge = free.knowledge.gauge
    rank = partial(
        generic_rank, free.program, p=p, seed=seed, held=gauge, upper=upper, memory_limit=limits.memory_bytes, report=report,
        check=context.clock.check,
    )  # fmt: skip
    first = rank(samples=free.knowledge.samples)
    method = "Jacobian rank at a random integer point" + (" of the slice" if gauge.count else "")
    if first.exponentials is not None:
        method += ", with units for exponentials (Ax)"
    if first.roots is not None:
        method += ", where all square roots exist"
    if first.heuristic:
        method = f"heuristic, with random units for exponentials: {first.heuristic}"
    item = _image_dim(
        first.rank, "modular", method, relation=">=", prime=p, seconds=first.seconds,
        certainty=Certainty.PROBABLE if first.heuristic else Certainty.PROVED,
        detail={
            "samples": first.samples, "columns": len(first.columns), "tokens": len(first.token_pivots),
            "settled": first.settled, "heuristic": first.heuristic is not None,
        },
    )  # fmt: skip
    if first.stopped is not None:
        if first.heuristic is None:
            context.add_evidence(item)
        raise first.stopped
    if first.heuristic or first.rank >= upper:
        return LowerBounds(evidence=(item,), rank=first)
    best: GenericRank = first
    further: tuple[Evidence, ...] = ()
    with context.keep_partial("the same rank with other primes"):
        context.clock.check()
        best, further = _repeated(context, free, first, upper=upper)
    return LowerBounds(evidence=(item, *further), rank=best)


def _repeated(
    context: RankContext, model: Model, first: GenericRank, *, upper: int
) -> tuple[GenericRank, tuple[Evidence, ...]]:
    """Compute the rank again with other primes and seeds; return the largest rank, and the evidence that it is generic.

    Any rank at an integer point modulo any prime is a proved lower bound, so that a larger one replaces the first.

    Lemma of Schwartz and Zippel: a non-zero minor of degree D in weights and inputs vanishes at a random point with probability
    at most D/p. If a generic input does not raise the rank, no further input does. So the rank is the generic one unless one of
    the points is special.
    """
    start = time.perf_counter()
    repeats = _REPEATS if first.rank <= _REPEATED_TWICE else 1
    other_primes = primes_below(first.p - 1, count=repeats, numbers=given_numbers(model))
    runs = []
    for k, q in enumerate(other_primes, start=1):
        run = generic_rank(
            model.program, p=q, seed=context.seed + k, held=model.knowledge.gauge, upper=upper, samples=first.samples,
            grow=False, memory_limit=context.limits.memory_bytes, report=context.progress, check=context.clock.check,
        )  # fmt: skip
        if run.stopped is not None:
            raise run.stopped
        runs.append(run)
    best = max([first, *(run for run in runs if run.heuristic is None)], key=lambda run: run.rank)
    primes = [first.p, *other_primes]
    chance: float | None = None  # degrees with exponentials or square roots are not bounded
    if model.program.rational:
        chance = math.prod(min(1.0, upper * degrees(model.program)[1] / q) for q in primes)
    assumed = "no minor of the generic rank has all its coefficients divisible by every one of the primes"
    generic = _image_dim(
        best.rank, "modular", "Jacobian rank at random points, several primes and seeds",
        error_probability=chance,
        seconds=time.perf_counter() - start, detail={"primes": primes, "assumes": assumed},
    )  # fmt: skip
    if best is first:
        return first, (generic,)
    larger = replace(generic, method=f"Jacobian rank modulo {best.p}", relation=">=", prime=best.p)
    return best, (generic, replace(larger, certainty=Certainty.PROVED, error_probability=None, detail={}))
