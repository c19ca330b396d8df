"""Generators that can be named: minors of flattenings of a network's coefficients, where these have small rank on the image.

A network whose outputs are forms in its inputs has matrices of coefficients: rows are an output and a monomial, columns are
monomials, and the entry is the derivative of the output by both. A rank r at random points of the image makes all minors of size
r + 1 vanish; how many independent generators these are is a rank at random points of the linear span. All of it is over F_p.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, factorial, prod

import numpy as np

from m2bridge.errors import M2BridgeError
from m2bridge.linear.modular import rank_mod
from m2bridge.models.base import Model
from m2bridge.questions.closure.image import image_of
from m2bridge.questions.closure.interpolation import monomials_of_degree
from m2bridge.questions.closure.result import Equation

_MOST_COORDINATES = 40
_MOST_MINORS = 4000
_MOST_FORMS = 1500
_COORDINATE = re.compile(r"(y\[[\d,]+\]): (.+)")
_FACTOR = re.compile(r"x\[([\d,]+)\](?:\^(\d+))?")

Exponents = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Flattening:
    """A matrix of coordinates times integers, and in words what its rows and columns are."""

    words: str
    places: np.ndarray
    factors: np.ndarray

    def at(self, points: np.ndarray, p: int) -> np.ndarray:
        """The matrix at each point, one a row of `points`."""
        return np.asarray(points[:, self.places] * self.factors % p)


def flattenings(names: Sequence[str]) -> list[Flattening]:
    """The matrices of derivatives of a network with these coordinates; none when the outputs are not forms of one degree."""
    read = [_COORDINATE.fullmatch(name) for name in names]
    if not names or not all(read):
        return []
    labels = sorted({tuple(map(int, v.split(","))) for name in names for v, _ in _FACTOR.findall(name)})
    index = {label: i for i, label in enumerate(labels)}
    coordinates: dict[tuple[str, Exponents], int] = {}
    for i, match in enumerate(read):
        assert match is not None
        exponents = [0] * len(labels)
        for label, power in _FACTOR.findall(match[2]):
            exponents[index[tuple(map(int, label.split(",")))]] += int(power or 1)
        coordinates[match[1], tuple(exponents)] = i
    for blocks in ([label[1:] for label in labels], [()] * len(labels)):  # by tokens, or all inputs alike
        tokens = sorted(set(blocks))
        parts = [[v for v, block in enumerate(blocks) if block == token] for token in tokens]
        sizes = {tuple(sum(e[v] for v in part) for part in parts) for _, e in coordinates}
        if len(sizes) == 1:
            return list(_flattenings(coordinates, parts, next(iter(sizes)), len(labels)))
    return []


def _flattenings(
    coordinates: dict[tuple[str, Exponents], int], parts: list[list[int]], size: Exponents, count: int
) -> Iterator[Flattening]:
    outputs = list(dict.fromkeys(output for output, _ in coordinates))
    for left in product(*(range(k + 1) for k in size)):
        if left == size:
            continue
        right = tuple(k - i for k, i in zip(size, left, strict=True))
        rows = [(output, m) for output in outputs for m in _monomials(parts, left, count)]
        columns = _monomials(parts, right, count)
        sums = [[(o, tuple(a + b for a, b in zip(m, n, strict=True))) for n in columns] for o, m in rows]
        if min(len(rows), len(columns)) > 1 and all(key in coordinates for row in sums for key in row):
            yield Flattening(
                words=f"{len(rows)} x {len(columns)} matrix of {_words(left, outputs)} by {_words(right, ())}",
                places=np.array([[coordinates[key] for key in row] for row in sums]),
                factors=np.array([[prod(map(factorial, key[1])) for key in row] for row in sums]),
            )


def _monomials(parts: list[list[int]], degrees: Exponents, count: int) -> list[Exponents]:
    found = []
    for choice in product(
        *(monomials_of_degree(len(part), k) for part, k in zip(parts, degrees, strict=True))
    ):
        exponents = [0] * count
        for part, chosen in zip(parts, choice, strict=True):
            for v in chosen:
                exponents[part[v]] += 1
        found.append(tuple(exponents))
    return found


def _words(degrees: Exponents, outputs: Sequence[str]) -> str:
    said = ["outputs"] * (len(outputs) > 1)
    for token, k in enumerate(degrees, start=1):
        if k:
            where = f" in token {token}" if len(degrees) > 1 else ""
            said.append(f"monomials of degree {k}{where}" if k > 1 else f"inputs{where}")
    return " and ".join(said) or "one"


def named_generators(
    model: Model, equations: Sequence[Equation], counts: dict[int, int], p: int, seed: int
) -> tuple[str, ...]:
    """Sentences such as ``9 of degree 2 = 2-minors of the 3 x 3 matrix of outputs by inputs``, as far as they are recognised."""
    try:
        candidates = flattenings(model.coordinate_names)
    except M2BridgeError:
        return ()
    if not candidates or model.coordinate_count > _MOST_COORDINATES:
        return ()
    rng = np.random.default_rng([seed, 61])
    image = image_of(model)
    points = image.points(rng, 12, p)[:, : model.coordinate_count]
    curved = [f for f in equations if f.degree > 1]
    found: list[str] = []
    for degree in sorted(counts):
        size = comb(model.coordinate_count + degree - 1, degree)
        small = [c for c in candidates if _minors(c, degree) <= _MOST_MINORS and size <= _MOST_FORMS]
        if not small:
            continue
        span = rng.integers(0, p, size=(size + 8, len(points))) @ points % p
        basis = _multiples([f for f in curved if f.degree < degree], degree, span, p)
        rank, left = rank_mod(basis, p) if basis.size else 0, counts[degree]
        for candidate in small:
            if not left or max(rank_mod(m, p) for m in candidate.at(points, p)) != degree - 1:
                continue
            wider = np.concatenate([basis, _minor_values(candidate, degree, span, p)], axis=1)
            new = rank_mod(wider, p) - rank
            if 0 < new <= left:
                found.append(f"{new} of degree {degree} = {degree}-minors of the {candidate.words}")
                basis, rank, left = wider, rank + new, left - new
    return tuple(found)


def _minors(candidate: Flattening, size: int) -> int:
    rows, columns = candidate.places.shape
    return comb(rows, size) * comb(columns, size)


def _multiples(equations: Sequence[Equation], degree: int, points: np.ndarray, p: int) -> np.ndarray:
    """The values at the points of all products of an equation and a monomial of this degree, one a column."""
    columns = []
    variables = [points[:, i].astype(object) for i in range(points.shape[1])]
    for f in equations:
        value = np.asarray(f.at(variables) % p, dtype=np.int64)
        for monomial in monomials_of_degree(points.shape[1], degree - f.degree):
            column = value
            for i in monomial:
                column = column * points[:, i] % p
            columns.append(column)
    return np.array(columns, dtype=np.int64).reshape(-1, len(points)).T


def _minor_values(candidate: Flattening, size: int, points: np.ndarray, p: int) -> np.ndarray:
    matrices = candidate.at(points, p)
    rows, columns = candidate.places.shape
    values = [
        _determinants(matrices[:, r][:, :, c], p)
        for r in map(list, combinations(range(rows), size))
        for c in map(list, combinations(range(columns), size))
    ]
    return np.array(values, dtype=np.int64).reshape(-1, len(points)).T


def _determinants(matrices: np.ndarray, p: int) -> np.ndarray:
    """Determinants modulo p of a batch of small matrices, by expansion along the first row."""
    size = matrices.shape[1]
    if size == 1:
        return np.asarray(matrices[:, 0, 0] % p)
    total = np.zeros(len(matrices), dtype=np.int64)
    for j in range(size):
        rest = np.delete(matrices[:, 1:], j, axis=2)
        total = (total + (-1) ** j * matrices[:, 0, j] * _determinants(rest, p)) % p
    return total
