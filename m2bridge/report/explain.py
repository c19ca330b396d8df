"""Report: any record as an explanation for a human, in Markdown or LaTeX. Reads records, never calls the engine.

What was asked, what was found, what each number rests on, and a Macaulay2 script that asks the same without m2bridge.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

from m2bridge.claims.ledger import Ledger
from m2bridge.errors import InputError, M2BridgeError
from m2bridge.models import parse_spec
from m2bridge.questions.custom_template import TemplateValues
from m2bridge.questions.dimension import Dimension
from m2bridge.questions.ideal import IdealSummary, script_of
from m2bridge.questions.singular_locus import SingularLocus
from m2bridge.questions.singular_locus.orbits import Orbit
from m2bridge.report import own
from m2bridge.report.ledger import ledger_markdown
from m2bridge.results import Certainty, Result, settle

Format = Literal["markdown", "latex"]
_SURE = {
    Certainty.PROVED: "proved: it holds over QQ (or RR) by an exact argument",
    Certainty.PROBABLE: "probable: exact over a finite field, or at random points",
    Certainty.NUMERIC: "numeric: floating point with a visible gap",
}
_RELATION = {"=": "is", ">=": "is at least", "<=": "is at most"}


def explain(result: Result, *, form: Format = "markdown") -> str:
    """The explanation of one record."""
    if isinstance(result, Ledger):
        if form == "latex":
            raise InputError("a ledger is explained in Markdown; leave --latex out")
        return ledger_markdown(result)
    title = f"{result.ANALYSIS}: {_short(result.model)}"
    if isinstance(result, IdealSummary):
        title = own.ideal_title(result)
    elif isinstance(result, TemplateValues):
        title = f"template: {result.template}"
    sections = [
        ("What was asked", _question(result)),
        ("What was found", _findings(result)),
        ("What it rests on", _grounds(result)),
    ]
    if (certificate := getattr(result, "certificate", None)) is not None:
        sections.append(("The certificate", _certificate(certificate)))
    script = reproducing_script(result)
    if isinstance(result, TemplateValues):
        sections.append(("How to repeat it", own.template_repeated(result)))
    elif script is None and result.scripts:
        sections.append(("In Macaulay2", _unprinted(result)))
    write = _markdown if form == "markdown" else _latex
    return write(title, sections, script)


def reproducing_script(result: Result) -> str | None:
    """The Macaulay2 script behind the record, self-contained; None where the analysis has none or it asks something else.

    A record names the scripts that ran by their sha256. A fiber through given weights, for one, ran another script than the
    fiber through random ones, and that other question is not passed off as this one.
    """
    try:
        script = _script(result)
    except (M2BridgeError, TypeError, ValueError):
        return None
    if script is None:
        return None
    ran = {used.sha256 for used in result.scripts}
    text: str = script.text
    return text if not ran or script.sha256 in ran else None


def _script(result: Result) -> Any:
    """The script of the question that the record answers, rendered again; None where the analysis has none."""
    if isinstance(result, IdealSummary):
        return script_of(result)
    module = importlib.import_module(type(result).__module__.rpartition(".")[0])
    maker = getattr(module, "script", None)
    if maker is None:
        return None
    chosen = {"prime": result.options["prime"]} if "prime" in result.options else {}
    if "field" in result.options:
        field = str(result.options["field"])
        chosen = {"prime": 0 if field == "QQ" else int(field.removeprefix("F_"))}
    return maker(parse_spec(result.model), seed=result.seed, **chosen)


def _unprinted(result: Result) -> list[str]:
    ran = ", ".join(f"{used.name} (sha256 {used.sha256[:12]})" for used in result.scripts)
    return [f"Scripts that ran: {ran}. Ask again with `--keep DIRECTORY` to have them as files."]


def _question(result: Result) -> list[str]:
    if isinstance(result, IdealSummary):
        lines = own.ideal_question(result)
    elif isinstance(result, TemplateValues):
        lines = own.template_question(result)
    else:
        options = [f"{name} = {value}" for name, value in result.options.items()]
        lines = [
            f"The question `{result.ANALYSIS}` about {parse_spec(result.model).title}.",
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
    writer: Callable[[Any], list[str]] = _WRITERS.get(type(result), _plain_findings)
    agreement = {
        True: "Independent witnesses agree.",
        False: "**Independent witnesses contradict each other: trust nothing below.**",
        None: "No quantity has two independent witnesses.",
    }
    lines = writer(result)
    if not isinstance(result, TemplateValues):
        lines += [f"As a whole this is {_SURE[result.certainty]}.", agreement[result.agreement]]
    return lines if result.limit is None else [*lines, f"A limit was reached: {result.limit}."]


def _plain_findings(result: Result) -> list[str]:
    return [
        f"{name} = {item.value}" for name, item in settle(result.evidence).items() if item.value is not None
    ]


def _dimension_findings(result: Dimension) -> list[str]:
    proved = (result.certificate or {}).get("statement", {}).get("dimension", result.image_dim)
    if proved != result.image_dim:
        return [
            f"**The record says {result.image_dim}, its own certificate {proved}: it was altered. Trust nothing below.**"
        ]
    return [result.statement, f"The generic fiber has dimension {result.generic_fiber_dim}."]


def _singular_findings(result: SingularLocus) -> list[str]:
    lines = [f"The neuromanifold has dimension {result.image_dim} and spans {result.span_dim} dimensions."]
    below = {e.quantity: e.method for e in result.evidence if e.witness == "curves" and e.relation == ">="}
    for s in result.strata:
        if s.verdict == "undecided":
            continue
        why = (
            f"the tangent space has at least {s.tangent_lower} > {result.image_dim} dimensions "
            f"({below.get(f'tangent {Orbit(s.rank_a, s.rank_v, s.meet)}', 'curves')})"
            if s.verdict == "singular"
            else f"the tangent space has at most {s.tangent_upper} = {result.image_dim} dimensions"
        )
        point = ", ".join(
            f"{name} = {[list(row) for row in rows]}" for name, rows in s.representative.items()
        )
        lines.append(
            f"rk A = {s.rank_a}, rk V = {s.rank_v}, meet {s.meet}: {s.verdict} ({s.certainty.value}), because {why}, at {point}."
        )
    if result.theorem.witness is not None:
        lines.append(f"{result.theorem.name} as printed fails: {result.theorem.witness['reason']}.")
    return lines


_WRITERS: dict[type, Callable[[Any], list[str]]] = {
    Dimension: _dimension_findings,
    SingularLocus: _singular_findings,
    IdealSummary: own.ideal_findings,
    TemplateValues: own.template_findings,
}


def _grounds(result: Result) -> list[str]:
    if isinstance(result, TemplateValues):
        return own.template_grounds(result)
    lines = []
    for item in result.evidence:
        if item.value is None:
            continue
        over = f" over F_{item.prime}" if item.prime else ""
        lines.append(
            f"{item.quantity} {_RELATION[item.relation]} {_short(item.value)}: {item.witness}, {item.method}{over} "
            f"({item.certainty.value})."
        )
    if not lines and isinstance(result, IdealSummary):
        return own.ideal_grounds(result)
    return lines or ["No evidence is recorded."]


def _short(value: Any, longest: int = 120) -> str:
    text = json.dumps(value) if isinstance(value, (list, dict)) else str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _certificate(certificate: Any) -> list[str]:
    if certificate.get("version") != 2:
        return [
            "It is of format 1, which this version does not read; compute the answer again to have one of format 2."
        ]
    lower, upper = certificate["lower"], certificate["upper"]
    value = certificate["statement"].get("dimension")
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


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "…": r"\dots{}",
    "≥": r"$\ge$",
}


def _escaped(text: str) -> str:
    return "".join(
        _SPECIAL.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text.replace("**", "").replace("`", "")
    )


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
