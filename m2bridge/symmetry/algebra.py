"""The Lie algebra of affine vector fields: brackets, derived algebra, center, radical."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from m2bridge.linear.modular import echelon_mod, rank_mod
from m2bridge.linear.residues import rational
from m2bridge.programs.points import Integers
from m2bridge.symmetry.fields import Monomial, VectorField, product_mod

MOST_FIELDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LieAlgebra:
    """What the brackets of a basis of fields say, computed modulo p.

    Attributes
    ----------
    dim: number of independent fields. orbit_dim: their rank at a generic point.
    derived_dim, center_dim: of [g, g] and of the center; the algebra is abelian when `derived_dim` is 0.
    radical_dim: of the largest solvable ideal, by Cartan's criterion. semisimple_dim: dim - radical_dim, of a Levi subalgebra.
    closed: whether all brackets are combinations of the fields; otherwise nothing else is said.
    brackets: [i, j, [[k, c], ...]]: the bracket of fields i < j (from 0) is the sum of c times field k; those that are not zero.
    """

    dim: int
    orbit_dim: int
    closed: bool
    derived_dim: int | None
    center_dim: int | None
    radical_dim: int | None
    semisimple_dim: int | None
    brackets: tuple[tuple[int, int, tuple[tuple[int, str], ...]], ...]


def bracket(x: VectorField, y: VectorField) -> VectorField:
    """[x, y] = x(y) - y(x), where a field differentiates the coefficients of another.

    >>> a, b = VectorField(((0, 1, (1,)),)), VectorField(((1, 1, (0,)),))
    >>> bracket(a, b).terms
    ((0, -1, (0,)), (1, 1, (1,)))
    """
    total: dict[tuple[int, Monomial], int] = defaultdict(int)
    for first, second, sign in ((x, y, 1), (y, x, -1)):
        by_weight: dict[int, list[tuple[int, Monomial]]] = defaultdict(list)
        for j, c, monomial in first.terms:
            by_weight[j].append((c, monomial))
        for i, c, monomial in second.terms:
            for place, j in enumerate(monomial):
                rest = monomial[:place] + monomial[place + 1 :]
                for d, other in by_weight.get(j, ()):
                    total[i, tuple(sorted(rest + other))] += sign * c * d
    return VectorField(tuple((i, c, m) for (i, m), c in sorted(total.items()) if c))


def lie_algebra(fields: Sequence[VectorField], orbit_dim: int, p: int) -> LieAlgebra | None:
    """The Lie algebra that the fields span; None when there are too many or none."""
    n = len(fields)
    if not 0 < n <= MOST_FIELDS:
        return None
    pairs = [(i, j, bracket(fields[i], fields[j])) for i in range(n) for j in range(i + 1, n)]
    places: dict[tuple[int, Monomial], int] = {}
    for field in [*fields, *(b for _, _, b in pairs)]:
        for i, _, m in field.terms:
            places.setdefault((i, m), len(places))
    basis = np.stack([_vector(field, places, p) for field in fields])
    unknown = LieAlgebra(
        dim=n, orbit_dim=orbit_dim, closed=False, derived_dim=None, center_dim=None, radical_dim=None,
        semisimple_dim=None, brackets=(),
    )  # fmt: skip
    structure = np.zeros((n, n, n), dtype=np.int64)
    if pairs:
        table = np.stack([_vector(b, places, p) for _, _, b in pairs])
        reduced, pivots = echelon_mod(np.concatenate([basis, table]).T, p)
        if len(pivots) != n or pivots[-1] >= n:
            return unknown
        for k, (i, j, _) in enumerate(pairs):
            structure[i, j] = reduced[:, n + k]
            structure[j, i] = -reduced[:, n + k] % p
    derived = structure.reshape(n * n, n)
    killing = np.zeros((n, n), dtype=np.int64)
    for i in range(n):
        for j in range(n):
            killing[i, j] = int(np.trace(product_mod(structure[i].T, structure[j].T, p))) % p
    derived_dim = rank_mod(derived, p)
    radical = n - rank_mod(product_mod(killing, derived.T, p), p)
    return LieAlgebra(
        dim=n,
        orbit_dim=orbit_dim,
        closed=True,
        derived_dim=derived_dim,
        center_dim=n - rank_mod(structure.reshape(n, n * n).T, p),
        radical_dim=radical,
        semisimple_dim=n - radical,
        brackets=tuple((i, j, _combination(structure[i, j], p)) for i, j, b in pairs if b.terms),
    )


def _vector(field: VectorField, places: dict[tuple[int, Monomial], int], p: int) -> Integers:
    vector = np.zeros(len(places), dtype=np.int64)
    for i, c, m in field.terms:
        vector[places[i, m]] = c % p
    return vector


def _combination(row: Integers, p: int) -> tuple[tuple[int, str], ...]:
    found = []
    for k in np.flatnonzero(row):
        fraction = rational(int(row[k]), p)
        found.append((int(k), str(fraction) if fraction is not None else f"{int(row[k])} mod {p}"))
    return tuple(found)


def in_span(field: VectorField, others: Sequence[VectorField], p: int) -> bool:
    """Whether a field is a combination of others with constant coefficients, modulo p."""
    places: dict[tuple[int, Monomial], int] = {}
    for item in [*others, field]:
        for i, _, m in item.terms:
            places.setdefault((i, m), len(places))
    if not others:
        return not field.terms
    basis = np.stack([_vector(item, places, p) for item in others])
    return rank_mod(np.concatenate([basis, _vector(field, places, p)[None]]), p) == rank_mod(basis, p)
