"""Certificates of closures, of points inside and outside, of singular and smooth points, and of symmetries that were found.

They are written in the coordinates that a checker reads off the program (``docs/certificates.md``, section 5); here these are
numbered as it numbers them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb, lcm, prod
from operator import mul
from typing import Any, Protocol

import numpy as np

from m2bridge.certificates.produce import (
    certificate,
    dimension_document,
    lower_by_minor,
    numbers,
    spec_of,
    written,
)
from m2bridge.families import Model
from m2bridge.families.evaluation import random_image_points
from m2bridge.families.symbolic import rational_variables, sparse
from m2bridge.linear.modular import eliminate, kernel_mod
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, prime_for
from m2bridge.linear.residues import rational, residue
from m2bridge.programs.arithmetics import object_array
from m2bridge.programs.program import Program
from m2bridge.programs.ranks import GenericRank, generic_rank

Document = dict[str, Any]
Terms = dict[tuple[int, ...], int | Fraction]
PRIME = 2**31 - 1
"""For matrices of integers, which FLINT eliminates; programs take primes below 2^23."""
Arc = tuple[Sequence[Sequence[Any]], Sequence[Fraction]]
"""For each flat weight the coefficients of a polynomial in t, lowest first; and the tangent vector of its image at t = 0."""


class WrittenEquation(Protocol):
    """A polynomial in the coordinates of a model, as a closure has them."""

    @property
    def coefficients(self) -> tuple[int, ...]: ...

    @property
    def monomials(self) -> tuple[tuple[int, ...], ...]: ...

    def gradient(self, values: Sequence[Any]) -> list[Any]: ...


# -- closures and their points ---------------------------------------------------------------------------

MOST_SYMBOLS = 20_000  # flat weights times coordinates
MOST_CERTIFIED_PRODUCTS = (
    500_000  # products of terms when equations are expanded: about two seconds in plain Python
)
MOST_CERTIFIED_MONOMIALS = 12_000  # among which nothing else is shown to vanish, and multiples of equations
MOST_ELIMINATION = 3e7  # cubes of the numbers of monomials of one multidegree, added up


def closure_certificates(
    model: Model, equations: Sequence[WrittenEquation], p: int, degree: int, *, seed: int
) -> tuple[Document, ...]:
    """The equations of a closure, over QQ for p = 0, as a certificate that they hold over ZZ and are all up to a degree.

    Equations over F_p are taken for what their small coefficients say. There is no certificate where one of them does not hold
    over ZZ, or where plain Python would take long; the degree is smaller than asked for where only this would.
    """
    found = _Expanded.of(model, seed)
    if found is None:
        return ()
    own = [found.renumbered(f, p) for f in equations]
    kept = [f for f in own if f]
    if None in own or sum(map(found.products, kept)) > MOST_CERTIFIED_PRODUCTS or any(map(found.fails, kept)):
        return ()
    gradings = [(d, e) for d, e in found.gradings() if all(len({np.dot(e, m) for m in f}) == 1 for f in kept)]
    k = _reachable_degree(
        [e for _, e in gradings], [max(map(sum, f)) for f in kept], len(found.terms), degree
    )
    statement = {"kind": "closure", "equations": [written(f) for f in kept], "degree": k}
    argument = {"prime": PRIME, "gradings": [d for d, _ in gradings]}
    return (certificate(found.program, statement, argument, spec=spec_of(model)),)


def inside_certificates(
    model: Model, source: Model, weights: Sequence[Fraction], *, seed: int
) -> tuple[Document, ...]:
    """A point of the image by exact flat weights of `source`, which is ``model.free`` or has A in the place of K^T Q."""
    found, flat = _Expanded.of(model, seed), list(weights)
    if found is None:
        return ()
    if source.parameters != model.free.parameters:
        rows, d = model.free.parameters["Q"]
        rest = [Fraction(0)] * ((rows - d) * d)
        identity = [Fraction(int(i == j)) for i in range(d) for j in range(d)]
        flat = [*flat[: d * d], *rest, *identity, *rest, *flat[d * d :]]
    point = [sum(c * prod(map(pow, flat, m)) for m, c in f.items()) for f in found.terms]
    statement = {"kind": "inside", "weights": numbers(flat), "point": numbers(point)}
    return (certificate(found.program, statement, spec=spec_of(model)),)


def outside_certificates(
    model: Model, equation: WrittenEquation, values: Sequence[Fraction], *, seed: int
) -> tuple[Document, ...]:
    """A point that is not in the closure, by an equation over QQ that fails there."""
    found = _Expanded.of(model, seed)
    if found is None or any(
        value for place, value in zip(found.places, values, strict=True) if place is None
    ):
        return ()
    own = found.renumbered(equation, 0)
    if own is None or found.products(own) > MOST_CERTIFIED_PRODUCTS:
        return ()
    statement = {"kind": "outside", "point": numbers(found.ordered(values)), "equation": written(own)}
    return (certificate(found.program, statement, spec=spec_of(model)),)


class _Expanded:
    """The program whose image is asked about, with its coordinates as polynomials in the flat weights.

    `places` numbers the model's coordinates as the checker does, `terms` are those that occur, in this order.
    """

    def __init__(self, model: Model, seed: int) -> None:
        free = model.free
        self.program = free.coordinate_program or free.program
        self.places = coordinate_places(free, seed)
        variables = rational_variables([f"w{i}" for i in range(free.parameter_count)])
        weights = free.unflatten(object_array(variables, (len(variables),)))
        values = np.asarray(free.coordinates(weights), dtype=object).reshape(-1)
        self.terms = [sparse(variables[0] * 0 + value) for value in self.ordered(values.tolist())]
        drawn = np.random.default_rng([seed, 19]).integers(0, PRIME, size=free.parameter_count).tolist()
        self.point = [_at(f, drawn) for f in self.terms]

    @classmethod
    def of(cls, model: Model, seed: int) -> _Expanded | None:
        """None for an analytic model, or where there are too many coordinates."""
        free = model.free
        if not free.polynomial:
            return None
        return cls(model, seed) if free.parameter_count * free.coordinate_count <= MOST_SYMBOLS else None

    def ordered(self, values: Sequence[Any]) -> list[Any]:
        """Values of the model's coordinates, those of the coordinates that occur, in the checker's order."""
        found = {place: value for place, value in zip(self.places, values, strict=True) if place is not None}
        return [found[k] for k in range(len(found))]

    def renumbered(self, equation: WrittenEquation, p: int) -> Terms | None:
        """An equation in the coordinates that occur, over QQ; None where a residue modulo p is that of no small fraction."""
        exact = [rational(c, p) if p else Fraction(c) for c in equation.coefficients]
        lifted = [c for c in exact if c is not None]
        if len(lifted) < len(exact):
            return None
        return _renumbered(lifted, equation.monomials, self.places, len(self.terms))

    def products(self, f: Terms) -> int:
        """Products of terms when the coordinates are put into an equation, about."""
        return sum(prod(len(t) ** e for t, e in zip(self.terms, m, strict=True)) for m in f)

    def fails(self, f: Terms) -> bool:
        """Whether an equation does not vanish at an image point modulo a large prime."""
        return bool(_at(f, self.point))

    def gradings(self) -> list[tuple[list[int], list[int]]]:
        """Small degrees of the flat weights for which every coordinate is homogeneous, and the degrees of the coordinates."""
        count, rows = len(self.terms), []
        for k, f in enumerate(self.terms):
            unit = [-int(i == k) for i in range(count)]
            rows += [[*m, *unit] for m in f]
        if not rows:  # all coordinates are 0
            return []
        basis, _, _ = kernel_mod(np.array(rows, dtype=np.int64) % PRIME, PRIME)
        found = []
        for row in basis.tolist():
            degrees = [rational(x, PRIME) or Fraction(0) for x in row]
            common = lcm(*(x.denominator for x in degrees))
            whole = [int(x * common) for x in degrees]
            true = all(sum(map(mul, r, whole)) == 0 for r in rows) and max(map(abs, whole)) <= 100
            found += [(whole[:-count], whole[-count:])] if true and any(whole[-count:]) else []
        return found


def _at(f: Terms, point: Sequence[int]) -> int:
    """The value of a polynomial at a point, modulo PRIME."""
    terms = [(residue(Fraction(c), PRIME), zip(point, m, strict=True)) for m, c in f.items()]
    return sum(c * prod(pow(x, e, PRIME) for x, e in powers) for c, powers in terms) % PRIME


def _reachable_degree(
    gradings: Sequence[Sequence[int]], degrees: Sequence[int], count: int, most: int
) -> int:
    """The largest degree up to `most` in which a checker in plain Python can count monomials of each multidegree."""
    sizes: Counter[tuple[int, ...]] = Counter()
    for k in range(most + 1):
        multiples = sum(comb(count + k - e, count) for e in degrees if e <= k)
        if max(multiples, comb(count + k, k)) > MOST_CERTIFIED_MONOMIALS:
            return k - 1
        for m in combinations_with_replacement(range(count), k):
            sizes[tuple(sum(grade[i] for i in m) for grade in gradings)] += 1
        if sum(float(n) ** 3 for n in sizes.values()) > MOST_ELIMINATION:
            return k - 1
    return most


# -- singular and smooth points ---------------------------------------------------------------------------


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
    paths = [[numbers(_trimmed(path)) for path in arcs[k][0]] for k in sorted(independent)]
    statement = {"kind": "singular", "weights": numbers(weights)}
    argument = {"prime": PRIME, "upper": size["upper"], "arcs": paths}
    return certificate(model.free.program, statement, argument, spec=spec_of(model))


def smooth_point_certificate(
    model: Model,
    weights: Sequence[Any],
    image: Sequence[Any],
    equations: Sequence[WrittenEquation],
    *,
    seed: int,
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
    p = prime_for(given_numbers(model), chosen=None, default=LARGE_PRIME)
    rank = generic_rank(program, p=p, seed=seed, whole=True)
    if len(kept) - len(chosen) != rank.rank or rank.heuristic:
        return None
    used = [equations[k] for k in sorted(chosen)]
    terms = [written(_renumbered(f.coefficients, f.monomials, places, len(kept))) for f in used]
    statement = {"kind": "smooth", "weights": numbers(weights)}
    argument = {"prime": PRIME, "lower": lower_by_minor(program, rank), "equations": terms}
    return certificate(program, statement, argument, spec=spec_of(model))


def found_symmetries(
    model: Model, fields: Sequence[list[Any]], rank: GenericRank, upper: Document | None, bound: int
) -> tuple[Document, ...]:
    """The identities of vector fields as one certificate and, where the bounds meet, the dimension as another."""
    found = []
    if fields:
        statement = {"kind": "symmetry", "groups": [], "fields": [list(field) for field in fields]}
        found.append(certificate(model.free.program, statement, spec=spec_of(model)))
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
    p = prime_for(given_numbers(model), chosen=None, default=LARGE_PRIME)
    # at two points, because one of many coordinates may vanish at one by accident
    points = random_image_points(model, np.random.default_rng([seed, 17]), 2, p)
    occurs = np.asarray(points.any(axis=0))
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
    coefficients: Sequence[int | Fraction],
    monomials: Sequence[tuple[int, ...]],
    places: Sequence[int | None],
    count: int,
) -> Terms:
    """Exponents in the coordinates that occur, and coefficients; terms with a coordinate that is zero are left out."""
    found: Terms = {}
    for c, monomial in zip(coefficients, monomials, strict=True):
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
