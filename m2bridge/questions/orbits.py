"""Orbits of one-layer attention: (g, h, k) in GL_d x GL_d x GL_d' acts by A -> g A h, V -> k V g^T.

The action is linear on the Segre coordinates (g moves all linear forms, h mixes the columns of A, k the rows of V), so it
maps the variety to itself, and whether a point is singular depends on its orbit alone. Pairs (A, V^T) are representations of
the quiver * -> * <- *, so orbits are told apart by the ranks of A, of V and of [A | V^T], and one orbit lies in the closure
of another exactly when these three ranks are not larger (Abeasis and Del Fra 1985 for type A with any orientation).
All pairs with A = 0 or V = 0 map to the zero function: they are one orbit here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from m2bridge.errors import InputError
from m2bridge.families import Attention
from m2bridge.linear.modular import rank_over_q
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions import over_q

IntMatrix = np.ndarray


@dataclass(frozen=True, slots=True, order=True)
class Orbit:
    """All (A, V) with given rk A, rk V and meet = dim(col A ∩ row V); (0, 0, 0) is the zero function."""

    rank_a: int
    rank_v: int
    meet: int

    @property
    def joint_rank(self) -> int:
        """rk [A | V^T], the dimension of col A + row V."""
        return self.rank_a + self.rank_v - self.meet

    @property
    def is_zero(self) -> bool:
        return self.rank_a * self.rank_v == 0

    def in_closure_of(self, other: Orbit) -> bool:
        """Whether the image of this orbit lies in the closure of the image of `other`."""
        pairs = (
            (self.rank_a, other.rank_a),
            (self.rank_v, other.rank_v),
            (self.joint_rank, other.joint_rank),
        )
        return self.is_zero or all(mine <= theirs for mine, theirs in pairs)

    def representative(self, d: int, dp: int) -> tuple[IntMatrix, IntMatrix]:
        """A pair (A, V) of 0/1 matrices in the orbit."""
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
    """Every orbit of pairs with rk A <= a, the zero function first."""
    orbits = [Orbit(0, 0, 0)]
    for r, s in product(range(1, min(a, d) + 1), range(1, min(d, dp) + 1)):
        orbits += [Orbit(r, s, c) for c in range(min(r, s), max(0, r + s - d) - 1, -1)]
    return tuple(orbits)


def orbit_of(A: np.ndarray, V: np.ndarray) -> Orbit:
    """The orbit of a pair of integer or rational matrices, by exact ranks; its ranks are kept when the function is zero."""
    r, s = over_q.rank(A), over_q.rank(V)
    return Orbit(r, s, r + s - over_q.rank(np.hstack([A, V.T])) if r * s else 0)


def differential(model: Attention, A: IntMatrix, V: IntMatrix) -> np.ndarray:
    """The rows c(A', V) and c(A, V') for unit matrices A' and V': the coordinates c are bilinear in (A, V)."""
    d, dp = model.d, model.dp
    rows = [model.coordinates({"A": e.reshape(d, d), "V": V}) for e in np.eye(d * d, dtype=np.int64)]
    rows += [model.coordinates({"A": A, "V": e.reshape(dp, d)}) for e in np.eye(dp * d, dtype=np.int64)]
    return np.array(rows)


def orbit_dim(model: Attention, A: IntMatrix, V: IntMatrix) -> int:
    """Dimension of the image of the orbit of (A, V): rank over QQ of the Lie algebra's action on the image point."""
    return rank_over_q(group_moves(A, V) @ differential(model, A, V))


def group_moves(A: IntMatrix, V: IntMatrix) -> np.ndarray:
    """How the Lie algebra moves (A, V), flattened: one row for each unit matrix of its three parts."""
    d, dp = len(A), len(V)
    units = np.eye(d * d, dtype=np.int64).reshape(-1, d, d)
    moves = [np.append(e @ A, V @ e.T) for e in units] + [np.append(A @ e, 0 * V) for e in units]
    moves += [np.append(0 * A, e @ V) for e in np.eye(dp * dp, dtype=np.int64).reshape(-1, dp, dp)]
    return np.stack(moves)


def exchanged(A: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """(v q^T, h k^T) for A = k q^T and V = h v^T, as Fractions: the products of forms stay; None unless both ranks are one."""
    if over_q.rank(A) != 1 or over_q.rank(V) != 1:
        return None
    A, V = elementwise(Fraction, A), elementwise(Fraction, V)
    i, j = np.argwhere(A != 0)[0]
    m, n = np.argwhere(V != 0)[0]
    return np.outer(V[m] / V[m, n], A[i] / A[i, j]), np.outer(V[:, n], A[:, j])
