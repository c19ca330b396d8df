"""Report: how to cite an answer: one LaTeX sentence that claims what the record holds and no more, and its BibTeX entries."""

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
from m2bridge.claims.ledger import Ledger
from m2bridge.errors import DisagreementError, InputError, M2BridgeError, visible
from m2bridge.evidence import RELATION_WORDS, settle, strongest
from m2bridge.families import parse_spec
from m2bridge.questions import find
from m2bridge.questions.custom_template import TemplateValues
from m2bridge.report.templates import asset, written
from m2bridge.results import Result, altered
from m2bridge.views import cut

_ENTRY = re.compile(r"^@\w+\{(\w+),\n.*?^\}\n", re.MULTILINE | re.DOTALL)
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_ATTENTION = "2408.17221"
"""The paper whose theorems are compared with what was computed."""
_LONGEST = 160


def sentence(result: Result, *, version: str = __version__, verified: bool = False, shown: str = "") -> str:
    """One sentence for a paper.

    `version` is that of the m2bridge which computed the record; `verified`: whether the checker has verified all that the answer
    says; `shown`: what it has verified, in a few words.

    Raises
    ------
    DisagreementError
        Witnesses contradict each other: there is nothing to cite.
    """
    if result.agreement is False:
        raise DisagreementError(
            "the witnesses of this record contradict each other: there is nothing to cite",
            conflicts=result.conflicts,
        )
    if isinstance(result, Ledger):
        raise InputError("a ledger is no single answer; cite a record of a question, or m2bridge itself")
    if wrong := altered(result):
        raise InputError(wrong)
    quantity, grounds = _grounds(result)
    text = written(
        "cite.tex",
        title=cut(title_of(result), _LONGEST),
        spec=result.model if len(result.model) <= _LONGEST // 2 else None,
        place=_place(result),
        version=version,
        engine=result.macaulay2,
        answer=cut(result.view().answer, _LONGEST),
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


def bibliography(result: Result, *, version: str = __version__) -> str:
    """The entries that :func:`sentence` names: m2bridge, Macaulay2 where it was asked, and the papers."""
    keys = {"m2bridge", *(["macaulay2"] if result.macaulay2 else [])}
    keys |= {key for _, named in _sources(result) for key in named.split(",") if key}
    text = "\n".join(entry for key, entry in _entries().items() if key in keys)
    return text.replace("@VERSION@", visible(version)).replace("@MACAULAY2@", visible(str(result.macaulay2)))


def title_of(result: Result) -> str:
    """What the record is about, for people."""
    own = getattr(result, "title", None)
    if isinstance(own, str):
        return own
    try:
        title = parse_spec(result.model).title
    except M2BridgeError:
        return result.name or result.model
    if result.name is not None and title.startswith(
        "network,"
    ):  # a user's network, of which the spec holds the program only
        return result.name + title.removeprefix("network")
    return title


def _place(result: Result) -> str:
    """What the answer is about besides the model: the loss, the point or the weights, by a hash where they are long."""
    if isinstance(loss := getattr(result, "loss", None), str):
        return f"with the loss ``{latex.escaped(cut(loss, _LONGEST))}''"
    point = getattr(result, "point", None)
    coordinates = getattr(point, "coordinates", point)
    if coordinates is not None:
        return f"at the point {_written([str(x) for x in coordinates])}"
    given = [getattr(result, name, None) for name in ("at", "first", "second")]
    weights = [_written(at["weights"]) for at in given if at is not None and at.get("weights")]
    return f"at the weights {' and '.join(weights)}" if weights else ""


def _written(value: Any) -> str:
    """Numbers as LaTeX, or where they are many, the hash by which they are told from others."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{name} = {_rows(rows)}" for name, rows in value.items())
    else:
        text = f"({', '.join(value)})"
    if len(text) <= _LONGEST:
        return latex.escaped(text)
    digest = sha256(json.dumps(value, sort_keys=True, default=list).encode()).hexdigest()
    return f"that the record holds (sha256 \\texttt{{{digest[:16]}}})"


def _rows(value: Any) -> str:
    return f"[{', '.join(map(_rows, value))}]" if isinstance(value, (list, tuple)) else str(value)


def _grounds(result: Result) -> tuple[str, list[tuple[str, str, str]]]:
    """A quantity that the question is about, and the statements of the answer's own certainty that pin its value."""
    try:
        names = list(find(result.ANALYSIS).quantities)
    except InputError:
        return "", []
    own = result.ANALYSIS.partition("-")[0]
    for name in sorted(names, key=lambda name: not name.startswith(own)):
        said = [e for e in result.evidence if e.quantity == name and e.certainty is result.certainty]
        if said and settle(said)[name].value is not None:
            found = strongest(said)
            pinned = [e for e in found if e.relation == "="] or found
            return name, [
                (RELATION_WORDS[e.relation], cut(e.value, 60), f"{e.witness}: {e.how}") for e in pinned[:2]
            ]
    return "", []


def _theorems(result: Result) -> list[str]:
    """The theorems that evidence about the first line of the answer names."""
    own = (e for e in result.evidence if e.quantity in result.headline and e.certainty is Certainty.THEOREM)
    return list(dict.fromkeys(str(e.detail["theorem"]) for e in own if "theorem" in e.detail))


def _sources(result: Result) -> list[tuple[str, str]]:
    """Sentences about the literature, with the keys of its entries: a formula, or a theorem, beside what was computed."""
    found = []
    formula, theorem = getattr(result, "formula", None), getattr(result, "theorem", None)
    if formula is not None and formula.value is not None:
        verdict = "agrees" if formula.agrees else f"says {formula.value}, which does not agree"
        said = f"the formula of {formula.citation.partition(';')[0]} {verdict}"
        found.append((said, _keys(_ARXIV.findall(formula.citation))))
    if theorem is not None and theorem.applies and theorem.agrees is not None:
        verdict = "agrees" if theorem.agrees else "as printed does not hold here"
        found.append((f"{theorem.name} {verdict}", _keys([_ATTENTION])))
    return found


def _keys(papers: list[str]) -> str:
    return ",".join(key for key, entry in _entries().items() if any(paper in entry for paper in papers))


@cache
def _entries() -> dict[str, str]:
    return {match[1]: match[0] for match in _ENTRY.finditer(asset("references.bib"))}
