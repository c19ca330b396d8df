"""Draw surfaces and points of a slice in three dimensions, with matplotlib and with plotly."""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.figures import plotting
from m2bridge.figures.slices import AXES, Slice


def projection() -> str:
    """Import the 3D toolkit of matplotlib, which registers its projection, and return the name of the projection."""
    plotting.library("mpl_toolkits.mplot3d")
    return "3d"


def paint_surface(axes: Any, affine_slice: Slice, polygons: np.ndarray, *, small: bool = False) -> None:
    """Draw polygons (count, corners, 3) of a surface with shading, on axes with the limits of the slice."""
    collection = plotting.library("mpl_toolkits.mplot3d.art3d").Poly3DCollection
    normals = np.cross(polygons[:, 2] - polygons[:, 0], polygons[:, -1] - polygons[:, 1])
    length = np.linalg.norm(normals, axis=1)
    keep = length > 1e-12
    colours = _shaded(normals[keep] / length[keep, None], affine_slice)
    settings = {"edgecolors": "none", "linewidths": 0, "antialiased": False, "zsort": "average"}
    mesh = collection(polygons[keep], facecolors=colours, **settings)
    mesh.set_rasterized(True)
    axes.computed_zorder = False
    axes.add_collection3d(mesh)
    low, high = affine_slice.limits.T
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    zoom = 1.0 if small else 0.98
    plotting.frame_3d(
        axes, aspect=(1, 1, 1), zoom=zoom, focal_length=0.6, view=affine_slice.view, small=small
    )
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.line.set_linewidth(0.6)
        axis._axinfo["grid"].update(color=(0.85, 0.85, 0.85, 1.0), linewidth=0.4)
        axis._axinfo["tick"].update(inward_factor=0.0, outward_factor=0.15)


def _camera_direction(affine_slice: Slice) -> np.ndarray:
    """Return the direction of the camera."""
    elevation, azimuth = np.radians(affine_slice.view)
    flat = np.cos(elevation)
    return np.array([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])


def _shaded(normals: np.ndarray, affine_slice: Slice) -> np.ndarray:
    """Return shaded colours. The two sides have different tints, so that crossing sheets can be distinguished."""
    eye = _camera_direction(affine_slice)
    light = eye + np.array([0.25, -0.1, 0.75])
    light /= np.linalg.norm(light)
    facing = normals @ eye
    towards = np.where(facing[:, None] >= 0, normals, -normals)
    diffuse = np.clip(towards @ light, 0, 1)
    half = (light + eye) / np.linalg.norm(light + eye)
    gloss = np.clip(towards @ half, 0, 1) ** 30
    to_rgb = plotting.library("matplotlib.colors").to_rgb
    tint = np.where((facing >= 0)[:, None], np.array(to_rgb("#56B4E9")), np.array(to_rgb("#9FC6DE")))
    colour = np.clip(tint * (0.5 + 0.55 * diffuse[:, None]) + 0.18 * gloss[:, None], 0, 1)
    return np.concatenate([colour, np.ones((len(colour), 1))], axis=1)


def layout(affine_slice: Slice, title: str) -> dict[str, Any]:
    """Return the plotly layout of a three-dimensional slice."""
    box = {"backgroundcolor": "#f7f7f7", "gridcolor": "#d9d9d9"}
    axes = {
        f"{label}axis": {"range": side.tolist(), "title": {"text": label}, **box}
        for label, side in zip(AXES, affine_slice.limits, strict=True)
    }
    eye = dict(zip("xyz", (2.15 * _camera_direction(affine_slice)).round(4).tolist(), strict=True))
    camera = {"eye": eye, "center": {"x": 0, "y": 0, "z": -0.12}}
    return {
        "title": {"text": title, "x": 0.5},
        "scene": {**axes, "aspectmode": "cube", "camera": camera},
        "template": "plotly_white",
        "legend": {"x": 0.02, "y": 0.98, "yanchor": "top", "bgcolor": "rgba(255,255,255,0.8)"},
        "margin": {"l": 0, "r": 0, "t": 70, "b": 0},
        "font": {"size": 14},
    }


def beads(go: Any, points: np.ndarray, marker: dict[str, Any], texts: list[str], **settings: Any) -> Any:
    """Return markers at points, with a hover text for each."""
    x, y, z = points.T.round(6).tolist()
    return go.Scatter3d(
        x=x, y=y, z=z, mode="markers", marker=marker, text=texts, hoverinfo="text", **settings
    )  # fmt: skip
