"""The image of a model as a cone in the space of its coordinates, with its linear span, its torus and its permutations.

When the image is not stable under scaling, one more coordinate, equal to 1 on the image, makes it a cone: homogeneous equations
of that cone are the equations of the closure with powers of the new coordinate filled in. The torus and the permutations
are found from the model itself and checked at random points over a large prime, so they serve every family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import ceil, lcm, sqrt
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from m2bridge.errors import InputError, NotPolynomialError, SpecError
from m2bridge.families.base import Model
from m2bridge.families.polynomial_map import PolynomialMap
from m2bridge.families.rational_cone import cone_map, is_rational_map
from m2bridge.families.symbolic import MOST_EXPANDED_TERMS, sparse, symbolic_map, term_bound
from m2bridge.families.target_grading import target_grading
from m2bridge.linear.modular import kernel_mod, rank_mod
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, is_prime, primes_below
from m2bridge.linear.residues import Mod, rational, residue
from m2bridge.programs.program import degree_in

Matrix = npt.NDArray[np.int64]
_SEED = 7  # of points that decide properties of the image, the same for every question
_MOST_COORDINATE_TERMS = 200_000
"""Terms of all coordinates that are expanded over QQ."""
_MOST_EQUAL_AXES = 8
"""With more equal axes only pairs of them are permuted: all subsets would be too many."""
_LARGEST_WEIGHT = 100  # entries of a grading; larger fractions are accidents of the prime
EXTRA_POINTS = 12
"""Points beyond the number of unknowns, where almost every point gives an independent condition."""
_MOST_IMAGE_ENTRIES = 5_000_000
"""Entries of a matrix of values at points over a small field, of which many give no new condition."""
_SMALL_FIELD = 1000  # below, many points are special
_POINTS_OVER_SMALL_FIELDS = 8  # points of which the largest rank is taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The linear span of the image: equations are written in the coordinates `basis`, which are independent on it.

    For each other coordinate there is one linear form that vanishes on the image, {coordinate: coefficient}. `ambient` is the
    number of all coordinates, the homogenizing one included.
    """

    basis: tuple[int, ...]
    linear_forms: tuple[dict[int, Any], ...]
    ambient: int

    @property
    def dim(self) -> int:
        return len(self.basis)

    @property
    def polynomials(self) -> list[dict[tuple[int, ...], Any]]:
        """Return the linear forms, with exponents in all coordinates."""
        unit = [tuple(row) for row in np.eye(self.ambient, dtype=int).tolist()]
        return [{unit[i]: c for i, c in form.items()} for form in self.linear_forms]


class Image:
    """The image of a model, made a cone.

    `large_prime` and `second_prime` are for facts that do not depend on the user's prime; they divide nothing that was given.
    `homogenized`: the last coordinate is 1 on the image, which is no cone; `padded`: the source does not compute that coordinate.
    """

    def __init__(self, model: Model) -> None:
        if not model.polynomial:
            raise NotPolynomialError(
                f"{model} is not polynomial; this question requires a polynomial or rational model"
            )
        self.model = model
        self.source = model.free
        self.numbers = given_numbers(model)
        self.large_prime, self.second_prime = primes_below(LARGE_PRIME, count=2, numbers=self.numbers)
        self._check: Callable[[], None] = lambda: None
        self._symmetries: dict[tuple[int, ...], tuple[Matrix, list[Matrix]]] = {}
        if 100 * self.weight_degrees[1] > self.second_prime:
            raise InputError(
                f"{model} has degree {self.weight_degrees[1]} in its weights: points over F_p, p below 2^23, do not determine "
                "polynomials of so high a degree"
            )
        self.homogenized = self.padded = False
        self.homogenized = self.padded = not self._is_cone()

    @property
    def count(self) -> int:
        """Return the number of coordinates, the homogenizing one included."""
        return self.source.coordinate_count + self.padded

    def at(self, weights: dict[str, Matrix], p: int) -> Matrix:
        """Return the image points of a batch of weights, mod p."""
        values: Matrix = self.source.coordinates({n: Mod(w, p) for n, w in weights.items()}).values
        return np.pad(values, ((0, 0), (0, self.padded)), constant_values=1)

    @contextmanager
    def watched(self, check: Callable[[], None]) -> Iterator[None]:
        """Call `check` between points within this context, to stop when the time is over."""
        self._check = check
        try:
            yield
        finally:
            self._check = lambda: None

    def points(self, rng: np.random.Generator, count: int, p: int) -> Matrix:
        """Return random points of the image over F_p, one per row."""
        chunk = max(1, 2_000_000 // max(1, self.count * max(1, self.source.parameter_count)))
        blocks = []
        for start in range(0, count, chunk):
            self._check()
            blocks.append(self.at(self.source.draw_weights(rng, p, min(chunk, count - start)), p))
        return np.concatenate(blocks) if blocks else np.zeros((0, self.count), dtype=np.int64)

    @cached_property
    def weight_degrees(self) -> tuple[int, int]:
        """Return upper bounds of the degree of the coordinates in a single weight, and in all weights together."""
        user = self.source.user
        if user.polynomials is not None:
            exponents = [m for f in user.polynomials for m in dict(f)]
            return max((max(m, default=0) for m in exponents), default=0), max(map(sum, exponents), default=0)
        program = self.source.program
        each = (degree_in(program, "weight", only=name) for name in self.source.parameters)
        return max(each, default=0), degree_in(program, "weight")

    def points_needed(self, unknowns: int, degree: int, p: int) -> int | None:
        """Return the number of random points over F_p that determine the equations of a degree among `unknowns` monomials.

        None where points over F_p do not determine them: t^p - t vanishes at all of them. A polynomial in the weights of degree
        below p in each weight and of total degree a (p - 1) + b, b < p - 1, is non-zero at no less than (1 - b/p) / p^a of all
        points (the distance of generalized Reed-Muller codes). As long as the rank is smaller than it can be, each point raises
        it with at least this probability. The number suffices except with a probability below 10^-8; None also where it is so
        large that the matrix of values does not fit.
        """
        each, total = self.weight_degrees
        powers, rest = divmod(degree * total, p - 1)
        if degree * each >= p or p**powers > _MOST_IMAGE_ENTRIES:
            return None
        share = (1 - rest / p) / p**powers
        if (1 - share) * (unknowns + EXTRA_POINTS) <= 1:
            return unknowns + EXTRA_POINTS
        needed = ceil((unknowns + 20 + sqrt(400 + 40 * unknowns)) / share)
        small = needed <= 2 * (unknowns + 40) + 200 or needed * unknowns <= _MOST_IMAGE_ENTRIES
        return needed if small else None

    def too_few_points(self, degree: int, p: int) -> str:
        """Explain why points over F_p do not determine the equations of a degree, and name the least prime for which they do."""
        each, _ = self.weight_degrees
        usable = (
            q for q in range(degree * each + 1, LARGE_PRIME)
            if is_prime(q) and self.numbers.divided_by(q) is None and self.points_needed(self.count, degree, q)
        )  # fmt: skip
        least = next(usable, None)
        return (
            f"points over F_{p} do not determine equations of degree {degree}, because the map has degree {each} in a weight; "
            + (f"the least usable prime is {least}" if least else "no prime below 2^23 is usable")
        )

    def affine_points(self, rng: np.random.Generator, count: int, p: int) -> Matrix:
        """Return random points of the image over F_p, one per row, with homogenizing coordinate 1."""
        return self.points(rng, count, p)

    def tangents(self, rng: np.random.Generator, p: int) -> tuple[Matrix, Matrix]:
        """Return a random point of the image cone over F_p and vectors (rows) that span its tangent space."""
        return self.tangents_at(self.source.draw_weights(rng, p), p)

    def tangents_at(self, weights: dict[str, Matrix], p: int) -> tuple[Matrix, Matrix]:
        """Return the image point of weights and the derivatives by each weight (rows); the last row is the point if padded."""
        residues = {n: Mod(w, p) for n, w in weights.items()}
        point = self.source.coordinates(residues).values
        rows = self.source.coordinate_jacobian(residues).values.T
        if self.padded:
            point = np.append(point, 1)
            rows = np.concatenate([np.pad(rows, ((0, 0), (0, 1))), point[None]])
        return point, rows

    def _is_cone(self) -> bool:
        """Return whether the point is a tangent vector at random points over two large primes: scaling preserves the closure."""
        for p in (self.large_prime, self.second_prime):
            point, rows = self.tangents(np.random.default_rng(_SEED), p)
            if rank_mod(np.concatenate([rows, point[None]]), p) > rank_mod(rows, p):
                return False
        return True

    def dim(self, rng: np.random.Generator, p: int) -> int:
        """Return the rank of the tangent space at a random point over F_p: a lower bound of the dimension of the cone over QQ.

        Over a small field many points are special, and the largest rank at several is taken.
        """
        points = 1 if p > _SMALL_FIELD else _POINTS_OVER_SMALL_FIELDS
        return max(rank_mod(self.tangents(rng, p)[1], p) for _ in range(points))

    def symmetries(self, span: Span, rng: np.random.Generator) -> tuple[Matrix, list[Matrix]]:
        """Return gradings and permutations of the span's coordinates. Other primes have the same, so they are computed once."""
        if span.basis not in self._symmetries:
            grading = torus_weights(self, span, rng)
            self._symmetries[span.basis] = grading, coordinate_permutations(self, span, grading, rng)
        return self._symmetries[span.basis]

    @cached_property
    def polynomials(self) -> tuple[Any, ...] | None:
        """Return the coordinates as polynomials in the weights (python-flint), or None if they have too many terms."""
        count = self.source.parameter_count
        if self.count * count > _MOST_COORDINATE_TERMS or term_bound(self.source) > MOST_EXPANDED_TERMS:
            return None
        context = flint.fmpq_mpoly_ctx.get([f"w{i}" for i in range(count)], "degrevlex")
        coordinates = [
            context.from_dict({m: flint.fmpq(c.numerator, c.denominator) for m, c in f.items()})
            for f in symbolic_map(self.source)
        ]
        return (*coordinates, *[context.constant(1)] * self.padded)

    def span(self, rng: np.random.Generator, p: int) -> Span:
        """Compute the linear span of the image; coordinates of few terms are preferred as its basis.

        From points, or from the coefficients of the coordinates where points over F_p do not determine it.
        """
        order = np.arange(self.count)
        needed = self.points_needed(self.count, 1, p)
        points = self._coefficients(p) if needed is None else self.points(rng, needed, p)
        basis, pivots, free = kernel_mod(points, p)
        if free and self.polynomials is not None:
            lengths = [len(f.monoms()) for f in self.polynomials]
            if self.homogenized:  # before a constant coordinate of the map, which then is a number
                lengths[-1] = 0
            order = np.argsort(lengths, kind="stable")
            basis, pivots, free = kernel_mod(points[:, order], p)
        forms = tuple({int(order[i]): int(row[i]) for i in np.flatnonzero(row)} for row in basis)
        chosen = tuple(sorted(int(order[i]) for i in pivots))
        return Span(basis=chosen, linear_forms=forms, ambient=self.count)

    def _coefficients(self, p: int) -> Matrix:
        """Return the coefficients of the coordinates modulo p, one column per coordinate, one row per monomial in the weights."""
        if self.polynomials is None:
            raise InputError(f"--prime {p}: {self.too_few_points(1, p)}", argument="prime")
        columns = [sparse(f) for f in self.polynomials]
        rows = {m: i for i, m in enumerate(dict.fromkeys(m for f in columns for m in f))}
        table = np.zeros((len(rows), self.count), dtype=np.int64)
        for column, f in enumerate(columns):
            for m, c in f.items():
                table[rows[m], column] = residue(c, p)
        return table


class RationalImage(Image):
    """The image of a rational map, by the polynomial map onto the cone over it."""

    def __init__(self, model: Model) -> None:
        whole = cone_map(model)
        super().__init__(whole)
        without = PolynomialMap(variables=whole.variables, polynomials=whole.polynomials[:-1])
        primes = (self.large_prime, self.second_prime)
        larger = max(rank_mod(self.tangents(np.random.default_rng(_SEED), p)[1], p) for p in primes)
        self.source = without
        smaller = max(rank_mod(self.tangents(np.random.default_rng(_SEED), p)[1], p) for p in primes)
        # the cone over a cone has no more dimensions; else the coordinate that is 1 on the image is needed
        self.homogenized = smaller == larger
        self.model = self.source = whole if self.homogenized else without
        self.padded = False

    def affine_points(self, rng: np.random.Generator, count: int, p: int) -> Matrix:
        points = self.points(rng, count, p)
        if not self.homogenized:
            return points
        finite = points[points[:, -1] % p != 0]  # the others lie at infinity
        factors = np.array([pow(int(x), -1, p) for x in finite[:, -1]], dtype=np.int64)
        scaled: Matrix = finite * factors[:, None] % p
        return scaled


def image_of(model: Model) -> Image:
    """Return the image of a polynomial or rational model, by the known parametrization with the fewest free weights."""
    if is_rational_map(model):
        return RationalImage(model)
    if model.polynomial and model.free.coordinate_count == 0:
        raise InputError(f"{model} has no coordinates")
    return Image(model.leanest)


# -- the torus ----------------------------------------------------------------------------------------------------


def torus_weights(image: Image, span: Span, rng: np.random.Generator) -> Matrix:
    """Return gradings of the coordinates of the span for which the ideal of the image is homogeneous: one row per grading.

    A diagonal vector field d is tangent to the image iff (d_i x_i) lies in the tangent space at every x, a linear condition on d
    for each x. The rows are a basis of all of these, so the maximal torus; the model's own grading when it states one of the same
    rank, and a SpecError when it states one that the image does not have. The standard grading is always the first row.
    """
    p, second, ones = image.large_prime, image.second_prime, np.ones((1, span.dim), dtype=np.int64)
    conditions = _conditions(image, span, rng, p)
    basis, _, _ = kernel_mod(conditions, p)
    gradings = [row for row in (_integral(row, p) for row in basis) if row is not None]
    grading = np.concatenate([ones, np.array(gradings, dtype=np.int64).reshape(len(gradings), span.dim)])
    if not _satisfies(grading, _conditions(image, span, rng, second), second):
        grading = ones
    stated = target_grading(image.model)
    if stated is None or image.padded or stated.shape[1] != image.count:
        return grading
    stated_grading = np.concatenate([ones, np.asarray(stated, dtype=np.int64)[:, span.basis]])
    if not _satisfies(stated_grading, conditions, p):
        raise SpecError(
            f"{image.model.spec}: the image is not homogeneous for the grading that the model states"
        )
    return stated_grading if rank_mod(stated_grading % p, p) >= rank_mod(grading % p, p) else grading


def _satisfies(grading: Matrix, conditions: Matrix, p: int) -> bool:
    """Return whether each row of the grading is tangent to the image at the points of the conditions."""
    return all(not np.any((conditions * (row % p) % p).sum(axis=1) % p) for row in grading)


def _conditions(image: Image, span: Span, rng: np.random.Generator, p: int) -> Matrix:
    """Return rows n_i x_i, n normal to the image at x: a diagonal field d is tangent iff it is in their kernel."""
    rows: list[Matrix] = [np.zeros((0, span.dim), dtype=np.int64)]
    rank = 0
    for _ in range(span.dim + 3):
        point, tangents = image.tangents(rng, p)
        normals, _, _ = kernel_mod(tangents[:, span.basis], p)
        rows.append(normals * point[list(span.basis)] % p)
        total = rank_mod(np.concatenate(rows), p) if len(normals) else rank
        if total == rank:
            break
        rank = total
    return np.concatenate(rows)


def _integral(row: Matrix, p: int) -> Matrix | None:
    """Return the integer multiple of a vector of small fractions from its residues modulo a large prime."""
    fractions = [f for residue in row.tolist() if (f := rational(residue, p)) is not None]
    if len(fractions) < len(row) or any(
        max(abs(f.numerator), f.denominator) > _LARGEST_WEIGHT for f in fractions
    ):
        return None
    common = lcm(*(f.denominator for f in fractions))
    return np.array([int(f * common) for f in fractions], dtype=np.int64)


# -- permutations of the coordinates -------------------------------------------------------------------------------


def coordinate_permutations(
    image: Image, span: Span, grading: Matrix, rng: np.random.Generator
) -> list[Matrix]:
    """Return permutations s of the span's coordinates that preserve the image and the grading.

    Found by exchanging two neighbours along axes of equal length of the weight arrays; replacing variable i by
    variable s[i] maps the ideal of the image to itself.
    """
    shapes, p = image.source.parameters, image.large_prime
    axes = [(name, axis, size) for name, shape in shapes.items() for axis, size in enumerate(shape)]
    permutations: list[Matrix] = []
    seen = {tuple(range(span.dim))}
    drawn = [image.source.draw_weights(rng, p, 1) for _ in range(2)]
    samples = [(weights, image.at(weights, p)[0, span.basis]) for weights in drawn]
    for size in sorted({s for _, _, s in axes if s > 1}):
        equal = [(name, axis) for name, axis, s in axes if s == size]
        most = len(equal) if len(equal) <= _MOST_EQUAL_AXES else 2
        for chosen in (c for k in range(1, most + 1) for c in combinations(equal, k)):
            for neighbour in range(size - 1):
                s = _permutation(image, span, samples, chosen, neighbour)
                if s is None:
                    break
                both = np.concatenate([grading, grading[:, s]]) % p
                if tuple(s.tolist()) not in seen and rank_mod(both, p) == rank_mod(grading % p, p):
                    seen.add(tuple(s.tolist()))
                    permutations.append(s)
    return permutations


def _permutation(
    image: Image, span: Span, samples: list[tuple[dict[str, Matrix], Matrix]], axes: tuple[tuple[str, int], ...], neighbour: int
) -> Matrix | None:  # fmt: skip
    """Return the permutation of the coordinates by exchanging two neighbours along these axes; None if it is no permutation."""
    permutations: list[Matrix] = []
    for weights, before in samples:
        swapped = dict(weights)
        for name, axis in axes:
            order = np.arange(swapped[name].shape[axis + 1])
            order[[neighbour, neighbour + 1]] = order[[neighbour + 1, neighbour]]
            swapped[name] = np.take(swapped[name], order, axis=axis + 1)
        after = image.at(swapped, image.large_prime)[0, span.basis]
        order_before, order_after = np.argsort(before), np.argsort(after)
        if len(set(before.tolist())) < len(before) or np.any(before[order_before] != after[order_after]):
            return None
        s = np.empty(span.dim, dtype=np.int64)
        s[order_after] = order_before
        permutations.append(s)
    return permutations[0] if np.array_equal(permutations[0], permutations[1]) else None
