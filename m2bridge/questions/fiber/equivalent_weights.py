"""Compute other weights with the same function exactly, where a formula gives them.

Two orbits of deep networks have one function where M_1 is skew. For J skew and not zero of size 2, A^T J A = det(A) J
for every 2 x 2 matrix A, and J J^T = det(J) I, so that with N invertible of size 2

    (M_1, M_2, L) = (J, N, L)    and    (N, J, (det J / det N) L)

are the same function. If L != 0 and N is not skew, both satisfy rk M_i = 2 and L != 0, and in the first one only M_1 is skew.
Zero rows and columns carry it to every d_0 >= 2. Here the identity is checked over QQ with symbolic inputs, not believed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions.equal import comparison
from m2bridge.questions.orbits import exchanged
from m2bridge.questions.over_q import is_skew
from m2bridge.questions.point import Point


def equivalent_weights(point: Point) -> list[tuple[str, np.ndarray]]:
    """Return weights of other orbits with the same function: where they come from, and flattened Fractions."""
    model, equivalent = point.model, []
    if model.knowledge.layer is not None and "A" in model.parameters:
        swapped = exchanged(point.weights["A"], point.weights["V"])
        if swapped is not None:
            vector = model.flatten(dict(zip("AV", swapped, strict=True)))
            equivalent.append(("Theorem 3.2: (v q^T, h k^T)", vector))
    other = skew_partner(point)
    if other is not None and comparison(model, point.weights, other, 0).proved_same:
        equivalent.append(("the exact partner of a skew M_1", model.flatten(other)))
    return equivalent


def skew_partner(point: Point) -> dict[str, np.ndarray] | None:
    """Virtual weights of another orbit with the same function, when M1 is skew of rank 2; None where the construction fails.

    M1 = c (u w^T - w u^T) lives on a plane. When M2 vanishes off the same two coordinates (always for d_0 = 2) and is invertible
    there and not skew, the partner exchanges the two and multiplies L by det(M1) / det(M2), computed there.
    """
    model = point.model.knowledge.attention
    if model is None or model.parametrization != "virtual" or model.layers != 2:
        return None
    M1, M2, L = (point.weights[name] for name in ("M1", "M2", "L"))
    support = np.flatnonzero(M1.any(axis=1))
    if model.constrained or not is_skew(M1) or len(support) != 2 or is_skew(M2):
        return None
    (a, b), (c, d) = inside = M2[np.ix_(support, support)]
    determinant = a * d - b * c
    if np.count_nonzero(M2) != np.count_nonzero(inside) or determinant == 0:
        return None
    return {"M1": M2, "M2": M1, "L": L * (M1[support[0], support[1]] ** 2 / determinant)}


def counterexample(point: Point) -> dict[str, Any] | None:
    """Return the partner of a point with skew M_1 and the result of the exact comparison, as JSON; None if there is none."""
    other = skew_partner(point)
    if other is None:
        return None
    first, second = (
        {name: elementwise(str, weights[name]).tolist() for name in point.model.parameters}
        for weights in (point.weights, other)
    )
    tokens = (point.model.input_shape or (0, 0))[1]
    return {
        "weights": first,
        "other": second,
        "verified": comparison(point.model, point.weights, other, 0).proved_same,
        "method": f"all coefficients of both polynomial maps over QQ, symbolic X with {tokens} tokens",
    }
