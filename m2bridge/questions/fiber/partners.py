"""Exact weights of other orbits with the same function, where a formula gives them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.models import DeepLightning, Lightning
from m2bridge.questions.fiber import gauge, skew
from m2bridge.questions.fiber.points import Point

_MOST_SYMBOLS = 9
"""Symbolic inputs with at most this many entries are expanded over QQ."""


def partners(point: Point) -> list[tuple[str, np.ndarray]]:
    """Pairs of where it comes from and the flattened weights, Fractions."""
    found = []
    swapped = partner_of_rank_one(point)
    if swapped is not None:
        found.append(("Theorem 3.2: (v q^T, h k^T)", _flat(point, swapped)))
    counter = counterexample(point)
    if counter is not None and counter["verified"]:
        other = {
            name: np.array([[Fraction(x) for x in row] for row in rows], dtype=object)
            for name, rows in counter["other"].items()
        }
        found.append(("the exact partner of a skew M_1", _flat(point, other)))
    return found


def _flat(point: Point, weights: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([weights[name].ravel() for name in point.model.parameters])


def partner_of_rank_one(point: Point) -> dict[str, np.ndarray] | None:
    """(v q^T, h k^T) for A = k q^T and V = h v^T, exactly (Theorem 3.2); None unless both ranks are one in (A, V)."""
    model = point.model
    if not isinstance(model, Lightning) or model.parametrization != "attention":
        return None
    A, V = point.weights["A"], point.weights["V"]
    if gauge.rank(point.matrix("A")) != 1 or gauge.rank(point.matrix("V")) != 1:
        return None
    i, j = next((i, j) for (i, j), x in np.ndenumerate(A) if x)
    m, n = next((m, n) for (m, n), x in np.ndenumerate(V) if x)
    k, q = A[:, j], A[i, :] / A[i, j]
    h, v = V[:, n], V[m, :] / V[m, n]
    return {"A": np.outer(v, q), "V": np.outer(h, k)}


def counterexample(point: Point) -> dict[str, Any] | None:
    """The exact partner of a point with skew M_1, two layers (Theorem 3.7 as printed does not exclude it)."""
    model = point.model
    if not (isinstance(model, DeepLightning) and model.parametrization == "virtual" and model.layers == 2):
        return None
    if model.constrained or model.d[0] * model.t > _MOST_SYMBOLS:
        return None
    weights = point.weights
    return skew.counterexample(weights["M1"].tolist(), weights["M2"].tolist(), weights["L"].tolist(), model.t)
