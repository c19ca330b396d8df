"""Format a result as an HTML box for notebooks and reports, without scripts or external resources.

All text is escaped. Polynomials are converted to MathML, which browsers display without help; other text is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from m2bridge.views import Rows, View, shorten

_TOKEN = re.compile(
    r"""\s*(?: (?P<sign>[-+*(=])
    | (?: (?P<above>\d+)/(?P<below>\d+) | (?P<number>\d+) | (?P<name>[A-Za-z]+)_?(?P<index>\d+(?:_\d+)*)? | (?P<close>\)) )
      (?: \s*\^\s*(?P<power>\d+) )? )""",
    re.VERBOSE,
)
_LONGEST_ROW = 4000
"""Characters of a value in a table of two columns."""
_CELL = 400
"""Characters of a title, or of a cell of a table with a heading."""
_LONG = 24
"""A formula with more symbols can be broken into several lines."""
_BETWEEN_TERMS = ("<mo>+</mo>", "<mo>\N{MINUS SIGN}</mo>", "<mo>=</mo>")
WORDS = {
    "proved": "holds over QQ (or RR); the record contains a certificate",
    "theorem": "follows from exact computations and a cited theorem whose hypotheses were checked",
    "computed": "computed exactly over QQ, without a certificate of all of it",
    "probable": "exact over a finite field, or at random points",
    "numeric": "floating point, with a gap in the singular values",
    "undecided": "nothing was decided",
}
"""The meaning of each level of certainty."""

STYLE = """
.m2b{font:15px/1.5 system-ui,sans-serif;border:1px solid #8885;border-radius:8px;padding:.7em 1em;max-width:60em;overflow-x:auto}
.m2b .answer{font-size:1.15em;font-weight:650;margin-right:.6em}.m2b .ground{opacity:.75;margin:.1em 0 .5em}
.m2b .sure{border-radius:1em;padding:.1em .65em;font-size:.85em;color:#fff;background:#57606a;white-space:nowrap}
.m2b .proved{background:#00684a}.m2b .theorem{background:#2f6f4f}.m2b .computed{background:#456b2e}
.m2b .probable{background:#8a5a00}.m2b .numeric{background:#0b5c8a}
.m2b .disagree{background:#b3123b}
.m2b table{border-collapse:collapse;margin:.4em 0;font-size:.95em}.m2b caption{text-align:left;font-weight:600}
.m2b.m2b th,.m2b.m2b td{text-align:left;padding:.12em .9em .12em 0;vertical-align:top;border:0;background:none}
.m2b.m2b tr{background:none}.m2b.m2b td.n{text-align:right;font-variant-numeric:tabular-nums}
.m2b .rows tr+tr{border-top:1px solid #8883}
.m2b math{font-size:1.1em}
.m2b p{margin:.3em 0}
"""


def box(view: View, *, certainty: str, agreement: bool | None, ground: str, title: str) -> str:
    """Format an answer as a box: the answer, its certainty and the data of the run, then the facts and tables."""
    elements = [f"<div class='m2b'><style>{STYLE}</style>", head(view.answer, certainty, agreement)]
    elements.append(f"<p class='ground'>{escape(shorten(title, 90))}; {escape(ground)}</p>")
    return "".join([*elements, body(view), "</div>"])


def card(title: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Format an object other than an answer as a box: its title and its facts."""
    name = f"<p><span class='answer'>{escape(shorten(title, _CELL))}</span></p>"
    return f"<div class='m2b'><style>{STYLE}</style>{name}{facts(pairs)}</div>"


def head(answer: str, certainty: str, agreement: bool | None) -> str:
    """Format the first line: the answer and its certainty."""
    badge = f"<span class='sure {certainty.replace(' ', '-')}' title='{WORDS.get(certainty, '')}'>{certainty}</span>"
    if agreement is False:
        badge = "<span class='sure disagree'>witnesses disagree</span>"
    return f"<p><span class='answer'>{typeset(answer)}</span>{badge}</p>"


def body(view: View) -> str:
    """Format the facts, tables and notes of a view."""
    elements = [facts(view.facts)] if view.facts else []
    elements += [table(rows) for rows in view.tables]
    return "".join([*elements, *(f"<p>{typeset(note)}</p>" for note in view.notes)])


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Format pairs of name and text in two columns. A row with an empty name continues the row above."""
    cells = (
        f"<tr><th scope='row'>{escape(name)}</th><td>{typeset(shorten(text, _LONGEST_ROW))}</td></tr>"
        for name, text in pairs
    )
    return f"<table>{''.join(cells)}</table>"


def table(rows: Rows) -> str:
    """Format a table with its title; columns of numbers are aligned to the right."""
    marks = [" class=n" if rows.has_numbers(column) else "" for column in range(len(rows.columns))]
    lines = ["".join(f"<th scope='col'>{escape(name)}</th>" for name in rows.columns)]
    for row in rows.cells:
        cells = zip(marks, row, strict=True)
        lines.append("".join(f"<td{mark}>{typeset(shorten(cell, _CELL))}</td>" for mark, cell in cells))
    title = f"<caption>{escape(rows.title)}</caption>" if rows.title else ""
    return f"<table class='rows'>{title}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def typeset(text: str) -> str:
    """Escape a text and mark its code; convert it, or the text after its last colon, to MathML if it is a list of polynomials."""
    before, colon, after = text.rpartition(": ")
    items = after.split(", ") if re.search(r"[\^*]", after) else []
    formulas = [_mathml(item) for item in items]
    if not any(formulas) or not all(formulas):
        return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
    return f"{escape(before + colon)}{', '.join(map(str, formulas))}"


def _mathml(text: str) -> str | None:
    """Convert a polynomial or an equation between polynomials to MathML; return None for any other text.

    >>> _mathml("z0^2 - 3*x")
    '<math><msubsup><mi>z</mi><mn>0</mn><mn>2</mn></msubsup><mo>−</mo><mn>3</mn><mi>x</mi></math>'
    >>> _mathml("two words") is None
    True
    """
    text = text.strip()
    elements: list[str] = []
    position = 0
    after_operand = False
    is_complete = False
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            return None
        is_operand = token["sign"] is None and token["close"] is None
        if is_operand and after_operand:  # two operands without an operator, as in a sentence
            return None
        elements.append(_element(token))
        position = token.end()
        after_operand = is_operand
        is_complete = token["sign"] is None
    if not is_complete:  # the text is empty or ends with an operator
        return None
    if len(elements) > _LONG and "(" not in text:
        return _breakable(elements)
    return f"<math>{''.join(elements)}</math>"


def _element(token: re.Match[str]) -> str:
    """Return the MathML of an operator, or of an operand with its index and its power."""
    if sign := token["sign"]:
        return "" if sign == "*" else f"<mo>{sign.replace('-', chr(0x2212))}</mo>"
    index = f"<mn>{token['index'].replace('_', ',')}</mn>" if token["index"] else ""
    power = f"<mn>{token['power']}</mn>" if token["power"] else ""
    if token["name"]:
        base = f"<mi>{token['name']}</mi>"
    elif token["above"]:
        base = f"<mfrac><mn>{token['above']}</mn><mn>{token['below']}</mn></mfrac>"
    else:
        base = "<mo>)</mo>" if token["close"] else f"<mn>{token['number']}</mn>"
    script = "sub" * bool(index) + "sup" * bool(power)
    return f"<m{script}>{base}{index}{power}</m{script}>" if script else base


def _breakable(elements: list[str]) -> str:
    """Write a long sum as one formula per term, because browsers break lines between formulas but not within one."""
    terms: list[str] = []
    for element in elements:
        if element in _BETWEEN_TERMS and terms:
            terms.append(element.replace("<mo>", "<mo form='infix'>"))
        else:
            terms[-1:] = ["".join(terms[-1:]) + element]
    return "<wbr>".join(f"<math>{term}</math>" for term in terms)
