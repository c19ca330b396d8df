"""The interactive Figure 1, with the weights (A, V) of each point under the pointer."""

from __future__ import annotations

from typing import Any

import numpy as np

from m2bridge.figures import plotting
from m2bridge.figures.figure1 import DOTTED, MARKS, SOLID, SURFACE, PlaneSection
from m2bridge.figures.slices import AXES, text_of
from m2bridge.figures.surface import Patch


def interactive(part: PlaneSection) -> Any:
    """A plotly figure with the weights (A, V) of each point under the pointer."""
    go = plotting.library("plotly.graph_objects")
    traces = []
    for number, patch in enumerate(part.patches):
        x, y, z = np.moveaxis(patch.points, -1, 0)
        traces.append(
            go.Surface(
                x=x.round(5).tolist(), y=y.round(5).tolist(), z=z.round(5).tolist(),
                surfacecolor=np.zeros_like(x).tolist(), colorscale=[[0, plotting.SKY], [1, plotting.SKY]], showscale=False,
                opacity=0.82, name=SURFACE, showlegend=number == 0, legendgroup="surface",
                text=np.array(_hover(patch)), hoverinfo="text",
                lighting={"ambient": 0.72, "diffuse": 0.5, "specular": 0.1, "roughness": 0.7},
                contours={axis: {"highlight": False} for axis in "xyz"},
            )
        )  # fmt: skip
    traces += _interactive_curves(part, go)
    if len(part.boundary_points):
        x, y, z = part.boundary_points.T.round(6).tolist()
        traces.append(
            go.Scatter3d(
                x=x, y=y, z=z, mode="markers", name=MARKS,
                marker={"color": plotting.YELLOW, "size": 6, "symbol": "diamond", "line": {"color": "black", "width": 2}},
                text=[f"boundary point ({a:.4g}, {b:.4g}, {c:.4g})" for a, b, c in zip(x, y, z, strict=True)],
                hoverinfo="text",
            )
        )  # fmt: skip
    ranges = {
        f"{label}axis": {
            "range": cut_range.tolist(), "title": {"text": label}, "backgroundcolor": "#f7f7f7", "gridcolor": "#d9d9d9",
        }
        for label, cut_range in zip(AXES, part.cut.limits, strict=True)
    }  # fmt: skip
    elevation, azimuth = np.radians(part.cut.view)
    flat = np.cos(elevation)
    eye = 2.15 * np.array([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])
    where = f"α₁ν = {part.cut.quadric_text(0)}, α₂ν = {part.cut.quadric_text(1)}"
    return go.Figure(
        data=traces,
        layout={
            "title": {
                "text": f"A slice of M(2,1,2), t = 2<br><sub>{where}; closure: {text_of(part.polynomial)} = 0</sub>",
                "x": 0.5,
            },
            "scene": {
                **ranges,
                "aspectmode": "cube",
                "camera": {
                    "eye": dict(zip("xyz", eye.round(4).tolist(), strict=True)),
                    "center": {"x": 0, "y": 0, "z": -0.12},
                },
            },
            "template": "plotly_white",
            "legend": {"x": 0.02, "y": 0.98, "yanchor": "top", "bgcolor": "rgba(255,255,255,0.8)"},
            "margin": {"l": 0, "r": 0, "t": 70, "b": 0},
            "font": {"size": 14},
        },
    )


def _interactive_curves(part: PlaneSection, go: Any) -> list[Any]:
    """The singular curve: a tube where it is in the image (a line would drown in the surface), beads where it is not."""
    traces = []
    size = float(np.linalg.norm(part.cut.limits[:, 1] - part.cut.limits[:, 0]))
    for number, curve in enumerate(c for c in part.curves if c.in_image):
        text = f"{SOLID}<br>two pairs of real weights"
        x, y, z = np.moveaxis(_tube(curve.points, 0.006 * size), -1, 0).round(5).tolist()
        traces.append(
            go.Surface(
                x=x, y=y, z=z, surfacecolor=np.zeros((len(x), len(x[0]))).tolist(), showscale=False,
                colorscale=[[0, plotting.VERMILION], [1, plotting.VERMILION]], name=SOLID, showlegend=number == 0,
                legendgroup=SOLID, text=np.full((len(x), len(x[0])), text), hoverinfo="text",
                lighting={"ambient": 0.9, "diffuse": 0.2}, contours={axis: {"highlight": False} for axis in "xyz"},
            )
        )  # fmt: skip
    for number, curve in enumerate(c for c in part.curves if not c.in_image):
        length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve.points, axis=0), axis=1))])
        stops = np.arange(0.011 * size, length[-1], 0.018 * size)
        x, y, z = (np.interp(stops, length, curve.points[:, k]).round(5).tolist() for k in range(3))
        text = f"{DOTTED}<br>no real weights: a complex-conjugate pair"
        traces.append(
            go.Scatter3d(
                x=x, y=y, z=z, mode="markers", name=DOTTED, showlegend=number == 0, legendgroup=DOTTED,
                marker={"color": plotting.VERMILION, "size": 3.5}, text=[text] * len(x), hoverinfo="text",
            )
        )  # fmt: skip
    return traces


def _tube(points: np.ndarray, radius: float, around: int = 10) -> np.ndarray:
    """A tube around a curve: points (along, around + 1, 3)."""
    centre = points[:: max(1, len(points) // 60)]
    centre = np.concatenate([centre, points[-1:]]) if not np.array_equal(centre[-1], points[-1]) else centre
    along = np.gradient(centre, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    helper = np.where(np.abs(along[:, :1]) < 0.8, np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0]]))
    first = np.cross(along, helper)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(along, first)
    angle = np.linspace(0, 2 * np.pi, around + 1)[None, :, None]
    ring = np.cos(angle) * first[:, None] + np.sin(angle) * second[:, None]
    return np.asarray(centre[:, None] + radius * ring)


def _hover(patch: Patch) -> list[list[str]]:
    """For each point its coordinates and the weights that reach it."""
    rows, columns = patch.points.shape[:2]
    return [
        [
            "x, y, z = {:.3g}, {:.3g}, {:.3g}<br>A = [[{:.3g}, {:.3g}], [{:.3g}, {:.3g}]]<br>V = [[{:.3g}, {:.3g}]]".format(
                *patch.points[i, j], *patch.A[i, j].ravel(), *patch.V[i, j].ravel()
            )
            for j in range(columns)
        ]
        for i in range(rows)
    ]
