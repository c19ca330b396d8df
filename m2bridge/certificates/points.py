"""Certificates of closures, of points inside and outside, of singular and smooth points, and of symmetries that were found.

They are written in the coordinates that a checker reads off the program (``docs/certificates.md``, section 5); here these are
numbered as it numbers them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb, prod
from typing import Any, Protocol

import numpy as np

from m2bridge.certificates.produce import dimension_document, lower_by_minor, spec_of
from m2bridge.certificates.statements import (
    closure_certificate,
    inside_certificate,
    outside_certificate,
    singular_certificate,
    smooth_certificate,
    symmetry_certificate,
)
from m2bridge.linear.modular import eliminate, kernel_mod
from m2bridge.linear.residues import rational, residue
from m2bridge.models import Mod, Model
from m2bridge.models.symbolic import rational_variables, sparse
from m2bridge.programs.program import Program
from m2bridge.programs.ranks import GenericRank, generic_rank

Document = dict[str, Any]
Terms = dict[tuple[int, ...], int | Fraction]
PRIME = 2**31 - 1
Arc = tuple[Sequence[Sequence[Any]], Sequence[Fraction]]
"""For each flat weight the coefficients of a polynomial in t, lowest first; and the tangent vector of its image at t = 0."""


class Equation(Protocol):
    """A polynomial in the coordinates of a model, as a closure has them."""

    @property
    def coefficients(self) -> tuple[int, ...]: ...

    @property
    def monomials(self) -> tuple[tuple[int, ...], ...]: ...

    def at(self, values: Sequence[Any]) -> Any: ...

    def gradient(self, values: Sequence[Any]) -> list[Any]: ...


# -- closures and their points ---------------------------------------------------------------------------

MOST_SYMBOLS = 20_000  # flat weights times coordinates
MOST_PRODUCTS = 500_000  # products of terms when equations are expanded: about two seconds in plain Python
MOST_MONOMIALS = 12_000  # in which nothing else is shown to vanish, and multiples of equations
MOST_ELIMINATION = 3e7  # cubes of the numbers of monomials of one multidegree, added up


def closure_certificates(
    model: Model, equations: Sequence[Equation], p: int, degree: int, *, seed: int
) -> tuple[Document, ...]:
    """The equations of a closure, over QQ for p = 0, as a certificate that they hold over ZZ and are all up to a degree.

    Equations over F_p are taken for what their small coefficients say. There is no certificate where one of them does not hold
    over ZZ, or where plain Python would take long; the degree is smaller than asked for where only this would.
    """
    found = _Expanded.of(model, seed)
    terms = None if found is None else _over_integers(model, equations, p, seed)
    if found is None or terms is None:
        return ()
    own = [f for f in (_renumbered(f, found.places, len(found.supports)) for f in terms) if f]
    factors = [[tuple(i for i, e in enumerate(m) for _ in range(e)) for m in f] for f in own]
    if sum(prod(found.sizes[i] for i in m) for f in factors for m in f) > MOST_PRODUCTS:
        return ()
    gradings = [
        g for g in found.gradings if all(len({sum(g[1][i] for i in m) for m in f}) == 1 for f in factors)
    ]
    k = _reachable_degree(
        [g[1] for g in gradings], [max(map(len, f)) for f in factors], len(found.sizes), degree
    )
    document = closure_certificate(
        found.program.text, own, k, prime=PRIME, gradings=[g[0] for g in gradings], spec=spec_of(model)
    )
    return (document,)


def inside_certificates(
    model: Model, source: Model, weights: Sequence[Fraction], *, seed: int
) -> tuple[Document, ...]:
    """A point of the image by exact flat weights of `source`, which is the model by (Q, K, V) or by (A, V)."""
    found = _Expanded.of(model, seed)
    flat = list(weights)
    if found is None or model.free.parameters != source.parameters:
        if found is None or set(source.parameters) != {"A", "V"} or set(model.free.parameters) != set("QKV"):
            return ()
        (a, d), square = model.free.parameters["Q"], source.parameters["A"][0] ** 2
        zeros = [Fraction(0)] * (a * d - square)
        identity = [Fraction(int(i == j)) for i in range(d) for j in range(d)]
        flat = [*flat[:square], *zeros, *identity, *zeros, *flat[square:]]
    point = [sum(c * prod(w**e for w, e in zip(flat, m, strict=True)) for m, c in f) for f in found.supports]
    return (inside_certificate(found.program.text, flat, point, spec=spec_of(model)),)


def outside_certificates(
    model: Model, equation: Equation, values: Sequence[Fraction], *, seed: int
) -> tuple[Document, ...]:
    """A point that is not in the closure, by an equation over QQ that fails there."""
    found = _Expanded.of(model, seed)
    if found is None or any(
        place is None and value for place, value in zip(found.places, values, strict=True)
    ):
        return ()
    own = _renumbered(equation, found.places, len(found.supports))
    sizes = [prod(n**e for n, e in zip(found.sizes, m, strict=True)) for m in own]
    if sum(sizes) > MOST_PRODUCTS:
        return ()
    order = sorted(
        (place, value) for place, value in zip(found.places, values, strict=True) if place is not None
    )
    point = [value for _, value in order]
    return (outside_certificate(found.program.text, own, point, spec=spec_of(model)),)


class _Expanded:
    """The program whose image is asked about, with its coordinates as polynomials in the flat weights.

    `places` numbers the model's coordinates as the checker does, `supports` are the terms of those that occur, in this order.
    """

    def __init__(self, model: Model, seed: int) -> None:
        free = model.free
        self.program = free.coordinate_program or free.program
        self.places = coordinate_places(free, seed)
        variables = rational_variables([f"w{i}" for i in range(free.parameter_count)])
        flat = np.empty(len(variables), dtype=object)
        flat[:] = variables
        values = np.asarray(free.coordinates(free.unflatten(flat)), dtype=object).reshape(-1)
        order = sorted((place, c) for c, place in enumerate(self.places) if place is not None)
        self.supports = [list(sparse(variables[0] * 0 + values[c]).items()) for _, c in order]
        self.sizes = [len(f) for f in self.supports]

    @classmethod
    def of(cls, model: Model, seed: int) -> _Expanded | None:
        """None where weights satisfy equations, or where there are too many coordinates."""
        free = model.free
        if not free.polynomial or free.program.vanishing or free.parameter_dim < free.parameter_count:
            return None
        small = free.parameter_count * free.coordinate_count <= MOST_SYMBOLS
        return cls(model, seed) if small else None

    @property
    def gradings(self) -> list[tuple[list[int], list[int]]]:
        """Small degrees of the flat weights for which every coordinate is homogeneous, and the degrees of the coordinates."""
        exponents = [np.array([m for m, _ in f], dtype=np.int64) for f in self.supports]
        count = len(exponents[0][0]) if exponents and len(exponents[0]) else 0
        steps = [table[1:] - table[0] for table in exponents if len(table)]
        first = np.array([table[0] for table in exponents if len(table)], dtype=np.int64)
        if not count or len(first) < len(exponents):
            return []
        differences = np.concatenate([np.concatenate(steps), np.zeros((1, count), dtype=np.int64)])
        zeros = np.zeros((len(differences), len(first)), dtype=np.int64)
        lower = np.concatenate([first, -np.eye(len(first), dtype=np.int64)], axis=1)
        basis, _, _ = kernel_mod(
            np.concatenate([np.concatenate([differences, zeros], axis=1), lower]) % PRIME, PRIME
        )
        found = []
        for row in basis.tolist():
            degrees = [rational(x, PRIME) for x in row]
            common = np.lcm.reduce([1 if x is None else x.denominator for x in degrees])
            whole = [None if x is None else int(x * int(common)) for x in degrees]
            if all(x is not None and abs(x) <= 100 for x in whole) and any(whole[count:]):
                found.append(([int(x or 0) for x in whole[:count]], [int(x or 0) for x in whole[count:]]))
        return found


def _over_integers(model: Model, equations: Sequence[Equation], p: int, seed: int) -> list[_Lifted] | None:
    """Equations with rational coefficients, seen to vanish at image points modulo a large prime; None where one does not."""
    free, rng = model.free, np.random.default_rng([seed, 19])
    drawn = [free.draw_weights(rng, PRIME) for _ in range(3)]
    points = [
        free.coordinates({n: Mod(w, PRIME) for n, w in weights.items()}).values.tolist() for weights in drawn
    ]
    found = []
    for f in equations:
        exact = [rational(c, p) if p else Fraction(c) for c in f.coefficients]
        lifted = _Lifted(tuple(c for c in exact if c is not None), f.monomials)
        if len(lifted.coefficients) < len(exact) or any(lifted.at(point) for point in points):
            return None
        found.append(lifted)
    return found


@dataclass(frozen=True, slots=True)
class _Lifted:
    coefficients: tuple[Fraction, ...]
    monomials: tuple[tuple[int, ...], ...]

    def at(self, point: Sequence[int]) -> int:
        """The value modulo PRIME."""
        terms = zip(self.coefficients, self.monomials, strict=True)
        return sum(residue(c, PRIME) * prod(point[i] for i in m) for c, m in terms) % PRIME


def _reachable_degree(
    gradings: Sequence[Sequence[int]], degrees: Sequence[int], count: int, most: int
) -> int:
    """The largest degree up to `most` in which a checker in plain Python can count monomials of each multidegree."""
    table = np.array(gradings, dtype=np.int64).reshape(len(gradings), count)
    for k in range(1, most + 1):
        multiples = sum(comb(count + k - e, count) for e in degrees if e <= k)
        if max(multiples, comb(count + k, k)) > MOST_MONOMIALS:
            return k - 1
        blocks: dict[tuple[int, ...], int] = {}
        for e in range(k + 1):
            for monomial in combinations_with_replacement(range(count), e):
                key = tuple(table[:, list(monomial)].sum(axis=1).tolist())
                blocks[key] = blocks.get(key, 0) + 1
        if sum(float(n) ** 3 for n in blocks.values()) > MOST_ELIMINATION:
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


def _renumbered(equation: Any, places: Sequence[int | None], count: int) -> Terms:
    """Exponents in the coordinates that occur, and coefficients; terms with a coordinate that is zero are left out."""
    found: Terms = {}
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
