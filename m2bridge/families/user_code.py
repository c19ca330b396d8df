"""Models from a Python file of the user: ``torch:my_net.py:build``, ``torch:my_net.py:build(width=8)``, ``python:my_map.py:f``.

With parentheses, as in ``build(width=8)``, the function is called and returns the network. The arguments are integers, words,
booleans and lists of integers, as in every spec.
Reading such a spec executes the file. This is allowed for a spec on the command line, and otherwise requires
``M2BRIDGE_ALLOW_CODE`` (``--allow-code``); a spec in a record or a job file executes nothing. The model is the recorded program,
so that records and jobs contain the network and do not need the file.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from m2bridge.errors import InputError, M2BridgeError, SpecError, suggestion
from m2bridge.families.base import Shape
from m2bridge.families.spec import Value, read
from m2bridge.families.user_network import UserNetwork, from_callable, from_torch

ALLOW = "M2BRIDGE_ALLOW_CODE"
_announced: set[Path] = set()


def is_code(text: str) -> bool:
    """Return whether a spec names a file that must be executed."""
    return text.strip().startswith(("torch:", "python:"))


@contextmanager
def allowing(code: bool) -> Iterator[None]:
    """Allow reading specs of code within the context if `code` is true, as ``--allow-code`` does for a job file."""
    before = os.environ.get(ALLOW, "")
    os.environ[ALLOW] = "1" if code else before
    try:
        yield
    finally:
        os.environ[ALLOW] = before


def allowed_model(text: str) -> UserNetwork:
    """Return the model of such a spec if the environment allows executing its file; raise an error otherwise."""
    if os.environ.get(ALLOW, "") not in ("1", "yes", "true"):
        raise SpecError(
            f"{text[:80]} executes a file. This is done for a spec on the command line; elsewhere it requires --allow-code "
            f"or {ALLOW}=1. In Python, use m2bridge.from_torch or m2bridge.from_callable",
            text=text,
        )
    return model_from_code(text)


def model_from_code(text: str) -> UserNetwork:
    """Execute a file and return the model built by one of its functions; a message on stderr is printed once.

    What the file prints goes to stderr, because stdout may be a document.
    """
    with redirect_stdout(sys.stderr):
        return _executed(text)


def _executed(text: str) -> UserNetwork:
    kind, path, call = split_spec(text)
    name, arguments = call, {}
    if not call.isidentifier():
        parsed = read(call)
        name, arguments = parsed.family, parsed.values
    if kind == "torch" and importlib.util.find_spec("torch") is None:
        raise InputError(f"{text[:80]}: PyTorch is not installed here; pip install 'm2bridge[torch]'")
    if path not in _announced and path.is_file():
        _announced.add(path)
        print(f"executing the file {path}", file=sys.stderr)
    with _located_errors(path):
        module = _module(path)
    definition = getattr(module, name, None)
    if definition is None:
        names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise InputError(f"{path} has no {name!r} at its top level; {suggestion(name, names)}")
    if call != name:
        definition = _called(definition, arguments, path, name)
    return _from_torch(definition, path, call) if kind == "torch" else _from_function(definition, path, call)


def split_spec(text: str) -> tuple[str, Path, str]:
    """Return the kind, the file and the call of ``torch:my_net.py:build`` or ``torch:my_net.py:build(width=8)``."""
    kind, _, location = text.strip().partition(":")
    path, _, call = location.rpartition(":")
    name, opening, _ = call.partition("(")
    if not path or not name.isidentifier():
        message = f"{text[:80]}: write {kind}:FILE.py:NAME, as in {kind}:my_net.py:build"
        raise SpecError(message, text=text, position=1)
    if opening:
        read(call)
    return kind, Path(path), call


def _called(function: Any, arguments: Mapping[str, Value], path: Path, name: str) -> Any:
    """Return the network that a function of the file returns for these arguments."""
    if not callable(function):
        raise InputError(f"{path}: {name} is a {type(function).__name__}, not a function")
    with _located_errors(path):
        names = list(inspect.signature(function).parameters)
        if unknown := [argument for argument in arguments if argument not in names]:
            raise InputError(
                f"{path}: {name} has no argument {unknown[0]!r}; {suggestion(unknown[0], names)}"
            )
        return function(**arguments)


def _module(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    spec = importlib.util.spec_from_file_location(f"_m2bridge_user_{path.stem}", path.resolve())
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


@contextmanager
def _located_errors(path: Path) -> Iterator[None]:
    """Convert errors of the user's file to InputErrors that name its line."""
    try:
        yield
    except M2BridgeError:
        raise
    except SyntaxError as error:
        raise InputError(f"{path}, line {error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:  # exit codes are those of m2bridge
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path.resolve())]
        line = f", line {frames[-1].lineno}" if frames else ""
        raise InputError(f"{path}{line}: {type(error).__name__}: {error}") from error


def _from_torch(definition: Any, path: Path, name: str) -> UserNetwork:
    """Return the model of a module with its input shape: ``return module, (3, 4)``, or ``module.input_shape``."""
    if callable(definition) and not hasattr(definition, "named_parameters"):
        with _located_errors(path):
            definition = definition()
    module, shape = (
        definition if isinstance(definition, tuple) and len(definition) == 2 else (definition, None)
    )
    shape = getattr(module, "input_shape", None) if shape is None else shape
    if shape is None:
        raise InputError(
            f"{path}: {name} has no input shape; let it return (module, input_shape), "
            "or give the module an attribute input_shape"
        )
    return from_torch(module, shape, name=name if type(module).__name__ == "Sequential" else None)


def _from_function(function: Any, path: Path, name: str) -> UserNetwork:
    """Return the model of a function whose annotations are shapes: weights first, inputs after ``*``."""
    if not inspect.isfunction(function):
        raise InputError(f"{path}: {name} is a {type(function).__name__}, not a function of arrays")
    weights: dict[str, Shape] = {}
    inputs: dict[str, Shape] = {}
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.annotation is parameter.empty and parameter.default is not parameter.empty:
            continue  # a constant of the function, such as an exponent
        shape = _shape(parameter.annotation)
        if shape is None or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InputError(
                f"{path}: {name} has no shape for {key!r}; write shapes as annotations, with lengths from 1 on, inputs "
                f"after a star: def {name}(W1: (3, 2), W2: (1, 3), *, x: (2,))"
            )
        (inputs if parameter.kind is parameter.KEYWORD_ONLY else weights)[key] = shape
    if not weights:
        raise InputError(
            f"{path}: {name} has no weights; weights are the arguments before the star, with shapes as annotations"
        )
    return from_callable(function, weights, inputs=inputs, name=name)


def _shape(annotation: Any) -> Shape | None:
    if isinstance(annotation, str):  # the file begins with: from __future__ import annotations
        try:
            annotation = ast.literal_eval(annotation)
        except (ValueError, SyntaxError):
            return None
    shape = (annotation,) if isinstance(annotation, int) else annotation
    fits = isinstance(shape, tuple) and all(type(n) is int and n > 0 for n in shape)
    return shape if fits else None
