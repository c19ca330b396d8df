"""What is sent to Macaulay2: inputs drawn here, outputs from the forward pass, known points, a slice; integers only."""

from __future__ import annotations

from bisect import bisect_left
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from math import comb, prod
from typing import Any

import numpy as np

from m2bridge.errors import OutOfReachError
from m2bridge.families import Mod, Model
from m2bridge.families.user_network import expanded_coordinates
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.residues import residue
from m2bridge.programs.program import degree_in, degrees
from m2bridge.questions.fiber.equivalent_weights import equivalent_weights
from m2bridge.questions.fiber.model_symmetries import (
    TorusSlice,
    finite_symmetries,
    independent_moves,
    symmetry_dim,
)
from m2bridge.questions.fiber.ranks import draw_inputs, outputs_at
from m2bridge.questions.point import Point

_SPARE_INPUTS = 8  # inputs that a script may add to the first ones
_MOST_INPUTS = 400  # inputs at which equations are counted
_MOST_NETWORKS = 1200  # random networks whose outputs are compared to count equations
_DRAWN_POINTS = 6
"""Random points that a script may try for one that is not special."""
_MOST_MOVES = 4  # see the next
_MOST_WEIGHTS_AND_MOVES = 16
"""Whether all orbits have one dimension is asked for at most this many moves, or for this many weights and moves together."""


# -- how large the equations are -------------------------------------------------------------------------------------------------


def estimated_terms(model: Model) -> int:
    """Return an upper bound of the number of terms of one equation."""
    if model.knowledge.homogeneous:
        powers = {name: degree_in(model.program, "weight", only=name) for name in model.parameters}
        return prod(comb(prod(model.parameters[name]) + k - 1, k) for name, k in powers.items())
    with suppress(OutOfReachError):
        coordinates = expanded_coordinates(model)
        if model.input_shape is None:
            return max((len(terms) for terms in coordinates), default=1)
        # an equation at a random input has the monomials of all coordinates
        return len({exponents for terms in coordinates for exponents, _ in terms})
    k = degrees(model.program)[1]
    return comb(model.parameter_count + k, k)


@lru_cache(maxsize=32)
def equation_span(model: Model, p: int, seed: int) -> tuple[int, int]:
    """Return the number of linearly independent equations over all inputs, and how many random inputs reach it.

    Equations at an input are affine forms on the space of functions; their rank is that of the differences of outputs of
    many random networks, computed over F_p.
    """
    rng = np.random.default_rng([seed, 94])
    outputs = prod(model.output_shape) if model.output_shape is not None else model.coordinate_count
    count = 48 if model.input_shape is not None else 1
    while True:
        samples = min(count * outputs + 8, _MOST_NETWORKS)
        inputs = Mod(draw_inputs(model, np.random.default_rng([seed, 95]), count, p), p)
        rows = []
        for _ in range(samples + 1):
            weights = {name: Mod(value, p) for name, value in model.draw_weights(rng, p).items()}
            rows.append(outputs_at(model, weights, inputs).values.reshape(-1))
        table = (np.array(rows[1:]) - rows[0]) % p
        rank = rank_mod(table, p)
        enough = 1 + bisect_left(range(1, count), rank, key=lambda n: rank_mod(table[:, : n * outputs], p))
        stable = 2 * enough <= count and rank < samples  # as many inputs again add nothing
        if stable or count >= _MOST_INPUTS or model.input_shape is None:
            return rank, enough
        count = min(2 * count, _MOST_INPUTS)


# -- the values of the template --------------------------------------------------------------------------------------------------


def rank_places(model: Model) -> list[list[int]]:
    """Return the matrices of weights, counted head by head, whose rank is bounded, and the bounds."""
    bounds, bounded_matrices, index = model.constraints.rank_bounds, [], 0
    for name, shape in model.parameters.items():
        heads = prod(shape[:-2])
        bounded_matrices += [[index + h, bounds[name]] for h in range(heads) if name in bounds]
        index += heads
    return bounded_matrices


def script_values(
    point: Point, p: int, seed: int, first_inputs: int, sliced: TorusSlice | None = None, *, ask_orbits: bool = True
) -> dict[str, Any]:  # fmt: skip
    """List values for the template, over F_p or, for p = 0, over QQ: inputs are drawn from the seed, residues or small integers.

    The known points are moved onto the slice when there is one. `ask_orbits` asks whether all orbits have one dimension.
    """
    model = point.model
    inputs = draw_inputs(model, np.random.default_rng([seed, 95]), first_inputs + _SPARE_INPUTS, p or 12)
    if p:
        outputs: Any = outputs_at(model, point.mod(p), Mod(inputs, p)).values
    else:
        outputs = outputs_at(model, dict(point.weights), inputs.astype(object))
    if model.input_shape is None:  # the same equations twice: the second time nothing is added
        inputs, outputs = np.zeros((2, 1), dtype=np.int64), np.concatenate([outputs, outputs])
    symmetric_points = [element(point.vector) for element in finite_symmetries(model)]
    others = [] if sliced is not None else [vector for _, vector in equivalent_weights(point)]
    orbit_dim = symmetry_dim(point)
    few = orbit_dim <= _MOST_MOVES or model.parameter_count + orbit_dim <= _MOST_WEIGHTS_AND_MOVES
    rng = np.random.default_rng([seed, 96])

    def numbers(vector: Any) -> list[Any]:
        return [residue(Fraction(x), p) if p else Fraction(x) for x in vector]

    return {
        "p": p,
        "rankBounds": rank_places(model),
        "inputs": inputs.reshape(len(inputs), -1),
        "outputs": np.asarray(outputs).reshape(len(inputs), -1),
        "firstInputs": first_inputs,
        "knownPoints": [
            numbers(vector if sliced is None else sliced.move(vector)) for vector in symmetric_points
        ],
        "otherPoints": [numbers(v) for v in others if not p or all(Fraction(x).denominator % p for x in v)],
        "sliceForms": [
            [numbers(form), *numbers([value])] for form, value in (sliced.forms if sliced else ())
        ],
        "drawn": [rng.integers(1, p or 8, size=model.parameter_count) for _ in range(_DRAWN_POINTS)],
        "orbitDim": orbit_dim,
        "moves": independent_moves(model, orbit_dim, seed) if few and ask_orbits else [],
    }
