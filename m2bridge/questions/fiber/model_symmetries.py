"""Symmetries of a model: their action at a point, a slice of the scalings, and the finite ones.

The known symmetries are the groups declared by a family, permutations found in its program, and, for a user-defined model, the
linear fields and the finite group that were found and verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial, prod
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.families import Mod, Model
from m2bridge.families.symmetries import SearchedSymmetries, SignedPermutation
from m2bridge.linear.modular import rank_mod
from m2bridge.programs.program import Program
from m2bridge.programs.work import OF_DIMENSION, WorkBudget
from m2bridge.questions import over_q
from m2bridge.questions.kernel import Context
from m2bridge.questions.point import Point, fractions_of, rank_prime
from m2bridge.symmetry.exchanges import exchanged_variables
from m2bridge.symmetry.finite import PermutedAxis, finite_group, permuted_axes, permuting_elements
from m2bridge.symmetry.search import Search

_MOST_PERMUTATIONS = 24  # elements, all of those of four neurons
_LARGEST_FORM_COEFFICIENT = 30_000
"""Coefficients of a slice's forms are below this: one of `n` orbits lies on a form's zeros with probability at most n / 30000."""
_MOST_ELEMENTS = 200
"""This many elements of their finite group are used."""


# -- symmetries of a user-defined model ------------------------------------------------------------------------------------------


def search_of(context: Context, model: Model) -> Search:
    """Search the symmetries of a user-defined model, which declares none."""
    work = WorkBudget(OF_DIMENSION, context.clock.check)
    return Search(model.program, p=rank_prime(model), seed=context.seed, work=work, all_affine=True)


def found_symmetries(context: Context, model: Model, written: Program) -> SearchedSymmetries:
    """Return linear symmetries of a user-defined model, and finite ones found in its program, or tried for a map."""
    context.report_progress("linear symmetries")
    search = search_of(context, model)
    finished = False
    with context.keep_partial("linear symmetries"):
        context.clock.check()
        search.linear()
        finished = search.complete
    return SearchedSymmetries(
        complete=finished and not search.unverified,
        fields=tuple(search.fields),
        finite=finite_group(written, _exchanges(model), most=_MOST_ELEMENTS),
    )


def _exchanges(model: Model) -> list[SignedPermutation]:
    """Return the exchanges of variables that preserve a map."""
    user = model.user
    permutations = []
    for pairs in exchanged_variables(user):
        turned = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
        order = tuple(user.variables.index(turned.get(name, name)) for name in user.variables)
        permutations.append(SignedPermutation(order, (1,) * len(order)))
    return permutations


# -- infinitesimal ones ----------------------------------------------------------------------------------------------------------


def symmetry_moves(model: Model, weights: Mapping[str, Any]) -> list[Any]:
    """Return the infinitesimal action of the known symmetries, declared or found, at a point: one row per generator."""
    tables = [symmetry.generators(weights) for symmetry in model.knowledge.symmetries]
    if model.knowledge.searched is not None:
        tables += [field.generators(weights) for field in model.knowledge.searched.fields]
    return tables


def symmetry_rank_mod(model: Model, weights: Mapping[str, Mod], p: int) -> int:
    """Return the rank over F_p of the action of the known symmetries at a point: at most the dimension of its orbit."""
    moves = [table.values for table in symmetry_moves(model, weights)]
    return rank_mod(np.concatenate(moves), p) if moves else 0


def symmetry_dim(point: Point) -> int:
    """Return the dimension of the orbit of the known symmetries through the point: rank over QQ of their infinitesimal action."""
    moves = symmetry_moves(point.model, dict(point.weights))
    return over_q.rank(np.concatenate(moves)) if moves else 0


def independent_moves(model: Model, orbit_dim: int, seed: int) -> list[list[list[int]]]:
    """Return as many infinitesimal symmetries as the orbit has dimensions, random combinations of them when there are more.

    Every known symmetry acts linearly: a move is a list of (i, j, c), weight i moves by c times weight j.
    """
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

    characters: np.ndarray
    forms: tuple[tuple[np.ndarray, int], ...]

    @property
    def dim(self) -> int:
        """Return the dimension of the torus whose generic orbits meet the slice in one point."""
        return len(self.forms)

    def move(self, vector: np.ndarray) -> np.ndarray:
        """Return the point of the slice on the orbit of a vector of Fractions or floats."""
        for characters, (form, value) in zip(self.characters, self.forms, strict=True):
            form_value = form @ vector
            if form_value == 0:
                raise InputError("the slice's form vanishes at the point; use another --seed")
            vector = vector * np.array([(value / form_value) ** int(k) for k in characters], dtype=object)
        return vector


def slice_of(model: Model, seed: int) -> TorusSlice | None:
    """Return a random slice of the model's scalings; None where there are none or other groups act too."""
    if not model.knowledge.symmetries or any(
        symmetry.kind == "gl" for symmetry in model.knowledge.symmetries
    ):
        return None
    # at weights that are all 1 a scaling moves each weight by its character
    ones = {name: np.ones(shape, dtype=np.int64) for name, shape in model.parameters.items()}
    characters = np.concatenate([symmetry.generators(ones) for symmetry in model.knowledge.symmetries])
    rng, forms = np.random.default_rng([seed, 97]), []
    for row in characters:
        form = np.array(
            [int(rng.integers(1, _LARGEST_FORM_COEFFICIENT)) if k == 1 else 0 for k in row], dtype=object
        )
        forms.append((form, int(rng.integers(1, _LARGEST_FORM_COEFFICIENT))))
    return TorusSlice(characters=characters, forms=tuple(forms))


# -- finite ones -----------------------------------------------------------------------------------------------------------------


def finite_symmetries(model: Model) -> tuple[SignedPermutation, ...]:
    """Return elements of the finite group, identity first: those that were found, or permutations of neurons and heads."""
    searched = model.knowledge.searched
    if searched is not None and searched.finite:
        return searched.finite
    return permuting_elements(model.program, _permuted(model), most=_MOST_PERMUTATIONS)


def _permuted(model: Model) -> list[tuple[int, list[PermutedAxis]]]:
    """Axes of weights along which slices are permuted by no connected group: how many slices, and which axes."""
    if model.knowledge.searched is not None:
        return []
    moved = {
        (name, k)
        for group in model.knowledge.symmetries
        if group.kind == "gl"
        for name, labels in group.axes.items()
        for k, label in enumerate(labels)
        if label in (1, -1)
    }
    return [
        (n, axes)
        for n, axes in permuted_axes(model.program)
        if not moved & {(axis.name, axis.axis) for axis in axes}
    ]


def why_so_many(model: Model, orbits: int) -> str:
    """Why there are that many orbits, when finite symmetries explain them."""
    if (searched := model.knowledge.searched) is not None:
        return ", related by permutations and signs of weights" if len(searched.finite) > 1 else ""
    permuted = _permuted(model)
    lengths = [n for n, _ in permuted]
    words = f"permutations of the {_summands(model, permuted)}"
    if orbits == prod(map(factorial, lengths)):
        return f": {orbits} = {' * '.join(f'{n}!' for n in lengths)} {words}, each with its scalings"
    return f", related by {words}" if lengths else ""


def _summands(model: Model, permuted: list[tuple[int, list[PermutedAxis]]]) -> str:
    """Return the name of the permuted objects; matrices behind a further axis are those of heads."""
    if model.input_shape is None:
        return "summands"
    heads = any(len(model.parameters[axis.name]) > 2 for _, axes in permuted for axis in axes)
    return "heads" if heads else "hidden neurons"
