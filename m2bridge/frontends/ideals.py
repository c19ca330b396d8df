"""Read an ideal of a user, from a text of polynomials or an ``.mrdi`` file, as a :class:`GivenIdeal`.

Positions in the text are kept, so that an error names the line and column of the file. No code is evaluated.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any, NoReturn

from m2bridge.errors import ParseError
from m2bridge.frontends.polynomials import (
    NAME,
    ParseLimits,
    Polynomial,
    parse_polynomial,
    polynomial_text,
    split_at_commas,
    whole,
)

_ENDLESS_NAME = re.compile(r"[A-Za-z]\w{64}")
_BLOCK_COMMENT = re.compile(r"-\*.*?\*-|\{\*.*?\*\}", re.DOTALL)
_COMMENT = re.compile(r"--|//|#")
_TWO_SIGNS = re.compile(r"[\w)]--[\w(]")
_PRIME_FIELD = re.compile(r"\bGF\s*(?:\(\s*(\d+)\s*\)|(\d+))|\((ZZ/\s*\d+)\)")
_FIELD_NAME = re.compile(r"^[^\S\n]*([A-Za-z]\w*)\s*=\s*(QQ|ZZ/\s*\d+)[^\S\n]*(?:;|$)", re.MULTILINE)
_RING = re.compile(r"(?:[A-Za-z]\w*\s*=\s*)?(?P<field>QQ|ZZ/\s*\d+)\s*\[(?P<names>[^\]]*)\]")
_VARIABLES = re.compile(r"^[^\S\n]*variables:(?P<names>.*)$", re.MULTILINE)
_RANGE = re.compile(r"([A-Za-z][A-Za-z']*_?)(\d+)\s*\.\.\s*([A-Za-z][A-Za-z']*_?)(\d+)")
_SINGULAR_RING = re.compile(
    r"\bring\s+[A-Za-z]\w*\s*=\s*(?P<field>QQ|\d+)\s*,\s*\((?P<names>[^()]*)\)\s*,[^;]*;"
)
_SINGULAR_IDEAL = re.compile(r"\bideal\s+[A-Za-z]\w*\s*=([^;]*)(?:;|$)")
_LETTERS = re.compile(r"(?<![\w'])([A-Za-z])\s*\.\.\s*([A-Za-z])(?![\w'])")
_RING_OPTION = re.compile(r"\b([A-Z]\w*)\s*=>")
_STANDARD_DEGREES = re.compile(r",\s*Degrees\s*=>\s*\{\s*(?:\d+\s*:)?\s*1(?:\s*,\s*1)*\s*\}")
_IN_BRACES = re.compile(r"\{[^{}]*\}")
_IGNORED_RING_OPTIONS = ("MonomialOrder", "MonomialSize")
"""Options of a ring in Macaulay2 on which no invariant of an ideal depends."""
_MINORS = re.compile(r"\bminors\s*\(\s*(?P<size>\d{1,3})\s*,\s*matrix\s*\{")
_MOST_READ_MINORS = 5000  # polynomials of minors(k, M) in an ideal that a user writes
_LARGEST_MINOR = 5  # rows of one of these; they are expanded
_NAME_OF_IDEAL = re.compile(r"[\s;]*(?:[A-Za-z]\w*\s*:?=\s*)?(?:ideal\s*\(?\s*)?")
_END_OF_IDEAL = re.compile(r"[\s;)}]*")
_LIST = re.compile(r"(?:ideal\s*\(|(?:ideal\s*)?\{)")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenIdeal:
    """Generators in named variables, as a file states them; `characteristic` when the file states a ring, else None."""

    variables: tuple[str, ...]
    polynomials: tuple[Polynomial, ...]
    characteristic: int | None = None

    def texts(self) -> tuple[str, ...]:
        return tuple(polynomial_text(f, self.variables) for f in self.polynomials)


def read_ideal(text: str, *, source: str = "the ideal") -> GivenIdeal:
    """Read polynomials from text: one per line, or a Macaulay2-style list ``ideal(f, g)`` or ``{f, g}``, with or without a ring.

    Singular's ``ring R = 0, (x, y), dp; ideal I = f, g;`` and ``.mrdi`` files of Macaulay2 and OSCAR are read too.

    ``minors(k, matrix {{...}, ...})`` is read too; other functions of Macaulay2 are not.

    Comments begin with ``--``, ``//`` or ``#``. Variables come from a ring such as ``QQ[x_0..x_3]``, from a line
    ``variables: x, y, z``, or else from the polynomials, in the order of appearance.

    >>> given = read_ideal("R = QQ[x,y,z]; I = ideal(y^2*z - x^3, x*y)")
    >>> given.variables, given.texts()
    (('x', 'y', 'z'), ('y^2*z-x^3', 'x*y'))
    """
    if text.lstrip().startswith("{") and '"_ns"' in text:  # a namespace: no list of polynomials
        return _read_mrdi(text, source)
    if match := _ENDLESS_NAME.search(text):
        _fail(source, f"the name {match[0][:20]}... has more than 64 characters")
    text = _BLOCK_COMMENT.sub(_blanked, text)
    plain = "\n".join(_uncommented(line, source, i) for i, line in enumerate(text.splitlines(), 1))
    plain = _with_plain_fields(plain)
    variables: list[str] | None = None
    characteristic: int | None = None
    ring = _RING.search(plain) or _SINGULAR_RING.search(plain)
    for match in (ring, _VARIABLES.search(plain)):
        if match is not None:
            line = plain.count("\n", 0, match.start("names")) + 1
            variables = _names(match["names"], source, line)
            plain = plain[: match.start()] + _blanked(match) + plain[match.end() :]
    if ring is not None:
        characteristic = 0 if ring["field"] == "QQ" else int(ring["field"].removeprefix("ZZ/"))
    bodies = [(offset, body) for offset, body in _bodies(plain, source) if body]
    if not bodies:
        _fail(source, "it contains no polynomials")
    if variables is None:
        variables = list(dict.fromkeys(m.group(0) for _, body in bodies for m in NAME.finditer(body)))
    if not variables:
        _fail(source, "it contains no variables; declare them in a line `variables: x, y`")
    starts = [0, *(match.end() for match in re.finditer("\n", plain))]
    polynomials = []
    for i, (offset, body) in enumerate(bodies, 1):
        line = bisect_right(starts, offset)
        column, where = offset - starts[line - 1] + 1, f"{source}, polynomial {i}"
        polynomials.append(parse_polynomial(body, variables, source=where, line=line, column=column))
    return GivenIdeal(
        variables=tuple(variables), polynomials=tuple(polynomials), characteristic=characteristic
    )


def _fail(source: str, message: str, line: int | None = None) -> NoReturn:
    where = source if line is None else f"{source}, line {line}"
    raise ParseError(f"{where}: {message}", source=source, line=line, column=None)


def _blanked(match: re.Match[str]) -> str:
    """Return blanks for all characters but line breaks, so that positions in the text stay."""
    return re.sub(r"[^\n]", " ", match[0])


def _with_plain_fields(text: str) -> str:
    """Write prime fields as ZZ/p, and replace names of fields, such as ``kk = QQ``, where they have variables.

    >>> _with_plain_fields("kk = GF 7; R = kk[x]").split()
    ['R', '=', 'ZZ/7[x]']
    """
    text = _PRIME_FIELD.sub(lambda match: match[3] or f"ZZ/{match[1] or match[2]}", text)
    fields = dict(_FIELD_NAME.findall(text))
    text = _FIELD_NAME.sub(_blanked, text)
    for name, field in fields.items():
        text = re.sub(rf"\b{name}(?=\s*\[)", field, text)
    return text


def _uncommented(line: str, source: str, number: int) -> str:
    """Return a line without its comment; ``x--3*y`` is ambiguous and is an error."""
    match = _COMMENT.search(line)
    if match is None:
        return line
    if match.start() and _TWO_SIGNS.match(line, match.start() - 1):
        _fail(source, "'--' begins a comment: put a space before it, or write '- -' for two signs", number)
    return line[: match.start()]


def _names(text: str, source: str, line: int) -> list[str]:
    def spread(match: re.Match[str]) -> str:
        if match[1] != match[3] or int(match[4]) - int(match[2]) > 10_000:
            _fail(source, f"{match[0]!r} is not a range of variables", line)
        return ",".join(f"{match[1]}{i}" for i in range(int(match[2]), int(match[4]) + 1))

    def letters(match: re.Match[str]) -> str:
        first, last = map(ord, match.groups())
        if first > last or match[1].isupper() != match[2].isupper():
            _fail(source, f"{match[0]!r} is not a range of variables", line)
        return ",".join(map(chr, range(first, last + 1)))

    text = _without_options(text, source, line)
    names = [name for _, name in split_at_commas(_LETTERS.sub(letters, _RANGE.sub(spread, text))) if name]
    for name in names:
        if not NAME.fullmatch(name):
            _fail(source, f"{name!r} is not the name of a variable", line)
    if len(set(names)) != len(names):
        _fail(source, "a variable is declared twice", line)
    return names


def _without_options(text: str, source: str, line: int) -> str:
    """Remove the options of a ring from the list of its variables; those that change the ideal are rejected."""
    text = _STANDARD_DEGREES.sub("", text)
    option = _RING_OPTION.search(text)
    if option is None:
        return text
    outermost = text
    while _IN_BRACES.search(outermost):
        outermost = _IN_BRACES.sub("", outermost)
    unread = [name for name in _RING_OPTION.findall(outermost) if name not in _IGNORED_RING_OPTIONS]
    if unread:
        _fail(
            source,
            f"the option {unread[0]} of a ring is not supported: all variables must commute and have degree 1",
            line,
        )
    return text[: option.start()]


def _bodies(text: str, source: str) -> Iterator[tuple[int, str]]:
    """Return the polynomials with their positions, inside ``ideal(...)``, ``ideal {...}`` or ``{...}``, or one per line."""
    if match := _SINGULAR_IDEAL.search(text):
        yield from split_at_commas(match[1], match.start(1))
    elif match := _MINORS.search(text):
        end = _closing(text, match.end() - 1)
        rows = [
            [entry for _, entry in split_at_commas(row)]
            for row in re.findall(r"\{([^{}]*)\}", text[match.end() : end])
        ]
        _require_nothing_else(text, match.start(), end + 1, source)
        for minor in _minors(rows, int(match["size"]), source):
            yield match.start(), minor
    elif match := _LIST.search(text):
        start = match.end()
        end = _closing(text, start - 1)
        if re.match(r"\s*[-+*:^]", text[end + 1 :]):
            number = text.count("\n", 0, end) + 1
            _fail(
                source,
                "operations on ideals are not supported; write one ideal(f, g, ...), or minors(k, matrix {...})",
                number,
            )
        _require_nothing_else(text, match.start(), end, source)
        yield from split_at_commas(text[start:end], start)
    else:
        for line in re.finditer(r"[^;\n]+", text):
            yield from split_at_commas(line[0], line.start())


def _require_nothing_else(text: str, start: int, end: int, source: str) -> None:
    """Refuse a text that has more than one ideal, which stands between `start` and `end`, and may have a name."""
    for before, rest in ((True, text[:start]), (False, text[end:])):
        allowed = _NAME_OF_IDEAL if before else _END_OF_IDEAL
        if not allowed.fullmatch(rest):
            shown = " ".join(rest.split())[:40]
            _fail(source, f"cannot read {shown!r}; write one ideal(f, g, ...), or one polynomial per line")


def _closing(text: str, opening: int) -> int:
    """Return the index of the bracket that closes the one at `opening`; the end of the text if there is none."""
    depth = 0
    for index in range(opening, len(text)):
        depth += (text[index] in "({") - (text[index] in ")}")
        if depth == 0:
            return index
    return len(text)


def _minors(rows: list[list[str]], size: int, source: str) -> Iterator[str]:
    """Yield the minors of a matrix of polynomials, as texts."""
    columns = len(rows[0]) if rows else 0
    if not rows or any(len(row) != columns for row in rows):
        _fail(source, "the rows of the matrix have different lengths")
    count = comb(len(rows), size) * comb(columns, size)
    if not 1 <= size <= _LARGEST_MINOR or not 1 <= count <= _MOST_READ_MINORS:
        _fail(
            source,
            f"{count} minors of size {size} are not supported: at most {_MOST_READ_MINORS}, of size 1 to {_LARGEST_MINOR}",
        )
    for chosen_rows in combinations(rows, size):
        for chosen in combinations(range(columns), size):
            yield _determinant([[row[j] for j in chosen] for row in chosen_rows])


def _determinant(matrix: list[list[str]]) -> str:
    """Write a determinant, expanded along the first row.

    >>> _determinant([["a", "b"], ["c", "d"]])
    '(a)*(d)-(b)*(c)'
    """
    if len(matrix) == 1:
        return f"({matrix[0][0]})"
    text = ""
    for j, entry in enumerate(matrix[0]):
        minor = _determinant([row[:j] + row[j + 1 :] for row in matrix[1:]])
        factor = minor if len(matrix) == 2 else f"({minor})"
        text += f"{'-' if j % 2 else '+'}({entry})*{factor}"
    return text.removeprefix("+")


# -- files of Macaulay2 and OSCAR ------------------------------------------------------------------------


def _read_mrdi(text: str, source: str) -> GivenIdeal:
    """Return the ideal in a ``.mrdi`` text, in the namespace of Macaulay2 or of OSCAR."""
    try:
        document = json.loads(text)
        label = document["_type"]["params"]
        ring = document["_refs"][label] if isinstance(label, str) else label
        if document["_type"]["name"] not in ("Ideal", "MPolyIdeal"):
            raise ValueError(f"it contains the type {document['_type']['name']!r}, not an ideal")
        names = ring["data"].get("variables") or ring["data"]["symbols"]
        characteristic = _characteristic(ring["_type"]["params"])
        variables = tuple(names)
        if not variables or not all(isinstance(n, str) and NAME.fullmatch(n) for n in variables):
            raise ValueError("its ring has no variables that can be read")
        polynomials = tuple(_polynomial(f, len(variables)) for f in document["data"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError, AttributeError) as error:
        _fail(source, f"not an .mrdi file of an ideal: {error}")
    return GivenIdeal(variables=variables, polynomials=polynomials, characteristic=characteristic)


def _characteristic(field: Any) -> int:
    kind = field if isinstance(field, str) else field["_type"]
    if kind in ("QQField",) or (kind == "Ring" and field["data"] == "QQ"):
        return 0
    if kind in ("QuotientRing", "FiniteField", "Nemo.fpField", "fpField"):
        return int(field["data"])
    raise ValueError(f"its field {kind!r} is neither QQ nor a prime field")


def _polynomial(terms: Any, count: int) -> dict[tuple[int, ...], Any]:
    limits = ParseLimits()
    coefficients: dict[tuple[int, ...], Any] = {}
    if len(terms) > limits.terms:
        raise ValueError(f"a polynomial has more than {limits.terms} terms")
    for exponents, coefficient in terms:
        key = tuple(int(e) for e in exponents)
        if len(key) != count or min(key) < 0 or max(key) > limits.exponent:
            raise ValueError(f"{exponents} are not the exponents of {count} variables")
        value = coefficients.get(key, 0) + _number(coefficient, limits.digits)
        coefficients[key] = whole(Fraction(value))
    return {key: value for key, value in coefficients.items() if value}


def _number(value: Any, digits: int) -> Fraction:
    numbers = value if isinstance(value, list) else str(value).split("//")
    if len(numbers) not in (1, 2) or any(len(str(number)) > digits for number in numbers):
        raise ValueError(f"{str(value)[:40]!r} is not a coefficient")
    return Fraction(int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else 1)
