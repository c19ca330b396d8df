"""Batch: what a section of a job file means. Its entries become axes, its points become jobs; what is wrong is collected."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from m2bridge.batch import registry
from m2bridge.batch.expressions import parse
from m2bridge.batch.grid import Axis, Grid, Point, axis_of, swept
from m2bridge.batch.job import Job
from m2bridge.batch.jobfile import COMMON, NAME, JobFile, Section
from m2bridge.errors import InputError, OutOfReachError, ParseError, SpecError, suggestion
from m2bridge.families import Model, catalogue, parse_spec
from m2bridge.families.spec import Arguments, read, written
from m2bridge.families.user_code import is_code, parts_of
from m2bridge.limits import Limits, parse_bytes, parse_seconds

MOST_AXES = 32
_NOT_AXES = frozenset({"when", "tags", "priority", "timeout", "memory", "options"})
_MOST_MISTAKES = 20
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Models:
    """The models of a job file by their specs. A file is read once, and its content becomes the spec."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._found: dict[str, tuple[Model, str | None]] = {}

    def of(self, text: str) -> tuple[Model, str | None]:
        """A model, and what the user calls it."""
        if text not in self._found:
            if text.strip().startswith("file:"):
                named = parse_spec(f"file:{self._inside(text.strip().removeprefix('file:'))}")
                model = parse_spec(named.spec)
            elif is_code(text):  # refused unless --allow-code is given; the job holds the recorded program
                kind, path, name = parts_of(text)
                named = model = parse_spec(f"{kind}:{self._inside(str(path))}:{name}")
            else:
                named = model = parse_spec(text)
            self._found[text] = model, named.user_name
        return self._found[text]

    def _inside(self, name: str) -> Path:
        """A file beside the job file or below it; nothing else is read."""
        pure, path, here = PurePosixPath(name), self._directory / name, self._directory.resolve()
        if pure.is_absolute() or ".." in pure.parts or not path.resolve().is_relative_to(here):
            raise InputError(
                f"file:{name[:80]}: a job file names only files in its own directory", argument="spec"
            )
        return path


class SectionReader:
    """Reads one section: first its words, then its points, then the jobs."""

    def __init__(self, section: Section, file: JobFile, models: Models, limits: Limits) -> None:
        self.section, self.entries, self.mistakes = section, section.entries, file.mistakes
        self.models, self.usual = models, limits
        before = len(self.mistakes.found)
        self.axes = self._axes()
        self.when = None
        if "when" in self.entries:
            text = self.entries["when"]
            try:
                self.when = parse(text if isinstance(text, str) else "")
                if unknown := sorted(self.when.names - set(self.axes)):
                    self.wrong("when", f"there is no {unknown[0]!r} in this grid")
            except ParseError as error:
                self.wrong("when", error.message)
        for name, axis in self.axes.items():
            if unknown := sorted(axis.names - set(self.axes)):
                self.wrong(name, f"{name} depends on {', '.join(unknown)}, which this grid does not give")
        self._check_words()
        self.readable = len(self.mistakes.found) == before and "analysis" in self.axes
        self.variables = Grid(self.axes, None).variables
        self.unknown = self._unknown_entries()

    def wrong(self, key: str, message: str) -> None:
        self.mistakes.add(self.section.path_of(key), message)

    def points(self, most: int) -> list[Point]:
        """What the section sweeps (of a job: one point); none when it cannot be read."""
        try:
            if self.readable:
                return list(Grid.of(self.axes, self.when).points(most))
        except OutOfReachError as error:
            self.mistakes.add(self.section.path, f"{error.message}; --max-jobs allows more")
        except ParseError as error:
            self.wrong("when", error.message)
        except InputError as error:
            self.wrong(error.fields.get("argument", ""), error.message)
        return []

    def jobs(self, points: Iterable[Point]) -> Iterator[Job]:
        """The jobs at these points; of the mistakes the first few."""
        found = len(self.mistakes.found)
        for point in points:
            try:
                yield self._job(point)
            except InputError as error:
                self._wrong_point(point, error)
                if len(self.mistakes.found) > found + _MOST_MISTAKES:
                    self.mistakes.add(self.section.path, "and more like these")
                    return

    # -- entries ---------------------------------------------------------------------------------------------

    def _axes(self) -> dict[str, Axis]:
        """What the section sweeps, its options among it; of a job, each entry is one value."""
        entries = {key: value for key, value in self.entries.items() if key not in _NOT_AXES}
        options = self.entries.get("options")
        for key, value in (options if isinstance(options, dict) else {}).items():
            if key in entries:
                self.mistakes.add((*self.section.path, "options", key), f"{key} is given twice")
            entries[key] = value
        axes = {}
        for key, value in entries.items():
            try:
                axes[key] = swept(value) if self.section.kind == "job" else axis_of(value)
            except ParseError as error:
                axes[key] = swept(None)
                self.wrong(key, error.message)
            if axes[key].written == ():
                self.wrong(key, f"the list of {key} is empty")
        if len(axes) > MOST_AXES:
            self.mistakes.add(self.section.path, f"more than {MOST_AXES} entries")
        return axes

    def _named(self, word: str) -> tuple[Any, ...]:
        """The analyses or models that the section names; one that does not exist where they would be computed."""
        axis = self.axes.get(word, swept())
        return ("1..2",) if axis.written is None else axis.written

    def _check_words(self) -> None:
        """Analyses and families must be known, before anything is counted."""
        known = {"analysis": sorted(registry.jobs()), "model": families()}
        titles = {"analysis": "analysis", "model": "family"}
        for word in ("analysis", "model", "spec"):
            for name in self._named(word):
                if not isinstance(name, str):
                    self.wrong(word, f"{word} should be a text")
                elif word in known and name not in known[word]:
                    nearest = suggestion(name[:64], known[word])
                    self.wrong(word, f"there is no {titles[word]} {name[:64]!r}; {nearest}")

    def _unknown_entries(self) -> frozenset[str]:
        """Entries that are not the question's: neither of every section, nor options of its analyses, nor arguments of its
        families. Names that others are computed from, as h in ``widths = "[2,h,2]"``, are right there; the rest are mistakes.
        """
        known: list[str] = []
        if self.section.kind == "grid" and "spec" not in self.entries:
            known = ["model", "when", *_of_each(self._named("model"), families(), arguments_of)]
        analyses = registry.jobs()
        known += _of_each(self._named("analysis"), list(analyses), lambda n: registry.options_of(analyses[n]))
        known += ("analysis", "spec", *COMMON, "options")
        also = {"model", "when"}  # where these do not belong, that is said elsewhere
        unknown = [key for key in self.entries if key not in {*known, *also} and NAME.fullmatch(key)]
        for key in unknown:
            # a default that cannot be set is reported once, in [defaults]
            if key not in self.section.inherited and key not in self.variables:
                nearest = suggestion(key, [*dict.fromkeys(known)])
                self.wrong(key, f"there is no entry {key!r} in this {self.section.kind}; {nearest}")
        return frozenset(unknown)

    # -- jobs ------------------------------------------------------------------------------------------------

    def _split(self, point: Point) -> tuple[Point, Point]:
        """The entries of a point that are arguments of its model, and those that are options of its analysis."""
        left = {"analysis", "model", "spec"} | self.unknown
        rest = {key: value for key, value in point.items() if key not in left}
        if "spec" in point:
            return {}, rest
        explicit = self.entries.get("options") or {}
        known = {*registry.options_of(registry.job(point["analysis"])), *explicit, "prime"}
        arguments = {key: value for key, value in rest.items() if key not in known}
        return arguments, {key: value for key, value in rest.items() if key in known}

    def _job(self, point: Point) -> Job:
        question = registry.job(point["analysis"])
        if "spec" not in point and "model" not in point:
            raise InputError(
                'say which model: spec = "...", or model with its arguments', argument="analysis"
            )
        arguments, options = self._split(point)
        for key, value in options.items():
            _check_plain(key, value)
        spec = point["spec"] if "spec" in point else spec_of(point["model"], arguments)
        model, name = self.models.of(spec)
        entries = self.entries
        return Job(
            analysis=question.name,
            analysis_version=question.result.VERSION,
            spec=model.spec,
            parameters=registry.parameters_of(question, options),
            script_sha256=registry.script_sha256(question, model),
            size=model.parameter_count,
            limits=Limits(
                wall_seconds=parse_seconds(entries["timeout"])
                if "timeout" in entries
                else self.usual.wall_seconds,
                memory_bytes=parse_bytes(entries["memory"])
                if "memory" in entries
                else self.usual.memory_bytes,
            ),
            tags=tuple(dict.fromkeys(entries.get("tags", ()))),
            priority=entries.get("priority", 0),
            name=name,
            sweep={key: value for key, value in point.items() if key in self.variables},
        )

    def _wrong_point(self, point: Point, error: InputError) -> None:
        """A mistake at the entry that it is about."""
        key = self._culprit(error)
        message = error.message
        if key is not None and self.section.kind == "grid" and "model" in point:
            arguments, _ = self._split(point)
            if key in arguments and self._meant_as_list(point["model"], arguments, key):
                whole = self.entries[key]
                message = f"{point['model']} takes a list as {key}, and in a grid a list is a sweep: write {[whole]}"
        self.wrong(key or ("spec" if "spec" in point else "model"), message)

    def _culprit(self, error: InputError) -> str | None:
        """The entry that an error about a model is about, found by its position in the spec."""
        if (argument := error.fields.get("argument")) in self.entries:
            return str(argument)
        text, position = error.fields.get("text"), error.fields.get("position")
        if "spec" in self.entries or not isinstance(text, str):
            return None
        try:
            positions = read(text).positions
        except SpecError:
            return None
        return next((key for key, at in positions.items() if at == position and key in self.entries), None)

    def _meant_as_list(self, family: str, arguments: Mapping[str, Any], key: str) -> bool:
        """Whether a sweep over integers would be right as one value: ``widths = [2,2,1]`` for ``[[2,2,1]]``."""
        whole = self.entries.get(key)
        if not isinstance(whole, list) or not all(type(item) is int for item in whole):
            return False
        try:
            parse_spec(spec_of(family, {**arguments, key: whole}))
        except InputError as error:
            return self._culprit(error) not in (None, key)
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


def _check_plain(name: str, value: Any) -> None:
    """An option's value is a number, a flag, a word, or a list of such."""
    for item in value if isinstance(value, list) else [value]:
        if type(item) not in (int, bool, float) and not (isinstance(item, str) and _WORD.fullmatch(item)):
            raise InputError(f"{name} = {str(value)[:60]!r} should be a number or a word", argument=name)


def families() -> list[str]:
    """The families that a grid may name."""
    return [family.name for family in catalogue.families().values() if family.build is not None]


@cache
def arguments_of(family: str) -> tuple[str, ...]:
    """The names of a family's arguments.

    >>> arguments_of("mlp")
    ('widths', 'r', 'bias')
    """
    build = catalogue.families()[family].build
    asked = _AskedNames("", family, {}, {})
    try:
        if build is not None:
            build(asked)
    except SpecError:
        pass
    return tuple(asked.positions)


class _AskedNames(Arguments):
    """Arguments that note which names are allowed, and go no further."""

    def only(self, *keys: str) -> None:
        self.positions.update(dict.fromkeys(keys, 1))
        self.fail("only asked")


def _of_each(names: Sequence[Any], known: Sequence[str], of: Callable[[str], Iterable[str]]) -> list[str]:
    """What the named ones have together; what all have, when a name is not known."""
    chosen = names if names and all(isinstance(n, str) and n in known for n in names) else known
    return [part for name in chosen for part in of(name)]
