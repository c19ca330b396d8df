"""The monomials of one degree, sorted into the weight spaces of a torus and the orbits of a group.

A grading (integer matrix, one column a variable) and coordinate permutations enter; for each degree the list of weights
leaves, with the orbits of the weights under the permutations and, for each weight, a permutation that carries the
orbit's representative to it. Only representatives need linear algebra.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from m2bridge.questions.asking import Clock

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
_HASH_SEED = 20250101


def monomials_of_degree(count: int, degree: int, clock: Clock | None = None) -> Ints:
    """All monomials of a degree in `count` variables, one a row: the non-decreasing sequences of variable indices.

    They come in ascending lexicographic order of these sequences.

    >>> monomials_of_degree(2, 2).tolist()
    [[0, 0], [0, 1], [1, 1]]
    """
    rows: Ints = np.zeros((1, 0), dtype=np.int64)
    for _ in range(degree):
        last = rows[:, -1] if rows.shape[1] else np.zeros(1, dtype=np.int64)
        repeats = count - last
        total = int(repeats.sum())
        if clock is not None:
            clock.check()
            clock.reserve(3 * 8 * total * (rows.shape[1] + 1), f"the list of monomials of degree {degree}")
        starts = np.repeat(np.cumsum(repeats) - repeats, repeats)
        new = np.arange(total) - starts + np.repeat(last, repeats)
        rows = np.concatenate([np.repeat(rows, repeats, axis=0), new[:, None]], axis=1)
    return rows


def variable_keys(count: int) -> Keys:
    """Random 64-bit keys of the variables; a monomial's key is the sum over its variables, mod 2^64."""
    return np.random.default_rng(_HASH_SEED).integers(
        0, 2**64 - 1, size=count, dtype=np.uint64, endpoint=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSpace:
    """The monomials of one degree and weight, in the order in which they are eliminated."""

    weight: int
    monomials: Ints
    keys: Keys
    sorter: Ints

    def columns(self, keys: Keys) -> Ints:
        """Positions of monomials given by their keys; all must be in this weight space."""
        places = np.searchsorted(self.keys, keys, sorter=self.sorter)
        if len(keys) and (
            places.max(initial=0) >= len(self.keys) or np.any(self.keys[self.sorter[places]] != keys)
        ):
            raise AssertionError("a monomial is not in its weight space: the grading is inconsistent")
        return self.sorter[places]


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreePart:
    """One degree of the polynomial ring, cut into weight spaces.

    Attributes
    ----------
    monomials: all monomials of the degree, sorted by weight; `starts`: where each weight begins.
    weights: the hash of each weight, ascending.
    representative: for each weight the index of its orbit's representative.
    carrier: for each weight a permutation s of the variables with s(representative's monomials) = its monomials:
        variable i goes to variable s[i].
    """

    degree: int
    monomials: Ints
    keys: Keys
    starts: Ints
    weights: Ints
    representative: Ints
    carrier: Ints

    def space(self, index: int) -> WeightSpace:
        rows = slice(int(self.starts[index]), int(self.starts[index + 1]))
        keys = self.keys[rows]
        return WeightSpace(weight=index, monomials=self.monomials[rows], keys=keys, sorter=np.argsort(keys))

    def size(self, index: int) -> int:
        return int(self.starts[index + 1] - self.starts[index])

    def find(self, weight: int) -> int | None:
        """Index of a weight given by its hash, or None when no monomial has it."""
        place = int(np.searchsorted(self.weights, weight))
        return place if place < len(self.weights) and self.weights[place] == weight else None

    @property
    def orbit_sizes(self) -> Ints:
        """Number of weights in the orbit of each representative (0 for the others)."""
        return np.bincount(self.representative, minlength=len(self.weights))


def weight_hashes(grading: Ints) -> Ints:
    """One integer for each variable such that, in the degrees that fit in memory, sums separate weights (63-bit random)."""
    rng = np.random.default_rng(_HASH_SEED + 1)
    factors = rng.integers(1, 2**62, size=(grading.shape[0],), dtype=np.int64)
    with np.errstate(over="ignore"):
        hashes = np.zeros(grading.shape[1], dtype=np.int64)
        for row, factor in zip(grading, factors, strict=True):
            hashes += row * factor
    return hashes


def split_degree(
    grading: Ints, permutations: list[Ints], degree: int, clock: Clock | None = None
) -> DegreePart:
    """The weight spaces of one degree with their orbits under `permutations` (each must normalise the grading)."""
    count = grading.shape[1]
    hashes = weight_hashes(grading)
    monomials = monomials_of_degree(count, degree, clock)
    weights_of = hashes[monomials].sum(axis=1) if degree else np.zeros(1, dtype=np.int64)
    order = np.argsort(weights_of, kind="stable")
    monomials, weights_of = monomials[order], weights_of[order]
    weights, starts = np.unique(weights_of, return_index=True)
    starts = np.append(starts, len(monomials)).astype(np.int64)
    keys = variable_keys(count)[monomials].sum(axis=1, dtype=np.uint64)
    if len(np.unique(keys)) != len(keys):
        raise AssertionError("two monomials share a key")
    firsts = monomials[starts[:-1]]
    images = [np.searchsorted(weights, hashes[s][firsts].sum(axis=1)) for s in permutations] if degree else []
    representative, carrier = _orbits(len(weights), count, permutations, images)
    return DegreePart(
        degree=degree, monomials=monomials, keys=keys, starts=starts, weights=weights,
        representative=representative, carrier=carrier,
    )  # fmt: skip


def _orbits(size: int, count: int, permutations: list[Ints], images: list[Ints]) -> tuple[Ints, Ints]:
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
