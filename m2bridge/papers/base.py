"""Define claims (statements of a paper with a check), verdicts and corrections.

A claim paraphrases a statement, names the witnesses and the sizes at which it is checked, and has a function from a size to a
:class:`Verdict`. A formula of the paper may be compared with the computed value; it is never used to compute it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from m2bridge.certainty import Certainty
from m2bridge.engine import Engine
from m2bridge.errors import DisagreementError, LimitError, OutOfReachError
from m2bridge.evidence import Evidence
from m2bridge.families import Model
from m2bridge.limits import Limits
from m2bridge.results import Result

_R = TypeVar("_R", bound=Result)

Size = Mapping[str, Any]
"""The size at which a claim is checked: a spec string under ``model``, or plain numbers; JSON values only."""


class Status(StrEnum):
    """The result of a check at one size."""

    HOLDS = "holds"
    FAILS = "fails"
    REPAIRED_HOLDS = "repaired-holds"
    """A repaired statement holds."""
    PROBE_TRUE = "probe-true"
    """A statement that the paper does not make, or makes as a belief, is true here."""
    PROBE_FALSE = "probe-false"
    """Such a statement is false here, which is not a failure of the paper."""
    OUT_OF_REACH = "out-of-reach"
    DISAGREEMENT = "disagreement"
    """The witnesses contradict each other: there is no verdict about the paper."""


class Kind(StrEnum):
    """The kind of a statement: printed in the paper, repaired, or a question that the paper leaves open."""

    PRINTED = "printed"
    REPAIRED = "repaired"
    PROBE = "probe"

    def status(self, plain: Status) -> Status:
        """Return the status of a statement of this kind, given the plain result of its check, holds or fails."""
        if self is Kind.PROBE:
            return {Status.HOLDS: Status.PROBE_TRUE, Status.FAILS: Status.PROBE_FALSE}.get(plain, plain)
        if self is Kind.REPAIRED and plain is Status.HOLDS:
            return Status.REPAIRED_HOLDS
        return plain


Witnesses = Mapping[str, tuple[str, ...]]
"""Witnesses by ancestry: ``{"program": ("modular", "numpy"), "template": ("macaulay2",)}``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a check at one size: the compared quantities (JSON values), a witness of a failure, and a reason.

    `witnesses` are those of the computation, or else those of the claim; `cached` is true if all answers were computed for an
    earlier row; `recorded` is the status in the baseline, or None. A check sets the status, certainty, reason and computed
    quantities; :meth:`Claim.check` and the ledger set the other fields.
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
        """Return whether the status differs from the recorded one."""
        return self.recorded is not None and self.recorded is not self.status

    @staticmethod
    def holds(certainty: Certainty, reason: str = "", **computed: Any) -> Verdict:
        """Return the verdict that the statement is true at this size."""
        word = _without_certificate(certainty)
        return Verdict(status=Status.HOLDS, certainty=word, computed=computed, reason=reason)

    @staticmethod
    def fails(certainty: Certainty, witness: Mapping[str, Any], reason: str = "", **computed: Any) -> Verdict:
        """Return the verdict that the statement is false at this size, with a witness."""
        word = _without_certificate(certainty)
        return Verdict(status=Status.FAILS, certainty=word, computed=computed, witness=witness, reason=reason)

    @staticmethod
    def decided(truth: bool, certainty: Certainty, reason: str, otherwise: str, **computed: Any) -> Verdict:
        """Return the verdict for a decided statement, with the computed quantities; `otherwise` is the reason why it fails."""
        if truth:
            return Verdict.holds(certainty, reason, **computed)
        return Verdict.fails(certainty, computed, otherwise, **computed)

    @staticmethod
    def out_of_reach(reason: str) -> Verdict:
        """Return the verdict that the statement was not decided at this size."""
        return Verdict(status=Status.OUT_OF_REACH, certainty=Certainty.PROBABLE, reason=reason)

    @staticmethod
    def disagreement(conflicts: Iterable[object]) -> Verdict:
        """Return the verdict that the witnesses contradict each other."""
        reason = "; ".join(map(str, conflicts))
        return Verdict(status=Status.DISAGREEMENT, certainty=Certainty.PROBABLE, reason=reason)


def _without_certificate(certainty: Certainty) -> Certainty:
    """Return the certainty of a verdict of the ledger, which contains no certificates."""
    return Certainty.COMPUTED if certainty is Certainty.PROVED else certainty


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """The context of a check: an engine, a seed, limits, and the answers that were computed in this run."""

    engine: Engine
    seed: int = 0
    limits: Limits = field(default_factory=lambda: Limits(wall_seconds=300.0))
    answers: dict[Any, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: {"cached": 0, "new": 0})
    """How many answers of this check were cached and how many were computed."""
    evidence: list[Evidence] = field(default_factory=list)
    """The evidence of the answers of this check."""

    def once(self, question: Callable[..., _R], model: Model, **options: Any) -> _R:
        """Return the answer of a question for a model, with the engine, seed and limits of this context, computed once per run.

        Raises
        ------
        OutOfReachError
            A limit stopped the computation: an incomplete answer gives no verdict.
        DisagreementError
            The witnesses of the answer contradict each other, so that there is no verdict about the paper.
        """
        key = (question, model.spec, repr(sorted(options.items())))
        self.counts["cached" if key in self.answers else "new"] += 1
        if key not in self.answers:
            arguments = {"engine": self.engine, "seed": self.seed, "limits": self.limits, **options}
            self.answers[key] = question(model, **arguments)
        result: _R = self.answers[key]
        if result.limit is not None:
            raise OutOfReachError(str(result.limit))
        if result.agreement is False:
            raise DisagreementError("the witnesses of an answer disagree", conflicts=result.conflicts)
        self.evidence.extend(result.evidence)
        return result


Check = Callable[[Size, CheckContext], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The correction of a printed statement.

    Attributes
    ----------
    smallest: the smallest instance at which it fails.
    witness: an exact counterexample over QQ that can be checked by hand; `macaulay2`: a short script that shows it.
    reason: why the statement fails; `unaffected`: results of the paper that do not depend on it.
    repaired: the repaired statement; `claim`: the id of the claim that checks it.
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
    """A statement of a paper and its check.

    Attributes
    ----------
    id: short and stable, e.g. ``theorem-3.4-singular``; `number` as printed.
    paper: citation; by default that of the package of the paper.
    statement: a paraphrase; `quote`: words of the paper, if a probe or a doubt is about them.
    checked: a description of the check; `witnesses`: its witnesses by ancestry.
    about: prefixes of the quantities whose witnesses a row names; by default a row names `witnesses`.
    sizes: at which it is checked; `quick`: the subset for ``--quick``, by default the first.
    kind: printed, repaired or probe.
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
        """Return another statement with this check, without the quotation and the correction of this one."""
        cleared: dict[str, Any] = {"quote": None, "correction": None}
        return replace(self, **cleared | ({"quick": ()} if "sizes" in changes else {}) | changes)

    def check(self, size: Size, context: CheckContext) -> Verdict:
        """Run the check at one size; return the verdict with the status for this kind of statement and the time."""
        context.counts.update(cached=0, new=0)
        context.evidence.clear()
        start = time.perf_counter()
        try:
            verdict = self.run(size, context)
        except DisagreementError as error:
            verdict = Verdict.disagreement(error.fields.get("conflicts", (error,)))
        except (LimitError, OutOfReachError) as error:
            verdict = replace(Verdict.out_of_reach(str(error)), witnesses=self.witnesses)
        return replace(
            verdict,
            claim=self.id,
            size=dict(size),
            status=self.kind.status(verdict.status),
            witnesses=verdict.witnesses or by_ancestry(context.evidence, *self.about) or self.witnesses,
            seconds=time.perf_counter() - start,
            cached=context.counts["cached"] > 0 and not context.counts["new"],
        )


def sizes(names: str, *cases: Sequence[Any]) -> tuple[Size, ...]:
    """Return sizes from their names and rows of values: ``sizes("d dp", (2, 1), (3, 2))``; tuples become lists, as in JSON."""
    plain = ([list(x) if isinstance(x, tuple) else x for x in case] for case in cases)
    return tuple(dict(zip(names.split(), case, strict=True)) for case in plain)


def by_ancestry(evidence: Iterable[Evidence], *quantities: str) -> Witnesses:
    """Return the witnesses of quantities whose names begin with one of `quantities`, by ancestry."""
    witnesses: dict[str, dict[str, None]] = {}
    for item in evidence:
        if item.value is not None and item.quantity.startswith(quantities):
            witnesses.setdefault(item.stands_on, {})[item.witness] = None
    return {ancestry: tuple(names) for ancestry, names in sorted(witnesses.items())}
