"""Batch: the questions a job may ask, by their name on the command line; found, not listed.

An analysis is a function ``name(model, *, engine, seed, limits, progress, ...)`` beside a result type registered under its
name. What else the function takes by keyword is an option of the job. Modules named in ``M2BRIDGE_PLUGINS`` (separated by
commas) are imported too, so that analyses of one's own can run in a batch.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union

from m2bridge._version import __version__
from m2bridge.errors import InputError, M2BridgeError
from m2bridge.models.base import Model
from m2bridge.models.spec import suggestion
from m2bridge.results import RESULT_TYPES, Result
from m2bridge.scripts import SUFFIX, template_directory, template_names, template_texts

_GIVEN_BY_THE_RUNNER = frozenset({"engine", "limits", "progress", "keep"})
_INCLUDE = re.compile(r'^--%\s*include\s+"([A-Za-z0-9_.]+)"', re.MULTILINE)
_QUOTED = re.compile(r"\"(\w+)\"")
_IMPORTED = re.compile(r"^\s*from (m2bridge\.questions\.[\w.]+) import", re.MULTILINE)
_ALWAYS = ("_params", "_emit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A question that jobs can ask.

    Attributes
    ----------
    name, version: of its result type.
    function: what answers it.
    options: keyword -> (type, default) of everything that a job may set.
    """

    name: str
    version: int
    function: Callable[..., Result]
    options: Mapping[str, tuple[Any, Any]]

    @property
    def prime_option(self) -> str | None:
        """The keyword that takes the characteristic: a job file always calls it ``prime``."""
        return next((word for word in ("prime", "field") if word in self.options), None)

    def parameters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Every option with its value: the given ones, and defaults for the others.

        Raises
        ------
        InputError
            An option is unknown or its value is of the wrong kind; field `argument`.
        """
        parameters = {
            name: default
            for name, (_, default) in self.options.items()
            if default is not inspect.Parameter.empty
        }
        for word, value in given.items():
            name = self.prime_option or word if word == "prime" else word
            if name not in self.options:
                known = suggestion(word, sorted(self.options))
                raise InputError(f"{self.name} has no option {word!r}; {known}", argument=word)
            if not _fits(self.options[name][0], value):
                raise InputError(f"{self.name}: {word} cannot be {value!r}", argument=word)
            parameters[name] = value
        missing = sorted(set(self.options) - set(parameters))
        if missing:
            raise InputError(f"{self.name} needs {', '.join(missing)}", argument=missing[0])
        return parameters

    def run(self, model: Model, parameters: Mapping[str, Any], **given: Any) -> Result:
        """Ask the question; of `given` (engine, limits, progress) it gets what it takes."""
        takes = inspect.signature(self.function).parameters
        return self.function(
            model, **parameters, **{name: value for name, value in given.items() if name in takes}
        )

    def script_sha256(self, model: Model) -> str:
        """A hash of every template that the answer may come from: the analysis's own and the model's."""
        try:
            partial: str | None = model.m2_partial
        except M2BridgeError:
            partial = None
        return _templates_sha256(self.function.__module__, self.name.replace("-", "_"), partial)


@cache
def versions() -> dict[str, str]:
    """What determines the answers of a process beside the questions: versions, and hashes of all templates and plugins.

    Templates are the texts that this process renders; see :func:`m2bridge.scripts.template_texts`.
    """
    numbers = {name: analysis.version for name, analysis in analyses().items()}
    texts = template_texts(template_directory())
    sources = {name: [path.read_text(encoding="utf-8") for path in _sources_of(name)] for name in plugins()}
    return {
        "m2bridge": __version__,
        "analyses": _sha256(numbers),
        "templates": _sha256(texts),
        "plugins": _sha256(sources),
    }


def digest() -> str:
    """One hash of :func:`versions`: two processes with the same digest give the same answers under the same keys."""
    return _sha256(versions())


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def plugins() -> list[str]:
    """The modules named in ``M2BRIDGE_PLUGINS``."""
    return [name for name in os.environ.get("M2BRIDGE_PLUGINS", "").split(",") if name]


@cache
def analyses() -> dict[str, Analysis]:
    """Every analysis by its name, e.g. ``singular-locus``."""
    importlib.import_module("m2bridge.questions")
    for plugin in plugins():
        importlib.import_module(plugin)
    found = {}
    for name, kind in sorted(RESULT_TYPES.items()):
        function = _function_of(kind)
        if function is not None:
            options = _options_of(function)
            found[name] = Analysis(name=name, version=kind.VERSION, function=function, options=options)
    return found


def find(name: str) -> Analysis:
    """The analysis of this name, or an error that names the nearest."""
    known = analyses()
    if name not in known:
        raise InputError(
            f"there is no analysis {name!r}; {suggestion(name, sorted(known))}", argument="analysis"
        )
    return known[name]


def _function_of(kind: type[Result]) -> Callable[..., Result] | None:
    """The function named like the analysis, in the result type's module or a package around it."""
    name, module = kind.ANALYSIS.replace("-", "_"), kind.__module__
    while module:
        function = getattr(sys.modules.get(module), name, None)
        if inspect.isfunction(function):
            first = next(iter(inspect.signature(function).parameters), None)
            return function if first == "model" else None
        module = module.rpartition(".")[0]
    return None


def _options_of(function: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    hints = typing.get_type_hints(function)
    return {
        name: (hints.get(name, Any), parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in _GIVEN_BY_THE_RUNNER
    }


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value from a job file is of an annotated type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return True
    if origin is Literal:
        return value in arguments
    if origin in (Union, types.UnionType):
        return any(_fits(choice, value) for choice in arguments)
    if isinstance(origin, type) and issubclass(origin, (list, tuple, typing.Sequence)):
        return isinstance(value, (list, tuple)) and all(_fits(arguments[0], item) for item in value)
    if kind is type(None):
        return value is None
    if isinstance(kind, type) and kind in (int, bool, str, float):
        return type(value) is kind or (kind is float and type(value) is int)
    return False


@cache
def _templates_sha256(module: str, prefix: str, partial: str | None) -> str:
    names = {*_templates_of(module, prefix), *_ALWAYS, *([partial] if partial is not None else [])}
    texts = template_texts(template_directory())
    digest = hashlib.sha256()
    queue = sorted(names)
    seen: set[str] = set()
    while queue:
        name = queue.pop(0)
        text = texts.get(f"{name}{SUFFIX}")
        if name in seen or text is None:
            continue
        seen.add(name)
        digest.update(f"{name}\n{len(text)}\n{text}".encode())
        queue += [included.removesuffix(SUFFIX) for included in _INCLUDE.findall(text)]
    return digest.hexdigest()


@cache
def _templates_of(module: str, prefix: str) -> frozenset[str]:
    """The templates that an analysis can ask: named like it, or named in its sources or in those of analyses it imports."""
    known = set(template_names())
    found = {name for name in known if name.split("_")[: prefix.count("_") + 1] == prefix.split("_")}
    queue, seen = [module], set[Path]()
    while queue:
        name = queue.pop()
        for path in _sources_of(name):
            if path in seen:
                continue
            seen.add(path)
            text = path.read_text(encoding="utf-8")
            found |= known.intersection(_QUOTED.findall(text))
            queue += _IMPORTED.findall(text)
    return frozenset(found)


def _sources_of(module: str) -> list[Path]:
    """The Python files of the analysis that a module belongs to."""
    if module.startswith("m2bridge.questions."):
        module = ".".join(module.split(".")[:3])
    spec = importlib.util.find_spec(module) if module in sys.modules else None
    if spec is None or spec.origin is None:
        return []
    origin = Path(spec.origin)
    return sorted(origin.parent.glob("*.py")) if origin.name == "__init__.py" else [origin]
