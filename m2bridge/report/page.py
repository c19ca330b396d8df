"""Report: write many records as one self-contained HTML page, which is readable without scripts.

Every text of a record is escaped by the template or by :mod:`m2bridge.boxes`; the content security policy denies all requests.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from typing import Any

from m2bridge import boxes
from m2bridge.certainty import Certainty
from m2bridge.errors import M2BridgeError
from m2bridge.evidence import RELATION_SIGNS, by_quantity, strongest
from m2bridge.questions import find, sentences
from m2bridge.report.cite import bibliography, sentence, title_of
from m2bridge.report.templates import asset, written
from m2bridge.results import Result, whole_number
from m2bridge.views import shorten

_AGREEMENT = {True: "agree", False: "disagree", None: "one"}
_MOST_TABLE_COLUMNS = 3  # quantities beside the answer
_LONGEST_TABLE_VALUE = 160  # characters of a cell
_MANY = 1_000
"""With more records than this the page omits tables and LaTeX sentences, so that it opens within seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEntry:
    """One record of the page: its name, the result and the version that computed it, or the reason why there is no result.

    `unknown` means that the record belongs to a question of another package; the record itself may be correct.
    """

    name: str
    result: Result | None = None
    version: str = ""
    trouble: str = ""
    damaged: bool = False
    unknown: bool = False


Answered = tuple[PageEntry, Result]
"""An entry and its result."""


def page(entries: Iterable[PageEntry], *, title: str) -> str:
    """Return the page."""
    listed = list(entries)
    answered = [(entry, entry.result) for entry in listed if entry.result is not None]
    answered.sort(key=lambda pair: (pair[1].ANALYSIS, len(pair[1].model), pair[1].model))
    results = [result for _, result in answered]
    script = asset("page.js")
    return written(
        "page.html",
        title=title,
        brief=len(answered) > _MANY,
        count=len(listed),
        style=asset("page.css"),
        script=script,
        script_hash=base64.b64encode(sha256(script.encode()).digest()).decode(),
        versions=_versions(answered),
        tally=_tally(results, listed),
        damaged=[(entry.name, entry.trouble) for entry in listed if entry.damaged],
        unanswered=[(e.name, e.trouble) for e in listed if not e.damaged and e.result is None],
        groups=_groups(answered),
        words=boxes.WORDS,
        scripts=_scripts(results),
        bibliography=_bibliography(results),
    )


def _tally(results: Sequence[Result], listed: Sequence[PageEntry]) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter(dict.fromkeys(Certainty, 0))  # strongest first
    counts.update(result.sure for result in results)
    counts["witnesses disagree"] = sum(result.agreement is False for result in results)
    counts["stopped by a limit"] = sum(result.limit is not None for result in results)
    counts["without an answer"] = sum(entry.result is None and not entry.damaged for entry in listed)
    counts["damaged"] = sum(entry.damaged for entry in listed)
    return [(word, number) for word, number in counts.items() if number]


def _versions(answered: Sequence[Answered]) -> list[str]:
    versions = sorted({entry.version for entry, _ in answered if entry.version})
    engines = sorted({result.macaulay2 for _, result in answered if result.macaulay2})
    return [f"m2bridge {', '.join(versions)}"] * bool(versions) + [f"Macaulay2 {', '.join(engines)}"] * bool(
        engines
    )


def _groups(answered: Sequence[Answered]) -> list[dict[str, Any]]:
    """Return one table per question; its columns are the reported quantities that are integers."""
    descriptions = sentences()
    groups = []
    for name, group in groupby(enumerate(answered, 1), key=lambda numbered: numbered[1][1].ANALYSIS):
        members = list(group)
        columns = [
            quantity
            for quantity in _quantities(name)
            if any(whole_number(result, quantity) is not None for _, (_, result) in members)
        ][:_MOST_TABLE_COLUMNS]
        rows = [
            _row(number, entry, result, columns, brief=len(answered) > _MANY)
            for number, (entry, result) in members
        ]
        labels = [column.replace("_", " ") for column in columns]
        groups.append({"name": name, "asks": descriptions.get(name, ""), "columns": labels, "rows": rows})
    return groups


def _quantities(question: str) -> Mapping[str, str]:
    """Return the declared quantities of a question; empty for the results of other commands."""
    return find(question).quantities if question in sentences() else {}


def _row(
    number: int, entry: PageEntry, result: Result, columns: Sequence[str], *, brief: bool
) -> dict[str, Any]:
    view = result.view()
    options = "".join(f"{name} {shorten(value, 60)}; " for name, value in result.options.items())
    engine = f"Macaulay2 {result.macaulay2 or 'not used'}"
    limit = "" if result.limit is None else f" A limit was reached: {result.limit}."
    values = [whole_number(result, column) for column in columns]
    return {
        "number": number,
        "model": _called(result),
        "answer": boxes.typeset(shorten(view.answer, _LONGEST_TABLE_VALUE)),
        "certainty": result.sure,
        "agreement": _AGREEMENT[result.agreement],
        "cells": ["" if value is None else str(value) for value in values],
        "seed": result.seed,
        "seconds": f"{result.seconds:.2f}",
        "body": boxes.head(view.answer, result.sure, result.agreement)
        + boxes.body(replace(view, tables=()) if brief else view),
        "evidence": _evidence(result),
        "ground": f"{entry.name}: seed {result.seed}; {options}m2bridge {entry.version}; {engine}.{limit}",
        "scripts": [(used.name, used.sha256, used.text is not None) for used in result.scripts[: 1 if brief else None]],
        "sentence": "" if brief else _sentence(result, entry.version),
    }  # fmt: skip


def _called(result: Result) -> str:
    """Return the spec of the model where it is short and the model has no name, else its title."""
    if len(result.model) <= _LONGEST_TABLE_VALUE // 2 and result.name is None:
        return result.model
    return shorten(title_of(result), _LONGEST_TABLE_VALUE)


def _evidence(result: Result) -> list[tuple[str, str, str, str]]:
    """Return the strongest statements about each declared quantity, or all statements if none is declared."""
    reported = _quantities(result.ANALYSIS)
    statements = by_quantity(e for e in result.evidence if e.quantity in reported or not reported)
    return [
        (name, f"{RELATION_SIGNS[e.relation]} {shorten(e.value, 60)}", f"{e.witness}: {e.method}", e.word)
        for name, items in statements.items()
        for e in strongest(items)
    ]  # fmt: skip


def _sentence(result: Result, version: str) -> str:
    """Return the LaTeX sentence of a record, or an empty string if it cannot be cited."""
    try:
        return sentence(result, version=version)
    except M2BridgeError:
        return ""


def _scripts(results: Sequence[Result]) -> list[tuple[str, str, str]]:
    scripts = {
        used.sha256: (used.sha256, used.name, used.text) for r in results for used in r.scripts if used.text
    }
    return sorted(scripts.values(), key=lambda script: script[1])


def _bibliography(results: Sequence[Result]) -> str:
    entries = dict.fromkeys(text.strip() for result in results for text in bibliography(result).split("\n\n"))
    return "\n\n".join(entries) + "\n"
