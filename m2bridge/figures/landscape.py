"""Compute the loss landscape of a map with two weights: gradient flow and all critical points, in weights and in functions.

The critical points are the exact answer of `critical-points` (Euclidean metric, given target). One layer of attention is
restricted to the slice with the Whitney umbrella of Figure 1; other networks are restricted to a plane of their weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.errors import InputError
from m2bridge.families import Model, from_text, symbolic_map
from m2bridge.families.polynomial_map import PolynomialMap
from m2bridge.families.symbolic import rational_variables, sparse
from m2bridge.figures import plotting
from m2bridge.figures.slices import substituted
from m2bridge.frontends.polynomials import terms_of
from m2bridge.questions.critical_points import CriticalPoints
from m2bridge.questions.least_squares import descended

KINDS = {
    "minimum": ("o", plotting.GREEN, "minimum"),
    "saddle": ("^", plotting.ORANGE, "saddle"),
    "maximum": ("s", plotting.PURPLE, "maximum"),
    "degenerate": ("X", plotting.GREY, "undecided"),
}
BASINS = (plotting.BLUE, plotting.PURPLE, plotting.BLACK, plotting.VERMILION)
_LANDSCAPE_STEPS = 700  # of one flow line
_LANDSCAPE_STARTS, _LANDSCAPE_GRID = 9, 81  # flow lines and grid points per side


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Data of the figure: the map, the target, critical points with all their weights in the window, and flow lines.

    `singular` holds polylines of singular functions, with True if they are in the image; `marks` holds boundary points.
    """

    plane: Model
    target: np.ndarray
    window: float
    answer: CriticalPoints
    functions: np.ndarray
    kinds: tuple[str, ...]
    weights: tuple[np.ndarray, ...]
    flows: tuple[np.ndarray, ...]
    ends: tuple[int, ...]
    singular: tuple[tuple[np.ndarray, bool], ...]
    marks: np.ndarray
    frame: np.ndarray

    @property
    def ending(self) -> int:
        """Return the number of flow lines that end in a minimum."""
        return sum(end >= 0 for end in self.ends)


def target_of(plane: Model, seed: int) -> tuple[Fraction, ...]:
    """Return a target near the surface: a fixed one for the slice of attention, otherwise a random one."""
    if plane.user.name == "umbrella":
        return Fraction(1, 4), Fraction(9, 10), Fraction(-1)
    rng = np.random.default_rng([seed, 72])
    point = plane.coordinates({"x": rng.uniform(-1, 1, size=2)}) + 0.3 * rng.normal(
        size=plane.coordinate_count
    )
    return tuple(Fraction(round(10 * float(x)), 10) for x in point)


def plane_of(model: Model, seed: int) -> tuple[Model, str]:
    """Return a map with two weights and its title: the model itself, a slice of attention, or a random plane of weights."""
    if model.user.polynomials is not None and len(model.user.variables) == 2:
        return model, model.title
    layer = model.knowledge.layer
    if layer is not None and (layer.d, layer.dp, layer.attention_rank) == (2, 1, 2):
        # a = (1, 0, z), b = (0, y, x): A = [[1, 0], [s, r]], V = (1, -s)
        umbrella = from_text("umbrella", ["r", "s"], ["-r*s", "r", "-s^2"])
        return umbrella, "slice of one attention layer, A = [[1, 0], [s, r]], V = (1, -s)"
    if not model.polynomial or model.parameter_count < 2:
        raise InputError(
            f"{model} is not polynomial or has fewer than two weights; a landscape requires both"
        )
    return _random_plane(model, seed), f"random plane of weights of {model.title}"


def _random_plane(model: Model, seed: int) -> PolynomialMap:
    rng = np.random.default_rng([seed, 71])
    r, s = rational_variables(["r", "s"])
    base, first, second = rng.integers(-1, 2, size=(3, model.parameter_count)).tolist()
    weights = [b + u * r + v * s for b, u, v in zip(base, first, second, strict=True)]
    polynomials = [terms_of(sparse(substituted(polynomial, weights))) for polynomial in symbolic_map(model)]
    return PolynomialMap(
        name=f"plane of weights of {model.spec}", variables=("r", "s"), polynomials=tuple(polynomials)
    )


def scene(plane: Model, target: Sequence[Any], answer: CriticalPoints, *, window: float = 1.4) -> Scene:
    """Compute the data of the figure for a map with two weights; `answer` holds its real critical points."""
    goal = np.array([float(x) for x in target])
    functions = np.array([[float(low) for low, _ in point.coordinates] for point in answer.real_points])
    functions = functions.reshape(-1, plane.coordinate_count)
    kinds = tuple(point.kind for point in answer.real_points)
    weights = tuple(_preimages(plane, y, window) for y in functions)
    minima = [(i, w) for i, kind in enumerate(kinds) if kind == "minimum" for w in weights[i]]
    flows = _flows(plane, goal, window)
    ends = []
    for line in flows:
        near = [(float(np.linalg.norm(line[-1] - w)), i) for i, w in minima]
        ends.append(min(near)[1] if near and min(near)[0] < 0.05 * window else -1)
    singular, marks = _umbrella_axis(plane, window)
    return Scene(
        plane=plane, target=goal, window=window, answer=answer, functions=functions, kinds=kinds, weights=weights,
        flows=tuple(flows), ends=tuple(ends), singular=singular, marks=marks, frame=_axes_of(plane, window),
    )  # fmt: skip


def _values(plane: Model, weights: np.ndarray) -> np.ndarray:
    return np.asarray(plane.coordinates({"x": np.asarray(weights, dtype=np.float64)}))


def _gradients(plane: Model, goal: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return half of the gradient of the loss at weights (rows)."""
    jacobian = np.asarray(plane.coordinate_jacobian({"x": weights}))
    return np.asarray(np.einsum("nc,ncw->nw", _values(plane, weights) - goal, jacobian))


def _starts(window: float) -> np.ndarray:
    ticks = np.linspace(-0.94 * window, 0.94 * window, _LANDSCAPE_STARTS)
    return np.array([[a, b] for a in ticks for b in ticks])


def _flows(plane: Model, goal: np.ndarray, window: float) -> list[np.ndarray]:
    """Return lines of steepest descent, parametrized by arc length, from a grid of starts until they stop or leave the window."""
    step = 0.006 * window
    here = _starts(window)
    lines = [[start.copy()] for start in here]
    moving = np.arange(len(here))
    for _ in range(_LANDSCAPE_STEPS):
        first = _gradients(plane, goal, here[moving])
        size = np.linalg.norm(first, axis=1, keepdims=True)
        goes_on = (size[:, 0] >= 1e-3) & (np.abs(here[moving]).max(axis=1) <= 1.6 * window)
        moving, first, size = moving[goes_on], first[goes_on], size[goes_on]
        if not len(moving):
            break
        second = _gradients(plane, goal, here[moving] - 0.5 * step * first / size)
        here[moving] -= step * second / np.maximum(np.linalg.norm(second, axis=1, keepdims=True), size * 0.2)
        for i in moving:
            lines[i].append(here[i].copy())
        # Lines whose gradients point in opposite directions stepped across the bottom of the valley.
        moving = moving[(first * second).sum(axis=1) >= 0]
    return [np.array(line) for line in lines]


def _preimages(plane: Model, function: np.ndarray, window: float) -> np.ndarray:
    """Return all real weights of a function in the window, computed by least squares from a grid of starts."""

    def residuals(weights: np.ndarray) -> np.ndarray:
        return np.asarray(_values(plane, weights) - function)

    def jacobian(weights: np.ndarray) -> np.ndarray:
        return np.swapaxes(np.asarray(plane.coordinate_jacobian({"x": weights})), 1, 2)

    scale = 1 + float(function @ function)
    starts = _starts(1.3 * window)
    ends, cost = descended(residuals, jacobian, starts, floor=1e-30 * scale, steps=60, all_of_them=True)
    preimages: list[np.ndarray] = []
    for here in ends[(cost < 1e-12 * scale) & (np.abs(ends).max(axis=1) <= window)]:
        if all(np.linalg.norm(here - w) > 1e-4 for w in preimages):
            preimages.append(here)
    return np.array(preimages).reshape(-1, 2)


def _umbrella_axis(plane: Model, window: float) -> tuple[tuple[tuple[np.ndarray, bool], ...], np.ndarray]:
    """Return the singular curve of the slice of attention (True in the image, False outside) and the pinch point."""
    if plane.user.name != "umbrella":
        return (), np.zeros((0, 3))
    deep = window**2
    solid = np.array([[0.0, 0.0, -deep], [0.0, 0.0, 0.0]])
    dotted = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.3 * deep]])
    return ((solid, True), (dotted, False)), np.zeros((1, 3))


def _axes_of(plane: Model, window: float) -> np.ndarray:
    """Return three directions of the function space (rows) for drawing: the coordinate axes, or the principal directions."""
    if plane.coordinate_count == 3:
        return np.eye(3)
    ticks = np.linspace(-window, window, 21)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    values = _values(plane, grid)
    rows = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)[2][:3]
    return np.concatenate([rows, np.zeros((3 - len(rows), rows.shape[1]))])


def losses_on(scene: Scene, count: int = _LANDSCAPE_GRID) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a grid of weights, the functions there, and their losses."""
    ticks = np.linspace(-scene.window, scene.window, count)
    grid = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1)
    values = _values(scene.plane, grid.reshape(-1, 2)).reshape(count, count, -1)
    return grid, values, ((values - scene.target) ** 2).sum(axis=-1)


def basin_colour(scene: Scene, end: int) -> str:
    """Return the colour of the lines that end in a minimum; grey for lines that leave the window."""
    minima = [i for i, kind in enumerate(scene.kinds) if kind == "minimum"]
    return plotting.GREY if end < 0 else BASINS[minima.index(end) % len(BASINS)]


COLUMNS = ("kind", "loss", "weights", "function")


def data(scene: Scene) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return the data of the figure: a JSON document with the answer, and one row per real critical function."""
    document = {
        "figure": "landscape",
        "model": scene.plane.spec,
        "target": scene.target.tolist(),
        "regular": scene.answer.regular,
        "real": scene.answer.real,
        "index": dict(scene.answer.index or {}),
        "flow_lines": len(scene.flows),
        "ending_in_a_minimum": scene.ending,
    }
    rows = []
    for point, preimages in zip(scene.answer.real_points, scene.weights, strict=True):
        weights = " ".join(f"({w[0]:.6f};{w[1]:.6f})" for w in preimages)
        rows.append([point.kind, point.loss[0], weights, " ".join(low for low, _ in point.coordinates)])
    return document, rows
