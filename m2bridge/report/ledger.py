"""Report: write a ledger as Markdown or as one self-contained HTML page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from m2bridge._version import __version__
from m2bridge.papers import claim, misprints_in
from m2bridge.papers.base import Status, Verdict
from m2bridge.papers.ledger import Ledger, describe
from m2bridge.report.templates import written

_WORD = {
    Status.HOLDS: "holds",
    Status.FAILS: "fails",
    Status.REPAIRED_HOLDS: "holds when repaired",
    Status.PROBE_TRUE: "probe: true here",
    Status.PROBE_FALSE: "probe: false here",
    Status.OUT_OF_REACH: "out of reach",
    Status.DISAGREEMENT: "witnesses disagree",
}


def ledger_markdown(ledger: Ledger) -> str:
    """Return the ledger as Markdown."""
    return written("ledger.md", **_values(ledger))


def ledger_html(ledger: Ledger) -> str:
    """Return the ledger as one HTML page without scripts or external resources."""
    return written("ledger.html", **_values(ledger))


def verdict_words(entry: Verdict) -> str:
    """Return the verdict, with its certainty if the claim was decided."""
    open_ones = (Status.OUT_OF_REACH, Status.DISAGREEMENT)
    sure = "" if entry.status in open_ones else f", {entry.certainty.value}"
    return _WORD[entry.status] + sure


def duration(entry: Verdict) -> str:
    """Return the time in seconds, or "cached" if everything was computed for an earlier row."""
    if entry.cached:
        return "cached"
    if entry.seconds < 0.001:
        return "< 0.001"
    return f"{entry.seconds:.1f}" if entry.seconds >= 0.1 else f"{entry.seconds:.3f}"


def entries_by_claim(ledger: Ledger) -> dict[str, list[Verdict]]:
    """Return the rows of each claim, in the order of the ledger."""
    by_claim: dict[str, list[Verdict]] = {}
    for entry in ledger.entries:
        by_claim.setdefault(entry.claim, []).append(entry)
    return by_claim


def _values(ledger: Ledger) -> dict[str, Any]:
    """Return the values of the templates."""
    counts = Counter(entry.status for entry in ledger.entries)
    return {
        "model": ledger.model,
        "version": __version__,
        "engine": f"Macaulay2 {ledger.engine.version}" if ledger.engine else "no Macaulay2",
        "seed": ledger.seed,
        "rows": len(ledger.entries),
        "tally": ", ".join(f"{counts[status]} {_WORD[status]}" for status in Status if counts[status]),
        "groups": [_group(name, entries) for name, entries in entries_by_claim(ledger).items()],
        "misprints": misprints_in(ledger.model),
    }


def _group(name: str, entries: list[Verdict]) -> dict[str, Any]:
    """Return a claim with its rows; if one is false, also the computed witness of the first such row and the correction."""
    item = claim(name)
    witnesses = _named(item.witnesses)
    rows = []
    for entry in entries:
        row_witnesses = _named(entry.witnesses)
        shown = [describe(entry.size), verdict_words(entry), entry.reason]
        rows.append(
            (
                entry.status.value,
                [*shown, "as above" if row_witnesses == witnesses else row_witnesses, duration(entry)],
            )
        )
    false = [entry for entry in entries if entry.status in (Status.FAILS, Status.PROBE_FALSE)]
    witness = json.dumps(dict(false[0].witness)) if false and false[0].witness is not None else None
    correction = item.correction if false else None
    return {"claim": item, "witnesses": witnesses, "rows": rows, "witness": witness, "correction": correction}


def _named(witnesses: Mapping[str, Iterable[str]]) -> str:
    return "; ".join(f"{ancestry}: {', '.join(names)}" for ancestry, names in witnesses.items())
