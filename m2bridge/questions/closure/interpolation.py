"""Equations of an image from its points, by exact linear algebra in each multidegree.

A model enters; the polynomials of each degree that vanish on its image leave, reduced to minimal generators, with the
Hilbert function of the image. A polynomial of degree k and weight w is a vector in the span of the monomials of that
degree and weight; it vanishes on the image iff it does at enough random points of it. The torus that acts on
the image cuts a degree into weight spaces, coordinate permutations that preserve the image carry one weight space to
another, and only one of each orbit is solved.

What is found vanishes on the image over F_p except with a probability that is stated; what is not found up to the degree
reached does not exist over F_p, because fewer independent conditions can only give more solutions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from m2bridge.linear.modular import echelon_mod, kernel_mod
from m2bridge.linear.primes import MACAULAY2_PRIME, check_prime
from m2bridge.models.base import Model
from m2bridge.models.polynomials import Polynomial
from m2bridge.questions.asking import Clock, LimitReached
from m2bridge.questions.closure.image import Image, Matrix, image_of
from m2bridge.questions.closure.monomials import (
    DegreePart,
    Ints,
    WeightSpace,
    split_degree,
    variable_keys,
    weight_hashes,
)
from m2bridge.questions.closure.symmetry import coordinate_permutations, torus_weights

EXTRA_POINTS = 12
"""Points beyond the number of unknowns: a wrong equation of degree D survives with probability at most (D/p)^12."""


@dataclass(slots=True)
class _Solved:
    """The equations of one weight space: rows of `basis`, which are unit vectors in the columns `free`."""

    space: WeightSpace
    basis: Matrix
    pivots: tuple[int, ...]
    free: tuple[int, ...]


def interpolate(model: Model | Image, max_degree: int, **options: Any) -> Interpolation:
    """Minimal generators, up to `max_degree`, of the ideal of the closure of a model's image over F_p.

    The options are those of :class:`Interpolation`. When limits are reached, the degrees finished before are there.

    Examples
    --------
    >>> from m2bridge.models import parse_spec
    >>> found = interpolate(parse_spec("lightning(d=2, dp=1, a=2)"), 4)
    >>> found.counts, found.hilbert_function
    ({4: 1}, (1, 6, 21, 56, 125))
    """
    found = Interpolation(model, **options)
    found.reach(max_degree)
    return found


class Interpolation:
    """Equations of an image up to a degree, over F_p, found one degree at a time by :meth:`advance`.

    Parameters
    ----------
    prime: below 2^23.
    clock: limits.
    symmetric: whether to use coordinate permutations that preserve the image; the answer is the same without.

    Attributes
    ----------
    span: the coordinates in which the equations are written, and the linear forms that give the others.
    grading, permutations: the torus that acts on the image, and permutations of the coordinates that preserve it.
    generators: degree -> minimal generators of that degree, in the order of their weights.
    limit: why no more degrees were finished, when a limit was the reason.
    weight_spaces: degree -> (number of weight spaces, number solved, size of the largest solved).
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
        self.grading = torus_weights(self.image, self.span, self.rng)
        self.permutations: list[Ints] = []
        if symmetric:
            self.permutations = coordinate_permutations(self.image, self.span, self.grading, self.rng)
        self.hashes = weight_hashes(self.grading)
        self.keys = variable_keys(self.span.dim)
        self.generators: dict[int, tuple[Polynomial, ...]] = {}
        self.hilbert_function: tuple[int, ...] = (1, self.span.dim)
        self.weight_spaces: dict[int, tuple[int, int, int]] = {}
        self.previous = split_degree(self.grading, self.permutations, 1)
        self.solved: dict[int, _Solved] = {}
        self.limit: str | None = None

    @property
    def degree_reached(self) -> int:
        """Every degree up to this one was finished; the Hilbert function of the image, by evaluation ranks, goes as far."""
        return len(self.hilbert_function) - 1

    @property
    def counts(self) -> dict[int, int]:
        """Degree -> number of minimal generators, degrees without any left out."""
        return {degree: len(found) for degree, found in self.generators.items() if found}

    @property
    def polynomials(self) -> tuple[Polynomial, ...]:
        """All minimal generators found so far, by degree."""
        return tuple(f for degree in sorted(self.generators) for f in self.generators[degree])

    def reach(self, degree: int) -> bool:
        """Go on up to a degree; False when a limit was reached before."""
        while self.degree_reached < degree and self.advance():
            pass
        return self.limit is None

    def advance(self) -> bool:
        """Do the next degree; False, with `limit` set and nothing else changed, when a limit was reached."""
        try:
            self._solve(self.degree_reached + 1)
        except LimitReached as reached:
            self.limit = reached.reason
        except MemoryError:
            self.limit = "memory ran out"
        return self.limit is None

    def _solve(self, degree: int) -> None:
        """Find the equations of one degree; nothing changes unless the whole degree is finished."""
        part = split_degree(self.grading, self.permutations, degree, self.clock)
        orbit_sizes = part.orbit_sizes
        representatives = np.flatnonzero(orbit_sizes)
        largest = max((part.size(int(w)) for w in representatives), default=0)
        self.clock.reserve(8 * 8 * largest * (largest + EXTRA_POINTS), f"linear algebra in degree {degree}")
        points = self.image.points(self.rng, largest + EXTRA_POINTS, self.p)[:, self.span.basis]
        rank_total, held = 0, 0
        solved: dict[int, _Solved] = {}
        new: dict[int, tuple[int, ...]] = {}
        for index in representatives.tolist():
            self.clock.check()
            space = part.space(index)
            values = _evaluate(points[: len(space.monomials) + EXTRA_POINTS], space.monomials, self.p)
            basis, pivots, free = kernel_mod(values, self.p, self.clock.check)
            rank_total += int(orbit_sizes[index]) * len(pivots)
            if not free:
                continue
            held += 4 * basis.size
            self.clock.reserve(held, f"the equations of degree {degree}")
            solved[index] = _Solved(space, basis.astype(np.int32), pivots, free)
            new[index] = self._new_columns(part, solved[index], degree)
        self.generators[degree] = tuple(self._translate(part, solved, new))
        self.hilbert_function = (*self.hilbert_function, rank_total)
        self.weight_spaces[degree] = (len(part.weights), len(representatives), largest)
        self.previous, self.solved = part, solved

    def _new_columns(self, part: DegreePart, here: _Solved, degree: int) -> tuple[int, ...]:
        """Free columns whose equations are not generated by equations of lower degree.

        The equations that are generated are products of a variable and an equation of one degree less. An equation is
        determined by its entries in the free columns, so the comparison happens there. The columns are ordered from dense
        to sparse equations: the complement then consists of sparse ones.
        """
        free = np.array(here.free)
        density = np.count_nonzero(here.basis, axis=1)
        order = np.lexsort((free, -density))
        known: Matrix = np.zeros((0, len(free)), dtype=np.int64)
        pivots: tuple[int, ...] = ()
        waiting: list[Matrix] = []
        rows = 0
        for variable in range(self.span.dim if degree > 2 else 0):
            block = self._product(part, here, variable)
            if block is None:
                continue
            waiting.append(block[:, free[order]])
            rows += len(block)
            if rows >= len(free):
                self.clock.check()
                known, pivots = echelon_mod(np.concatenate([known, *waiting]), self.p, self.clock.check)
                waiting, rows = [], 0
                if len(pivots) == len(free):
                    return ()
        if waiting:
            known, pivots = echelon_mod(np.concatenate([known, *waiting]), self.p, self.clock.check)
        return tuple(sorted(int(order[c]) for c in set(range(len(free))) - set(pivots)))

    def _product(self, part: DegreePart, here: _Solved, variable: int) -> Matrix | None:
        """Products of a variable with the equations of one degree less that land in this weight space."""
        with np.errstate(over="ignore"):
            below = self.previous.find(int(part.weights[here.space.weight] - self.hashes[variable]))
        if below is None:
            return None
        source = self.solved.get(int(self.previous.representative[below]))
        if source is None:
            return None
        moved = self.previous.carrier[below][source.space.monomials]
        keys = self.keys[moved].sum(axis=1, dtype=np.uint64) + self.keys[variable]
        block = np.zeros((len(source.basis), len(here.space.monomials)), dtype=np.int64)
        block[:, here.space.columns(keys)] = source.basis
        return block

    def _translate(
        self, part: DegreePart, solved: dict[int, _Solved], new: dict[int, tuple[int, ...]]
    ) -> list[Polynomial]:
        """The new generators of all weights: those of the representatives, carried along their orbits."""
        found: list[Polynomial] = []
        for index in range(len(part.weights)):
            representative = int(part.representative[index])
            if not new.get(representative):
                continue
            source = solved[representative]
            moved = part.carrier[index][source.space.monomials]
            exponents = np.zeros((len(moved), self.span.dim), dtype=np.int64)
            for column in moved.T:
                np.add.at(exponents, (np.arange(len(moved)), column), 1)
            for row in new[representative]:
                terms = np.flatnonzero(source.basis[row])
                found.append({tuple(exponents[t].tolist()): int(source.basis[row, t]) for t in terms})
        return found


def _evaluate(points: Matrix, monomials: Ints, p: int) -> Matrix:
    """Values of monomials (columns) at points (rows), mod p."""
    values = points[:, monomials[:, 0]]
    for column in monomials.T[1:]:
        values = values * points[:, column] % p
    return values


def evaluate(polynomial: Polynomial, points: Matrix, p: int) -> Matrix:
    """Values of a sparse polynomial at points (rows of span coordinates), mod p.

    >>> evaluate({(2, 0): 1, (0, 1): 3}, np.array([[2, 5]]), 7).tolist()
    [5]
    """
    total = np.zeros(len(points), dtype=np.int64)
    for exponents, coefficient in polynomial.items():
        term = np.full(len(points), int(coefficient) % p, dtype=np.int64)
        for variable, exponent in enumerate(exponents):
            for _ in range(exponent):
                term = term * points[:, variable] % p
        total = (total + term) % p
    return total
