"""Strata of one layer of attention: orbits of GL_d x GL_d x GL_d', where (g, h, k) acts by A -> g A h, V -> k V g^T.

The action is linear on the Segre coordinates (g moves all linear forms, h mixes the columns of A, k the rows of V), so it
maps the variety to itself, and whether a point is singular depends on its orbit alone. Pairs (A, V^T) are representations of
the quiver * -> * <- *, so orbits are distinguished by the ranks of A, of V and of [A | V^T], and one orbit lies in the closure
of another exactly when these three ranks are not larger (Abeasis and Del Fra 1985 for type A with any orientation).
All pairs with A = 0 or V = 0 map to the zero function: they are one orbit here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import comb, factorial, prod

import flint
import numpy as np

from m2bridge.errors import InputError
from m2bridge.families.polynomial_map import PolynomialMap
from m2bridge.families.self_attention import Attention
from m2bridge.families.strata import FiniteMap, ImageDegree, Strata
from m2bridge.families.symbolic import rational_variables, sparse, variable_array
from m2bridge.frontends.polynomials import terms_of
from m2bridge.linear.modular import rank_over_q

IntMatrix = np.ndarray


@dataclass(frozen=True, slots=True, order=True)
class Orbit:
    """All (A, V) with given rk A, rk V and meet = dim(col A ∩ row V); (0, 0, 0) is the zero function."""

    rank_a: int
    rank_v: int
    meet: int

    @property
    def joint_rank(self) -> int:
        """Return rk [A | V^T], the dimension of col A + row V."""
        return self.rank_a + self.rank_v - self.meet

    @property
    def is_zero(self) -> bool:
        return self.rank_a * self.rank_v == 0

    def in_closure_of(self, other: Orbit) -> bool:
        """Return whether the image of this orbit lies in the closure of the image of `other`."""
        pairs = (
            (self.rank_a, other.rank_a),
            (self.rank_v, other.rank_v),
            (self.joint_rank, other.joint_rank),
        )
        return self.is_zero or all(rank <= other_rank for rank, other_rank in pairs)

    def representative(self, d: int, dp: int) -> tuple[IntMatrix, IntMatrix]:
        """Return a pair (A, V) of 0/1 matrices in the orbit."""
        if self.joint_rank > d or self.rank_v > dp or not 0 <= self.meet <= min(self.rank_a, self.rank_v):
            raise InputError(
                f"no (A, V) with d={d}, d'={dp} has ranks {self.rank_a}, {self.rank_v} and meet {self.meet}"
            )
        A, V = np.zeros((d, d), dtype=np.int64), np.zeros((dp, d), dtype=np.int64)
        for i in range(self.rank_a):
            A[i, i] = 1
        for n in range(self.rank_v):
            V[n, n if n < self.meet else self.rank_a + n - self.meet] = 1
        return A, V

    def __str__(self) -> str:
        return "0" if self.is_zero else f"({self.rank_a},{self.rank_v},{self.meet})"


def all_orbits(d: int, dp: int, a: int) -> tuple[Orbit, ...]:
    """Return every orbit of pairs with rk A <= a, the zero function first."""
    orbits = [Orbit(0, 0, 0)]
    for r, s in product(range(1, min(a, d) + 1), range(1, min(d, dp) + 1)):
        orbits += [Orbit(r, s, c) for c in range(min(r, s), max(0, r + s - d) - 1, -1)]
    return tuple(orbits)


def differential(model: Attention, A: IntMatrix, V: IntMatrix) -> np.ndarray:
    """Return the rows c(A', V) and c(A, V') for unit matrices A' and V': the coordinates c are bilinear in (A, V)."""
    d, dp = model.d, model.dp
    rows = [model.coordinates({"A": e.reshape(d, d), "V": V}) for e in np.eye(d * d, dtype=np.int64)]
    rows += [model.coordinates({"A": A, "V": e.reshape(dp, d)}) for e in np.eye(dp * d, dtype=np.int64)]
    return np.array(rows)


def orbit_dim(model: Attention, A: IntMatrix, V: IntMatrix) -> int:
    """Return the dimension of the image of the orbit of (A, V): rank over QQ of the Lie algebra's action on the image point."""
    return rank_over_q(group_moves(A, V) @ differential(model, A, V))


def group_moves(A: IntMatrix, V: IntMatrix) -> np.ndarray:
    """Return the action of the Lie algebra on (A, V), flattened: one row for each unit matrix of its three parts."""
    d, dp = len(A), len(V)
    units = np.eye(d * d, dtype=np.int64).reshape(-1, d, d)
    moves = [np.append(e @ A, V @ e.T) for e in units] + [np.append(A @ e, 0 * V) for e in units]
    moves += [np.append(0 * A, e @ V) for e in np.eye(dp * dp, dtype=np.int64).reshape(-1, dp, dp)]
    return np.stack(moves)


def orbit_closure(layer: Attention, orbit: Orbit) -> PolynomialMap:
    """Return the closure of one orbit as the image of (P, B, C).

    P is d x (r + s - c); A = P[:, :r] B, and the rows of V are combinations, by C, of the first c and the last s - c columns
    of P.
    """
    d, dp, columns = layer.d, layer.dp, orbit.joint_rank
    shapes = {"p": (d, columns), "b": (orbit.rank_a, d), "c": (dp, orbit.rank_v)}
    names = [f"{letter}{i}" for letter, shape in shapes.items() for i in range(prod(shape))]
    variables = rational_variables(names)
    P, B, C = (variable_array(variables, shape) for shape in shapes.values())
    shared = [*range(orbit.meet), *range(orbit.rank_a, columns)]
    point = layer.coordinates({"A": P[:, : orbit.rank_a] @ B, "V": C @ P[:, shared].T})
    terms = tuple(terms_of(sparse(polynomial)) for polynomial in point)
    return PolynomialMap(name=f"closure of the orbit {orbit}", variables=tuple(names), polynomials=terms)


# -- degrees of orbit closures ---------------------------------------------------------------------------------------------------


def matrix_dim(rows: int, columns: int, rank: int) -> int:
    """Return the dimension of the variety of matrices of rank at most `rank`."""
    return rank * (rows + columns - rank)


def porteous_degree(rows: int, columns: int, rank: int) -> int:
    """Return the degree of the variety of matrices of rank at most `rank`, by Porteous' formula.

    It is the determinant of the Chern numbers comb(m, m - rank + j - i), m the larger size. The formula for the degree of a
    closure uses Harris' product instead: the two are compared by `singular-locus`.

    >>> porteous_degree(3, 3, 2), porteous_degree(3, 4, 1), porteous_degree(2, 2, 2)
    (3, 10, 1)
    """
    m, size = max(rows, columns), min(rows, columns) - min(rank, rows, columns)
    chern = [comb(m, k) if (k := m - rank + j - i) >= 0 else 0 for i in range(size) for j in range(size)]
    return int(flint.fmpz_mat(size, size, chern).det())


_FINITE = "the coordinates define a finite map of a product of projective varieties (docs/decisions/0018), "


def _rank_one_degree(d: int, dp: int, meet: int) -> ImageDegree:
    """Return the degree of {q (x) h (x) k v}, or of {q (x) h (x) k^2} for meet = 1.

    The products of the forms are a finite map of P(q) x P(h) x P(k) x P(v) by O(1,1,1,1), of degree two because k and v can be
    exchanged; of P(q) x P(h) x P(k) by O(1,1,2), of degree one, for v = k. An intersection number divided by the degree of the
    map is the degree of the image.
    """
    twice = 2 * factorial(d - 1) ** 2 * factorial(dp - 1)
    if meet:
        value = 2 * factorial(2 * d + dp - 3) * 2 ** (d - 1) // twice
        return ImageDegree(
            value=value, argument=_FINITE + "P(q) x P(h) x P(k) by O(1,1,2), one point in each fiber"
        )
    value = factorial(3 * d + dp - 4) // (twice * factorial(d - 1))
    return ImageDegree(
        value=value, argument=_FINITE + "P(q) x P(h) x P(k) x P(v) by O(1,1,1,1), two points in a fiber"
    )


def _generic_degree(d: int, dp: int, orbit: Orbit) -> ImageDegree:
    """Return the degree of the image of {rk A <= r} x {rk V <= s}, r s >= 2, whose general fiber is one point.

    It is the intersection number of O(1,1) on the product of two determinantal varieties.
    """
    r, s = orbit.rank_a, orbit.rank_v
    first, second = matrix_dim(d, d, r) - 1, matrix_dim(dp, d, s) - 1
    value = comb(first + second, first) * porteous_degree(d, d, r) * porteous_degree(dp, d, s)
    return ImageDegree(
        value=value, argument=_FINITE + f"P(rk A <= {r}) x P(rk V <= {s}) by O(1,1), one point in a fiber"
    )


# -- the interface ---------------------------------------------------------------------------------------------------------------


class LayerStrata(Strata):
    """Orbits of one layer of lightning attention with t >= 2, in Segre coordinates.

    The group is connected and acts linearly on the closure with finitely many orbits: they cover it, and the singular locus is
    a union of their closures.
    """

    model: Attention
    exhaustive = True
    closure_coordinates = 18
    """Beyond, Groebner bases of the equations take hours: (3,2,3) has 800 equations of degrees 2 to 4 in 36 coordinates."""

    def __init__(self, layer: Attention) -> None:
        if layer.t < 2:
            raise InputError(
                f"the orbits of {layer} need t >= 2: with one token the Segre coordinates do not determine the network; "
                "use --t 2, or `singular-point` at given weights"
            )
        self.model = replace(layer, parametrization="attention", coordinate_system="segre")

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.model.d, self.model.dp

    def strata(self) -> Sequence[Orbit]:
        return all_orbits(*self._sizes, self.model.a)

    def ranks(self, stratum: Orbit) -> Mapping[str, int]:
        return {"A": stratum.rank_a, "V": stratum.rank_v, "meet": stratum.meet}

    def representative(self, stratum: Orbit) -> dict[str, np.ndarray]:
        A, V = stratum.representative(*self._sizes)
        return {"A": A, "V": V}

    def fiber(self, stratum: Orbit) -> list[dict[str, np.ndarray]]:
        """Return the representative and, when both ranks are one, A = k q^T and V = h v^T, (v q^T, h k^T), if it is another."""
        A, V = stratum.representative(*self._sizes)
        pairs = [(A, V)]
        if stratum.rank_a == stratum.rank_v == 1 and not stratum.meet:
            k, v = A[:, 0], V[0]
            pairs.append((np.outer(v, A[0]), np.outer(V[:, v.argmax()], k)))
        return [self._free(*pair) for pair in pairs]

    def _free(self, A: IntMatrix, V: IntMatrix) -> dict[str, np.ndarray]:
        """Return weights of ``model.free``: A itself, or factors K^T Q = A for a 0/1 matrix with at most one 1 in each row."""
        if self.model.free is self.model:
            return {"A": A, "V": V}
        Q, K = np.zeros((2, self.model.a, self.model.d), dtype=np.int64)
        for index, (row, column) in enumerate(np.argwhere(A)):
            K[index, row] = Q[index, column] = 1
        return {"Q": Q, "K": K, "V": V}

    def directions(self, stratum: Orbit) -> np.ndarray:
        """Return the action of the Lie algebra on the first weights of the fiber; K^T Q is moved by K -> K g^T and Q -> Q h."""
        weights = self.fiber(stratum)[0]
        if "A" in weights:
            return group_moves(weights["A"], weights["V"])
        Q, K, V = (weights[name] for name in "QKV")
        d, dp = self._sizes
        units = np.eye(d * d, dtype=np.int64).reshape(-1, d, d)
        moves = [np.concatenate([0 * Q.ravel(), (K @ e.T).ravel(), (V @ e.T).ravel()]) for e in units]
        moves += [np.concatenate([(Q @ e).ravel(), 0 * K.ravel(), 0 * V.ravel()]) for e in units]
        outputs = np.eye(dp * dp, dtype=np.int64).reshape(-1, dp, dp)
        moves += [np.concatenate([0 * Q.ravel(), 0 * K.ravel(), (e @ V).ravel()]) for e in outputs]
        return np.stack(moves)

    def contains(self, larger: Orbit, smaller: Orbit) -> bool:
        return smaller.in_closure_of(larger)

    def parametrization(self, stratum: Orbit) -> PolynomialMap | None:
        return None if stratum.is_zero else orbit_closure(self.model, stratum)

    def degree(self, stratum: Orbit) -> ImageDegree | None:
        """Return the degree for the zero function, rk A = rk V = 1, and orbits that are dense in {rk A <= r} x {rk V <= s}."""
        d, dp = self._sizes
        if stratum.is_zero:
            return ImageDegree(value=1, argument="one point")
        if stratum.rank_a == stratum.rank_v == 1 and d > 1:
            return _rank_one_degree(d, dp, stratum.meet)
        if stratum.meet > max(0, stratum.rank_a + stratum.rank_v - d) or d == 1:
            return None
        return _generic_degree(d, dp, stratum)

    def finite_map(self, stratum: Orbit) -> FiniteMap | None:
        """Return the map of all P(A) x P(V), where {rk A <= a} is smooth: rk A = a, or a >= d.

        Allowing all A can only make a fiber larger.
        """
        d, dp, reached = *self._sizes, min(self.model.a, self.model.d)
        if stratum.is_zero or reached not in (stratum.rank_a, d):
            return None
        source = replace(self.model, ranks=(d,))
        dim = matrix_dim(d, d, reached) + dp * d - 1
        return FiniteMap(model=source, weights=self.representative(stratum), dim=dim)
