"""The numerical witness: least squares over real weights from random starts, in float64 (Levenberg and Marquardt)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from m2bridge.models import Model

_STARTS, _STEPS = 12, 120
REACHED = 1e-9


def least_distance(model: Model, values: Sequence[Fraction], rng: np.random.Generator) -> float:
    """The least distance found between an image of real weights and the point, relative to 1 + its norm."""
    goal = np.array([float(v) for v in values])
    scale, best = 1 + float(np.linalg.norm(goal)), np.inf
    for _ in range(_STARTS):
        w = model.flatten(model.draw_real_weights(rng))
        damping, error = 1e-2, np.inf
        for _ in range(_STEPS):
            weights = model.unflatten(w)
            gap = np.asarray(model.coordinates(weights), dtype=float) - goal
            J = np.asarray(model.coordinate_jacobian(weights), dtype=float)
            step = np.linalg.solve(J.T @ J + damping * np.eye(len(w)), -J.T @ gap)
            trial = np.asarray(model.coordinates(model.unflatten(w + step)), dtype=float) - goal
            if np.linalg.norm(trial) < np.linalg.norm(gap):
                w, damping, error = w + step, max(damping / 5, 1e-14), float(np.linalg.norm(trial))
            else:
                damping *= 4
            if error < REACHED * scale * 1e-2 or damping > 1e12:
                break
        best = min(best, error / scale)
        if best < REACHED:
            break
    return float(best)
