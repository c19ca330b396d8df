"""List the families by name, read spec strings, and describe models."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

import numpy as np

from m2bridge.errors import InputError, OutOfReachError, SpecError, suggestion
from m2bridge.families.attention_options import DeepLightning, Lightning, Softmax
from m2bridge.families.base import Formula, Model
from m2bridge.families.convolution import Convolution
from m2bridge.families.evaluation import random_image_points
from m2bridge.families.perceptron import MLP, Linear
from m2bridge.families.polynomial_map import read_inline
from m2bridge.families.spec import Arguments, argument_names, read
from m2bridge.families.target_grading import target_grading
from m2bridge.families.tensors import CP
from m2bridge.families.transformer import Transformer
from m2bridge.families.user_code import allowed_model, is_code
from m2bridge.families.user_network import read_file, read_program
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, prime_for

MOST_SPAN_COORDINATES = 2_000  # coordinates whose linear span `describe` computes
_SHOWN_COORDINATES = 12  # coordinates that `describe` names


@dataclass(frozen=True, slots=True)
class Family:
    """A family of models: its name in specs, a description, an example, its group in lists, and the function that builds one.

    `arguments` are the names of the arguments of its specs.
    """

    name: str
    summary: str
    example: str
    kind: str = "user-defined"
    build: Callable[[Arguments], Model] | None = None
    arguments: tuple[str, ...] = ()


def _family(kind: str, model: type[Model]) -> Family:
    return _options(kind, model.family, model, model.example, model.summary)


def _options(kind: str, name: str, build: Callable[..., Model], example: str, summary: str) -> Family:
    """Return a family whose arguments are those of a class, or of a function that sets options of a class."""
    return Family(
        name, summary, example, kind, lambda arguments: arguments.called(build), argument_names(build)
    )


def _multi_head(arguments: Arguments) -> Model:
    """Read one layer with several heads, whose number is required."""
    model = arguments.called(Lightning)
    if "heads" not in arguments.values:
        arguments.fail("multi-head requires heads=")
    return model


_LISTED = (
    _options(
        "attention", "lightning", Lightning, "lightning(d=2,dp=1,a=2,t=2)",
        "one layer of lightning self-attention, V X X^T A X",
    ),
    _options(
        "attention", "deep-lightning", DeepLightning, "deep-lightning(d=[3,3,3],a=[2,2],t=3)",
        "layers of lightning self-attention; heads=, skip=, parametrization=, causal=",
    ),
    Family(
        "multi-head", "one layer of lightning self-attention with several heads (short for deep-lightning)",
        "multi-head(d=3,dp=3,a=3,heads=2,t=2)", "attention", _multi_head, argument_names(Lightning),
    ),
    Family(
        "skip-lightning", "lightning self-attention with skip connections (short for deep-lightning)",
        "skip-lightning(d=[2,2,2],a=[2,2],t=2)", "attention",
        lambda arguments: arguments.changed(skip=True).called(DeepLightning), argument_names(DeepLightning),
    ),
    _options(
        "attention", "softmax", Softmax, "softmax(d=[3,3,3],a=[2,2],t=3)",
        "normalised self-attention; analytic, so it has a dimension but no ideal; causal=",
    ),
    _options(
        "attention", "attention", DeepLightning, "attention(d=[3,3],a=2,t=3,causal=true)",
        "self-attention with options: causal=, tied= (Q = K), r= (scores^r), positions=, softmax=, heads=, skip=",
    ),
    _family("attention", Transformer),
    _options(
        "perceptrons", "mlp", MLP, "mlp(widths=[2,3,2],r=2)",
        "perceptron with activation x^r; r=[2,3] for one exponent per hidden layer, bias=true",
    ),
    _options("perceptrons", "linear", Linear, "linear(widths=[3,2,3])", "product of matrices"),
    _family("convolutions", Convolution),
    _family("tensors", CP),
    Family(
        "file", "map or network in a file: name, variables, polynomials; or a saved program",
        "file:my_map.toml",
    ),
    Family(
        "program", "network as a program on one line, as in records; see from_callable and describe --program",
        "program:%0 = weight w [2];%1 = power 2 %0;output y %1",
    ),
    Family(
        "torch", "PyTorch module: a function that returns (module, input_shape); executes the file",
        "torch:my_net.py:build",
    ),
    Family(
        "python", "function of arrays, with shapes as annotations and inputs after a star; executes the file",
        "python:my_map.py:f",
    ),
    Family(
        "map", "polynomial or rational map on one line, such as map:x,y->x/y;1/(x+y)",
        "map:s,t->s^3;s^2*t;s*t^2;t^3",
    ),
)  # fmt: skip
FAMILIES = {family.name: family for family in _LISTED}
GROUP = "m2bridge.models"
"""Of entry points: ``gated = "my_package.gated:Gated"``."""


def imported(module: str) -> ModuleType:
    """Import a module of another package; an error names the module."""
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise InputError(f"{module}, of another package, cannot be imported: {error!r}") from error


@cache
def families() -> dict[str, Family]:
    """Return all families by name: built-in, from entry points, and classes with a ``family`` in ``M2BRIDGE_PLUGINS``."""
    modules = [point.module for point in entry_points(group=GROUP)]
    modules += filter(None, os.environ.get("M2BRIDGE_PLUGINS", "").split(","))
    objects = [item for name in dict.fromkeys(modules) for item in vars(imported(name)).values()]
    models = [c for c in objects if isinstance(c, type) and issubclass(c, Model)]
    classes = [c for c in models if c.__module__ in modules and "family" in vars(c)]
    return FAMILIES | {c.family: _family("other packages", c) for c in classes if c.family not in FAMILIES}


def parse_spec(text: str) -> Model:
    """Return the model that a spec string names.

    >>> parse_spec("lightning:d=2,dp=1") == parse_spec("lightning(d=2, dp=1, a=2, t=2)")
    True

    Raises
    ------
    ParseError
        A polynomial or a file cannot be read.
    SpecError
        The text cannot be read, the family does not exist, or the sizes are impossible; one line, with the position.
    """
    if not isinstance(text, str):
        raise SpecError(
            f"a spec is a string such as 'lightning(d=2,dp=1)', not the {type(text).__name__} {str(text)[:40]!r}"
        )
    text = text.strip()
    if is_code(text):
        return allowed_model(text)
    if text.startswith("file:"):
        return read_file(text.removeprefix("file:"))
    if text.startswith("map:"):
        return read_inline(text)
    if text.startswith("program:"):
        return read_program(text)
    arguments = read(text)
    family = FAMILIES.get(arguments.family) or families().get(arguments.family)
    if family is None:
        hint = suggestion(arguments.family, tuple(families()))
        raise SpecError(f"no family {arguments.family!r} (position 1); {hint}", text=text, position=1)
    if family.build is None:
        hint = f"write {family.name}:..., as in {family.example}"
        raise SpecError(f"{text[:80]}: {hint}", text=text, position=1)
    try:
        return family.build(arguments)
    except SpecError as error:
        argument = error.fields.get("argument")
        if argument is None:
            raise
        arguments.fail(error.message, argument)


def span_dim(model: Model) -> int | None:
    """Return the dimension of the linear span of the image: the rank of its coordinates at random points over F_p.

    Points are added until there are more points than the rank. The rank is a lower bound, and the dimension unless the points
    are special. None above 2,000 coordinates.

    >>> span_dim(parse_spec("lightning(d=2,dp=1,coordinates=full)"))
    6
    """
    if model.coordinate_count > MOST_SPAN_COORDINATES:
        return None
    p = prime_for(given_numbers(model), chosen=None, default=LARGE_PRIME)
    rng = np.random.default_rng(0)
    rows = np.zeros((0, model.coordinate_count), dtype=np.int64)
    size = 32
    while True:
        rows = np.concatenate([rows, random_image_points(model, rng, size, p)])
        rank = rank_mod(rows, p)
        if rank < len(rows) or rank == model.coordinate_count:
            return rank
        size = len(rows)


def describe(model: Model) -> dict[str, Any]:
    """Return parameters, target, symmetries, gradings, formula and bound of a model, as JSON values."""
    return {
        "spec": model.spec,
        "title": model.title,
        "family": model.family,
        "polynomial": model.polynomial,
        "parameters": {name: list(shape) for name, shape in model.parameters.items()},
        "variables": list(model.user.variables) or None,
        "parameter_count": model.parameter_count,
        "parameter_dim": model.parameter_dim,
        "free": model.free.spec if model.free is not model else None,
        "input_shape": None if model.input_shape is None else list(model.input_shape),
        "output_shape": None if model.output_shape is None else list(model.output_shape),
        **_target(model),
        "symmetries": [
            {"name": item.name, "group": item.group, "dim": item.dim, "citation": item.citation}
            for item in model.knowledge.symmetries
        ],
        "formula": _formula(model.knowledge.formula),
        "dimension_bound": _formula(model.knowledge.dimension_bound),
    }


def _target(model: Model) -> dict[str, Any]:
    """Describe the space of the image; all values are None if there is none, or if it has too many coordinates."""
    unknown = dict.fromkeys(("ambient_dim", "coordinate_count", "coordinates", "span_dim", "grading_rank"))
    if not model.polynomial:
        return unknown
    try:
        small = model.coordinate_count <= MOST_SPAN_COORDINATES
    except OutOfReachError:
        return unknown
    grading = target_grading(model) if small else None
    return {
        "ambient_dim": model.ambient_dim,
        "coordinate_count": model.coordinate_count,
        "coordinates": list(model.coordinate_names[:_SHOWN_COORDINATES]) if small else None,
        "span_dim": span_dim(model),
        "grading_rank": None if grading is None else int(np.linalg.matrix_rank(grading)),
    }


def _formula(formula: Formula | None) -> dict[str, Any] | None:
    if formula is None:
        return None
    hypotheses = [{"statement": text, "holds": holds} for text, holds in formula.hypotheses]
    return {"value": formula.value, "citation": formula.citation, "hypotheses": hypotheses}
