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
from math import lcm
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from m2bridge.errors import InputError, NotPolynomialError, SpecError
from m2bridge.linear.modular import kernel_mod, rank_mod, rank_over_q
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, primes_below
from m2bridge.linear.residues import Mod, rational
from m2bridge.models.base import Model
from m2bridge.models.custom import PolynomialMap
from m2bridge.models.symbolic import symbolic_map

Matrix = npt.NDArray[np.int64]
_SEED = 7
_MOST_TERMS = 200_000
_MOST_AXES = 8
_LARGEST_WEIGHT = 100


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
        """The linear forms, with exponents in all coordinates."""
        unit = [tuple(row) for row in np.eye(self.ambient, dtype=int).tolist()]
        return [{unit[i]: c for i, c in form.items()} for form in self.linear_forms]


class Image:
    """The image of a model, made a cone.

    `large_prime` and `second_prime` are for facts that do not depend on the user's prime; they divide nothing that was given.
    Points and tangent spaces of a source with equations are those of the components that solving in turn happens to meet.
    """

    def __init__(self, model: Model) -> None:
        if not model.polynomial:
            raise NotPolynomialError(f"{model} is not polynomial: its image has no ideal of this kind")
        self.model = model
        self.source = model.free
        self.constrained = bool(model.constraints) or self.source.parameter_dim < self.source.parameter_count
        self.numbers = given_numbers(model)
        self.large_prime, self.second_prime = primes_below(LARGE_PRIME, count=2, numbers=self.numbers)
        self._check: Callable[[], None] = lambda: None
        self.homogenized = False
        cone = (
            graded_cone(model) if isinstance(model, PolynomialMap) and model.constraints else self._is_cone()
        )
        self.homogenized = not cone

    @property
    def count(self) -> int:
        """Number of coordinates, the homogenizing one included."""
        return self.source.coordinate_count + self.homogenized

    def draw(self, rng: np.random.Generator, count: int, p: int) -> dict[str, Matrix]:
        """Random weights over F_p: arrays with a leading axis of length `count`."""
        shapes = self.source.parameters
        if self.constrained:
            drawn = [self.source.draw_weights(rng, p) for _ in range(count)]
            return {n: np.stack([w[n] for w in drawn]) for n in shapes}
        return {n: rng.integers(0, p, size=(count, *s), dtype=np.int64) for n, s in shapes.items()}

    def at(self, weights: dict[str, Matrix], p: int) -> Matrix:
        """Image points of a batch of weights, mod p."""
        values: Matrix = self.source.coordinates({n: Mod(w, p) for n, w in weights.items()}).values
        return np.pad(values, ((0, 0), (0, self.homogenized)), constant_values=1)

    @contextmanager
    def watched(self, check: Callable[[], None]) -> Iterator[None]:
        """While this lasts, `check` is called between points, to stop when the time is over."""
        self._check = check
        try:
            yield
        finally:
            self._check = lambda: None

    def points(self, rng: np.random.Generator, count: int, p: int) -> Matrix:
        """Random points of the image over F_p, one a row."""
        chunk = max(1, 2_000_000 // max(1, self.count * max(1, self.source.parameter_count)))
        parts = []
        for start in range(0, count, chunk):
            self._check()
            parts.append(self.at(self.draw(rng, min(chunk, count - start), p), p))
        return np.concatenate(parts) if parts else np.zeros((0, self.count), dtype=np.int64)

    def tangents(self, rng: np.random.Generator, p: int) -> tuple[Matrix, Matrix]:
        """A random point of the image cone over F_p and vectors (rows) that span the tangent space there."""
        return self.tangents_at({n: w[0] for n, w in self.draw(rng, 1, p).items()}, p)

    def tangents_at(self, weights: dict[str, Matrix], p: int) -> tuple[Matrix, Matrix]:
        """The image point of given weights and the derivatives by each weight (rows); last the point itself when homogenized."""
        residues = {n: Mod(w, p) for n, w in weights.items()}
        point = self.source.coordinates(residues).values
        rows = self.source.coordinate_jacobian(residues).values.T
        if self.constrained:
            directions, _, _ = kernel_mod(self.source.constraint_jacobian(residues).values, p)
            rows = (Mod(directions, p) @ Mod(rows, p)).values
        if self.homogenized:
            point = np.append(point, 1)
            rows = np.concatenate([np.pad(rows, ((0, 0), (0, 1))), point[None]])
        return point, rows

    def _is_cone(self) -> bool:
        """Whether the point itself is tangent, at random points over two large primes: then scaling preserves the closure."""
        for p in (self.large_prime, self.second_prime):
            point, rows = self.tangents(np.random.default_rng(_SEED), p)
            if rank_mod(np.concatenate([rows, point[None]]), p) > rank_mod(rows, p):
                return False
        return True

    def dim(self, rng: np.random.Generator, p: int) -> int:
        """Rank of the tangent space at a random point over F_p: a lower bound of the dimension of the cone over QQ."""
        return rank_mod(self.tangents(rng, p)[1], p)

    @cached_property
    def polynomials(self) -> tuple[Any, ...] | None:
        """The coordinates as polynomials in the weights (python-flint), or None: too many terms, or weights with constraints."""
        count = self.source.parameter_count
        if self.constrained or self.count * count > _MOST_TERMS:
            return None
        context = flint.fmpq_mpoly_ctx.get([f"w{i}" for i in range(count)], "degrevlex")
        found = [
            context.from_dict({m: flint.fmpq(c.numerator, c.denominator) for m, c in f.items()})
            for f in symbolic_map(self.source)
        ]
        return (*found, *[context.constant(1)] * self.homogenized)

    def span(self, rng: np.random.Generator, p: int) -> Span:
        """The linear span of the image, with coordinates of few terms preferred as its basis."""
        order = np.arange(self.count)
        points = self.points(rng, self.count + 12, p)
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


def graded_cone(source: PolynomialMap) -> bool:
    """Whether a grading of the variables makes all constraints homogeneous and all coordinates homogeneous of one degree, not 0.

    Then the image is a cone on every component of the source. A random point would only speak for the component it lies on.
    """
    if source.grading is None:
        return False
    nonzero = [i for i, terms in enumerate(source.polynomials) if terms]
    rows = source.grading[:, nonzero].tolist()
    return rank_over_q([*rows, [1] * len(nonzero)]) == rank_over_q(rows) if nonzero and rows else not nonzero


def image_of(model: Model) -> Image:
    """The image of a polynomial model, by the parametrization with the fewest unconstrained weights that is known."""
    if model.polynomial and model.free.coordinate_count == 0:
        raise InputError(f"{model} has no coordinates")
    return Image(model.leanest)


# -- the torus ----------------------------------------------------------------------------------------------------


def torus_weights(image: Image, span: Span, rng: np.random.Generator) -> Matrix:
    """A grading of the coordinates of the span for which the ideal of the image is homogeneous: one row a grading.

    A diagonal vector field d is tangent to the image iff (d_i x_i) lies in the tangent space at every x, a linear condition on d
    for each x. The rows are a basis of all of these, so the maximal torus; the model's own grading when it states one of the same
    rank, and a SpecError when it states one that the image does not have. The standard grading is always the first row.
    """
    p, ones = image.large_prime, np.ones((1, span.dim), dtype=np.int64)
    basis, _, _ = kernel_mod(_conditions(image, span, rng, p), p)
    found = [row for row in (_integral(row, p) for row in basis) if row is not None]
    grading = np.concatenate([ones, np.array(found, dtype=np.int64).reshape(len(found), span.dim)])
    if not _preserves(image, span, grading, rng, image.second_prime):
        grading = ones
    stated = image.model.grading
    if stated is None or image.homogenized or stated.shape[1] != image.count:
        return grading
    given = np.concatenate([ones, np.asarray(stated, dtype=np.int64)[:, span.basis]])
    if not _preserves(image, span, given, rng, p):
        raise SpecError(
            f"{image.model.spec}: the image is not homogeneous for the grading that the model states"
        )
    return given if rank_mod(given % p, p) >= rank_mod(grading % p, p) else grading


def _preserves(image: Image, span: Span, grading: Matrix, rng: np.random.Generator, p: int) -> bool:
    """Whether each row of the grading is tangent to the image at random points over F_p."""
    conditions = _conditions(image, span, rng, p)
    return all(not np.any((conditions * (row % p) % p).sum(axis=1) % p) for row in grading)


def _conditions(image: Image, span: Span, rng: np.random.Generator, p: int) -> Matrix:
    """Rows n_i x_i, n normal to the image at x: a diagonal field d is tangent iff all of them kill d."""
    rows: list[Matrix] = [np.zeros((0, span.dim), dtype=np.int64)]
    known = 0
    for _ in range(span.dim + 3):
        point, tangents = image.tangents(rng, p)
        normals, _, _ = kernel_mod(tangents[:, span.basis], p)
        rows.append(normals * point[list(span.basis)] % p)
        total = rank_mod(np.concatenate(rows), p) if len(normals) else known
        if total == known:
            break
        known = total
    return np.concatenate(rows)


def _integral(row: Matrix, p: int) -> Matrix | None:
    """The integer multiple of a vector of small fractions given modulo a large prime."""
    found = [f for residue in row.tolist() if (f := rational(residue, p)) is not None]
    if len(found) < len(row) or any(max(abs(f.numerator), f.denominator) > _LARGEST_WEIGHT for f in found):
        return None
    common = lcm(*(f.denominator for f in found))
    return np.array([int(f * common) for f in found], dtype=np.int64)


# -- permutations of the coordinates -------------------------------------------------------------------------------


def coordinate_permutations(
    image: Image, span: Span, grading: Matrix, rng: np.random.Generator
) -> list[Matrix]:
    """Permutations s of the span's coordinates that preserve the image and the grading.

    Found by exchanging two neighbours along axes of equal length of the weight arrays; replacing variable i by
    variable s[i] maps the ideal of the image to itself.
    """
    if image.constrained:  # exchanged weights need not satisfy the constraints
        return []
    shapes, p = image.source.parameters, image.large_prime
    axes = [(name, axis, size) for name, shape in shapes.items() for axis, size in enumerate(shape)]
    found: list[Matrix] = []
    seen = {tuple(range(span.dim))}
    samples = [image.draw(rng, 1, p) for _ in range(2)]
    for size in sorted({s for _, _, s in axes if s > 1}):
        equal = [(name, axis) for name, axis, s in axes if s == size]
        most = len(equal) if len(equal) <= _MOST_AXES else 2
        for chosen in (c for k in range(1, most + 1) for c in combinations(equal, k)):
            for neighbour in range(size - 1):
                s = _permutation(image, span, samples, chosen, neighbour)
                if s is None:
                    break
                both = np.concatenate([grading, grading[:, s]]) % p
                if tuple(s.tolist()) not in seen and rank_mod(both, p) == rank_mod(grading % p, p):
                    seen.add(tuple(s.tolist()))
                    found.append(s)
    return found


def _permutation(
    image: Image, span: Span, samples: list[dict[str, Matrix]], axes: tuple[tuple[str, int], ...], neighbour: int
) -> Matrix | None:  # fmt: skip
    """What exchanging two neighbours along these axes does to the coordinates; None where that is no permutation of them."""
    found: list[Matrix] = []
    for weights in samples:
        swapped = dict(weights)
        for name, axis in axes:
            order = np.arange(swapped[name].shape[axis + 1])
            order[[neighbour, neighbour + 1]] = order[[neighbour + 1, neighbour]]
            swapped[name] = np.take(swapped[name], order, axis=axis + 1)
        before, after = (image.at(w, image.large_prime)[0, span.basis] for w in (weights, swapped))
        order_before, order_after = np.argsort(before), np.argsort(after)
        if len(np.unique(before)) != len(before) or np.any(before[order_before] != after[order_after]):
            return None
        s = np.empty(span.dim, dtype=np.int64)
        s[order_after] = order_before
        found.append(s)
    return found[0] if np.array_equal(found[0], found[1]) else None
