"""A polynomial map in a TOML or JSON file.

::

    name = "twisted cubic"
    variables = ["s", "t"]
    polynomials = ["s^3", "s^2*t", "s*t^2", "t^3"]
    constraints = []
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from m2bridge.errors import InputError, ParseError, SpecError
from m2bridge.models.custom import PolynomialMap, built_map
from m2bridge.models.polynomials import Polynomial, parse_polynomial
from m2bridge.models.spec import suggestion
from m2bridge.programs.files import read_document

LARGEST_FILE = 1_000_000
_KEYS = ("name", "variables", "polynomials", "constraints")


def read_map(path: str | Path) -> PolynomialMap:
    """The map in a file.

    Raises
    ------
    InputError
        The file is missing, too large, or not a regular file.
    ParseError
        The file is not TOML or JSON, a key is wrong, or a polynomial cannot be read; fields `source`,
        `line`, `column`.
    """
    file = Path(path)
    if file.suffix not in (".toml", ".json"):
        raise InputError(f"{file}: a map is read from a .toml or .json file")
    text, document = read_document(file, LARGEST_FILE)
    for key in document:
        if key not in _KEYS:
            _fail(file, text, key, f"there is no key {key!r}; {suggestion(str(key), _KEYS)}")
    variables = _strings(document, "variables", file, text)
    name = document.get("name", file.stem)
    if not isinstance(name, str) or not name.isprintable() or len(name) > 200:
        _fail(file, text, "name", "name should be a short line of text")
    place = _Places(text)

    def read(item: str, where: str) -> Polynomial:
        line, column = place.of(item)
        return parse_polynomial(item, variables, source=f"{file}, {where}", line=line, column=column)

    polynomials, constraints = (_strings(document, key, file, text) for key in ("polynomials", "constraints"))
    try:
        return built_map(name, variables, polynomials, constraints, read)
    except SpecError as error:
        _fail(file, text, "variables", error.message)


def _fail(file: Path, text: str, key: str, message: str) -> NoReturn:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip().strip('"{').startswith(key):
            raise ParseError(f"{file}, line {number}: {message}", source=str(file), line=number, column=1)
    raise ParseError(f"{file}: {message}", source=str(file), line=1, column=1)


def _strings(document: dict[str, Any], key: str, file: Path, text: str) -> list[str]:
    value = document.get(key, [] if key == "constraints" else None)
    if value is None:
        _fail(file, text, key, f"the key {key!r} is missing")
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        _fail(file, text, key, f"{key} should be a list of texts")
    return list(value)


class _Places:
    """Where strings stand in the file: found one after the other."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def of(self, string: str) -> tuple[int, int]:
        found = self.text.find(f'"{string}"', self.at)
        if found < 0:
            found = self.text.find(f"'{string}'", self.at)
        if found < 0:
            return 1, 1
        self.at = found + 1
        before = self.text[: found + 1]
        return before.count("\n") + 1, found + 1 - before.rfind("\n")
