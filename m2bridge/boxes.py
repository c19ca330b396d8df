"""What a person reads of an answer, as HTML: one box for notebooks and for reports, without scripts or outside resources.

Text is escaped, always. Polynomials are typeset in MathML, which browsers draw themselves; what is not one stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from m2bridge.views import Rows, View, cut

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
"""A formula with more symbols may be broken into lines."""
_BETWEEN_TERMS = ("<mo>+</mo>", "<mo>\N{MINUS SIGN}</mo>", "<mo>=</mo>")
WORDS = {
    "proved": "it holds over QQ (or RR), and the record has a certificate of it",
    "theorem": "it follows from exact computations and a named theorem whose hypotheses were checked",
    "computed": "computed exactly over QQ, without a certificate",
    "probable": "exact over a finite field, or at random points",
    "numeric": "floating point with a visible gap",
}
"""What each word of certainty means."""

STYLE = """
.m2b{font:15px/1.5 system-ui,sans-serif;border:1px solid #8885;border-radius:8px;padding:.7em 1em;max-width:60em;overflow-x:auto}
.m2b .answer{font-size:1.15em;font-weight:650;margin-right:.6em}.m2b .ground{opacity:.75;margin:.1em 0 .5em}
.m2b .sure{border-radius:1em;padding:.1em .65em;font-size:.85em;color:#fff;background:#57606a;white-space:nowrap}
.m2b .proved{background:#00684a}.m2b .theorem{background:#2f6f4f}.m2b .computed{background:#456b2e}
.m2b .probable{background:#8a5a00}.m2b .numeric{background:#0b5c8a}
.m2b .disagree{background:#b3123b}
.m2b table{border-collapse:collapse;margin:.4em 0;font-size:.95em}.m2b caption{text-align:left;font-weight:600}
.m2b th,.m2b td{text-align:left;padding:.12em .9em .12em 0;vertical-align:top;border:0;background:none}
.m2b td.n{text-align:right;font-variant-numeric:tabular-nums}.m2b .rows tr+tr{border-top:1px solid #8883}
.m2b math{font-size:1.1em}
.m2b p{margin:.3em 0}
"""


def box(view: View, *, certainty: str, agreement: bool | None, ground: str, title: str) -> str:
    """An answer as a box: the answer, how sure it is and what it was computed with first, then what was found."""
    parts = [f"<div class='m2b'><style>{STYLE}</style>", head(view.answer, certainty, agreement)]
    parts.append(f"<p class='ground'>{escape(cut(title, 90))}; {escape(ground)}</p>")
    return "".join([*parts, body(view), "</div>"])


def card(title: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Something that is no answer, as a box: what it is, and what is known of it."""
    name = f"<p><span class='answer'>{escape(cut(title, _CELL))}</span></p>"
    return f"<div class='m2b'><style>{STYLE}</style>{name}{facts(pairs)}</div>"


def head(answer: str, certainty: str, agreement: bool | None) -> str:
    """The line that answers: the answer, and how sure it is."""
    sure = f"<span class='sure {certainty.replace(' ', '-')}' title='{WORDS.get(certainty, '')}'>{certainty}</span>"
    if agreement is False:
        sure = "<span class='sure disagree'>witnesses disagree</span>"
    return f"<p><span class='answer'>{typeset(answer)}</span>{sure}</p>"


def body(view: View) -> str:
    """What was found: facts, tables, sentences."""
    parts = [facts(view.facts)] if view.facts else []
    parts += [table(rows) for rows in view.tables]
    return "".join([*parts, *(f"<p>{typeset(note)}</p>" for note in view.notes)])


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and texts in two columns; a name without text of its own continues the one above."""
    cells = (
        f"<tr><th scope='row'>{escape(name)}</th><td>{typeset(cut(text, _LONGEST_ROW))}</td></tr>"
        for name, text in pairs
    )
    return f"<table>{''.join(cells)}</table>"


def table(rows: Rows) -> str:
    """A table with its title; columns of numbers stand to the right."""
    marks = [" class=n" if rows.has_numbers(place) else "" for place in range(len(rows.columns))]
    lines = ["".join(f"<th scope='col'>{escape(name)}</th>" for name in rows.columns)]
    for row in rows.cells:
        cells = zip(marks, row, strict=True)
        lines.append("".join(f"<td{mark}>{typeset(cut(cell, _CELL))}</td>" for mark, cell in cells))
    title = f"<caption>{escape(rows.title)}</caption>" if rows.title else ""
    return f"<table class='rows'>{title}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def typeset(text: str) -> str:
    """Text for a page; where all of it, or what follows a colon, is polynomials or equations, these are typeset."""
    before, colon, after = text.rpartition(": ")
    pieces = after.split(", ") if re.search(r"[\^*]", after) else []
    shown = [_mathml(piece) for piece in pieces]
    if not any(shown) or not all(shown):
        return escape(text)
    return f"{escape(before + colon)}{', '.join(map(str, shown))}"


def _mathml(text: str) -> str | None:
    """A polynomial or an equation between polynomials in MathML; None when the text is neither.

    >>> _mathml("z0^2 - 3*x")
    '<math><msubsup><mi>z</mi><mn>0</mn><mn>2</mn></msubsup><mo>−</mo><mn>3</mn><mi>x</mi></math>'
    >>> _mathml("two words") is None
    True
    """
    text, pieces, place = text.strip(), list[str](), 0
    after_operand = ended = False
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            return None
        operand = token["sign"] is None and token["close"] is None
        if operand and after_operand:  # side by side, as in words
            return None
        pieces.append(_piece(token))
        place, after_operand, ended = token.end(), operand, token["sign"] is None
    if not ended:  # nothing, or an open end
        return None
    if len(pieces) > _LONG and "(" not in text:
        return _breakable(pieces)
    return f"<math>{''.join(pieces)}</math>"


def _piece(token: re.Match[str]) -> str:
    """The MathML of one sign, or of one operand with its index and its power."""
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


def _breakable(pieces: list[str]) -> str:
    """A long sum as one formula for each term: browsers break lines between formulas, never within one."""
    terms: list[str] = []
    for piece in pieces:
        if piece in _BETWEEN_TERMS and terms:
            terms.append(piece.replace("<mo>", "<mo form='infix'>"))
        else:
            terms[-1:] = ["".join(terms[-1:]) + piece]
    return "<wbr>".join(f"<math>{term}</math>" for term in terms)
