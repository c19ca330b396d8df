"""List and find questions, one per file or package.

Those of m2bridge are in the table :data:`QUESTIONS`, those of other packages are announced by entry points or named in
``M2BRIDGE_PLUGINS``. :func:`sentences` lists them all, :func:`find` imports one.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from m2bridge.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from m2bridge.questions.kernel import Question

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Option:
    """Describe an option of a question: ``degree: Annotated[int, Option("Largest degree.")] = 2``.

    `flag` is its name on the command line (default: the name of the parameter), `read` converts the text (default: its type), and
    `cli_default` is its default value on the command line (default: that of the parameter).
    """

    help: str
    flag: str | None = None
    least: int | None = None
    read: Callable[[str], Any] | None = None
    cli_default: Any = None


ForceOption = Annotated[bool, Option("Attempt computations that are estimated to be infeasible.")]


@dataclass(frozen=True, slots=True)
class DeclaredOption:
    """An option of a question: name, type, default value, and the :class:`Option` that describes it."""

    name: str
    kind: Any
    default: Any
    option: Option

    @property
    def cli_default(self) -> Any:
        """Return the default value on the command line."""
        return self.default if self.option.cli_default is None else self.option.cli_default

    def check(self, value: Any) -> None:
        """Raise InputError if an integer is declared and `value` is not one, or is too small."""
        if self.kind == int | None and value is None:
            return
        if self.kind in (int, int | None):
            check_number(self.name, value, self.option.least)


def check_number(name: str, value: Any, least: int | None) -> None:
    """Raise InputError unless the value of an option is an integer (of Python or NumPy) that is not too small."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{name} should be an integer, not {value!r}", argument=name)
    if least is not None and value < least:
        raise InputError(f"{name} should be at least {least}, not {value}", argument=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Generic[S]):
    """The kind of object that a question is about: conversion in Python, reading from the command line, and help text."""

    of: Callable[[Any], S]
    read: Callable[[str], S]
    metavar: str
    help: str


SPEC: Subject[str] = Subject(
    of=str,
    read=str,
    metavar="SPEC",
    help="Specification of a model, e.g. 'lightning(d=2,dp=1)'; see m2bridge models.",
)
"""A model by its spec, for the help; :data:`m2bridge.questions.kernel.MODEL` reads it."""

QUESTIONS = {
    "boundary": "Image, relative boundary and Zariski closure of one attention layer; optionally the location of a point.",
    "closure": "Equations of the Zariski closure of the image of a network, and whether they are complete.",
    "critical-points": "Critical points of the squared loss on the functions of a network: number, types, and real ones.",
    "dimension": "Dimension of the neuromanifold and of the generic fiber, by lower and upper bounds.",
    "fiber": "The fiber through a point (all weights with the same function), and whether symmetries explain it.",
    "ideal": "Dimension, degree, Hilbert series, radical, components and singular locus of a given ideal.",
    "membership": "Whether a function lies in the closure, the complex image and the real image of a model, "
    "with weights or a proof.",
    "same": "Whether two sets of weights define the same function, and whether symmetries relate them.",
    "singular-locus": "Singular locus of the closure of the image: components, equations, and strata of the weights or orbits.",
    "singular-point": "Whether the function of given weights is a singular point of the closure, for any polynomial model.",
    "identifiable": "Which functions of the weights are determined by the function of the network, and up to what.",
    "symmetries": "Symmetries of a network: groups derived from its program, and verified vector fields.",
}
"""The questions of this package and their descriptions; the module has the name of the question. The list of commands uses this
table, so that it imports no question; a test compares it with the declarations."""

GROUP = "m2bridge.questions"
"""Of entry points: ``linear-span = "my_package.linear_span:linear_span"``."""


def plugins() -> list[str]:
    """Return the modules named in ``M2BRIDGE_PLUGINS``."""
    return [name for name in os.environ.get("M2BRIDGE_PLUGINS", "").split(",") if name]


def source_of(module: str) -> Path | None:
    """Return the file of a module; None when there is none."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):  # a package that is not there, or no name
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _declared_in(module: str) -> dict[str, Question[Any, Any]]:
    """Return the questions that a module of another package declares."""
    from m2bridge.families.catalogue import imported
    from m2bridge.questions.kernel import Question

    declared = [value for value in vars(imported(module)).values() if isinstance(value, Question)]
    return {question.name: question for question in declared if question.name not in QUESTIONS}


@cache
def _entry_points() -> dict[str, EntryPoint]:
    """Return the questions of installed packages, from entry points; reading these takes a tenth of a second."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP) if point.name not in QUESTIONS}


def sentences() -> dict[str, str]:
    """Return the description of each question, by its name on the command line.

    Modules of ``M2BRIDGE_PLUGINS`` are imported if possible; for entry points only the package is named.
    """
    descriptions = dict(QUESTIONS)
    for name, point in _entry_points().items():
        descriptions[name] = (
            f"A question of the package {point.dist.name if point.dist is not None else point.module}."
        )
    for module in plugins():
        with contextlib.suppress(InputError):
            descriptions |= {name: question.asks for name, question in _declared_in(module).items()}
    return dict(sorted(descriptions.items()))


def find(name: str) -> Question[Any, Any]:
    """Return the question of this name, or an error that names the nearest."""
    if name in QUESTIONS:
        function = name.replace("-", "_")
        question: Question[Any, Any] = getattr(importlib.import_module(f"{__name__}.{function}"), function)
        return question
    for module in plugins():
        if source_of(module) is not None and name in (declared := _declared_in(module)):
            return declared[name]
    if name in _entry_points():
        return _announced(_entry_points()[name])
    from m2bridge.errors import suggestion

    raise InputError(f"no question {name!r}; {suggestion(name, sorted(sentences()))}", argument="analysis")


def _announced(point: EntryPoint) -> Question[Any, Any]:
    """Return the question that an entry point names."""
    from m2bridge.families.catalogue import imported

    question: Question[Any, Any] | None = getattr(imported(point.module), point.attr, None)
    if question is None:
        raise InputError(
            f"the entry point {point.name!r} names {point.module}:{point.attr}, which does not exist"
        )
    if question.name != point.name:
        raise InputError(
            f"the entry point {point.name!r} must have the name of its question, {question.name!r}"
        )
    return question


def questions() -> dict[str, Question[Any, Any]]:
    """Return every question by its name, e.g. ``singular-locus``; a missing plugin is an error."""
    if missing := [name for name in plugins() if source_of(name) is None]:
        raise InputError(f"M2BRIDGE_PLUGINS names {missing[0]!r}, which cannot be found")
    return {name: find(name) for name in sentences()}
