"""Claims: a paper's statements as programs. What a claim is, what a check answers, what a correction holds.

A claim says in our words what its paper states, names the witnesses that are asked, lists the sizes at which it is checked, and
has one function that takes a size and answers with a :class:`Verdict`. A formula of the paper may be compared with what
was computed; it is never used to compute it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from m2bridge.certainty import Certainty
from m2bridge.engine import Engine
from m2bridge.errors import LimitError, OutOfReachError
from m2bridge.evidence import Evidence
from m2bridge.families import Model
from m2bridge.limits import Limits

_R = TypeVar("_R")

Size = Mapping[str, Any]
"""What one check is about: a spec string under ``model``, or plain numbers; JSON values only."""


class Status(StrEnum):
    """What became of a statement at one size."""

    HOLDS = "holds"
    FAILS = "fails"
    REPAIRED_HOLDS = "repaired-holds"
    """A statement that we repaired holds."""
    PROBE_TRUE = "probe-true"
    """What the paper does not state, or states as a belief, is true here."""
    PROBE_FALSE = "probe-false"
    """It is false here, which is no failure of the paper."""
    OUT_OF_REACH = "out-of-reach"
    DISAGREEMENT = "disagreement"
    """Our own witnesses contradict each other: nothing is said about the paper."""


class Kind(StrEnum):
    """Whose statement a claim is: the paper's, the paper's as we repaired it, or a question that the paper leaves open."""

    PRINTED = "printed"
    REPAIRED = "repaired"
    PROBE = "probe"

    def status(self, found: Status) -> Status:
        """What a check's plain answer, holds or fails, means for a statement of this kind."""
        if self is Kind.PROBE:
            return {Status.HOLDS: Status.PROBE_TRUE, Status.FAILS: Status.PROBE_FALSE}.get(found, found)
        if self is Kind.REPAIRED and found is Status.HOLDS:
            return Status.REPAIRED_HOLDS
        return found


class WitnessesDisagreeError(Exception):
    """The witnesses of an answer contradict each other: nothing can be said about the paper."""

    def __init__(self, conflicts: Sequence[object]) -> None:
        super().__init__("; ".join(map(str, conflicts)))
        self.conflicts = tuple(conflicts)


Witnesses = Mapping[str, tuple[str, ...]]
"""Who was asked, by ancestry: ``{"program": ("modular", "numpy"), "template": ("macaulay2",)}``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a claim at one size: the quantities that were compared (JSON values), for a failure what a reader needs to
    see it fail, and one sentence for people.

    `witnesses` are those that the computation itself named, else those of the claim; `cached` says that all answers had been
    computed for an earlier row; `recorded` is the status in the baseline, None where that has no such row. A check says its
    status, certainty and reason, and what was computed; :meth:`Claim.check` and the ledger fill in the rest.
    """

    claim: str = ""
    size: Mapping[str, Any] = field(default_factory=dict)
    status: Status
    certainty: Certainty
    computed: Mapping[str, Any] = field(default_factory=dict)
    witness: Mapping[str, Any] | None = None
    witnesses: Witnesses = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0
    cached: bool = False
    recorded: Status | None = None

    @property
    def changed(self) -> bool:
        """Whether the status differs from the recorded one."""
        return self.recorded is not None and self.recorded is not self.status


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """What a check may use: an engine, a seed, limits, and answers that other checks of the run have computed already."""

    engine: Engine
    seed: int = 0
    limits: Limits = field(default_factory=lambda: Limits(wall_seconds=300.0))
    known: dict[Any, Any] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=lambda: {"known": 0, "new": 0})
    """How many answers were known already and how many were computed, since the check began."""
    said: list[Evidence] = field(default_factory=list)
    """The evidence of these answers."""

    def once(self, question: Callable[..., _R], model: Model, **options: Any) -> _R:
        """The question's answer for a model with this context's engine, seed and limits, computed once per run.

        Raises
        ------
        OutOfReachError
            A limit stopped the computation: what it found until then is no ground for a verdict.
        WitnessesDisagreeError
            The answer's own witnesses contradict each other.
        """
        key = (question, model.spec, repr(sorted(options.items())))
        self.asked["known" if key in self.known else "new"] += 1
        if key not in self.known:
            given = {"engine": self.engine, "seed": self.seed, "limits": self.limits, **options}
            self.known[key] = question(model, **given)
        result: _R = self.known[key]
        limit = getattr(result, "limit", None)
        if limit is not None:
            raise OutOfReachError(str(limit), estimate=None)
        if getattr(result, "agreement", None) is False:
            raise WitnessesDisagreeError(getattr(result, "conflicts", ()))
        self.said.extend(getattr(result, "evidence", ()))
        return result


Check = Callable[[Size, CheckContext], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What is wrong with a printed statement and what repairs it: the smallest failing instance, the exact witness over QQ in words that
    a reader can check by hand, a script of a few lines that shows it and runs as it stands, why the statement fails, what of the
    paper does not depend on it, the repaired statement, and the id of the claim that checks that.
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
    paper: citation; by default that of the package of the paper.
    statement: in our words; `quote`: a few words of the paper's own, where a probe or a doubt is about them.
    checked: what exactly is checked; `witnesses`: by whom, by ancestry.
    about: the quantities, by how their names begin, whose witnesses are named in a row; without it the row names `witnesses`.
    sizes: where; `quick`: the subset for ``--quick``, by default the first.
    kind: whose statement it is.
    """

    id: str
    number: str
    statement: str
    checked: str
    witnesses: Witnesses
    sizes: tuple[Size, ...]
    run: Check
    paper: str = ""
    quick: tuple[Size, ...] = ()
    about: tuple[str, ...] = ()
    quote: str | None = None
    correction: Correction | None = None
    kind: Kind = Kind.PRINTED

    def __post_init__(self) -> None:
        if not self.quick:
            object.__setattr__(self, "quick", self.sizes[:1])

    def also(self, **changes: Any) -> Claim:
        """Another statement with this check, without the quotation and the correction of this one."""
        fresh: dict[str, Any] = {"quote": None, "correction": None}
        return replace(self, **fresh | ({"quick": ()} if "sizes" in changes else {}) | changes)

    def check(self, size: Size, context: CheckContext) -> Verdict:
        """Run the check at one size, timed; its answer is read for the kind of the statement."""
        context.asked.update(known=0, new=0)
        context.said.clear()
        start = time.perf_counter()
        try:
            verdict = self.run(size, context)
        except WitnessesDisagreeError as error:
            verdict = disagreement(error.conflicts)
        except (LimitError, OutOfReachError) as error:
            verdict = replace(out_of_reach(str(error)), witnesses=self.witnesses)
        return replace(
            verdict,
            claim=self.id,
            size=dict(size),
            status=self.kind.status(verdict.status),
            witnesses=verdict.witnesses or by_ancestry(context.said, *self.about) or self.witnesses,
            seconds=time.perf_counter() - start,
            cached=context.asked["known"] > 0 and not context.asked["new"],
        )


def sizes(names: str, *cases: Sequence[Any]) -> tuple[Size, ...]:
    """Sizes from their names and rows of values: ``sizes("d dp", (2, 1), (3, 2))``; tuples become lists, as in JSON."""
    plain = ([list(x) if isinstance(x, tuple) else x for x in case] for case in cases)
    return tuple(dict(zip(names.split(), case, strict=True)) for case in plain)


def by_ancestry(evidence: Iterable[Evidence], *quantities: str) -> Witnesses:
    """The witnesses who said something about quantities whose names begin so, by what they stand on."""
    found: dict[str, dict[str, None]] = {}
    for item in evidence:
        if item.value is not None and item.quantity.startswith(quantities):
            found.setdefault(item.stands_on, {})[item.witness] = None
    return {ancestry: tuple(names) for ancestry, names in sorted(found.items())}


def _without_certificate(certainty: Certainty) -> Certainty:
    """The word for a verdict of the ledger, which holds no certificates."""
    return Certainty.COMPUTED if certainty is Certainty.PROVED else certainty


def holds(certainty: Certainty, reason: str = "", **computed: Any) -> Verdict:
    """The statement is true at this size."""
    sure = _without_certificate(certainty)
    return Verdict(status=Status.HOLDS, certainty=sure, computed=computed, reason=reason)


def fails(certainty: Certainty, witness: Mapping[str, Any], reason: str = "", **computed: Any) -> Verdict:
    """The statement is false at this size, and here is why."""
    sure = _without_certificate(certainty)
    return Verdict(status=Status.FAILS, certainty=sure, computed=computed, witness=witness, reason=reason)


def decided(truth: bool, certainty: Certainty, reason: str, otherwise: str, **computed: Any) -> Verdict:
    """Whether the statement is true at this size, with what was computed; `otherwise` is the reason why it fails."""
    if truth:
        return holds(certainty, reason, **computed)
    return fails(certainty, computed, otherwise, **computed)


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
