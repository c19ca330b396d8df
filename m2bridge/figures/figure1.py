"""Figures stage: Figure 1, a slice of M(2,1,2): the surface, its singular curve solid and dotted, the boundary points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from m2bridge.figures import plotting
from m2bridge.figures.crosscheck import Check, compare
from m2bridge.figures.slices import AXES, Polynomial, Slice, closure_equation, restrict, text_of
from m2bridge.figures.surface import Curve, Patch, singular_curves, surface

SURFACE = "surface: reachable functions"
SOLID = "singular, in the image"
DOTTED = "only in the Zariski closure"
MARKS = "boundary points"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Everything that is drawn of one slice, and how its two descriptions compare."""

    cut: Slice
    polynomial: Polynomial
    patches: tuple[Patch, ...]
    curves: tuple[Curve, ...]
    boundary_points: np.ndarray
    check: Check


def section(cut: Slice, equations: Sequence[str], *, grid: int = 24) -> Section:
    """The section of the neuromanifold by a slice.

    Parameters
    ----------
    equations
        The closure's equations as Macaulay2 computed them, from a record.

    Raises
    ------
    DisagreementError
        The surface drawn from the parametrization and the equation are not the same surface.
    """
    polynomial = restrict(closure_equation(equations), cut)
    patches = tuple(surface(cut))
    curves, marks = singular_curves(cut)
    check = compare(cut, polynomial, patches, curves, grid=grid)
    check.require()
    return Section(
        cut=cut,
        polynomial=polynomial,
        patches=patches,
        curves=tuple(curves),
        boundary_points=marks,
        check=check,
    )


def draw(part: Section, path: Path) -> None:
    """Write the picture; the ending of `path` chooses the format."""
    if path.suffix.lower() == ".html":
        plotting.save_html(interactive(part), path)
        return
    with plotting.style():
        figure = plotting.new_figure(3.5, 3.6)
        axes = figure.add_axes((-0.02, 0.175, 0.98, 0.865), projection=projection())
        paint(axes, part)
        legend(figure, [part], (0.5, 0.065))
        _caption(figure, part.cut)
        plotting.save_figure(figure, path)


def projection() -> str:
    """The name of matplotlib's three-dimensional axes, which importing the toolkit makes known."""
    plotting.library("mpl_toolkits.mplot3d")
    return "3d"


def legend(figure: Any, parts: Sequence[Section], place: tuple[float, float]) -> None:
    """The legend of everything that occurs in the sections, its lower middle at `place`."""
    lines = plotting.library("matplotlib.lines").Line2D
    patch = plotting.library("matplotlib.patches").Patch
    handles = [
        patch(facecolor=plotting.SKY, edgecolor="none", label=SURFACE),
        lines([], [], color=plotting.VERMILION, linewidth=2, label=SOLID),
        lines([], [], color=plotting.VERMILION, linewidth=2, linestyle=(0, (1, 1.2)), label=DOTTED),
        _mark(lines, label=MARKS),
    ]
    curves = [curve for part in parts for curve in part.curves]
    kinds = [True, any(c.in_image for c in curves), any(not c.in_image for c in curves)]
    kinds.append(any(len(part.boundary_points) for part in parts))
    figure.legend(
        handles=[handle for handle, present in zip(handles, kinds, strict=True) if present],
        loc="lower center",
        ncols=2,
        frameon=False,
        handlelength=2.2,
        columnspacing=1.2,
        borderaxespad=0,
        borderpad=0,
        bbox_to_anchor=place,
    )


def _caption(figure: Any, cut: Slice) -> None:
    """What the axes mean: the two quadrics as functions of x, y, z."""
    text = f"$\\alpha_1\\nu$ = {cut.quadric_text(0)},  $\\alpha_2\\nu$ = {cut.quadric_text(1)}"
    figure.text(0.5, 0.022, _minus(text), ha="center", va="bottom", fontsize=6.5 if len(text) < 75 else 5)


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def _mark(lines: Any, **more: Any) -> Any:
    return lines(
        [], [], color=plotting.YELLOW, marker="D", markersize=5, markeredgecolor="k", linestyle="none", **more
    )


def paint(axes: Any, part: Section, *, small: bool = False) -> None:
    """Draw a section on three-dimensional axes."""
    collection = plotting.library("mpl_toolkits.mplot3d.art3d").Poly3DCollection
    polygons, normals = _polygons(part.patches)
    colours = _shaded(normals, part.cut)
    mesh = collection(
        polygons, facecolors=colours, edgecolors="none", linewidths=0, antialiased=False, zsort="average"
    )
    mesh.set_rasterized(True)
    axes.computed_zorder = False
    axes.add_collection3d(mesh)
    width = 1.4 if small else 2.0
    for curve in part.curves:
        points = curve.points[:: max(1, len(curve.points) // 400)]
        points = np.concatenate([points, curve.points[-1:]])
        style = "-" if curve.in_image else (0, (1, 1.2))
        axes.plot(
            *points.T,
            color=plotting.VERMILION,
            linewidth=width,
            linestyle=style,
            zorder=5,
            solid_capstyle="butt",
        )
    if len(part.boundary_points):
        size = 4 if small else 5.5
        axes.plot(
            *part.boundary_points.T, linestyle="none", marker="D", markersize=size, color=plotting.YELLOW,
            markeredgecolor="k", markeredgewidth=0.8, zorder=6,
        )  # fmt: skip
    _frame(axes, part.cut, small=small)


def _frame(axes: Any, cut: Slice, *, small: bool) -> None:
    low, high = cut.limits.T
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_box_aspect((1, 1, 1.0), zoom=1.0 if small else 0.98)
    axes.set_proj_type("persp", focal_length=0.6)
    axes.view_init(*cut.view)
    pad = -8 if small else -6
    for name, label in zip(("xaxis", "yaxis", "zaxis"), AXES, strict=True):
        axis = getattr(axes, name)
        axis.set_pane_color((0.97, 0.97, 0.97, 1.0))
        axis.line.set_linewidth(0.6)
        axis._axinfo["grid"].update(color=(0.85, 0.85, 0.85, 1.0), linewidth=0.4)
        axis._axinfo["tick"].update(inward_factor=0.0, outward_factor=0.15)
        axis.set_tick_params(pad=-4 if small else -3, labelsize=5.5 if small else 6.5)
        ticks = plotting.library("matplotlib.ticker")
        axis.set_major_locator(ticks.MaxNLocator(4, steps=[1, 5, 10], prune="both"))
        axis.set_label_text(f"${label}$", fontsize=7 if small else 9)
        axis.labelpad = pad


def _polygons(patches: Sequence[Patch]) -> tuple[np.ndarray, np.ndarray]:
    """Quadrilaterals (count, 4, 3) of all patches and their unit normals."""
    quads = []
    for patch in patches:
        p = patch.points
        quads.append(np.stack([p[:-1, :-1], p[1:, :-1], p[1:, 1:], p[:-1, 1:]], axis=2).reshape(-1, 4, 3))
    corners = np.concatenate(quads)
    normals = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
    length = np.linalg.norm(normals, axis=1)
    keep = length > 1e-12
    return corners[keep], normals[keep] / length[keep, None]


def _shaded(normals: np.ndarray, cut: Slice) -> np.ndarray:
    """Colours of both sides under a light beside the eye: one tint a side, so that crossing sheets are told apart."""
    elevation, azimuth = np.radians(cut.view)
    eye = np.array(
        [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    )
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


def interactive(part: Section) -> Any:
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
    eye = 2.0 * np.array([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])
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


def _interactive_curves(part: Section, go: Any) -> list[Any]:
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


COLUMNS = ("kind", "x", "y", "z", "A11", "A12", "A21", "A22", "V11", "V12")


def data(part: Section) -> tuple[dict[str, Any], list[list[Any]]]:
    """What is drawn: a JSON document, and a table of a tenth of the points with their weights."""
    document = {
        "figure": "1",
        "model": "lightning(d=2,dp=1,a=2,t=2)",
        "slice": part.cut.document(),
        "equation": text_of(part.polynomial),
        "boundary_points": part.boundary_points.round(6).tolist(),
        "singular_curve": [
            {
                "in_image": curve.in_image,
                "from": curve.points[0].round(6).tolist(),
                "to": curve.points[-1].round(6).tolist(),
            }
            for curve in part.curves
        ],
        "check": {
            "drawn_points": part.check.drawn,
            "roots_on_grid": part.check.roots,
            "closure_only_roots": part.check.closure_only_roots,
            "agrees": not part.check.failures,
        },
    }
    rows: list[list[Any]] = []
    for patch in part.patches:
        for i in range(0, patch.points.shape[0], 3):
            for j in range(0, patch.points.shape[1], 5):
                entries = (*patch.points[i, j], *patch.A[i, j].ravel(), *patch.V[i, j].ravel())
                rows.append(["surface", *(_number(c) for c in entries)])
    for curve in part.curves:
        kind = "singular" if curve.in_image else "closure-only"
        for point in curve.points[:: max(1, len(curve.points) // 40)]:
            rows.append([kind, *(_number(c) for c in point), *[""] * 6])
    for point in part.boundary_points:
        rows.append(["boundary", *(_number(c) for c in point), *[""] * 6])
    return document, rows


def _number(value: float) -> str:
    text = f"{value:.6f}"
    return "0.000000" if float(text) == 0 else text
