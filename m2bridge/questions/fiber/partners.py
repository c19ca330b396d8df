"""Other weights with the same function: exact ones where a formula gives them, real ones by least squares from random starts.

Two orbits of deep networks have one function where M_1 is skew. For J skew and S symmetric of size 2, S J S = det(S) J and
J S J^T = adj(S), so that with N invertible of size 2

    (M_1, M_2, L) = (J, N, L)    and    (N, J, L / det N)

are the same function. Both satisfy rk M_i = 2 and L != 0; in the first one only M_1 is skew. Zero rows and columns carry it to
every d_0 >= 2. Here the identity is checked over QQ with symbolic inputs, not believed. Real weights that are found are evaluated
again in float64 at fresh inputs; what does not pass is not reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.models import DeepLightning, Lightning, Model
from m2bridge.models.custom import OwnModel
from m2bridge.programs.arithmetics import elementwise
from m2bridge.questions.equal import comparison
from m2bridge.questions.fiber.known import slice_of
from m2bridge.questions.fiber.ranks import jacobian, outputs_at, sample_count
from m2bridge.questions.fiber.result import RealPoint
from m2bridge.questions.least_squares import descended
from m2bridge.questions.orbits import exchanged
from m2bridge.questions.over_q import is_skew
from m2bridge.questions.point import Point

Weights = Mapping[str, np.ndarray]
_TOLERANCE = 1e-7
_STARTS, _STEPS = 10, 160
_MOST_WEIGHTS = 24
_MOST_SHOWN = 4


# -- exact partners --------------------------------------------------------------------------------------------------------------


def partners(point: Point) -> list[tuple[str, np.ndarray]]:
    """Weights of other orbits with the same function: where they come from, and flattened Fractions."""
    model, found = point.model, []
    if isinstance(model, Lightning) and model.parametrization == "attention":
        swapped = exchanged(point.weights["A"], point.weights["V"])
        if swapped is not None:
            vector = model.flatten(dict(zip("AV", swapped, strict=True)))
            found.append(("Theorem 3.2: (v q^T, h k^T)", vector))
    other = skew_partner(point)
    if other is not None and comparison(model, point.weights, other, 0).proved_same:
        found.append(("the exact partner of a skew M_1", model.flatten(other)))
    return found


def skew_partner(point: Point) -> dict[str, np.ndarray] | None:
    """Virtual weights of another orbit with the same function, when M1 is skew of rank 2; None where the construction fails.

    M1 = c (u w^T - w u^T) lives on a plane. When M2 vanishes off the same two coordinates (always for d_0 = 2) and is invertible
    there and not skew, the partner exchanges the two and divides L by det(M2) / det(M1).
    """
    model = point.model
    if not (isinstance(model, DeepLightning) and model.parametrization == "virtual" and model.layers == 2):
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
    """The partner of a point with skew M_1, with the outcome of the exact comparison, as JSON values; None when there is none."""
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


# -- real points -----------------------------------------------------------------------------------------------------------------


def real_points(point: Point, seed: int) -> tuple[RealPoint, ...]:
    """Real points of the fiber, one for each orbit that was met; the exact partners first."""
    model = point.model
    try:
        start = point.floats()
    except OverflowError:
        return ()
    candidates = [(how, model.unflatten(vector.astype(np.float64))) for how, vector in partners(point)]
    if model.parameter_count <= _MOST_WEIGHTS and model.free is model:
        candidates += [("least squares from a random start", found) for found in _search(model, start, seed)]
    reported: list[RealPoint] = []
    own, met = _up_to_scalings(model, start), list[Weights]()
    for how, weights in candidates:
        error = _residual(model, start, weights, seed)
        moved = _up_to_scalings(model, weights)
        if not error <= _TOLERANCE or (moved is not None and any(_close(moved, other) for other in met)):
            continue
        same = None if moved is None or own is None else _close(moved, own)
        met += [] if moved is None else [moved]
        listed = {name: w.tolist() for name, w in weights.items()}
        reported.append(RealPoint(weights=listed, residual=error, found_by=how, same_orbit=same))
        if len(reported) == _MOST_SHOWN:
            break
    return tuple(reported)


def _residual(model: Model, first: Weights, second: Weights, seed: int) -> float:
    """The largest difference of outputs at fresh standard normal inputs, relative to the largest output."""
    rng, shape = np.random.default_rng([seed, 99]), model.input_shape
    inputs = rng.standard_normal((25, *shape)) if shape is not None else None
    with np.errstate(all="ignore"):
        a, b = (np.asarray(outputs_at(model, w, inputs), dtype=np.float64) for w in (first, second))
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return float("inf")
    size = float(np.abs(a).max(initial=0.0))
    return float(np.abs(a - b).max(initial=0.0)) / (size if size > 0 else 1.0)


def _search(model: Model, target: Weights, seed: int) -> list[dict[str, np.ndarray]]:
    """Solutions of ``forward(w) = forward(target)`` by least squares, at most `_STARTS`."""
    rng, shape = np.random.default_rng([seed, 100]), model.input_shape
    inputs = rng.standard_normal((2 * sample_count(model), *shape)) if shape is not None else None

    def outputs(flat: np.ndarray) -> np.ndarray:
        if shape is None:  # all at once
            return np.asarray(model.coordinates(model.unflatten(flat)), dtype=np.float64)
        return np.array([model.forward(model.unflatten(w), inputs).ravel() for w in flat], dtype=np.float64)

    def derivatives(flat: np.ndarray) -> np.ndarray:
        if shape is None:
            found = model.coordinate_jacobian(model.unflatten(flat))
        else:
            found = [jacobian(model, model.unflatten(w), inputs) for w in flat]
        return np.swapaxes(np.asarray(found, dtype=np.float64), 1, 2) / scale

    with np.errstate(all="ignore"):
        flat_target = model.flatten(target)
        goal = outputs(flat_target[None])
        scale = float(np.abs(goal).max(initial=0.0))
        if scale == 0.0 or not np.isfinite(scale):
            return []
        starts = rng.standard_normal((_STARTS, model.parameter_count))
        starts *= float(np.sqrt(np.mean(np.square(flat_target))))
        flat, cost = descended(
            lambda w: (outputs(w) - goal) / scale, derivatives, starts, floor=1e-26, steps=_STEPS, all_of_them=True
        )  # fmt: skip
    return [model.unflatten(w) for w, size in zip(flat, cost, strict=True) if size < 1e-18]


def _up_to_scalings(model: Model, weights: Weights) -> Weights | None:
    """The real weights of a slice on the orbit, the weights themselves without known symmetries; None where other groups act too.

    One layer by (Q, K, V) is seen in (A, V).
    """
    one_layer = isinstance(model, (Lightning, DeepLightning)) and model.layers == 1 and not model.multi_head
    if one_layer and model.parametrization == "weights":  # type: ignore[attr-defined]
        model = replace(model, parametrization="attention")  # type: ignore[type-var]
        weights = model.from_weights(weights)  # type: ignore[attr-defined]
    cut = slice_of(model, 0)
    if cut is None:
        known = model.symmetries or (isinstance(model, OwnModel) and model.found.fields)
        return None if known else weights
    try:
        with np.errstate(all="ignore"):
            return model.unflatten(cut.move(model.flatten(weights)).astype(np.float64))
    except InputError:
        return None


def _close(first: Weights, second: Weights) -> bool:
    """Whether every array is the same, up to a thousandth of its largest entry."""
    pairs = [(first[name], second[name]) for name in first]
    return all(np.abs(a - b).max(initial=0.0) <= 1e-3 * np.abs(a).max(initial=0.0) for a, b in pairs)
