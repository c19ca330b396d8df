"""Define models: parametrizations of families of functions.

A model is a polynomial (or, for softmax, analytic) map from weights to functions. Its forward pass is an ordinary Python function
(:meth:`Model.network`), which is recorded once as a program; every arithmetic interprets this program. The second definition of
the network is a Macaulay2 partial, which shares no code with the first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import comb, prod
from typing import Any, ClassVar

import numpy as np

from m2bridge.boxes import card
from m2bridge.errors import NotPolynomialError, OutOfReachError
from m2bridge.families import evaluation
from m2bridge.families.knowledge import NOTHING_KNOWN, Formula, Knowledge
from m2bridge.families.spec_fields import SpecFields
from m2bridge.families.symmetries import Symmetry
from m2bridge.families.user_definition import NOTHING_WRITTEN, UserDefinition
from m2bridge.frontends.polynomials import polynomial_text
from m2bridge.frontends.recording import record_call
from m2bridge.linear.primes import GivenNumbers
from m2bridge.linear.residues import Mod
from m2bridge.programs.coefficients import monomials
from m2bridge.programs.evaluation import Weights, run
from m2bridge.programs.instructions import Shape, split_flat
from m2bridge.programs.program import Program
from m2bridge.views import shorten

__all__ = ["Constraints", "Formula", "Knowledge", "Model", "NetworkModel", "Shape", "Symmetry", "Weights"]

MOST_COORDINATES = 500_000  # coefficients of a network that are listed one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """The parameter space of a model as a subset of the space of all weights of its shapes.

    Attributes
    ----------
    free: a model with the same image whose weights are arbitrary; the model itself where its weights are.
    from_free: converts weights of `free` to weights of the model.
    rank_bounds: weights whose rank is bounded below their size, and the bounds.
    has_equations: whether the partial contains equations of the parameter space, so that its dimension is certain.
    """

    free: Model
    from_free: Callable[[Weights], Weights] = lambda weights: weights
    rank_bounds: Mapping[str, int] = field(default_factory=dict)
    has_equations: bool = True


class Model(SpecFields):
    """A parametrization: weights in, a function (or a vector of coordinates) out.

    Subclasses are frozen dataclasses whose fields are the arguments of the spec string, and of the Macaulay2 partial. A family
    defines its parameters, its forward pass, its title and its knowledge; everything else follows from its fields.
    """

    # -- identity ----------------------------------------------------------------------------------------

    @property
    def user(self) -> UserDefinition:
        """Return the definition by the user; empty for a model that belongs to a family."""
        return NOTHING_WRITTEN

    @property
    def numbers(self) -> GivenNumbers:
        """Return the numbers in the user's definition, which no prime of a computation may divide."""
        return self.user.numbers

    @property
    @abstractmethod
    def title(self) -> str:
        """Return a one-line description, e.g. ``lightning self-attention, d=2, d'=1, a=2, t=2``."""

    def __repr__(self) -> str:
        """Return one line: the spec, shortened if it is long, and the number of weights."""
        return f"<{type(self).__name__} {shorten(self.spec, 80)}: {self.parameter_count} weights>"

    def __str__(self) -> str:
        """Return the name of the model in messages: that of a user-defined model, or the spec, shortened if it is long."""
        return self.user.name or shorten(self.spec, 100)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: a description of the model, its weights, inputs and outputs."""
        weights = ", ".join(
            f"{name} {'x'.join(map(str, shape)) or 'number'}" for name, shape in self.parameters.items()
        )
        pairs = [("spec", self.spec), ("weights", f"{self.parameter_count}: {weights}")]
        if self.input_shape is not None:
            pairs.append(("input, output", f"{list(self.input_shape)}, {list(self.output_shape or ())}"))
        return card(self.title, pairs)

    # -- source ------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Shape]:
        """Return the names and shapes of the weights, in the order in which they are flattened."""

    @property
    def parameter_count(self) -> int:
        """Return the number of scalar weights."""
        return sum(prod(shape) for shape in self.parameters.values())

    @property
    def parameter_dim(self) -> int:
        """Return the dimension of the parameter space; below `parameter_count` where a family bounds ranks of its weights."""
        return self.parameter_count

    @property
    def constraints(self) -> Constraints:
        """Return equations that the weights satisfy; none unless a family bounds ranks of its weights."""
        return Constraints(free=self)

    @property
    def free(self) -> Model:
        """Return a model with the same image whose weights are arbitrary; the model itself unless it bounds ranks of its weights.

        For one-layer attention by (A, V) with rk A <= a < d this is the model by (Q, K, V).
        """
        return self.constraints.free

    @property
    def leanest(self) -> Model:
        """Return a model with the same image and few arbitrary weights: attention by (A, V), where A is arbitrary."""
        return self.free

    def flatten(self, weights: Weights) -> Any:
        """Flatten weights to vectors: the last axis has length `parameter_count`, in the order of `parameters`."""
        first = weights[next(iter(self.parameters))]
        batch = first.shape[: first.ndim - len(next(iter(self.parameters.values())))]
        blocks = [weights[name].reshape(*batch, prod(shape)) for name, shape in self.parameters.items()]
        return np.concatenate(blocks, axis=-1)

    def unflatten(self, vector: Any) -> dict[str, Any]:
        """Invert :meth:`flatten`."""
        return split_flat(vector, self.parameters)

    def draw_weights(self, rng: np.random.Generator, p: int, *batch: int) -> dict[str, np.ndarray]:
        """Draw points of the parameter space over F_p: int64 arrays, entries in [0, p), leading axes of lengths `batch`."""
        shapes = self.free.parameters.items()
        drawn = {name: rng.integers(0, p, size=(*batch, *shape), dtype=np.int64) for name, shape in shapes}
        if self.free is self:
            return drawn
        residues = {name: Mod(value, p) for name, value in drawn.items()}
        return {name: value.values for name, value in self.constraints.from_free(residues).items()}

    def draw_real_weights(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw a random point of the parameter space in float64, entries of order one."""
        drawn = {name: rng.standard_normal(shape) for name, shape in self.free.parameters.items()}
        return dict(self.constraints.from_free(drawn))

    # -- target ------------------------------------------------------------------------------------------

    @property
    def input_shape(self) -> Shape | None:
        """Return the shape of one input of the network; None for a map given by its coordinates alone."""
        return None

    @property
    def output_shape(self) -> Shape | None:
        """Return the shape of one output, a vector for several outputs; None for a map given by its coordinates."""
        shapes = list(self.program.output_shapes.values())
        if self.input_shape is None:
            return None
        return shapes[0] if len(shapes) == 1 else (self.program.output_count,)

    def network(self, weights: Mapping[str, Any], inputs: Any) -> Any:
        """Compute the output for one input; the function is called once, to be recorded."""
        raise NotImplementedError

    @property
    def program(self) -> Program:
        """Return the recorded network; for a map without inputs, the coordinates themselves."""
        return _recorded(self)

    @property
    def polynomial(self) -> bool:
        """Return whether the map is polynomial in the weights; False for softmax."""
        return self.program.polynomial

    @property
    def coordinate_program(self) -> Program | None:
        """Return a program that computes the target coordinates; None if these are the coefficients of the network."""
        return None if self.program.inputs else self.program

    def forward(self, weights: Weights, inputs: Any) -> Any:
        """Return the network at given weights and inputs, over any arithmetic; leading axes are batches."""
        if self.input_shape is None:
            raise TypeError(f"{self} is given by its coordinates and has no inputs")
        return run(self.program, weights, inputs)

    coordinates = evaluation.coordinates
    coordinate_jacobian = evaluation.coordinate_jacobian

    coordinate_system: str = "full"
    """Which target coordinates are used: all coefficients, or those of Proposition A.5 (``segre``)."""

    @property
    def with_all_coefficients(self) -> Model:
        """Return the model in the coordinates ``full``; the model itself where it has no others."""
        return self

    output_name: ClassVar[str] = "y"
    """The name of a single output in the names of coordinates."""

    @property
    def monomials(self) -> np.ndarray:
        """Return the exponents of the monomials in the inputs whose coefficients are the coordinates."""
        raise NotPolynomialError(f"{self} has no polynomial coordinates")

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Return which monomial of which output entry a coordinate belongs to, e.g. ``y[1,1]: x[2,1]^2``."""
        outputs = _renamed(self.program.output_shapes, self.output_name)
        inputs = _renamed(self.program.input_shapes, "x")
        entries = [name + _index(i) for name, shape in outputs.items() for i in np.ndindex(shape)]
        if not inputs:
            return tuple(entries)
        variables = [
            name + _index(i[::-1]) for name, shape in inputs.items() for i in np.ndindex(shape[::-1])
        ]
        terms = [polynomial_text({tuple(row): 1}, variables) for row in self.monomials]
        return tuple(f"{entry}: {term}" for entry in entries for term in terms)

    @property
    def coordinate_description(self) -> str:
        """Describe the coordinates in words; :attr:`coordinate_names` lists them."""
        if not self.program.inputs:
            return "the entries of the output, in their order"
        return "the coefficients of the outputs as polynomials in the inputs, output by output"

    @property
    def coordinate_count(self) -> int:
        return self.program.output_count * (len(self.monomials) if self.program.inputs else 1)

    @property
    def ambient_dim(self) -> int:
        """Return the dimension of the space of all functions of this kind (for one-layer attention: of Sym3)."""
        return self.coordinate_count

    # -- knowledge ---------------------------------------------------------------------------------------

    @property
    def knowledge(self) -> Knowledge:
        """Return symmetries, formulas and bounds with their citations; empty unless a family states them."""
        return NOTHING_KNOWN


class NetworkModel(Model):
    """A model with inputs and outputs whose target coordinates are, by default, all coefficients.

    Order: output entries row by row, then monomials of the input entries by ascending degree, within a
    degree in descending lexicographic order; the entries of an input matrix are ordered column by column
    (the first token first).
    """

    @property
    @abstractmethod
    def input_shape(self) -> Shape: ...

    @property
    def degrees(self) -> tuple[int, ...]:
        """Return degrees in the inputs that occur, ascending."""
        if not self.polynomial:
            raise NotPolynomialError(f"{self} has no polynomial coordinates")
        return self.program.input_degrees

    @property
    def coordinate_count(self) -> int:
        return self.ambient_dim

    @property
    def ambient_dim(self) -> int:
        """Return the dimension of the space of polynomial functions with these degrees, inputs and outputs."""
        variables = prod(self.input_shape)
        return self.program.output_count * sum(comb(variables + k - 1, k) for k in self.degrees)

    @property
    def monomials(self) -> np.ndarray:
        """Return the exponents of the monomials in the inputs, in the order of the coordinates."""
        if self.coordinate_count > MOST_COORDINATES:
            raise OutOfReachError(
                f"{self} has {self.coordinate_count} target coordinates, more than {MOST_COORDINATES}",
                estimate=self.coordinate_count,
            )
        return _monomials(prod(self.input_shape), self.degrees)


def _renamed(shapes: dict[str, Shape], alone: str) -> dict[str, Shape]:
    """Return shapes by name; a single array gets the name `alone`."""
    return shapes if len(shapes) != 1 else dict.fromkeys([alone], *shapes.values())


def _index(index: tuple[int, ...]) -> str:
    return "[" + ",".join(str(i + 1) for i in index) + "]" if index else ""


@lru_cache(maxsize=16)
def _monomials(variables: int, degrees: tuple[int, ...]) -> np.ndarray:
    table = np.concatenate([monomials(variables, degree) for degree in degrees])
    table.setflags(write=False)
    return table


@lru_cache(maxsize=128)
def _recorded(model: Model) -> Program:
    name = "X" if len(model.input_shape or ()) == 2 else "x"
    inputs = {} if model.input_shape is None else {name: model.input_shape}
    return record_call(lambda w, x: model.network(w, x.get(name)), model.parameters, inputs).program
