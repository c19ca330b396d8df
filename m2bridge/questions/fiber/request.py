"""What is sent to Macaulay2: inputs drawn here, outputs from the forward pass, shapes of the weights, a slice; integers only."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import comb, prod
from typing import Any

import numpy as np

from m2bridge.errors import InputError, NotPolynomialError, OutOfReachError
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.residues import residue
from m2bridge.models import MLP, Convolution, DeepLightning, Lightning, Linear, Mod, Model
from m2bridge.models.own import OwnNetwork
from m2bridge.programs.program import degrees
from m2bridge.questions.fiber.partners import known_points, partners
from m2bridge.questions.fiber.ranks import draw_inputs, outputs_at, symmetry_dim, symmetry_moves
from m2bridge.questions.point import Point, fractions_of, rank_bounds

TEMPLATE = "fiber"
_SPARE_INPUTS = 8
_MOST_INPUTS = 400
_ATTEMPTS = 6
_MOST_MOVES = 4
_MOST_VARIABLES = 16
"""Whether all orbits have one dimension is asked for at most so many moves, or for so many weights and moves together."""
_LARGEST = 30_000
"""Coefficients of a slice's forms are below this: one of `n` orbits lies on a form's zeros with probability at most n / 30000."""


def rank_places(model: Model) -> list[list[int]]:
    """The matrices of weights, counted head by head, whose rank is bounded, and the bounds.

    Raises
    ------
    NotPolynomialError
        The weights satisfy equations that are not known.
    """
    if isinstance(model, DeepLightning) and model.parametrization == "virtual" and model.constrained:
        raise NotPolynomialError(
            f"{model.spec}: virtual weights through narrow layers have no simple equations"
        )
    bounds, places, place = rank_bounds(model), [], 0
    for name, shape in model.parameters.items():
        heads = prod(shape[:-2])
        places += [[place + h, bounds[name]] for h in range(heads) if name in bounds]
        place += heads
    return places


# -- how large the equations are -------------------------------------------------------------------------------------------------


def weight_degrees(model: Model) -> dict[str, int]:
    """Degree of the network in each of its weights, for the families that say it."""
    if isinstance(model, DeepLightning):
        layers = model.layers
        if model.parametrization == "virtual":
            return {f"M{i}": 3 ** (layers - i) for i in range(1, layers + 1)} | {"L": 1}
        return {name: 3 ** (layers - int(name[1:])) for name in model.parameters}
    if isinstance(model, (MLP, Convolution)):
        return {name: model.r ** (model.layers - int(name[1:])) for name in model.parameters}
    return dict.fromkeys(model.parameters, 1)


def estimated_terms(model: Model) -> int:
    """An upper bound of the number of terms of one equation."""
    if isinstance(model, (Lightning, DeepLightning, MLP, Linear, Convolution)):
        sizes = {name: prod(shape) for name, shape in model.parameters.items()}
        return prod(comb(sizes[name] + k - 1, k) for name, k in weight_degrees(model).items())
    if model.input_shape is None and hasattr(model, "polynomials"):
        return max((len(terms) for terms in model.polynomials), default=1)
    with suppress(OutOfReachError):
        polynomials = OwnNetwork(recorded=model.program).as_map.polynomials
        if model.input_shape is None:
            return max((len(terms) for terms in polynomials), default=1)
        # an equation at a random input has the monomials of all coordinates
        return len({exponents for terms in polynomials for exponents, _ in terms})
    k = degrees(model.program)[1]
    return comb(model.parameter_count + k, k)


@lru_cache(maxsize=32)
def equation_span(model: Model, p: int, seed: int) -> tuple[int, int]:
    """Number of linearly independent equations over all inputs, and how many random inputs reach it.

    Equations at an input are affine forms on the space of functions; their rank is that of the differences of outputs of
    many random networks, computed over F_p.
    """
    rng = np.random.default_rng([seed, 94])
    outputs = prod(model.output_shape) if model.output_shape is not None else model.coordinate_count
    count = 48 if model.input_shape is not None else 1
    while True:
        samples = min(count * outputs + 8, 1200)
        inputs = Mod(draw_inputs(model, np.random.default_rng([seed, 95]), count, p), p)
        rows = []
        for _ in range(samples + 1):
            weights = {name: Mod(value, p) for name, value in model.draw_weights(rng, p).items()}
            rows.append(outputs_at(model, weights, inputs).values.reshape(-1))
        table = (np.array(rows[1:]) - rows[0]) % p
        rank = rank_mod(table, p)
        low, high = 1, count
        while low < high:
            middle = (low + high) // 2
            if rank_mod(table[:, : middle * outputs], p) == rank:
                high = middle
            else:
                low = middle + 1
        stable = 2 * low <= count and rank < samples  # as many inputs again add nothing
        if stable or count >= _MOST_INPUTS or model.input_shape is None:
            return rank, low
        count *= 2


# -- slices of the scalings ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TorusSlice:
    """Linear equations that meet almost every orbit of the model's scalings in exactly one point.

    Each scaling multiplies one block of weights (a matrix M_i, a filter, a neuron's row) by itself, and every weight by a power
    of itself, its character. A random linear form on that block is put to a random value: an orbit on which the form does not
    vanish has exactly one point there, so that an open dense part of each component that meets the slice is the torus times its
    slice, reducedness included. Points at which a block is zero are on no slice; whether there are such points in a fiber is
    asked separately (`orbits_full` of the template). The equations can be solved one by one in their order.
    """

    characters: tuple[tuple[int, ...], ...]
    forms: tuple[tuple[tuple[int, ...], int], ...]

    @property
    def dim(self) -> int:
        """Dimension of the torus that was cut away."""
        return len(self.forms)

    def move(self, vector: Any) -> np.ndarray:
        """The point of the slice on the orbit of a vector of Fractions."""
        moved = [Fraction(x) for x in vector]
        for characters, (form, value) in zip(self.characters, self.forms, strict=True):
            found = sum((c * x for c, x in zip(form, moved, strict=True) if c), Fraction(0))
            if found == 0:
                raise InputError("the slice's form vanishes at the point; use another --seed")
            factor = Fraction(value) / found
            moved = [x * factor**k if k else x for x, k in zip(moved, characters, strict=True)]
        return np.array(moved, dtype=object)


def slice_of(model: Model, seed: int) -> TorusSlice | None:
    """A random slice of the model's scalings; None where there are none or other groups act too."""
    if not model.symmetries or any(symmetry.kind == "gl" for symmetry in model.symmetries):
        return None
    # at weights that are all 1 a scaling moves each weight by its character
    ones = {name: np.ones(shape, dtype=np.int64) for name, shape in model.parameters.items()}
    characters = [tuple(row.tolist()) for symmetry in model.symmetries for row in symmetry.generators(ones)]
    rng, forms = np.random.default_rng([seed, 97]), []
    for row in characters:
        coefficients = tuple(int(rng.integers(1, _LARGEST)) if k == 1 else 0 for k in row)
        forms.append((coefficients, int(rng.integers(1, _LARGEST))))
    return TorusSlice(characters=tuple(characters), forms=tuple(forms))


# -- the request -----------------------------------------------------------------------------------------------------------------


def independent_moves(point: Point, orbit_dim: int, seed: int) -> list[list[list[int]]]:
    """As many infinitesimal symmetries as the orbit has dimensions, random combinations of them when there are more.

    Every known symmetry acts linearly: a move is a list of (i, j, c), weight i moves by c times weight j.
    """
    model = point.model
    if not orbit_dim:
        return []
    units = fractions_of(np.eye(model.parameter_count, dtype=np.int64))
    # tables[j] is the derivative, for every symmetry, of all weights at the weights e_j
    tables = np.array([np.concatenate(symmetry_moves(model, model.unflatten(unit))) for unit in units])
    if tables.shape[1] > orbit_dim:
        rng = np.random.default_rng([seed, 106])
        mixing = rng.integers(1, 100, size=(orbit_dim, tables.shape[1])).astype(object)
        tables = np.array([mixing @ table for table in tables])
    return [
        [[int(i), int(j), int(tables[j, m, i])] for j, i in np.argwhere(tables[:, m] != 0)]
        for m in range(orbit_dim)
    ]


@dataclass(frozen=True, kw_only=True)
class FiberRequest:
    """A fiber to compute: the point, the field, the inputs and, if any, the slice."""

    point: Point
    prime: int
    seed: int
    first_inputs: int
    sliced: TorusSlice | None = None
    known: list[np.ndarray] = field(default_factory=list)
    moves: list[list[list[int]]] = field(default_factory=list)
    orbit_dim: int = 0
    others: list[np.ndarray] = field(default_factory=list)

    @classmethod
    def of(cls, point: Point, prime: int, seed: int, first_inputs: int, *, cut: bool = False) -> FiberRequest:
        """The request, with the known points of the orbit moved onto the slice when there is one."""
        known, _ = known_points(point)
        sliced = slice_of(point.model, seed) if cut else None
        if sliced is not None:
            known = [sliced.move(vector) for vector in known]
        others = [] if cut else [vector for _, vector in partners(point)]
        orbit_dim = symmetry_dim(point)
        wanted = orbit_dim <= _MOST_MOVES or point.model.parameter_count + orbit_dim <= _MOST_VARIABLES
        moves = independent_moves(point, orbit_dim, seed) if wanted else []
        return cls(
            point=point, prime=prime, seed=seed, first_inputs=first_inputs, sliced=sliced, known=known, moves=moves,
            orbit_dim=orbit_dim, others=others,
        )  # fmt: skip

    def parameters(self) -> dict[str, object]:
        """Values for the template; inputs are drawn from the seed, residues or small integers over QQ."""
        model, p = self.point.model, self.prime
        drawing = np.random.default_rng([self.seed, 95])
        inputs = draw_inputs(model, drawing, self.first_inputs + _SPARE_INPUTS, p or 12)
        if p:
            outputs: Any = outputs_at(model, self.point.mod(p), Mod(inputs, p)).values
        else:
            outputs = outputs_at(model, dict(self.point.weights), inputs.astype(object))
        if model.input_shape is None:  # the same equations twice: the second time nothing is added
            inputs, outputs = np.zeros((2, 1), dtype=np.int64), np.concatenate([outputs, outputs])
        rng = np.random.default_rng([self.seed, 96])
        others = [v for v in self.others if not p or all(Fraction(x).denominator % p for x in v)]

        def numbers(vector: Any) -> list[Any]:
            return [residue(Fraction(x), p) if p else Fraction(x) for x in vector]

        return {
            "p": p,
            "rankBounds": rank_places(model),
            "inputs": inputs.reshape(len(inputs), -1),
            "outputs": np.asarray(outputs).reshape(len(inputs), -1),
            "firstInputs": self.first_inputs,
            "knownPoints": [numbers(vector) for vector in self.known],
            "otherPoints": [numbers(vector) for vector in others],
            "sliceForms": [
                [numbers(form), *numbers([value])]
                for form, value in (self.sliced.forms if self.sliced else ())
            ],
            "drawn": [rng.integers(1, p or 8, size=model.parameter_count) for _ in range(_ATTEMPTS)],
            "orbitDim": self.orbit_dim,
            "moves": self.moves,
        }
