"""Batch: what a job may ask: a declared question with its options, and what determines its answers."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import types
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union

from m2bridge._version import __version__
from m2bridge.errors import InputError, M2BridgeError, suggestion
from m2bridge.families.base import Model
from m2bridge.questions import find, plugins, questions, source_of
from m2bridge.questions.kernel import MODEL, Question
from m2bridge.scripts import SUFFIX, declared_text, template_directory, template_texts

_INCLUDE = re.compile(r'^--%\s*include\s+"([A-Za-z0-9_.]+)"', re.MULTILINE)
_ALWAYS = ("_params", "_emit")


def options_of(question: Question[Any, Any]) -> dict[str, tuple[Any, Any]]:
    """Keyword -> (type, default) of everything that a job may set."""
    found = {name: (own.kind, own.default) for name, own in question.options.items()}
    found["seed"] = (int, 0)
    if question.takes_prime:
        found["prime"] = (int | None, None)
    return found


def parameters_of(question: Question[Any, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option with its value: the given ones, and defaults for the others; an InputError with the field `argument` when an
    option is unknown or missing, or its value is of the wrong kind.
    """
    options = options_of(question)
    for word, value in given.items():
        if word not in options:
            known = suggestion(word, sorted(options))
            raise InputError(f"{question.name} has no option {word!r}; {known}", argument=word)
        if not _fits(options[word][0], value):
            raise InputError(f"{question.name}: {word} cannot be {value!r}", argument=word)
    own = {word: value for word, value in given.items() if word in question.options}
    question.check(own, given.get("prime"), given.get("seed", 0))
    parameters = {name: given.get(name, default) for name, (_, default) in options.items()}
    missing = sorted(name for name, value in parameters.items() if value is inspect.Parameter.empty)
    if missing:
        raise InputError(f"{question.name} needs {', '.join(missing)}", argument=missing[0])
    return parameters


def jobs() -> dict[str, Question[Any, Any]]:
    """The questions that a job may ask: those about a model."""
    return {name: question for name, question in questions().items() if question.subject is MODEL}


def job(name: str) -> Question[Any, Any]:
    """The question of this name, or an error that names the nearest."""
    if name not in jobs():
        known = suggestion(name, sorted(jobs()))
        raise InputError(f"there is no analysis {name!r}; {known}", argument="analysis")
    return find(name)


@cache
def versions() -> dict[str, str]:
    """What determines the answers of a process beside the questions: versions, and hashes of all templates and plugins.

    Templates are the texts that this process renders; see :func:`m2bridge.scripts.template_texts`.
    """
    texts = dict(template_texts(template_directory()))
    for question in questions().values():
        own = (path for path in question.templates if isinstance(path, Path))
        texts |= {f"{question.name}: {path.name}": declared_text(path) for path in own}
    sources = {name: path.read_text(encoding="utf-8") for name in plugins() if (path := source_of(name))}
    return {
        "m2bridge": __version__,
        "analyses": _sha256({name: question.result.VERSION for name, question in questions().items()}),
        "templates": _sha256(texts),
        "plugins": _sha256(sources),
    }


def digest() -> str:
    """One hash of :func:`versions`: two processes with the same digest give the same answers under the same keys."""
    return _sha256(versions())


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


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


def script_sha256(question: Question[Any, Any], model: Model) -> str:
    """A hash of every template that the answer may come from: the question's own and the model's.

    The forward pass of a family of another package has no version, and is part of it.
    """
    try:
        partial: str | Path | None = model.m2_partial
    except M2BridgeError:
        partial = None
    found = _templates_sha256((*question.templates, *_ALWAYS, *([partial] if partial is not None else [])))
    return found if type(model).__module__.startswith("m2bridge.") else _sha256([found, model.program.sha256])


@cache
def _templates_sha256(templates: tuple[str | Path, ...]) -> str:
    own = {path.name: declared_text(path) for path in templates if isinstance(path, Path)}
    texts = {**template_texts(template_directory()), **own}
    digest = hashlib.sha256()
    queue = sorted({t.name.removesuffix(SUFFIX) if isinstance(t, Path) else t for t in templates})
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
