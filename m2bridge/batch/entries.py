"""Batch: which entries a section may have, known before anything of it is expanded. Names enter, mistakes leave."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from m2bridge.batch import registry
from m2bridge.batch.grid import Axis, Grid
from m2bridge.batch.jobfile import COMMON, NAME, Mistakes, Section
from m2bridge.errors import InputError, SpecError
from m2bridge.models import FAMILIES, parse_spec
from m2bridge.models.spec import Arguments, read, suggestion, written

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_ALWAYS = ("analysis", "spec", *COMMON, "options")


def check_words(section: Section, axes: Mapping[str, Axis], mistakes: Mistakes) -> None:
    """Analyses and families must be known, before anything is counted."""
    for word in ("analysis", "model", "spec"):
        for number, name in enumerate(_named(axes, word)):
            place = (*section.path, word, number)
            if not isinstance(name, str):
                mistakes.add(place, f"{word} should be a text")
            elif word == "analysis" and name not in registry.jobs():
                known = suggestion(name[:64], sorted(registry.jobs()))
                mistakes.add(place, f"there is no analysis {name[:64]!r}; {known}")
            elif word == "model" and name not in _families():
                mistakes.add(place, f"there is no family {name[:64]!r}; {suggestion(name[:64], _families())}")


def unknown_entries(section: Section, axes: Mapping[str, Axis], mistakes: Mistakes) -> frozenset[str]:
    """Entries that are not the question's: neither of every section, nor options of its analyses, nor arguments of its families.

    Names that other entries are computed from, as h in ``widths = "[2,h,2]"``, are right there; the rest are mistakes. Where an
    analysis or a family is misspelt, those of all are allowed.
    """
    arguments: list[str] = []
    if section.kind == "grid" and "spec" not in section.entries:
        arguments = ["model", "when", *_of_each(_named(axes, "model"), _families(), arguments_of)]
    analyses = registry.jobs()
    named = _named(axes, "analysis")
    options = _of_each(named, list(analyses), lambda name: registry.options_of(analyses[name]))
    known = dict.fromkeys((*arguments, *options, *_ALWAYS))
    also = {"model", "when"}  # where these do not belong, that is said elsewhere
    unknown = [key for key in section.entries if key not in known and key not in also and NAME.fullmatch(key)]
    used = Grid(dict(axes), None).variables
    for key in unknown:
        place = (*section.path, key)
        if mistakes.places.has(place) and key not in used:  # a default is complained of at its own place
            mistakes.add(
                place, f"there is no entry {key!r} in this {section.kind}; {suggestion(key, [*known])}"
            )
    return frozenset(unknown)


def culprit(section: Section, error: InputError) -> str | None:
    """The entry that an error about a model is about, found by its position in the spec."""
    if (argument := error.fields.get("argument")) in section.entries:
        return str(argument)
    text, position = error.fields.get("text"), error.fields.get("position")
    if "spec" in section.entries or not isinstance(text, str):
        return None
    try:
        positions = read(text).positions
    except SpecError:
        return None
    return next((key for key, at in positions.items() if at == position and key in section.entries), None)


def meant_as_list(section: Section, family: str, arguments: Mapping[str, Any], key: str) -> bool:
    """Whether a sweep over integers would be right as one value: ``widths = [2,2,1]`` for ``[[2,2,1]]``."""
    whole = section.entries.get(key)
    if not isinstance(whole, list) or not all(type(item) is int for item in whole):
        return False
    try:
        parse_spec(spec_of(family, {**arguments, key: whole}))
    except InputError as error:
        return culprit(section, error) not in (None, key)
    return True


def spec_of(family: str, arguments: Mapping[str, Any]) -> str:
    """The spec string of a family with these arguments, each of which must be a number, a word or a list of numbers."""
    for name, value in arguments.items():
        items = value if isinstance(value, list) else [value]
        numbers = all(type(item) is int for item in items)
        word = isinstance(value, bool) or (isinstance(value, str) and _WORD.fullmatch(value) is not None)
        if not (word or (numbers and items)):
            raise InputError(
                f"{name} = {str(value)[:60]!r} should be an integer, a word, or a list of integers "
                "(in a grid a list is a sweep: write [[3,3],[4,4]])",
                argument=name,
            )
    return written(family, **{k: tuple(v) if isinstance(v, list) else v for k, v in arguments.items()})


def plain(name: str, value: Any) -> Any:
    """An option's value: a number, a flag, a word, or a list of such."""
    items = value if isinstance(value, list) else [value]
    for item in items:
        if type(item) not in (int, bool, float) and not (isinstance(item, str) and _WORD.fullmatch(item)):
            raise InputError(f"{name} = {str(value)[:60]!r} should be a number or a word", argument=name)
    return value


@cache
def arguments_of(family: str) -> tuple[str, ...]:
    """The names of a family's arguments.

    >>> arguments_of("mlp")
    ('widths', 'r', 'bias')
    """
    build = FAMILIES[family].build
    asked = _Asked("", family, {}, {})
    try:
        if build is not None:
            build(asked)
    except SpecError:
        pass
    return tuple(asked.positions)


class _Asked(Arguments):
    """Arguments that note which names are allowed, and go no further."""

    def only(self, *keys: str) -> None:
        self.positions.update(dict.fromkeys(keys, 1))
        self.fail("only asked")


def _families() -> tuple[str, ...]:
    return tuple(family.name for family in FAMILIES.values() if family.build is not None)


def _named(axes: Mapping[str, Axis], word: str) -> tuple[Any, ...]:
    """The analyses or models that a section names; one that does not exist where they would be computed."""
    if word not in axes:
        return ()
    written = axes[word].written
    return ("1..2",) if written is None else written


def _of_each(names: Sequence[Any], known: Sequence[str], of: Callable[[str], Iterable[str]]) -> list[str]:
    """What the named ones have together; what all have, when a name is not known."""
    chosen = names if names and all(isinstance(n, str) and n in known for n in names) else known
    return [part for name in chosen for part in of(name)]
