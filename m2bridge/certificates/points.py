"""Write certificates of closures, of points inside and outside of them, of singular and smooth points, and of symmetries.

The checker determines the coordinates of the image from the program (``docs/certificates.md``, section 5). This module numbers
the coordinates in the same way, so that equations and points refer to the checker's coordinates.
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
    certificate_for,
    lower_by_minor,
    numbers,
    spec_of,
    written,
)
from m2bridge.families import Model
from m2bridge.families.evaluation import random_image_points
from m2bridge.families.symbolic import MOST_EXPANDED_TERMS, rational_variables, sparse, term_bound
from m2bridge.linear.modular import eliminate, kernel_mod
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, prime_for
from m2bridge.linear.residues import rational, residue
from m2bridge.programs.arithmetics import object_array
from m2bridge.programs.program import Program
from m2bridge.programs.ranks import GenericRank, generic_rank

Document = dict[str, Any]
Terms = dict[tuple[int, ...], int | Fraction]
PRIME = 2**31 - 1
"""The prime for elimination of matrices of integers by FLINT; programs require primes below 2^23."""
Arc = tuple[Sequence[Sequence[Any]], Sequence[Fraction]]
"""A curve of weights: for each flat weight the coefficients of a polynomial in t, the lowest first; and the tangent vector of the
image curve at t = 0."""


class WrittenEquation(Protocol):
    """A polynomial in the coordinates of a model, as in the result of the question `closure`."""

    @property
    def coefficients(self) -> tuple[int, ...]: ...

    @property
    def monomials(self) -> tuple[tuple[int, ...], ...]: ...

    def gradient(self, values: Sequence[Any]) -> list[Any]: ...


# -- closures and their points ---------------------------------------------------------------------------

MOST_SYMBOLS = 20_000  # flat weights times coordinates
MOST_CERTIFIED_PRODUCTS = (
    500_000  # products of terms in the expansion of equations: about two seconds in pure Python
)
MOST_CERTIFIED_MONOMIALS = 12_000  # monomials up to the degree of the statement, and multiples of equations
MOST_ELIMINATION = 3e7  # sum over the multidegrees of (number of monomials)^3


def closure_certificates(
    model: Model, equations: Sequence[WrittenEquation], p: int, degree: int, *, seed: int
) -> tuple[Document, ...]:
    """Write a certificate that the equations hold over ZZ, and that they generate all equations up to a degree.

    The equations are over QQ for p = 0. Coefficients in F_p are lifted to small fractions. The result is empty if an equation
    does not hold over ZZ, or if the check would take too long in pure Python. The degree is reduced if only the count of
    monomials up to `degree` would take too long.
    """
    expanded = _Expanded.of(model, seed)
    if expanded is None:
        return ()
    renumbered = [expanded.renumbered(f, p) for f in equations]
    nonzero = [f for f in renumbered if f]
    too_large = sum(map(expanded.products, nonzero)) > MOST_CERTIFIED_PRODUCTS
    if None in renumbered or too_large or any(map(expanded.fails, nonzero)):
        return ()
    gradings = [
        (d, e) for d, e in expanded.gradings() if all(len({np.dot(e, m) for m in f}) == 1 for f in nonzero)
    ]
    k = _reachable_degree(
        [e for _, e in gradings], [max(map(sum, f)) for f in nonzero], len(expanded.terms), degree
    )
    statement = {"kind": "closure", "equations": [written(f) for f in nonzero], "degree": k}
    argument = {"prime": PRIME, "gradings": [d for d, _ in gradings]}
    return (certificate(expanded.program, statement, argument, spec=spec_of(model)),)


def inside_certificates(
    model: Model, source: Model, weights: Sequence[Fraction], *, seed: int
) -> tuple[Document, ...]:
    """Write a certificate that a point is in the image, given exact flat weights of `source`.

    `source` is ``model.free``, or the same model with the attention matrix A in place of K^T Q; then Q and K are chosen with
    K^T Q = A.
    """
    expanded = _Expanded.of(model, seed)
    flat = list(weights)
    if expanded is None:
        return ()
    if source.parameters != model.free.parameters:
        rows, d = model.free.parameters["Q"]
        zeros = [Fraction(0)] * ((rows - d) * d)
        identity = [Fraction(int(i == j)) for i in range(d) for j in range(d)]
        flat = [*flat[: d * d], *zeros, *identity, *zeros, *flat[d * d :]]
    point = [sum(c * prod(map(pow, flat, m)) for m, c in f.items()) for f in expanded.terms]
    statement = {"kind": "inside", "weights": numbers(flat), "point": numbers(point)}
    return (certificate(expanded.program, statement, spec=spec_of(model)),)


def outside_certificates(
    model: Model, equation: WrittenEquation, values: Sequence[Fraction], *, seed: int
) -> tuple[Document, ...]:
    """Write a certificate that a point is not in the closure, given an equation over QQ that does not vanish at the point."""
    expanded = _Expanded.of(model, seed)
    if expanded is None:
        return ()
    if any(value for index, value in zip(expanded.indices, values, strict=True) if index is None):
        return ()  # a coordinate that is zero on the image is not zero at the point
    renumbered = expanded.renumbered(equation, 0)
    if renumbered is None or expanded.products(renumbered) > MOST_CERTIFIED_PRODUCTS:
        return ()
    point = numbers(expanded.ordered(values))
    statement = {"kind": "outside", "point": point, "equation": written(renumbered)}
    return (certificate(expanded.program, statement, spec=spec_of(model)),)


class _Expanded:
    """The program of a model with its coordinates expanded to polynomials in the flat weights.

    `indices` contains the checker's number of each coordinate of the model, None for a coordinate that is zero. `terms`
    contains the polynomials of the non-zero coordinates in the checker's order.
    """

    def __init__(self, model: Model, seed: int) -> None:
        free = model.free
        self.program = free.coordinate_program or free.program
        self.indices = coordinate_indices(free, seed)
        variables = rational_variables([f"w{i}" for i in range(free.parameter_count)])
        weights = free.unflatten(object_array(variables, (len(variables),)))
        values = np.asarray(free.coordinates(weights), dtype=object).reshape(-1)
        self.terms = [sparse(variables[0] * 0 + value) for value in self.ordered(values.tolist())]
        random_weights = np.random.default_rng([seed, 19]).integers(0, PRIME, size=free.parameter_count)
        self.point = [_value_at(f, random_weights.tolist()) for f in self.terms]

    @classmethod
    def of(cls, model: Model, seed: int) -> _Expanded | None:
        """Expand a model; None if it is not polynomial or has too many coordinates or terms."""
        free = model.free
        if not free.polynomial or free.parameter_count * free.coordinate_count > MOST_SYMBOLS:
            return None
        return cls(model, seed) if term_bound(free) <= MOST_EXPANDED_TERMS else None

    def ordered(self, values: Sequence[Any]) -> list[Any]:
        """Select the values of the non-zero coordinates, in the checker's order."""
        by_index = {i: value for i, value in zip(self.indices, values, strict=True) if i is not None}
        return [by_index[k] for k in range(len(by_index))]

    def renumbered(self, equation: WrittenEquation, p: int) -> Terms | None:
        """Write an equation over QQ in the checker's coordinates; None if a coefficient modulo p cannot be lifted to QQ."""
        exact = [rational(c, p) if p else Fraction(c) for c in equation.coefficients]
        lifted = [c for c in exact if c is not None]
        if len(lifted) < len(exact):
            return None
        return _renumbered(lifted, equation.monomials, self.indices, len(self.terms))

    def products(self, f: Terms) -> int:
        """Estimate the number of products of terms when the coordinates are substituted into an equation."""
        return sum(prod(len(t) ** e for t, e in zip(self.terms, m, strict=True)) for m in f)

    def fails(self, f: Terms) -> bool:
        """Return whether an equation does not vanish at a random point of the image modulo PRIME."""
        return bool(_value_at(f, self.point))

    def gradings(self) -> list[tuple[list[int], list[int]]]:
        """Return gradings: degrees of the flat weights for which every coordinate is homogeneous, with the coordinates' degrees.

        If the weights have the degrees d, then a monomial w^m of the coordinate k has the degree m . d, which must be e_k. These
        linear equations for (d, e) are solved modulo PRIME, lifted to integers, and verified exactly. Only degrees of absolute
        value at most 100 are returned.
        """
        count = len(self.terms)
        rows: list[list[int]] = []
        for k, f in enumerate(self.terms):
            unit = [-int(i == k) for i in range(count)]
            rows += [[*m, *unit] for m in f]
        if not rows:  # all coordinates are zero
            return []
        basis, _, _ = kernel_mod(np.array(rows, dtype=np.int64) % PRIME, PRIME)
        gradings = []
        for row in basis.tolist():
            fractions = [rational(x, PRIME) or Fraction(0) for x in row]
            common = lcm(*(x.denominator for x in fractions))
            degrees = [int(x * common) for x in fractions]
            is_solution = all(sum(map(mul, r, degrees)) == 0 for r in rows)
            if is_solution and max(map(abs, degrees)) <= 100 and any(degrees[-count:]):
                gradings.append((degrees[:-count], degrees[-count:]))
        return gradings


def _value_at(f: Terms, point: Sequence[int]) -> int:
    """Return the value of a polynomial at a point, modulo PRIME."""
    terms = [(residue(Fraction(c), PRIME), zip(point, m, strict=True)) for m, c in f.items()]
    return sum(c * prod(pow(x, e, PRIME) for x, e in powers) for c, powers in terms) % PRIME


def _reachable_degree(
    gradings: Sequence[Sequence[int]], degrees: Sequence[int], count: int, most: int
) -> int:
    """Return the largest degree up to `most` for which the checker, in pure Python, can count the monomials by multidegree."""
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
    """Write a certificate that the image of flat weights of ``model.free`` is a singular point of the closure.

    The argument consists of arcs through the point whose tangent vectors are linearly independent, more of them than the
    dimension. `size` is the certificate of the dimension, whose upper bound is used. The result is None without it, or with too
    few arcs.
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
    """Write a certificate that the closure is smooth at the image of flat weights of ``model.free``.

    `equations` hold on the closure; they are over ZZ, in the model's coordinates. The result is None if the rank of their
    differentials at the image point is not the codimension.
    """
    free = model.free
    program = free.coordinate_program or free.program
    indices = coordinate_indices(free, seed)
    rows = _residues([equation.gradient(image) for equation in equations])
    nonzero = [k for k, index in enumerate(indices) if index is not None]
    independent = eliminate(rows[:, nonzero], PRIME).pivot_rows if len(rows) else ()
    p = prime_for(given_numbers(model), chosen=None, default=LARGE_PRIME)
    rank = generic_rank(program, p=p, seed=seed, whole=True)
    if len(nonzero) - len(independent) != rank.rank or rank.heuristic:
        return None
    used = [equations[k] for k in sorted(independent)]
    terms = [written(_renumbered(f.coefficients, f.monomials, indices, len(nonzero))) for f in used]
    statement = {"kind": "smooth", "weights": numbers(weights)}
    argument = {"prime": PRIME, "lower": lower_by_minor(program, rank), "equations": terms}
    return certificate(program, statement, argument, spec=spec_of(model))


def symmetry_certificates(
    model: Model, fields: Sequence[list[Any]], rank: GenericRank, upper: Document | None, bound: int
) -> tuple[Document, ...]:
    """Write a certificate of vector fields that are symmetries and, if the bounds are equal, one of the dimension.

    None for weights that satisfy equations: the record counts those of the program, the checker those of the spec.
    """
    if model.free is not model:
        return ()
    documents: list[Document | None] = []
    if fields:
        statement = {"kind": "symmetry", "groups": [], "fields": [list(field) for field in fields]}
        documents.append(certificate(model.free.program, statement, spec=spec_of(model)))
    if upper is not None and bound == rank.rank:
        documents.append(certificate_for(model, bound, rank, upper))
    return tuple(document for document in documents if document is not None)


def coordinate_indices(model: Model, seed: int = 0) -> list[int | None]:
    """Return the checker's number of each coordinate of a model; None for a coordinate that is zero.

    The checker numbers the non-zero coefficients, one output after the other; within an output by the degree of the monomial in
    the inputs, then lexicographically.
    """
    if model.coordinate_program is not None:
        return list(range(model.coordinate_count))
    exponents, flat = model.monomials, _flat_inputs(model.program)
    p = prime_for(given_numbers(model), chosen=None, default=LARGE_PRIME)
    # Two points are used, because a non-zero coordinate may vanish at one of them by accident.
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
    """Return the flat input of each variable of a model's monomials.

    The variables of the monomials enumerate an input in Fortran order, the flat inputs in C order.
    """
    flat: list[int] = []
    for shape in program.input_shapes.values():
        flat += (len(flat) + np.arange(prod(shape)).reshape(shape).flatten(order="F")).tolist()
    return flat


def _renumbered(
    coefficients: Sequence[int | Fraction],
    monomials: Sequence[tuple[int, ...]],
    indices: Sequence[int | None],
    count: int,
) -> Terms:
    """Write a polynomial in the checker's coordinates; terms with a coordinate that is zero are omitted."""
    terms: Terms = {}
    for c, monomial in zip(coefficients, monomials, strict=True):
        variables = [indices[i] for i in monomial]
        if None not in variables:
            exponents = tuple(variables.count(i) for i in range(count))
            terms[exponents] = terms.get(exponents, 0) + c
    return terms


def _residues(rows: Sequence[Sequence[Any]]) -> np.ndarray:
    return np.array([[residue(Fraction(x), PRIME) for x in row] for row in rows], dtype=np.int64)


def _trimmed(path: Sequence[Any]) -> list[Any]:
    """Remove the zeros at the end of the coefficients of a polynomial."""
    last = max((n for n, c in enumerate(path) if c), default=0)
    return list(path[: last + 1])
