"""User-defined networks: models that are given by a recorded program.

They are built from a Python function of arrays (:func:`from_callable`), from a PyTorch module, or from a program on one line or
in a file. The spec of such a model is the program itself, so that records, job files and certificates contain the network and do
not need the Python file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from m2bridge.errors import OutOfReachError, SpecError
from m2bridge.families.base import Model, Shape
from m2bridge.families.polynomial_map import UserModel, read_map
from m2bridge.families.symbolic import MOST_EXPANDED_TERMS, symbolic_map, term_bound
from m2bridge.families.symmetries import SearchedSymmetries
from m2bridge.families.user_definition import UserDefinition
from m2bridge.frontends.polynomial_programs import polynomial_program
from m2bridge.frontends.polynomials import Terms, terms_of
from m2bridge.frontends.program_files import is_program_file, load_program, save_program
from m2bridge.frontends.recording import record
from m2bridge.linear.primes import LARGE_PRIME, prime_for
from m2bridge.linear.residues import Mod
from m2bridge.programs import Program, parse_program
from m2bridge.programs.coefficients import support
from m2bridge.programs.evaluation import input_form
from m2bridge.programs.program import HEADER

MOST_EXPANDED_COORDINATES = 400
"""With more weights and inputs than this, coordinates are not expanded as polynomials."""
MOST_INPUT_MONOMIALS = 20_000  # monomials in the inputs of a network that is expanded
MOST_COEFFICIENTS = 500_000
"""With a larger table of coefficients a network is quicker than the map of its coordinates."""
MOST_EXPANSION_PRODUCTS = 800_000
"""With more products of coefficients in one instruction than this, a network's monomials are not listed (a few seconds)."""


@dataclass(frozen=True, kw_only=True)
class UserNetwork(UserModel):
    """A model that is defined by its program.

    Attributes
    ----------
    recorded: the program; two models are equal when their programs are.
    name: a title. notes: remarks for every answer about this network, for instance that floats were converted exactly.
    constants: entries of a PyTorch module's state that are not weights: their values, or the entry to which one is tied.
    """

    family: ClassVar[str] = "program"
    unnamed: ClassVar[str] = "network"

    recorded: Program
    name: str = field(default=unnamed, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    constants: Mapping[str, Any] = field(default_factory=dict, compare=False)
    searched: SearchedSymmetries = field(default=SearchedSymmetries(), compare=False)

    def __hash__(self) -> int:
        return hash(self.recorded.sha256)

    def __repr__(self) -> str:
        """Return one line, with the name in place of the program."""
        return f"<{type(self).__name__} {self.title}>"

    def __str__(self) -> str:
        return f"the network {self.stated_name}" if self.stated_name else "the network"

    @property
    def spec(self) -> str:
        """Return ``program:`` and the canonical text on one line, with ``;`` for line breaks."""
        return "program:" + self.recorded.text.removeprefix(HEADER + "\n").rstrip("\n").replace("\n", ";")

    @property
    def title(self) -> str:
        return f"{self.name}, {self.parameter_count} weights (program {self.recorded.sha256[:12]})"

    @cached_property
    def user(self) -> UserDefinition:
        return UserDefinition(
            name=self.stated_name,
            is_program=True,
            numbers=self.recorded.numbers,
            constants=self.constants,
        )

    @property
    def program(self) -> Program:
        return self.recorded

    @property
    def parameters(self) -> dict[str, Shape]:
        return self.recorded.parameters

    @property
    def input_shape(self) -> Shape | None:
        """Return the shape of the input; several inputs are one vector, one after the other."""
        shapes = list(self.recorded.input_shapes.values())
        return None if not shapes else shapes[0] if len(shapes) == 1 else (self.recorded.input_count,)

    @cached_property
    def monomials(self) -> np.ndarray:
        """Return the monomials in the inputs that occur at one of two random weights over F_p."""
        rng = np.random.default_rng(0)
        p = prime_for(self.numbers, chosen=None, default=LARGE_PRIME)
        drawn = self.draw_weights(rng, p, 2)
        weights = {name: Mod(value, p) for name, value in drawn.items()}
        exponents = support(input_form(self.recorded, weights, most_products=MOST_EXPANSION_PRODUCTS))
        if len(exponents) > MOST_INPUT_MONOMIALS:
            raise OutOfReachError(
                f"{self.name} has {len(exponents)} monomials in its inputs, more than {MOST_INPUT_MONOMIALS}",
                estimate=len(exponents),
            )
        return exponents

    @cached_property
    def polynomials(self) -> tuple[Terms, ...]:  # type: ignore[override]
        """Return the coordinates as polynomials in the flat weights."""
        count = self.parameter_count + self.recorded.input_count
        if count > MOST_EXPANDED_COORDINATES:
            raise OutOfReachError(
                f"{self.name} has {count} variables, too many to expand symbolically", estimate=count
            )
        if (terms := term_bound(self)) > MOST_EXPANDED_TERMS:
            raise OutOfReachError(
                f"{self.name} may have {terms} terms, too many to expand symbolically", estimate=terms
            )
        return tuple(map(terms_of, symbolic_map(self)))

    @cached_property
    def as_map(self) -> UserNetwork:
        """Return the same weights with the target coordinates for outputs; the model itself when it has no inputs.

        Raises OutOfReachError where the coordinates are too many to be expanded.
        """
        if self.input_shape is None:
            return self
        coordinates = self.polynomials
        count = len(coordinates)
        monomials = len({exponents for f in coordinates for exponents, _ in f})
        if count * monomials > MOST_COEFFICIENTS:
            raise OutOfReachError(
                f"{self.name} has {count} coordinates with {monomials} monomials in the weights",
                estimate=count * monomials,
            )
        program = polynomial_program(coordinates, self.parameters)
        return UserNetwork(recorded=program, name=self.name, notes=self.notes)

    def save(self, path: str | Path) -> None:
        """Write the network to a TOML file that ``file:PATH`` reads again."""
        save_program(self.recorded, path, name=self.name, notes=self.notes)


def expanded_coordinates(model: Model) -> tuple[Terms, ...]:
    """Return the coordinates of a polynomial model as polynomials in the flat weights.

    Raises OutOfReachError where they are too many to be expanded.
    """
    return model.polynomials if isinstance(model, UserModel) else map_of_coordinates(model).polynomials


def map_of_coordinates(model: Model) -> UserNetwork:
    """Return the map from the weights of a polynomial model to its coordinates, as a program without inputs.

    Raises OutOfReachError where the coordinates are too many to be expanded.
    """
    return (model if isinstance(model, UserNetwork) else UserNetwork(recorded=model.program)).as_map


def from_callable(
    function: Callable[..., Any],
    shapes: Mapping[str, Shape],
    *,
    inputs: Mapping[str, Shape] | None = None,
    name: str | None = None,
) -> UserNetwork:
    """Return a model from a Python function of arrays.

    Parameters
    ----------
    function
        Called with keyword arguments that record the operations on them: ``+ - * @ **``, division by constants, ``.T``,
        indexing, sums, most of NumPy's array functions; ``exp`` and division by an array make the network analytic.
    shapes
        Names and shapes of the weights.
    inputs
        Names and shapes of the inputs; without them the function's values are themselves the coordinates.

    Raises
    ------
    NotPolynomialError, InputError
        A line of the function cannot be recorded; the message names the line and an alternative.

    Examples
    --------
    >>> def attention(X, A, V):
    ...     return V @ X @ X.T @ A @ X
    >>> model = from_callable(attention, {"A": (2, 2), "V": (1, 2)}, inputs={"X": (2, 2)})
    >>> model.coordinate_count, model.output_shape
    (40, (1, 2))
    """
    label = str(name or getattr(function, "__name__", "network"))
    recording = record(function, shapes, inputs)
    return UserNetwork(recorded=recording.program, name=label, notes=recording.notes)


def from_torch(
    module: Any, input_shape: int | Sequence[int] | Sequence[Sequence[int]], *, name: str | None = None
) -> UserNetwork:
    """Return a model from a ``torch.nn.Module``; needs the extra ``torch``.

    Parameters
    ----------
    module
        Parameters that require a gradient become the weights, with underscores for dots in their names; tied ones occur once.
        Frozen parameters and buffers are constants, converted exactly.
    input_shape
        The exact shape of the argument of ``forward``, including a batch axis if it requires one; several as a list.
    name
        A title; by default the name of the module's class.

    Raises
    ------
    NotPolynomialError
        A submodule is neither polynomial nor built from exp and division; the message names it and a remedy.
    InputError
        The module cannot be run or exported; the message states the necessary change.
    DisagreementError
        The recorded program and the module have different outputs.
    """
    from m2bridge.frontends.pytorch import record_module, state_constants

    program, notes = record_module(module, input_shape)
    title = name or type(module).__name__
    return UserNetwork(recorded=program, name=title, notes=notes, constants=state_constants(module))


def read_program(text: str) -> UserNetwork:
    """Return the model of an inline spec ``program:%0 = weight W [2,2];...``."""
    body = text.removeprefix("program:")
    if "\n" in body:
        raise SpecError("an inline program is written on one line, with ';' for line breaks", position=9)
    return UserNetwork(recorded=parse_program(f"{HEADER}\n" + body.replace(";", "\n") + "\n"))


def read_file(path: str | Path) -> UserModel:
    """Read a network or a polynomial map from a file."""
    file = Path(path)
    if file.suffix == ".toml" and file.is_file():
        with file.open("rb") as stream:
            beginning = stream.read(4096).decode("utf-8", "replace")
        if is_program_file(beginning):
            loaded = load_program(file)
            return UserNetwork(recorded=loaded.program, name=loaded.name, notes=loaded.notes)
    return read_map(file)
