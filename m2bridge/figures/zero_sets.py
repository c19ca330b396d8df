"""Approximate the real zero set of a polynomial in two or three variables by segments or triangles.

The zero set is the set where the polynomial changes its sign on a grid of simplices. Cubes of the grid are divided where the
zero set may be curved or have several sheets: the two sheets at a cuspidal edge are closer to each other than a uniform grid
resolves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations, product

import numpy as np

from m2bridge.figures.slices import Polynomial, evaluate
from m2bridge.frontends.polynomials import derivative

_CELLS = {2: 300, 3: 44}
"""Number of grid cells per side, by dimension."""
_SIDE = 16
"""Side of a cell in steps of the lattice: a power of two. A cell is halved until its parts have side 1."""
_BISECTIONS = 10  # halvings of an edge of the grid


@dataclass(frozen=True, slots=True)
class _Lattice:
    """The points low + i * step for vectors i of integers."""

    low: np.ndarray
    step: np.ndarray

    def points(self, indices: np.ndarray) -> np.ndarray:
        return np.asarray(self.low + indices * self.step)


def zero_set(polynomial: Polynomial, limits: np.ndarray) -> np.ndarray:
    """Approximate the zero set in a box by simplices (count, n, n): segments for n = 2, triangles for n = 3.

    Every cube is divided into the n! simplices of the Kuhn triangulation. The zero set meets a simplex whose corners have both
    signs in a segment, a triangle or a quadrilateral; its corners are computed by bisection on the edges.
    """
    n = len(limits)
    low, high = limits.T
    lattice = _Lattice(low, (high - low) / (_CELLS[n] * _SIDE))
    halves = np.indices((2,) * n).reshape(n, -1).T
    cubes = np.indices((_CELLS[n],) * n).reshape(n, -1).T * _SIDE
    side = _SIDE
    pieces: list[np.ndarray] = []
    while side > 1 and len(cubes):
        divided = _is_degenerate(polynomial, lattice, cubes, side)
        pieces += _pieces(polynomial, lattice, cubes[~divided], side)
        side //= 2
        cubes = (cubes[divided][:, None] + side * halves).reshape(-1, n)
    pieces += _pieces(polynomial, lattice, cubes, side)
    cells = np.concatenate(pieces) if pieces else np.empty((0, n, n))
    return cells if n == 2 else _oriented(cells, polynomial)


def _is_degenerate(polynomial: Polynomial, lattice: _Lattice, cubes: np.ndarray, side: int) -> np.ndarray:
    """Return for each cube whether the zero set may meet it and is not nearly flat there, by Taylor polynomials of degree 2.

    At a cusp y^2 = x^3 these are the cubes in which the grid does not separate the two sheets.
    """
    n = cubes.shape[1]
    centres = lattice.points(cubes + side / 2)
    radius = float(np.linalg.norm(lattice.step)) * side / 2
    first = [derivative(polynomial, i) for i in range(n)]
    value = np.abs(evaluate(polynomial, centres)[0])
    gradient = np.sqrt(sum(evaluate(f, centres)[0] ** 2 for f in first))
    second = (evaluate(derivative(f, j), centres)[0] ** 2 for f in first for j in range(n))
    bend = np.sqrt(sum(second)) * radius
    return np.asarray((value <= (gradient + bend / 2) * radius) & (gradient <= bend))


def _pieces(polynomial: Polynomial, lattice: _Lattice, cubes: np.ndarray, side: int) -> Iterator[np.ndarray]:
    """Yield arrays of segments or triangles in cubes of the lattice, which are given by their lowest corners."""
    n = cubes.shape[1]
    if not len(cubes):
        return
    shape = (_CELLS[n] * _SIDE + 1,) * n
    numbers = [np.ravel_multi_index((cubes + side * np.array(c)).T, shape) for c in product((0, 1), repeat=n)]
    distinct, positions = np.unique(np.stack(numbers, axis=1), return_inverse=True)
    points = lattice.points(np.stack(np.unravel_index(distinct, shape), axis=1))
    positive = evaluate(polynomial, points)[0] > 0
    positions = positions.reshape(len(cubes), -1)
    above = positive[positions].sum(axis=1)
    corner_positions = positions[(above > 0) & (above < 2**n)].reshape(-1, *(2,) * n)
    for order in permutations(range(n)):
        corner = np.zeros(n, dtype=int)
        simplex = [corner_positions[:, *corner]]
        for axis in order:
            corner[axis] = 1
            simplex.append(corner_positions[:, *corner])
        corners = np.stack(simplex, axis=1)
        yield from _cut_simplices(polynomial, points[corners], positive[corners])


def _cut_simplices(polynomial: Polynomial, points: np.ndarray, signs: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the segments or triangles in which the zero set meets simplices (count, n + 1, n) with signs at their corners."""
    n = points.shape[2]
    for pattern in product((False, True), repeat=n + 1):
        above = [i for i in range(n + 1) if pattern[i]]
        below = [i for i in range(n + 1) if not pattern[i]]
        here = points[(signs == pattern).all(axis=1)]
        if not above or not below or not len(here):
            continue
        edges = [(i, j) for i in above for j in below]
        if len(edges) == 4:  # a quadrilateral: order its corners cyclically
            edges = [edges[0], edges[1], edges[3], edges[2]]
        crossings = [_crossings(polynomial, here[:, i], here[:, j]) for i, j in edges]
        if n == 2:
            yield np.stack(crossings, axis=1)
        else:
            yield from (np.stack([crossings[0], a, b], axis=1) for a, b in pairwise(crossings[1:]))


def _crossings(polynomial: Polynomial, above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return a zero on each segment from a point where the polynomial is positive to a point where it is not."""
    for _ in range(_BISECTIONS):
        middle = (above + below) / 2
        positive = (evaluate(polynomial, middle)[0] > 0)[:, None]
        above, below = np.where(positive, middle, above), np.where(positive, below, middle)
    return np.asarray((above + below) / 2)


def _oriented(triangles: np.ndarray, polynomial: Polynomial) -> np.ndarray:
    """Reorder the corners so that all normals point to the side where the polynomial is positive."""
    centres = triangles.mean(axis=1)
    gradient = np.stack([evaluate(derivative(polynomial, v), centres)[0] for v in range(3)], axis=1)
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    backwards = (normals * gradient).sum(axis=1) < 0
    return np.where(backwards[:, None, None], triangles[:, ::-1], triangles)
