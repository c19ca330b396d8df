"""Report: cite an answer by one LaTeX sentence, which claims no more than the record shows, and BibTeX entries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import Any

from m2bridge import latex
from m2bridge._version import __version__
from m2bridge.certainty import Certainty
from m2bridge.checker import verify
from m2bridge.errors import CertificateError, DisagreementError, InputError, M2BridgeError, visible
from m2bridge.evidence import RELATION_WORDS, settle, strongest
from m2bridge.families import parse_spec
from m2bridge.papers.ledger import Ledger
from m2bridge.questions import find
from m2bridge.questions.custom_template import TemplateValues
from m2bridge.records import dumps, to_document
from m2bridge.report.templates import asset, written
from m2bridge.results import Result, altered
from m2bridge.views import shorten

_ENTRY = re.compile(r"^@\w+\{(\w+),\n.*?^\}\n", re.MULTILINE | re.DOTALL)
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_ATTENTION = "2408.17221"
"""The arXiv number of the paper whose theorems are compared with the computed values."""
_LONGEST_CITED_TEXT = 160
"""Characters of a spec or value in a citation."""


def sentence(result: Result, *, version: str = __version__, verified: bool = False, shown: str = "") -> str:
    """Return one LaTeX sentence that states the answer and its certainty.

    Parameters
    ----------
    version
        The version of m2bridge that computed the record.
    verified
        Whether the checker verified everything in the first line of the answer.
    shown
        What the checker verified, in words.

    Raises
    ------
    DisagreementError
        The witnesses contradict each other.
    """
    if result.agreement is False:
        raise DisagreementError(
            "the witnesses of this record disagree; it cannot be cited",
            conflicts=result.conflicts,
        )
    if isinstance(result, Ledger):
        raise InputError("a ledger cannot be cited as one answer; cite a record of a question, or m2bridge")
    if alteration := altered(result):
        raise InputError(alteration)
    quantity, grounds = _strongest_statements(result)
    text = written(
        "cite.tex",
        title=shorten(title_of(result), _LONGEST_CITED_TEXT),
        spec=result.model if len(result.model) <= _LONGEST_CITED_TEXT // 2 else None,
        place=_point_text(result),
        version=version,
        engine=result.macaulay2,
        answer=shorten(result.view().answer, _LONGEST_CITED_TEXT),
        certainty=result.sure if isinstance(result, TemplateValues) else result.certainty.value,
        limit=result.limit,
        quantity=quantity,
        grounds=grounds,
        agreement=result.agreement,
        verified=verified,
        shown=shown,
        theorems=_theorems(result),
        sources=_sources(result),
        seed=result.seed,
    )
    return " ".join(text.split()) + "\n"


def citation(result: Result) -> str:
    """Return the sentence and the BibTeX entries of a result of this version; its certificate is verified first.

    Raises
    ------
    CertificateError
        The certificate is rejected.
    """
    code, messages = 8, [""]
    if getattr(result, "certificate", None):
        code, messages = verify(dumps(to_document(result)))
    if code == CertificateError.exit_code:
        raise CertificateError(f"the result is not cited: {' '.join(messages)}")
    shown = messages[0].removeprefix("Verified: ").partition(". ")[0].rstrip(".") if code in (0, 9) else ""
    return sentence(result, verified=code == 0, shown=shown) + "\n" + bibliography(result)


def bibliography(result: Result, *, version: str = __version__) -> str:
    """Return the BibTeX entries that :func:`sentence` cites: m2bridge, Macaulay2 if it was used, and the papers."""
    keys = {"m2bridge", *(["macaulay2"] if result.macaulay2 else [])}
    keys |= {key for _, named in _sources(result) for key in named.split(",") if key}
    text = "\n".join(entry for key, entry in _entries().items() if key in keys)
    return text.replace("@VERSION@", visible(version)).replace("@MACAULAY2@", visible(str(result.macaulay2)))


def title_of(result: Result) -> str:
    """Return the title of the subject of a record."""
    recorded_title = getattr(result, "title", None)
    if isinstance(recorded_title, str):
        return recorded_title
    try:
        title = parse_spec(result.model).title
    except M2BridgeError:
        return result.name or result.model
    # the spec of a user-defined network contains its program, not its name
    if result.name is not None and title.startswith("network,"):
        return result.name + title.removeprefix("network")
    return title


def _point_text(result: Result) -> str:
    """Return the loss, the point or the weights of the question as LaTeX, or their hash if they are long."""
    if isinstance(loss := getattr(result, "loss", None), str):
        return f"with the loss ``{latex.escaped(shorten(loss, _LONGEST_CITED_TEXT))}''"
    point = getattr(result, "point", None)
    coordinates = getattr(point, "coordinates", point)
    if coordinates is not None:
        return f"at the point {_numbers([str(x) for x in coordinates])}"
    points = [getattr(result, name, None) for name in ("at", "first", "second")]
    weights = [_numbers(at["weights"]) for at in points if at is not None and at.get("weights")]
    return f"at the weights {' and '.join(weights)}" if weights else ""


def _numbers(value: Any) -> str:
    """Return numbers as LaTeX, or their hash if there are many."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{name} = {_rows(rows)}" for name, rows in value.items())
    else:
        text = f"({', '.join(value)})"
    if len(text) <= _LONGEST_CITED_TEXT:
        return latex.escaped(text)
    digest = sha256(json.dumps(value, sort_keys=True, default=list).encode()).hexdigest()
    return f"contained in the record (sha256 \\texttt{{{digest[:16]}}})"


def _rows(value: Any) -> str:
    return f"[{', '.join(map(_rows, value))}]" if isinstance(value, (list, tuple)) else str(value)


def _strongest_statements(result: Result) -> tuple[str, list[tuple[str, str, str]]]:
    """Return the main quantity of the question, and up to two statements with the certainty of the answer that determine it."""
    try:
        names = list(find(result.ANALYSIS).quantities)
    except InputError:
        return "", []
    prefix = result.ANALYSIS.partition("-")[0]
    for name in sorted(names, key=lambda name: not name.startswith(prefix)):
        statements = [e for e in result.evidence if e.quantity == name and e.certainty is result.certainty]
        if statements and settle(statements)[name].value is not None:
            strong = strongest(statements)
            equalities = [e for e in strong if e.relation == "="] or strong
            return name, [
                (RELATION_WORDS[e.relation], shorten(e.value, 60), f"{e.witness}: {e.how}")
                for e in equalities[:2]
            ]
    return "", []


def _theorems(result: Result) -> list[str]:
    """Return the theorems used in the evidence for the first line of the answer."""
    used = (e for e in result.evidence if e.quantity in result.headline and e.certainty is Certainty.THEOREM)
    return list(dict.fromkeys(str(e.detail["theorem"]) for e in used if "theorem" in e.detail))


def _sources(result: Result) -> list[tuple[str, str]]:
    """Return sentences that compare the answer with a formula or a theorem of the literature, and their BibTeX keys."""
    sources = []
    formula = getattr(result, "formula", None)
    theorem = getattr(result, "theorem", None)
    if formula is not None and formula.value is not None:
        verdict = "agrees" if formula.agrees else f"gives {formula.value}, which does not agree"
        comparison = f"the formula of {formula.citation.partition(';')[0]} {verdict}"
        sources.append((comparison, _keys(_ARXIV.findall(formula.citation))))
    if theorem is not None and theorem.applies and theorem.agrees is not None:
        verdict = "agrees" if theorem.agrees else "as printed does not hold here"
        sources.append((f"{theorem.name} {verdict}", _keys([_ATTENTION])))
    return sources


def _keys(papers: list[str]) -> str:
    return ",".join(key for key, entry in _entries().items() if any(paper in entry for paper in papers))


@cache
def _entries() -> dict[str, str]:
    return {match[1]: match[0] for match in _ENTRY.finditer(asset("references.bib"))}
