"""What a person reads of an answer, as HTML: one box for notebooks and for reports, without scripts or outside resources.

Text is escaped, always. Polynomials are typeset in MathML, which browsers draw themselves; what is not one stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from itertools import groupby

from m2bridge.views import Rows, View, cut

_TOKEN = re.compile(r"\s*(?:(\d+)/(\d+)|(\d+)|([A-Za-z]+)_?((?:\d+(?:_\d+)*)?)|([-+*^()=]))")
_LONGEST = 4000
_CELL = 400
_LONG = 24
"""A formula with more symbols may be broken into lines."""
_BETWEEN_TERMS = ("<mo>+</mo>", "<mo>\N{MINUS SIGN}</mo>", "<mo>=</mo>")
WORDS = {
    "proved": "holds over QQ (or RR) by an exact argument",
    "probable": "exact over a finite field, or at random points",
    "numeric": "floating point with a visible gap",
}
"""What each word of certainty means."""

STYLE = """
.m2b{font:15px/1.5 system-ui,sans-serif;border:1px solid #8885;border-radius:8px;padding:.7em 1em;max-width:60em;overflow-x:auto}
.m2b .answer{font-size:1.15em;font-weight:650;margin-right:.6em}.m2b .ground{opacity:.75;margin:.1em 0 .5em}
.m2b .sure{border-radius:1em;padding:.1em .65em;font-size:.85em;color:#fff;background:#57606a;white-space:nowrap}
.m2b .proved{background:#00684a}.m2b .probable{background:#8a5a00}.m2b .numeric{background:#0b5c8a}
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
    sure = f"<span class='sure {certainty}' title='{WORDS.get(certainty, '')}'>{certainty}</span>"
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
        f"<tr><th scope='row'>{escape(name)}</th><td>{typeset(cut(text, _LONGEST))}</td></tr>"
        for name, text in pairs
    )
    return f"<table>{''.join(cells)}</table>"


def table(rows: Rows) -> str:
    """A table with its title; columns of numbers stand to the right."""
    columns = range(len(rows.columns))
    numbers = [all(_is_number(row[place]) for row in rows.cells) for place in columns]
    lines = ["".join(f"<th scope='col'>{escape(name)}</th>" for name in rows.columns)]
    lines += [
        "".join(
            f"<td{' class=n' if numbers[place] else ''}>{typeset(cut(row[place], _CELL))}</td>"
            for place in columns
        )
        for row in rows.cells
    ]
    title = f"<caption>{escape(rows.title)}</caption>" if rows.title else ""
    return f"<table class='rows'>{title}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _is_number(cell: str) -> bool:
    return cell in ("", "?") or cell.lstrip("-").isdigit()


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
    atoms = _atoms(text.strip())
    if not atoms:
        return None
    pieces: list[str] = []
    place = 0
    while place < len(atoms):
        kind, atom = atoms[place]
        if kind == "^":
            return None
        following = atoms[place + 1 : place + 3]
        if [k for k, _ in following] == ["^", "number"] and kind != "operator":
            power = following[1][1]
            indexed = atom.removeprefix("<msub>").removesuffix("</msub>")
            pieces.append(
                f"<msup>{atom}{power}</msup>" if indexed == atom else f"<msubsup>{indexed}{power}</msubsup>"
            )
            place += 3
            continue
        pieces.append("" if atom == "<mo>*</mo>" else atom)
        place += 1
    return (
        _breakable(pieces) if len(pieces) > _LONG and "(" not in text else f"<math>{''.join(pieces)}</math>"
    )


def _breakable(pieces: list[str]) -> str:
    """A long sum as one formula for each term: browsers break lines between formulas, never within one."""
    terms: list[str] = []
    for piece in pieces:
        if piece in _BETWEEN_TERMS and terms:
            terms.append(piece.replace("<mo>", "<mo form='infix'>"))
        else:
            terms[-1:] = ["".join(terms[-1:]) + piece]
    return "<wbr>".join(f"<math>{term}</math>" for term in terms)


def _atoms(text: str) -> list[tuple[str, str]]:
    """The tokens of a polynomial with their MathML; empty where something else is, operands side by side, or an open end."""
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            return []
        above, below, number, name, index, sign = match.groups()
        if sign:
            sign = "\N{MINUS SIGN}" if sign == "-" else sign
            kind = "close" if sign == ")" else "^" if sign == "^" else "operator"
            found.append((kind, f"<mo>{sign}</mo>"))
        elif above:
            found.append(("number", f"<mfrac><mn>{above}</mn><mn>{below}</mn></mfrac>"))
        elif number:
            found.append(("number", f"<mn>{number}</mn>"))
        else:
            word = f"<mi>{name}</mi>"
            below = index.replace("_", ",")
            found.append(("name", f"<msub>{word}<mn>{below}</mn></msub>" if index else word))
        place = match.end()
    if not found:
        return []
    operands = [kind in ("number", "name") for kind, _ in found]
    side_by_side = any(len(list(run)) > 1 for is_operand, run in groupby(operands) if is_operand)
    return [] if side_by_side or found[-1][0] in ("operator", "^") else found
