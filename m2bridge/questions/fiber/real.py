"""Real weights with the same function: exact partners where a formula gives them, and least squares from random starts.

Everything found is evaluated again in float64 at fresh inputs; what does not pass is not reported.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from m2bridge.models import MLP, DeepLightning, Lightning, Model
from m2bridge.questions.fiber.arguments import attention_and_values
from m2bridge.questions.fiber.differential import jacobian, outputs_at, sample_count
from m2bridge.questions.fiber.partners import partners
from m2bridge.questions.fiber.points import Point
from m2bridge.questions.fiber.result import RealPoint
from m2bridge.questions.least_squares import descended

TOLERANCE = 1e-7
_STARTS, _STEPS = 10, 160
_MOST_WEIGHTS = 24
_MOST_SHOWN = 4

Weights = Mapping[str, np.ndarray]


def residual(model: Model, first: Weights, second: Weights, seed: int) -> float:
    """The largest difference of outputs at fresh standard normal inputs, relative to the largest output."""
    rng = np.random.default_rng([seed, 99])
    shape = model.input_shape
    inputs = rng.standard_normal((25, *shape)) if shape is not None else None
    with np.errstate(all="ignore"):
        a, b = (np.asarray(outputs_at(model, w, inputs), dtype=np.float64) for w in (first, second))
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return float("inf")
    size = float(np.abs(a).max(initial=0.0))
    return float(np.abs(a - b).max(initial=0.0)) / (size if size > 0 else 1.0)


def real_points(point: Point, seed: int) -> tuple[RealPoint, ...]:
    """Real points of the fiber, one for each orbit that was met; the known partners first."""
    model = point.model
    try:
        start = point.floats()
    except OverflowError:
        return ()
    candidates = [(how, model.unflatten(vector.astype(np.float64))) for how, vector in partners(point)]
    if model.parameter_count <= _MOST_WEIGHTS and model.free is model:
        candidates += [("least squares from a random start", found) for found in _search(model, start, seed)]
    reported: list[RealPoint] = []
    signatures = [signature(model, start)]
    for how, weights in candidates:
        error = residual(model, start, weights, seed)
        if not error <= TOLERANCE:
            continue
        own = signature(model, weights)
        if own is not None and any(_close(own, other) for other in signatures[1:]):
            continue
        same = None if own is None or signatures[0] is None else _close(own, signatures[0])
        signatures.append(own)
        listed = {name: w.tolist() for name, w in weights.items()}
        reported.append(RealPoint(weights=listed, residual=error, found_by=how, same_orbit=same))
        if len(reported) == _MOST_SHOWN:
            break
    return tuple(reported)


def _search(model: Model, target: Weights, seed: int) -> list[dict[str, np.ndarray]]:
    """Solutions of ``forward(w) = forward(target)`` by least squares, at most `_STARTS`."""
    rng = np.random.default_rng([seed, 100])
    shape = model.input_shape
    inputs = rng.standard_normal((2 * sample_count(model), *shape)) if shape is not None else None
    with np.errstate(all="ignore"):
        goal = np.asarray(outputs_at(model, target, inputs), dtype=np.float64).ravel()
    scale = float(np.abs(goal).max(initial=0.0))
    if scale == 0.0 or not np.isfinite(scale):
        return []
    typical = float(np.sqrt(np.mean(np.square(model.flatten(target)))))

    def residuals(flat: np.ndarray) -> np.ndarray:
        found = [outputs_at(model, model.unflatten(w), inputs) for w in flat]
        return np.array([np.asarray(y, dtype=np.float64).ravel() - goal for y in found]) / scale

    def derivatives(flat: np.ndarray) -> np.ndarray:
        found = [jacobian(model, model.unflatten(w), inputs) for w in flat]
        return np.array([np.asarray(J, dtype=np.float64).T for J in found]) / scale

    starts = typical * rng.standard_normal((_STARTS, model.parameter_count))
    with np.errstate(all="ignore"):
        flat, cost = descended(residuals, derivatives, starts, floor=1e-26, steps=_STEPS, all_of_them=True)
    return [model.unflatten(w) for w, size in zip(flat, cost, strict=True) if size < 1e-18]


def signature(model: Model, weights: Weights) -> np.ndarray | None:
    """What scalings do not change: each scaled block divided by its norm, up to sign; None for other families.

    Without known symmetries the weights themselves.
    """
    one = isinstance(model, DeepLightning) and model.layers == 1 and not model.multi_head
    if isinstance(model, Lightning) or one:
        A, V, _ = attention_and_values(weights)
        return np.concatenate([_unit(A), _unit(V)])
    if isinstance(model, DeepLightning) and model.parametrization == "virtual":
        return np.concatenate([_unit(w) for w in weights.values()])
    if isinstance(model, MLP) and model.r > 1 and model.layers == 2:
        return np.concatenate([_unit(row) for row in weights["W1"]])
    if not model.symmetries:
        return np.asarray(model.flatten(weights), dtype=np.float64)
    return None


def _unit(array: np.ndarray) -> np.ndarray:
    """The projection onto the line of the entries: the same for an array and its multiples."""
    flat = np.asarray(array, dtype=np.float64).ravel()
    norm = float(np.linalg.norm(flat))
    return np.outer(flat, flat).ravel() / (norm**2 if norm else 1.0)


def _close(first: np.ndarray | None, second: np.ndarray | None) -> bool:
    return first is not None and second is not None and bool(np.abs(first - second).max(initial=0.0) < 1e-3)
