"""Claims: run the statements of a paper at their sizes, and compare the verdicts with the recorded ones."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, ClassVar

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.papers.base import CheckContext, Claim, Size, Status, Verdict
from m2bridge.results import EngineUse, Result, register_result

BASELINE = "ledger.json"
"""The file of recorded verdicts, of all papers."""


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger(Result):
    """All verdicts of a run, one entry per statement and size."""

    ANALYSIS: ClassVar[str] = "verify"
    VERSION: ClassVar[int] = 2

    entries: tuple[Verdict, ...]

    @property
    def changed(self) -> tuple[Verdict, ...]:
        """Return the entries whose verdict is not the recorded one."""
        return tuple(entry for entry in self.entries if entry.changed)


def select_sizes(claim: Claim, *, quick: bool, max_d: int | None) -> tuple[Size, ...]:
    """Return the sizes of a claim for this run; `max_d` excludes those with a larger width."""
    sizes = claim.quick if quick else claim.sizes
    return tuple(size for size in sizes if max_d is None or np.max(size.get("d", 0)) <= max_d)


def verify(
    claims: Sequence[Claim],
    context: CheckContext,
    *,
    quick: bool = False,
    max_d: int | None = None,
    progress: Callable[[str], None] | None = None,
    finished: Callable[[Claim, Verdict], None] | None = None,
) -> Ledger:
    """Check every claim at every size and compare with the baseline.

    Parameters
    ----------
    progress
        Called with the claim and size before each check; `finished` is called with each entry.
    """
    start = time.perf_counter()
    recorded = baseline()
    entries: list[Verdict] = []
    for claim in claims:
        for size in select_sizes(claim, quick=quick, max_d=max_d):
            if progress is not None:
                progress(f"{claim.id} {describe(size)}")
            status = recorded.get(_key(claim.id, size))
            entry = replace(claim.check(size, context), recorded=status)
            entries.append(entry)
            if finished is not None:
                finished(claim, entry)
    info = context.engine.info
    return Ledger(
        model=", ".join(dict.fromkeys(claim.paper for claim in claims)),
        entries=tuple(entries),
        certainty=Certainty.weakest(entry.certainty for entry in entries),
        agreement=not any(entry.status is Status.DISAGREEMENT for entry in entries),
        evidence=(),
        engine=EngineUse(version=info.version, origin=info.origin),
        seed=context.seed,
        seconds=time.perf_counter() - start,
    )


def describe(size: Size) -> str:
    """Return a size as one line of text."""
    return ", ".join(f"{name}={value}" for name, value in size.items()) or "exact"


def baseline() -> dict[str, Status]:
    """Return the recorded verdicts in the package, by claim and size."""
    path = resources.files("m2bridge").joinpath("data", BASELINE)
    if not path.is_file():
        return {}
    return index(json.loads(path.read_text(encoding="utf-8"))["entries"])


def index(entries: Iterable[Mapping[str, Any]]) -> dict[str, Status]:
    """Return verdicts by claim and size, from the entries of a ledger's document."""
    return {_key(entry["claim"], entry["size"]): Status(entry["status"]) for entry in entries}


def _key(claim: str, size: Size) -> str:
    return claim + " " + json.dumps(dict(size), sort_keys=True)
