"""Batch: sections become a plan: distinct jobs, each with the key under which its answer is stored."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from m2bridge.batch import registry
from m2bridge.batch.entries import check_words, culprit, meant_as_list, plain, spec_of, unknown_entries
from m2bridge.batch.expressions import parse
from m2bridge.batch.grid import Axis, Grid, axis_of, swept
from m2bridge.batch.jobfile import JobFile, Place, Section
from m2bridge.batch.policy import JobLimits
from m2bridge.engine.base import parse_bytes, parse_seconds
from m2bridge.errors import InputError, OutOfReachError, ParseError
from m2bridge.models import Model, parse_spec
from m2bridge.models.code import is_code, parts_of
from m2bridge.records import SCHEMA_VERSION

MOST_JOBS = 100_000
MOST_AXES = 32
_NOT_AXES = frozenset({"when", "tags", "priority", "timeout", "memory", "options"})
_MOST_MISTAKES_A_SECTION = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One question about one model. The analysis, the spec, the parameters and the versions of everything make the key; limits,
    tags and priority say how and when to run it, do not change the answer and are not in the key.

    `script_sha256` is of the templates it may use; `size` is the number of parameters of the model, for estimates; `name` is what
    the user calls a network of their own; `sweep` has the values of the names that a grid computes its entries from.
    """

    analysis: str
    analysis_version: int
    spec: str
    parameters: Mapping[str, Any]
    script_sha256: str
    size: int
    limits: JobLimits = field(default_factory=JobLimits)
    tags: tuple[str, ...] = ()
    priority: int = 0
    name: str | None = None
    sweep: Mapping[str, Any] = field(default_factory=dict)

    def question(self, engine_version: str) -> dict[str, Any]:
        """Everything that determines the answer."""
        return {
            "analysis": self.analysis,
            "analysis_version": self.analysis_version,
            "engine_version": engine_version,
            "model": self.spec,
            "parameters": dict(self.parameters),
            "schema_version": SCHEMA_VERSION,
            "script_sha256": self.script_sha256,
        }

    def key(self, engine_version: str) -> str:
        """The sha256 of the canonical JSON of the question."""
        question = self.question(engine_version)
        text = json.dumps(question, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def document(self) -> dict[str, Any]:
        """For the record and for the worker."""
        return {
            "analysis": self.analysis,
            "model": self.spec,
            "parameters": dict(self.parameters),
            "size": self.size,
            "tags": list(self.tags),
            **({"name": self.name} if self.name else {}),
            **({"sweep": dict(self.sweep)} if self.sweep else {}),
        }

    @property
    def title(self) -> str:
        """One line for people; the parameters where they are not the usual ones."""
        defaults = registry.parameters_of(registry.job(self.analysis), {})
        unusual = [f"{k}={v}" for k, v in self.parameters.items() if k not in defaults or defaults[k] != v]
        return " ".join([self.analysis, self.name or self.spec, *unusual])


@dataclass(frozen=True, slots=True)
class Plan:
    """The distinct jobs of a job file, in its order; how often one was named again."""

    jobs: tuple[Job, ...]
    duplicates: int


def expand(file: JobFile, *, limits: JobLimits | None = None, most_jobs: int = MOST_JOBS) -> Plan:
    """The plan of a job file; `limits` are for jobs that do not say. More points than `most_jobs` are refused and not made.

    Raises
    ------
    ParseError
        With every mistake of the file in field `mistakes`; nothing has been run.
    """
    mistakes = file.mistakes
    builder = _Builder(file, limits or JobLimits())
    grids: list[tuple[Section, Grid]] = []
    total = 0
    for section in file.sections:
        grid = builder.grid(section)
        if grid is None:
            continue
        try:
            total += grid.count(most_jobs)
        except OutOfReachError as error:
            mistakes.add(section.path, f"{error.message}; --max-jobs allows more")
        except InputError as error:
            mistakes.add_error(section.path, error)
        else:
            if total <= most_jobs:
                grids.append((section, grid))
    if total > most_jobs:
        mistakes.add((), f"the file names {total:,} jobs, more than {most_jobs:,}; --max-jobs allows more")
    jobs: dict[str, Job] = {}
    duplicates = 0
    for section, grid in grids:
        for job in builder.jobs(section, grid):
            key = job.key("")
            if key in jobs:
                duplicates += 1
                job = _merged(jobs[key], job)  # noqa: PLW2901
            jobs[key] = job
    if not jobs and not mistakes.found:
        mistakes.add((), "no job is left: every grid is empty or filtered out")
    mistakes.raise_if_any()
    return Plan(tuple(jobs.values()), duplicates)


def _merged(first: Job, second: Job) -> Job:
    """One job named twice: the larger limits, the higher priority, all tags."""
    return dataclasses.replace(
        first,
        limits=first.limits.union(second.limits),
        tags=tuple(dict.fromkeys(first.tags + second.tags)),
        priority=max(first.priority, second.priority),
    )


class _Builder:
    """Turns sections into grids and points into jobs, collecting mistakes."""

    def __init__(self, file: JobFile, limits: JobLimits) -> None:
        self.file, self.mistakes, self.limits = file, file.mistakes, limits
        self.models: dict[str, tuple[str, Model]] = {}
        self.names: dict[str, str] = {}
        self.unknown: dict[Place, frozenset[str]] = {}

    def grid(self, section: Section) -> Grid | None:
        """The grid of a section (of a job: one point), or None when it has mistakes that forbid counting."""
        before = len(self.mistakes.found)
        axes = self.axes(section)
        when = None
        if "when" in section.entries:
            text = section.entries["when"]
            try:
                when = parse(text if isinstance(text, str) else "")
                if unknown := sorted(when.names - set(axes)):
                    self.mistakes.add((*section.path, "when"), f"there is no {unknown[0]!r} in this grid")
            except ParseError as error:
                self.mistakes.add_error((*section.path, "when"), error)
        for name, axis in axes.items():
            if unknown := sorted(axis.names - set(axes)):
                message = f"{name} depends on {', '.join(unknown)}, which this grid does not give"
                self.mistakes.add(section.place_of(name), message)
        check_words(section, axes, self.mistakes)
        wrong = len(self.mistakes.found) > before
        self.unknown[section.path] = unknown_entries(section, axes, self.mistakes)
        if wrong or "analysis" not in axes:
            return None
        try:
            return Grid.of(axes, when)
        except InputError as error:
            self.mistakes.add(section.place_of(error.fields.get("argument", "")), error.message)
            return None

    def axes(self, section: Section) -> dict[str, Axis]:
        """What a section sweeps, its options among it; of a job, each entry is one value."""
        entries = {key: value for key, value in section.entries.items() if key not in _NOT_AXES}
        options = section.entries.get("options")
        for key, value in (options if isinstance(options, dict) else {}).items():
            if key in entries:
                self.mistakes.add((*section.path, "options", key), f"{key} is given twice")
            entries[key] = value
        axes = {}
        for key, value in entries.items():
            try:
                axes[key] = swept(value) if section.kind == "job" else axis_of(value)
            except ParseError as error:
                axes[key] = swept(None)
                self.mistakes.add(section.place_of(key), error.message)
            if axes[key].written == ():
                self.mistakes.add(section.place_of(key), f"the list of {key} is empty")
        if len(axes) > MOST_AXES:
            self.mistakes.add(section.path, f"more than {MOST_AXES} entries")
        return axes

    def jobs(self, section: Section, grid: Grid) -> Iterator[Job]:
        """The jobs of a section; its mistakes go into the collection, the first few of them."""
        found = len(self.mistakes.found)
        try:
            for point in grid.points():
                try:
                    yield self.job(section, grid, point)
                except InputError as error:
                    self.wrong_point(section, point, error)
                    if len(self.mistakes.found) > found + _MOST_MISTAKES_A_SECTION:
                        self.mistakes.add(section.path, "and more like these")
                        return
        except ParseError as error:
            self.mistakes.add_error(section.place_of("when"), error)

    def wrong_point(self, section: Section, point: dict[str, Any], error: InputError) -> None:
        """A mistake at the entry that it is about."""
        key = culprit(section, error)
        message = error.message
        if key is not None and section.kind == "grid" and "model" in point:
            arguments, _ = self.split(section, point)
            if key in arguments and meant_as_list(section, point["model"], arguments, key):
                whole = section.entries[key]
                message = f"{point['model']} takes a list as {key}, and in a grid a list is a sweep: write {[whole]}"
        self.mistakes.add(section.place_of(key or ("spec" if "spec" in point else "model")), message)

    def split(self, section: Section, point: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The entries of a point that are arguments of its model, and those that are options of its analysis."""
        left = {"analysis", "model", "spec"} | self.unknown.get(section.path, frozenset())
        rest = {key: value for key, value in point.items() if key not in left}
        if "spec" in point:
            return {}, rest
        explicit = section.entries.get("options") or {}
        known = {*registry.options_of(registry.job(point["analysis"])), *explicit, "prime"}
        arguments = {key: value for key, value in rest.items() if key not in known}
        return arguments, {key: value for key, value in rest.items() if key in known}

    def job(self, section: Section, grid: Grid, point: dict[str, Any]) -> Job:
        question = registry.job(point["analysis"])
        if "spec" not in point and "model" not in point:
            raise InputError(
                'say which model: spec = "...", or model with its arguments', argument="analysis"
            )
        arguments, options = self.split(section, point)
        options = {key: plain(key, value) for key, value in options.items()}
        spec, model = self.model(point["spec"] if "spec" in point else spec_of(point["model"], arguments))
        entries, variables = section.entries, grid.variables
        limits = JobLimits(
            parse_seconds(entries["timeout"]) if "timeout" in entries else self.limits.wall_seconds,
            parse_bytes(entries["memory"]) if "memory" in entries else self.limits.memory_bytes,
        )
        return Job(
            analysis=question.name,
            analysis_version=question.result.VERSION,
            spec=spec,
            parameters=registry.parameters_of(question, options),
            script_sha256=registry.script_sha256(question, model),
            size=model.parameter_count,
            limits=limits,
            tags=tuple(dict.fromkeys(entries.get("tags", ()))),
            priority=entries.get("priority", 0),
            name=self.names.get(spec),
            sweep={key: value for key, value in point.items() if key in variables},
        )

    def model(self, text: str) -> tuple[str, Model]:
        """A model by its spec, and the canonical spec; a file is read once and its content becomes the spec."""
        if text not in self.models:
            if text.strip().startswith("file:"):
                text_of_file = _inside(self.file.path.parent, text.strip().removeprefix("file:"))
                named = parse_spec(f"file:{text_of_file}")
                model = parse_spec(named.spec)
            elif is_code(text):  # refused unless --allow-code is given; the job holds the recorded program
                kind, path, name = parts_of(text)
                named = model = parse_spec(f"{kind}:{_inside(self.file.path.parent, str(path))}:{name}")
            else:
                named = model = parse_spec(text)
            self.models[text] = (model.spec, model)
            if named.own_name is not None:
                self.names[model.spec] = named.own_name
        return self.models[text]


def _inside(directory: Path, name: str) -> Path:
    """A file beside the job file or below it; nothing else is read."""
    pure = PurePosixPath(name)
    path = directory / name
    if pure.is_absolute() or ".." in pure.parts or not path.resolve().is_relative_to(directory.resolve()):
        raise InputError(
            f"file:{name[:80]}: a job file names only files in its own directory", argument="spec"
        )
    return path
