"""What is sent to Macaulay2: inputs drawn here, outputs from the forward pass, shapes of the weights; integers only."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import comb, prod
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError, OutOfReachError
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.residues import residue
from m2bridge.models import MLP, Convolution, DeepLightning, Lightning, Linear, Mod, Model
from m2bridge.models.own import OwnNetwork
from m2bridge.programs.program import degrees
from m2bridge.questions.fiber.differential import draw_inputs, output_count, outputs_at, symmetry_dim
from m2bridge.questions.fiber.partners import known_points, partners
from m2bridge.questions.fiber.points import Point, fractions_of, rank_bounds
from m2bridge.questions.fiber.slices import Slice, slice_of

TEMPLATE = "fiber"
_SPARE_INPUTS = 8
_MOST_INPUTS = 400
_ATTEMPTS = 6
_MOST_MOVES = 4
_MOST_VARIABLES = 16
"""Whether all orbits have one dimension is asked for at most so many moves, or for so many weights and moves together."""
MOST_TERMS = 400_000
"""Terms of all equations together up to which one Groebner basis is tried."""
MOST_TERMS_EACH = 8_000
"""Terms of one equation up to which equations are formed at all."""
MOST_WEIGHTS = 40
FAMILIES_WITH_DEGREES = (Lightning, DeepLightning, MLP, Linear, Convolution)
"""Families whose terms are counted by the degrees of each weight; those of others in their coordinates, expanded."""


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


def _residue(value: Any, p: int) -> Any:
    return residue(Fraction(value), p) if p else Fraction(value)


def _exists(vector: Any, p: int) -> bool:
    return not p or all(Fraction(x).denominator % p for x in vector)


def weight_degrees(model: Model) -> dict[str, int]:
    """Degree of the network in each of its weights."""
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
    if isinstance(model, FAMILIES_WITH_DEGREES):
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
    outputs = output_count(model)
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


def independent_moves(point: Point, orbit_dim: int, seed: int) -> list[list[list[int]]]:
    """As many infinitesimal symmetries as the orbit has dimensions, random combinations of them when there are more.

    Every known symmetry acts linearly: a move is a list of (i, j, c), weight i moves by c times weight j.
    """
    model = point.model
    units = fractions_of(np.eye(model.parameter_count, dtype=np.int64))
    if not model.symmetries or not orbit_dim:
        return []
    # tables[j] is the derivative, for every symmetry, of all weights at the weights e_j
    tables = np.array(
        [np.concatenate([s.generators(model.unflatten(unit)) for s in model.symmetries]) for unit in units]
    )
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
    sliced: Slice | None = None
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

    @property
    def inputs(self) -> np.ndarray:
        """Inputs drawn from the seed: residues, or small integers over QQ."""
        rng = np.random.default_rng([self.seed, 95])
        return draw_inputs(self.point.model, rng, self.first_inputs + _SPARE_INPUTS, self.prime or 12)

    def parameters(self) -> dict[str, object]:
        """Values for the template."""
        model, p, inputs = self.point.model, self.prime, self.inputs
        if p:
            outputs: Any = outputs_at(model, self.point.mod(p), Mod(inputs, p)).values
        else:
            outputs = outputs_at(model, dict(self.point.weights), inputs.astype(object))
        if model.input_shape is None:  # the same equations twice: the second time nothing is added
            inputs, outputs = np.zeros((2, 1), dtype=np.int64), np.concatenate([outputs, outputs])
        rng = np.random.default_rng([self.seed, 96])
        forms = self.sliced.forms if self.sliced else ()
        return {
            "p": p,
            "rankBounds": rank_places(model),
            "inputs": inputs.reshape(len(inputs), -1),
            "outputs": np.asarray(outputs).reshape(len(inputs), -1),
            "firstInputs": self.first_inputs,
            "knownPoints": [[_residue(x, p) for x in vector] for vector in self.known],
            "otherPoints": [[_residue(x, p) for x in vector] for vector in self.others if _exists(vector, p)],
            "sliceForms": [[[_residue(x, p) for x in form], _residue(value, p)] for form, value in forms],
            "drawn": [rng.integers(1, p or 8, size=model.parameter_count) for _ in range(_ATTEMPTS)],
            "orbitDim": self.orbit_dim,
            "moves": self.moves,
        }
