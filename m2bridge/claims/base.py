"""Claims: a paper's statements as programs. What a claim is, what a check answers, what a correction holds.

A claim says in our words what its paper states, names the witnesses that are asked, lists the sizes at which it is checked, and
has one function that takes a size and answers with a :class:`Verdict`. A formula of the paper may be compared with what
was computed; it is never used to compute it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from m2bridge.engine import Engine, Limits
from m2bridge.errors import OutOfReachError
from m2bridge.models import Model
from m2bridge.results import Certainty

_R = TypeVar("_R")

Size = Mapping[str, Any]
"""What one check is about: a spec string under ``model``, or plain numbers; JSON values only."""


class Status(StrEnum):
    """What became of a statement at one size."""

    HOLDS = "holds"
    FAILS = "fails"
    OUT_OF_REACH = "out-of-reach"
    DISAGREEMENT = "disagreement"
    """Our own witnesses contradict each other: nothing is said about the paper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of one check.

    Attributes
    ----------
    status, certainty: what, and how sure.
    computed: the quantities that were compared, JSON values.
    witness: for a failure, what a reader needs to see it fail.
    reason: one sentence, for people.
    seconds: how long the check took; filled in by :meth:`Claim.check`.
    """

    status: Status
    certainty: Certainty
    computed: Mapping[str, Any] = field(default_factory=dict)
    witness: Mapping[str, Any] | None = None
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a check may use: an engine, a seed, limits, and answers that other checks of the run have computed already."""

    engine: Engine
    seed: int = 0
    limits: Limits = field(default_factory=lambda: Limits(wall_seconds=300.0))
    known: dict[Any, Any] = field(default_factory=dict)

    def once(self, analysis: Callable[..., _R], model: Model, **options: Any) -> _R:
        """The analysis of a model with this context's engine, seed and limits, computed once a run.

        Raises
        ------
        OutOfReachError
            A limit stopped the computation: what it found until then is no ground for a verdict.
        """
        key = (analysis, model.spec, tuple(sorted(options.items())))
        if key not in self.known:
            self.known[key] = analysis(
                model, engine=self.engine, seed=self.seed, limits=self.limits, **options
            )
        result: _R = self.known[key]
        limit = getattr(result, "limit", None)
        if limit is not None:
            raise OutOfReachError(str(limit), estimate=None)
        return result


Check = Callable[[Size, Context], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What is wrong with a printed statement and what repairs it.

    Attributes
    ----------
    smallest: the smallest failing instance, in words.
    witness: the exact witness over QQ, in words that a reader can check by hand.
    macaulay2: a script of a few lines that shows it, to be run as it stands.
    reason: why the statement fails.
    unaffected: what of the paper does not depend on it.
    repaired: the repaired statement; `claim` is the id of the claim that checks it.
    """

    smallest: str
    witness: str
    macaulay2: str
    reason: str
    unaffected: str
    repaired: str
    claim: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement of a paper and how it is checked.

    Attributes
    ----------
    id: short and stable, e.g. ``theorem-3.4-singular``; `number` as printed.
    paper: citation.
    statement: in our words.
    checked: what exactly is checked; `witnesses`: by whom.
    sizes: where; `quick`: the subset for ``--quick``.
    repaired: whether this is a repaired statement rather than a printed one.
    """

    id: str
    number: str
    paper: str
    statement: str
    checked: str
    witnesses: tuple[str, ...]
    sizes: tuple[Size, ...]
    quick: tuple[Size, ...]
    run: Check
    correction: Correction | None = None
    repaired: bool = False

    def check(self, size: Size, context: Context) -> Verdict:
        """Run the check at one size, timed."""
        start = time.perf_counter()
        verdict = self.run(size, context)
        return replace(verdict, seconds=time.perf_counter() - start)


def holds(certainty: Certainty, reason: str = "", **computed: Any) -> Verdict:
    """The statement is true at this size."""
    return Verdict(status=Status.HOLDS, certainty=certainty, computed=computed, reason=reason)


def fails(certainty: Certainty, witness: Mapping[str, Any], reason: str = "", **computed: Any) -> Verdict:
    """The statement is false at this size, and here is why."""
    return Verdict(
        status=Status.FAILS, certainty=certainty, computed=computed, witness=witness, reason=reason
    )


def out_of_reach(reason: str) -> Verdict:
    """The statement was not decided at this size."""
    return Verdict(status=Status.OUT_OF_REACH, certainty=Certainty.PROBABLE, reason=reason)


def disagreement(conflicts: Sequence[object]) -> Verdict:
    """Our witnesses contradict each other."""
    return Verdict(
        status=Status.DISAGREEMENT,
        certainty=Certainty.PROBABLE,
        reason="; ".join(str(conflict) for conflict in conflicts),
    )
