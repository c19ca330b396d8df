"""Exact weights with the same function, where a formula gives them: permuted ones, and those of other orbits."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice, permutations, product
from typing import Any

import numpy as np

from m2bridge.models import MLP, DeepLightning, Lightning
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions.fiber import skew
from m2bridge.questions.fiber.points import Point
from m2bridge.questions.singular_locus.orbits import exchanged

_MOST_PERMUTATIONS = 24
_MOST_SYMBOLS = 9
"""Symbolic inputs with at most this many entries are expanded over QQ."""


def partners(point: Point) -> list[tuple[str, np.ndarray]]:
    """Pairs of where it comes from and the flattened weights, Fractions."""
    found = []
    swapped = partner_of_rank_one(point)
    if swapped is not None:
        found.append(("Theorem 3.2: (v q^T, h k^T)", point.model.flatten(swapped)))
    counter = counterexample(point)
    if counter is not None and counter["verified"]:
        other = {name: elementwise(Fraction, np.array(rows)) for name, rows in counter["other"].items()}
        found.append(("the exact partner of a skew M_1", point.model.flatten(other)))
    return found


def known_points(point: Point) -> tuple[list[np.ndarray], str | None]:
    """The point and its images under the finite symmetries that are known: permutations of neurons and of heads.

    Returns the flattened points (the point itself first) and what the permutations are, or None when there are none.
    """
    model = point.model
    if isinstance(model, MLP) and model.layers > 1 and model.r > 1:
        sizes, words = model.widths[1:-1], "permutations of the hidden neurons"
    elif isinstance(model, DeepLightning) and model.multi_head:
        sizes, words = model.heads, "permutations of the heads"
    else:
        return [point.vector], None
    found = []
    for choice in islice(product(*(permutations(range(n)) for n in sizes)), _MOST_PERMUTATIONS):
        weights = dict(point.weights)
        for i, order in enumerate(map(list, choice), start=1):
            if isinstance(model, MLP):
                weights[f"W{i}"] = weights[f"W{i}"][order]
                weights[f"W{i + 1}"] = weights[f"W{i + 1}"][:, order]
            elif len(order) > 1:
                weights |= {name: w[order] for name, w in weights.items() if name[1:] == str(i)}
        found.append(model.flatten(weights))
    return found, words


def partner_of_rank_one(point: Point) -> dict[str, np.ndarray] | None:
    """(v q^T, h k^T) for A = k q^T and V = h v^T, exactly (Theorem 3.2); None unless both ranks are one in (A, V)."""
    model = point.model
    if not isinstance(model, Lightning) or model.parametrization != "attention":
        return None
    found = exchanged(point.weights["A"], point.weights["V"])
    return None if found is None else dict(zip("AV", found, strict=True))


def counterexample(point: Point) -> dict[str, Any] | None:
    """The exact partner of a point with skew M_1, two layers."""
    model = point.model
    if not (isinstance(model, DeepLightning) and model.parametrization == "virtual" and model.layers == 2):
        return None
    if model.constrained or model.d[0] * model.t > _MOST_SYMBOLS:
        return None
    M1, M2, L = (point.weights[name].tolist() for name in ("M1", "M2", "L"))
    return skew.counterexample(M1, M2, L, model.t)
