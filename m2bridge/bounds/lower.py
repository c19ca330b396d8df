"""Lower bounds of a dimension: exact ranks of the program's Jacobian over F_p."""

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
    """What ranks need of the question that computes them: also limits, and a function that reports progress."""

    limits: Limits
    progress: Report | None

    def add_evidence(self, *evidence: Evidence) -> None:
        """Add evidence for the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBounds:
    """What the witnesses found, the rank that is likely the generic one, and the minor and the proof for a certificate."""

    evidence: tuple[Evidence, ...]
    likely: int
    rank: GenericRank


def lower_bounds(context: RankContext, model: Model, *, p: int, upper: int) -> LowerBounds:
    """Return the rank of the network's Jacobian at a random point modulo p, with units in place of exponentials.

    Where the user's limit comes after the first rank, that is the answer. Where it comes before, the rank of the rows so far is
    added to the evidence as a lower bound, and the limit is raised.
    """
    free, seed, limits, report = model.free, context.seed, context.limits, context.progress
    gauge = free.knowledge.gauge
    rank = partial(
        generic_rank, free.program, p=p, seed=seed, held=gauge, upper=upper, memory_limit=limits.memory_bytes, report=report,
        check=context.clock.check,
    )  # fmt: skip
    found = rank(samples=free.knowledge.samples)
    method = "Jacobian rank at a random integer point" + (" of the slice" if gauge.count else "")
    if found.exponentials is not None:
        method += ", with units for exponentials (Ax)"
    if found.heuristic:
        method = f"heuristic, with random units for exponentials: {found.heuristic}"
    item = _image_dim(
        found.rank, "modular", method, relation=">=", prime=p, seconds=found.seconds,
        certainty=Certainty.PROBABLE if found.heuristic else Certainty.PROVED,
        detail={
            "samples": found.samples, "columns": len(found.columns), "tokens": len(found.token_pivots),
            "settled": found.settled, "heuristic": found.heuristic is not None,
        },
    )  # fmt: skip
    if found.stopped is not None:
        if found.heuristic is None:
            context.add_evidence(item)
        raise found.stopped
    if found.heuristic or found.rank >= upper:
        return LowerBounds(evidence=(item,), likely=found.rank, rank=found)
    best: GenericRank = found
    more: tuple[Evidence, ...] = ()
    with context.keep_partial("the same rank with other primes"):
        context.clock.check()
        best, more = _repeated(context, free, found, upper=upper)
    return LowerBounds(evidence=(item, *more), likely=best.rank, rank=best)


def _repeated(
    context: RankContext, model: Model, found: GenericRank, *, upper: int
) -> tuple[GenericRank, tuple[Evidence, ...]]:
    """The same rank with other primes and seeds: the best of them, and the probability argument where the bounds do not meet.

    Any rank at an integer point modulo any prime is a proved lower bound, so that a larger one replaces the first.

    Schwartz and Zippel: a minor of degree D of the generic rank vanishes at a random point with chance <= D/p. The degree counts
    weights and inputs. A generic input that does not raise the rank shows that none will, so that a rank that stayed is the
    generic one unless a point was special.
    """
    start = time.perf_counter()
    repeats = _REPEATS if found.rank <= _REPEATED_TWICE else 1
    others = primes_below(found.p - 1, count=repeats, numbers=given_numbers(model))
    runs = []
    for k, q in enumerate(others, start=1):
        run = generic_rank(
            model.program, p=q, seed=context.seed + k, held=model.knowledge.gauge, upper=upper, samples=found.samples,
            grow=False, memory_limit=context.limits.memory_bytes, report=context.progress, check=context.clock.check,
        )  # fmt: skip
        if run.stopped is not None:
            raise run.stopped
        runs.append(run)
    best = max([found, *(run for run in runs if run.heuristic is None)], key=lambda run: run.rank)
    primes = [found.p, *others]
    chance: float | None = None  # degrees with exponentials are not bounded
    if found.exponentials is None:
        chance = math.prod(min(1.0, upper * degrees(model.program)[1] / q) for q in primes)
    assumed = "no minor of the generic rank has all its coefficients divisible by every one of the primes"
    generic = _image_dim(
        best.rank, "modular", "Jacobian rank at random points, several primes and seeds",
        error_probability=chance,
        seconds=time.perf_counter() - start, detail={"primes": primes, "assumes": assumed},
    )  # fmt: skip
    if best is found:
        return found, (generic,)
    larger = replace(generic, method=f"Jacobian rank modulo {best.p}", relation=">=", prime=best.p)
    return best, (generic, replace(larger, certainty=Certainty.PROVED, error_probability=None, detail={}))
