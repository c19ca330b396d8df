"""Convert text to LaTeX: characters that LaTeX interprets as commands or cannot print are replaced."""

from __future__ import annotations

import unicodedata

_REPLACEMENTS = {
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "…": r"\dots{}", "≥": r"$\ge$", "≤": r"$\le$", "×": r"$\times$", "⊗": r"$\otimes$",
    "∩": r"$\cap$", "→": r"$\to$", "↦": r"$\mapsto$", "–": "--", "—": "---", "\N{MINUS SIGN}": "$-$", "²": r"$^2$", "³": r"$^3$",
    "α": r"$\alpha$", "β": r"$\beta$", "ν": r"$\nu$", "λ": r"$\lambda$", "ℓ": r"$\ell$", "∞": r"$\infty$", "≠": r"$\ne$",
}  # fmt: skip


def escaped(text: str) -> str:
    r"""Escape plain text for the body of a LaTeX document with T1 fonts.

    >>> print(escaped("50% of x_1^2 & \\more"))
    50\% of x\_1\textasciicircum{}2 \& \textbackslash{}more
    >>> print(escaped("Kathlén, ☃, a" + chr(7)))
    Kathl\'en, \textbackslash{}u2603, a\textbackslash{}x07
    """
    return "".join(map(_escape, text))


_ACCENTS = {"\u0301": "'", "\u0300": "`", "\u0308": '"', "\u0302": "^", "\u0303": "~"}


def _escape(c: str) -> str:
    """Return the LaTeX text of one character; unknown characters are written as their escape sequence."""
    if c in _REPLACEMENTS:
        return _REPLACEMENTS[c]
    if c in "&%$#_{}":
        return f"\\{c}"
    if c.isascii() and (c.isprintable() or c in "\n\t"):
        return c
    decomposed = unicodedata.normalize("NFD", c)
    base, accent = decomposed[0], decomposed[1:]
    if base.isascii() and base.isalpha() and accent in _ACCENTS:
        return f"\\{_ACCENTS[accent]}{base}"
    return escaped(c.encode("unicode_escape").decode())
