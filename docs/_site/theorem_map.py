"""The theorem map: from each published statement to the command that checks it, its record, and its certificates.

Rows of statements are made from the ledgers in ``results/``; the certificates are listed in
``results/certificates/README.md``.
"""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path

from m2bridge.certainty import Certainty
from m2bridge.papers import claims_of

_LEDGERS = {
    "lightning_attention": "ledger.json",
    "polynomial_networks": "ledger-polynomial-networks.json",
    "loss_landscape": "ledger-loss-landscape.json",
}
_INTRODUCTION = """# Theorem map

Each row leads from a published statement to its check: `m2bridge verify CHECK` with the name in the second column, the verdicts with the
number of sizes, the weakest certainty among them, and the seconds that they took. The seconds were taken on two cores of an Intel
Xeon at 2.5 GHz, with one other program running. `m2bridge verify` runs all checks of a paper; the [ledger](ledger.md) lists every size. The digest of a record is the sha256
of its file in `results/`. *Holds when repaired*: the corrected statement holds. *Probe*: a question whose answer the paper does not claim;
true or false is its answer.
"""
_OURS = """
## Our own statements

| statement | where it is proved | checked by |
|---|---|---|
| Conjecture 3.10 for two or more tokens, at every depth, if S is C^2 near 0 with S(0) > 0 and S'(0) != 0 | [the proof](conjecture-3.10.md) | `m2bridge verify conjecture-3.10` |
| The rank modulo p with units in place of exponentials bounds the dimension from below, if the arguments of the exponentials are independent (hypotheses (A) and (B)) | [exponentials](exponentials.md) | `m2bridge dimension 'softmax(d=[3,3,3],a=[2,2],t=3)' --save DIR`, `m2bridge check DIR` |
| If π: Z → X is finite and surjective, X reduced, and the fiber over x is one reduced point z, rational over k(x), at which Z is smooth, then X is smooth at x | [decision 18](decisions/0018-smooth-by-a-finite-map.md) | `m2bridge singular-locus --d 4 --dp 2` |
| Theorems 3.4 and 3.7, the list of symmetries and Lemma A.3, as corrected | [theory](theory.md#corrections-to-the-paper) | `m2bridge verify theorem-3.4`, `theorem-3.7`, `three-symmetries`, `lemma-a.3` |
"""


_CERTIFICATES = """
## Certificates

Each file proves one statement; the last column names the published statement of which it is one size. `python -I m2bridge/checker.py FILE`
verifies it and prints the sentence in the first column.

| verified | model | file | sha256 | statement |
|---|---|---|---|---|
"""
_INSTANCE_OF = {
    "closure-lightning": "Numbers around Figure 1",
    "dimension-deep-lightning": "Corollary 3.8",
    "dimension-defective-mlp": "Alexander, Hirschowitz",
    "dimension-lightning": "Corollary 3.3",
    "dimension-softmax": "Equation 16",
    "same-lightning": "Theorem 3.2",
    "singular-lightning-1": "Theorem 3.4, singular points",
    "singular-lightning-2": "Numbers around Figure 1",
}
_ROW_OF_LIST = re.compile(
    r"^\| (`\S+`) \| Verified: (.*?) \| `(\S+)\.json` \| `(\w{12})\w*` \|$", re.MULTILINE
)


def write(docs: Path) -> None:
    """Write ``docs/theorem-map.md``."""
    results = docs.parent / "results"
    text = _INTRODUCTION
    for paper, file in _LEDGERS.items():
        text += _table(paper, results / file)
    text += (
        _OURS
        + _CERTIFICATES
        + _certificates((results / "certificates" / "README.md").read_text(encoding="utf-8"))
    )
    (docs / "theorem-map.md").write_text(text, encoding="utf-8")


def _certificates(listed: str) -> str:
    return "".join(
        f"| {verified} | {re.sub(',(?=[a-z])', ', ', model)} | {{download}}`{name}.json <../results/certificates/{name}.json>` "
        f"| `{digest}…` | {_INSTANCE_OF.get(name, '')} |\n"
        for model, verified, name, digest in _ROW_OF_LIST.findall(listed)
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] + "…"


def _table(paper: str, path: Path) -> str:
    ledger = json.loads(path.read_text(encoding="utf-8"))
    claims = claims_of(paper)
    engine = (ledger["engine"] or {}).get("version", "none")
    option = "" if paper == "lightning_attention" else f"; `--paper {paper.replace('_', '-')}`"
    lines = [
        f"\n## {claims[0].paper}\n",
        f"Record `results/{path.name}`, sha256 `{_digest(path)}`; m2bridge {ledger['package_version']}, Macaulay2 {engine}, "
        f"seed {ledger['seed']}{option}.\n",
        "| statement | check | verdicts | certainty | s |",
        "|---|---|---|---|---:|",
    ]
    for claim in claims:
        rows = [entry for entry in ledger["entries"] if entry["claim"] == claim.id]
        if rows:
            verdicts = Counter(_verdict(entry["status"]) for entry in rows)
            weakest = Certainty.weakest(Certainty(entry["certainty"]) for entry in rows)
            seconds = sum(entry["seconds"] for entry in rows)
            shown_seconds = f"{seconds:.1f}" if seconds >= 0.05 else "< 0.1"
            lines.append(
                f"| **{claim.number}.** {_cell(claim.statement)} | `{claim.id}` "
                f"| {', '.join(f'{name} ({count})' for name, count in verdicts.items())} | {weakest.value} | {shown_seconds} |"
            )
    return "\n".join(lines) + "\n"


def _verdict(status: str) -> str:
    return "holds when repaired" if status == "repaired-holds" else status.replace("-", " ")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
