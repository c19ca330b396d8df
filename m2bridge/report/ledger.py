"""Report: a ledger as Markdown and as one self-contained HTML page, fit to send to a paper's authors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape

from m2bridge._version import __version__
from m2bridge.claims import claim
from m2bridge.claims.base import Claim, Status
from m2bridge.claims.ledger import Entry, Ledger, describe

_WORD = {
    Status.HOLDS: "holds",
    Status.FAILS: "fails",
    Status.OUT_OF_REACH: "out of reach",
    Status.DISAGREEMENT: "witnesses disagree",
}


def _groups(ledger: Ledger) -> Iterator[tuple[Claim, list[Entry]]]:
    by_claim: dict[str, list[Entry]] = {}
    for entry in ledger.entries:
        by_claim.setdefault(entry.claim, []).append(entry)
    for name, entries in by_claim.items():
        yield claim(name), entries


def _verdict(entry: Entry) -> str:
    sure = f", {entry.certainty.value}" if entry.status in (Status.HOLDS, Status.FAILS) else ""
    return _WORD[entry.status] + sure


def ledger_markdown(ledger: Ledger) -> str:
    """The whole ledger as Markdown."""
    engine = f"Macaulay2 {ledger.engine.version}" if ledger.engine else "no Macaulay2"
    lines = [
        f"# Ledger: {ledger.model}",
        "",
        f"Made by `m2bridge verify` (m2bridge {__version__}, {engine}, seed {ledger.seed}). Each statement is given in our words "
        "with its printed number. *Proved* means shown for that size by exact computation over QQ (or RR); *probable* means "
        "exact over a finite field or at random points.",
        "",
    ]
    for item, entries in _groups(ledger):
        lines += [f"## {item.number}", "", item.statement, "", f"Checked: {item.checked}.", ""]
        lines += ["Witnesses: " + "; ".join(item.witnesses) + ".", ""]
        lines += ["| size | verdict | remark | s |", "|---|---|---|---:|"]
        for entry in entries:
            remark = " ".join(entry.reason.split()).replace("|", "\\|")
            lines.append(f"| {describe(entry.size)} | {_verdict(entry)} | {remark} | {entry.seconds:.1f} |")
        lines.append("")
        if any(entry.status is Status.FAILS for entry in entries):
            lines += _correction_markdown(item, next(e for e in entries if e.status is Status.FAILS))
    return "\n".join(lines).rstrip() + "\n"


def _correction_markdown(item: Claim, entry: Entry) -> list[str]:
    lines = []
    if entry.witness is not None:
        lines += [
            "Computed witness of the first failure:",
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
        f"**Smallest failing instance.** {correction.smallest}",
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
.holds{color:#006d5b}.fails{color:#b3123b;font-weight:bold}.out-of-reach{color:#8a6d00}.disagreement{color:#b3123b}
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
        parts.append(
            f"<p><em>Checked:</em> {escape(item.checked)}. <em>Witnesses:</em> {escape('; '.join(item.witnesses))}.</p>"
        )
        parts.append("<table><tr><th>size</th><th>verdict</th><th>remark</th><th>s</th></tr>")
        parts += [
            f"<tr><td>{escape(describe(e.size))}</td><td class='{e.status.value}'>{_verdict(e)}</td>"
            f"<td>{escape(e.reason)}</td><td>{e.seconds:.1f}</td></tr>"
            for e in entries
        ]
        parts.append("</table>")
        failed = next((e for e in entries if e.status is Status.FAILS), None)
        if failed is not None:
            parts += _correction_html(item, failed)
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _correction_html(item: Claim, entry: Entry) -> list[str]:
    parts = []
    if entry.witness is not None:
        parts.append(f"<p>Computed witness:</p><pre>{escape(json.dumps(dict(entry.witness)))}</pre>")
    correction = item.correction
    if correction is None:
        return parts
    for title, text in (("Smallest failing instance", correction.smallest), ("Witness", correction.witness)):
        parts.append(f"<p><strong>{title}.</strong> {escape(text)}</p>")
    parts.append(f"<pre>{escape(correction.macaulay2)}</pre>")
    for title, text in (
        ("Why", correction.reason), ("Unaffected", correction.unaffected), ("Repaired", correction.repaired),
    ):  # fmt: skip
        parts.append(f"<p><strong>{title}.</strong> {escape(text)}</p>")
    return parts
