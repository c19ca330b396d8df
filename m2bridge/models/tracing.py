"""Models stage: a user's own network, as a program.

:func:`from_callable` turns any Python function of arrays written with ``+ - * @``, powers, transposes and
indexing into a model: the function is run over F_p, over floats and over polynomials. A division or an
``exp`` in it is a clear error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import InputError, M2BridgeError, NotPolynomialError, OutOfReachError, SpecError
from m2bridge.models.arrays import Mod
from m2bridge.models.base import Model, Shape, Weights
from m2bridge.models.custom import Terms, polynomials_for_macaulay2, terms_of
from m2bridge.models.network import monomial_name
from m2bridge.models.symbolic import rational_variables, sparse, variable_array
from m2bridge.models.systems import PolynomialSystem
from m2bridge.models.tape import Node

_MOST_VARIABLES = 400


@dataclass(frozen=True, kw_only=True)
class TracedNetwork(Model):
    """A model made from a function; see :func:`from_callable`.

    It lives in the Python session: its spec names it but cannot be parsed.
    """

    family: ClassVar[str] = "traced"

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[str, Shape], ...]
    input_name: str | None = None
    shape_of_input: Shape | None = None
    shape_of_output: Shape = field(default=())

    @property
    def spec(self) -> str:
        return f"traced({self.name})"

    @property
    def title(self) -> str:
        return f"traced network {self.name}, {self.parameter_count} weights"

    @property
    def parameters(self) -> dict[str, Shape]:
        return dict(self.shapes)

    @property
    def input_shape(self) -> Shape | None:
        return self.shape_of_input

    @property
    def output_shape(self) -> Shape | None:
        return self.shape_of_output if self.shape_of_input is not None else None

    def forward(self, weights: Weights, inputs: Any) -> Any:
        """The function itself; leading axes of `inputs` are batches, the function sees one input."""
        if self.input_name is None or self.shape_of_input is None:
            raise TypeError(f"{self.spec} has no inputs")
        if isinstance(inputs, Node):
            return self._called(weights, inputs)
        batch = inputs.shape[: inputs.ndim - len(self.shape_of_input)]
        flat = Node(inputs.reshape(prod(batch), *self.shape_of_input), batched=True)
        nodes = {name: Node(weights[name]) for name in self.parameters}
        result = self._called(nodes, flat)
        value = (
            result.value
            if result.batched
            else result.value + (flat.value * 0).reshape(prod(batch), -1)[:, :1]
        )
        return value.reshape(*batch, *self.shape_of_output)

    def _called(self, weights: Weights, inputs: Any = None) -> Node:
        arguments = {name: weights[name] for name in self.parameters}
        if self.input_name is not None:
            arguments[self.input_name] = inputs
        return _run(self.function, arguments, self.name)

    @cached_property
    def _symbolic(self) -> tuple[tuple[tuple[int, ...], ...], tuple[Terms, ...]]:
        """Monomials in the inputs that occur, and coordinates: output entry by output entry, monomial by
        monomial.
        """
        inputs = prod(self.shape_of_input or (0,))
        if self.parameter_count + inputs > _MOST_VARIABLES:
            raise OutOfReachError(
                f"{self.spec} has {self.parameter_count + inputs} variables, too many to expand symbolically",
                estimate=self.parameter_count + inputs,
            )
        names = [f"w{i}" for i in range(self.parameter_count)] + [f"x{i}" for i in range(inputs)]
        variables = rational_variables(names)
        nodes = {name: Node(variable_array(variables, shape)) for name, shape in self.shapes}
        columns = self.shape_of_input or ()
        given = variable_array(variables, tuple(reversed(columns))).T if inputs else None
        entries = [
            sparse(entry)
            for entry in self._called(nodes, None if given is None else Node(given)).value.reshape(-1)
        ]
        if not inputs:
            return ((),), tuple(terms_of(entry) for entry in entries)
        return _split(entries, self.parameter_count)

    @cached_property
    def system(self) -> PolynomialSystem:
        """The coordinates as polynomials in the weights."""
        return PolynomialSystem([dict(terms) for terms in self._symbolic[1]], self.parameter_count)

    def coordinates(self, weights: Weights) -> Any:
        return self.system(self.flatten(weights))

    def coordinate_jacobian(self, weights: Weights) -> Any:
        return self.system.jacobian(self.flatten(weights))

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        outputs = ["y" + _index(i) for i in np.ndindex(self.shape_of_output)]
        if self.shape_of_input is None:
            return tuple(outputs)
        inputs = ["x" + _index(tuple(reversed(i))) for i in np.ndindex(tuple(reversed(self.shape_of_input)))]
        terms = [monomial_name(row, inputs) for row in self._symbolic[0]]
        return tuple(f"{output}: {term}" for output in outputs for term in terms)

    @property
    def m2_partial(self) -> str:
        return "_custom"

    @property
    def m2_parameters(self) -> dict[str, object]:
        return polynomials_for_macaulay2(self.parameter_count, self._symbolic[1])


def _index(index: tuple[int, ...]) -> str:
    return "[" + ",".join(str(i + 1) for i in index) + "]" if index else ""


def _split(
    entries: list[dict[tuple[int, ...], Any]], weights: int
) -> tuple[tuple[tuple[int, ...], ...], tuple[Terms, ...]]:
    """Sort terms by their monomial in the inputs: by degree, then descending lexicographically."""
    found = {key[weights:] for entry in entries for key in entry}
    monomials = sorted(found, key=lambda m: (sum(m), tuple(-e for e in m)))
    coordinates: list[Terms] = []
    for entry in entries:
        by_monomial: dict[tuple[int, ...], dict[tuple[int, ...], Any]] = {m: {} for m in monomials}
        for key, value in entry.items():
            by_monomial[key[weights:]][key[:weights]] = value
        coordinates += [terms_of(by_monomial[m]) for m in monomials]
    return tuple(monomials), tuple(coordinates)


def _run(function: Callable[..., Any], arguments: dict[str, Any], name: str) -> Node:
    try:
        result = function(**arguments)
    except NotPolynomialError as error:
        verdict = "" if error.fields.get("unsupported") else " is not polynomial"
        raise NotPolynomialError(f"{name}{verdict}: {error.message}") from error
    except M2BridgeError:
        raise
    except Exception as error:
        raise InputError(f"{name} failed while it was traced: {type(error).__name__}: {error}") from error
    if isinstance(result, (list, tuple)) and any(isinstance(part, Node) for part in result):
        result = np.stack(result)
    if not isinstance(result, Node):
        raise InputError(
            f"{name} should return an array made from its arguments, not a {type(result).__name__}"
        )
    return result


def from_callable(
    function: Callable[..., Any],
    shapes: Mapping[str, Shape],
    *,
    inputs: Mapping[str, Shape] | None = None,
    name: str | None = None,
) -> TracedNetwork:
    """A model from a Python function of arrays.

    Parameters
    ----------
    function
        Called with keyword arguments; uses ``+ - * @``, ``**``, ``.T``, indexing, ``sum``,
        ``np.concatenate``, ``np.stack``, ``np.einsum``, ``np.dot``, ``np.tensordot``, ``np.outer``, ``np.trace``.
    shapes
        Names and shapes of the weights.
    inputs
        Name and shape of the input; without it the function's values are themselves the coordinates.

    Raises
    ------
    NotPolynomialError
        The function divides, takes an exponential, compares, or asks NumPy for something else that is not
        polynomial or not supported.

    Examples
    --------
    >>> def attention(X, A, V):
    ...     return V @ X @ X.T @ A @ X
    >>> model = from_callable(attention, {"A": (2, 2), "V": (1, 2)}, inputs={"X": (2, 2)})
    >>> model.coordinate_count, model.output_shape
    (40, (1, 2))
    """
    label = str(name or getattr(function, "__name__", "function"))
    given = dict(inputs or {})
    if len(given) > 1:
        raise SpecError(f"{label}: a network has one input, not {len(given)}")
    weights = {key: tuple(int(n) for n in shape) for key, shape in shapes.items()}
    if not weights or set(weights) & set(given):
        raise SpecError(f"{label}: give names and shapes of the weights, different from the input's")
    if any(n < 1 for shape in [*weights.values(), *given.values()] for n in shape):
        raise SpecError(f"{label}: every size should be at least 1")
    input_name, input_shape = next(iter(given.items()), (None, None))
    p = 101
    probe = {key: Node(Mod(np.ones(shape, dtype=np.int64), p)) for key, shape in (weights | given).items()}
    result = _run(function, probe, label)
    return TracedNetwork(
        name=label,
        function=function,
        shapes=tuple(weights.items()),
        input_name=input_name,
        shape_of_input=tuple(input_shape) if input_shape is not None else None,
        shape_of_output=result.shape,
    )
