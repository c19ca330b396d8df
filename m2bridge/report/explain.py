"""Report: any record as an explanation for a human, in Markdown or LaTeX. Reads records, never calls the engine.

What was asked, what was found, what each number rests on, and the Macaulay2 script that asked it, where the record has its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from m2bridge.claims.ledger import Ledger
from m2bridge.errors import InputError
from m2bridge.latex import escaped
from m2bridge.models import parse_spec
from m2bridge.questions.custom_template import TemplateValues
from m2bridge.report.ledger import ledger_markdown
from m2bridge.results import Certainty, Result, altered
from m2bridge.views import cut

Format = Literal["markdown", "latex"]
_LONGEST = 120
_SURE = {
    Certainty.PROVED: "proved: it holds over QQ (or RR) by an exact argument",
    Certainty.PROBABLE: "probable: exact over a finite field, or at random points",
    Certainty.NUMERIC: "numeric: floating point with a visible gap",
}
_AGREEMENT = {
    True: "Independent witnesses agree.",
    False: "**Independent witnesses contradict each other: trust nothing below.**",
    None: "No quantity has two independent witnesses.",
}
_RELATION = {"=": "is", ">=": "is at least", "<=": "is at most"}


def explain(result: Result, *, form: Format = "markdown") -> str:
    """The explanation of one record."""
    if isinstance(result, Ledger):
        if form == "latex":
            raise InputError("a ledger is explained in Markdown; leave --latex out")
        return ledger_markdown(result)
    if wrong := altered(result):
        write = _markdown if form == "markdown" else _latex
        return write(
            f"{result.ANALYSIS}: {cut(_subject(result), _LONGEST)}", [("What was found", [wrong])], None
        )
    sections = [
        ("What was asked", _question(result)),
        ("What was found", _findings(result)),
        ("What it rests on", _grounds(result)),
    ]
    if certificate := getattr(result, "certificate", None):
        several = [certificate] if isinstance(certificate, Mapping) else certificate
        sections.append(
            ("The certificate", list(dict.fromkeys(line for c in several for line in _certificate(c))))
        )
    if isinstance(result, TemplateValues):
        sections.append(("How to repeat it", result.repeated()))
    script = next((used.text for used in result.scripts if used.text is not None), None)
    if script is None and result.scripts and not isinstance(result, TemplateValues):
        ran = ", ".join(f"{used.name} (sha256 {used.sha256[:12]})" for used in result.scripts)
        sections.append(
            ("In Macaulay2", [f"Scripts that ran: {ran}. `--save DIRECTORY` leaves them beside the record."])
        )
    write = _markdown if form == "markdown" else _latex
    return write(f"{result.ANALYSIS}: {cut(_subject(result), _LONGEST)}", sections, script)


def _subject(result: Result) -> str:
    own = getattr(result, "title", None)
    if isinstance(own, str):
        return own
    return parse_spec(result.model).title if result.model.startswith("program:") else result.model


def _question(result: Result) -> list[str]:
    about = _subject(result) if hasattr(result, "title") else parse_spec(result.model).title
    options = [f"{name} = {cut(value, _LONGEST)}" for name, value in result.options.items()]
    lines = [
        f"The question `{result.ANALYSIS}` about {about}.",
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
    lines = result.view().sentences()
    if not isinstance(result, TemplateValues):
        lines += [f"As a whole this is {_SURE[result.certainty]}.", _AGREEMENT[result.agreement]]
    return lines if result.limit is None else [*lines, f"A limit was reached: {result.limit}."]


def _grounds(result: Result) -> list[str]:
    lines = []
    for item in result.evidence:
        if item.value is not None:
            over = f" over F_{item.prime}" if item.prime else ""
            lines.append(
                f"{item.quantity} {_RELATION[item.relation]} {cut(item.value, _LONGEST)}: {item.witness}, {item.method}{over} "
                f"({item.certainty.value})."
            )
    return lines or ["No second witness was computed: on Macaulay2 alone."]


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


def _markdown(title: str, sections: Sequence[tuple[str, list[str]]], script: str | None) -> str:
    parts = [f"# {title}"]
    for heading, lines in sections:
        parts += [f"## {heading}", "\n".join(f"- {line}" for line in lines)]
    if script is not None:
        parts += ["## In Macaulay2", "Run with `M2 --script FILE`.", f"```macaulay2\n{script.rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    return escaped(text.replace("**", "").replace("`", ""))


def _latex(title: str, sections: Sequence[tuple[str, list[str]]], script: str | None) -> str:
    parts = [
        r"\documentclass{article}",
        r"\usepackage[T1]{fontenc}",
        r"\begin{document}",
        rf"\section*{{{_escaped(title)}}}",
    ]
    for heading, lines in sections:
        items = "\n".join(rf"\item {_escaped(line)}" for line in lines)
        parts += [rf"\subsection*{{{_escaped(heading)}}}", f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}"]
    if script is not None:
        parts += [r"\subsection*{In Macaulay2}", f"\\begin{{verbatim}}\n{script.rstrip()}\n\\end{{verbatim}}"]
    return "\n".join([*parts, r"\end{document}"]) + "\n"
