"""Compute the orbit of weights of one layer of attention, and the second point of a fiber with two points."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from m2bridge.families.attention_strata import Orbit
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions import over_q


def orbit_of(A: np.ndarray, V: np.ndarray) -> Orbit:
    """Return the orbit of a pair of integer or rational matrices, by exact ranks; also for the zero function.

    >>> orbit_of(np.array([[1, 0], [0, 0]]), np.array([[1, 0]]))
    Orbit(rank_a=1, rank_v=1, meet=1)
    """
    r, s = over_q.rank(A), over_q.rank(V)
    return Orbit(r, s, r + s - over_q.rank(np.hstack([A, V.T])) if r * s else 0)


def exchanged(A: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (v q^T, h k^T) for A = k q^T and V = h v^T, as Fractions: the same function; None unless both ranks are one."""
    if over_q.rank(A) != 1 or over_q.rank(V) != 1:
        return None
    A, V = elementwise(Fraction, A), elementwise(Fraction, V)
    i, j = np.argwhere(A != 0)[0]
    m, n = np.argwhere(V != 0)[0]
    return np.outer(V[m] / V[m, n], A[i] / A[i, j]), np.outer(V[:, n], A[:, j])
