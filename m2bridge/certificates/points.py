"""Certificates of singular points, of smooth points, and of symmetries that were found.

A singular point is shown by curves through it, a smooth one by equations that vanish identically. Both are written in the
coordinates that a checker reads off the program (``docs/certificates.md``, section 5); here they are numbered as it numbers them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any, Protocol

import numpy as np

from m2bridge.certificates.produce import dimension_document, lower_by_minor, spec_of
from m2bridge.certificates.statements import singular_certificate, smooth_certificate, symmetry_certificate
from m2bridge.linear.modular import eliminate
from m2bridge.linear.residues import residue
from m2bridge.models import Mod, Model
from m2bridge.programs.program import Program
from m2bridge.programs.ranks import GenericRank, generic_rank

Document = dict[str, Any]
PRIME = 2**31 - 1
Arc = tuple[Sequence[Sequence[Any]], Sequence[Fraction]]
"""For each flat weight the coefficients of a polynomial in t, lowest first; and the tangent vector of its image at t = 0."""


class Equation(Protocol):
    """A polynomial in the coordinates of a model, as a closure has them."""

    @property
    def coefficients(self) -> tuple[int, ...]: ...

    @property
    def monomials(self) -> tuple[tuple[int, ...], ...]: ...

    def gradient(self, values: Sequence[Any]) -> list[Any]: ...


def singular_point_certificate(
    model: Model, weights: Sequence[Any], arcs: Sequence[Arc], size: Mapping[str, Any] | None
) -> Document | None:
    """The image of flat weights of ``model.free`` is singular: arcs whose tangent vectors are independent.

    `size` is the certificate of the model's dimension; its upper bound is used. None without it, or if the arcs are too few.
    """
    if size is None or not arcs:
        return None
    independent = eliminate(_residues([vector for _, vector in arcs]), PRIME).pivot_rows
    if len(independent) <= size["statement"]["dimension"]:
        return None
    paths = [[_trimmed(path) for path in arcs[k][0]] for k in sorted(independent)]
    text, upper = model.free.program.text, size["upper"]
    return singular_certificate(text, list(weights), paths, upper, prime=PRIME, spec=spec_of(model))


def smooth_point_certificate(
    model: Model, weights: Sequence[Any], image: Sequence[Any], equations: Sequence[Equation], *, seed: int
) -> Document | None:
    """The closure is smooth at the image of flat weights of ``model.free``: equations over ZZ, in the model's coordinates.

    None where their differentials at the image point do not have the rank that the dimension asks for.
    """
    free = model.free
    program = free.coordinate_program or free.program
    places = coordinate_places(free, seed)
    rows = _residues([equation.gradient(image) for equation in equations])
    kept = [k for k, place in enumerate(places) if place is not None]
    chosen = eliminate(rows[:, kept], PRIME).pivot_rows if len(rows) else ()
    rank = generic_rank(program, p=PRIME, seed=seed)
    if len(kept) - len(chosen) != rank.rank or rank.heuristic:
        return None
    terms = [_renumbered(equations[k], places, len(kept)) for k in sorted(chosen)]
    lower = lower_by_minor(program, rank)
    return smooth_certificate(program.text, list(weights), terms, lower, prime=PRIME, spec=spec_of(model))


def found_symmetries(
    model: Model, fields: Sequence[list[Any]], rank: GenericRank, upper: Document | None, bound: int
) -> tuple[Document, ...]:
    """The identities of vector fields as one certificate and, where the bounds meet, the dimension as another."""
    found = []
    if fields:
        document = symmetry_certificate(model.free.program.text, spec=spec_of(model))
        document["statement"]["fields"] = [list(field) for field in fields]
        found.append(document)
    lower = lower_by_minor(model.free.program, rank)
    if upper is not None and lower is not None and bound == rank.rank and model.free is model:
        found.append(dimension_document(model, bound, lower, upper))
    return tuple(found)


def coordinate_places(model: Model, seed: int = 0) -> list[int | None]:
    """For each coordinate of a model its number among those that occur, as a checker numbers them; None for one that is zero.

    The coefficients of one output after the other; monomials of the inputs by degree, then with the first inputs first.
    """
    if model.coordinate_program is not None:
        return list(range(model.coordinate_count))
    exponents, flat = model.monomials, _flat_inputs(model.program)
    weights = model.draw_weights(np.random.default_rng([seed, 17]), PRIME)
    occurs = model.coordinates({name: Mod(value, PRIME) for name, value in weights.items()}).values != 0
    keys = []
    for c in range(model.coordinate_count):
        output, m = divmod(c, len(exponents))
        variables = sorted(v for v, e in zip(flat, exponents[m].tolist(), strict=True) for _ in range(e))
        keys.append((output, len(variables), variables))
    order = sorted((c for c in range(len(keys)) if occurs[c]), key=keys.__getitem__)
    number = {c: k for k, c in enumerate(order)}
    return [number.get(c) for c in range(len(keys))]


def _flat_inputs(program: Program) -> list[int]:
    """For each variable of a model's monomials, which count the last axis of an input slowest, its flat input."""
    found: list[int] = []
    for shape in program.input_shapes.values():
        found += (len(found) + np.arange(prod(shape)).reshape(shape).flatten(order="F")).tolist()
    return found


def _renumbered(
    equation: Equation, places: Sequence[int | None], count: int
) -> dict[tuple[int, ...], int | Fraction]:
    """Exponents in the coordinates that occur, and coefficients; terms with a coordinate that is zero are left out."""
    found: dict[tuple[int, ...], int | Fraction] = {}
    for c, monomial in zip(equation.coefficients, equation.monomials, strict=True):
        own = [places[i] for i in monomial]
        if None not in own:
            key = tuple(own.count(i) for i in range(count))
            found[key] = found.get(key, 0) + c
    return found


def _residues(rows: Sequence[Sequence[Any]]) -> np.ndarray:
    return np.array([[residue(Fraction(x), PRIME) for x in row] for row in rows], dtype=np.int64)


def _trimmed(path: Sequence[Any]) -> list[Any]:
    """A polynomial without zeros at its end."""
    last = max((n for n, c in enumerate(path) if c), default=0)
    return list(path[: last + 1])
