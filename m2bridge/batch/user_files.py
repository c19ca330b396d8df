"""Jobs about a file of the user: a Macaulay2 template (``analysis = "template"``) or an ideal (``analysis = "ideal"``).

The section names its file with the entry ``template`` or ``ideal``. A job contains the text of the file, not its path, so that
workers on other machines need no files, and the key of the record changes with the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from m2bridge.batch import registry
from m2bridge.batch.expansion import SectionReader, check_plain, spec_of
from m2bridge.batch.grid import Point
from m2bridge.batch.job import Job, UserFile
from m2bridge.batch.jobfile import FILE_ANALYSES
from m2bridge.engine import Engine
from m2bridge.errors import InputError
from m2bridge.families import Model, parse_spec
from m2bridge.frontends.ideals import read_ideal
from m2bridge.limits import Clock, Limits
from m2bridge.literals import literal
from m2bridge.questions import find
from m2bridge.questions.custom_template import Template, TemplateValues, run_template
from m2bridge.questions.kernel import Question
from m2bridge.results import Result
from m2bridge.scripts import declared_parameters, with_includes

LARGEST_FILE = 2**20  # bytes of a file of a user that is copied into a job
_COMMON = ("seed", "prime")


class FileSectionReader(SectionReader):
    """Expands a section about files of the user."""

    @property
    def _analysis(self) -> str:
        return str(self.entries["analysis"])

    def _check_names(self) -> None:
        """Read the files, which must be in the directory of the job file, and check the other names."""
        super()._check_names()
        self.files: dict[str, UserFile] = {}
        for name in self._constants(self._analysis):
            try:
                path = self.models.path_inside(str(name), self._analysis)
                self.files[name] = read_file(self._analysis, path, runs="run" in self.entries)
            except InputError as error:
                self.report(self._analysis, error.message)

    def _option_names(self, _: str) -> Iterable[str]:
        """Return the names that the section may set: options of `ideal`, or parameters that the templates declare."""
        if self._analysis == "ideal":
            return registry.options_of(find("ideal"))
        declared = (declared_parameters(file.text) for file in self.files.values())
        return [*_COMMON, *sorted(frozenset().union(*declared))]

    def _job(self, point: Point) -> Job:
        """Make the job at a point."""
        file = self.files[point[self._analysis]]
        arguments, values = self._split(point)
        model, spec = None, "none"
        if "spec" in point or "model" in point:
            spec = point["spec"] if "spec" in point else spec_of(point["model"], arguments)
            model, _ = self.models.of(spec)
        is_ideal = self._analysis == "ideal"
        parameters = _ideal_parameters(values) if is_ideal else _template_parameters(values)
        return self._job_with(
            point,
            analysis=self._analysis,
            analysis_version=find("ideal").result.VERSION if is_ideal else TemplateValues.VERSION,
            spec="ideal" if is_ideal else spec if model is None else model.spec,
            parameters=parameters,
            script_sha256=_script_sha256(self._analysis, model),
            size=0 if model is None else model.parameter_count,
            name=file.name if model is None else f"{file.name} {model.user.name or model.spec}",
            file=file,
        )

    def _split(self, point: Point) -> tuple[Point, Point]:
        """Split the entries of a point into arguments of its model and values of the template or options of `ideal`."""
        arguments, values = super()._split({key: v for key, v in point.items() if key not in FILE_ANALYSES})
        if "model" not in point:
            return {}, {**arguments, **values}
        return arguments, values


def _template_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for a template and the seed; those that cannot be written in a script are rejected."""
    for name, value in values.items():
        try:
            literal(value)
        except InputError as error:
            raise InputError(f"{name}: {error.message}", argument=name) from None
    return {"seed": 0, **values}


def _ideal_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in values.items():
        check_plain(name, value)
    return registry.parameters_of(find("ideal"), values)


def _script_sha256(analysis: str, model: Model | None) -> str:
    templates = find("ideal").templates if analysis == "ideal" else ()
    return registry.templates_sha256(templates, model)


def read_file(analysis: str, path: Path, *, runs: bool = False) -> UserFile:
    """Read a template, with the files beside it that it includes, or an ideal, which may be a script if the job `runs` it.

    Raises InputError if it is not valid.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path.name}: a file in a batch has at most {LARGEST_FILE:,} bytes")
    except OSError as error:
        raise InputError(f"{path.name}: {error.strerror}") from None
    text = with_includes(path)
    try:
        if analysis == "template":
            declared_parameters(text)
        elif not runs:
            read_ideal(text)
    except InputError as error:
        raise InputError(f"{path.name}: {error.message}") from None
    return UserFile(path.name, text)


def answer(
    job: Mapping[str, Any], *, engine: Engine, limits: Limits, clock: Clock, progress: Callable[[str], None]
) -> Result:
    """Answer a job about a file, in a worker."""
    file = UserFile(**job["file"])
    parameters = dict(job["parameters"])
    if job["analysis"] == "ideal":
        question: Question[Any, Result] = find("ideal")
        return question(file.text, **parameters, engine=engine, limits=limits, clock=clock, progress=progress)
    model = None if job["model"] == "none" else parse_spec(job["model"])
    return run_template(
        Template(file.name, file.text), parameters, model=model, seed=parameters.pop("seed", 0),
        prime=parameters.pop("prime", None), engine=engine, limits=limits, clock=clock, progress=progress,
    )  # fmt: skip
