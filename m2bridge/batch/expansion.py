"""Expand the sections of a job file to jobs: entries become axes of a grid, points of the grid become jobs.

Errors in the file are collected, so that all of them are reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from m2bridge.batch import registry
from m2bridge.batch.expressions import Expression, parse
from m2bridge.batch.grid import Axis, Grid, Point, axis_of, axis_with
from m2bridge.batch.job import Job
from m2bridge.batch.jobfile import COMMON, FILE_ANALYSES, NAME, JobFile, Section
from m2bridge.errors import InputError, OutOfReachError, ParseError, SpecError, suggestion
from m2bridge.families import Model, catalogue, parse_spec
from m2bridge.families.spec import read, written
from m2bridge.families.user_code import is_code, split_spec
from m2bridge.limits import Limits, parse_bytes, parse_seconds

MOST_GRID_AXES = 32  # entries of one grid; each multiplies the number of points
_NOT_AXES = frozenset({"when", "tags", "priority", "timeout", "memory", "options"})
_MOST_MISTAKES_OF_A_GRID = 20
"""After more than this many errors in one section, the remaining points are not read."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Models:
    """A cache of the models of a job file, by their specs. A file is read once; the job contains its content, not its path."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._models: dict[str, tuple[Model, str | None]] = {}

    def of(self, text: str) -> tuple[Model, str | None]:
        """Return the model of a spec and its name, if the user has given it one."""
        if text not in self._models:
            if text.strip().startswith("file:"):
                named = parse_spec(f"file:{self.path_inside(text.strip().removeprefix('file:'))}")
                model = parse_spec(named.spec)
            elif is_code(text):  # rejected without --allow-code; the job contains the recorded program
                kind, path, name = split_spec(text)
                named = model = parse_spec(f"{kind}:{self.path_inside(str(path))}:{name}")
            else:
                named = model = parse_spec(text)
            self._models[text] = model, named.user.name
        return self._models[text]

    def path_inside(self, name: str, entry: str = "spec") -> Path:
        """Return the path of a file in the directory of the job file or below it. Raises InputError for any other path."""
        relative = PurePosixPath(name)
        path = self._directory / name
        is_inside = path.resolve().is_relative_to(self._directory.resolve())
        if relative.is_absolute() or ".." in relative.parts or not is_inside:
            raise InputError(
                f"file:{name[:80]}: the file must be in the directory of the job file", argument=entry
            )
        return path


class SectionReader:
    """Expands one section: reads its entries, enumerates its points (:meth:`points`), and makes the jobs (:meth:`jobs`)."""

    def __init__(self, section: Section, file: JobFile, models: Models, limits: Limits) -> None:
        self.section = section
        self.entries = section.entries
        self.mistakes = file.mistakes
        self.models = models
        self.default_limits = limits
        mistakes_before = len(self.mistakes.entries)
        self.axes = self._axes()
        self.when = self._condition()
        for name, axis in self.axes.items():
            if unknown := sorted(axis.names - set(self.axes)):
                self.report(name, f"{name} depends on {', '.join(unknown)}, which this grid does not define")
        self._check_names()
        self.readable = len(self.mistakes.entries) == mistakes_before and "analysis" in self.axes
        self.variables = Grid(self.axes, None).variables
        self.unknown = self._unknown_entries()

    def report(self, key: str, message: str) -> None:
        """Add an error about an entry."""
        self.mistakes.add(self.section.path_of(key), message)

    def points(self, most: int) -> list[Point]:
        """Return the points of the grid (one point for a job); none if the section has errors."""
        try:
            if self.readable:
                return list(Grid.of(self.axes, self.when).points(most))
        except OutOfReachError as error:
            self.mistakes.add(self.section.path, f"{error.message}; --max-jobs allows more")
        except ParseError as error:
            self.report("when", error.message)
        except InputError as error:
            self.report(error.fields.get("argument", ""), error.message)
        return []

    def jobs(self, points: Iterable[Point]) -> Iterator[Job]:
        """Yield the jobs at these points. Stops after about _MOST_MISTAKES_OF_A_GRID errors."""
        mistakes_before = len(self.mistakes.entries)
        for point in points:
            try:
                yield self._job(point)
            except InputError as error:
                self._report_point(point, error)
                if len(self.mistakes.entries) > mistakes_before + _MOST_MISTAKES_OF_A_GRID:
                    self.mistakes.add(self.section.path, "and more errors of this kind")
                    return

    # -- entries ---------------------------------------------------------------------------------------------

    def _condition(self) -> Expression | None:
        """Read the entry ``when``, the filter of the points."""
        if "when" not in self.entries:
            return None
        text = self.entries["when"]
        try:
            condition = parse(text if isinstance(text, str) else "")
        except ParseError as error:
            self.report("when", error.message)
            return None
        if unknown := sorted(condition.names - set(self.axes)):
            self.report("when", f"unknown name {unknown[0]!r} in this grid")
        return condition

    def _axes(self) -> dict[str, Axis]:
        """Return the axes of the section, including its options. In a job, each axis has one value."""
        entries = {key: value for key, value in self.entries.items() if key not in _NOT_AXES}
        options = self.entries.get("options")
        for key, value in (options if isinstance(options, dict) else {}).items():
            if key in entries:
                self.mistakes.add((*self.section.path, "options", key), f"duplicate entry {key}")
            entries[key] = value
        axes = {}
        for key, value in entries.items():
            try:
                axes[key] = axis_with(value) if self.section.kind == "job" else axis_of(value)
            except ParseError as error:
                axes[key] = axis_with(None)
                self.report(key, error.message)
            if axes[key].constants == ():
                self.report(key, f"the list of {key} is empty")
        if len(axes) > MOST_GRID_AXES:
            self.mistakes.add(self.section.path, f"more than {MOST_GRID_AXES} entries")
        return axes

    def _constants(self, entry: str) -> tuple[Any, ...]:
        """Return the values of `analysis`, `model` or `spec`; an invalid name if they would be computed from other entries."""
        axis = self.axes.get(entry, axis_with())
        if axis.constants is None:
            return ("1..2",)  # not a valid name, so that the check of names reports it
        return axis.constants

    def _check_names(self) -> None:
        """Check that the analyses and families exist, before the points are counted."""
        names_of = {"analysis": sorted([*registry.jobs(), *FILE_ANALYSES]), "model": [*arguments_by_family()]}
        titles = {"analysis": "analysis", "model": "family"}
        for entry in ("analysis", "model", "spec"):
            for name in self._constants(entry):
                if not isinstance(name, str):
                    self.report(entry, f"{entry} must be a string")
                elif (
                    entry in names_of
                    and name not in names_of[entry]
                    and not (entry == "model" and is_code(name))
                ):
                    nearest = suggestion(name[:64], names_of[entry])
                    if entry == "model" and "(" in name:
                        nearest = f"write a whole specification as spec = {name[:64]!r}"
                    self.report(entry, f"there is no {titles[entry]} {name[:64]!r}; {nearest}")

    def _unknown_entries(self) -> frozenset[str]:
        """Return the entries that are neither common, nor options of the analyses, nor arguments of the families.

        Such an entry is allowed if other entries are computed from it, as h in ``widths = "[2,h,2]"``. All others are reported.
        The arguments of a function in a file are not known before it is called, which reports wrong ones.
        """
        if any(isinstance(name, str) and is_code(name) for name in self._constants("model")):
            return frozenset()
        valid: list[str] = []
        if self.section.kind == "grid" and "spec" not in self.entries:
            arguments = arguments_by_family()
            valid = ["model", "when", *_union(self._constants("model"), [*arguments], arguments.__getitem__)]
        analyses = [*registry.jobs(), *FILE_ANALYSES]
        valid += _union(self._constants("analysis"), analyses, self._option_names)
        valid += ("analysis", "spec", *COMMON, "options", *FILE_ANALYSES)
        checked_elsewhere = {"model", "when"}
        unknown = [
            key for key in self.entries if key not in {*valid, *checked_elsewhere} and NAME.fullmatch(key)
        ]
        for key in unknown:
            # A default that cannot be set is reported once, in [defaults].
            if key not in self.section.inherited and key not in self.variables:
                nearest = suggestion(key, [*dict.fromkeys(valid)])
                self.report(key, f"there is no entry {key!r} in this {self.section.kind}; {nearest}")
        return frozenset(unknown)

    # -- jobs ------------------------------------------------------------------------------------------------

    def _option_names(self, analysis: str) -> Iterable[str]:
        """Return the names of the options of an analysis; none for templates, ideals and unknown names."""
        return registry.options_of(registry.job(analysis)) if analysis in registry.jobs() else ()

    def _split(self, point: Point) -> tuple[Point, Point]:
        """Split the entries of a point into arguments of its model and options of its analysis."""
        excluded = {"analysis", "model", "spec"} | self.unknown
        entries = {key: value for key, value in point.items() if key not in excluded}
        if "spec" in point:
            return {}, entries
        explicit = self.entries.get("options") or {}
        option_names = {*self._option_names(point["analysis"]), *explicit, "prime"}
        arguments = {key: value for key, value in entries.items() if key not in option_names}
        options = {key: value for key, value in entries.items() if key in option_names}
        return arguments, options

    def _limits(self) -> Limits:
        """Return the limits of the section, with defaults for those that it does not set."""
        wall_seconds = self.default_limits.wall_seconds
        memory_bytes = self.default_limits.memory_bytes
        if "timeout" in self.entries:
            wall_seconds = parse_seconds(self.entries["timeout"])
        if "memory" in self.entries:
            memory_bytes = parse_bytes(self.entries["memory"])
        return Limits(wall_seconds=wall_seconds, memory_bytes=memory_bytes)

    def _job(self, point: Point) -> Job:
        """Make the job at a point."""
        question = registry.job(point["analysis"])
        if "spec" not in point and "model" not in point:
            raise InputError('no model: set spec = "...", or model and its arguments', argument="analysis")
        arguments, options = self._split(point)
        for key, value in options.items():
            check_plain(key, value)
        spec = point["spec"] if "spec" in point else spec_of(point["model"], arguments)
        model, name = self.models.of(spec)
        return self._job_with(
            point,
            analysis=question.name,
            analysis_version=question.result.VERSION,
            spec=model.spec,
            parameters=registry.parameters_of(question, options),
            script_sha256=registry.templates_sha256(question.templates, model),
            size=model.parameter_count,
            name=name,
        )

    def _job_with(self, point: Point, **fields: Any) -> Job:
        """Make a job of these fields with the limits, tags and priority of the section."""
        return Job(
            limits=self._limits(),
            tags=tuple(dict.fromkeys(self.entries.get("tags", ()))),
            priority=self.entries.get("priority", 0),
            sweep={key: value for key, value in point.items() if key in self._swept_names(point)},
            **fields,
        )

    def _swept_names(self, point: Point) -> Iterable[str]:
        """Return the names that become columns of the results: variables, and arguments of a function in a file.

        The arguments of a family are in the spec of its model; the spec of a function in a file is the recorded program.
        """
        code = isinstance(point.get("model"), str) and is_code(point["model"])
        return {*self.variables, *(self._split(point)[0] if code else ())}

    def _report_point(self, point: Point, error: InputError) -> None:
        """Add an error at a point, at the entry that caused it."""
        key = self._entry_of(error)
        message = error.message
        if key is not None and self.section.kind == "grid" and "model" in point:
            arguments, _ = self._split(point)
            if key in arguments and self._meant_as_list(point["model"], arguments, key):
                values = self.entries[key]
                message = (
                    f"{key} of {point['model']} must be a list; a list in a grid is a sweep over its entries,"
                    f" so write {[values]}"
                )
        self.report(key or ("spec" if "spec" in point else "model"), message)

    def _entry_of(self, error: InputError) -> str | None:
        """Return the entry that caused an error about a model, determined by the position in the spec."""
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
        """Return whether a sweep over integers is valid as one value: ``widths = [2,2,1]`` instead of ``[[2,2,1]]``."""
        values = self.entries.get(key)
        if not isinstance(values, list) or not all(type(item) is int for item in values):
            return False
        try:
            parse_spec(spec_of(family, {**arguments, key: values}))
        except InputError as error:
            return self._entry_of(error) not in (None, key)
        return True


def spec_of(family: str, arguments: Mapping[str, Any]) -> str:
    """Return the spec of a family with arguments, each of which must be an integer, a word or a list of integers."""
    for name, value in arguments.items():
        items = value if isinstance(value, list) else [value]
        numbers = all(type(item) is int for item in items)
        word = isinstance(value, bool) or (isinstance(value, str) and _WORD.fullmatch(value) is not None)
        if not (word or (numbers and items)):
            raise InputError(
                f"{name} = {str(value)[:60]!r} must be an integer, a word, or a list of integers "
                "(a list in a grid is a sweep: write [[3,3],[4,4]])",
                argument=name,
            )
    return written(family, **{k: tuple(v) if isinstance(v, list) else v for k, v in arguments.items()})


def check_plain(name: str, value: Any) -> None:
    """Check that the value of an option is a number, a flag, a word, or a list of these."""
    for item in value if isinstance(value, list) else [value]:
        if type(item) not in (int, bool, float) and not (isinstance(item, str) and _WORD.fullmatch(item)):
            raise InputError(f"{name} = {str(value)[:60]!r} must be a number or a word", argument=name)


def arguments_by_family() -> dict[str, tuple[str, ...]]:
    """Return the names of the arguments of each family that can be used in a grid."""
    families = catalogue.families().values()
    return {family.name: family.arguments for family in families if family.build is not None}


def _union(names: Sequence[Any], valid: Sequence[str], items_of: Callable[[str], Iterable[str]]) -> list[str]:
    """Return the items of all `names`; the items of all `valid` names if one of `names` is not valid."""
    all_valid = bool(names) and all(isinstance(name, str) and name in valid for name in names)
    return [item for name in (names if all_valid else valid) for item in items_of(name)]
