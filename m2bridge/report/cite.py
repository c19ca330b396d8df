"""Report: how to cite an answer: one LaTeX sentence that claims what the record holds and no more, and its BibTeX entries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import jinja2

from m2bridge import latex
from m2bridge._version import __version__
from m2bridge.claims.ledger import Ledger
from m2bridge.errors import DisagreementError, InputError, M2BridgeError
from m2bridge.models import parse_spec
from m2bridge.questions import find
from m2bridge.results import Evidence, Result, altered, settle, strongest
from m2bridge.views import cut

_ENTRY = re.compile(r"^@\w+\{(\w+),\n.*?^\}\n", re.MULTILINE | re.DOTALL)
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_RELATION = {"=": "is", ">=": "is at least", "<=": "is at most"}
_ATTENTION = "2408.17221"
"""The paper whose theorems are compared with what was computed."""
_LONGEST = 160


def sentence(result: Result, *, version: str = __version__, verified: bool = False) -> str:
    """One sentence for a paper.

    `version` is that of the m2bridge which computed the record; `verified`: whether the checker has accepted its certificate.

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
    if result.migrated_from is not None:
        raise InputError(
            "the record is of an older schema, where words meant other things: ask the question again"
        )
    wrong = altered(result)
    if wrong is not None:
        raise InputError(wrong)
    quantity, grounds = _grounds(result)
    values: dict[str, Any] = {
        "title": cut(title_of(result), _LONGEST),
        "spec": result.model if len(result.model) <= _LONGEST // 2 else None,
        "place": _place(result),
        "version": version,
        "engine": result.engine.version if result.engine and result.scripts else None,
        "answer": cut(result.view().answer, _LONGEST),
        "certainty": result.certainty.value,
        "limit": result.limit,
        "quantity": quantity,
        "grounds": grounds,
        "agreement": result.agreement,
        "verified": verified,
        "sources": _sources(result),
        "seed": result.seed,
    }
    return " ".join(_template().render(values).split()) + "\n"


def bibliography(result: Result, *, version: str = __version__) -> str:
    """The entries that :func:`sentence` names: m2bridge, Macaulay2 where it was asked, and the papers."""
    engine = result.engine.version if result.engine and result.scripts else None
    keys = {"m2bridge", *(("macaulay2",) if engine else ())}
    keys |= {key for _, named in _sources(result) for key in named.split(",") if key}
    text = "\n".join(entry for key, entry in _entries().items() if key in keys)
    return text.replace("@VERSION@", version).replace("@MACAULAY2@", str(engine))


def title_of(result: Result) -> str:
    """What the record is about, for people."""
    own = getattr(result, "title", None)
    if isinstance(own, str):
        return own
    try:
        return parse_spec(result.model).title
    except M2BridgeError:
        return result.model


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
        if settle(said).get(name, None) is None or settle(said)[name].value is None:
            continue
        found = strongest(said)
        exact = [e for e in found if e.relation == "="] or found
        return name, [(_RELATION[e.relation], cut(e.value, 60), _method(e)) for e in exact[:2]]
    return "", []


def _method(said: Evidence) -> str:
    over = f" over F_{said.prime}" if said.prime and f"F_{said.prime}" not in said.method else ""
    return f"{said.witness}: {said.method}{over}"


def _sources(result: Result) -> list[tuple[str, str]]:
    """Sentences about the literature, with the keys of its entries: a formula, or a theorem, beside what was computed."""
    found = []
    formula, theorem = getattr(result, "formula", None), getattr(result, "theorem", None)
    if formula is not None and formula.value is not None:
        verdict = "agrees" if formula.agrees else f"says {formula.value}, which does not agree"
        found.append(
            (
                f"the formula of {formula.citation.partition(';')[0]} {verdict}",
                _keys(_ARXIV.findall(formula.citation)),
            )
        )
    if theorem is not None and theorem.applies and theorem.agrees is not None:
        verdict = "agrees" if theorem.agrees else "as printed does not hold here"
        found.append((f"{theorem.name} {verdict}", _keys([_ATTENTION])))
    return found


def _keys(papers: list[str]) -> str:
    return ",".join(key for key, entry in _entries().items() if any(paper in entry for paper in papers))


@cache
def _entries() -> dict[str, str]:
    text = files("m2bridge").joinpath("data/report/references.bib").read_text(encoding="utf-8")
    return {match[1]: match[0] for match in _ENTRY.finditer(text)}


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        block_start_string="<%", block_end_string="%>", variable_start_string="<<", variable_end_string=">>",
        comment_start_string="<#", comment_end_string="#>", undefined=jinja2.StrictUndefined, autoescape=False,
    )  # fmt: skip
    environment.globals["tex"] = latex.escaped
    text = files("m2bridge").joinpath("data/report/cite.tex.j2").read_text(encoding="utf-8")
    return environment.from_string(text)
