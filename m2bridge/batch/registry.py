"""The questions that a job can ask, their options, and the versions and hashes that determine their answers."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from m2bridge import records
from m2bridge._version import __version__
from m2bridge.engine import find_msolve
from m2bridge.errors import InputError, M2BridgeError, RecordError, suggestion
from m2bridge.families.base import Model
from m2bridge.questions import find, plugins, questions, source_of
from m2bridge.questions.kernel import MODEL, Question
from m2bridge.scripts import (
    SUFFIX,
    declared_text,
    is_library,
    needed_files,
    template_directory,
    template_texts,
)

_ALWAYS = ("_params", "_emit")


def options_of(question: Question[Any, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the type and the default of each option that a job can set, by name."""
    options = {name: (option.kind, option.default) for name, option in question.options.items()}
    options["seed"] = (int, 0)
    if question.takes_prime:
        options["prime"] = (int | None, None)
    return options


def parameters_of(question: Question[Any, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every option: that in `values`, or the default.

    Raises InputError with the field `argument` if an option is unknown or missing, or if its value has the wrong type.
    """
    options = options_of(question)
    for name, value in values.items():
        if name not in options:
            nearest = suggestion(name, sorted(options))
            raise InputError(f"{question.name} has no option {name!r}; {nearest}", argument=name)
        try:
            records.decode(options[name][0], value, name)
        except RecordError:
            raise InputError(f"{question.name}: {name} cannot be {value!r}", argument=name) from None
    declared = {name: value for name, value in values.items() if name in question.options}
    question.check(declared, values.get("prime"), values.get("seed", 0))
    parameters = {name: values.get(name, default) for name, (_, default) in options.items()}
    missing = sorted(name for name, value in parameters.items() if value is inspect.Parameter.empty)
    if missing:
        raise InputError(f"{question.name} requires {', '.join(missing)}", argument=missing[0])
    return parameters


def jobs() -> dict[str, Question[Any, Any]]:
    """Return the questions that a job can ask: those about a model."""
    return {name: question for name, question in questions().items() if question.subject is MODEL}


def job(name: str) -> Question[Any, Any]:
    """Return the question of this name. Raises InputError, with a suggestion, if there is none."""
    if name not in jobs():
        nearest = suggestion(name, sorted(jobs()))
        raise InputError(f"no analysis {name!r}; {nearest}", argument="analysis")
    return find(name)


@cache
def versions() -> dict[str, str]:
    """Return what determines the answers of this process: versions, and hashes of all templates and plugins.

    Templates are the texts that this process renders; see :func:`m2bridge.scripts.template_texts`.
    """
    texts = dict(template_texts(template_directory()))
    for question in questions().values():
        paths = (path for path in question.templates if isinstance(path, Path))
        texts |= {f"{question.name}: {path.name}": declared_text(path) for path in paths}
    sources = {name: path.read_text(encoding="utf-8") for name in plugins() if (path := source_of(name))}
    return {
        "m2bridge": __version__,
        "analyses": _sha256({name: question.result.VERSION for name, question in questions().items()}),
        "templates": _sha256(texts),
        "plugins": _sha256(sources),
        "msolve": msolve_version(),
    }


def msolve_version() -> str:
    """Return the version of the msolve in use; an empty text if there is none."""
    info = find_msolve()
    return "" if info is None else info.version


def digest() -> str:
    """Return a hash of :func:`versions`. Processes with equal digests give equal answers for equal keys."""
    return _sha256(versions())


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def templates_sha256(templates: Iterable[str | Path], model: Model | None) -> str:
    """Return a hash of all templates on which the answer may depend: `templates` and that of the model.

    For a family of another package the hash includes its program, because such a family has no version.
    """
    partial: str | Path | None = None
    if model is not None:
        with contextlib.suppress(M2BridgeError):
            partial = model.m2_partial
    digest = _templates_sha256((*templates, *_ALWAYS, *([partial] if partial is not None else [])))
    if model is None or type(model).__module__.startswith("m2bridge."):
        return digest
    return _sha256([digest, model.program.sha256])


@cache
def _templates_sha256(templates: tuple[str | Path, ...]) -> str:
    """Return a hash of templates and of all templates that they include, directly or indirectly."""
    declared = {path.name: declared_text(path) for path in templates if isinstance(path, Path)}
    texts = {**template_texts(template_directory()), **declared}
    library = (texts[name] for name in sorted(texts) if is_library(name))
    digest = hashlib.sha256("".join(library).encode())
    queue = sorted({t.name.removesuffix(SUFFIX) if isinstance(t, Path) else t for t in templates})
    seen: set[str] = set()
    while queue:
        name = queue.pop(0)
        text = texts.get(f"{name}{SUFFIX}")
        if name in seen or text is None:
            continue
        seen.add(name)
        digest.update(f"{name}\n{len(text)}\n{text}".encode())
        queue += [included.removesuffix(SUFFIX) for included in needed_files(text)]
    return digest.hexdigest()
