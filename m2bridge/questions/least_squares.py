"""Solve nonlinear least squares in float64, from many starts at once, by the method of Levenberg and Marquardt."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_IDLE_STEPS = 12
"""A start whose sum of squares does not decrease for this many steps is stopped."""

Batched = Callable[[np.ndarray], np.ndarray]


def descended(
    residuals: Batched, jacobian: Batched, starts: np.ndarray, *, floor: float, steps: int, all_of_them: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Minimize sums of squares from all starts; return the end points and their sums, infinite after an overflow of float64.

    Parameters
    ----------
    residuals, jacobian: of an array with one row per start; the axes of the Jacobian are (start, unknown, value).
    floor: a sum of squares that counts as zero.
    all_of_them: continue until every start has converged or is stopped; otherwise the first that reaches `floor` ends the search.
    """
    flat, size = starts.copy(), starts.shape[1]
    residual = residuals(flat)
    cost = _squares(residual)
    damping, idle = np.full(len(flat), 1e-2), np.zeros(len(flat), dtype=int)
    for _ in range(steps):
        active = np.flatnonzero((cost > floor) & np.isfinite(cost) & (idle < _IDLE_STEPS))
        if not len(active) or (not all_of_them and cost.min() <= floor):
            break
        J = jacobian(flat[active])
        finite = np.isfinite(J).all(axis=(1, 2))
        cost[active[~finite]] = np.inf
        active, J = active[finite], J[finite]
        # One step of each start: (J J^T + damping * mean diagonal * I) step = J residual. The damping decreases after a step
        # that reduces the sum of squares and increases otherwise.
        normal = J @ np.swapaxes(J, 1, 2)
        gradient = np.einsum("bpv,bv->bp", J, residual[active])
        scale = np.trace(normal, axis1=1, axis2=2)[:, None, None] / size + np.finfo(float).tiny
        system = normal + damping[active, None, None] * scale * np.eye(size)
        tried = flat[active] - np.linalg.solve(system, gradient[:, :, None])[:, :, 0]
        new_residual = residuals(tried)
        new_cost = _squares(new_residual)
        better = new_cost < cost[active]
        moved = active[better]
        gain = np.zeros(len(active))
        gain[better] = cost[moved] - new_cost[better]
        flat[moved], residual[moved], cost[moved] = tried[better], new_residual[better], new_cost[better]
        damping[active] = np.clip(np.where(better, damping[active] / 3, damping[active] * 4), 1e-12, 1e12)
        idle[active] = np.where(gain > 1e-4 * cost[active], 0, idle[active] + 1)
    return flat, cost


def _squares(residual: np.ndarray) -> np.ndarray:
    sums = (residual**2).sum(axis=1)
    return np.where(np.isfinite(sums), sums, np.inf)
