"""Draw a surface of the image of a model as an SVG that a page can rotate, without a plotting library.

A map of two variables into three-space is drawn as it is. For other models the functions of a random plane of weights are
projected onto their first three principal directions. The caption states which of the two is drawn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from m2bridge.families import Model

_LINES = 26
_VIEW = (-0.9, 0.42)
"""Azimuth and elevation in radians; the script that rotates the surface starts with the same values."""
_SIZE = 360
_REACH = 2.5
"""Half the side of the drawn square of weights. On a larger one only the terms of highest degree would be visible."""
_COLOURS = np.array([[16, 70, 120], [52, 160, 150], [245, 190, 85]])
"""Colours from low to high; the script has the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A surface: a grid of points in the cube [-1, 1]^3, and a caption."""

    points: np.ndarray
    caption: str

    def svg(self) -> str:
        """Return the surface as a static SVG image, seen from the initial direction of the rotation."""
        shapes = "".join(
            f'<path d="M{" ".join(f"{x:.0f},{y:.0f}" for x, y in corners)}Z" fill="{colour}"/>'
            for corners, colour in _painted(self.points)
        )
        return (
            f'<svg viewBox="0 0 {_SIZE} {_SIZE}" role="img" aria-label="{escape(self.caption)}" '
            f'stroke="#fff" stroke-opacity=".35" stroke-width=".5">{shapes}</svg>'
        )

    def html(self, *, title: str = "") -> str:
        """Return an HTML figure with a caption; the script of the page can rotate it."""
        mesh = json.dumps(np.round(self.points, 3).tolist(), separators=(",", ":"))
        name = f"<b>{escape(title)}.</b> " if title else ""
        caption = f"<figcaption>{name}{escape(self.caption)}</figcaption>"
        return f"<figure class='sheet' data-mesh='{mesh}'>{self.svg()}{caption}</figure>"


def sheet(model: Model, *, seed: int = 0, lines: int = _LINES) -> Sheet:
    """Return a surface of the image of a model; `seed` determines the plane of weights and the inputs of the network."""
    steps = np.linspace(-1, 1, lines)
    s, t = np.meshgrid(steps, steps, indexing="ij")
    if model.parameter_count == 2 and model.input_shape is None and model.coordinate_count == 3:
        plane = np.stack([s, t], axis=-1)
        points = np.asarray(model.coordinates(model.unflatten(plane)), dtype=float)
        return Sheet(points=_scaled(points), caption="The image, for both variables between -1 and 1.")
    rng = np.random.default_rng([seed, 31])
    frame = np.linalg.qr(rng.standard_normal((model.parameter_count, 2)))[0].T
    plane = rng.standard_normal(model.parameter_count) * 0.5 + _REACH * (
        s[..., None] * frame[0] + t[..., None] * frame[-1]
    )
    values = _values(model, plane, rng)
    flat = values.reshape(lines * lines, -1)
    flat = flat - flat.mean(axis=0)
    *_, directions = np.linalg.svd(flat, full_matrices=False)
    projected = np.pad(flat @ directions[:3].T, ((0, 0), (0, max(0, 3 - len(directions)))))
    caption = f"The functions of a plane of weights (seed {seed}), projected onto their first three principal directions."
    return Sheet(points=_scaled(projected.reshape(lines, lines, 3)), caption=caption)


def _values(model: Model, plane: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the values of the functions at a few inputs, or the coordinates of the map."""
    if model.input_shape is None:
        return np.asarray(model.coordinates(model.unflatten(plane)), dtype=float)
    inputs = rng.standard_normal((4, *model.input_shape))
    outputs = [np.asarray(model.forward(model.unflatten(plane), x), dtype=float) for x in inputs]
    return np.stack([value.reshape(*plane.shape[:2], -1) for value in outputs], axis=-1)


def _scaled(points: np.ndarray) -> np.ndarray:
    """Scale each axis of the points to the interval [-1, 1]."""
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    scaled: np.ndarray = 2 * (points - low) / np.where(high > low, high - low, 1) - 1
    return scaled


def _painted(points: np.ndarray) -> list[tuple[Any, str]]:
    """Return the facets from back to front: corners on the canvas, and a shaded colour by height."""
    azimuth, elevation = _VIEW
    x, y, z = np.moveaxis(points, -1, 0)
    across = x * np.cos(azimuth) - y * np.sin(azimuth)
    depth = x * np.sin(azimuth) + y * np.cos(azimuth)
    up = z * np.cos(elevation) + depth * np.sin(elevation)
    far = depth * np.cos(elevation) - z * np.sin(elevation)
    seen = np.stack([_SIZE / 2 * (1 + 0.7 * across), _SIZE / 2 * (1 - 0.7 * up)], axis=-1)
    corners = [(slice(None, -1), slice(None, -1)), (slice(1, None), slice(None, -1)), (slice(1, None), slice(1, None)),
               (slice(None, -1), slice(1, None))]  # fmt: skip

    def facets(grid: np.ndarray) -> np.ndarray:
        """Return the four corners of every facet, one row per facet."""
        return np.stack([grid[corner] for corner in corners], axis=2).reshape(-1, 4, *grid.shape[2:])

    p = facets(points)
    normal = np.cross(p[:, 2] - p[:, 0], p[:, 3] - p[:, 1])
    length = np.linalg.norm(normal, axis=1)
    light = 0.6 + 0.4 * np.abs(normal @ [0.5, -0.4, 0.77]) / np.where(length > 0, length, 1)
    height = p[..., 2].mean(axis=1)
    colours = np.stack([light * np.interp(height, (-1, 0, 1), shade) for shade in _COLOURS.T], axis=1).astype(
        int
    )
    places = facets(seen)
    order = np.argsort(-facets(far).sum(axis=1), kind="stable")
    return [(places[i], "#{:02x}{:02x}{:02x}".format(*colours[i])) for i in order]
