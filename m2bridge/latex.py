"""Text as LaTeX that compiles: every character that LaTeX reads as a command or cannot print is written another way."""

from __future__ import annotations

import unicodedata

_WRITTEN = {
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "…": r"\dots{}", "≥": r"$\ge$", "≤": r"$\le$", "×": r"$\times$", "⊗": r"$\otimes$",
    "∩": r"$\cap$", "→": r"$\to$", "↦": r"$\mapsto$", "–": "--", "—": "---", "\N{MINUS SIGN}": "$-$", "²": r"$^2$", "³": r"$^3$",
    "α": r"$\alpha$", "β": r"$\beta$", "ν": r"$\nu$", "λ": r"$\lambda$", "ℓ": r"$\ell$", "∞": r"$\infty$", "≠": r"$\ne$",
}  # fmt: skip


def escaped(text: str) -> str:
    r"""Plain text for the body of a document with T1 fonts.

    >>> print(escaped("50% of x_1^2 & \\more"))
    50\% of x\_1\textasciicircum{}2 \& \textbackslash{}more
    >>> print(escaped("Kathlén, ☃, a" + chr(7)))
    Kathl\'en, \textbackslash{}u2603, a\textbackslash{}x07
    """
    return "".join(map(_written, text))


_ACCENTS = {"\u0301": "'", "\u0300": "`", "\u0308": '"', "\u0302": "^", "\u0303": "~"}


def _written(c: str) -> str:
    if c in _WRITTEN:
        return _WRITTEN[c]
    if c in "&%$#_{}":
        return f"\\{c}"
    if c.isascii() and (c.isprintable() or c in "\n\t"):
        return c
    base, accent = unicodedata.normalize("NFD", c)[0], unicodedata.normalize("NFD", c)[1:]
    if base.isascii() and base.isalpha() and accent in _ACCENTS:
        return f"\\{_ACCENTS[accent]}{base}"
    return escaped(c.encode("unicode_escape").decode())
