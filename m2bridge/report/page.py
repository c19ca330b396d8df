"""Report: many records as one HTML page that needs nothing else, neither network nor, for reading, scripts.

Every text of a record is escaped by the template or by :mod:`m2bridge.boxes`; the page's policy lets no request leave it.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import jinja2

from m2bridge import boxes
from m2bridge.errors import M2BridgeError
from m2bridge.figures import orbits
from m2bridge.figures.sheets import sheet
from m2bridge.models import parse_spec
from m2bridge.questions import find, sentences
from m2bridge.questions.singular_locus.result import SingularLocus
from m2bridge.report.cite import bibliography, sentence, title_of
from m2bridge.results import Evidence, Result, strongest
from m2bridge.views import cut, known

_AGREEMENT = {True: "agree", False: "disagree", None: "one"}
_RELATION = {"=": "=", ">=": "≥", "<=": "≤"}
_MOST_SHEETS = 12
_MOST_COLUMNS = 3
_LONGEST = 160
_MANY = 1_000
"""Beyond so many records, each is told without its diagram, its tables and its LaTeX sentence: the page opens in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record as it was found: its name, the answer, the version that computed it; without an answer, why.

    `network` is what a network of the user's own is called; records hold its program only.
    """

    name: str
    result: Result | None = None
    version: str = ""
    network: str = ""
    trouble: str = ""
    damaged: bool = False


def page(entries: Iterable[Entry], *, title: str) -> str:
    """The whole page."""
    listed = list(entries)
    answered = [entry for entry in listed if entry.result is not None]
    answered.sort(
        key=lambda entry: (_result(entry).ANALYSIS, len(_result(entry).model), _result(entry).model)
    )
    results = [_result(entry) for entry in answered]
    script = _asset("page.js") + _asset("rotate.js")
    return _template().render(
        title=title,
        brief=len(answered) > _MANY,
        count=len(listed),
        style=_asset("page.css"),
        script=script,
        script_hash=base64.b64encode(sha256(script.encode()).digest()).decode(),
        versions=_versions(answered),
        tally=_tally(results, listed),
        damaged=[(entry.name, entry.trouble) for entry in listed if entry.damaged],
        unanswered=[
            (entry.name, entry.trouble) for entry in listed if not entry.damaged and entry.result is None
        ],
        groups=_groups(answered),
        sheets=_sheets(results),
        words=boxes.WORDS,
        scripts=_scripts(results),
        bibliography=_bibliography(results),
    )


def _result(entry: Entry) -> Result:
    assert entry.result is not None
    return entry.result


def _tally(results: Sequence[Result], listed: Sequence[Entry]) -> list[tuple[str, int]]:
    found: Counter[str] = Counter(result.certainty.value for result in results)
    found["witnesses disagree"] = sum(result.agreement is False for result in results)
    found["stopped by a limit"] = sum(result.limit is not None for result in results)
    found["without an answer"] = sum(entry.result is None and not entry.damaged for entry in listed)
    found["damaged"] = sum(entry.damaged for entry in listed)
    return [(word, number) for word, number in found.items() if number]


def _versions(answered: Sequence[Entry]) -> list[str]:
    own = sorted({entry.version for entry in answered if entry.version})
    engines = sorted({r.engine.version for r in map(_result, answered) if r.engine and r.scripts})
    return [f"m2bridge {', '.join(own)}"] * bool(own) + [f"Macaulay2 {', '.join(engines)}"] * bool(engines)


def _groups(answered: Sequence[Entry]) -> list[dict[str, Any]]:
    """One table a question, its columns the whole numbers that it reports."""
    groups: dict[str, list[tuple[int, Entry]]] = {}
    for number, entry in enumerate(answered, 1):
        groups.setdefault(_result(entry).ANALYSIS, []).append((number, entry))
    asked, found = sentences(), []
    for name, members in groups.items():
        columns = [
            quantity
            for quantity in (find(name).quantities if name in asked else ())
            if any(type(getattr(_result(entry), quantity, None)) is int for _, entry in members)
        ][:_MOST_COLUMNS]
        rows = [_row(number, entry, columns, brief=len(answered) > _MANY) for number, entry in members]
        labels = [column.replace("_", " ") for column in columns]
        found.append({"name": name, "asks": asked.get(name, ""), "columns": labels, "rows": rows})
    return found


def _row(number: int, entry: Entry, columns: Sequence[str], *, brief: bool) -> dict[str, Any]:
    result = _result(entry)
    view = result.view()
    told = replace(view, tables=()) if brief else view
    picture = (
        "" if brief or not isinstance(result, SingularLocus) or not result.strata else orbits.svg(result)
    )
    options = "".join(f"{name} {cut(value, 60)}; " for name, value in result.options.items())
    engine = (
        f"Macaulay2 {result.engine.version}" if result.engine and result.scripts else "Macaulay2 not asked"
    )
    limit = "" if result.limit is None else f" A limit was reached: {result.limit}."
    return {
        "number": number,
        "model": _called(entry),
        "answer": boxes.typeset(cut(view.answer, _LONGEST)),
        "certainty": result.certainty.value,
        "agreement": _AGREEMENT[result.agreement],
        "cells": [
            "" if value is None else known(value) for value in (getattr(result, c, None) for c in columns)
        ],
        "seed": result.seed,
        "seconds": f"{result.seconds:.2f}",
        "body": boxes.head(view.answer, result.certainty.value, result.agreement) + boxes.body(told),
        "picture": picture,
        "evidence": _evidence(result),
        "ground": f"{entry.name}: seed {result.seed}; {options}m2bridge {entry.version}; {engine}.{limit}",
        "scripts": [
            (used.name, used.sha256, used.text is not None) for used in result.scripts[: 1 if brief else None]
        ],
        "sentence": "" if brief else _sentence(entry),
    }


def _called(entry: Entry) -> str:
    """What the model is called: its spec where that is short, else its title, or the name of a network of the user's own."""
    result = _result(entry)
    if len(result.model) <= _LONGEST // 2:
        return result.model
    title = title_of(result)
    if entry.network and title.startswith("network,"):
        title = entry.network + title.removeprefix("network")
    return cut(title, _LONGEST)


def _evidence(result: Result) -> list[tuple[str, str, str, str]]:
    """What the reported quantities rest on, their strongest statements; where none is declared, all statements."""
    reported = find(result.ANALYSIS).quantities if result.ANALYSIS in sentences() else {}
    by_quantity: dict[str, list[Evidence]] = {}
    for item in result.evidence:
        if item.value is not None and (item.quantity in reported or not reported):
            by_quantity.setdefault(item.quantity, []).append(item)
    return [
        (
            e.quantity,
            f"{_RELATION[e.relation]} {cut(e.value, 60)}",
            f"{e.witness}: {e.method}",
            e.certainty.value,
        )
        for items in by_quantity.values()
        for e in strongest(items)
    ]


def _sentence(entry: Entry) -> str:
    """How to cite the record; nothing where it cannot be cited."""
    try:
        return sentence(_result(entry), version=entry.version)
    except M2BridgeError:
        return ""


def _sheets(results: Sequence[Result]) -> list[str]:
    """Pictures of the first few models; a model that cannot be drawn has none."""
    found = []
    for spec in list(dict.fromkeys(result.model for result in results))[:_MOST_SHEETS]:
        try:
            model = parse_spec(spec)
            found.append(sheet(model).html(title=cut(model.title, 80)))
        except (M2BridgeError, TypeError, ValueError, ArithmeticError):
            continue
    return found


def _scripts(results: Sequence[Result]) -> list[tuple[str, str, str]]:
    known_texts = {used.sha256: (used.name, used.text) for r in results for used in r.scripts if used.text}
    return [
        (sha, name, text or "")
        for sha, (name, text) in sorted(known_texts.items(), key=lambda item: item[1][0])
    ]


def _bibliography(results: Sequence[Result]) -> str:
    entries = dict.fromkeys(text.strip() for result in results for text in bibliography(result).split("\n\n"))
    return "\n\n".join(entries) + "\n"


def _asset(name: str) -> str:
    return files("m2bridge").joinpath(f"data/report/{name}").read_text(encoding="utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(_asset("page.html.j2"))
