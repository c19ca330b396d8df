"""The point that a user gives: coordinates in the order that ``describe`` prints, input-output pairs, or weights. All exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from m2bridge.errors import InputError
from m2bridge.models import Model, PolynomialMap
from m2bridge.models.custom import terms_of
from m2bridge.models.symbolic import rational_variables, sparse
from m2bridge.programs.arithmetics import elementwise, object_array
from m2bridge.questions.boundary.points import number, written_point
from m2bridge.questions.point import given_point

_HOW = 'write a list of coordinates such as 1,0,-1/2, or {"inputs": [...], "outputs": [...]}, or {"weights": {...}}'


@dataclass(frozen=True, kw_only=True)
class Target:
    """The map whose image is asked, and the point: the model itself, or its outputs at the given inputs."""

    model: Model
    asked: Model
    values: tuple[Fraction, ...]

    @property
    def sentence(self) -> str:
        return "its coordinates" if self.asked is self.model else "its outputs at the given inputs"


def target_of(model: Model, point: Any) -> Target:
    """What ``--point`` means for a model: a text or file, a list, or an object."""
    value, source = written_point(point, _HOW) if isinstance(point, str) else (point, "the point")
    if isinstance(value, Mapping):
        if "weights" in value:
            given = given_point(model, value["weights"])
            image = np.asarray(model.coordinates(given.weights)).ravel()
            return Target(model=model, asked=model, values=tuple(Fraction(c) for c in image))
        if {"inputs", "outputs"} <= set(value):
            return _pairs(model, value["inputs"], value["outputs"], source)
        value = value.get("coordinates", value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError(f"{source} is no point; {_HOW}")
    numbers = tuple(number(entry, source) for entry in value)
    if len(numbers) != model.coordinate_count:
        raise InputError(
            f"{source} has {len(numbers)} coordinates; {model.spec} has {model.coordinate_count}, in the order that "
            "`m2bridge describe` prints"
        )
    return Target(model=model, asked=model, values=numbers)


def _pairs(model: Model, inputs: Any, outputs: Any, source: str) -> Target:
    """The outputs at some inputs as a polynomial map of the weights, and the outputs that are wanted."""
    if model.input_shape is None or model.output_shape is None:
        raise InputError(f"{source}: {model.spec} has no inputs; give its coordinates")
    if model.free is not model:
        raise InputError(f"{source}: {model.spec} has constrained weights; ask about {model.free.spec}")
    X, Y = (
        _array(value, shape, source)
        for value, shape in ((inputs, model.input_shape), (outputs, model.output_shape))
    )
    if len(X) != len(Y):
        raise InputError(f"{source}: {len(X)} inputs and {len(Y)} outputs")
    names = [f"w{i}" for i in range(model.parameter_count)]
    weights = model.unflatten(object_array(rational_variables(names), (len(names),)))
    zero = rational_variables(names)[0] * 0
    inputs = elementwise(lambda c: flint.fmpq(c.numerator, c.denominator), X)
    forms = [
        zero + entry for x in inputs for entry in np.asarray(model.forward(weights, x), dtype=object).ravel()
    ]
    asked = PolynomialMap(
        name=f"{model.spec} at {len(X)} inputs", variables=tuple(names),
        polynomials=tuple(terms_of(sparse(f)) for f in forms),
    )  # fmt: skip
    return Target(model=model, asked=asked, values=tuple(Y.ravel().tolist()))


def _array(value: Any, shape: tuple[int, ...], source: str) -> np.ndarray:
    found = np.array(value, dtype=object)
    if found.shape[1:] != shape:
        raise InputError(f"{source}: each should have shape {list(shape)}, in a list of them")
    return elementwise(lambda entry: number(entry, source), found)
