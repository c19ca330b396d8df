"""Report: a ledger as Markdown and as one self-contained HTML page, fit to send to a paper's authors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from html import escape

from m2bridge._version import __version__
from m2bridge.claims import claim
from m2bridge.claims.base import Claim, Status
from m2bridge.claims.ledger import Entry, Ledger, describe

_WORD = {
    Status.HOLDS: "holds",
    Status.FAILS: "fails",
    Status.REPAIRED_HOLDS: "repaired holds",
    Status.PROBE_TRUE: "probe: true here",
    Status.PROBE_FALSE: "probe: false here",
    Status.OUT_OF_REACH: "out of reach",
    Status.DISAGREEMENT: "witnesses disagree",
}


def _groups(ledger: Ledger) -> Iterator[tuple[Claim, list[Entry]]]:
    by_claim: dict[str, list[Entry]] = {}
    for entry in ledger.entries:
        by_claim.setdefault(entry.claim, []).append(entry)
    for name, entries in by_claim.items():
        yield claim(name), entries


def verdict_words(entry: Entry) -> str:
    """The verdict, and how sure it is where it is one."""
    open_ones = (Status.OUT_OF_REACH, Status.DISAGREEMENT)
    sure = "" if entry.status in open_ones else f", {entry.certainty.value}"
    return _WORD[entry.status] + sure


def duration(entry: Entry) -> str:
    """Seconds, or that everything had been computed for an earlier row."""
    if entry.cached:
        return "cached"
    if entry.seconds < 0.001:
        return "< 0.001"
    return f"{entry.seconds:.1f}" if entry.seconds >= 0.1 else f"{entry.seconds:.3f}"


def _named(witnesses: Mapping[str, Iterable[str]]) -> str:
    return "; ".join(f"{ancestry}: {', '.join(names)}" for ancestry, names in witnesses.items())


def _own_witnesses(item: Claim, entry: Entry) -> str:
    """The row's witnesses where they are not those that stand above the table."""
    above, own = _named(item.witnesses), _named(entry.witnesses)
    return "as above" if own == above else own


def _failures(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.status in (Status.FAILS, Status.PROBE_FALSE)]


def ledger_markdown(ledger: Ledger) -> str:
    """The whole ledger as Markdown."""
    engine = f"Macaulay2 {ledger.engine.version}" if ledger.engine else "no Macaulay2"
    counts = Counter(entry.status for entry in ledger.entries)
    tally = ", ".join(f"{counts[status]} {_WORD[status]}" for status in Status if counts[status])
    lines = [
        f"# Ledger: {ledger.model}",
        "",
        f"Made by `m2bridge verify` (m2bridge {__version__}, {engine}, seed {ledger.seed}). Each statement is given in our words "
        "with its printed number, and a few words of the paper where a row is about them. *Proved* means shown for that size by "
        "exact computation over QQ (or RR); *probable* means exact over a finite field or at random points; *numeric* means "
        "floating point. A *probe* asks what the paper does not state, or states as a belief: that it is false somewhere is no "
        "failure of the paper. Witnesses stand by what they rest on: the network's program, its Macaulay2 template, a formula, "
        "or a construction; one mistake moves all that share an ancestry. *Cached* rows took their answers from earlier rows.",
        "",
        f"{len(ledger.entries)} rows: {tally}.",
        "",
    ]
    for item, entries in _groups(ledger):
        lines += [f"## {item.number}", "", item.statement, ""]
        if item.quote is not None:
            lines += [f'The paper: "{item.quote}".', ""]
        lines += [f"Checked: {item.checked}.", "", f"Witnesses, by ancestry: {_named(item.witnesses)}.", ""]
        lines += ["| size | verdict | remark | witnesses | s |", "|---|---|---|---|---:|"]
        for entry in entries:
            cells = [describe(entry.size), verdict_words(entry), entry.reason, _own_witnesses(item, entry)]
            written = [" ".join(cell.split()).replace("|", "\\|") for cell in cells]
            lines.append(f"| {' | '.join(written)} | {duration(entry)} |")
        lines.append("")
        if failures := _failures(entries):
            lines += _correction_markdown(item, failures[0])
    return "\n".join(lines).rstrip() + "\n"


def _correction_markdown(item: Claim, entry: Entry) -> list[str]:
    lines = []
    if entry.witness is not None:
        lines += [
            "Computed witness of the first row that is false:",
            "",
            "```json",
            json.dumps(dict(entry.witness)),
            "```",
            "",
        ]
    correction = item.correction
    if correction is None:
        return lines
    return [
        *lines,
        f"**Smallest instance.** {correction.smallest}",
        "",
        f"**Witness.** {correction.witness}",
        "",
        "In Macaulay2:",
        "",
        "```macaulay2",
        correction.macaulay2.rstrip(),
        "```",
        "",
        f"**Why.** {correction.reason}",
        "",
        f"**Unaffected.** {correction.unaffected}",
        "",
        f"**Repaired.** {correction.repaired}",
        "",
    ]


_STYLE = """
body{font:16px/1.5 Georgia,serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;font-size:.9em}td,th{padding:.2rem .7rem;border-bottom:1px solid #ccc;text-align:left}
pre{background:#f4f4f4;padding:.6rem;overflow-x:auto;font-size:.85em}
.holds,.repaired-holds{color:#006d5b}.probe-true,.probe-false{color:#345}.fails{color:#b3123b;font-weight:bold}.out-of-reach{color:#8a6d00}.disagreement{color:#b3123b}
"""


def ledger_html(ledger: Ledger) -> str:
    """The whole ledger as one HTML page without scripts or outside resources."""
    engine = f"Macaulay2 {ledger.engine.version}" if ledger.engine else "no Macaulay2"
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<title>Ledger: {escape(ledger.model)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Ledger</h1><p>{escape(ledger.model)}. m2bridge {__version__}, {escape(engine)}, seed {ledger.seed}.</p>",
    ]
    for item, entries in _groups(ledger):
        parts.append(f"<h2 id='{escape(item.id)}'>{escape(item.number)}</h2><p>{escape(item.statement)}</p>")
        if item.quote is not None:
            parts.append(f"<p>The paper: <q>{escape(item.quote)}</q></p>")
        parts.append(
            f"<p><em>Checked:</em> {escape(item.checked)}. <em>Witnesses, by ancestry:</em> {escape(_named(item.witnesses))}.</p>"
        )
        parts.append(
            "<table><tr><th>size</th><th>verdict</th><th>remark</th><th>witnesses</th><th>s</th></tr>"
        )
        parts += [
            f"<tr><td>{escape(describe(e.size))}</td><td class='{e.status.value}'>{verdict_words(e)}</td>"
            f"<td>{escape(e.reason)}</td><td>{escape(_own_witnesses(item, e))}</td><td>{duration(e)}</td></tr>"
            for e in entries
        ]
        parts.append("</table>")
        if failures := _failures(entries):
            parts += _correction_html(item, failures[0])
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _correction_html(item: Claim, entry: Entry) -> list[str]:
    parts = []
    if entry.witness is not None:
        parts.append(f"<p>Computed witness:</p><pre>{escape(json.dumps(dict(entry.witness)))}</pre>")
    correction = item.correction
    if correction is None:
        return parts
    for title, text in (("Smallest instance", correction.smallest), ("Witness", correction.witness)):
        parts.append(f"<p><strong>{title}.</strong> {escape(text)}</p>")
    parts.append(f"<pre>{escape(correction.macaulay2)}</pre>")
    for title, text in (
        ("Why", correction.reason), ("Unaffected", correction.unaffected), ("Repaired", correction.repaired),
    ):  # fmt: skip
        parts.append(f"<p><strong>{title}.</strong> {escape(text)}</p>")
    return parts
