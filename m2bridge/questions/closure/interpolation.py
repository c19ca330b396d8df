"""Equations of an image from its points, by exact linear algebra in each multidegree.

A polynomial of degree k and weight w is a vector in the span of the monomials of that degree and weight; it vanishes on the image
iff it does at enough random points of it. The torus that acts on the image cuts a degree into weight spaces, coordinate
permutations that preserve the image carry one weight space to another, and only one of each orbit is solved.

What is found vanishes on the image over F_p except with a probability that is stated; what is not found up to the degree
reached does not exist over F_p, because fewer independent conditions can only give more solutions. A degree in which points over
F_p do not determine polynomials in the weights is not done (:meth:`~m2bridge.questions.closure.image.Image.points_needed`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain, combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from m2bridge.families.base import Model
from m2bridge.frontends.polynomials import Polynomial, exponents_of, variables_of
from m2bridge.limits import Clock, LimitReached
from m2bridge.linear.modular import echelon_mod, kernel_mod
from m2bridge.linear.primes import MACAULAY2_PRIME, check_prime
from m2bridge.questions.closure.image import (
    Image,
    Matrix,
    Span,
    image_of,
)
from m2bridge.questions.closure.stages import LimitStop, Setting, TooFewPoints

Keys = npt.NDArray[np.uint64]
_HASH_SEED = 20250101  # any number; collisions of hashes are detected


# -- the monomials of one degree, in weight spaces and orbits --------------------------------------------------------


def monomials_of_degree(count: int, degree: int, clock: Clock | None = None) -> Matrix:
    """Return all monomials of a degree in `count` variables, one per row: non-decreasing sequences of variable indices.

    >>> monomials_of_degree(2, 2).tolist()
    [[0, 0], [0, 1], [1, 1]]
    """
    size = comb(count + degree - 1, degree)
    if clock is not None:
        clock.check()
        clock.reserve(3 * 8 * size * degree, f"the list of monomials of degree {degree}")
    variables = chain.from_iterable(combinations_with_replacement(range(count), degree))
    return np.fromiter(variables, dtype=np.int64, count=size * degree).reshape(size, degree)


def _keys(count: int) -> Keys:
    """Return random 64-bit keys of the variables; a monomial's key is the sum over its variables, mod 2^64."""
    rng = np.random.default_rng(_HASH_SEED)
    return rng.integers(0, 2**64 - 1, size=count, dtype=np.uint64, endpoint=True)


def _weight_hashes(grading: Matrix) -> Matrix:
    """Return one random 63-bit integer per variable; sums separate weights in the degrees that fit in memory."""
    factors = np.random.default_rng(_HASH_SEED + 1).integers(1, 2**62, size=len(grading), dtype=np.int64)
    with np.errstate(over="ignore"):
        hashes: Matrix = (grading * factors[:, None]).sum(axis=0)
    return hashes


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreePart:
    """One degree of the polynomial ring, decomposed into weight spaces.

    `monomials` are sorted by weight, `starts` are the positions where weights begin, `weights` are their hashes, ascending.
    For each weight, `representative` is the number of the representative of its orbit, and `carrier` a permutation s of the
    variables, i to s[i], that maps the monomials of the representative to those of the weight.
    """

    monomials: Matrix
    keys: Keys
    starts: Matrix
    weights: Matrix
    representative: Matrix
    carrier: Matrix

    def space(self, index: int) -> Matrix:
        """Return the monomials of one weight, in the order of elimination."""
        return self.monomials[self.starts[index] : self.starts[index + 1]]

    def columns(self, index: int, keys: Keys) -> Matrix:
        """Return the positions in a weight space of monomials, by their keys; every key must occur."""
        space_keys = self.keys[self.starts[index] : self.starts[index + 1]]
        sorter = np.argsort(space_keys)
        positions = sorter[np.minimum(np.searchsorted(space_keys, keys, sorter=sorter), len(space_keys) - 1)]
        if np.any(space_keys[positions] != keys):
            raise AssertionError("a monomial is not in its weight space: the grading is inconsistent")
        return positions

    def find(self, weight: int) -> int | None:
        """Return the index of a weight by its hash, or None if no monomial has it."""
        index = int(np.searchsorted(self.weights, weight))
        return index if index < len(self.weights) and self.weights[index] == weight else None

    @property
    def orbit_sizes(self) -> Matrix:
        """Return the number of weights in the orbit of each representative (0 for the others)."""
        return np.bincount(self.representative, minlength=len(self.weights))


def split_degree(
    grading: Matrix, permutations: list[Matrix], degree: int, clock: Clock | None = None
) -> DegreePart:
    """Compute the weight spaces of one degree and their orbits under `permutations` (each must normalise the grading)."""
    count = grading.shape[1]
    hashes = _weight_hashes(grading)
    monomials = monomials_of_degree(count, degree, clock)
    weights_of = hashes[monomials].sum(axis=1)
    order = np.argsort(weights_of, kind="stable")
    monomials, weights_of = monomials[order], weights_of[order]
    weights, starts = np.unique(weights_of, return_index=True)
    keys = _keys(count)[monomials].sum(axis=1, dtype=np.uint64)
    if np.any(np.diff(np.sort(keys)) == 0):
        raise AssertionError("two monomials share a key")
    firsts = monomials[starts]
    images = [np.searchsorted(weights, hashes[s][firsts].sum(axis=1)) for s in permutations]
    representative, carrier = _orbits(len(weights), count, permutations, images)
    return DegreePart(
        monomials=monomials, keys=keys, starts=np.append(starts, len(monomials)), weights=weights,
        representative=representative, carrier=carrier,
    )  # fmt: skip


def _orbits(size: int, count: int, permutations: list[Matrix], images: list[Matrix]) -> tuple[Matrix, Matrix]:
    representative = np.full(size, -1, dtype=np.int64)
    carrier = np.tile(np.arange(count, dtype=np.int64), (size, 1))
    for start in range(size):
        if representative[start] >= 0:
            continue
        representative[start] = start
        frontier = [start]
        while frontier:
            here = frontier.pop()
            for permutation, image in zip(permutations, images, strict=True):
                there = int(image[here])
                if representative[there] < 0:
                    representative[there] = start
                    carrier[there] = permutation[carrier[here]]
                    frontier.append(there)
    return representative, carrier


# -- interpolation ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Equations:
    """Minimal generators over F_p, in the coordinates of the span, of the ideal up to `degree_bound`.

    `hilbert_function` is that of the image in degrees 0, 1, ..., as far as it was computed.
    """

    span: Span
    polynomials: tuple[Polynomial, ...] = ()
    hilbert_function: tuple[int, ...] = ()
    degree_bound: int = 1

    @property
    def counts(self) -> dict[int, int]:
        """Return degree -> number of minimal generators; degrees without generators are omitted."""
        return dict(sorted(Counter(sum(next(iter(f))) for f in self.polynomials).items()))

    @property
    def top_degree(self) -> int:
        """Return the highest degree of a generator; 1 if there is none."""
        return max(self.counts, default=1)


@dataclass(frozen=True, slots=True)
class _Solved:
    """The equations of one weight: rows of `basis`, which are unit vectors in the columns `free`."""

    weight: int
    monomials: Matrix
    basis: Matrix
    free: tuple[int, ...]


def interpolate(model: Model | Image, max_degree: int, **options: Any) -> Interpolation:
    """Compute minimal generators, up to `max_degree`, of the ideal of the closure of a model's image over F_p.

    The options are those of :class:`Interpolation`. When limits are reached, the degrees finished before are there.

    >>> from m2bridge.families import parse_spec
    >>> found = interpolate(parse_spec("lightning(d=2, dp=1, a=2)"), 4)
    >>> found.counts, found.hilbert_function
    ({4: 1}, (1, 6, 21, 56, 125))
    """
    interpolation = Interpolation(model, **options)
    interpolation.reach(max_degree)
    return interpolation


class Interpolation:
    """Equations of an image up to a degree, over F_p, computed one degree at a time by :meth:`advance`.

    Parameters
    ----------
    prime: below 2^23.
    symmetric: whether to use coordinate permutations that preserve the image; the answer is the same without.

    Attributes
    ----------
    span: the coordinates in which the equations are written, and the linear forms that give the others.
    grading, permutations: the torus that acts on the image, and permutations of the coordinates that preserve it.
    generators: degree -> minimal generators of that degree, in the order of their weights.
    stop: why the next degree was not finished; None as long as all degrees were.
    largest: the size of the largest weight space that was solved in the last degree.
    """

    def __init__(
        self, model: Model | Image, *, prime: int = MACAULAY2_PRIME, seed: int = 0, clock: Clock | None = None,
        symmetric: bool = True,
    ) -> None:  # fmt: skip
        check_prime(prime)
        self.image = model if isinstance(model, Image) else image_of(model)
        self.p, self.clock = prime, clock or Clock()
        self.rng = np.random.default_rng(seed)
        self.span = self.image.span(self.rng, prime)
        self.grading, permutations = self.image.symmetries(self.span, self.rng)
        self.permutations = permutations if symmetric else []
        self.hashes, self.keys = _weight_hashes(self.grading), _keys(self.span.dim)
        self.generators: dict[int, tuple[Polynomial, ...]] = {}
        self.hilbert_function: tuple[int, ...] = (1, self.span.dim)
        self.largest = 0
        self.previous = split_degree(self.grading, self.permutations, 1)
        self.solved: dict[int, _Solved] = {}
        self.stop: LimitStop | TooFewPoints | None = None

    @property
    def degree_reached(self) -> int:
        """Return the largest finished degree, up to which the Hilbert function of the image is known by evaluation ranks."""
        return len(self.hilbert_function) - 1

    @property
    def equations(self) -> Equations:
        """Return the minimal generators of the degrees that were finished."""
        return Equations(
            span=self.span,
            polynomials=tuple(f for degree in sorted(self.generators) for f in self.generators[degree]),
            hilbert_function=self.hilbert_function,
            degree_bound=self.degree_reached,
        )

    @property
    def counts(self) -> dict[int, int]:
        """Return degree -> number of minimal generators; degrees without generators are omitted."""
        return self.equations.counts

    def reach(self, degree: int) -> bool:
        """Interpolate up to a degree; False, with the reason in `stop`, if that is not possible."""
        while self.degree_reached < degree and self.advance():
            pass
        return self.stop is None

    def advance(self) -> bool:
        """Interpolate the next degree; False, with the reason in `stop` and nothing else changed, if that is not possible."""
        try:
            self.stop = self._solve(self.degree_reached + 1)
        except LimitReached as reached:
            self.stop = LimitStop.of(reached)
        except MemoryError:
            self.stop = LimitStop("memory ran out; increase --memory")
        return self.stop is None

    def _solve(self, degree: int) -> TooFewPoints | None:
        """Find the equations of one degree; nothing changes unless the whole degree is finished."""
        weight_spaces = split_degree(self.grading, self.permutations, degree, self.clock)
        orbit_sizes = weight_spaces.orbit_sizes
        representatives = np.flatnonzero(orbit_sizes).tolist()
        largest = max((len(weight_spaces.space(i)) for i in representatives), default=0)
        needed = self.image.points_needed(largest, degree, self.p)
        if needed is None:
            return TooFewPoints(degree)
        self.clock.reserve(8 * 8 * largest * needed, f"linear algebra in degree {degree}")
        points = self.image.points(self.rng, needed, self.p)[:, self.span.basis]
        rank_total, held = 0, 0
        solved: dict[int, _Solved] = {}
        new: dict[int, tuple[int, ...]] = {}
        for index in representatives:
            self.clock.check()
            monomials = weight_spaces.space(index)
            enough = self.image.points_needed(len(monomials), degree, self.p)
            values = monomial_values(points[:enough], monomials, self.p)
            basis, pivots, free = kernel_mod(values, self.p, self.clock.check)
            rank_total += int(orbit_sizes[index]) * len(pivots)
            if not free:
                continue
            held += 4 * basis.size
            self.clock.reserve(held, f"the equations of degree {degree}")
            solved[index] = _Solved(index, monomials, basis.astype(np.int32), free)
            new[index] = self._new_columns(weight_spaces, solved[index], degree)
        self.generators[degree] = tuple(self._translate(weight_spaces, solved, new))
        self.hilbert_function = (*self.hilbert_function, rank_total)
        self.previous, self.solved, self.largest = weight_spaces, solved, largest
        return None

    def _new_columns(self, weight_spaces: DegreePart, here: _Solved, degree: int) -> tuple[int, ...]:
        """Return the free columns whose equations are not generated by equations of lower degree.

        The equations that are generated are products of a variable and an equation of one degree less. An equation is
        determined by its entries in the free columns, so the comparison happens there. The columns are ordered from dense
        to sparse equations: the complement then consists of sparse ones.
        """
        free = np.array(here.free)
        density = np.count_nonzero(here.basis, axis=1)
        order = np.lexsort((free, -density))
        generated: Matrix = np.zeros((0, len(free)), dtype=np.int64)
        pivots: tuple[int, ...] = ()
        waiting: list[Matrix] = []
        last = self.span.dim - 1
        for variable in range(self.span.dim if degree > 2 else 0):
            block = self._product(weight_spaces, here, variable)
            if block is not None:
                waiting.append(block[:, free[order]])
            if waiting and (variable == last or sum(map(len, waiting)) >= len(free)):
                self.clock.check()
                generated, pivots = echelon_mod(
                    np.concatenate([generated, *waiting]), self.p, self.clock.check
                )
                waiting = []
            if len(pivots) == len(free):
                return ()
        return tuple(sorted(int(order[c]) for c in set(range(len(free))) - set(pivots)))

    def _product(self, weight_spaces: DegreePart, here: _Solved, variable: int) -> Matrix | None:
        """Return the products of a variable with the equations of one degree less that lie in this weight space."""
        with np.errstate(over="ignore"):
            below = self.previous.find(int(weight_spaces.weights[here.weight] - self.hashes[variable]))
        source = None if below is None else self.solved.get(int(self.previous.representative[below]))
        if source is None:
            return None
        moved = self.previous.carrier[below][source.monomials]
        keys = self.keys[moved].sum(axis=1, dtype=np.uint64) + self.keys[variable]
        block = np.zeros((len(source.basis), len(here.monomials)), dtype=np.int64)
        block[:, weight_spaces.columns(here.weight, keys)] = source.basis
        return block

    def _translate(
        self, weight_spaces: DegreePart, solved: dict[int, _Solved], new: dict[int, tuple[int, ...]]
    ) -> list[Polynomial]:
        """Return the new generators of all weights: those of the representatives, permuted along their orbits."""
        generators: list[Polynomial] = []
        for index, representative in enumerate(weight_spaces.representative.tolist()):
            if not new.get(representative):
                continue
            source = solved[representative]
            moved = weight_spaces.carrier[index][source.monomials].tolist()
            for row in source.basis[list(new[representative])]:
                terms = np.flatnonzero(row).tolist()
                generators.append({exponents_of(moved[t], self.span.dim): int(row[t]) for t in terms})
        return generators


def monomial_values(points: Matrix, monomials: Matrix, p: int) -> Matrix:
    """Evaluate monomials (columns) of one degree at points (rows), mod p."""
    values = np.ones((len(points), len(monomials)), dtype=np.int64)
    for column in monomials.T:
        values = values * points[:, column] % p
    return values


def evaluate(polynomial: Polynomial, points: Matrix, p: int) -> Matrix:
    """Evaluate a homogeneous polynomial at points (rows of span coordinates), mod p.

    >>> evaluate({(2, 0): 1, (1, 1): 3}, np.array([[2, 5]]), 7).tolist()
    [6]
    """
    if not polynomial:
        return np.zeros(len(points), dtype=np.int64)
    monomials = np.array([variables_of(m) for m in polynomial], dtype=np.int64)
    coefficients = np.array([int(c) % p for c in polynomial.values()])
    return np.asarray((monomial_values(points, monomials, p) * coefficients % p).sum(axis=1) % p)


def begin_interpolation(setting: Setting, p: int) -> Interpolation:
    """Begin an interpolation over a prime; only the span is computed."""
    return Interpolation(setting.image, prime=p, seed=setting.context.seed, clock=setting.context.clock)
