"""Report: any record as an explanation for a human, in Markdown or LaTeX. Reads records, never calls the engine.

What was asked, what was found, what each number rests on, and the Macaulay2 script that asked it, where the record has its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from m2bridge.boxes import WORDS
from m2bridge.claims.ledger import Ledger
from m2bridge.errors import InputError
from m2bridge.questions.custom_template import TemplateValues
from m2bridge.report.cite import title_of
from m2bridge.report.ledger import ledger_markdown
from m2bridge.report.templates import written
from m2bridge.results import RELATION_WORDS, Certainty, Result, altered
from m2bridge.views import cut

Format = Literal["markdown", "latex"]
_LONGEST = 120
_AGREEMENT = {
    True: "Independent witnesses agree.",
    False: "**Independent witnesses contradict each other: trust nothing below.**",
    None: "No quantity has two independent witnesses.",
}


def explain(result: Result, *, form: Format = "markdown") -> str:
    """The explanation of one record."""
    if isinstance(result, Ledger):
        if form == "latex":
            raise InputError("a ledger is explained in Markdown; leave --latex out")
        return ledger_markdown(result)
    wrong = altered(result)
    script = next((used.text.rstrip() for used in result.scripts if used.text is not None), None)
    return written(
        "explain.md" if form == "markdown" else "explain.tex",
        title=f"{result.ANALYSIS}: {cut(_subject(result), _LONGEST)}",
        sections=[("What was found", [wrong])] if wrong else list(_sections(result)),
        script=None if wrong else script,
    )


def _subject(result: Result) -> str:
    """What stands in the heading: the spec, unless the record has a title of its own or the spec is a whole program."""
    named = isinstance(getattr(result, "title", None), str) or result.model.startswith("program:")
    return title_of(result) if named else result.model


def _sections(result: Result) -> Iterator[tuple[str, list[str]]]:
    yield "What was asked", _question(result)
    yield "What was found", _findings(result)
    grounds = [
        f"{item.quantity} {RELATION_WORDS[item.relation]} {cut(item.value, _LONGEST)}: {item.witness}, {item.how} "
        f"({item.certainty.value})."
        for item in result.evidence
        if item.value is not None
    ]
    yield "What it rests on", grounds or ["No second witness was computed: on Macaulay2 alone."]
    if certificate := getattr(result, "certificate", None):
        several = [certificate] if isinstance(certificate, Mapping) else certificate
        yield "The certificate", list(dict.fromkeys(line for c in several for line in _certificate(c)))
    if isinstance(result, TemplateValues):
        yield "How to repeat it", result.repeated()
    elif result.scripts and all(used.text is None for used in result.scripts):
        ran = ", ".join(f"{used.name} (sha256 {used.sha256[:12]})" for used in result.scripts)
        yield "In Macaulay2", [f"Scripts that ran: {ran}. `--save DIRECTORY` leaves them beside the record."]


def _question(result: Result) -> list[str]:
    options = [f"{name} = {cut(value, _LONGEST)}" for name, value in result.options.items()]
    lines = [
        f"The question `{result.ANALYSIS}` about {title_of(result)}.",
        "; ".join([f"Seed {result.seed}", *options]) + ".",
    ]
    if result.engine is not None:
        lines.append(f"Macaulay2 {result.engine.version}.")
    if result.migrated_from is not None:
        lines.append(
            f"The record is of schema version {result.migrated_from}: what means something else since is left out. Ask again."
        )
    return lines


def _findings(result: Result) -> list[str]:
    view = result.view()
    lines = view.sentences()
    if not isinstance(result, TemplateValues):
        means = f": {WORDS[result.sure]}" if result.sure in WORDS else ""
        lines += [f"As a whole this is {result.sure}{means}.", _AGREEMENT[result.agreement]]
        if result.certainty is not Certainty.PROVED:
            lines.append(f"To prove it: {view.to_prove}.")
    return lines if result.limit is None else [*lines, f"A limit was reached: {result.limit}."]


def _certificate(certificate: Any) -> list[str]:
    if certificate.get("version") != 2:
        return [
            "It is of format 1, which this version does not read; compute the answer again to have one of format 2."
        ]
    statement = certificate["statement"]
    if statement["kind"] != "dimension":
        return [
            f"A statement of the kind `{statement['kind']}`; `m2bridge check RECORD` verifies it with a separate program."
        ]
    lower, upper = certificate["lower"], certificate["upper"]
    value = statement["dimension"]
    over = f", modulo {lower['prime']}" if lower.get("prime") else ""
    return [
        f"At least {value}: a minor of the Jacobian at a recorded point is not zero ({lower['kind']}{over}).",
        f"At most {value}: {upper['kind']}.",
        "It holds the network as a program; `m2bridge check RECORD` verifies both bounds with a separate program.",
    ]
