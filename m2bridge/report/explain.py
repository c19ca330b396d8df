"""Report: explain a record in Markdown: question, answer, evidence, certificate and Macaulay2 script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from m2bridge.boxes import WORDS
from m2bridge.certainty import Certainty
from m2bridge.evidence import RELATION_WORDS
from m2bridge.papers.ledger import Ledger
from m2bridge.questions.custom_template import TemplateValues
from m2bridge.report.cite import title_of
from m2bridge.report.ledger import ledger_markdown
from m2bridge.report.templates import written
from m2bridge.results import Result, altered
from m2bridge.views import shorten

_LONGEST_EXPLAINED_VALUE = 120
"""Characters of a spec or value in an explanation."""
_DISAGREE = "**Independent witnesses disagree: do not use this answer.**"


def explain(result: Result, *, wrong: str | None = None) -> str:
    """Return the explanation of one record; `wrong` is the reason why the record must not be used."""
    if isinstance(result, Ledger):
        return ledger_markdown(result)
    wrong = wrong or altered(result)
    final = result.final_script
    script = final.text.rstrip() if final is not None and final.text is not None else None
    return written(
        "explain.md",
        title=f"{result.ANALYSIS}: {shorten(_subject(result), _LONGEST_EXPLAINED_VALUE)}",
        sections=[("Answer", [wrong])] if wrong else list(_sections(result)),
        script=None if wrong else script,
    )


def _subject(result: Result) -> str:
    """Return the subject for the heading: the spec, or the title if the record has one or the spec is a program."""
    named = isinstance(getattr(result, "title", None), str) or result.model.startswith("program:")
    return title_of(result) if named else result.model


def _sections(result: Result) -> Iterator[tuple[str, list[str]]]:
    yield "Question", _question(result)
    yield "Answer", _findings(result)
    statements = [
        f"{item.quantity} {RELATION_WORDS[item.relation]} {shorten(item.value, _LONGEST_EXPLAINED_VALUE)}: "
        f"{item.witness}, {item.how} ({item.word})."
        for item in result.evidence
        if item.value is not None
    ]
    yield "Evidence", statements or ["None; the values were computed by Macaulay2 alone."]
    if certificate := getattr(result, "certificate", None):
        several = [certificate] if isinstance(certificate, Mapping) else certificate
        lines = [line for c in several for line in _certificate(c)]
        if result.certainty is not Certainty.PROVED:
            lines.append("It covers one part of the answer; the first line of the checker states which.")
        yield "Certificate", list(dict.fromkeys(lines))
    if isinstance(result, TemplateValues):
        yield "How to repeat it", result.repeated()
    elif result.scripts:
        with_msolve = any(used.suffix == ".ms" for used in result.scripts)
        heading = (
            "Scripts of Macaulay2 and msolve, in order" if with_msolve else "Macaulay2 scripts, in order"
        )
        yield heading, [*_steps(result)]


def _steps(result: Result) -> Iterator[str]:
    """Yield one line per script: its purpose, the emitted values, and which script is printed below."""
    final = result.final_script
    for number, used in enumerate(result.scripts, start=1):
        purpose = "" if used.text is None else _first_comment(used.text)
        emitted = ", ".join(f"{tag} = {shorten(value, 40)}" for tag, value in used.values.items())
        line = f"{number}. `{used.name}` (sha256 {used.sha256[:12]}){purpose}."
        verb = "It was run with" if used.suffix == ".ms" else "It emitted"
        line += f" {verb} {shorten(emitted, 4 * _LONGEST_EXPLAINED_VALUE)}." if emitted else ""
        yield line + (" Its values are those of the answer." if used is final else "")
    if all(used.text is None for used in result.scripts):
        yield "Their texts are not available; `--save DIRECTORY` writes them to `scripts/` beside the record."


def _first_comment(script: str) -> str:
    """Return the first line of the comment at the beginning of a script, after a colon."""
    first = script.lstrip().partition("\n")[0]
    return f": {first.removeprefix('--').strip().rstrip('.?:')}" if first.startswith("--") else ""


def _question(result: Result) -> list[str]:
    options = [
        f"{name} = {shorten(value, _LONGEST_EXPLAINED_VALUE)}" for name, value in result.options.items()
    ]
    lines = [
        f"The question `{result.ANALYSIS}` about {title_of(result)}.",
        "; ".join([f"Seed {result.seed}", *options]) + ".",
    ]
    if result.engine is not None:
        lines.append(f"Macaulay2 {result.engine.version}.")
    return lines


def _findings(result: Result) -> list[str]:
    view = result.view()
    lines = view.sentences()
    if isinstance(result, TemplateValues):
        lines.append(f"Certainty: {result.sure}; m2bridge did not check the values.")
    else:
        means = f": {WORDS[result.sure]}" if result.sure in WORDS else ""
        lines += [f"Certainty: {result.sure}{means}.", _agreement(result)]
        if not result.certainty.exact:
            lines.append(f"To prove it: {view.to_prove}.")
    return lines if result.limit is None else [*lines, f"A limit was reached: {result.limit}."]


def _agreement(result: Result) -> str:
    if result.agreement is False:
        return _DISAGREE
    words = result.agreement_words
    return f"{words[0].upper()}{words[1:]}."


def _certificate(certificate: Any) -> list[str]:
    if certificate.get("version") != 2:
        return [
            "It has format 1, which this version does not read; compute the answer again for a certificate of format 2."
        ]
    statement = certificate["statement"]
    if statement["kind"] != "dimension":
        return [
            f"Its statement is of the kind `{statement['kind']}`; `m2bridge check RECORD` verifies it with a separate program."
        ]
    lower, upper = certificate["lower"], certificate["upper"]
    value = statement["dimension"]
    over = f", modulo {lower['prime']}" if lower.get("prime") else ""
    return [
        f"At least {value}: a minor of the Jacobian at a recorded point is not zero ({lower['kind']}{over}).",
        f"At most {value}: {upper['kind']}.",
        "It contains the network as a program; `m2bridge check RECORD` verifies both bounds with a separate program.",
    ]
